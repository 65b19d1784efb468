// What a command said, and a folder of its own to work in.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/json.hpp"
#include "engine/cli/cli.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::cli {

struct Spoken {
  int code = -1;
  std::string out, err;
};

inline Spoken shardbook(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Spoken spoken;
  spoken.code = main_with(arguments, out, err);
  spoken.out = out.str();
  spoken.err = err.str();
  return spoken;
}

inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// What a command that must succeed says with --json.
inline nlohmann::json json_of(const std::vector<std::string>& words) {
  const Spoken spoken = shardbook(with(words, {"--json"}));
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  return base::parse_json(spoken.out);
}

// Traces of PyTorch's own, and what the independent reader says of them.
inline const std::string metrics_data = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/metrics/data/";

inline std::ptrdiff_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// A folder on disk, as a user's is, in which files can be written.
class Folder : public tests::Folder {
 public:
  Folder() : tests::Folder(true) {}
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name, std::ios::binary) << content;
    return *this / name;
  }
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The words must be refused in one sentence that holds `reason`, and leave `folder` empty.
inline void expect_refused(const std::vector<std::string>& words, const std::string& reason, const Folder& folder) {
  const Spoken spoken = shardbook(words);
  EXPECT_EQ(spoken.code, 2);
  EXPECT_EQ(lines_in(spoken.err), 1) << spoken.err;
  EXPECT_NE(spoken.err.find(reason), std::string::npos) << spoken.err;
  EXPECT_EQ(spoken.out, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// A short run on meta.
inline std::string made_run(const Folder& folder) {
  const std::string run = folder / "first";
  const Spoken trained = shardbook({"train", "--device", "meta", "--tp", "2", "--out", run});
  EXPECT_EQ(trained.code, 0) << trained.err;
  return run;
}

}  // namespace shardbook::cli
