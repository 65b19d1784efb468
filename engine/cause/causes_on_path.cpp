// cause/causes_on_path: what a trace without a record says of its path; see causes.hpp.
#include <algorithm>
#include <map>
#include <set>

#include "engine/cause/causes.hpp"
#include "engine/cause/text.hpp"
#include "engine/cause/without.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::cause {

using base::text;
using metrics::PathKind;
using timeline::Class;
using timeline::CollectiveOp;

namespace {

struct Sum {
  Nanoseconds ns = 0;
  std::set<SpanRef> spans;
  std::map<std::string, Nanoseconds> lines;
};

std::string most_of(const std::map<std::string, Nanoseconds>& lines) {
  const auto most = std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == lines.end() ? "" : most->first;
}

// The host's waits for its device, and what it waits with, in a window.
std::map<std::string, std::pair<int, Nanoseconds>> host_waits(const Timeline& timeline, Window window) {
  static const char* const names[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
                                      "hipStreamSynchronize"};
  std::map<std::string, std::pair<int, Nanoseconds>> waits;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.kind != timeline::TrackKind::host) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.end[i] <= window.start || track.start[i] >= window.end) continue;
      const std::string label(timeline.strings[track.label[i]]);
      if (std::none_of(std::begin(names), std::end(names), [&](const char* name) { return label == name; })) continue;
      auto& [count, ns] = waits[label];
      ++count;
      ns += std::min(track.end[i], window.end) - std::max(track.start[i], window.start);
    }
  }
  return waits;
}

bool is_plain_compute(const Timeline& timeline, const metrics::PathPiece& piece) {
  return piece.kind == PathKind::span && timeline.cls(piece.span) == Class::compute;
}

// Where a span was launched, as the trace names it: the Python line around the call ("train.py(31): step"), else the
// innermost annotation ("FSDP::pre_backward"). "" where it says neither.
std::string place_of(const Timeline& timeline, const timeline::Links& links, SpanRef span) {
  const SpanRef call = links.launch_of(span);
  if (!call.valid()) return "";
  constexpr int most_looked_at = 20'000;
  std::string annotation;
  const timeline::Track& launching = timeline.tracks[call.track];
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.rank != launching.rank || track.kind == timeline::TrackKind::stream || track.id != launching.id) continue;
    // Backwards from the call: the first that encloses it is the innermost.
    const Nanoseconds start = timeline.start(call), end = timeline.end(call);
    auto at = static_cast<std::ptrdiff_t>(std::upper_bound(track.start.begin(), track.start.end(), start) - track.start.begin());
    for (int looked_at = 0; at-- > 0 && looked_at < most_looked_at; ++looked_at) {
      const auto i = static_cast<std::size_t>(at);
      if (track.end[i] < end) continue;
      const std::string label(timeline.strings[track.label[i]]);
      if (label.find(".py(") != std::string::npos) return label;
      if (annotation.empty() && track.cls[i] == Class::annotation) annotation = label;
    }
  }
  return annotation;
}

}  // namespace

std::vector<Cause> causes_on_path(const Timeline& timeline, const metrics::CriticalPath& path, const std::vector<Share>&) {
  const Window window = path.window;
  std::map<Rank, metrics::DeviceSets> sets;
  for (const timeline::Provenance& rank : timeline.ranks) sets[rank.rank] = metrics::clip(metrics::device_sets(timeline, rank.rank), window);
  std::map<std::string, Sum> collectives, copies;
  std::map<Rank, timeline::Links> links;
  for (const timeline::Provenance& rank : timeline.ranks) links.emplace(rank.rank, timeline::Links(timeline, rank.rank));
  Sum host;
  bool after_host = false;
  for (const metrics::PathPiece& piece : path.pieces) {
    const Nanoseconds ns = piece.time.length();
    // The line that we recorded, else where the trace says that it was launched.
    std::string line = piece.span.valid() ? timeline::line_text(timeline, timeline.detail(piece.span).source) : "";
    if (line.empty() && piece.span.valid() && piece.kind != PathKind::wait && !is_plain_compute(timeline, piece)) {
      line = place_of(timeline, links.at(timeline.rank(piece.span)), piece.span);
    }
    const auto add = [&](Sum& sum, Nanoseconds part) {
      if (part <= 0) return;
      sum.ns += part;
      sum.spans.insert(piece.span);
      if (!line.empty()) sum.lines[line] += part;
    };
    // A launch counts to the host where the host was late; else it is what starting takes.
    if (piece.kind == PathKind::host || (piece.kind == PathKind::launch && after_host)) add(host, ns);
    after_host = piece.kind == PathKind::host;
    if (piece.kind != PathKind::span) continue;
    const Class cls = timeline.cls(piece.span);
    const Nanoseconds covered = metrics::length_within(sets[piece.rank].compute, piece.time);
    if (cls == Class::communication) add(collectives[metrics::kind_name(timeline, piece.span)], ns - covered);
    if (cls == Class::memory) add(copies[metrics::kind_name(timeline, piece.span)], ns - covered);
  }

  std::vector<Cause> causes;
  const auto keep = [&](Cause cause) {
    if (static_cast<double>(cause.gain_ns) >= worth_naming * static_cast<double>(window.length())) causes.push_back(std::move(cause));
  };
  for (const auto& [name, sum] : collectives) {
    Cause cause;
    cause.regime = Regime::bandwidth;
    cause.count = static_cast<std::int64_t>(sum.spans.size());
    cause.gain_ns = sum.ns;
    cause.is_bound = true;
    cause.line = most_of(sum.lines);
    cause.what = counted(cause.count, name) + (cause.count == 1 ? " that the step waits for" : " that the step waits for");
    if (name == "all-gather") cause.remedy = "prefetch: backward_prefetch=BACKWARD_PRE, forward_prefetch=True, or set_modules_to_backward_prefetch";
    if (name == "all-gather" || name == "reduce-scatter") cause.note = "04";
    if (name == "all-reduce") cause.note = "03";
    keep(std::move(cause));
  }
  for (const auto& [name, sum] : copies) {
    Cause cause;
    cause.regime = Regime::memory;
    cause.count = static_cast<std::int64_t>(sum.spans.size());
    cause.gain_ns = sum.ns;
    cause.is_bound = true;
    cause.line = most_of(sum.lines);
    cause.what = counted(cause.count, name) + " that the step waits for";
    keep(std::move(cause));
  }
  const auto waits = host_waits(timeline, window);
  Cause cause;
  cause.regime = Regime::host;
  cause.count = static_cast<std::int64_t>(host.spans.size());
  cause.gain_ns = host.ns;
  cause.is_bound = true;
  cause.line = most_of(host.lines);
  cause.what = text("the device waits for the host before ", counted(cause.count, "kernel"));
  std::string waited;
  for (const auto& [name, of] : waits) waited += (waited.empty() ? "" : ", ") + text(of.first, " ", name);
  if (!waited.empty()) {
    cause.because = "the host waits for the device in between: " + waited;
    cause.remedy = "torch.cuda.set_sync_debug_mode(\"warn\") names the lines that wait";
  }
  keep(std::move(cause));
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.gain_ns > b.gain_ns; });
  return causes;
}

}  // namespace shardbook::cause
