// A project to work in, as a learner or as who writes labs: what is typed there, and what was said.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "engine/cli/input.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {

// A project of one's own: the real engine, labs and solutions, and an empty experiments/.
class OwnProject : public ::testing::Test {
 protected:
  OwnProject() {
    const std::filesystem::path real = SHARDBOOK_SOURCE_DIR;
    for (const char* one : {"engine", "labs", "notes", "solutions"}) std::filesystem::create_directory_symlink(real / one, folder.path() / one);
    std::filesystem::create_directory(folder.path() / "experiments");
    std::filesystem::create_directory_symlink(real / "experiments/captured", folder.path() / "experiments/captured");
    ::setenv("SHARDBOOK_ROOT", folder.path().c_str(), 1);
  }
  ~OwnProject() override { ::unsetenv("SHARDBOOK_ROOT"); }

  static Spoken type(const std::vector<std::string>& words, const std::string& typed = "") {
    std::istringstream in(typed);
    const AnswersFrom from(in);
    return shardbook(words);
  }
  std::string progress() const { return content_of(folder / "experiments/progress.txt"); }
  void pass_00b() {
    type({"next", "00b", "all_reduce_32MiB=100"});
    folder.write("experiments/00_timeline/fit.cpp", content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/solutions/00_timeline/fit.cpp"));
    const Spoken checked = type({"check", "00b"});
    ASSERT_EQ(checked.code, 0) << checked.out << checked.err;
  }
  static bool has(const std::string& text, const std::string& words) {
    // However the lines were broken.
    std::istringstream in(text), wanted(words);
    std::string all, part;
    for (std::string word; in >> word;) all += word + " ";
    for (std::string word; wanted >> word;) part += (part.empty() ? "" : " ") + word;
    return all.find(part) != std::string::npos;
  }

  Folder folder;
};

}  // namespace shardbook::cli
