// Small runs that save and go on.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/folder.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/launch/launch.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::tests {

// Read at once: byte by byte takes instrumented code seconds.
inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// How much of a test of many forms is run where the code is instrumented, and so many times slower: one in so many. What a
// sanitizer looks for does not depend on which form it is.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::size_t one_in = 5;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t one_in = 3;
#else
inline constexpr std::size_t one_in = 1;
#endif

// The config of a run on the host, of a model that takes a millisecond a step, and of whatever is asked for.
inline config::RunConfig small(const Asked& asked) {
  const Asked form{{"device", "host"}, {"layers", "2"}, {"width", "32"}, {"heads", "4"}, {"vocab", "64"}, {"sequence", "8"}, {"sequences", "8"},
                   {"data", "synthetic"}, {"steps", "8"}, {"warmup-steps", "2"}, {"trace-steps", "0:0"}, {"progress", "0"}};
  return config_of(with(form, asked));
}

// What a run computed from its first step on; the error where it failed.
struct Numbers {
  std::string error;
  std::vector<std::int64_t> steps;
  std::vector<double> losses, norms;
};

inline Numbers numbers_of(const config::RunConfig& config) {
  launch::LaunchOptions in_memory;
  in_memory.write_run = false;
  const base::Result<launch::Outcome> outcome = launch::run(config, in_memory);
  Numbers numbers;
  if (!outcome) {
    numbers.error = outcome.error();
    return numbers;
  }
  for (const train::StepResult& result : outcome.value().results) {
    numbers.steps.push_back(result.step);
    numbers.losses.push_back(result.loss);
    numbers.norms.push_back(result.gradient_norm);
  }
  return numbers;
}

// `later`, which began at some step, has the numbers of `whole` from there on, to the bit.
inline void expect_goes_on(const Numbers& later, const Numbers& whole, std::int64_t first) {
  ASSERT_EQ(later.error, "");
  ASSERT_EQ(later.steps.size(), whole.steps.size() - static_cast<std::size_t>(first));
  for (std::size_t at = 0; at < later.steps.size(); ++at) {
    const std::size_t same = at + static_cast<std::size_t>(first);
    ASSERT_EQ(later.steps[at], whole.steps[same]);
    ASSERT_EQ(later.losses[at], whole.losses[same]) << "the loss of step " << later.steps[at];
    ASSERT_EQ(later.norms[at], whole.norms[same]) << "the gradient norm of step " << later.steps[at];
  }
}

// The tensors of a checkpoint, merged: the bytes behind the header of a safetensors file, which has them in one order.
inline std::string merged(const std::string& place, const Folder& folder) {
  const base::Result<checkpoint::Found> found = checkpoint::find(place);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error());
  if (!found) return "";
  const std::string file = folder / "merged.safetensors";
  const base::Status written = checkpoint::write_safetensors(found.value().path, found.value().manifest, file);
  EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error());
  const std::string content = content_of(file);
  const base::Result<checkpoint::SafeHeader> header = checkpoint::read_header(content, static_cast<base::Bytes>(content.size()), file);
  EXPECT_TRUE(header.ok()) << (header.ok() ? "" : header.error());
  return header ? content.substr(static_cast<std::size_t>(header.value().bytes)) : "";
}

// The first thing that is wrong with any byte of a checkpoint, or "".
inline std::string damage_of(const std::string& path) {
  const base::Result<checkpoint::Manifest> manifest = checkpoint::read_file(path + "/" + checkpoint::manifest_name);
  if (!manifest) return manifest.error();
  checkpoint::DataReader reader(path, manifest.value());
  for (std::size_t file = 0; file < manifest.value().files.size(); ++file) {
    if (base::Status whole = reader.verify(static_cast<int>(file)); !whole) return whole.error();
  }
  return "";
}

}  // namespace shardbook::tests
