// timeline/run_info: what is written once for a whole run (run.json).
//
// Config and switches that repeat the run, the machine, the versions, who told the time and how
// wrong it may be, and the text of each source file that a span names, with its hash: so that a
// file that was edited since does not make a span lie.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

struct SourceExcerpt {
  std::string path;        // from the root of the project: "engine/fsdp/schedule.cpp"
  std::string hash;        // FNV-1a 64 of the whole file, 16 hex digits
  std::string content;     // the file as it was when the run was made
  friend bool operator==(const SourceExcerpt&, const SourceExcerpt&) = default;
};

struct RunInfo {
  std::string id;                                           // also in every rank file: which run it is of
  std::string lab;                                          // "02", or "" for a plain `train`
  std::string command;                                      // as it was typed
  std::string made_at;                                      // "2026-11-21T00:58:23Z"
  nlohmann::json config = nlohmann::json::object();         // what repeats the run
  nlohmann::json switches = nlohmann::json::object();
  nlohmann::json hardware = nlohmann::json::object();
  nlohmann::json versions = nlohmann::json::object();
  nlohmann::json results = nlohmann::json::object();        // loss, tokens/s ... as the run printed them
  std::string clock;                                        // name_of(Clock)
  std::string profile;
  Nanoseconds clock_error_ns = 0;                           // the largest over ranks
  std::vector<SourceExcerpt> sources;
};

nlohmann::json to_json(const RunInfo& info);
base::Result<RunInfo> run_info_from_json(const nlohmann::json& json, const std::string& name);
base::Status write_run_info(const RunInfo& info, const std::string& path);
base::Result<RunInfo> read_run_info(const std::string& path);

// The files that spans of this timeline name, read from below `root`, ascending by path. A file
// that is not there (any more) is left out.
std::vector<SourceExcerpt> source_excerpts(const Timeline& timeline, const std::string& root);

// Whether a switch may be an option by another name: fsdp.prefetch is prefetch, attention.kernel is attention. It is where
// both have the same values.
bool may_be_another_name(std::string_view switch_key, std::string_view option);

// 16 hex digits of fnv1a(content).
std::string hash_text(std::string_view content);

}  // namespace shardbook::timeline
