// timeline/file_bytes: the content of a trace file in memory, unpacked if it is gzip.
//
// A plain file is mapped, not copied. Unpacking needs zlib; where the engine was built without it,
// no_gzip.cpp says so in one sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace shardbook::timeline {

class FileBytes {
 public:
  // One sentence if the file is missing, a folder, unreadable, or not valid gzip.
  // `told` as of gunzip().
  static base::Result<FileBytes> open(const std::string& path, const std::function<bool(std::size_t)>& told = {});
  // The same, but gzip is left as it is.
  static base::Result<FileBytes> open_as_it_is(const std::string& path);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::string_view view() const { return map_ != nullptr ? std::string_view(map_, size_) : std::string_view(unpacked_); }
  // The bytes before `offset` are not needed soon: every few megabytes their pages are let go, so that
  // a mapped file doesn't count as memory in use. They can still be read (from the file, again).
  void read_up_to(std::int64_t offset) {
    if (map_ == nullptr || offset - let_go_ < let_go_piece) return;
    let_go(let_go_, offset - let_go_);
    let_go_ = offset;
  }
  // The same for the pages that lie within these bytes. From any thread.
  void let_go(std::int64_t offset, std::int64_t size) const;
  // The packed file ended early; view() is what could be unpacked.
  bool cut_off() const { return cut_off_; }
  // view() is not the file's own bytes.
  bool was_packed() const { return map_ == nullptr; }

 private:
  FileBytes() = default;
  static constexpr std::int64_t let_go_piece = std::int64_t{8} << 20;

  const char* map_ = nullptr;
  std::size_t size_ = 0;
  std::string unpacked_;
  bool cut_off_ = false;
  std::int64_t let_go_ = 0;        // bytes before it are
};

// What gunzip() makes of so many packed bytes at most: it is all held in memory, and may come from anyone. Traces
// are packed to a tenth or a twentieth; nothing can be packed to less than a thousandth (zlib's "technical details").
constexpr std::size_t most_unpacked(std::size_t packed) {
  constexpr std::size_t least = std::size_t{16} << 20, most = std::size_t{4} << 30, times = 100;
  return packed > most / times ? most : packed * times < least ? least : packed * times;
}

// Unpacks gzip; sets *cut_off if the packed bytes end before their stream does. `told`, if given, hears the packed
// bytes that were read since it was told last; false from it ends the unpacking, with an error.
// Errors: damaged, or more than most_unpacked() bytes.
base::Result<std::string> gunzip(std::string_view packed, const std::string& name, bool* cut_off,
                                 const std::function<bool(std::size_t)>& told = {});
// Whether this build can.
bool can_gunzip();

}  // namespace shardbook::timeline
