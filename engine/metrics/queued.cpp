// metrics/queued: the matmul before the door, and what a transfer takes that met none; see queued.hpp.
#include "engine/metrics/queued.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace shardbook::metrics {

using timeline::Class;
using timeline::Detail;
using timeline::Track;

namespace {

// Kernels with more work a byte are matmuls, and flash attention, which keeps the device as they do; none of the others has
// more than four.
constexpr std::int64_t flops_a_byte = 10;
// The kernel that follows on the stream of the event begins so soon: it is there when the collective's stream hears of it.
constexpr Nanoseconds soon_ns = 5'000;
// Kernels of a stream follow one another, so few can lie within that time: of them the last that began so early count.
constexpr std::uint32_t at_most = 3;
constexpr std::size_t few = 3;
constexpr double most_of_it = 0.75, worth_saying = 0.05;

using Kind = std::tuple<std::uint32_t, timeline::CollectiveOp>;
// By bytes: how long those took that met no kernel.
using Alone = std::map<Kind, std::map<base::Bytes, std::vector<Nanoseconds>>>;

bool is_told_by_its_stream(const Timeline& timeline, Rank rank) {
  const timeline::Provenance* provenance = timeline.provenance(rank);
  return provenance != nullptr && !provenance->foreign &&
         (provenance->clock == timeline::Clock::measured || provenance->clock == timeline::Clock::modelled);
}

bool is_matmul(const Timeline& timeline, SpanRef span) {
  const Detail& detail = timeline.detail(span);
  return detail.bytes > 0 && detail.flops >= flops_a_byte * detail.bytes;
}

// What a span meets when it is ready: the kernel of another stream of its rank that runs on longest.
SpanRef met_by(const Timeline& timeline, const std::vector<std::uint32_t>& tracks, SpanRef span) {
  const Nanoseconds ready = timeline.start(span);
  SpanRef met;
  for (const std::uint32_t t : tracks) {
    if (t == span.track) continue;
    const Track& track = timeline.tracks[t];
    const auto after = static_cast<std::uint32_t>(std::upper_bound(track.start.begin(), track.start.end(), ready + soon_ns) - track.start.begin());
    for (std::uint32_t i = after; i > 0 && i + at_most >= after; --i) {
      const SpanRef one{t, i - 1};
      if (track.cls[i - 1] != Class::compute || track.end[i - 1] <= ready) continue;
      if (!met.valid() || track.end[i - 1] > timeline.end(met)) met = one;
    }
  }
  return met;
}

Nanoseconds first_end(const Timeline& timeline, const MatchedCollective& collective) {
  Nanoseconds end = timeline.end(collective.spans.front());
  for (const SpanRef span : collective.spans) end = std::min(end, timeline.end(span));
  return end;
}

Nanoseconds median(std::vector<Nanoseconds>& of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

std::optional<Nanoseconds> alone_ns(Alone& alone, Kind kind, base::Bytes bytes) {
  const auto found = alone.find(kind);
  if (found == alone.end() || bytes <= 0) return std::nullopt;
  auto& by_bytes = found->second;
  for (auto at = by_bytes.lower_bound(bytes); at != by_bytes.end() && at->first <= 4 * bytes; ++at) {
    const bool same = at->first == bytes;
    if (same && at->second.size() < few) continue;
    return static_cast<Nanoseconds>(static_cast<double>(median(at->second)) * static_cast<double>(bytes) / static_cast<double>(at->first));
  }
  return std::nullopt;
}

}  // namespace

void find_queued(const Timeline& timeline, std::vector<MatchedCollective>& matched) {
  std::map<Rank, std::vector<std::uint32_t>> streams;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.kind == timeline::TrackKind::stream && is_told_by_its_stream(timeline, track.rank)) streams[track.rank].push_back(t);
  }
  // What each meets: nothing, or at longest this matmul.
  Alone alone;
  for (MatchedCollective& collective : matched) {
    collective.queued_until = 0;
    collective.queued_behind = {};
    if (!collective.complete || collective.spans.size() < 2) continue;
    bool meets_any = false, is_told = true;
    for (const SpanRef span : collective.spans) {
      const auto tracks = streams.find(timeline.rank(span));
      if (tracks == streams.end()) {
        is_told = false;
        break;
      }
      const SpanRef met = met_by(timeline, tracks->second, span);
      if (!met.valid()) continue;
      meets_any = true;
      if (timeline.end(met) <= collective.last_start || !is_matmul(timeline, met)) continue;
      if (!collective.queued_behind.valid() || timeline.end(met) > timeline.end(collective.queued_behind)) collective.queued_behind = met;
    }
    if (!is_told) collective.queued_behind = {};
    if (is_told && !meets_any) alone[{collective.group, collective.op}][collective.bytes].push_back(first_end(timeline, collective) - collective.last_start);
  }
  for (MatchedCollective& collective : matched) {
    if (!collective.queued_behind.valid()) continue;
    const std::optional<Nanoseconds> transfer = alone_ns(alone, {collective.group, collective.op}, collective.bytes);
    const Nanoseconds door = timeline.end(collective.queued_behind) - collective.last_start;
    const Nanoseconds more = transfer ? first_end(timeline, collective) - collective.last_start - *transfer : 0;
    const bool shown = transfer && static_cast<double>(more) >= most_of_it * static_cast<double>(door) &&
                       static_cast<double>(door) >= worth_saying * static_cast<double>(*transfer);
    if (shown) collective.queued_until = collective.last_start + std::min(more, door);
    else collective.queued_behind = {};
  }
}

}  // namespace shardbook::metrics
