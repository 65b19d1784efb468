// metrics/exposed_kinds: see exposed_kinds.hpp.
#include "engine/metrics/exposed_kinds.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/metrics/exposure.hpp"

namespace shardbook::metrics {

using timeline::Class;
using timeline::Detail;

namespace {

// What makes two spans of one kind: their name, phase and line.
struct Key {
  std::string name;
  std::uint32_t phase = 0;
  timeline::Line line;
  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.name, a.phase, a.line.file, a.line.line) < std::tie(b.name, b.phase, b.line.file, b.line.line);
  }
};

class Dealing {
 public:
  Dealing(const Timeline& timeline, Window window, const FindCollective& find_collective)
      : timeline_(timeline), window_(window), find_collective_(find_collective) {}

  void deal_rank(Rank rank) {
    // What lies in the window
    std::vector<SpanRef> spans;
    Intervals computed;
    timeline::for_each_device_span(timeline_, rank, [&](SpanRef span) {
      const Interval time{std::max(timeline_.start(span), window_.start), std::min(timeline_.end(span), window_.end)};
      if (time.length() <= 0) return;
      if (timeline_.cls(span) == Class::communication) spans.push_back(span);
      if (timeline_.cls(span) == Class::compute) computed.push_back(time);
    });
    const Intervals compute = union_of(std::move(computed));
    std::sort(spans.begin(), spans.end(), [&](SpanRef a, SpanRef b) {
      return std::pair(timeline_.start(a), a) < std::pair(timeline_.start(b), b);
    });
    // Where several run at once, each has an equal part; what does not divide goes to those that started first
    std::vector<Nanoseconds> cuts;
    for (const SpanRef span : spans) {
      cuts.push_back(std::max(timeline_.start(span), window_.start));
      cuts.push_back(std::min(timeline_.end(span), window_.end));
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::map<SpanRef, Part> parts;
    std::vector<SpanRef> running;   // by start
    std::size_t next = 0;
    for (std::size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
      const Interval between{cuts[cut], cuts[cut + 1]};
      std::erase_if(running, [&](SpanRef span) { return timeline_.end(span) <= between.start; });
      while (next < spans.size() && timeline_.start(spans[next]) <= between.start) running.push_back(spans[next++]);
      if (!running.empty()) share(running, between, compute, parts);
    }
    for (const SpanRef span : spans) {
      if (const auto part = parts.find(span); part != parts.end()) deal(span, part->second);
    }
  }

  std::vector<ExposedKind> all() {
    std::vector<ExposedKind> kinds;
    for (auto& [key, kind] : kinds_) {
      kind.op = key.name;
      kind.name = key.name + (key.phase != 0 ? " in " + std::string(timeline_.strings[key.phase]) : "");
      kind.line = key.line;
      kinds.push_back(std::move(kind));
    }
    std::sort(kinds.begin(), kinds.end(), [&](const ExposedKind& a, const ExposedKind& b) {
      if (a.exposed_ns != b.exposed_ns) return a.exposed_ns > b.exposed_ns;
      return std::pair(a.name, line_text(timeline_, a.line)) < std::pair(b.name, line_text(timeline_, b.line));
    });
    return kinds;
  }

 private:
  struct Part {
    Nanoseconds exposed_ns = 0, waiting_ns = 0;
  };

  // Deals out what of an interval is exposed, in which exactly these run.
  void share(const std::vector<SpanRef>& running, Interval between, const Intervals& compute, std::map<SpanRef, Part>& parts) {
    const Nanoseconds exposed_ns = between.length() - length_within(compute, between);
    if (exposed_ns == 0) return;
    const auto count = static_cast<Nanoseconds>(running.size());
    for (Nanoseconds at = 0; at < count; ++at) {
      const SpanRef span = running[static_cast<std::size_t>(at)];
      const Nanoseconds mine = exposed_ns / count + (at < exposed_ns % count ? 1 : 0);
      if (mine == 0) continue;
      Part& part = parts[span];
      part.exposed_ns += mine;
      const MatchedCollective* collective = find_collective_(span);
      if (collective == nullptr) continue;
      // As much of the part was waiting as of the interval.
      const Nanoseconds wait_end = timeline_.start(span) + split(timeline_, *collective, span).wait_ns;
      const Interval waiting{between.start, std::min(between.end, wait_end)};
      if (waiting.length() <= 0) continue;
      const Nanoseconds waited_ns = waiting.length() - length_within(compute, waiting);
      part.waiting_ns += std::min(mine, (waited_ns + count - 1) / count);
    }
  }

  void deal(SpanRef span, const Part& part) {
    if (part.exposed_ns == 0) return;
    const Detail& detail = timeline_.detail(span);
    ExposedKind& kind = kinds_[{kind_name(timeline_, span), detail.phase, detail.leading()}];
    Nanoseconds& longest_ns = longest_ns_[&kind];
    if (part.exposed_ns > longest_ns) {
      longest_ns = part.exposed_ns;
      kind.longest = span;
    }
    ++kind.spans;
    kind.exposed_ns += part.exposed_ns;
    kind.waiting_ns += part.waiting_ns;
  }

  const Timeline& timeline_;
  const Window window_;
  const FindCollective& find_collective_;
  std::map<Key, ExposedKind> kinds_;
  std::map<const ExposedKind*, Nanoseconds> longest_ns_;
};

}  // namespace

std::vector<ExposedKind> exposed_kinds(const Timeline& timeline, Window window, const FindCollective& find_collective) {
  Dealing dealing(timeline, window, find_collective);
  for (const timeline::Provenance& provenance : timeline.ranks) dealing.deal_rank(provenance.rank);
  return dealing.all();
}

std::vector<ExposedKind> exposed_kinds(const Timeline& timeline, Window window) {
  const std::vector<MatchedCollective> matched = match_collectives(timeline);
  const CollectiveBySpan collectives = by_span(matched);
  return exposed_kinds(timeline, window, [&](SpanRef span) { return find(collectives, span); });
}

std::string kinds_text(const Timeline& timeline, const std::vector<ExposedKind>& kinds, std::size_t most) {
  if (kinds.empty()) return "";
  Nanoseconds all = 0;
  for (const ExposedKind& kind : kinds) all += kind.exposed_ns;
  const auto share = [](Nanoseconds part, Nanoseconds whole) { return static_cast<double>(part) / static_cast<double>(whole) * 100; };
  std::string out = " share  kind                         exposed  spans waiting  issued at\n";
  for (std::size_t at = 0; at < kinds.size() && at < most; ++at) {
    const ExposedKind& kind = kinds[at];
    const std::string time = duration_text(kind.exposed_ns);
    const int time_width = time.find("µ") == std::string::npos ? 9 : 10;   // "µ" is one column of two bytes
    char row[256];
    std::snprintf(row, sizeof row, "%5.1f%%  %-26.80s %*s%7lld%7.0f%%  ", share(kind.exposed_ns, all), kind.name.c_str(), time_width, time.c_str(),
                  static_cast<long long>(kind.spans), share(kind.waiting_ns, kind.exposed_ns));
    out += row + line_text(timeline, kind.line) + "\n";
  }
  return out;
}

nlohmann::json kinds_json(const Timeline& timeline, const std::vector<ExposedKind>& kinds) {
  nlohmann::json list = nlohmann::json::array();
  for (const ExposedKind& kind : kinds) {
    list.push_back({{"name", kind.name},
                    {"line", line_text(timeline, kind.line)},
                    {"spans", kind.spans},
                    {"exposed_ns", kind.exposed_ns},
                    {"waiting_ns", kind.waiting_ns}});
  }
  return list;
}

}  // namespace shardbook::metrics
