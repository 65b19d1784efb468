// scene/compare_words: the sentence over a comparison; see compare_words.hpp.
#include "viewer/scene/compare_words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "engine/base/check.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::scene {

using metrics::duration_text;

namespace {

// "+15.1 ms", "−310 us", "±0".
std::string signed_text(Nanoseconds difference) {
  if (difference == 0) return "±0";
  return (difference > 0 ? "+" : "−") + duration_text(std::abs(difference));
}

// What one kind of communication exposes in both runs, a mean over the ranks that both have.
struct KindDelta {
  Nanoseconds exposed_a = 0, exposed_b = 0;
  std::int64_t spans_a = 0, spans_b = 0;
  std::string line;
  Nanoseconds difference() const { return exposed_b - exposed_a; }
};

std::map<std::string, KindDelta> kind_deltas(const Scene& a, const Scene& b, const Comparison& comparison) {
  std::map<std::string, KindDelta> kinds;
  const auto add = [&](const Scene& scene, Window window, bool is_b) {
    const auto found = metrics::exposed_kinds(scene.timeline(), window, [&](SpanRef span) { return scene.collective_of(span); });
    for (const metrics::ExposedKind& kind : found) {
      // Of all phases: "all-gather in forward" and "in backward" are one. The line is that of the largest, which comes first.
      KindDelta& delta = kinds[kind.name.substr(0, kind.name.find(" in "))];
      (is_b ? delta.exposed_b : delta.exposed_a) += kind.exposed_ns;
      (is_b ? delta.spans_b : delta.spans_a) += kind.spans;
      if (delta.line.empty()) delta.line = line_text(scene.timeline(), kind.line);
    }
  };
  add(b, comparison.window_b, true);
  add(a, comparison.window_a, false);
  return kinds;
}

// The kind that changed most in the step's own direction; none if none did.
const std::pair<const std::string, KindDelta>* greatest(const std::map<std::string, KindDelta>& kinds, bool slower) {
  const std::pair<const std::string, KindDelta>* best = nullptr;
  for (const auto& kind : kinds) {
    const Nanoseconds gain = slower ? kind.second.difference() : -kind.second.difference();
    if (gain > 0 && (best == nullptr || gain > std::abs(best->second.difference()))) best = &kind;
  }
  return best;
}

// "fsdp.prefetch 1 → 0": of many, the first three. What follows from the world and the machine is said by the remarks.
std::string changed(const Comparison& comparison) {
  std::string words;
  std::size_t said = 0;
  for (const Difference& one : comparison.config) {
    if (said == 3) return words + base::text(" and ", comparison.config.size() - 3, " more");
    words += base::text(said++ > 0 ? ", " : "", one.key, " ", one.a, " → ", one.b);
  }
  return words;
}

// "mostly all-gathers: +29 ms exposed on each rank, 47 of them that were hidden before (engine/fsdp/schedule.cpp:64)".
std::string where(const std::pair<const std::string, KindDelta>& kind, std::size_t ranks, bool slower) {
  const KindDelta& delta = kind.second;
  const auto each = [&](std::int64_t sum) { return static_cast<std::int64_t>(std::llround(static_cast<double>(sum) / static_cast<double>(ranks))); };
  const Nanoseconds difference = each(delta.difference());
  const std::int64_t spans = each(delta.spans_b) - each(delta.spans_a);
  std::string words = base::text("mostly ", kind.first, "s: ", signed_text(difference), " exposed on each rank");
  if ((slower && spans > 0) || (!slower && spans < 0)) {
    words += base::text(", ", std::abs(spans), slower ? " of them that were hidden before" : " of them that are hidden now");
  } else if (delta.spans_b > 0) {
    words += base::text(", over ", std::max<std::int64_t>(each(delta.spans_b), 1), " of them");
  }
  return words + (delta.line.empty() ? "" : " (" + delta.line + ")");
}

// A mean over the ranks: step = exposed + compute + copies + idle.
std::string parts(const Comparison& comparison) {
  Nanoseconds step = 0, compute = 0, exposed = 0, memory = 0, idle = 0;
  for (const Comparison::RankDelta& rank : comparison.ranks) {
    step += rank.b.window.length() - rank.a.window.length();
    compute += rank.b.compute_ns - rank.a.compute_ns;
    exposed += rank.b.exposed_communication_ns - rank.a.exposed_communication_ns;
    memory += rank.b.exposed_memory_ns - rank.a.exposed_memory_ns;
    idle += rank.b.idle_ns - rank.a.idle_ns;
  }
  const auto count = static_cast<Nanoseconds>(comparison.ranks.size());
  const auto part = [&](const char* name, Nanoseconds sum) { return base::text(name, " ", signed_text(sum / count)); };
  std::string words = base::text("A rank's step ", signed_text(step / count), " = ", part("exposed", exposed), ", ", part("compute", compute));
  if (memory / count != 0) words += ", " + part("copies", memory);
  words += ", " + part("idle", idle);
  if (exposed > step && step > 0 && compute < 0) words += ": what runs alone runs faster, so not all that is exposed is lost";
  return words;
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

// "By phase: forward +5.1 ms, backward +9.8 ms". A phase begins where the one before it has computed its last, so what is
// waited for before its own first op is its own, and they sum to the step.
std::string by_phase(const Scene& a, const Scene& b, const Comparison& comparison) {
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

}  // namespace

ComparisonWords words_of(const Scene& a, const Scene& b, const Comparison& comparison) {
  ComparisonWords out;
  const Nanoseconds of_a = comparison.window_a.length(), of_b = comparison.window_b.length(), difference = of_b - of_a;
  const std::string lengths = base::text(duration_text(of_a), " → ", duration_text(of_b)), what = changed(comparison);
  if (comparison.clocks_differ) {
    out.sentence = base::text("A took ", duration_text(of_a), ", B ", duration_text(of_b), ", on two kinds of clock: no difference can be told.");
    return out;
  }
  out.equal = static_cast<double>(std::abs(difference)) < equal_share * static_cast<double>(std::max({of_a, of_b, Nanoseconds{1}}));
  const std::string after = what.empty() ? "" : " with " + what;
  if (out.equal) {
    out.sentence = difference == 0 ? base::text("Equal: both steps took ", duration_text(of_a), after, ".")
                                   : base::text("Equal: ", lengths, " differ by less than 0.5 %", after, ".");
    if (difference == 0) return out;
  } else {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%s%.1f %%", difference > 0 ? "+" : "−", of_a > 0 ? 100.0 * static_cast<double>(std::abs(difference)) / static_cast<double>(of_a) : 0.0);
    out.sentence = base::text("B is ", difference > 0 ? "slower: " : "faster: ", signed_text(difference), " a step (", lengths, ", ", percent, ")", after);
    const auto kinds = kind_deltas(a, b, comparison);
    const auto* kind = comparison.ranks.empty() ? nullptr : greatest(kinds, difference > 0);
    out.sentence += (kind != nullptr ? base::text("; ", where(*kind, comparison.ranks.size(), difference > 0)) : "") + ".";
  }
  if (comparison.ranks.empty()) return out;
  out.sums.push_back(parts(comparison));
  const std::string phases = by_phase(a, b, comparison);
  if (!phases.empty()) out.sums.push_back(phases);
  return out;
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
