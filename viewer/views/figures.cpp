#include "viewer/views/figures.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/metrics/exposure.hpp"

namespace shardbook::views {

using base::Nanoseconds;
using metrics::duration_text;
using scene::Paint;

std::string percent_text(Nanoseconds part, Nanoseconds whole) {
  char words[32];
  std::snprintf(words, sizeof words, "%.1f %%", whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return words;
}

std::string share_text(Nanoseconds part, Nanoseconds whole) { return duration_text(part) + " · " + percent_text(part, whole); }

std::string exact_share_text(Nanoseconds part, Nanoseconds whole) {
  char words[48];
  std::snprintf(words, sizeof words, "%lld.%06lld ms · ", static_cast<long long>(part / 1'000'000), static_cast<long long>(part % 1'000'000));
  return words + percent_text(part, whole);
}

std::string difference_text(Nanoseconds a, Nanoseconds b, bool clocks_differ) {
  if (clocks_differ) return "two clocks";
  if (a == b) return "0";
  return (b > a ? "+" : "−") + duration_text(std::abs(b - a));
}

std::array<BarPart, 5> bar_parts(const metrics::Partition& partition, Nanoseconds waiting, float from, float to) {
  const Nanoseconds exposed = partition.exposed_communication_ns, waited = std::clamp<Nanoseconds>(waiting, 0, exposed);
  std::array<BarPart, 5> parts{{{Paint::compute, "compute", partition.compute_ns},
                                {Paint::exposed, "transfer", exposed - waited},
                                {Paint::wait, "waiting", waited},
                                {Paint::memory, "copies", partition.exposed_memory_ns},
                                {Paint::idle, "idle", partition.idle_ns}}};
  const auto whole = static_cast<double>(std::max<Nanoseconds>(partition.window.length(), 1));
  Nanoseconds before = 0;
  float x = from;
  for (BarPart& part : parts) {
    before += part.length;
    part.x0 = x;
    part.x1 = x = from + static_cast<float>(static_cast<double>(before) / whole * static_cast<double>(to - from));
  }
  return parts;
}

std::pair<Nanoseconds, Nanoseconds> lengths_between(const scene::Histogram& histogram, double one, double other) {
  const std::size_t count = histogram.counts.size();
  if (count < 2 || histogram.most <= histogram.least) return {histogram.least, histogram.most};
  const auto bar_at = [&](double share) { return std::min(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(count)), count - 1); };
  const std::size_t first = bar_at(std::min(one, other)), last = bar_at(std::max(one, other));
  return {histogram.edge(first), last + 1 == count ? histogram.most : histogram.edge(last + 1) - 1};
}

}  // namespace shardbook::views
