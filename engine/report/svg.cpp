// report/svg: rows, axes and bars; see svg.hpp.
#include "engine/report/svg.hpp"

#include <algorithm>
#include <map>

#include "engine/base/check.hpp"
#include "engine/report/html.hpp"

namespace shardbook::report {

using base::text;

namespace {

constexpr int picture_width = 1180, gutter = 130, share_gutter = 50;
constexpr int stream_height = 18, thin_height = 12, gap = 3, axis_height = 20, rank_height = 20;
constexpr std::size_t most_streams = 12;      // of a rank

std::string text_at(const char* style, double x, double y, std::string_view words, const char* anchor = "start") {
  return element("text", {{"class", style}, {"x", coordinate(x)}, {"y", coordinate(y)}, {"text-anchor", anchor}}, escaped(words));
}

std::string line_at(double x, double from, double to) {
  return element("line", {{"class", "grid"}, {"x1", coordinate(x)}, {"x2", coordinate(x)}, {"y1", coordinate(from)}, {"y2", coordinate(to)}}, "");
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const Picture& picture)
      : timeline_(timeline), picture_(picture), scale_{picture.window, gutter, picture_width - gutter - share_gutter} {}

  std::string done() {
    y_ = 18 + axis_height;
    for (Rank rank : picture_.ranks) draw(rank);
    const std::string size = text("0 0 ", picture_width, " ", y_ + axis_height);
    // The grid lies under the rows.
    return element("svg", {{"class", "timeline"}, {"viewBox", size}, {"role", "img"}, {"aria-label", picture_.title}},
                   element("title", escaped(picture_.title)) + clocks() + axes() + rows_ + mark_);
  }

 private:
  void draw(Rank rank) {
    const timeline::Provenance* provenance = timeline_.provenance(rank);
    if (provenance == nullptr) return;
    // A rank of another clock than the first says so itself.
    std::string name = text("rank ", rank);
    if (clock_text(*provenance) != clock_text(*timeline_.provenance(picture_.ranks.front()))) name += " · " + clock_text(*provenance);
    rows_ += text_at("rank", 4, y_ + 14, name);
    y_ += rank_height;
    streams(rank);

    const metrics::DeviceSets sets = metrics::clip(metrics::device_sets(timeline_, rank), scale_.window);
    row("exposed", items_of(metrics::exposed_communication(sets), Look::exposed), thin_height);
    row("idle", items_of(metrics::idle(sets, scale_.window), Look::idle), thin_height);
    y_ += 4;
  }

  // A row a stream, its lanes joined.
  void streams(Rank rank) {
    struct Stream {
      std::string name;
      std::vector<Item> items;
    };
    std::map<std::int64_t, Stream> streams;
    for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
      const timeline::Track& track = timeline_.tracks[t];
      if (track.rank != rank || track.kind != timeline::TrackKind::stream) continue;
      for (std::uint32_t i = 0; i < track.size(); ++i) {
        const Interval time{std::max(track.start[i], scale_.window.start), std::min(track.end[i], scale_.window.end)};
        if (!is_op_of_stream(track.cls[i]) || time.length() <= 0) continue;
        Stream& stream = streams[track.id];
        stream.name = track.name.starts_with("stream ") ? track.name.substr(7) : track.name;
        stream.items.push_back({time, look_of(track.cls[i]), {t, i}});
      }
    }
    std::size_t left = std::min(streams.size(), most_streams);
    for (const auto& [id, stream] : streams) {
      if (left-- == 0) {
        rows_ += text_at("dim", gutter, y_ + 11, text("… and ", streams.size() - most_streams, " streams more, which are not drawn"));
        y_ += thin_height + gap;
        break;
      }
      row(stream.name, stream.items, stream_height);
    }
  }

  static std::vector<Item> items_of(const base::Intervals& times, Look look) {
    std::vector<Item> items;
    for (const Interval& time : times) items.push_back({time, look, {}});
    return items;
  }

  void row(const std::string& name, const std::vector<Item>& items, int height) {
    std::vector<Interval> times;
    for (const Item& item : items) times.push_back(item.time);
    const Nanoseconds busy = base::length(base::union_of(std::move(times)));
    rows_ += text_at("row", 14, y_ + height / 2.0 + 4, shortened(name, 18));
    rows_ += text_at("share", picture_width - 2, y_ + height / 2.0 + 4, percent(busy, scale_.window.length()), "end");
    rows_ += element("g", {{"transform", text("translate(0 ", y_, ")")}},
                     element("rect", {{"class", "lane"}, {"x", std::to_string(gutter)}, {"y", "0"}, {"width", std::to_string(scale_.width)},
                                      {"height", std::to_string(height)}}, "") +
                         row_svg(timeline_, items, scale_, height));
    for (const Item& item : items) {
      if (picture_.marked.valid() && item.span == picture_.marked) mark(item, height);
    }
    y_ += height + gap;
  }

  // A frame, and a sign that is found also where the frame is a hair.
  void mark(const Item& item, int height) {
    const double x = scale_.x(item.time.start), width = std::max(2.0, scale_.x(item.time.end) - x), middle = x + width / 2;
    mark_ += element("rect", {{"class", "mark"}, {"x", coordinate(x - 1)}, {"y", text(y_ - 1)}, {"width", coordinate(width + 2)},
                              {"height", text(height + 2)}}, "");
    mark_ += element("path", {{"class", "sign"}, {"d", text("M", coordinate(middle - 6), " ", y_ - 12, "h12l-6 9z")}}, "");
  }

  std::string clocks() const {
    if (picture_.ranks.empty()) return "";
    const timeline::Provenance* first = timeline_.provenance(picture_.ranks.front());
    if (first == nullptr) return "";
    return text_at("clock", 4, 13, text(clock_text(*first), " · ", metrics::duration_text(scale_.window.length()), " from left to right")) +
           text_at("dim", picture_width - 2, 13, "busy", "end");
  }

  // Ticks at round times after the window's begin, above and below, with a line through the rows.
  std::string axes() const {
    const Nanoseconds at_least = scale_.window.length() / 14;
    Nanoseconds tick = 1;
    for (int turn = 0; tick < at_least; ++turn) tick = turn % 3 == 1 ? tick / 2 * 5 : tick * 2;   // 1, 2, 5, 10 ...
    std::string out;
    for (Nanoseconds at = 0; at <= scale_.window.length(); at += tick) {
      const double x = scale_.x(scale_.window.start + at);
      out += line_at(x, 18 + axis_height - 5, y_);
      for (int y : {18 + 12, y_ + 13}) out += text_at("tick", x, y, at == 0 ? "0" : metrics::duration_text(at), "middle");
    }
    return out;
  }

  const Timeline& timeline_;
  const Picture& picture_;
  Scale scale_;
  int y_ = 0;
  std::string rows_, mark_;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const Picture& picture) {
  return picture.window.length() <= 0 ? "" : Drawing(timeline, picture).done();
}

std::string bar_svg(const metrics::Partition& parts, Nanoseconds longest) {
  constexpr int width = 1180, height = 22;
  if (longest <= 0) return "";
  const std::pair<Look, Nanoseconds> all[] = {{Look::compute, parts.compute_ns},
                                              {Look::exposed, parts.exposed_communication_ns},
                                              {Look::memory, parts.exposed_memory_ns},
                                              {Look::idle, parts.idle_ns}};
  std::string inside;
  Nanoseconds before = 0;
  for (const auto& [look, ns] : all) {
    const double from = static_cast<double>(before) / static_cast<double>(longest) * (width - 2) + 1;
    before += ns;
    const double to = static_cast<double>(before) / static_cast<double>(longest) * (width - 2) + 1;
    if (ns <= 0) continue;
    const std::string name = look == Look::memory ? "exposed memory" : words_of(look);
    inside += element("rect", {{"class", style_of(look)}, {"x", coordinate(from)}, {"y", "1"}, {"width", coordinate(to - from)},
                               {"height", std::to_string(height - 2)}},
                      element("title", escaped(text(name, " · ", milliseconds(ns), " ms · ", percent(ns, parts.window.length())))));
  }
  return element("svg", {{"class", "bar"}, {"viewBox", text("0 0 ", width, " ", height)}, {"role", "img"},
                         {"aria-label", "compute, exposed communication, exposed memory, idle"}}, inside);
}

std::string patterns_svg() {
  const auto pattern = [](const char* id, int size, const char* turn, const std::string& inside) {
    return element("pattern", {{"id", id}, {"width", std::to_string(size)}, {"height", std::to_string(size)},
                               {"patternUnits", "userSpaceOnUse"}, {"patternTransform", turn}}, inside);
  };
  const auto ground = [](const char* style, int size) {
    return element("rect", {{"class", style}, {"width", std::to_string(size)}, {"height", std::to_string(size)}}, "");
  };
  const std::string hatch = pattern("hatch", 5, "rotate(45)", ground("hatch-ground", 5) + element("rect", {{"class", "hatch-line"}, {"width", "1.6"}, {"height", "5"}}, ""));
  const std::string cross = pattern("cross", 5, "rotate(45)", ground("cross-ground", 5) + element("rect", {{"class", "cross-line"}, {"width", "1.2"}, {"height", "5"}}, "") +
                                                                  element("rect", {{"class", "cross-line"}, {"width", "5"}, {"height", "1.2"}}, ""));
  const std::string dots = pattern("dots", 5, "rotate(0)", ground("dots-ground", 5) + element("circle", {{"class", "dots-dot"}, {"cx", "2.5"}, {"cy", "2.5"}, {"r", "1.1"}}, ""));
  return element("svg", {{"class", "patterns"}, {"width", "0"}, {"height", "0"}, {"aria-hidden", "true"}}, element("defs", hatch + cross + dots));
}

std::string sample_svg(Look look) {
  return element("svg", {{"class", "sample"}, {"viewBox", "0 0 26 14"}, {"width", "26"}, {"height", "14"}, {"aria-hidden", "true"}},
                 element("rect", {{"class", style_of(look)}, {"x", "1"}, {"y", "1"}, {"width", "24"}, {"height", "12"}}, ""));
}

}  // namespace shardbook::report
