// timeline/writer: a rank's timeline as rankN.json, which Perfetto opens and HTA analyses.
//
// The form is Kineto's (PyTorch Kineto, libkineto/src/output_json.cpp) with the rules that its
// readers impose: `"rank": N` with a blank, a metadata event first, spans of one tid nest, only
// collectives have names that start with "nccl", streams have numbers > 0, correlations pair a
// runtime row with a device row, one closing ProfilerStep more than there are steps (HTA leaves
// the last one out). What Kineto has no field for stands in args under names of our own, so that
// reading the file gives the same Timeline. violations() in rules.hpp checks all of it.
//
// Files are written beside and renamed: a full disk or a folder that cannot be written is an
// error, and leaves no half-written file.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

struct RunInfo;

// Writes one rank. REQUIRES: timeline.provenance(rank) != nullptr.
// `run`, if any, says of which run the file is (RunInfo::id).
base::Status write_rank(const Timeline& timeline, Rank rank, const std::string& path, const std::string& run = "");

// Writes rankN.json for each rank of the timeline, and run.json; of a large run run.tlb too
// (columns.hpp). The folder is made if needed.
base::Status write_run(const Timeline& timeline, const RunInfo& info, const std::string& folder);

// The name that a span is written under: communication gets a name that starts with "nccl"
// ("ncclDevKernel_AllGather"), other device work a name that no reader mistakes for something else.
std::string kineto_name(const Timeline& timeline, SpanRef span);

}  // namespace shardbook::timeline
