// metrics/rank_summary: one line a rank, exact; see rank_summary.hpp.
#include "engine/metrics/rank_summary.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"

namespace shardbook::metrics {

RankSummary rank_summary(const Timeline& timeline, Rank rank) {
  const Window window = device_window(timeline, rank);
  const Partition parts = partition(timeline, rank, window);
  RankSummary out;
  if (const timeline::Provenance* provenance = timeline.provenance(rank)) {
    out.file = provenance->path.substr(provenance->path.find_last_of('/') + 1);
  }
  out.rank = rank;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef) { ++out.gpu_spans; });
  out.window_ns = window.length();
  out.comm_ns = parts.communication_ns;
  out.compute_ns = parts.compute_ns;
  out.overlapped_ns = parts.overlapped_ns;
  out.exposed_comm_ns = parts.exposed_communication_ns;
  out.idle_ns = parts.idle_ns;
  return out;
}

std::string percent_as_python(std::int64_t part, std::int64_t whole, int digits) {
  SHARDBOOK_CHECK(whole > 0, "a share of nothing");
  // Python's round() returns the double nearest to the correctly rounded decimal of the exact binary
  // value, as printf computes it; repr() then prints the shortest text that gives that double back.
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  char rounded[64];
  std::snprintf(rounded, sizeof rounded, "%.*f", digits, percent);
  std::string text = rounded;
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text += '0';
  return text;
}

std::string json_line(const RankSummary& s) {
  const std::string overlap = s.comm_ns > 0 ? percent_as_python(s.overlapped_ns, s.comm_ns, 4) : "null";
  return base::text("{\"file\": ", base::json_text(nlohmann::json(s.file)), ", \"rank\": ", s.rank, ", \"gpu_spans\": ", s.gpu_spans,
                    ", \"window_ns\": ", s.window_ns, ", \"comm_ns\": ", s.comm_ns, ", \"compute_ns\": ", s.compute_ns,
                    ", \"overlapped_ns\": ", s.overlapped_ns, ", \"exposed_comm_ns\": ", s.exposed_comm_ns,
                    ", \"idle_ns\": ", s.idle_ns, ", \"overlap_pct\": ", overlap, "}");
}

}  // namespace shardbook::metrics
