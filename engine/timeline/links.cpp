// timeline/links: correlations sorted once, found by bisection; see links.hpp.
#include "engine/timeline/links.hpp"

#include <algorithm>

namespace shardbook::timeline {
namespace {

void sort_table(std::vector<Links::Entry>& table) {
  table.shrink_to_fit();
  const auto earlier = [](const Links::Entry& a, const Links::Entry& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.span < b.span;
  };
  if (!std::is_sorted(table.begin(), table.end(), earlier)) std::sort(table.begin(), table.end(), earlier);
}

SpanRef look_up(const std::vector<Links::Entry>& table, std::uint32_t correlation) {
  if (correlation == 0) return {};
  const auto found = std::lower_bound(table.begin(), table.end(), correlation,
                                      [](const Links::Entry& entry, std::uint32_t wanted) { return entry.correlation < wanted; });
  return found != table.end() && found->correlation == correlation ? found->span : SpanRef{};
}

}  // namespace

Links::Links(const Timeline& timeline, Rank rank) : timeline_(&timeline) {
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.rank != rank) continue;
    auto& table = track.kind == TrackKind::host ? host_ : device_;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.correlation[i] != 0) table.push_back({track.correlation[i], SpanRef{t, i}});
    }
  }
  sort_table(host_);
  sort_table(device_);
}

SpanRef Links::launch_of(SpanRef device_span) const { return look_up(host_, timeline_->correlation(device_span)); }

SpanRef Links::launched_by(SpanRef host_span) const { return look_up(device_, timeline_->correlation(host_span)); }

SpanRef Links::call(std::uint32_t correlation) const { return look_up(host_, correlation); }

}  // namespace shardbook::timeline
