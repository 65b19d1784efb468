// data/mapped_file: the bytes of a file, mapped read-only.
//
// Mapping costs no memory of its own, and the ranks of a node share the pages.
#pragma once

#include <span>
#include <string>

#include "engine/base/result.hpp"

namespace shardbook::data {

// Move-only owner of a mapping. The file must not shrink while it is mapped.
class MappedFile {
 public:
  // Errors: missing, a folder, no regular file, empty, unreadable.
  static base::Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const unsigned char> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  std::span<const unsigned char> bytes_;
};

}  // namespace shardbook::data
