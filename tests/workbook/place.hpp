// A project of one's own to learn in: the real engine, labs and solutions, and an empty experiments/.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shardbook::workbook {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Project {
 public:
  Project() {
    std::string name = (std::filesystem::temp_directory_path() / "shardbook-workbook-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    const std::filesystem::path real = SHARDBOOK_SOURCE_DIR;
    for (const char* folder : {"engine", "labs", "notes", "solutions"}) std::filesystem::create_directory_symlink(real / folder, root_ / folder);
    std::filesystem::create_directory(root_ / "experiments");
    std::filesystem::create_directory_symlink(real / "experiments/captured", root_ / "experiments/captured");
  }
  ~Project() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;

  std::string root() const { return root_.string(); }
  std::string operator/(const std::string& path) const { return (root_ / path).string(); }
  std::string write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
    return (root_ / path).string();
  }
  std::string progress() const { return content_of(root_ / "experiments/progress.txt"); }

 private:
  std::filesystem::path root_;
};

}  // namespace shardbook::workbook
