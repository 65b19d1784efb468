// metrics/rank_summary: the overlap of one rank as an independent reader would print it.
//
// For any trace, PyTorch's included: device spans are kernels, copies and memsets; communication
// is a kernel whose name starts with "nccl"; computation is any other kernel; the window runs from
// the first device span's start to the last one's end. One JSON line, fields in a fixed order.
#pragma once

#include <string>

#include "engine/metrics/partition.hpp"

namespace shardbook::metrics {

struct RankSummary {
  std::string file;                  // without its folder
  Rank rank = 0;
  std::int64_t gpu_spans = 0;
  Nanoseconds window_ns = 0, comm_ns = 0, compute_ns = 0, overlapped_ns = 0, exposed_comm_ns = 0, idle_ns = 0;
};

RankSummary rank_summary(const Timeline& timeline, Rank rank);

// {"file": ..., ..., "overlap_pct": 87.6839}; overlap_pct is null without communication.
std::string json_line(const RankSummary& summary);

// 100 * part / whole rounded to `digits` decimals and printed as Python prints
// round(100 * part / whole, digits). REQUIRES: whole > 0.
std::string percent_as_python(std::int64_t part, std::int64_t whole, int digits);

}  // namespace shardbook::metrics
