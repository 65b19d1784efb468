// scene/compare: two runs side by side; see compare.hpp.
#include "viewer/scene/compare.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

namespace {

// "fsdp": {"prefetch": 1} becomes fsdp.prefetch -> 1.
void flatten(const nlohmann::json& json, const std::string& key, std::map<std::string, std::string>& out) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [name, value] : json.items()) flatten(value, key.empty() ? name : base::text(key, ".", name), out);
    return;
  }
  if (!key.empty()) out[key] = json.is_string() ? json.get<std::string>() : base::json_text(json);
}

std::map<std::string, std::string> settings(const Scene& scene) {
  std::map<std::string, std::string> out;
  const timeline::RunInfo* info = scene.info();
  if (info == nullptr) return out;
  flatten(info->config, "", out);
  flatten(info->switches, "switches", out);
  flatten(info->hardware, "hardware", out);
  return out;
}

std::vector<Difference> differences(const Scene& a, const Scene& b) {
  const std::map<std::string, std::string> of_a = settings(a), of_b = settings(b);
  std::set<std::string> keys;
  for (const auto& [key, value] : of_a) keys.insert(key);
  for (const auto& [key, value] : of_b) keys.insert(key);
  std::vector<Difference> out;
  for (const std::string& key : keys) {
    const auto in_a = of_a.find(key), in_b = of_b.find(key);
    const std::string value_a = in_a == of_a.end() ? "not set" : in_a->second, value_b = in_b == of_b.end() ? "not set" : in_b->second;
    if (value_a != value_b) out.push_back({key, value_a, value_b});
  }
  // Some switches are options by another name, and are said once.
  constexpr std::string_view of_switches = "switches.";
  const auto is_option = [&](const Difference& one) {
    return one.key.starts_with(of_switches) && std::any_of(out.begin(), out.end(), [&](const Difference& other) {
      return timeline::may_be_another_name(std::string_view(one.key).substr(of_switches.size()), other.key) && other.a == one.a && other.b == one.b;
    });
  };
  // "set" holds the switches that are not at their defaults, which are among the others where both runs know them.
  const bool with_switches = a.info() != nullptr && b.info() != nullptr && !a.info()->switches.empty() && !b.info()->switches.empty();
  std::vector<Difference> once;
  std::copy_if(out.begin(), out.end(), std::back_inserter(once), [&](const Difference& one) { return !is_option(one) && !(with_switches && one.key == "set"); });
  return once;
}

// The window of a step over all ranks; the run's whole if it has none such, with a remark.
Window window_of(const Scene& scene, int step, const char* name, std::vector<std::string>& remarks) {
  for (const Scene::StepWindow& entry : scene.steps()) {
    if (entry.number == step) return entry.window;
  }
  if (scene.steps().empty()) remarks.push_back(base::text(name, " records no steps: all of it is compared"));
  else remarks.push_back(base::text(name, " has no step ", step, ": all of it is compared"));
  return scene.whole();
}

// What makes an op of one run the same as one of the other. Not its number in the layer: where a change takes some ops away,
// those behind them have other numbers and are the same ops. Kernels are the same in all layers, for what changes them changes them
// in each; of a collective it matters which one waits.
struct OpKey {
  std::string phase, op, part;
  int layer = -1;
  friend auto operator<=>(const OpKey&, const OpKey&) = default;
};

struct OpFigures {
  std::vector<Nanoseconds> lengths;
  Nanoseconds sum = 0, exposed = 0;
  bool communicates = false;
};

bool has_keys(const Timeline& timeline) {
  return std::any_of(timeline.details.begin(), timeline.details.end(), [](const timeline::Detail& detail) { return detail.op != 0; });
}

// Device work of the window by key, parts within it only.
std::map<OpKey, OpFigures> ops_of(const Scene& scene, Window window, bool by_label) {
  const Timeline& timeline = scene.timeline();
  std::map<OpKey, OpFigures> out;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    const RankScene* rank = scene.rank(track.rank);
    if (track.kind != TrackKind::stream || rank == nullptr) continue;
    std::map<std::pair<std::uint32_t, std::uint32_t>, OpFigures*> known;         // by (detail, label): few
    const auto count = [&](std::uint32_t i) {
      if (!is_op_of_stream(track.cls[i])) return;
      const Interval time{std::max(track.start[i], window.start), std::min(track.end[i], window.end)};
      if (time.length() <= 0) return;
      OpFigures*& figures = known[{track.detail[i], track.label[i]}];
      if (figures == nullptr) {
        const timeline::Detail& detail = timeline.details[track.detail[i]];
        OpKey key{"", std::string(timeline.strings[track.label[i]]), "", -1};
        if (!by_label && detail.op != 0) {
          const timeline::Strings& strings = timeline.strings;
          const int layer = track.cls[i] == Class::communication ? detail.layer : -1;
          key = {std::string(strings[detail.phase]), std::string(strings[detail.op]), std::string(strings[detail.part]), layer};
        }
        figures = &out[key];
      }
      figures->lengths.push_back(time.length());
      figures->sum += time.length();
      if (track.cls[i] != Class::communication) return;
      figures->communicates = true;
      figures->exposed += time.length() - rank->compute.busy(time);
    };
    const TrackIndex::Found found = scene.index(t).find(track, window);
    for (std::uint32_t i : found.outer) count(i);
    for (std::uint32_t i = found.first; i < found.last; ++i) count(i);
  }
  return out;
}

// REQUIRES: not empty.
Nanoseconds median(std::vector<Nanoseconds>& lengths) {
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

std::string label_of(const OpKey& key) {
  std::string out;
  if (!key.phase.empty()) out += key.phase + ", ";
  if (key.layer >= 0) out += base::text("layer ", key.layer, ", ");
  return out + key.op + (key.part.empty() ? "" : " " + key.part);
}

std::vector<OpDelta> op_deltas(const Scene& a, const Scene& b, const Comparison& comparison) {
  const bool by_label = !has_keys(a.timeline()) || !has_keys(b.timeline());
  std::map<OpKey, OpFigures> of_a = ops_of(a, comparison.window_a, by_label), of_b = ops_of(b, comparison.window_b, by_label);
  std::map<OpKey, OpDelta> deltas;
  for (auto& [key, figures] : of_a) {
    OpDelta& delta = deltas[key];
    delta.count_a = static_cast<std::int64_t>(figures.lengths.size());
    delta.median_a = median(figures.lengths);
    delta.sum_a = figures.sum;
    delta.exposed_a = figures.exposed;
    delta.communicates = figures.communicates;
  }
  for (auto& [key, figures] : of_b) {
    OpDelta& delta = deltas[key];
    delta.count_b = static_cast<std::int64_t>(figures.lengths.size());
    delta.median_b = median(figures.lengths);
    delta.sum_b = figures.sum;
    delta.exposed_b = figures.exposed;
    delta.communicates = delta.communicates || figures.communicates;
  }
  std::vector<OpDelta> out;
  for (auto& [key, delta] : deltas) {
    delta.label = label_of(key);
    out.push_back(std::move(delta));
  }
  const Nanoseconds sign = comparison.window_b.length() < comparison.window_a.length() ? -1 : 1;
  std::stable_sort(out.begin(), out.end(), [&](const OpDelta& x, const OpDelta& y) { return sign * x.lost() > sign * y.lost(); });
  return out;
}

bool same_clock(const Timeline& a, const Timeline& b) {
  const auto clocks = [](const Timeline& timeline) {
    std::set<std::pair<timeline::Clock, std::string>> out;
    for (const timeline::Provenance& rank : timeline.ranks) out.emplace(rank.clock, rank.profile);
    return out;
  };
  return clocks(a) == clocks(b);
}

}  // namespace

Comparison compare(const Scene& a, const Scene& b, int step_a, int step_b) {
  Comparison out;
  out.step_a = step_a;
  out.step_b = step_b;
  out.window_a = window_of(a, step_a, "the first run", out.remarks);
  out.window_b = window_of(b, step_b, "the second run", out.remarks);
  out.config = differences(a, b);
  out.clocks_differ = !same_clock(a.timeline(), b.timeline());
  if (out.clocks_differ) {
    out.remarks.push_back(base::text("their times come from different clocks (", clock_text(a.timeline().ranks.front()), "; ",
                                     clock_text(b.timeline().ranks.front()), "): they stand beside each other and are not subtracted"));
  }
  if (a.info() == nullptr || b.info() == nullptr) {
    out.remarks.push_back(base::text(a.info() == nullptr ? "the first run" : "the second run", " has no run.json: what differs in config is not known"));
  }
  if (a.ranks().size() != b.ranks().size()) {
    out.remarks.push_back(base::text("the first has ", a.ranks().size(), " ranks, the second ", b.ranks().size(), ": those that both have are compared"));
  }
  for (const RankScene& rank : a.ranks()) {
    const RankScene* other = b.rank(rank.rank);
    if (other != nullptr) out.ranks.push_back({rank.rank, rank.partition(out.window_a), other->partition(out.window_b)});
  }
  if (!has_keys(a.timeline()) || !has_keys(b.timeline())) out.remarks.push_back("a trace without op keys: spans are paired by their label");
  out.ops = op_deltas(a, b, out);
  return out;
}

std::vector<Nanoseconds> exposed_difference(const Scene& a, const Scene& b, const Comparison& comparison, int columns) {
  std::vector<Nanoseconds> out(static_cast<std::size_t>(std::max(columns, 0)), 0);
  const Nanoseconds longer = std::max(comparison.window_a.length(), comparison.window_b.length());
  if (out.empty() || longer <= 0) return out;
  std::vector<Nanoseconds> edges(out.size() + 1), exposed(out.size());
  const auto add = [&](const Scene& scene, Window window, Rank rank, Nanoseconds sign) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto edge = static_cast<Nanoseconds>(static_cast<double>(longer) * static_cast<double>(i) / static_cast<double>(out.size()));
      edges[i] = window.start + std::min(edge, window.length());
    }
    edges.back() = window.end;
    scene.rank(rank)->exposed.columns(edges, exposed);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += sign * exposed[i];
  };
  for (const Comparison::RankDelta& rank : comparison.ranks) {
    add(a, comparison.window_a, rank.rank, -1);
    add(b, comparison.window_b, rank.rank, 1);
  }
  return out;
}

}  // namespace shardbook::scene
