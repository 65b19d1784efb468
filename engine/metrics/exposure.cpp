// metrics/exposure: exposed and blocking of each span, and the sentence; see exposure.hpp.
#include "engine/metrics/exposure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "engine/base/check.hpp"
#include "engine/metrics/dependencies.hpp"

namespace shardbook::metrics {

using timeline::Class;
using timeline::Detail;
using timeline::EdgeKind;

namespace {

// The reason of a span's start, in the words of ExposureCause.
void explain(const Timeline& timeline, const Dependencies& dependencies, const MatchedCollective* collective, Exposure& out) {
  const Detail& detail = timeline.detail(out.span);
  out.line = detail.leading();
  if (collective != nullptr && collective->complete && collective->last_rank != timeline.rank(out.span)) {
    const Nanoseconds wait = split(timeline, *collective, out.span).wait_ns;
    if (2 * wait >= out.exposed_ns && wait > 0) {
      out.cause = ExposureCause::late_rank;
      for (SpanRef other : collective->spans) {
        if (timeline.rank(other) == collective->last_rank) out.awaited = other;
      }
      return;
    }
  }
  const Decision decision = dependencies.decide(out.span);
  out.awaited = decision.from;
  out.inferred = decision.inferred;
  switch (decision.kind) {
    case Decision::Kind::none: out.cause = ExposureCause::needed_at_once; return;
    case Decision::Kind::host: out.cause = ExposureCause::launch; return;
    case Decision::Kind::device: break;
  }
  switch (decision.edge) {
    case EdgeKind::limiter: out.cause = ExposureCause::limiter; break;
    case EdgeKind::buffer: out.cause = ExposureCause::buffer; break;
    case EdgeKind::event: out.cause = ExposureCause::event; break;
    default: out.cause = ExposureCause::stream;
  }
  if (out.cause != ExposureCause::stream && detail.awaits.known()) out.line = detail.awaits;
}

std::string hyphened(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

// The name of a C++ kernel without its return type, namespaces, template arguments and parameters:
// "void at::native::(anonymous namespace)::copy<4, float>(int)" -> "copy". Other names stay.
std::string short_name(std::string_view label) {
  std::string name(label);
  if (name.starts_with("void ")) name.erase(0, 5);
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous)) name.erase(at, anonymous.size());
  name.erase(std::min(name.find_first_of("<("), name.size()));
  if (const std::size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  return name.empty() ? std::string(label) : name;
}

bool is_named_collective(const Timeline& timeline, SpanRef span) {
  return timeline.has_collective(span) && timeline.collective(span).op != timeline::CollectiveOp::other;
}

// "the all-gather", "gemm qkv".
std::string noun(const Timeline& timeline, SpanRef span) {
  return (is_named_collective(timeline, span) ? "the " : "") + kind_name(timeline, span);
}

std::string layer_of(const Timeline& timeline, SpanRef span) {
  const Detail& detail = timeline.detail(span);
  return detail.layer >= 0 ? base::text(" of layer ", detail.layer) : "";
}

std::string reason(const Timeline& timeline, const Exposure& exposure) {
  const std::string line = line_text(timeline, exposure.line);
  const std::string at = line.empty() ? "" : " at " + line;
  const std::string awaited =
      exposure.awaited.valid() ? noun(timeline, exposure.awaited) + layer_of(timeline, exposure.awaited) : "";
  const bool line_is_of_event = timeline.detail(exposure.span).awaits.known();
  // Where no event decided, the line to open is the one that issued it.
  const std::string source = line_text(timeline, timeline.detail(exposure.span).leading());
  const std::string issued = source.empty() ? "" : "; it was issued at " + source;
  switch (exposure.cause) {
    case ExposureCause::event:
      if (exposure.inferred) return "it seems to have waited for " + awaited + " (the trace records no waits)";
      return line_is_of_event ? "it waited for the event recorded" + at : "it waited for " + awaited;
    case ExposureCause::limiter:
      return line_is_of_event ? "the limiter made it wait for the event recorded" + at : "the limiter made it wait for " + awaited;
    case ExposureCause::buffer:
      return line_is_of_event ? "its buffer was in use until the event recorded" + at : "its buffer was in use by " + awaited;
    case ExposureCause::launch: return "the host launched it late" + (line.empty() ? "" : "," + at);
    case ExposureCause::stream: return "it queued behind " + awaited + " on its stream" + issued;
    case ExposureCause::late_rank:
      return base::text("rank ", timeline.rank(exposure.awaited), " came ",
                        duration_text(timeline.start(exposure.awaited) - timeline.start(exposure.span)), " later", issued);
    case ExposureCause::needed_at_once: break;
  }
  return "what came next needed it at once" + issued;
}

}  // namespace

std::vector<Exposure> exposures(const Timeline& timeline, const CriticalPath& path) {
  // Blocking: what is on the path, in parts that no compute of the rank covers.
  std::map<Rank, DeviceSets> sets;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    sets[provenance.rank] = clip(device_sets(timeline, provenance.rank), path.window);
  }
  std::map<SpanRef, Nanoseconds> blocking;
  for (const PathPiece& piece : path.pieces) {
    if (piece.kind != PathKind::span || timeline.cls(piece.span) != Class::communication) continue;
    blocking[piece.span] += piece.time.length() - length_within(sets[piece.rank].compute, piece.time);
  }

  std::vector<Exposure> out;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    const Intervals& compute = sets[provenance.rank].compute;
    timeline::for_each_device_span(timeline, provenance.rank, [&](SpanRef span) {
      if (timeline.cls(span) != Class::communication) return;
      const Interval time{std::max(timeline.start(span), path.window.start), std::min(timeline.end(span), path.window.end)};
      if (time.length() <= 0) return;
      Exposure exposure;
      exposure.span = span;
      exposure.span_ns = time.length();
      exposure.exposed_ns = time.length() - length_within(compute, time);
      if (exposure.exposed_ns == 0) return;
      if (const auto found = blocking.find(span); found != blocking.end()) exposure.blocking_ns = found->second;
      out.push_back(exposure);
    });
  }
  std::sort(out.begin(), out.end(), [](const Exposure& a, const Exposure& b) {
    if (a.blocking_ns != b.blocking_ns) return a.blocking_ns > b.blocking_ns;
    if (a.exposed_ns != b.exposed_ns) return a.exposed_ns > b.exposed_ns;
    return a.span < b.span;
  });

  // Why each started when it did.
  const std::vector<MatchedCollective> matched = match_collectives(timeline);
  const CollectiveBySpan collectives = by_span(matched);
  const Dependencies dependencies(timeline, path.window);
  for (Exposure& exposure : out) {
    explain(timeline, dependencies, find(collectives, exposure.span), exposure);
  }
  return out;
}

std::string kind_name(const Timeline& timeline, SpanRef span) {
  if (is_named_collective(timeline, span)) return hyphened(name_of(timeline.collective(span).op));
  return short_name(timeline.label(span));
}

std::vector<Exposure> exposures_of(const Timeline& timeline, Window window, const std::vector<Rank>& ranks) {
  std::vector<Exposure> list = exposures(timeline, critical_path(timeline, window));
  std::erase_if(list, [&](const Exposure& one) { return !ranks.empty() && std::count(ranks.begin(), ranks.end(), timeline.rank(one.span)) == 0; });
  return list;
}

std::optional<Exposure> longest_blocking_exposure(const Timeline& timeline, Window window) {
  const std::vector<Exposure> all = exposures(timeline, critical_path(timeline, window));
  return all.empty() ? std::nullopt : std::optional<Exposure>(all.front());
}

std::string sentence(const Timeline& timeline, const Exposure& exposure) {
  const Detail& detail = timeline.detail(exposure.span);
  std::string who = base::text("rank ", timeline.rank(exposure.span));
  if (detail.layer >= 0) who += base::text(", layer ", detail.layer);
  if (detail.phase != 0) who += ", " + std::string(timeline.strings[detail.phase]);
  const auto percent = static_cast<int>(std::floor(100 * exposure.exposed_share() + 0.5));
  const std::string effect = exposure.blocking_ns > 0
                                 ? " and blocked the step for " + duration_text(exposure.blocking_ns)
                                 : " (" + duration_text(exposure.exposed_ns) + "), without blocking the step";
  return base::text(who, ": ", noun(timeline, exposure.span), " was ", percent, " % exposed", effect, ", because ", reason(timeline, exposure));
}

std::string exposure_sentence(const Timeline& timeline, Window window) {
  if (const std::optional<Exposure> exposure = longest_blocking_exposure(timeline, window)) {
    return sentence(timeline, *exposure);
  }
  for (const timeline::Provenance& provenance : timeline.ranks) {
    if (!device_sets(timeline, provenance.rank).communication.empty()) {
      return "no communication was exposed: compute covered all of it";
    }
  }
  return "no communication ran";
}

std::string duration_text(Nanoseconds ns) {
  static constexpr std::pair<double, const char*> units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
  for (const auto& [size, unit] : units) {
    const double value = static_cast<double>(ns) / size;
    if (std::abs(value) < 1) continue;
    char digits[48];
    std::snprintf(digits, sizeof digits, "%.*f", std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2, value);
    std::string text = digits;
    while (text.find('.') != std::string::npos && (text.back() == '0' || text.back() == '.')) {
      const bool point = text.back() == '.';
      text.pop_back();
      if (point) break;
    }
    return text + " " + unit;
  }
  return base::text(ns, " ns");
}

}  // namespace shardbook::metrics
