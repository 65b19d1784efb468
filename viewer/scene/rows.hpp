// scene/rows: which rows does the picture have, from top to bottom?
//
// A tree: rank -> what is derived of it, its streams, its host threads -> lanes. A row is closed, open
// or hidden; a closed rank is one summary row (compute, exposed, idle of its streams). Ranks that behave
// alike (alike.hpp: same spans a stream, parts of each step within 5 %) fold into the first of them, so that
// 64 ranks are few rows; rank 0 and the straggler keep their rows.
// Rows know nothing of pixels except their height in lines of the font.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::scene {

using base::Rank;

enum class RowKind : std::uint8_t {
  rank,        // header and one-bar summary of a rank; opens into the others
  exposed,     // derived: communication that no compute of its rank covers
  idle,        // derived: nothing runs on the device
  critical,    // derived: pieces of the cross-rank critical path on this rank
  stream,      // a stream's lane
  marks,       // annotations and sync rows beside a stream
  host,        // a host thread: issue times; nested calls are drawn in depth rows
  memory,      // counters: bytes in use by kind, stacked
};

const char* name_of(RowKind kind);       // "rank", "exposed", ...

// A row's stable name, independent of what is open: "r0", "r0.exposed", "r0.s20", "r0.s20.1" (lane 1),
// "r0.h909", "r0.m20", "r0.memory". Links, pins and scripts use it.
std::string row_name(RowKind kind, Rank rank, std::int64_t id = 0, std::int32_t lane = 0);

struct Row {
  RowKind kind = RowKind::rank;
  Rank rank = 0;
  std::int32_t track = -1;        // Timeline::tracks of a stream, marks or host row
  std::string name;               // row_name()
  std::string title;              // "compute stream 7", "exposed communication"
  int level = 0;                  // indentation
  int depth = 1;                  // nested levels drawn in it (host calls)
  bool can_open = false, is_open = false;
  bool pinned = false;            // the copy of a pinned row at the top; in its own place it has false
  std::vector<Rank> alike;        // of a rank row: the ranks that are folded into it
  friend bool operator==(const Row&, const Row&) = default;
};

// What the user chose; kept with the run (sidecar.hpp).
struct RowChoices {
  std::set<std::string> open;     // names of rank rows
  std::set<std::string> pinned;
  std::set<std::string> hidden;   // names, or kinds by name_of(): "host", "marks", "memory"; never a pinned copy
  bool fold_alike = true;
  friend bool operator==(const RowChoices&, const RowChoices&) = default;
};

}  // namespace shardbook::scene
