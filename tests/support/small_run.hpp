// What tests of whole runs need first: a config by options, as the command line reads them, and a folder that goes again.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/config.hpp"

namespace shardbook::tests {

using Asked = std::vector<std::pair<std::string, std::string>>;

inline Asked with(Asked asked, const Asked& more) {
  asked.insert(asked.end(), more.begin(), more.end());
  return asked;
}

// The config of a run without GPUs; of an option that is asked for twice the later one holds, and of `set` all do.
inline config::RunConfig config_of(const Asked& asked) {
  config::RunConfig config;
  std::vector<std::string> set;
  const auto ask = [&](const std::string& option, const std::vector<std::string>& values) {
    const base::Status status = config::ask(config, option, values);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error());
  };
  for (const auto& [option, value] : asked) {
    if (option == "set") set.push_back(value);
    else ask(option, {value});
  }
  if (!set.empty()) ask("set", set);
  base::Result<config::RunConfig> valid = config::validate(config, 0);
  EXPECT_TRUE(valid.ok()) << (valid.ok() ? "" : valid.error());
  return valid ? valid.value() : config;
}

// A new folder that goes with its owner; in memory where the system has such, for files that reach a disk take their time.
class Folder {
 public:
  explicit Folder(bool on_disk = false) {
    const bool in_memory = !on_disk && std::filesystem::exists("/dev/shm");
    std::string name = ((in_memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) / "shardbook-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // Where the test's run goes: not there yet.
  std::string run() const { return *this / "run"; }

 private:
  std::filesystem::path path_;
};

}  // namespace shardbook::tests
