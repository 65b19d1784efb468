// timeline/reader: a Chrome/Kineto trace becomes a Timeline.
//
// The bytes are scanned once, event by event, without a document tree; times are read as decimal
// digits into integer nanoseconds, never through a double. Events of each rank go to tracks by
// (pid, tid) and category; PyTorch's own traces and ours are read by the same rules (fields:
// PyTorch Kineto libkineto/src/output_json.cpp, and notes of the Chrome trace event format).
//
// A file that ends in the middle of an event opens up to the last whole one, with a banner in
// Timeline::banners. What cannot be opened is one sentence with file and byte offset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/timeline/progress.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// Reads one or several ranks into one Timeline, times relative to the base of the first.
// Each path is a .json or .json.gz file, or a folder of a run (its rank*.json, rank*.json.gz).
// Two files that claim one rank are refused, as is a run folder without rank files.
// A pack of a run (pack.hpp: .tar, .tar.gz, .tgz) is read without unpacking it, and is named alone.
// A .tlb file (columns.hpp) holds all ranks and is named alone. Of a folder that is named alone its
// run.tlb is read if no rank file is newer; one that is damaged is passed over, with a banner.
// `heard` hears how far it is (progress.hpp); of a pack only that it is done.
base::Result<Timeline> read(const std::vector<std::string>& paths, const Heard& heard = {});
inline base::Result<Timeline> read(const std::string& path) { return read(std::vector<std::string>{path}); }

// The same from bytes in memory; `name` stands for the file in messages.
base::Result<Timeline> read_bytes(std::string_view bytes, const std::string& name);

// Several rank files in memory, in ascending order of rank.
struct NamedBytes {
  std::string name, bytes;       // gzip or not
};
base::Result<Timeline> read_named(std::vector<NamedBytes> files);

// Whether a file of this name is a rank's: rank0.json, x_rank3.json.gz, or PyTorch's own *.pt.trace.json.
bool is_rank_file(const std::string& file);

// The rank files of a run folder in ascending order of rank, or one sentence why there are none.
base::Result<std::vector<std::string>> rank_files(const std::string& folder);

}  // namespace shardbook::timeline
