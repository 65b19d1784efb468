// workbook/scratch: a folder that goes with its owner. Private to this room.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace shardbook::workbook {

class Scratch {
 public:
  // `name` stands in the folder's own: "check".
  explicit Scratch(const std::string& name) {
    std::error_code failed;
    std::string path = (std::filesystem::temp_directory_path(failed) / ("shardbook-" + name + "-XXXXXX")).string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~Scratch() {
    std::error_code ignored;
    if (is_there()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // False where none could be made: the disk is full, TMPDIR is wrong.
  bool is_there() const { return !path_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace shardbook::workbook
