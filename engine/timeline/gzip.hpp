// timeline/gzip: packing and unpacking piece by piece, so that memory doesn't grow with the file.
//
// Through zlib (gzip.cpp); where the engine was built without it, no_gzip.cpp says so in one sentence.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::timeline {

// RFC 1952: what gzip begins with.
inline bool begins_like_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Unpacks `packed`, which must outlive it; `name` stands for the file in messages.
class Inflater {
 public:
  Inflater(std::string_view packed, std::string name);
  ~Inflater();
  // Fills `to`; fewer than `count` bytes only where the packed bytes end. Errors: damaged, or no zlib.
  base::Result<std::size_t> read(char* to, std::size_t count);
  // How many packed bytes are still to be read.
  std::size_t left() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Packs what is written into a file.
class Deflater {
 public:
  explicit Deflater(Output& out);
  ~Deflater();
  void write(std::string_view bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardbook::timeline
