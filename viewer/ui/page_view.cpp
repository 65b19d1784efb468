// ui/page_view: a page laid out, moved through and drawn; see page_view.hpp.
#include "viewer/ui/page_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "viewer/page/diagram.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

using page::Block;
using page::Decoration;
using page::FontKind;
using page::Style;
using page::TextBox;

namespace {

// Longer lines are hard to read.
constexpr float widest_units = 780, margin_units = 18;

using Range = std::pair<std::uint32_t, std::uint32_t>;

ImU32 tint(ImU32 colour, float alpha) {
  return (colour & ~IM_COL32_A_MASK) | (static_cast<ImU32>(alpha * 255) << IM_COL32_A_SHIFT);
}

ImU32 colour_of_admonition(const std::string& name) {
  const Theme& colours = theme();
  if (name == "TIP") return colours.good;
  if (name == "WARNING") return colours.warning;
  if (name == "CAUTION") return colours.bad;
  if (name == "IMPORTANT") return colours.paint[static_cast<std::size_t>(scene::Paint::annotation)];
  return colours.link;
}

struct Diagram {
  page::Picture picture;
  float zoom = 1;
};

}  // namespace

struct PageView::Impl {
  page::Document document;
  std::string folder;
  page::FlowLayout layout;
  float laid_width = -1, laid_line = -1;       // what the layout was made for
  std::map<const Block*, Diagram> diagrams;
  std::vector<float> sideways;                 // how far each region is scrolled

  std::uint32_t mark = 0, cursor = 0;          // the selection, between them
  bool dragging = false;
  ImVec2 pressed_at;
  std::vector<Range> hits;
  std::string query;
  int hit = -1;
  int tabbed = -1;                             // the link that Tab came to

  std::string wanted_anchor, anchor;
  std::optional<std::size_t> wanted_offset;
  std::optional<float> wanted_y;

  // What one frame knows.
  ImVec2 origin;                               // of the page on the screen
  float view_top = 0, view_height = 0;         // of what is in sight, in the page
  std::size_t first_box = 0, last_box = 0;     // that may be in sight
  Range seen;                                  // the text that they show

  void lay_out(float width);
  std::pair<float, float> size_of(const Block& block, float width);
  void follow_wishes();
  void look();
  std::string keys();
  std::string mouse();
  void next_link(int direction);
  float shift_of(int region) const { return region < 0 ? 0 : sideways[static_cast<std::size_t>(region)]; }
  std::optional<ImVec2> on_page(ImVec2 screen, int* region) const;
  void draw_decorations(std::string& clicked);
  void draw_decoration(const Decoration& one, std::string& clicked);
  void draw_image(const Decoration& one, ImVec2 low, ImVec2 high);
  std::optional<Image> image_of(const std::string& target) const;
  void draw_marks(std::uint32_t from, std::uint32_t to, ImU32 colour, bool outlined);
  void draw_code_grounds();
  void draw_text_boxes();
  void draw_region_bars();
  Range selection() const { return std::minmax(mark, cursor); }
};

namespace {

ImageLoader& image_loader() {
  static ImageLoader loader;
  return loader;
}

}  // namespace

void set_image_loader(ImageLoader loader) { image_loader() = std::move(loader); }

// --- Layout ---------------------------------------------------------------------------------------
std::optional<Image> PageView::Impl::image_of(const std::string& target) const {
  if (!image_loader() || target.empty()) return std::nullopt;
  return image_loader()(folder.empty() ? target : folder + "/" + target);
}

std::pair<float, float> PageView::Impl::size_of(const Block& block, float width) {
  if (block.kind == Block::Kind::image) {
    // As large as it is, but no wider than the page.
    const std::optional<Image> image = image_of(block.target);
    if (!image) return {std::min(width, px(420)), px(90)};
    const float shown = std::min(width, image->width * scale());
    return {shown, shown * image->height / image->width};
  }
  Diagram made;
  page::LayoutOptions options;
  options.width = width;
  const page::Diagram read = page::parse_diagram(block.text);
  made.picture = page::layout_diagram(read, measure(), options);
  if (!made.picture.error.empty()) made.picture = page::error_picture(made.picture.error, block.text, measure());
  // One that is wider than the page is made smaller, as long as it can be read; the rest is scrolled to.
  made.zoom = std::clamp(width / std::max(1.0F, made.picture.width), 0.7F, 1.0F);
  const std::pair<float, float> size = {made.picture.width * made.zoom, made.picture.height * made.zoom};
  diagrams[&block] = std::move(made);
  return size;
}

void PageView::Impl::lay_out(float width) {
  const float line = measure().line_height(FontKind::body);
  if (laid_width == width && laid_line == line) return;

  // What stood at the top stands there again.
  std::optional<std::uint32_t> top;
  if (laid_width >= 0 && view_top > 1) {
    const auto [first, last] = layout.visible(view_top, view_top + view_height);
    for (std::size_t i = first; i < last && !top; ++i) {
      if (layout.boxes[i].y >= view_top) top = layout.boxes[i].begin;
    }
  }
  laid_width = width;
  laid_line = line;
  diagrams.clear();
  page::FlowOptions options;
  options.width = width;
  options.size_of = [this](const Block& block, float most) { return size_of(block, most); };
  layout = page::flow(document, options, measure());
  sideways.assign(layout.regions.size(), 0);
  if (!query.empty()) hits = layout.find(query);
  if (top && wanted_anchor.empty() && !wanted_offset) wanted_offset = *top;
}

void PageView::Impl::follow_wishes() {
  float y = -1;
  if (!wanted_anchor.empty()) y = layout.anchor_y(wanted_anchor);
  if (wanted_offset) {
    const auto at = static_cast<std::uint32_t>(std::min(*wanted_offset, layout.text.size()));
    const auto boxes = layout.boxes_of(at, std::min<std::uint32_t>(at + 1, static_cast<std::uint32_t>(layout.text.size())), measure());
    if (!boxes.empty()) y = boxes.front().y;
  }
  if (wanted_y) y = *wanted_y;
  wanted_anchor.clear();
  wanted_offset.reset();
  wanted_y.reset();
  if (y >= 0) ImGui::SetScrollY(std::max(0.0F, std::floor(y)));
}

// --- Moving, selecting ----------------------------------------------------------------------------
// A point of the screen in the page's own measure; none outside of what is in sight.
std::optional<ImVec2> PageView::Impl::on_page(ImVec2 screen, int* region) const {
  ImVec2 at(screen.x - origin.x, screen.y - origin.y);
  *region = -1;
  for (std::size_t i = 0; i < layout.regions.size(); ++i) {
    const page::Region& one = layout.regions[i];
    if (at.x < one.x || at.x >= one.x + one.w || at.y < one.y || at.y >= one.y + one.h) continue;
    *region = static_cast<int>(i);
    at.x += sideways[i];
  }
  return at;
}

void PageView::Impl::next_link(int direction) {
  // Boxes with a link, in reading order; a link in several pieces counts once.
  std::vector<int> starts;
  int before = -1;
  for (std::uint32_t index : layout.by_offset) {
    const int link = layout.boxes[index].link;
    if (link >= 0 && link != before) starts.push_back(static_cast<int>(index));
    before = link;
  }
  if (starts.empty()) return;
  const auto now = std::find(starts.begin(), starts.end(), tabbed);
  if (now == starts.end()) {
    // The first one in sight, else the first of all.
    const auto seen = std::find_if(starts.begin(), starts.end(), [&](int i) { return layout.boxes[i].y >= view_top; });
    tabbed = seen != starts.end() ? *seen : starts.front();
  } else {
    const auto count = static_cast<int>(starts.size());
    tabbed = starts[(static_cast<int>(now - starts.begin()) + direction + count) % count];
  }
  const TextBox& box = layout.boxes[tabbed];
  if (box.y < view_top || box.y + box.h > view_top + view_height) wanted_y = box.y - view_height / 3;
}

std::string PageView::Impl::keys() {
  if (!has_keys()) return "";
  for (const Pressed& pressed : pressed_commands()) {
    const std::string_view id = pressed.command->id;
    if (id == "text.select_all") mark = 0, cursor = static_cast<std::uint32_t>(layout.text.size());
    if (id == "text.copy" && mark != cursor) ImGui::SetClipboardText(layout.text_between(mark, cursor).c_str());
    if (id == "scroll.up") ImGui::SetScrollY(view_top - laid_line);
    if (id == "scroll.down") ImGui::SetScrollY(view_top + laid_line);
    if (id == "scroll.page_up") ImGui::SetScrollY(view_top - 0.9F * view_height);
    if (id == "scroll.page_down") ImGui::SetScrollY(view_top + 0.9F * view_height);
  }
  if (ImGui::GetIO().WantTextInput) return "";
  if (is_key_pressed(key_code("Tab")) && !ImGui::GetIO().KeyCtrl) next_link(ImGui::GetIO().KeyShift ? -1 : 1);
  const bool follows = tabbed >= 0 && tabbed < static_cast<int>(layout.boxes.size()) && is_key_pressed(key_code("Enter"), false);
  return follows ? layout.links[layout.boxes[tabbed].link] : "";
}

std::string PageView::Impl::mouse() {
  const ImGuiIO& io = ImGui::GetIO();
  const bool hovered = ImGui::IsWindowHovered();
  int region = -1;
  const std::optional<ImVec2> at = on_page(io.MousePos, &region);
  if (!at || (!hovered && !dragging)) return "";
  const int box = layout.box_at(at->x, at->y);
  const int link = box >= 0 ? layout.boxes[box].link : -1;
  if (hovered && box >= 0) ImGui::SetMouseCursor(link >= 0 ? ImGuiMouseCursor_Hand : ImGuiMouseCursor_TextInput);

  // A region that is wider than the page scrolls by Shift and the wheel, or by a sideways wheel.
  if (hovered && region >= 0) {
    const page::Region& wide = layout.regions[static_cast<std::size_t>(region)];
    const float wheel = io.MouseWheelH != 0 ? io.MouseWheelH : io.KeyShift ? io.MouseWheel : 0;
    float& shift = sideways[static_cast<std::size_t>(region)];
    shift = std::clamp(shift - wheel * px(60), 0.0F, std::max(0.0F, wide.content_width - wide.w));
  }

  // Press, drag, release. Two presses take a word.
  const std::uint32_t here = layout.offset_at(at->x, at->y, measure());
  if (hovered && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    dragging = true;
    pressed_at = io.MousePos;
    tabbed = -1;
    cursor = here;
    if (!io.KeyShift) mark = here;
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) && box >= 0) {
      const auto is_letter = [&](std::uint32_t i) { return (static_cast<unsigned char>(layout.text[i]) & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(layout.text[i])) != 0 || layout.text[i] == '_'; };
      mark = cursor = std::min<std::uint32_t>(here, static_cast<std::uint32_t>(layout.text.size()));
      while (mark > 0 && is_letter(mark - 1)) --mark;
      while (cursor < layout.text.size() && is_letter(cursor)) ++cursor;
      dragging = false;
    }
  }
  const bool moved = std::hypot(io.MousePos.x - pressed_at.x, io.MousePos.y - pressed_at.y) > px(4);
  if (dragging && ImGui::IsMouseDown(ImGuiMouseButton_Left) && moved) {
    cursor = here;
    // Beyond the edge, the page comes along.
    const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
    if (io.MousePos.y < top) ImGui::SetScrollY(view_top - laid_line);
    if (io.MousePos.y > bottom) ImGui::SetScrollY(view_top + laid_line);
  }
  if (dragging && ImGui::IsMouseReleased(ImGuiMouseButton_Left)) {
    dragging = false;
    if (!moved && link >= 0) return layout.links[link];
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) dragging = false;
  return "";
}

// --- Drawing --------------------------------------------------------------------------------------
// Which boxes are in sight?
void PageView::Impl::look() {
  std::tie(first_box, last_box) = layout.visible(view_top, view_top + view_height);
  seen = {static_cast<std::uint32_t>(layout.text.size()), 0};
  for (std::size_t i = first_box; i < last_box; ++i) {
    if (layout.boxes[i].y + layout.boxes[i].h < view_top) continue;
    seen = {std::min(seen.first, layout.boxes[i].begin), std::max(seen.second, layout.boxes[i].end)};
  }
}

void PageView::Impl::draw_image(const Decoration& one, ImVec2 low, ImVec2 high) {
  if (const std::optional<Image> image = image_of(one.name)) {
    ImGui::GetWindowDrawList()->AddImage(image->texture, low, high);
    ImGui::GetWindowDrawList()->AddRect(low, high, theme().border);
    return;
  }
  // What cannot be shown is named.
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, theme().raised, px(4));
  list->AddRect(low, high, theme().border, px(4));
  const std::string title = one.block != nullptr && !one.block->title.empty() ? one.block->title : "a picture";
  draw_text(list, FontKind::body, {low.x + px(14), low.y + px(20)}, theme().text, title);
  draw_text(list, FontKind::small, {low.x + px(14), low.y + px(46)}, theme().dim, one.name);
}

void PageView::Impl::draw_decoration(const Decoration& one, std::string& clicked) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& colours = theme();
  const float x = origin.x + one.x - shift_of(one.region);
  const ImVec2 low(std::floor(x), std::floor(origin.y + one.y)), high(std::floor(x + one.w), std::floor(origin.y + one.y + one.h));
  switch (one.kind) {
    case Decoration::Kind::code_background:
      list->AddRectFilled(low, high, colours.code_ground, px(4));
      list->AddRect(low, high, colours.faint, px(4));
      break;
    case Decoration::Kind::quote_bar: list->AddRectFilled(low, {low.x + px(3), high.y}, colours.border, px(1)); break;
    case Decoration::Kind::admonition_background: list->AddRectFilled(low, high, tint(colour_of_admonition(one.name), 0.07F), px(4)); break;
    case Decoration::Kind::admonition_bar: list->AddRectFilled(low, {low.x + px(3), high.y}, colour_of_admonition(one.name), px(1)); break;
    case Decoration::Kind::table_header: list->AddRectFilled(low, high, colours.raised); break;
    case Decoration::Kind::table_line: list->AddLine({low.x, low.y}, {high.x, low.y}, colours.faint); break;
    case Decoration::Kind::rule: list->AddLine({low.x, low.y}, {high.x, low.y}, colours.border); break;
    case Decoration::Kind::image: draw_image(one, low, high); break;
    case Decoration::Kind::diagram: {
      const auto found = diagrams.find(one.block);
      if (found == diagrams.end()) break;
      const std::string target = draw_picture(found->second.picture, low, found->second.zoom);
      if (!target.empty()) clicked = target;
      break;
    }
    case Decoration::Kind::span_header:
      // Code follows at once: the two are one box.
      list->AddRectFilled(low, {high.x, high.y + px(6)}, colours.raised, px(4), ImDrawFlags_RoundCornersTop);
      list->AddRect(low, {high.x, high.y + px(6)}, colours.faint, px(4), ImDrawFlags_RoundCornersTop);
      list->AddRectFilled(low, {low.x + px(3), high.y}, colours.accent);
      break;
    case Decoration::Kind::task_open:
    case Decoration::Kind::task_done: {
      const bool done = one.kind == Decoration::Kind::task_done;
      const float side = high.x - low.x;
      list->AddRectFilled(low, high, done ? colours.accent : colours.panel, px(3));
      list->AddRect(low, high, done ? colours.accent : colours.dim, px(3));
      const ImVec2 tick[3] = {{low.x + side * 0.22F, low.y + side * 0.52F}, {low.x + side * 0.43F, low.y + side * 0.72F}, {low.x + side * 0.78F, low.y + side * 0.28F}};
      if (done) list->AddPolyline(tick, 3, colours.accent_text, 0, px(1.8F));
      break;
    }
  }
}

void PageView::Impl::draw_decorations(std::string& clicked) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto [first, last] = layout.visible_decorations(view_top, view_top + view_height);
  for (std::size_t i = first; i < last; ++i) {
    const Decoration& one = layout.decorations[i];
    if (one.y + one.h < view_top) continue;
    if (one.region >= 0) {
      const page::Region& region = layout.regions[static_cast<std::size_t>(one.region)];
      list->PushClipRect({origin.x + region.x, origin.y + region.y - 1}, {origin.x + region.x + region.w + 1, origin.y + region.y + region.h + 2}, true);
    }
    draw_decoration(one, clicked);
    if (one.region >= 0) list->PopClipRect();
  }
}

void PageView::Impl::draw_marks(std::uint32_t from, std::uint32_t to, ImU32 colour, bool outlined) {
  // Only what is in sight: a selection may be the whole page.
  from = std::max(from, seen.first);
  to = std::min(to, seen.second);
  if (from >= to) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (const TextBox& piece : layout.boxes_of(from, to, measure())) {
    float x0 = origin.x + piece.x - shift_of(piece.region), x1 = x0 + piece.w;
    if (piece.region >= 0) {
      const page::Region& region = layout.regions[static_cast<std::size_t>(piece.region)];
      x0 = std::max(x0, origin.x + region.x);
      x1 = std::min(x1, origin.x + region.x + region.w);
    }
    if (x0 >= x1) continue;
    const float y = origin.y + piece.y;
    list->AddRectFilled({x0, y}, {x1, y + piece.h}, colour, px(2));
    if (outlined) list->AddRect({x0 - 1, y}, {x1 + 1, y + piece.h}, theme().warning, px(2));
  }
}

// Code within a sentence has a ground of its own, below all words.
void PageView::Impl::draw_code_grounds() {
  for (std::size_t i = first_box; i < last_box; ++i) {
    const TextBox& box = layout.boxes[i];
    if ((box.style & Style::code) == 0 || box.region >= 0) continue;
    const float x = origin.x + box.x, y = origin.y + box.y;
    ImGui::GetWindowDrawList()->AddRectFilled({x - px(2), y + px(1)}, {x + box.w + px(2), y + box.h - px(1)}, theme().hover, px(3));
  }
}

void PageView::Impl::draw_text_boxes() {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& colours = theme();
  int hovered_link = -1, region = -1;
  if (ImGui::IsWindowHovered()) {
    const std::optional<ImVec2> at = on_page(ImGui::GetMousePos(), &region);
    const int box = layout.box_at(at->x, at->y);
    if (box >= 0) hovered_link = layout.boxes[box].link;
  }
  const int tabbed_link = tabbed >= 0 && tabbed < static_cast<int>(layout.boxes.size()) ? layout.boxes[tabbed].link : -1;
  for (std::size_t i = first_box; i < last_box; ++i) {
    const TextBox& box = layout.boxes[i];
    if (box.y + box.h < view_top || box.y > view_top + view_height) continue;
    ImFont* face = font(box.font);
    if (face == nullptr) continue;
    const float x = origin.x + box.x - shift_of(box.region), y = origin.y + box.y;
    const bool clipped = box.region >= 0;
    if (clipped) {
      const page::Region& one = layout.regions[static_cast<std::size_t>(box.region)];
      list->PushClipRect({origin.x + one.x + 1, origin.y + one.y}, {origin.x + one.x + one.w - 1, origin.y + one.y + one.h}, true);
    }
    const bool code = (box.style & Style::code) != 0, link = box.link >= 0;
    const ImU32 ink = link ? colours.link : code ? colours.code[static_cast<std::size_t>(box.token)] : colours.text;
    draw_text(list, box.font, {x, y + std::floor((box.h - face->FontSize) / 2)}, ink, layout.text_of(box));
    if ((box.style & Style::strike) != 0) list->AddLine({x, y + box.h * 0.55F}, {x + box.w, y + box.h * 0.55F}, ink, px(1));
    if (link && (box.link == hovered_link || box.link == tabbed_link)) list->AddLine({x, y + box.h - px(3)}, {x + box.w, y + box.h - px(3)}, ink, px(1));
    if (link && box.link == tabbed_link) list->AddRect({x - px(2), y}, {x + box.w + px(2), y + box.h}, colours.accent, px(3), 0, px(2));
    if (link) note_spot(std::string(layout.text_of(box)), {x, y}, {x + box.w, y + box.h});
    if (clipped) list->PopClipRect();
  }
  if (seen.first < seen.second) note_words(layout.text.substr(seen.first, seen.second - seen.first));
}

// A thin bar under what is wider than the page.
void PageView::Impl::draw_region_bars() {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < layout.regions.size(); ++i) {
    const page::Region& one = layout.regions[i];
    if (one.content_width <= one.w + 1 || one.y + one.h < view_top || one.y > view_top + view_height) continue;
    const float share = one.w / one.content_width, at = sideways[i] / one.content_width;
    const float y = origin.y + one.y + one.h - px(5);
    list->AddRectFilled({origin.x + one.x + at * one.w, y}, {origin.x + one.x + (at + share) * one.w, y + px(3)}, theme().border, px(2));
  }
}

// --- The page -------------------------------------------------------------------------------------
PageView::PageView() : impl_(std::make_unique<Impl>()) {}
PageView::~PageView() = default;
PageView::PageView(PageView&&) noexcept = default;
PageView& PageView::operator=(PageView&&) noexcept = default;

void PageView::set(page::Document document, const std::string& folder) {
  auto made = std::make_unique<Impl>();
  made->document = std::move(document);
  made->folder = folder;
  made->wanted_y = 0;
  impl_ = std::move(made);
}

const page::Document& PageView::document() const { return impl_->document; }

std::string PageView::draw() {
  Impl& page = *impl_;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild("page", ImVec2(0, 0), false, ImGuiWindowFlags_NoNavInputs | ImGuiWindowFlags_AlwaysVerticalScrollbar);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();

  // A column in the middle, no wider than is good to read.
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = std::max(px(120), std::floor(std::min(room - 2 * px(margin_units), px(widest_units))));
  page.lay_out(width);
  const float left = std::max(px(margin_units), std::floor((room - width) / 2)), above = px(12), below = px(60);
  page.follow_wishes();
  page.view_top = std::max(0.0F, ImGui::GetScrollY() - above);
  page.view_height = ImGui::GetWindowHeight();
  const ImVec2 start = ImGui::GetCursorScreenPos();
  page.origin = {start.x + left, std::floor(start.y + above)};
  ImGui::Dummy({1, above + page.layout.height + below});

  // What is wanted, then what is seen.
  std::string clicked = page.mouse();
  const std::string by_key = page.keys();
  if (clicked.empty()) clicked = by_key;
  page.look();
  page.draw_decorations(clicked);
  page.draw_code_grounds();
  const auto in_sight = std::partition_point(page.hits.begin(), page.hits.end(), [&](const Range& hit) { return hit.second <= page.seen.first; });
  for (auto i = static_cast<std::size_t>(in_sight - page.hits.begin()); i < page.hits.size() && page.hits[i].first < page.seen.second; ++i) {
    const bool current = static_cast<int>(i) == page.hit;
    page.draw_marks(page.hits[i].first, page.hits[i].second, tint(theme().warning, current ? 0.34F : 0.20F), current);
  }
  const Range selected = page.selection();
  if (selected.first < selected.second) page.draw_marks(selected.first, selected.second, theme().selection, false);
  page.draw_text_boxes();
  page.draw_region_bars();

  // The part at the top, for the history.
  page.anchor.clear();
  for (const auto& [id, y] : page.layout.anchors) {
    if (y <= page.view_top + px(40)) page.anchor = id;
  }
  ImGui::EndChild();
  return clicked;
}

void PageView::scroll_to(const std::string& anchor) {
  impl_->wanted_anchor = anchor;
  if (anchor.empty()) impl_->wanted_y = 0;
  else impl_->wanted_y.reset();        // a page that was just set would begin at its top
}
void PageView::scroll_to_offset(std::size_t text_offset) { impl_->wanted_offset = text_offset; }

void PageView::find(const std::string& query) {
  if (query == impl_->query) return;
  impl_->query = query;
  impl_->hits = query.empty() ? std::vector<Range>{} : impl_->layout.find(query);
  impl_->hit = -1;
}

int PageView::found() const { return static_cast<int>(impl_->hits.size()); }

void PageView::next_found(int direction) {
  Impl& page = *impl_;
  const int count = found();
  if (count == 0) return;
  if (page.hit < 0) {
    // The first one from what is in sight on, or the last one before it.
    const auto next = std::partition_point(page.hits.begin(), page.hits.end(), [&](const Range& hit) { return hit.first < page.seen.first; });
    const int after = static_cast<int>(next - page.hits.begin());
    page.hit = (direction > 0 ? after : after - 1 + count) % count;
  } else {
    page.hit = (page.hit + direction + count) % count;
  }
  const auto boxes = page.layout.boxes_of(page.hits[page.hit].first, page.hits[page.hit].second, measure());
  if (boxes.empty()) return;
  const float y = boxes.front().y;
  if (y < page.view_top || y > page.view_top + 0.9F * page.view_height) page.wanted_y = std::max(0.0F, y - page.view_height / 3);
}

std::string PageView::selected_text() const { return impl_->layout.text_between(impl_->mark, impl_->cursor); }
const std::string& PageView::top_anchor() const { return impl_->anchor; }

}  // namespace shardbook::ui
