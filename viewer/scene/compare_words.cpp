// scene/compare_words: by phase, and by layer; see compare_words.hpp.
#include "viewer/scene/compare_words.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/base/check.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::scene {

using metrics::duration_text;

namespace {

// "+15.1 ms", "−310 us", "±0".
std::string signed_text(Nanoseconds difference) {
  if (difference == 0) return "±0";
  return (difference > 0 ? "+" : "−") + duration_text(std::abs(difference));
}

struct PhaseEnd {
  std::string name;
  Nanoseconds at = 0;              // from the step's begin
};

// Where each phase of the first common rank ends within the window; the last ends with the window.
std::vector<PhaseEnd> phases_of(const Scene& scene, Rank rank, Window window) {
  std::vector<PhaseEnd> out;
  for (const BandPiece& piece : scene.bands(rank).phases) {
    if (piece.phase == 0 || piece.time.start < window.start || piece.time.start >= window.end) continue;
    const std::string name(scene.timeline().strings[piece.phase]);
    if (out.empty() || out.back().name != name) out.push_back({name, 0});
    out.back().at = piece.time.end - window.start;
  }
  if (!out.empty()) out.back().at = window.length();
  return out;
}

}  // namespace

std::string by_phase(const Scene& a, const Scene& b, const Comparison& comparison) {
  if (comparison.clocks_differ || comparison.ranks.empty()) return "";
  const Rank rank = comparison.ranks.front().rank;
  const std::vector<PhaseEnd> of_a = phases_of(a, rank, comparison.window_a), of_b = phases_of(b, rank, comparison.window_b);
  const bool same = of_a.size() > 1 && std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                                                  [](const PhaseEnd& x, const PhaseEnd& y) { return x.name == y.name; });
  if (!same) return "";
  std::map<std::string, Nanoseconds> sums;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const auto lasts = [&](const std::vector<PhaseEnd>& phases) { return phases[i].at - (i == 0 ? 0 : phases[i - 1].at); };
    if (!sums.contains(of_a[i].name)) order.push_back(of_a[i].name);
    sums[of_a[i].name] += lasts(of_b) - lasts(of_a);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) { return std::abs(sums[x]) > std::abs(sums[y]); });
  std::string words = base::text("By phase, on rank ", rank, ": ");
  for (std::size_t i = 0; i < order.size() && i < 4; ++i) words += base::text(i > 0 ? ", " : "", order[i], " ", signed_text(sums[order[i]]));
  return words;
}

std::vector<Alignment> alignment(const Scene& a, const Scene& b, const Comparison& comparison) {
  std::vector<Alignment> out;
  if (comparison.ranks.empty()) return out;
  const Rank rank = comparison.ranks.front().rank;
  struct Key {
    std::string phase, name;
    int micro_batch = -1, layer = -1, again = 0;
    auto operator<=>(const Key&) const = default;
  };
  // The begin of each piece; a layer that comes again in its phase is another piece.
  const auto starts = [&](const Scene& scene, Window window) {
    std::map<Key, Nanoseconds> out_of;
    for (const BandPiece& piece : scene.bands(rank).layers) {
      if (piece.time.start < window.start || piece.time.start >= window.end) continue;
      const timeline::Strings& strings = scene.timeline().strings;
      Key key{std::string(strings[piece.phase]), std::string(strings[piece.name]), piece.micro_batch, piece.layer, 0};
      while (out_of.contains(key)) ++key.again;
      out_of[key] = piece.time.start - window.start;
    }
    return out_of;
  };
  const std::map<Key, Nanoseconds> of_a = starts(a, comparison.window_a), of_b = starts(b, comparison.window_b);
  std::map<Nanoseconds, std::string> phase_at;
  for (const auto& [key, at] : of_a) phase_at[at] = key.phase;
  for (const auto& [key, at] : of_a) {
    const auto found = of_b.find(key);
    if (found == of_b.end()) continue;
    const auto before = phase_at.find(at);
    out.push_back({at, found->second, before == phase_at.begin() || std::prev(before)->second != key.phase});
  }
  std::sort(out.begin(), out.end(), [](const Alignment& x, const Alignment& y) { return x.a < y.a; });
  return out;
}

}  // namespace shardbook::scene
