// What must hold for any bytes that claim to be a config: used by the fuzz target, and by fuzz_corpus_test.
#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "engine/config/config.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::config::fuzz {

using tests::require;

// It is read or refused in a sentence; what was read and is possible is settled once and for all, and written and read again.
inline void check_config(std::string_view bytes) {
  static const std::string path = tests::scratch_folder() + "/config.json";
  std::ofstream(path, std::ios::binary) << bytes;
  RunConfig config;
  if (const base::Status read = read_file(config, path); !read) {
    require(!read.error().empty() && read.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
    return;
  }
  for (const int gpus : {0, 8}) {
    const base::Result<RunConfig> valid = validate(config, gpus);
    if (!valid) {
      require(!valid.error().empty(), "what is impossible is a sentence");
      continue;
    }
    const std::string written = to_json(valid.value());
    const base::Result<RunConfig> twice = validate(valid.value(), gpus);
    require(twice.ok() && to_json(twice.value()) == written, "what is settled stays");
    std::ofstream(path, std::ios::binary) << written;
    RunConfig again;
    require(read_file(again, path).ok(), "what was written can be read");
    require(to_json(again) == written, "and is the same then");
  }
}

}  // namespace shardbook::config::fuzz
