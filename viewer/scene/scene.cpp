// scene/scene: what is derived of a run, made once; see scene.hpp.
#include "viewer/scene/scene.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.hpp"
#include "engine/timeline/cores.hpp"
#include "viewer/scene/alike.hpp"
#include "viewer/scene/path_window.hpp"

namespace shardbook::scene {

using timeline::Track;
using timeline::TrackKind;

namespace {

void tell(Progress* progress, const char* stage, float fraction) {
  if (progress == nullptr) return;
  progress->stage.store(stage, std::memory_order_relaxed);
  // Of several threads the one that is farthest counts.
  for (float known = progress->fraction.load(); known < fraction && !progress->fraction.compare_exchange_weak(known, fraction);) {}
}

bool stopped(const Progress* progress) { return progress != nullptr && progress->stop.load(std::memory_order_relaxed); }

Intervals all_of(const Coverage& coverage) { return coverage.within(coverage.extent()); }

}  // namespace

metrics::Partition RankScene::partition(Window window) const {
  metrics::Partition out;
  out.window = window;
  out.compute_ns = compute.busy(window);
  out.communication_ns = communication.busy(window);
  out.exposed_communication_ns = exposed.busy(window);
  out.overlapped_ns = out.communication_ns - out.exposed_communication_ns;
  out.exposed_memory_ns = exposed_memory.busy(window);
  out.idle_ns = std::max<Nanoseconds>(window.length(), 0) - out.compute_ns - out.exposed_communication_ns - out.exposed_memory_ns;
  return out;
}

Interval RankScene::extent() const {
  Interval out;
  for (const Coverage* set : {&compute, &exposed, &exposed_memory, &cpu}) {
    if (set->empty()) continue;
    const Interval extent = set->extent();
    out = out.length() > 0 ? Interval{std::min(out.start, extent.start), std::max(out.end, extent.end)} : extent;
  }
  return out;
}

std::optional<Intervals> RankScene::busy_within(Window window, std::size_t most) const {
  Intervals out;
  for (const Coverage* set : {&compute, &exposed, &exposed_memory}) {
    const Intervals part = set->within(window, most + 1);
    if (part.size() > most) return std::nullopt;
    out = out.empty() ? part : base::unite(out, part);
  }
  return out;
}

std::shared_ptr<const Scene> Scene::make(Timeline timeline, std::shared_ptr<const timeline::RunInfo> info, std::string name, Progress* progress,
                                         std::shared_ptr<const Unpacked> unpacked) {
  SHARDBOOK_CHECK(!timeline.ranks.empty(), "a scene of a timeline without ranks");
  const std::shared_ptr<Scene> scene(new Scene);
  scene->timeline_ = std::move(timeline);
  scene->info_ = std::move(info);
  scene->name_ = std::move(name);
  scene->unpacked_ = std::move(unpacked);
  tell(progress, "indexing rows", read_share);
  scene->make_indices(progress);
  if (stopped(progress)) return scene;
  scene->make_windows();
  tell(progress, "matching collectives", 0.8f);
  scene->make_collectives();
  if (stopped(progress)) return scene;
  tell(progress, "finding the critical path", 0.9f);
  scene->make_path();
  scene->make_lookups();
  make_alike(*scene, scene->alike_, scene->folded_);
  // Of a run of usual size the causes of idle time are there before they are asked for; of others when a rank is opened.
  if (scene->timeline_.spans() <= idle_causes_at_once) {
    for (const RankScene& rank : scene->ranks_) scene->idle_causes(rank.rank);
  }
  tell(progress, "done", 1);
  return scene;
}

void Scene::make_indices(Progress* progress) {
  indices_.resize(timeline_.tracks.size());
  std::atomic<std::size_t> made{0};
  timeline::on_all_cores(timeline_.tracks.size(), [&](std::size_t t) {
    if (stopped(progress)) return;
    indices_[t] = TrackIndex(timeline_.tracks[t]);
    tell(progress, "indexing rows", read_share + 0.15f * static_cast<float>(++made) / static_cast<float>(timeline_.tracks.size()));
  });
  for (const timeline::Provenance& provenance : timeline_.ranks) {
    ranks_.emplace_back().rank = provenance.rank;
    links_.push_back(std::make_unique<LazyLinks>());
  }
  bands_.resize(ranks_.size());
  timeline::on_all_cores(ranks_.size(), [&](std::size_t r) {
    if (stopped(progress)) return;
    make_rank(ranks_[r]);
    bands_[r] = bands_of(timeline_, ranks_[r].rank);
  });
  for (const Track& track : timeline_.tracks) titles_.push_back(title_of(track));
}

void Scene::make_rank(RankScene& rank) {
  // A class that only one track has is that track's own coverage.
  const std::array<Coverage*, 3> sets{&rank.compute, &rank.communication, &rank.memory};
  bool shared = true;
  for (std::size_t c = 0; c < sets.size(); ++c) {
    int tracks = 0;
    for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
      const Track& track = timeline_.tracks[t];
      if (track.rank != rank.rank || track.kind != TrackKind::stream) continue;
      if (indices_[t].classes_overlap) tracks += 2;
      if (indices_[t].classes[c].empty()) continue;
      ++tracks;
      *sets[c] = indices_[t].classes[c];
    }
    if (tracks > 1) {
      *sets[c] = {};
      shared = false;
    }
  }
  metrics::DeviceSets intervals;
  if (!shared) {
    intervals = metrics::device_sets(timeline_, rank.rank);
    if (rank.compute.empty()) rank.compute = Coverage(intervals.compute);
    if (rank.communication.empty()) rank.communication = Coverage(intervals.communication);
    if (rank.memory.empty()) rank.memory = Coverage(intervals.memory);
  } else {
    intervals = {all_of(rank.compute), all_of(rank.communication), all_of(rank.memory)};
  }

  std::vector<Interval> of_cpu;
  for (const Track& track : timeline_.tracks) {
    if (track.rank != rank.rank || track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (track.cls[i] == timeline::Class::host) of_cpu.push_back({track.start[i], track.end[i]});
    }
  }
  if (!of_cpu.empty()) rank.cpu = Coverage(base::union_of(std::move(of_cpu)));

  // What no compute covers, what neither covers: shared too where nothing is covered.
  rank.exposed = rank.compute.empty() ? rank.communication : Coverage(metrics::exposed_communication(intervals));
  if (!intervals.memory.empty()) rank.exposed_memory = Coverage(base::subtract(intervals.memory, base::unite(intervals.compute, intervals.communication)));
}

void Scene::make_windows() {
  bool any = false;
  const auto widen = [&](Interval extent) {
    if (extent.end <= extent.start) return;
    whole_ = any ? Window{std::min(whole_.start, extent.start), std::max(whole_.end, extent.end)} : extent;
    any = true;
  };
  for (const RankScene& rank : ranks_) widen(rank.extent());
  // Only host rows, or only marks: they are the whole.
  for (std::size_t t = 0; t < timeline_.tracks.size() && whole_.length() == 0; ++t) {
    for (const TrackIndex& index : indices_) {
      for (const Coverage& coverage : index.classes) widen(coverage.extent());
    }
    break;
  }
  std::map<int, Window> by_number;
  for (const timeline::Step& step : timeline_.steps) {
    const auto [place, is_new] = by_number.try_emplace(step.number, Window{step.start, step.end});
    if (!is_new) place->second = {std::min(place->second.start, step.start), std::max(place->second.end, step.end)};
  }
  for (const auto& [number, window] : by_number) steps_.push_back({number, window});
}

void Scene::make_collectives() {
  collectives_ = metrics::match_collectives(timeline_, &disagreement_);
  straggler_ = metrics::straggler(timeline_, collectives_);
}

void Scene::make_path() {
  const PathWindow chosen = choose_path_window(timeline_, whole_, steps_, most_path_spans);
  path_is_partial_ = chosen.partial;
  if (!chosen.partial) {
    path_ = metrics::critical_path(timeline_, collectives_, chosen.window);
    exposures_ = metrics::exposures(timeline_, path_);
  } else {
    const Part part = cut(timeline_, collectives_, chosen.window);
    path_ = metrics::critical_path(part.timeline, chosen.window);
    exposures_ = metrics::exposures(part.timeline, path_);
    for (metrics::PathPiece& piece : path_.pieces) piece.span = part.whole(piece.span);
    for (metrics::Exposure& exposure : exposures_) {
      exposure.span = part.whole(exposure.span);
      exposure.awaited = part.whole(exposure.awaited);
    }
  }
  path_.pieces.shrink_to_fit();

  // The pieces of each rank. Those of one rank may meet in time only at their ends.
  std::map<Rank, Intervals> times;
  for (std::uint32_t i = 0; i < path_.pieces.size(); ++i) {
    const metrics::PathPiece& piece = path_.pieces[i];
    if (!piece.span.valid()) continue;
    times[piece.rank].push_back(piece.time);
  }
  for (RankScene& rank : ranks_) {
    rank.critical = Coverage(base::union_of(std::move(times[rank.rank])));
    for (std::uint32_t i = 0; i < path_.pieces.size(); ++i) {
      if (path_.pieces[i].span.valid() && path_.pieces[i].rank == rank.rank) rank.pieces.push_back(i);
    }
  }
}

void Scene::make_lookups() {
  match_of_.assign(timeline_.collectives.size(), SpanRef::none);
  for (std::uint32_t i = 0; i < collectives_.size(); ++i) {
    for (SpanRef span : collectives_[i].spans) match_of_[timeline_.tracks[span.track].collective[span.index]] = i;
  }
  for (std::uint32_t i = 0; i < exposures_.size(); ++i) exposure_lookup_.emplace_back(exposures_[i].span, i);
  std::sort(exposure_lookup_.begin(), exposure_lookup_.end());
  exposure_lookup_.shrink_to_fit();
  edges_by_from_.resize(timeline_.edges.size());
  std::iota(edges_by_from_.begin(), edges_by_from_.end(), 0u);
  std::sort(edges_by_from_.begin(), edges_by_from_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline_.edges[a].from != timeline_.edges[b].from ? timeline_.edges[a].from < timeline_.edges[b].from : a < b;
  });
}

std::uint32_t Scene::look_up(const Lookup& lookup, SpanRef span) {
  const auto found = std::lower_bound(lookup.begin(), lookup.end(), span, [](const auto& entry, SpanRef wanted) { return entry.first < wanted; });
  return found != lookup.end() && found->first == span ? found->second : SpanRef::none;
}

const RankScene* Scene::rank(Rank rank) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank, [](const RankScene& entry, Rank wanted) { return entry.rank < wanted; });
  return found != ranks_.end() && found->rank == rank ? &*found : nullptr;
}

const timeline::Links& Scene::links(Rank rank) const {
  const RankScene* of = this->rank(rank);
  SHARDBOOK_CHECK(of != nullptr, "links of rank ", rank, ", which the timeline does not have");
  LazyLinks& lazy = *links_[static_cast<std::size_t>(of - ranks_.data())];
  std::call_once(lazy.once, [&] { lazy.links = std::make_unique<timeline::Links>(timeline_, rank); });
  return *lazy.links;
}

const Bands& Scene::bands(Rank rank) const {
  static const Bands none;
  const RankScene* of = this->rank(rank);
  const auto place = of == nullptr ? bands_.size() : static_cast<std::size_t>(of - ranks_.data());
  return place < bands_.size() ? bands_[place] : none;
}

const IdleCauses* Scene::idle_causes(Rank rank) const {
  const RankScene* of = this->rank(rank);
  if (of == nullptr) return nullptr;
  std::size_t spans = 0;
  for (const Track& track : timeline_.tracks) spans += track.rank == rank ? track.size() : 0;
  if (spans > most_path_spans) return nullptr;
  const timeline::Links& links = this->links(rank);
  LazyLinks& lazy = *links_[static_cast<std::size_t>(of - ranks_.data())];
  std::call_once(lazy.idle_once, [&] { lazy.idle = std::make_unique<IdleCauses>(timeline_, links, rank); });
  return lazy.idle.get();
}

std::vector<std::uint32_t> Scene::edges_from(SpanRef span) const {
  auto at = std::lower_bound(edges_by_from_.begin(), edges_by_from_.end(), span,
                             [&](std::uint32_t edge, SpanRef wanted) { return timeline_.edges[edge].from < wanted; });
  std::vector<std::uint32_t> out;
  for (; at != edges_by_from_.end() && timeline_.edges[*at].from == span; ++at) out.push_back(*at);
  return out;
}

const metrics::MatchedCollective* Scene::collective_of(SpanRef span) const {
  if (!span.valid() || !timeline_.has_collective(span)) return nullptr;
  const std::uint32_t place = match_of_[timeline_.tracks[span.track].collective[span.index]];
  if (place == SpanRef::none) return nullptr;
  // In a damaged timeline two spans may name the same entry.
  const std::vector<SpanRef>& spans = collectives_[place].spans;
  return std::find(spans.begin(), spans.end(), span) == spans.end() ? nullptr : &collectives_[place];
}

int Scene::exposure_place(SpanRef span) const {
  const std::uint32_t place = look_up(exposure_lookup_, span);
  return place == SpanRef::none ? -1 : static_cast<int>(place);
}

const metrics::Exposure* Scene::exposure_of(SpanRef span) const {
  const int place = exposure_place(span);
  return place < 0 ? nullptr : &exposures_[static_cast<std::size_t>(place)];
}

std::vector<float> Scene::minimap(int columns) const {
  std::vector<float> out(static_cast<std::size_t>(std::max(columns, 0)), 0.0f);
  if (out.empty() || whole_.length() <= 0) return out;
  std::vector<Nanoseconds> edges(out.size() + 1), busy(out.size());
  // Of many intervals on the grid of the pyramid: a column then begins up to its width early.
  std::size_t intervals = 0;
  for (const RankScene& rank : ranks_) intervals += rank.exposed.intervals();
  const double column = static_cast<double>(whole_.length()) / static_cast<double>(out.size());
  const Nanoseconds slice = column >= 1 && intervals > 16 * out.size() ? Nanoseconds{1} << std::min(std::ilogb(column), 61) : 1;
  edges.front() = whole_.start;
  for (std::size_t i = 1; i < edges.size(); ++i) {
    edges[i] = std::max((whole_.start + static_cast<Nanoseconds>(column * static_cast<double>(i))) & ~(slice - 1), edges[i - 1]);
  }
  edges.back() = whole_.end;
  for (const RankScene& rank : ranks_) {
    rank.exposed.columns(edges, busy);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double all = static_cast<double>(edges[i + 1] - edges[i]) * static_cast<double>(ranks_.size());
      if (all > 0) out[i] += static_cast<float>(static_cast<double>(busy[i]) / all);
    }
  }
  for (float& share : out) share = std::min(share, 1.0f);
  return out;
}

std::vector<const timeline::Counter*> Scene::counters_of(Rank rank) const {
  std::vector<const timeline::Counter*> out;
  for (const timeline::Counter& counter : timeline_.counters) {
    if (counter.rank == rank) out.push_back(&counter);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return out;
}

std::size_t Scene::memory() const {
  std::size_t sum = timeline_.memory() + heap(ranks_) + heap(indices_) + heap(collectives_) + heap(match_of_) +
                    heap(exposure_lookup_) + heap(edges_by_from_) + heap(path_.pieces) + heap(exposures_);
  for (const TrackIndex& index : indices_) sum += index.memory();
  for (const Bands& bands : bands_) sum += heap(bands.phases) + heap(bands.layers);
  for (const metrics::MatchedCollective& collective : collectives_) sum += heap(collective.spans);
  for (const RankScene& rank : ranks_) {
    // What is shared with a track, or among these, counts once.
    std::vector<const Coverage*> counted;
    for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
      if (timeline_.tracks[t].rank != rank.rank) continue;
      for (const Coverage& coverage : indices_[t].classes) counted.push_back(&coverage);
    }
    for (const Coverage* set : {&rank.compute, &rank.communication, &rank.memory, &rank.exposed, &rank.exposed_memory, &rank.critical}) {
      const bool shared = std::any_of(counted.begin(), counted.end(), [&](const Coverage* other) { return other->shares_storage_with(*set); });
      if (!shared) sum += set->memory();
      counted.push_back(set);
    }
    sum += heap(rank.pieces);
  }
  for (const auto& lazy : links_) {
    if (lazy->idle != nullptr) sum += lazy->idle->memory();
    // Twelve bytes a row with a correlation: links.hpp.
    if (lazy->links == nullptr) continue;
    const Rank rank = ranks_[static_cast<std::size_t>(&lazy - links_.data())].rank;
    for (const Track& track : timeline_.tracks) {
      if (track.rank == rank) sum += 12 * (track.size() - static_cast<std::size_t>(std::count(track.correlation.begin(), track.correlation.end(), 0u)));
    }
  }
  return sum;
}

}  // namespace shardbook::scene
