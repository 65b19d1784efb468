// report/page_parts: bars, pictures and tables; see page_parts.hpp.
#include "engine/report/page_parts.hpp"

#include <algorithm>
#include <set>

#include "engine/base/check.hpp"
#include "engine/report/html.hpp"
#include "engine/report/svg.hpp"

namespace shardbook::report {

using base::text;
using metrics::Exposure;
using metrics::Partition;

namespace {

std::string section(const std::string& title, const std::string& inside) {
  return element("section", "\n" + element("h2", title) + "\n" + inside) + "\n";
}

std::string note(const std::string& words) { return element("p", {{"class", "note"}}, escaped(words)) + "\n"; }

std::string number(const std::string& inside) { return element("td", {{"class", "n"}}, inside); }
std::string cell(const std::string& inside) { return element("td", inside); }
std::string row(const std::string& cells) { return element("tr", cells) + "\n"; }

// Column heads; those that begin with '>' are of numbers.
std::string table(std::initializer_list<const char*> heads, const std::string& rows) {
  std::string head;
  for (std::string_view name : heads) {
    const bool is_number = name.starts_with('>');
    head += element("th", {{"scope", "col"}, {"class", is_number ? "n" : "w"}}, escaped(name.substr(is_number ? 1 : 0)));
  }
  return element("div", {{"class", "scroll"}},
                 element("table", element("thead", element("tr", head)) + "\n" + element("tbody", "\n" + rows))) + "\n";
}

// Whether the CPU has work of its own among the ops of a stream.
bool cpu_works(const Timeline& timeline) {
  return std::any_of(timeline.tracks.begin(), timeline.tracks.end(), [](const timeline::Track& track) {
    return track.kind == timeline::TrackKind::stream && std::count(track.cls.begin(), track.cls.end(), timeline::Class::host) > 0;
  });
}

std::string legend(const std::vector<Look>& all) {
  std::string out;
  for (Look look : all) out += element("span", sample_svg(look) + words_of(look));
  return element("div", {{"class", "legend"}}, out) + "\n";
}

std::string clock_line(const ClockRows& clock) {
  std::string words = clock_text(clock.provenance);
  if (clock.rows.size() > 1 && !clock.provenance.foreign) words += " · ranks' clocks agree to " + metrics::duration_text(clock.largest_error_ns);
  return element("p", element("b", escaped(words)) + " · times in ms") + "\n";
}

std::string part_text(Look look, const char* name, Nanoseconds ns, Nanoseconds window) {
  return element("span", sample_svg(look) + name + " " + milliseconds_data(ns) + " · " + percent(ns, window));
}

// The ranks that are drawn: the first ones, and the one of the longest exposure.
std::vector<Rank> drawn_ranks(const Timeline& timeline, const Figures& figures) {
  std::vector<Rank> ranks;
  for (const timeline::Provenance& rank : timeline.ranks) {
    if (ranks.size() < most_drawn_ranks) ranks.push_back(rank.rank);
  }
  if (figures.exposures.empty()) return ranks;
  const Rank first = timeline.rank(figures.exposures.front().span);
  if (std::find(ranks.begin(), ranks.end(), first) == ranks.end()) ranks.back() = first;
  return ranks;
}

// "ranks 8 to 63": the ranks that are not among `drawn`, as stretches.
std::string rest_text(const Timeline& timeline, const std::vector<Rank>& drawn) {
  std::string out;
  std::size_t count = 0;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    const auto is_drawn = [&](std::size_t at) { return std::find(drawn.begin(), drawn.end(), timeline.ranks[at].rank) != drawn.end(); };
    if (is_drawn(i)) continue;
    std::size_t last = i;
    while (last + 1 < timeline.ranks.size() && !is_drawn(last + 1) && timeline.ranks[last + 1].rank == timeline.ranks[last].rank + 1) ++last;
    out += text(out.empty() ? "" : ", ", timeline.ranks[i].rank);
    if (last > i) out += text(last == i + 1 ? ", " : " to ", timeline.ranks[last].rank);
    count += last - i + 1;
    i = last;
  }
  return count == 0 ? "" : text(count == 1 ? "Not drawn: rank " : "Not drawn: ranks ", out, ". ");
}

// The first exposure with as much before and after it, on the ranks that share it.
std::string near_picture(const Timeline& timeline, const Figures& figures) {
  if (figures.exposures.empty()) return "";
  const Exposure& first = figures.exposures.front();
  const Nanoseconds start = timeline.start(first.span), end = timeline.end(first.span), around = (end - start) * 3 / 2;
  Picture picture{{start - around, end + around}, {timeline.rank(first.span)}, first.span, ""};
  picture.window = {std::max(picture.window.start, std::min(start, figures.drawn.start)),
                    std::min(picture.window.end, std::max(end, figures.drawn.end))};
  if (first.awaited.valid() && timeline.rank(first.awaited) != picture.ranks[0]) picture.ranks.push_back(timeline.rank(first.awaited));
  if (timeline.has_collective(first.span)) {
    for (Rank rank : timeline.groups[timeline.collective(first.span).group].ranks) {
      if (picture.ranks.size() < 3 && timeline.provenance(rank) != nullptr &&
          std::find(picture.ranks.begin(), picture.ranks.end(), rank) == picture.ranks.end()) picture.ranks.push_back(rank);
    }
  }
  picture.title = text("The longest blocking exposure from near: ", figures.sentence);
  const std::string svg = timeline_svg(timeline, picture);
  if (svg.empty()) return "";
  return section("The longest blocking exposure from near",
                 element("figure", {{"class", "scroll"}}, svg) + "\n" +
                     note(text("It is framed; time counts from the left edge. Ranks: its own, and others of the same collective.")));
}

}  // namespace

std::string count_text(std::size_t count, const std::string& noun) { return text(count, " ", noun, count == 1 ? "" : "s"); }

std::string steps_text(const Timeline& timeline, const Figures& figures) {
  if (figures.step) return text("step ", *figures.step);
  const bool foreign = std::any_of(timeline.ranks.begin(), timeline.ranks.end(), [](const timeline::Provenance& rank) { return rank.foreign; });
  if (foreign) return "all device work";   // as `metrics` takes such a trace
  std::set<int> numbers;
  for (const timeline::Step& step : timeline.steps) numbers.insert(step.number);
  if (numbers.empty()) return "all device work";
  if (numbers.size() == 1) return text("step ", *numbers.begin());
  return text("steps ", *numbers.begin(), " to ", *numbers.rbegin());
}

std::string bars(const Timeline& timeline, const Figures& figures) {
  if (figures.rows.empty()) return "";
  Nanoseconds longest = 0;
  for (const metrics::RankRow& one : figures.rows) longest = std::max(longest, one.partition.window.length());
  std::string inside;
  std::size_t drawn = 0;
  for (const ClockRows& clock : by_clock(timeline, figures.rows)) {
    inside += clock_line(clock);
    for (const metrics::RankRow& one : clock.rows) {
      if (drawn++ >= most_bars) continue;
      const Partition& parts = one.partition;
      const Nanoseconds window = parts.window.length();
      inside += element("div", {{"class", "bars"}},
                        element("b", text("rank ", one.rank)) + element("span", {{"class", "dim"}}, " · window " + milliseconds_data(window)) +
                            bar_svg(parts, longest) +
                            element("div", {{"class", "parts"}},
                                    part_text(Look::compute, "compute", parts.compute_ns, window) +
                                        part_text(Look::exposed, "exposed communication", parts.exposed_communication_ns, window) +
                                        part_text(Look::memory, "exposed memory", parts.exposed_memory_ns, window) +
                                        part_text(Look::idle, "idle", parts.idle_ns, window))) + "\n";
    }
  }
  if (drawn > most_bars) inside += note(text("… and ", count_text(drawn - most_bars, "rank"), " more, in the table of figures below."));
  return section("Where the time of each rank went, " + steps_text(timeline, figures), inside);
}

std::string pictures(const Timeline& timeline, const Figures& figures) {
  Picture picture{figures.drawn, drawn_ranks(timeline, figures), {}, ""};
  if (!figures.exposures.empty()) picture.marked = figures.exposures.front().span;
  const std::string what = figures.drawn_step ? text("step ", *figures.drawn_step) : "all device work";
  picture.title = text("Timeline of ", what, ": a row a stream of each rank");
  const std::string svg = timeline_svg(timeline, picture);
  if (svg.empty()) return section("The timeline", note("Nothing ran on a device in this timeline."));
  const std::string words = text(rest_text(timeline, picture.ranks), "Time counts from the begin of what is drawn. Spans too narrow for a shape of ",
                                 "their own are drawn together, as columns as high as the share of time in which they run. ",
                                 figures.exposures.empty() ? "" : "The sign ▼ stands over the longest blocking exposure. ",
                                 "Point at a span to read its name, duration and source.");
  std::vector<Look> shown{Look::compute, Look::communication, Look::memory, Look::exposed, Look::idle};
  if (cpu_works(timeline)) shown.push_back(Look::cpu);
  return section("The timeline, " + what,
                 legend(shown) +
                     element("figure", {{"class", "scroll"}}, svg) + "\n" + note(words)) +
         near_picture(timeline, figures);
}

std::string kinds_table(const Timeline& timeline, const Figures& figures) {
  base::Nanoseconds all = 0;
  for (const metrics::ExposedKind& kind : figures.kinds) all += kind.exposed_ns;
  if (all == 0) return "";
  std::string rows;
  for (std::size_t i = 0; i < std::min(figures.kinds.size(), most_kinds); ++i) {
    const metrics::ExposedKind& kind = figures.kinds[i];
    const std::string line = timeline::line_text(timeline, kind.line);
    rows += row(element("td", {{"class", "op"}}, escaped(shortened(kind.name, 120))) + number(text(kind.spans)) +
                number(percent(kind.exposed_ns, all)) + number(milliseconds_data(kind.exposed_ns)) + number(milliseconds_data(kind.waiting_ns)) +
                cell(line.empty() ? "–" : escaped(line)));
  }
  return section("Which communication was exposed",
                 note("All ranks together. Each exposed nanosecond of a rank has one owner, the communication that began first; waiting is the part "
                      "before the last rank of a collective had come.") +
                     table({"kind", ">spans", ">share", ">exposed, ms", ">waiting, ms", "issued at"}, rows));
}

std::string exposure_table(const Timeline& timeline, const Figures& figures) {
  if (figures.exposures.empty()) return "";
  std::string rows;
  for (std::size_t i = 0; i < std::min(figures.exposures.size(), most_exposures); ++i) {
    const Exposure& exposure = figures.exposures[i];
    const int layer = timeline.detail(exposure.span).layer, step = timeline.step(exposure.span);
    rows += row(number(text(timeline.rank(exposure.span))) + number(step >= 0 ? text(step) : "–") + number(layer >= 0 ? text(layer) : "–") +
                element("td", {{"class", "op"}}, escaped(shortened(op_name(timeline, exposure.span), 48))) +
                number(milliseconds_data(exposure.exposed_ns)) + number(milliseconds_data(exposure.blocking_ns)) +
                element("td", {{"class", "words"}}, escaped(shortened(metrics::sentence(timeline, exposure), 500))));
  }
  std::string words = text("Of ", count_text(figures.exposures.size(), "exposed span"), ", longest blocking first. Exposed: no compute of its rank ran ",
                           "meanwhile. Blocking: the part of that which the step waited for (it is on the critical path across ranks).");
  if (figures.inferred) words += " This trace doesn't record what a stream waited for; the reasons are inferred from what ended last before.";
  return section("The largest exposures", note(words) + table({">rank", ">step", ">layer", "op", ">exposed, ms", ">blocking, ms", "what happened"}, rows));
}

std::string op_table(const Figures& figures) {
  if (figures.ops.empty()) return "";
  std::string rows;
  OpRow rest;
  for (std::size_t i = 0; i < figures.ops.size(); ++i) {
    const OpRow& op = figures.ops[i];
    if (i >= most_ops) {
      rest.count += op.count;
      rest.sum_ns += op.sum_ns;
      continue;
    }
    rows += row(element("td", {{"class", "op"}}, escaped(shortened(op.name, 120))) + element("td", {{"class", "w"}}, sample_svg(look_of(op.cls)) + name_of(op.cls)) +
                number(text(op.count)) + number(milliseconds_data(op.median_ns)) + number(milliseconds_data(op.sum_ns)));
  }
  if (figures.ops.size() > most_ops) {
    rows += row(cell(text("… ", count_text(figures.ops.size() - most_ops, "op"), " more")) + cell("") + number(text(rest.count)) + number("–") +
                number(milliseconds_data(rest.sum_ns)));
  }
  return section("The ops", note("All ranks together; an op belongs to a rank's window if it begins in it. Ops of several streams run at one time, so sums may exceed the window.") +
                                table({"op", "class", ">count", ">median, ms", ">sum, ms"}, rows));
}

std::string metrics_tables(const Timeline& timeline, const Figures& figures) {
  std::string inside = note("Each nanosecond of a rank's window has one owner: compute, else exposed communication, else exposed memory, else idle. "
                            "So the four sum to the window. Overlap is the part of communication that ran under compute.");
  std::size_t printed = 0;
  for (const ClockRows& clock : by_clock(timeline, figures.rows)) {
    std::string rows;
    for (const metrics::RankRow& one : clock.rows) {
      if (printed++ >= most_table_ranks) continue;
      const Partition& parts = one.partition;
      rows += row(number(text(one.rank)) + number(milliseconds_data(parts.compute_ns)) + number(milliseconds_data(parts.exposed_communication_ns)) +
                  number(milliseconds_data(parts.exposed_memory_ns)) + number(milliseconds_data(parts.idle_ns)) +
                  number(milliseconds_data(parts.window.length())) + number(milliseconds_data(parts.communication_ns)) +
                  number(milliseconds_data(parts.overlapped_ns)) + number(percent(parts.overlapped_ns, parts.communication_ns)));
    }
    inside += clock_line(clock) + table({">rank", ">compute", ">exposed communication", ">exposed memory", ">idle", ">= window", ">communication",
                                         ">of it overlapped", ">overlap"}, rows);
  }
  if (printed > most_table_ranks) inside += note(text("… and ", count_text(printed - most_table_ranks, "rank"), " more: `shardbook metrics` prints all."));
  return section("The figures of each rank, " + steps_text(timeline, figures), inside);
}

}  // namespace shardbook::report
