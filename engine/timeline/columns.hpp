// timeline/columns: the form that is kept for large runs, run.tlb.
//
// A rank file is text that others can open too; at ten million spans reading it takes seconds. This
// form holds the same Timeline as the flat columns that it is in memory, so that loading is copying:
//
//   64 bytes    magic "SHARDTLB", version, sizes of file and head, checksum of the head
//   head        what is small: ranks, groups' ranks, names of tracks ... and of each column count and checksum
//   columns     each at a multiple of 64 bytes, in the order of the head: strings, details,
//               collectives, groups, edges, steps, counters, then the nine columns of each track
//
// Integers are little endian. All of it is checked on reading: lengths against the file's, columns
// against their checksums, indices against what they point into. So a file that was cut off, damaged or
// made up is one sentence. It is uncompressed: 38 bytes a span, and unpacking would take longer than reading.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/timeline/progress.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

constexpr const char* columns_name = "run.tlb";      // in the folder of a run

// Written beside and renamed; one sentence if that fails.
base::Status write_columns(const Timeline& timeline, const std::string& path);

// The same timeline, index by index; Provenance::path becomes `path`. On as many threads as there are cores.
// `heard` hears how far it is (progress.hpp), up to 0.9.
base::Result<Timeline> read_columns(const std::string& path, const Heard& heard = {});

// The same from bytes in memory; `name` stands for the file in messages. REQUIRES: bytes aligned to 8.
base::Result<Timeline> read_columns_bytes(std::string_view bytes, const std::string& name);

// Whether a run of so many spans is worth the form: reading its rank files would take more than two seconds.
bool keeps_columns(std::size_t spans);

}  // namespace shardbook::timeline
