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

std::vector<RankBar> folded(const std::vector<RankBar>& bars) {
  const auto alike = [](const RankBar& a, const RankBar& b) {
    const auto near = [&](base::Nanoseconds of_a, base::Nanoseconds of_b) { return std::abs(of_a - of_b) * 100 <= a.partition.window.length(); };
    const metrics::Partition &x = a.partition, &y = b.partition;
    return near(x.compute_ns, y.compute_ns) && near(x.exposed_communication_ns, y.exposed_communication_ns) && near(x.exposed_memory_ns, y.exposed_memory_ns) &&
           near(x.idle_ns, y.idle_ns) && near(a.waiting, b.waiting);
  };
  std::vector<RankBar> out;
  for (const RankBar& bar : bars) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const RankBar& other) { return !other.apart && !bar.apart && alike(other, bar); });
    if (same == out.end()) out.push_back(bar);
    else same->ranks.insert(same->ranks.end(), bar.ranks.begin(), bar.ranks.end());
  }
  return out;
}

std::vector<RankBar> most_exposed(std::vector<RankBar> bars, std::size_t most, bool with_apart) {
  if (bars.size() <= most) return bars;
  const auto exposed = [&](const RankBar& bar) { return std::pair(with_apart && bar.apart, bar.partition.exposed_communication_ns); };
  std::stable_sort(bars.begin(), bars.end(), [&](const RankBar& left, const RankBar& right) { return exposed(left) > exposed(right); });
  bars.resize(most);
  std::sort(bars.begin(), bars.end(), [](const RankBar& left, const RankBar& right) { return left.ranks.front() < right.ranks.front(); });
  return bars;
}

std::string name_of(const RankBar& bar) {
  if (bar.ranks.size() == 1) return "rank " + std::to_string(bar.ranks.front());
  std::string names;
  int pieces = 0;
  for (std::size_t i = 0; i < bar.ranks.size(); ++pieces) {
    std::size_t last = i;
    while (last + 1 < bar.ranks.size() && bar.ranks[last + 1] == bar.ranks[last] + 1) ++last;
    names += (names.empty() ? "" : ", ") + std::to_string(bar.ranks[i]) + (last > i ? "–" + std::to_string(bar.ranks[last]) : "");
    i = last + 1;
  }
  if (pieces > 3) return std::to_string(bar.ranks.size()) + " ranks like " + std::to_string(bar.ranks.front());
  return "ranks " + names + " alike";
}

}  // namespace shardbook::views
