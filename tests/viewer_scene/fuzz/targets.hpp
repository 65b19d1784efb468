// What must hold of a scene, of its answers, and of notes.json, whatever the bytes they come from: used by the fuzz
// targets, and by fuzz_corpus_test on the kept corpus.
//
// Which questions are asked of a scene follows from its bytes (a sum of them seeds the numbers), so a file that was
// found asks the same ones again.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/timeline/fuzz/targets.hpp"
#include "viewer/scene/area.hpp"
#include "viewer/scene/compare.hpp"
#include "viewer/scene/find.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/sidecar.hpp"

namespace shardbook::scene::fuzz {

using timeline::fuzz::require;

class Asker {
 public:
  Asker(const Scene& scene, std::uint64_t seed) : scene_(scene), timeline_(scene.timeline()), random_(seed) {
    choices_.fold_alike = false;
    for (const RankScene& rank : scene.ranks()) choices_.open.insert(row_name(RowKind::rank, rank.rank));
    rows_ = scene.rows(choices_);
    // A run of many rows is asked about some of them.
    std::shuffle(rows_.begin(), rows_.end(), random_);
    if (rows_.size() > most_rows) rows_.resize(most_rows);
  }

  void ask() {
    figures();
    for (const Row& row : rows_) {
      draw(row);
      point(row);
    }
    spans();
    areas();
    words();
    others();
  }

 private:
  static constexpr std::size_t most_rows = 24;

  std::uint64_t any(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  Nanoseconds any_time() {
    const Window whole = scene_.whole();
    const Nanoseconds length = std::max<Nanoseconds>(whole.length(), 1);
    return whole.start - length / 4 + static_cast<Nanoseconds>(any(static_cast<std::uint64_t>(length) * 3 / 2 + 2));
  }
  // Now and then empty, or a single nanosecond; else at any scale.
  Window any_window() {
    const Nanoseconds start = any_time();
    const auto all = static_cast<std::uint64_t>(std::max<Nanoseconds>(scene_.whole().length(), 1)) * 2;
    return {start, start + static_cast<Nanoseconds>(any(2 + (all >> any(48))))};
  }
  SpanRef any_span() {
    const auto track = static_cast<std::uint32_t>(any(timeline_.tracks.size()));
    if (timeline_.tracks.empty() || timeline_.tracks[track].size() == 0) return {};
    return {track, static_cast<std::uint32_t>(any(timeline_.tracks[track].size()))};
  }
  bool there(SpanRef span) const { return span.track < timeline_.tracks.size() && span.index < timeline_.tracks[span.track].size(); }

  // A rank's parts of any window are those of the command line.
  void figures() {
    for (std::size_t r = 0; r < std::min<std::size_t>(scene_.ranks().size(), 8); ++r) {
      const RankScene& rank = scene_.ranks()[r];
      for (const Window window : {scene_.whole(), any_window(), any_window()}) {
        const metrics::Partition ours = rank.partition(window), theirs = metrics::partition(timeline_, rank.rank, window);
        require(ours.compute_ns == theirs.compute_ns && ours.exposed_communication_ns == theirs.exposed_communication_ns &&
                    ours.exposed_memory_ns == theirs.exposed_memory_ns && ours.idle_ns == theirs.idle_ns,
                "the picture and the command line agree");
      }
      rank.busy_within(any_window(), any(100));
    }
  }

  void draw(const Row& row) {
    for (int turn = 0; turn < 4; ++turn) {
      Window window = turn == 0 ? scene_.whole() : any_window();
      if (window.length() <= 0) window.end = window.start + 1;
      TimeView view{static_cast<double>(window.start), static_cast<double>(window.end), static_cast<float>(1 + any(2000)), static_cast<int>(any(600))};
      if (turn == 3) view.end = view.start + 0.01 * static_cast<double>(1 + any(1000));      // less than a nanosecond a pixel
      if (!(view.end > view.start)) continue;
      std::vector<Item> items;
      scene_.items(row, view, items);
      const std::size_t most = std::max<std::size_t>(8, view.most > 0 ? static_cast<std::size_t>(view.most) : static_cast<std::size_t>(view.width / 3));
      require(items.size() <= most + 4 * static_cast<std::size_t>(row.depth), "no more items than were asked for");
      for (const Item& item : items) {
        require(item.x0 >= 0 && item.x1 <= view.width && item.x0 <= item.x1, "an item lies within the plot");
        require(item.count >= 1 && item.depth >= 0, "an item stands for something");
        require(!item.span.valid() || there(item.span), "an item's span is there");
        float sum = 0;
        for (const float share : item.busy) {
          require(share >= 0 && share <= 1, "a share is one");
          sum += share;
        }
        require(sum <= 1.001f, "no more is busy than there is time");
      }
      const std::array<Nanoseconds, 4> busy = scene_.busy(row, window);
      Nanoseconds sum = 0;
      for (const Nanoseconds part : busy) {
        require(part >= 0, "busy time is not negative");
        sum += part;
      }
      require(sum <= window.length(), "no more is busy than there is time");
    }
  }

  void point(const Row& row) {
    for (int turn = 0; turn < 4; ++turn) {
      const Nanoseconds time = any_time();
      for (const SpanRef span : {span_at(scene_, row, time, static_cast<int>(any(4)) - 1, static_cast<Nanoseconds>(any(1000))), nearest_on(scene_, row, time)}) {
        require(!span.valid() || there(span), "what is under a point is there");
      }
    }
    const std::optional<Row> same = scene_.row_of(row.name);
    require(same.has_value() && same->kind == row.kind && same->track == row.track, "a row is found by its name");
  }

  void spans() {
    for (int turn = 0; turn < 12; ++turn) {
      const SpanRef span = any_span();
      if (!span.valid()) continue;
      require(span_of_name(scene_, span_name(scene_, span)) == span, "a span is found by its name");
      for (const SpanRef near : {next_on_track(scene_, span), previous_on_track(scene_, span)}) require(!near.valid() || there(near), "a neighbour is there");
      const Arrows arrows = arrows_of(scene_, span);
      for (const Arrow& arrow : arrows.in) require(arrow.to == span && there(arrow.from) && !arrow.words.empty(), "an arrow leads here");
      for (const Arrow& arrow : arrows.out) require(arrow.from == span && there(arrow.to) && !arrow.words.empty(), "an arrow leads away");
      for (const Fact& fact : facts_of(scene_, span)) require(!fact.value.empty(), "a fact says something");
      const std::vector<SpanRef> exposed = exposed_in(scene_, step_at(scene_, static_cast<double>(scene_.timeline().start(span))));
      const int next = exposed_after(exposed, place_in(exposed, span), turn % 3 - 1);
      require(exposed.empty() ? next == -1 : there(exposed.at(static_cast<std::size_t>(next))), "the next exposed span is there");
    }
  }

  void areas() {
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<Row> chosen;
      for (const Row& row : rows_) {
        if (any(3) == 0) chosen.push_back(row);
      }
      const Window window = turn == 0 ? scene_.whole() : any_window();
      for (const LabelRow& label : area_figures(scene_, chosen, window).labels) {
        require(label.count > 0 && label.least <= label.median && label.median <= label.p95 && label.p95 <= label.most, "quantiles ascend");
        require(label.inside >= 0 && label.inside <= label.sum, "no more is inside than there is");
      }
    }
  }

  void words() {
    std::string query = any(2) == 0 ? "layer 1" : "";
    if (timeline_.strings.size() > 1) query += " " + std::string(timeline_.strings[static_cast<std::uint32_t>(any(timeline_.strings.size()))]);
    const Found found = find(scene_, query, any(2) == 0, 1 + any(200), 1 + static_cast<int>(any(50)));
    require(found.spans.size() <= static_cast<std::size_t>(found.total), "no more is found than there is");
    std::int64_t counted = 0;
    for (const std::int64_t count : found.histogram.counts) counted += count;
    require(found.total == 0 || counted == found.total, "the histogram holds all that was found");
    const Found less = narrowed(scene_, found, found.median, found.most);
    require(less.spans.size() <= found.spans.size(), "narrowed is no more");
  }

  void others() {
    for (const float share : scene_.minimap(1 + static_cast<int>(any(300)))) require(share >= 0 && share <= 1, "a share is one");
    scene_.rows(scene_.first_choices());
    RowChoices pinned;
    for (const Row& row : rows_) pinned.pinned.insert(row.name);
    require(scene_.rows(pinned).size() >= rows_.size(), "what is pinned is shown");
    const int step = scene_.steps().empty() ? 0 : scene_.steps()[any(scene_.steps().size())].number;
    const Comparison same = compare(scene_, scene_, step, step);
    for (const Nanoseconds difference : exposed_difference(scene_, scene_, same, 1 + static_cast<int>(any(100)))) require(difference == 0, "a run does not differ from itself");
    require(scene_.memory() > 0, "a scene takes memory");
  }

  const Scene& scene_;
  const Timeline& timeline_;
  std::mt19937_64 random_;
  RowChoices choices_;
  std::vector<Row> rows_;
};

// A trace (the next rank's file after a byte 0x1e) or a run.tlb, made into a scene and asked about.
inline void check_scene(std::string_view bytes) {
  base::Result<Timeline> read = base::Error{"nothing was read"};
  if (bytes.starts_with("SHARD")) {
    const std::string file = timeline::fuzz::mended_columns(bytes);
    std::vector<std::uint64_t> words((file.size() + 7) / 8);                        // aligned to 8
    std::copy(file.begin(), file.end(), reinterpret_cast<char*>(words.data()));
    read = timeline::read_columns_bytes({reinterpret_cast<const char*>(words.data()), file.size()}, "run.tlb");
  } else {
    read = timeline::fuzz::read_trace(bytes);
  }
  constexpr std::size_t most_spans = 5000, most_ranks = 64;
  if (!read || read.value().spans() == 0 || read.value().ranks.empty()) return;
  if (read.value().spans() > most_spans || read.value().ranks.size() > most_ranks) return;
  const std::shared_ptr<const Scene> scene = Scene::make(std::move(read).value(), nullptr, "fuzz");
  Asker(*scene, timeline::fnv1a(bytes)).ask();
}

// notes.json beside a run. What cannot be read is moved aside whole; what was read is written, and read again.
inline void check_sidecar(std::string_view bytes) {
  namespace fs = std::filesystem;
  static const std::string folder = tests::scratch_folder();
  fs::create_directories(folder);
  const std::string path = folder + "/notes.json";
  std::ofstream(path, std::ios::binary) << bytes;
  const base::Result<Sidecar> read = read_sidecar(path);
  if (read) {
    require(write_sidecar(read.value(), path).ok(), "notes can be written");
    const base::Result<Sidecar> again = read_sidecar(path);
    require(again.ok() && (again.value() == read.value() || !std::isfinite(read.value().view_start) || !std::isfinite(read.value().view_end)),
            "notes are read as they were written");
  } else {
    require(!read.error().empty() && !fs::exists(path) && fs::file_size(path + ".unreadable") == bytes.size(), "what cannot be read is kept aside");
  }
  fs::remove_all(folder);
}

}  // namespace shardbook::scene::fuzz
