// A folder of notes or sources, made for a test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace shardbook::reading {

using Files = std::map<std::string, std::string>;

// A folder that goes with its owner.
class Folder {
 public:
  explicit Folder(const Files& files = {}) {
    std::string name = (std::filesystem::temp_directory_path() / "shardbook-reading-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    for (const auto& [file, content] : files) {
      std::filesystem::create_directories((path_ / file).parent_path());
      std::ofstream(path_ / file, std::ios::binary) << content;
    }
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace shardbook::reading
