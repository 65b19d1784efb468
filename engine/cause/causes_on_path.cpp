// cause/causes_on_path: what a trace without a record says of its path; see causes.hpp.
#include <algorithm>
#include <map>

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
  std::map<SpanRef, Nanoseconds> of_span;
  std::map<std::string, Nanoseconds> lines;
};

std::string most_of(const std::map<std::string, Nanoseconds>& lines) {
  const auto most = std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == lines.end() ? "" : most->first;
}

// A rank's host's waits for its device in a window: what it waits with, how often, and where longest.
struct HostWaits {
  std::map<std::string, int> calls;
  std::map<std::string, Nanoseconds> places;
};

// Of a step, those while the host issued it: what a profiler waits for at its end is none of the program's.
HostWaits host_waits(const Timeline& timeline, const TracePlaces& places, Rank rank, Window window, std::optional<int> step) {
  static const char* const names[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
                                      "hipStreamSynchronize"};
  HostWaits waits;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.kind != timeline::TrackKind::host || track.rank != rank) continue;
    Window issued = window;
    for (const timeline::Step& one : timeline.steps) {
      if (step && one.rank == rank && one.number == *step && one.host_end > one.host_start) issued = {one.host_start, one.host_end};
    }
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.end[i] <= issued.start || track.start[i] >= issued.end) continue;
      const std::string label(timeline.strings[track.label[i]]);
      if (std::none_of(std::begin(names), std::end(names), [&](const char* name) { return label == name; })) continue;
      ++waits.calls[label];
      if (const std::string place = places.of({t, i}); !place.empty()) {
        waits.places[place] += std::min(track.end[i], issued.end) - std::max(track.start[i], issued.start);
      }
    }
  }
  return waits;
}

// Many small collectives: how many a rank has in the window, the middle one's bytes, and what calling them costs the host.
struct SmallCollectives {
  std::int64_t count = 0;
  base::Bytes middle = 0;
  Nanoseconds host_ns = 0;
  std::string noun, place;
};

SmallCollectives small_collectives(const Timeline& timeline, const TracePlaces& places, Rank rank, Window window) {
  std::map<std::string, std::vector<base::Bytes>> kinds;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    if (!timeline.has_collective(span) || timeline.end(span) <= window.start || timeline.start(span) >= window.end) return;
    kinds[metrics::kind_name(timeline, span)].push_back(timeline.collective(span).bytes);
  });
  constexpr std::size_t many = 16;
  constexpr base::Bytes small = 1 << 20;
  SmallCollectives most;
  for (auto& [noun, bytes] : kinds) {
    std::sort(bytes.begin(), bytes.end());
    if (bytes.size() < many || bytes[bytes.size() / 2] >= small || static_cast<std::int64_t>(bytes.size()) <= most.count) continue;
    most = {static_cast<std::int64_t>(bytes.size()), bytes[bytes.size() / 2], 0, noun, ""};
  }
  std::map<std::string, Nanoseconds> lines;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (most.count == 0 || track.rank != rank || track.kind != timeline::TrackKind::host) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.start[i] < window.start || track.end[i] > window.end || !timeline.strings[track.label[i]].starts_with("c10d::")) continue;
      most.host_ns += track.end[i] - track.start[i];
      lines[places.of({t, i})] += track.end[i] - track.start[i];
    }
  }
  most.place = most_of(lines);
  return most;
}

// The reduce-scatter that an all-gather stood behind: issued before it on the same rank, and over just before it began.
// NCCL runs the calls of one communicator in the order of issue, whatever their streams.
SpanRef reduction_before(const Timeline& timeline, const timeline::Links& links, SpanRef gather) {
  constexpr Nanoseconds at_once = 100'000;
  SpanRef before;
  timeline::for_each_device_span(timeline, timeline.rank(gather), [&](SpanRef span) {
    const Nanoseconds gap = timeline.start(gather) - timeline.end(span);
    if (timeline.cls(span) != Class::communication || gap < 0 || gap > at_once) return;
    if (!before.valid() || timeline.end(span) > timeline.end(before)) before = span;
  });
  if (!before.valid() || !timeline.has_collective(before) || timeline.collective(before).op != CollectiveOp::reduce_scatter) return {};
  const SpanRef call = links.launch_of(gather), earlier = links.launch_of(before);
  return call.valid() && earlier.valid() && timeline.start(earlier) < timeline.start(call) ? before : SpanRef{};
}

class OnPath {
 public:
  OnPath(const Timeline& timeline, const metrics::CriticalPath& path, std::optional<int> step)
      : timeline_(timeline), path_(path), step_(step), places_(timeline) {}

  std::vector<Cause> run() {
    Nanoseconds busiest_ns = 0;
    for (const timeline::Provenance& rank : timeline_.ranks) {
      links_.emplace(rank.rank, timeline::Links(timeline_, rank.rank));
      const auto& of_rank = computes_[rank.rank] = metrics::clip(metrics::device_sets(timeline_, rank.rank), path_.window);
      busiest_ns = std::max(busiest_ns, base::length(of_rank.compute));
    }
    // What is no compute fills at most what compute leaves free.
    free_ns_ = path_.window.length() - busiest_ns;
    walk();
    add_gathers_behind_reductions();
    for (const auto& [name, sum] : collectives_) add_collectives(name, sum);
    for (const auto& [name, sum] : copies_) keep(waited_for(Regime::memory, name, sum));
    add_host();
    for (Cause& cause : causes_of_traces(timeline_, path_.window, step_, places_)) keep(std::move(cause));
    std::stable_sort(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) { return a.gain_ns > b.gain_ns; });
    return std::move(causes_);
  }

 private:
  void keep(Cause cause) {
    const bool computes = cause.regime == Regime::rank || (cause.regime == Regime::memory && cause.line.find(".py(") != std::string::npos);
    if (!computes) cause.gain_ns = std::min(cause.gain_ns, free_ns_);
    if (static_cast<double>(cause.gain_ns) >= worth_naming * static_cast<double>(path_.window.length())) causes_.push_back(std::move(cause));
  }

  // Deals the path's pieces out: to the host, to collectives and copies as far as no compute covers them. A collective that
  // lies open because the host came late is the host's: from when the host had come to it,
  // less time passed than it takes itself, so it is its call and not its place in the order that leaves it open.
  void walk() {
    bool after_host = false;
    Nanoseconds host_until = path_.window.start - path_.window.length();
    for (const metrics::PathPiece& piece : path_.pieces) {
      const bool launch = piece.kind == PathKind::launch;
      // A launch counts to the host where the host was late; else it is what starting takes.
      if (piece.kind == PathKind::host || (launch && after_host)) add_host(piece, piece.time.length());
      after_host = piece.kind == PathKind::host || (launch && after_host);
      if (piece.kind == PathKind::host) host_until = piece.time.end;
      if (piece.kind != PathKind::span) continue;
      const Class cls = timeline_.cls(piece.span);
      if (cls != Class::communication && cls != Class::memory) continue;
      const Nanoseconds open_ns = piece.time.length() - base::length_within(computes_[piece.rank].compute, piece.time);
      if (cls == Class::communication && piece.time.start - host_until < piece.time.length()) add_host(piece, open_ns);
      else add((cls == Class::communication ? collectives_ : copies_)[metrics::kind_name(timeline_, piece.span)], piece, open_ns);
    }
  }

  void add_host(const metrics::PathPiece& piece, Nanoseconds ns) {
    add(host_, piece, ns);
    host_of_[piece.rank] += ns;
  }

  void add(Sum& sum, const metrics::PathPiece& piece, Nanoseconds ns) {
    if (ns <= 0) return;
    sum.ns += ns;
    if (!piece.span.valid()) return;
    sum.of_span[piece.span] += ns;
    // The line that we recorded, else where the trace says that it was launched.
    std::string line = timeline::line_text(timeline_, timeline_.detail(piece.span).source);
    if (line.empty()) line = places_.of(piece.span);
    if (!line.empty()) sum.lines[line] += ns;
  }

  Cause waited_for(Regime regime, const std::string& name, const Sum& sum) const {
    Cause cause;
    cause.regime = regime;
    cause.count = static_cast<std::int64_t>(sum.of_span.size());
    cause.gain_ns = sum.ns;
    cause.is_bound = true;
    cause.line = most_of(sum.lines);
    const bool named = name.find(' ') == std::string::npos;   // "Memcpy DtoD " is CUPTI's
    cause.what = (named ? counted(cause.count, name) : counted(cause.count, "copy or fill")) + " that the step waits for";
    return cause;
  }

  void add_collectives(const std::string& name, const Sum& sum) {
    Cause cause = waited_for(Regime::bandwidth, name, sum);
    if (name == "all-gather") cause.remedy = prefetch;
    if (name == "all-gather" || name == "reduce-scatter") cause.note = "04";
    if (name == "all-reduce") cause.note = "03";
    keep(std::move(cause));
  }

  // Gathers that could have run earlier, had they not been issued behind a reduction: both lie open then, and both are told
  // as one cause.
  void add_gathers_behind_reductions() {
    const auto gathers = collectives_.find("all-gather"), reductions = collectives_.find("reduce-scatter");
    if (gathers == collectives_.end() || reductions == collectives_.end()) return;
    Sum behind;
    std::vector<SpanRef> gone, before;
    for (const auto& [span, ns] : gathers->second.of_span) {
      const SpanRef reduction = reduction_before(timeline_, links_.at(timeline_.rank(span)), span);
      if (!reduction.valid()) continue;
      gone.push_back(span);
      before.push_back(reduction);
      behind.ns += ns;
      if (const std::string line = places_.of(span); !line.empty()) behind.lines[line] += ns;
    }
    constexpr std::size_t worth_a_word = 3;
    if (gone.size() < worth_a_word || 2 * gone.size() <= gathers->second.of_span.size()) return;
    for (SpanRef span : gone) gathers->second.ns -= gathers->second.of_span.at(span);
    for (SpanRef span : before) {
      const auto open = reductions->second.of_span.find(span);
      if (open == reductions->second.of_span.end()) continue;
      behind.ns += open->second;
      reductions->second.ns -= open->second;
      reductions->second.of_span.erase(open);
    }
    for (SpanRef span : gone) gathers->second.of_span.erase(span);
    Cause cause;
    cause.regime = Regime::bandwidth;
    cause.count = static_cast<std::int64_t>(gone.size());
    cause.gain_ns = behind.ns;
    cause.is_bound = true;
    cause.line = most_of(behind.lines);
    cause.what = counted(cause.count, "all-gather") + " each begin when a reduce-scatter is over";
    cause.because = "each was issued behind the reduction of the unit before, and calls of one communicator run in the order of issue";
    cause.remedy = prefetch;
    cause.note = "04";
    keep(std::move(cause));
  }

  void add_host() {
    Cause cause;
    cause.regime = Regime::host;
    cause.count = static_cast<std::int64_t>(host_.of_span.size());
    cause.gain_ns = host_.ns;
    cause.is_bound = true;
    cause.what = text("the device waits for the host before ", counted(cause.count, "kernel"));
    const auto rank = std::max_element(host_of_.begin(), host_of_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (rank == host_of_.end()) return;
    const SmallCollectives small = small_collectives(timeline_, places_, rank->first, path_.window);
    const HostWaits waits = host_waits(timeline_, places_, rank->first, path_.window, step_);
    if (10 * small.host_ns > std::min(host_.ns, free_ns_)) {
      cause.because = text("calling ", counted(small.count, small.noun), ", the middle one of ", small.middle, " bytes, takes it ", metrics::duration_text(small.host_ns));
      cause.line = small.place;
      cause.remedy = "larger buckets: DistributedDataParallel(bucket_cap_mb=25)";
      cause.note = "01";
    } else if (!waits.calls.empty()) {
      for (const auto& [name, count] : waits.calls) cause.because += (cause.because.empty() ? "the host waits for the device in between: " : ", ") + text(count, " ", name);
      cause.line = most_of(waits.places);
      cause.remedy = "torch.cuda.set_sync_debug_mode(\"warn\") names the lines that wait";
    }
    if (cause.line.empty()) cause.line = most_of(host_.lines);
    keep(std::move(cause));
  }

  static constexpr const char* prefetch = "prefetch: backward_prefetch=BACKWARD_PRE, forward_prefetch=True, or set_modules_to_backward_prefetch";
  const Timeline& timeline_;
  const metrics::CriticalPath& path_;
  const std::optional<int> step_;
  const TracePlaces places_;
  std::map<Rank, timeline::Links> links_;
  std::map<Rank, metrics::DeviceSets> computes_;
  Nanoseconds free_ns_ = 0;
  std::map<std::string, Sum> collectives_, copies_;
  Sum host_;
  std::map<Rank, Nanoseconds> host_of_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> causes_on_path(const Timeline& timeline, const metrics::CriticalPath& path, std::optional<int> step) {
  return OnPath(timeline, path, step).run();
}

}  // namespace shardbook::cause
