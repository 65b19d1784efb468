// lanes/band: boxes of phases and layers; see band.hpp.
#include "viewer/lanes/band.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::BandPiece;
using scene::Bands;
using ui::px;
using ui::theme;

namespace {

constexpr float line_units = 17, least_block_units = 54;

std::string spaced(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void join(BandBox& box, const BandBox& next) {
  box.x1 = next.x1;
  box.last = next.last.empty() ? next.brief : next.last;
}

float width_of(const std::string& words) { return ui::measure().width(words, page::FontKind::small); }

// One layer of two digits has room, and two of them.
float least_alone() { return std::ceil(width_of("L88") + px(8)); }
float least_together() { return std::ceil(width_of("L88–88") + px(8)); }

// The rank of the row that is looked at, else the first.
base::Rank rank_of_band(const scene::Scene& scene, const PlotState& state) {
  if (state.selected.valid()) return scene.timeline().rank(state.selected);
  for (const scene::Row& row : state.rows) {
    if (row.name == state.focus_row) return row.rank;
  }
  return scene.ranks().front().rank;
}

// Pieces that end on one pixel are one.
template <class Words>
std::vector<BandBox> boxes_of(const std::vector<BandPiece>& pieces, const scene::TimeView& view, Words words) {
  std::vector<BandBox> boxes;
  int around = 0;
  const BandPiece* before = nullptr;
  each_in_sight(pieces.begin(), pieces.end(), view, [](const BandPiece& piece) { return piece.time; }, [&](const BandPiece& piece, float x0, float x1) {
    if (before != nullptr && (before->phase != piece.phase || before->step != piece.step || before->micro_batch != piece.micro_batch)) ++around;
    before = &piece;
    auto [full, brief] = words(piece);
    const std::string_view block = piece.block;
    boxes.push_back({std::max(0.0f, x0), std::min(view.width, x1), std::move(full), std::move(brief), around, "", block == "attention" ? "attn" : std::string(block)});
    return 1.0f;
  });
  return boxes;
}

// Of phases the step is around: around is the same for all of one step.
std::vector<BandBox> phase_boxes(const scene::Timeline& timeline, const Bands& bands, const scene::TimeView& view) {
  std::vector<BandBox> boxes;
  int around = 0, step = -1;
  each_in_sight(bands.phases.begin(), bands.phases.end(), view, [](const BandPiece& piece) { return piece.time; }, [&](const BandPiece& piece, float x0, float x1) {
    if (!boxes.empty() && piece.step != step) ++around;
    step = piece.step;
    auto [full, brief] = phase_words(timeline, piece, bands.has_micro_batches);
    boxes.push_back({std::max(0.0f, x0), std::min(view.width, x1), std::move(full), std::move(brief), around, "", ""});
    return 1.0f;
  });
  // A phase that has room for its short name stands alone: of "reduce" and "update" together neither would be read.
  return joined(boxes, std::ceil(width_of("upd") + px(8)), least_together());
}

std::vector<BandBox> layer_boxes(const scene::Scene& scene, const Bands& bands, const scene::TimeView& view) {
  const auto words = [&](const BandPiece& piece) { return layer_words(scene.timeline(), piece); };
  // Attention and mlp where at least half of these have room for their words.
  const base::Interval window{static_cast<base::Nanoseconds>(view.start), static_cast<base::Nanoseconds>(view.end)};
  const std::vector<BandPiece> blocks = scene::blocks_in(scene, bands, window, static_cast<std::size_t>(view.width));
  const auto wide = std::count_if(blocks.begin(), blocks.end(), [&](const BandPiece& piece) {
    return static_cast<double>(piece.time.length()) >= px(least_block_units) * view.per_pixel();
  });
  const bool fits = 2 * static_cast<std::size_t>(wide) >= blocks.size();
  return joined(boxes_of(!blocks.empty() && fits ? blocks : bands.layers, view, words), least_alone(), least_together());
}

ImU32 tint(ImU32 colour, unsigned alpha) { return (colour & ~IM_COL32_A_MASK) | (alpha << IM_COL32_A_SHIFT); }

// The phase's own tint, so that forward and backward are told apart from afar.
ImU32 ground_of(const std::string& words, std::size_t place) {
  const auto series = [](std::size_t i) { return tint(theme().series[i], theme().dark ? 90 : 60); };
  if (words.starts_with("forward")) return series(0);
  if (words.starts_with("backward")) return series(3);
  if (words.starts_with("update") || words.starts_with("reduce")) return series(2);
  return place % 2 ? theme().hover : theme().raised;
}

void draw_boxes(ImDrawList* list, const std::vector<BandBox>& boxes, const Frame& line, bool phases) {
  ImFont* font = ui::font(page::FontKind::small);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const BandBox& box = boxes[i];
    const float x0 = line.from.x + box.x0, x1 = std::max(line.from.x + box.x1, x0 + 1);
    list->AddRectFilled({x0, line.from.y + 1}, {x1, line.to.y - 1}, phases ? ground_of(box.words, i) : i % 2 ? theme().hover : theme().raised);
    if (x1 - x0 > 3) list->AddRect({x0, line.from.y + 1}, {x1, line.to.y - 1}, theme().border);
    const std::string words = words_within(box, x1 - x0 - px(6));
    if (words.empty()) continue;
    const float x = std::floor(x0 + std::min(px(5), (x1 - x0 - width_of(words)) / 2));
    list->AddText(font, font->FontSize, {x, std::floor((line.from.y + line.to.y - font->FontSize) / 2)}, theme().text, words.c_str());
    ui::note_words(words);
  }
}

const BandPiece* piece_at(const std::vector<BandPiece>& pieces, base::Nanoseconds time) {
  const auto found = std::partition_point(pieces.begin(), pieces.end(), [&](const BandPiece& piece) { return piece.time.end <= time; });
  return found != pieces.end() && found->time.start <= time ? &*found : nullptr;
}

// "forward · layer 12 · attention", its time, and whose.
void draw_hint(const scene::Scene& scene, const Bands& bands, base::Rank rank, base::Nanoseconds time) {
  const BandPiece* phase = piece_at(bands.phases, time);
  if (phase == nullptr) return;
  const BandPiece* layer = piece_at(bands.layers, time);
  const std::vector<BandPiece> blocks = scene::blocks_in(scene, bands, {time, time + 1}, 256);
  const BandPiece* block = piece_at(blocks, time);
  std::string words = phase_words(scene.timeline(), *phase, bands.has_micro_batches).first;
  if (layer != nullptr) words += " · " + layer_words(scene.timeline(), block != nullptr ? *block : *layer).first;
  words += "\n" + metrics::duration_text((layer != nullptr ? layer : phase)->time.length());
  if (layer != nullptr) words += " of the phase's " + metrics::duration_text(phase->time.length());
  if (phase->step >= 0) words += ", step " + std::to_string(phase->step);
  ui::hint_on_hover(words + ", rank " + std::to_string(rank));
}

}  // namespace

std::vector<BandBox> joined(const std::vector<BandBox>& pieces, float alone, float together) {
  struct Made {
    BandBox box;
    bool narrow = false;                       // of narrow pieces alone
    float width() const { return box.x1 - box.x0; }
  };
  std::vector<Made> made;
  // The last box, if it is still too narrow, joins the one before it.
  const auto settle = [&] {
    if (made.size() < 2) return;
    Made &last = made.back(), &before = made[made.size() - 2];
    if (!last.narrow || !before.narrow || last.box.around != before.box.around || last.width() >= together) return;
    join(before.box, last.box);
    made.pop_back();
  };
  for (const BandBox& piece : pieces) {
    const bool narrow = piece.x1 - piece.x0 < alone, goes_on = narrow && !made.empty() && made.back().narrow && made.back().box.around == piece.around;
    if (goes_on && made.back().width() < together) {
      join(made.back().box, piece);
      continue;
    }
    if (!goes_on) settle();
    made.push_back({piece, narrow});
  }
  settle();
  std::vector<BandBox> boxes;
  for (Made& one : made) boxes.push_back(std::move(one.box));
  return boxes;
}

std::string words_of(const BandBox& box) {
  if (box.last.empty()) return box.words;
  // The letter stands once: L3–7.
  const bool both_layers = box.brief.starts_with("L") && box.last.starts_with("L") && box.brief.find(' ') == std::string::npos;
  return box.last == box.brief ? box.brief : box.brief + "–" + (both_layers ? box.last.substr(1) : box.last);
}

std::string words_within(const BandBox& box, float room) {
  // Of several, one end where there is no room for both: a layer's, which says more than "token embedding".
  const std::string one_end = box.last.empty() ? "" : box.last.starts_with("L") ? "…" + box.last : box.brief + "…";
  for (const std::string& words : {words_of(box), box.last.empty() ? box.brief : one_end, box.last.empty() ? box.least : ""}) {
    if (!words.empty() && width_of(words) <= room) return words;
  }
  return "";
}

std::pair<std::string, std::string> layer_words(const timeline::Timeline& timeline, const BandPiece& piece) {
  if (piece.layer < 0) {
    const std::string name = spaced(timeline.strings[piece.name]);
    return {name, name.substr(0, name.find(' '))};
  }
  const std::string number = std::to_string(piece.layer);
  if (*piece.block != '\0') return {"layer " + number + " · " + piece.block, std::string("L") + number + " " + (std::string_view(piece.block) == "attention" ? "attn" : piece.block)};
  return {"layer " + number, "L" + number};
}

std::pair<std::string, std::string> phase_words(const timeline::Timeline& timeline, const BandPiece& piece, bool micro_batches) {
  const std::string name(timeline.strings[piece.name]);
  std::string brief = name == "forward" ? "fwd" : name == "backward" ? "bwd" : name == "update" ? "upd" : name;
  if (!micro_batches || piece.micro_batch < 0) return {name, brief};
  const std::string number = std::to_string(piece.micro_batch);
  return {name + " · micro-batch " + number, brief + " " + number};
}

float band_height(const scene::Scene& scene, const PlotState& state) {
  const Bands& bands = scene.bands(rank_of_band(scene, state));
  return bands.empty() ? 0 : px(line_units * (bands.layers.empty() ? 1 : 2)) + 1;
}

void draw_band(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Frame& names, const Frame& band) {
  const base::Rank rank = rank_of_band(scene, state);
  const Bands& bands = scene.bands(rank);
  if (bands.empty() || band.height() < px(line_units)) return;
  const Frame upper{band.from, {band.to.x, band.from.y + px(line_units)}}, lower{{band.from.x, upper.to.y}, {band.to.x, upper.to.y + px(line_units)}};
  list->PushClipRect(band.from, band.to, true);
  draw_boxes(list, phase_boxes(scene.timeline(), bands, state.view), upper, true);
  if (!bands.layers.empty()) draw_boxes(list, layer_boxes(scene, bands, state.view), lower, false);
  list->PopClipRect();
  list->AddLine({names.from.x, band.to.y - 1}, {band.to.x, band.to.y - 1}, theme().border);

  // Whose they are stands at the left.
  ImFont* font = ui::font(page::FontKind::small);
  const auto title = [&](const std::string& words, const Frame& line) {
    list->AddText(font, font->FontSize, {names.from.x + px(8), std::floor((line.from.y + line.to.y - font->FontSize) / 2)}, theme().dim, words.c_str());
    ui::note_words(words);
  };
  const std::string of_rank = scene.ranks().size() > 1 ? " of rank " + std::to_string(rank) : "";
  title((bands.of_annotations ? "annotation" : "phase") + of_rank, upper);
  if (!bands.layers.empty()) title("layer", lower);

  ImGui::SetCursorScreenPos(band.from);
  ImGui::InvisibleButton("phases", {band.width(), band.height()});
  ui::note_spot("phases", band.from, band.to);
  if (ImGui::IsItemHovered()) {
    draw_hint(scene, bands, rank, state.view.time_at(ImGui::GetIO().MousePos.x - band.from.x));
  }
}

}  // namespace shardbook::lanes
