// timeline/strings: each name once, as a number.
//
// A trace of a million spans has a few hundred names. All text is held in one buffer; an id is an
// index into it. Id 0 is the empty string. Ids never change; a view lasts until the next intern().
// Source of the idea: every trace viewer interns (Tracy's string ids, Perfetto's StringPool).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardbook::timeline {

class Strings {
 public:
  Strings();

  // The id of this text; the same text always has the same id.
  std::uint32_t intern(std::string_view text);
  // The id of this text if it was interned before, else 0 (which is also the id of "").
  std::uint32_t find(std::string_view text) const;
  std::string_view operator[](std::uint32_t id) const {
    return std::string_view(buffer_).substr(begin_[id], begin_[id + 1] - begin_[id]);
  }
  std::size_t size() const { return begin_.size() - 1; }
  std::size_t memory() const { return buffer_.capacity() + begin_.capacity() * 8 + slots_.capacity() * 4; }

 private:
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  void grow();

  std::string buffer_;
  std::vector<std::size_t> begin_;        // begin_[id] .. begin_[id + 1] is the text of id
  std::vector<std::uint32_t> slots_;      // open addressing; id + 1, 0 = free
};

// FNV-1a, 64 bits: of names here, and of whole source files in run.json.
std::uint64_t fnv1a(std::string_view bytes);

}  // namespace shardbook::timeline
