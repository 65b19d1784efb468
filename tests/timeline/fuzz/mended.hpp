// Files whose bytes were changed and whose checksums fit again: what a fuzzer needs to get past them, and what anyone
// can make who wants to do harm.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "engine/timeline/columns_form.hpp"

namespace shardbook::timeline::fuzz {

// The sum of run.tlb (columns.cpp), written a second time.
inline std::uint64_t sum_of(std::string_view bytes) {
  const auto step = [](std::uint64_t state, std::uint64_t word) { return std::rotl((state ^ word) * 0x9e3779b97f4a7c15ull, 29); };
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  for (std::size_t at = 0; at < bytes.size(); at += 32) {
    std::uint64_t words[4] = {};
    std::memcpy(words, bytes.data() + at, std::min<std::size_t>(32, bytes.size() - at));
    for (int i = 0; i < 4; ++i) lanes[i] = step(lanes[i], words[i]);
  }
  std::uint64_t sum = step(7, bytes.size());
  for (const std::uint64_t lane : lanes) sum = step(sum, lane);
  return sum;
}

// An archive for describe() that goes through the head and writes each column's sum.
class Mending {
 public:
  Mending(std::string& file, std::size_t head_at, std::size_t head_bytes)
      : file_(file), head_(head_at), head_end_(head_at + head_bytes), column_(aligned(head_end_)) {}

  // Where the last column ends, or 0 if the head says what cannot be.
  std::size_t end() const { return failed_ ? 0 : column_; }

  template <class Value>
  void value(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      std::uint8_t byte = 0;
      this->value(byte);
    } else if (need(sizeof value)) {
      std::memcpy(&value, file_.data() + head_, sizeof value);
      head_ += sizeof value;
    }
  }
  void text(std::string&) {
    std::uint64_t size = 0;
    value(size);
    if (need(size)) head_ += size;
  }
  template <class T, class Visit>
  void list(std::vector<T>&, Visit visit) {
    std::uint64_t count = 0;
    value(count);
    for (std::uint64_t i = 0; i < count && !failed_; ++i) {
      T element{};
      visit(element);
    }
  }
  template <class T>
  void column(std::vector<T>&, std::uint64_t count) {
    sum(count, sizeof(T));
  }
  template <class T, class... Fields>
  void table(std::vector<T>&, Fields... fields) {
    std::uint64_t count = 0;
    value(count);
    T row{};
    (sum(count, sizeof(fields(row))), ...);
  }

 private:
  bool need(std::uint64_t bytes) {
    failed_ = failed_ || bytes > head_end_ - head_;
    return !failed_;
  }
  void sum(std::uint64_t count, std::size_t width) {
    if (!need(8)) return;
    failed_ = column_ > file_.size() || count > (file_.size() - column_) / width;
    if (failed_) return;
    const std::uint64_t sum = sum_of(std::string_view(file_).substr(column_, count * width));
    std::memcpy(file_.data() + head_, &sum, 8);
    head_ += 8;
    column_ += aligned(count * width);
  }

  std::string& file_;
  std::size_t head_, head_end_, column_;
  bool failed_ = false;
};

inline std::string mended_columns(std::string_view bytes) {
  std::string file(bytes);
  ColumnsHeader header;
  if (file.size() < sizeof header) return file;
  std::memcpy(&header, file.data(), sizeof header);
  std::memcpy(header.magic, columns_magic, sizeof header.magic);
  header.version = columns_version;
  header.head_bytes = std::min<std::uint64_t>(header.head_bytes, file.size() - sizeof header);
  Mending mending(file, sizeof header, header.head_bytes);
  Timeline timeline;
  StoredStrings strings;
  std::vector<Edge> edges;
  describe(mending, timeline, strings, edges);
  if (mending.end() > 0) file.resize(mending.end());
  header.file_bytes = file.size();
  header.head_checksum = sum_of(std::string_view(file).substr(sizeof header, header.head_bytes));
  header.own_checksum = sum_of({reinterpret_cast<const char*>(&header), offsetof(ColumnsHeader, own_checksum)});
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

// An archive whose headers' sums fit (POSIX, "ustar Header Block": the bytes of the field itself count as blanks).
inline std::string mended_tar(std::string_view bytes) {
  constexpr std::size_t block = 512, size_at = 124, sum_at = 148, magic_at = 257;
  std::string file(bytes);
  for (std::size_t at = 0; at + block <= file.size(); at += block) {
    char* header = file.data() + at;
    if (std::all_of(header, header + block, [](char c) { return c == '\0'; })) break;
    std::memcpy(header + magic_at, "ustar", 5);
    std::memset(header + sum_at, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < block; ++i) sum += static_cast<unsigned char>(header[i]);
    std::snprintf(header + sum_at, 8, "%06o", sum);
    const std::string size(header + size_at, 11);
    if (size.find_first_not_of("01234567") != std::string::npos) break;
    const std::uint64_t held = std::stoull(size, nullptr, 8);
    if (held > file.size()) break;
    at += (held + block - 1) / block * block;
  }
  return file;
}

}  // namespace shardbook::timeline::fuzz
