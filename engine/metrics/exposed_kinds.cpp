// metrics/exposed_kinds: see exposed_kinds.hpp.
#include "engine/metrics/exposed_kinds.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
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
    // In order of their starts, each owns what those before it have left
    Nanoseconds dealt = window_.start;
    for (const SpanRef span : spans) {
      const Interval owned{std::max(timeline_.start(span), dealt), std::min(timeline_.end(span), window_.end)};
      if (owned.length() <= 0) continue;
      dealt = owned.end;
      deal(span, owned, compute);
    }
  }

  std::vector<ExposedKind> all() {
    std::vector<ExposedKind> kinds;
    for (auto& [key, kind] : kinds_) {
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
  void deal(SpanRef span, Interval owned, const Intervals& compute) {
    const auto exposed = [&](Interval part) { return part.length() - length_within(compute, part); };
    const Nanoseconds exposed_ns = exposed(owned);
    if (exposed_ns == 0) return;
    const Detail& detail = timeline_.detail(span);
    ExposedKind& kind = kinds_[{kind_name(timeline_, span), detail.phase, detail.leading()}];
    Nanoseconds& longest_ns = longest_ns_[&kind];
    if (exposed_ns > longest_ns) {
      longest_ns = exposed_ns;
      kind.longest = span;
    }
    ++kind.spans;
    kind.exposed_ns += exposed_ns;
    if (const MatchedCollective* collective = find_collective_(span)) {
      const Nanoseconds wait_end = timeline_.start(span) + split(timeline_, *collective, span).wait_ns;
      const Interval waiting{owned.start, std::min(owned.end, wait_end)};
      if (waiting.length() > 0) kind.waiting_ns += exposed(waiting);
    }
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
