// scene/bands: the phases and layers of a rank, from its compute stream; see bands.hpp.
#include "viewer/scene/bands.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::Detail;
using timeline::Timeline;
using timeline::Track;
using timeline::TrackKind;

namespace {

// Which block of a layer holds a part.
constexpr std::array<std::pair<std::string_view, const char*>, 9> blocks = {{
    {"qkv", "attention"}, {"attention", "attention"}, {"projection", "attention"}, {"q", "attention"}, {"kv", "attention"},
    {"up", "mlp"}, {"activation", "mlp"}, {"down", "mlp"}, {"gate", "mlp"},
}};

const char* known_block(std::string_view part) {
  for (const auto& [name, block] : blocks) {
    if (part == name) return block;
  }
  return "";
}

// The stream of the rank that computes most.
std::int32_t compute_track(const Timeline& timeline, base::Rank rank) {
  std::int32_t best = -1;
  std::size_t most = 0;
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != TrackKind::stream || track.lane != 0) continue;
    const auto computes = static_cast<std::size_t>(std::count(track.cls.begin(), track.cls.end(), Class::compute));
    if (computes <= most) continue;
    most = computes;
    best = static_cast<std::int32_t>(t);
  }
  return best;
}

BandPiece piece_of(const Timeline& timeline, const Track& track, std::size_t i) {
  const Detail& detail = timeline.details[track.detail[i]];
  BandPiece piece;
  piece.time = {track.start[i], track.end[i]};
  piece.step = track.step[i];
  piece.micro_batch = detail.micro_batch;
  piece.layer = detail.layer;
  piece.phase = detail.phase;
  piece.name = detail.layer >= 0 ? 0 : detail.part != 0 ? detail.part : detail.op;
  return piece;
}

bool same_phase(const BandPiece& a, const BandPiece& b) { return a.phase == b.phase && a.step == b.step && a.micro_batch == b.micro_batch; }
bool same_layer(const BandPiece& a, const BandPiece& b) { return same_phase(a, b) && a.layer == b.layer && a.name == b.name; }

template <class Same>
void add(std::vector<BandPiece>& pieces, const BandPiece& piece, Same same) {
  if (!pieces.empty() && same(pieces.back(), piece)) {
    pieces.back().time.end = std::max(pieces.back().time.end, piece.time.end);
  } else {
    pieces.push_back(piece);
  }
}

// Where nothing is computed between two phases, it is the phase of what is sent then, or of what the CPU does: the last
// reduction of backward, the sum of the norm, an update in host memory.
void add_what_runs_beside(const Timeline& timeline, base::Rank rank, Bands& bands) {
  std::vector<BandPiece> pieces;
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != TrackKind::stream || static_cast<std::int32_t>(t) == bands.track) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if ((track.cls[i] != Class::communication && track.cls[i] != Class::host) || timeline.details[track.detail[i]].phase == 0) continue;
      BandPiece piece = piece_of(timeline, track, i);
      piece.name = piece.phase;
      piece.layer = -1;
      // What no phase covers of it.
      auto after = std::partition_point(bands.phases.begin(), bands.phases.end(), [&](const BandPiece& phase) { return phase.time.end <= track.start[i]; });
      for (piece.time.start = track.start[i]; piece.time.start < track.end[i]; ++after) {
        const bool last = after == bands.phases.end();
        piece.time.end = last ? track.end[i] : std::min(track.end[i], after->time.start);
        if (piece.time.end > piece.time.start) pieces.push_back(piece);
        if (last) break;
        piece.time.start = after->time.end;
      }
    }
  }
  if (pieces.empty()) return;
  pieces.insert(pieces.end(), bands.phases.begin(), bands.phases.end());
  std::stable_sort(pieces.begin(), pieces.end(), [](const BandPiece& a, const BandPiece& b) { return a.time.start < b.time.start; });
  bands.phases.clear();
  for (BandPiece& piece : pieces) {
    if (!bands.phases.empty()) piece.time.start = std::max(piece.time.start, bands.phases.back().time.end);
    if (piece.time.length() > 0) add(bands.phases, piece, same_phase);
  }
}

// What a foreign trace has written beside the stream, those of depth 0.
void add_annotations(const Timeline& timeline, base::Rank rank, std::int64_t stream, Bands& bands) {
  for (const Track& track : timeline.tracks) {
    if (track.rank != rank || track.kind != TrackKind::marks || track.id != stream || track.lane != 0) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (track.cls[i] != Class::annotation) continue;
      if (!bands.phases.empty() && track.start[i] < bands.phases.back().time.end) continue;
      BandPiece piece;
      piece.time = {track.start[i], track.end[i]};
      piece.name = track.label[i];
      piece.step = track.step[i];
      if (piece.time.length() > 0) bands.phases.push_back(piece);
    }
  }
  bands.of_annotations = !bands.phases.empty();
}

// "next": what is made ready for the block that follows, as a norm on the way forward.
constexpr const char* of_next = "next";

const char* block_word(const Timeline& timeline, const Detail& detail) {
  const std::string_view part = timeline.strings[detail.part];
  return part == "norm" && timeline.strings[detail.phase] != "backward" ? of_next : known_block(part);
}

// What names no block belongs to the one before it in its layer, or to the one that follows.
void settle_blocks(std::vector<BandPiece>& spans) {
  for (std::size_t i = spans.size(); i-- > 0;) {
    const bool next_is_there = i + 1 < spans.size() && same_layer(spans[i], spans[i + 1]);
    if (spans[i].block == of_next) spans[i].block = next_is_there ? spans[i + 1].block : "";
    const bool first = i == 0 || !same_layer(spans[i], spans[i - 1]);
    if (first && *spans[i].block == '\0' && next_is_there) spans[i].block = spans[i + 1].block;
  }
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (*spans[i].block == '\0' && same_layer(spans[i], spans[i - 1])) spans[i].block = spans[i - 1].block;
  }
}

}  // namespace

std::string block_of(std::string_view part) {
  const char* block = known_block(part);
  return *block ? block : std::string(part);
}

Bands bands_of(const Timeline& timeline, base::Rank rank) {
  Bands bands;
  bands.track = compute_track(timeline, rank);
  if (bands.track < 0) return bands;
  const Track& track = timeline.tracks[static_cast<std::size_t>(bands.track)];
  std::int32_t first_micro_batch = -1;
  for (std::size_t i = 0; i < track.size(); ++i) {
    if (!is_device_work(track.cls[i]) || timeline.details[track.detail[i]].phase == 0 || track.end[i] <= track.start[i]) continue;
    BandPiece piece = piece_of(timeline, track, i);
    if (first_micro_batch < 0) first_micro_batch = piece.micro_batch;
    bands.has_micro_batches |= piece.micro_batch >= 0 && piece.micro_batch != first_micro_batch;
    add(bands.layers, piece, same_layer);
    piece.name = piece.phase;
    piece.layer = -1;
    add(bands.phases, piece, same_phase);
  }
  if (bands.phases.empty()) add_annotations(timeline, rank, track.id, bands);
  else add_what_runs_beside(timeline, rank, bands);
  bands.phases.shrink_to_fit();
  bands.layers.shrink_to_fit();
  return bands;
}

std::vector<BandPiece> blocks_in(const Scene& scene, const Bands& bands, base::Interval window, std::size_t most) {
  std::vector<BandPiece> pieces;
  if (bands.track < 0 || bands.layers.empty()) return pieces;
  const Timeline& timeline = scene.timeline();
  const auto t = static_cast<std::size_t>(bands.track);
  const Track& track = timeline.tracks[t];
  const TrackIndex::Found found = scene.index(t).find(track, window);
  if (found.count() > most) return pieces;
  // A layer's worth before and behind, so that what is cut by the window's edge has its own begin and end.
  constexpr std::uint32_t around = 40;
  const auto last = std::min<std::uint32_t>(found.last + around, static_cast<std::uint32_t>(track.size()));
  std::vector<BandPiece> spans;
  for (std::uint32_t i = found.first > around ? found.first - around : 0; i < last; ++i) {
    const Detail& detail = timeline.details[track.detail[i]];
    if (!is_device_work(track.cls[i]) || detail.phase == 0 || track.end[i] <= track.start[i]) continue;
    spans.push_back(piece_of(timeline, track, i));
    if (detail.layer >= 0) spans.back().block = block_word(timeline, detail);
  }
  settle_blocks(spans);
  for (const BandPiece& span : spans) {
    add(pieces, span, [](const BandPiece& a, const BandPiece& b) { return same_layer(a, b) && std::string_view(a.block) == b.block; });
  }
  std::erase_if(pieces, [&](const BandPiece& piece) { return piece.time.end <= window.start || piece.time.start >= window.end; });
  return pieces;
}

}  // namespace shardbook::scene
