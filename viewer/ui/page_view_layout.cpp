// ui/page_view_layout: where each block of a page stands.
//
// A page is laid out once for its width and letters; a resize or a new scale lays it out anew, and what stood at the
// top stands there again. Diagrams and pictures say here how large they want to be.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "viewer/page/diagram.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/page_view_state.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::ui {

using page::Block;
using page::FontKind;

namespace {

ImageLoader& image_loader() {
  static ImageLoader loader;
  return loader;
}

// Words of a diagram can still be read at this size.
constexpr float smallest_zoom = 0.7F;

// A row that is too long for the page, as small as it may be, goes from top to bottom where it fits so.
page::Picture picture_of(const std::string& text, float width) {
  page::LayoutOptions options;
  options.width = width;
  page::Diagram diagram = page::parse_diagram(text);
  page::Picture picture = page::layout_diagram(diagram, measure(), options);
  if (!picture.error.empty()) return page::error_picture(picture.error, text, measure());
  const bool is_row = diagram.kind == page::DiagramKind::flowchart && (diagram.direction == "LR" || diagram.direction == "RL");
  if (!is_row || picture.width * smallest_zoom <= width) return picture;
  diagram.direction = "TB";
  page::Picture column = page::layout_diagram(diagram, measure(), options);
  return column.error.empty() && column.width * smallest_zoom <= width ? column : picture;
}

}  // namespace

void set_image_loader(ImageLoader loader) { image_loader() = std::move(loader); }

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
  // One that is wider than the page is made smaller, as long as it can be read; the rest is scrolled to.
  Diagram made;
  made.picture = picture_of(block.text, width);
  made.zoom = std::clamp(width / std::max(1.0F, made.picture.width), smallest_zoom, 1.0F);
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

}  // namespace shardbook::ui
