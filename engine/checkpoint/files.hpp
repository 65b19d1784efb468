// checkpoint/files: numbers to a file and back, each chunk with its sum.
//
// Written front to back, summed on the way, and safe on the disk when finish() returns. Read in parts: a chunk that is
// touched is read whole and its sum compared, so nothing that was changed since is ever taken for a number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/manifest.hpp"

namespace shardbook::checkpoint {

// An open file; closed by whoever holds it last.
class File {
 public:
  File() = default;
  explicit File(int number) : number_(number) {}
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File();
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// What stands there is left over, and goes: it is in a folder of our own. Errors: "cannot write PATH: …".
base::Result<File> create(const std::string& path);
base::Status write_all(const File& file, const void* bytes, std::size_t size, const std::string& path);
// Bytes [at, at + size) of a file. Errors: "cannot read PATH: …", also where it ends too early.
base::Status read_at(const File& file, base::Bytes at, base::Bytes size, void* to, const std::string& path);
// All that was written is on the disk. Also of a folder: which names it has.
base::Status sync(const File& file, const std::string& path);
base::Status sync_folder(const std::string& path);
// A small file, whole and on the disk.
base::Status write_file(const std::string& path, std::string_view content);

// A data file that is being written.
class DataWriter {
 public:
  // `path` ends in the file's name. Errors: it cannot be made.
  static base::Result<DataWriter> begin(const std::string& path);
  // Appends. Errors: the disk is full, …
  base::Status write(const void* bytes, base::Bytes size);
  base::Bytes bytes() const { return file_.bytes; }
  // On the disk, and closed. Once.
  base::Result<DataFile> finish();

 private:
  // Takes in what comes next in the file.
  void sum(const char* at, base::Bytes size);

  std::string path_;
  File out_;
  DataFile file_;
};

// The data files of a checkpoint. Not for several threads.
class DataReader {
 public:
  // REQUIRES: `manifest` outlives it.
  DataReader(std::string folder, const Manifest& manifest) : folder_(std::move(folder)), manifest_(manifest), open_(manifest.files.size()) {}

  // Bytes [at, at + size) of a file. Errors: missing; of another length than the manifest says; a chunk has changed; the
  // system cannot read it. REQUIRES: they lie within what the manifest says of it.
  base::Status read(int file, base::Bytes at, base::Bytes size, void* to);
  // Whether all of a file is what was written.
  base::Status verify(int file);
  // ... is there, with its length.
  base::Status expect(int file) { return open(file); }

 private:
  base::Status open(int file);
  base::Status take_chunk(int file, std::size_t chunk);

  std::string folder_;
  const Manifest& manifest_;
  std::vector<File> open_;    // by file; few at a time, for a process may have only so many
  int how_many_ = 0;
  int file_ = -1;             // the chunk that is held is of this file
  std::size_t chunk_ = 0;
  std::vector<char> held_;
};

}  // namespace shardbook::checkpoint
