// scene/rows: the tree of rows, and what of it is shown; see rows.hpp.
#include "viewer/scene/rows.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "engine/base/check.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using timeline::Track;
using timeline::TrackKind;

const char* name_of(RowKind kind) {
  switch (kind) {
    case RowKind::rank: return "rank";
    case RowKind::exposed: return "exposed";
    case RowKind::idle: return "idle";
    case RowKind::critical: return "critical";
    case RowKind::stream: return "stream";
    case RowKind::marks: return "marks";
    case RowKind::host: return "host";
    case RowKind::memory: return "memory";
  }
  return "?";
}

std::string row_name(RowKind kind, Rank rank, std::int64_t id, std::int32_t lane) {
  const std::string of_lane = lane > 0 ? base::text(".", lane) : "";
  switch (kind) {
    case RowKind::rank: return base::text("r", rank);
    case RowKind::stream: return base::text("r", rank, ".s", id, of_lane);
    case RowKind::marks: return base::text("r", rank, ".m", id, of_lane);
    case RowKind::host: return base::text("r", rank, ".h", id, of_lane);
    default: return base::text("r", rank, ".", name_of(kind));
  }
}

namespace {

// "0", "0 to 3", "0, 2 and 5".
std::string ranks_text(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (j - i >= 2) {
      parts.push_back(base::text(ranks[i], " to ", ranks[j]));
    } else {
      for (std::size_t k = i; k <= j; ++k) parts.push_back(std::to_string(ranks[k]));
    }
    i = j + 1;
  }
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += base::text(i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ", parts[i]);
  return out;
}

RowKind row_kind(TrackKind kind) {
  switch (kind) {
    case TrackKind::stream: return RowKind::stream;
    case TrackKind::host: return RowKind::host;
    case TrackKind::marks: return RowKind::marks;
  }
  return RowKind::marks;
}

// "stream 20 fsdp" is called fsdp: the number stays in the row's name and in its hint.
std::string name_without_number(const Track& track) {
  const std::string number = base::text("stream ", track.id);
  if (!std::string_view(track.name).starts_with(number)) return track.name;
  std::string name = track.name.substr(number.size());
  name.erase(0, name.find_first_not_of(' '));
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

}  // namespace

// A stream that has no name is called after what runs on it: compute, or its collectives' group.
std::string Scene::title_of(const Track& track) const {
  std::string title = track.name;
  if (track.kind == TrackKind::host && title.empty()) title = base::text("thread ", track.id);
  if (track.kind != TrackKind::host) title = name_without_number(track);
  if (track.kind == TrackKind::stream && title.empty()) {
    std::array<std::size_t, 3> of_class{};
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (is_device_work(track.cls[i])) ++of_class[static_cast<std::size_t>(track.cls[i])];
      if (group == 0 && track.collective[i] != 0) group = timeline_.groups[timeline_.collectives[track.collective[i]].group].name;
    }
    const auto most = std::max_element(of_class.begin(), of_class.end()) - of_class.begin();
    const std::string_view named = group != 0 ? timeline_.strings[group] : "";
    // Groups of PyTorch are numbers or hashes, which say nothing.
    const bool is_word = !named.empty() && named.size() < 16 && std::isalpha(static_cast<unsigned char>(named.front())) != 0;
    title = of_class[static_cast<std::size_t>(most)] == 0 ? "" : most == 0 ? "compute" : most == 2 ? "copies" : is_word ? std::string(named) : "communication";
    title += base::text(title.empty() ? "stream " : " · stream ", track.id);
  }
  if (track.kind == TrackKind::marks && title.empty()) title = base::text("marks of stream ", track.id);
  if (track.lane > 0) title += base::text(" (lane ", track.lane + 1, ")");
  return title;
}

Row Scene::rank_row(const RankScene& rank) const {
  Row row;
  row.kind = RowKind::rank;
  row.rank = rank.rank;
  row.name = row_name(RowKind::rank, rank.rank);
  row.title = base::text("rank ", rank.rank);
  row.can_open = true;
  return row;
}

// All rows below a rank's own, hidden ones left out.
void Scene::add_rank_rows(const RankScene& rank, const RowChoices& choices, std::vector<Row>& rows) const {
  const auto add = [&](RowKind kind, std::string name, std::string title, std::int32_t track, int depth) {
    if (choices.hidden.contains(name) || choices.hidden.contains(name_of(kind))) return;
    Row row;
    row.kind = kind;
    row.rank = rank.rank;
    row.track = track;
    row.name = std::move(name);
    row.title = std::move(title);
    row.level = 1;
    row.depth = depth;
    rows.push_back(std::move(row));
  };
  const auto derived = [&](RowKind kind, const char* title) { add(kind, row_name(kind, rank.rank), title, -1, 1); };
  if (!rank.communication.empty()) derived(RowKind::exposed, "exposed communication");
  if (rank.ever_busy()) derived(RowKind::idle, "idle");
  if (!path_.pieces.empty()) derived(RowKind::critical, "critical path");
  for (const RowKind kind : {RowKind::stream, RowKind::marks}) {
    for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
      const Track& track = timeline_.tracks[t];
      if (track.rank != rank.rank || row_kind(track.kind) != kind || track.size() == 0) continue;
      add(kind, row_name(kind, rank.rank, track.id, track.lane), titles_[t], static_cast<std::int32_t>(t), indices_[t].levels());
    }
  }
  if (std::any_of(timeline_.counters.begin(), timeline_.counters.end(), [&](const auto& counter) { return counter.rank == rank.rank; })) {
    derived(RowKind::memory, "memory in use");
  }
  for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
    const Track& track = timeline_.tracks[t];
    if (track.rank != rank.rank || track.kind != TrackKind::host || track.size() == 0) continue;
    add(RowKind::host, row_name(RowKind::host, rank.rank, track.id, track.lane), titles_[t], static_cast<std::int32_t>(t),
        indices_[t].levels());
  }
}

std::vector<Row> Scene::rows(const RowChoices& choices) const {
  std::vector<Row> out;
  // Pinned ones, in the order of their names.
  for (const std::string& name : choices.pinned) {
    std::optional<Row> row = row_of(name);
    if (!row) continue;
    row->pinned = true;
    row->level = 0;
    row->can_open = false;
    if (row->kind != RowKind::rank) row->title = base::text("rank ", row->rank, " · ", row->title);
    out.push_back(std::move(*row));
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (choices.fold_alike && folded_[r]) continue;
    Row row = rank_row(ranks_[r]);
    if (choices.hidden.contains(row.name)) continue;
    row.is_open = choices.open.contains(row.name);
    if (choices.fold_alike && !alike_[r].empty()) {
      row.alike = alike_[r];
      row.title += base::text(" (like it: ", ranks_text(row.alike), ")");
    }
    const bool open = row.is_open;
    out.push_back(std::move(row));
    if (open) add_rank_rows(ranks_[r], choices, out);
  }
  return out;
}

RowChoices Scene::first_choices() const {
  RowChoices choices;
  choices.open = {row_name(RowKind::rank, ranks_.front().rank)};
  choices.hidden = {name_of(RowKind::host), name_of(RowKind::marks), name_of(RowKind::memory)};
  choices.fold_alike = ranks_.size() > 8;
  // A run without device work is its host rows.
  const bool any_device = std::any_of(ranks_.begin(), ranks_.end(), [](const RankScene& rank) { return rank.ever_busy(); });
  if (!any_device) choices.hidden.clear();
  return choices;
}

std::optional<Row> Scene::row_of(const std::string& name) const {
  Rank number = -1;
  const auto [end, error] = std::from_chars(name.data() + std::min<std::size_t>(1, name.size()), name.data() + name.size(), number);
  if (name.empty() || name[0] != 'r' || error != std::errc()) return std::nullopt;
  const RankScene* of = rank(number);
  if (of == nullptr) return std::nullopt;
  std::vector<Row> rows{rank_row(*of)};
  add_rank_rows(*of, {}, rows);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? std::nullopt : std::optional<Row>(*found);
}

}  // namespace shardbook::scene
