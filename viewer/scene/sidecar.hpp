// scene/sidecar: what the user did to a run: notes.json beside it.
//
// View, choices, pins, ranges and annotations, so that a run is found as it was left. Written beside
// and renamed. A file that cannot be read is moved aside with a sentence, never overwritten; a folder
// that cannot be written to is one sentence, and the rest keeps working (state is then kept in memory).
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "viewer/scene/rows.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct Range {
  Window window;
  std::string note;
  friend bool operator==(const Range&, const Range&) = default;
};
struct Annotation {
  std::string row;              // Row::name, or "" for the ruler
  Nanoseconds time = 0;
  std::string text;
  friend bool operator==(const Annotation&, const Annotation&) = default;
};

struct Sidecar {
  double view_start = 0, view_end = 0;        // 0, 0: never looked at
  RowChoices choices;
  std::vector<Range> ranges;
  std::vector<Annotation> annotations;
  std::string selected;                       // span_name() of the selected span
  friend bool operator==(const Sidecar&, const Sidecar&) = default;
};

std::string sidecar_path(const std::string& run);          // <run>/notes.json, or <trace>.notes.json
base::Result<Sidecar> read_sidecar(const std::string& path);   // missing file: an empty one
base::Status write_sidecar(const Sidecar& sidecar, const std::string& path);

// A span's stable name: "r0.s20/117" (row name / index), and back (invalid if there is none such).
std::string span_name(const Scene& scene, SpanRef span);
SpanRef span_of_name(const Scene& scene, const std::string& name);

}  // namespace shardbook::scene
