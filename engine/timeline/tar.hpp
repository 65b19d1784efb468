// timeline/tar: an archive of plain files, as POSIX writes it (ustar, IEEE Std 1003.1-2017, pax: "ustar Interchange
// Format"), gzip around it or not.
//
// What is read may come from anywhere: names that lead out of the folder, links, devices and wrong sums are
// refused in one sentence. What is written needs no extension: names up to 255 bytes, files below 8 GiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/base/result.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/gzip.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::timeline {

// Bytes of a file that are read at once.
inline constexpr std::size_t piece = std::size_t{1} << 18;

class TarWriter {
 public:
  // A name that ends in .tar is not packed further. REQUIRES: can_gunzip() for any other.
  explicit TarWriter(const std::string& path);
  // One file from the disk, under `name`. Errors: unreadable, changing, or too large; too long a name.
  base::Status add_file(const std::string& name, const std::string& path);
  base::Status add_text(const std::string& name, std::string_view content);
  // The file appears now, or not at all.
  base::Status commit();

 private:
  base::Status add_header(const std::string& name, std::uint64_t size, std::int64_t modified);
  void write(std::string_view bytes);
  void pad(std::uint64_t size);

  Output out_;
  std::unique_ptr<Deflater> deflater_;
};

// Goes through an archive from its first byte to its last.
class TarReader {
 public:
  // `path` is mapped. Errors: missing, unreadable.
  static base::Result<TarReader> open(const std::string& path);

  struct Entry {
    std::string name;                  // safe: relative, without "..", in printable bytes
    std::uint64_t size = 0;
    std::int64_t modified = 0;         // seconds since 1970
  };
  // The next plain file, or an entry without name at the end. Skips what is left of the one before, and folders.
  base::Result<Entry> next();
  // The next bytes of the entry, at most `count`; empty at its end. Good until the next call.
  base::Result<std::string_view> read(std::size_t count);
  // How much of the archive's file has been gone through, in [0, 1].
  double share_read() const;

 private:
  TarReader() = default;
  base::Status fill(char* to, std::size_t count);
  base::Result<Entry> parse(const char* header);
  base::Error cut_off() const;

  std::string path_;
  std::unique_ptr<FileBytes> bytes_;
  std::unique_ptr<Inflater> inflater_;          // null: the bytes are the archive
  std::size_t at_ = 0;                          // in the archive, unpacked
  std::uint64_t left_ = 0, padding_ = 0;        // of the entry
  std::string buffer_;
  std::uint64_t total_ = 0, entries_ = 0;
};

}  // namespace shardbook::timeline
