// cause/recorded: what a run left beside its timeline.
//
// The records of its ranks (what was issued, when) and run.json (what was asked for, who told the time). A trace of
// another program has neither, which is no error: then the timeline alone must do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/program/file.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::cause {

struct Recorded {
  std::vector<program::Record> records;         // ascending by rank; empty: none
  std::optional<timeline::RunInfo> info;

  bool has_record() const { return !records.empty() && info.has_value(); }
  // An option of the run's configuration as text, "" where it is not known: option("prefetch") is "1".
  std::string option(const std::string& name) const;
  // A switch as the run had it: switch_value("fsdp.backward_prefetch") is "none"; "" where it is not recorded.
  std::string switch_value(const std::string& key) const;
  int number(const std::string& name, int otherwise) const;
};

// Of a run's folder or pack, or of the folder in which rank files of a run lie. A pack is unpacked for it and gone again.
// Errors: a record or run.json that is there and cannot be read.
base::Result<Recorded> read_recorded(const std::vector<std::string>& places);

}  // namespace shardbook::cause
