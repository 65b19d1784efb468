// scene/facts: what the details panel says of a span; see navigate.hpp.
#include <cstdio>

#include "engine/base/check.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/roles.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::Detail;
using timeline::TrackKind;

namespace {

std::string three_digits(double value) {
  char digits[48];
  std::snprintf(digits, sizeof digits, "%.*f", value >= 100 ? 0 : value >= 10 ? 1 : 2, value);
  return digits;
}

// "1 234 567": thousands apart, so that a nanosecond can be read.
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return base::text(value < 0 ? "-" : "", digits);
}

// "1.23 ms (1 234 567 ns)".
std::string exact(Nanoseconds ns) {
  if (ns > -1000 && ns < 1000) return base::text(ns, " ns");
  return base::text(metrics::duration_text(ns), " (", grouped(ns), " ns)");
}

std::string scaled(double value, const char* unit) {
  static constexpr std::pair<double, const char*> scales[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, prefix] : scales) {
    if (value >= size) return three_digits(value / size) + " " + prefix + unit;
  }
  return three_digits(value) + " " + unit;
}

std::string bytes_text(base::Bytes bytes) {
  if (bytes < 1024) return base::text(bytes, " B");
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return base::text(three_digits(value), " ", units[unit], " (", grouped(bytes), " B)");
}

std::string percent_of(Nanoseconds part, Nanoseconds whole) {
  if (whole <= 0) return "";
  char digits[32];
  std::snprintf(digits, sizeof digits, " (%.1f %%)", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return digits;
}

std::string short_list(const std::vector<Rank>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size() && i < 16; ++i) out += base::text(i > 0 ? ", " : "", ranks[i]);
  return out + (ranks.size() > 16 ? ", ..." : "");
}

class Facts {
 public:
  Facts(const Scene& scene, SpanRef span) : scene_(scene), timeline_(scene.timeline()), span_(span), detail_(timeline_.detail(span)) {}

  std::vector<Fact> all() {
    identity();
    exposure();
    origin();
    collective();
    work();
    place();
    clock();
    return std::move(facts_);
  }

 private:
  void say(const char* name, std::string value) {
    if (!value.empty()) facts_.push_back({name, std::move(value)});
  }
  std::string text(std::uint32_t id) const { return std::string(timeline_.strings[id]); }
  Nanoseconds length() const { return timeline_.end(span_) - timeline_.start(span_); }

  void identity() {
    say("label", std::string(timeline_.label(span_)));
    say("duration", exact(length()));
    if (timeline_.step(span_) >= 0) say("step", std::to_string(timeline_.step(span_)));
    say("phase", text(detail_.phase));
    if (detail_.layer >= 0) say("layer", std::to_string(detail_.layer));
    if (detail_.micro_batch >= 0) say("micro-batch", std::to_string(detail_.micro_batch));
    say("part", text(detail_.part));
  }

  void place() {
    const timeline::Track& track = timeline_.tracks[span_.track];
    say("class", name_of(timeline_.cls(span_)));
    say("row", base::text("rank ", track.rank, ", ", track.name.empty() ? base::text("stream ", track.id) : track.name));
    say("start", exact(timeline_.start(span_) - scene_.whole().start) + " after the first device work");
    say("op", text(detail_.op));
  }

  void work() {
    const auto seconds = static_cast<double>(length()) * 1e-9;
    if (detail_.flops > 0) {
      std::string value = scaled(static_cast<double>(detail_.flops), "flop");
      if (seconds > 0) value += ", " + scaled(static_cast<double>(detail_.flops) / seconds, "flop/s");
      say("flops", value);
    }
    if (detail_.bytes > 0) {
      std::string value = bytes_text(detail_.bytes);
      if (seconds > 0) value += ", " + scaled(static_cast<double>(detail_.bytes) / seconds, "B/s");
      say("bytes", value);
    }
  }

  void collective() {
    if (!timeline_.has_collective(span_)) return;
    const timeline::Collective& collective = timeline_.collective(span_);
    const timeline::Group& group = timeline_.groups[collective.group];
    say("collective", base::text(name_of(collective.op), collective.dtype != 0 ? " of " + text(collective.dtype) : ""));
    if (collective.bytes > 0) say("buffer", bytes_text(collective.bytes));
    say("group", text(group.name) + (group.ranks.empty() ? "" : ": ranks " + short_list(group.ranks)));
    if (collective.seq >= 0) say("sequence", std::to_string(collective.seq));
    const metrics::MatchedCollective* match = scene_.collective_of(span_);
    if (match == nullptr) return;
    if (const std::optional<double> bandwidth = metrics::busbw(timeline_, *match)) say("bus bandwidth", three_digits(*bandwidth) + " GB/s");
    const metrics::WaitSplit parts = metrics::split(timeline_, *match, span_);
    if (!match->complete && collective.wait_ns < 0) {
      say("wait", base::text("not known: ", match->spans.size(), " of its ranks are in this trace"));
      return;
    }
    std::string wait = exact(parts.wait_ns) + percent_of(parts.wait_ns, length());
    if (match->complete && match->skew_ns == 0 && match->spans.size() > 1) {
      wait += ": its ranks came together";
    } else if (match->complete && !match->skew_is_significant() && match->spans.size() > 1) {
      wait += base::text("; skew ", metrics::duration_text(match->skew_ns), " (clocks agree to ",
                         metrics::duration_text(match->clock_error_ns), "): not significant");
    } else if (match->complete && parts.wait_ns > 0) {
      wait += base::text(", for rank ", match->last_rank);
    }
    say("wait", wait);
    // On a GPU the span begins where its stream comes to the collective, not where its blocks find room.
    const timeline::Provenance* provenance = timeline_.provenance(timeline_.rank(span_));
    const bool on_gpu = provenance != nullptr && provenance->clock == timeline::Clock::measured && !provenance->foreign;
    if (parts.queued_ns > 0) say("queued", queued_words(scene_, span_));
    say("transfer", exact(parts.transfer_ns) + percent_of(parts.transfer_ns, length()) +
                        (on_gpu && parts.queued_ns == 0 ? "; a wait for room on the device would be in it, and nothing here shows one" : ""));
  }

  void exposure() {
    const RankScene* rank = scene_.rank(timeline_.rank(span_));
    if (rank == nullptr) return;
    const Interval time{timeline_.start(span_), timeline_.end(span_)};
    if (timeline_.cls(span_) == Class::communication) {
      const Nanoseconds exposed = time.length() - rank->compute.busy(time);
      say("exposed", exact(exposed) + percent_of(exposed, length()));
    }
    const Window known = scene_.path_window();
    const bool looked_at = time.end > known.start && time.start < known.end;
    if (const metrics::Exposure* found = scene_.exposure_of(span_)) {
      say("blocking", exact(found->blocking_ns) + percent_of(found->blocking_ns, length()));
      say("why", metrics::sentence(timeline_, *found));
    }
    if (timeline_.tracks[span_.track].kind != TrackKind::stream) return;
    if (!looked_at) {
      say("critical path", "not computed here: this run is large, and the path covers only its first part");
      return;
    }
    Nanoseconds on_path = 0;
    for (std::uint32_t place : rank->pieces) {
      const metrics::PathPiece& piece = scene_.path().pieces[place];
      if (piece.span == span_ && piece.kind == metrics::PathKind::span) on_path += piece.time.length();
    }
    say("critical path", on_path > 0 ? exact(on_path) + " of it" : "not on it");
  }

  void origin() {
    if (timeline_.correlation(span_) != 0 && timeline_.tracks[span_.track].kind != TrackKind::host && scene_.rank(timeline_.rank(span_)) != nullptr) {
      const SpanRef call = scene_.links(timeline_.rank(span_)).launch_of(span_);
      if (call.valid()) {
        say("launched by", base::text(timeline_.label(call), ", ", metrics::duration_text(timeline_.start(span_) - timeline_.start(call)), " before it started"));
      }
    }
    // The line that issued it, and beside it the one that decided that it be issued.
    const std::string planned = line_text(timeline_, detail_.planned);
    say("source", line_text(timeline_, detail_.source) + (planned.empty() ? "" : " · planned at " + planned));
    if (timeline_.has_collective(span_) && timeline_.collective(span_).op == timeline::CollectiveOp::all_reduce) {
      if (const SpanRef summed = summed_span(timeline_, span_); summed.valid()) {
        const std::string line = line_text(timeline_, timeline_.detail(summed).source);
        say("sums", role_label(timeline_, summed) + (line.empty() ? "" : ", issued at " + line));
      }
    }
    say("awaits", line_text(timeline_, detail_.awaits));
    if (timeline_.launch_bound(span_)) say("launch bound", "yes: the host launched it later than its inputs were ready");
  }

  void clock() {
    const timeline::Provenance* provenance = timeline_.provenance(timeline_.rank(span_));
    if (provenance == nullptr) return;
    std::string value = clock_text(*provenance);
    if (timeline_.ranks.size() > 1 && provenance->foreign) {
      value += "; the trace does not say how well the clocks of its ranks agree";
    } else if (timeline_.ranks.size() > 1 && provenance->clock == timeline::Clock::measured) {
      value += base::text("; against rank 0 to ", metrics::duration_text(provenance->clock_error_ns));
    }
    say("clock", value);
  }

  const Scene& scene_;
  const Timeline& timeline_;
  SpanRef span_;
  const Detail& detail_;
  std::vector<Fact> facts_;
};

}  // namespace

std::string queued_words(const Scene& scene, SpanRef span) {
  const metrics::MatchedCollective* match = span.valid() ? scene.collective_of(span) : nullptr;
  if (match == nullptr) return "";
  const metrics::WaitSplit parts = metrics::split(scene.timeline(), *match, span);
  if (parts.queued_ns <= 0) return "";
  return base::text(metrics::duration_text(parts.queued_ns), ": all its ranks had come, and ", role_label(scene.timeline(), match->queued_behind), " of rank ",
                    scene.timeline().rank(match->queued_behind), " held the multiprocessors; the ", metrics::duration_text(parts.transfer_ns),
                    " that are left are a whole transfer");
}

std::vector<Fact> facts_of(const Scene& scene, SpanRef span) { return span.valid() ? Facts(scene, span).all() : std::vector<Fact>{}; }

}  // namespace shardbook::scene
