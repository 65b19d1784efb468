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
constexpr float smallest_zoom = 0.6F;

}  // namespace

void set_image_loader(ImageLoader loader) { image_loader() = std::move(loader); }

std::optional<Image> PageView::Impl::image_of(const std::string& target) const {
  if (!image_loader() || target.empty()) return std::nullopt;
  return image_loader()(folder.empty() ? target : folder + "/" + target);
}

// A row stays a row: one that is too long for the page is made smaller, and scrolled where it would be too small to read.
// Only a gantt chart is another one in another width; all others are laid out once.
const page::Picture& PageView::Impl::picture_of(const Block& block, float width) {
  const auto known = pictures.find(&block);
  if (known != pictures.end() && (known->second.width < 0 || known->second.width == width)) return known->second.picture;
  page::LayoutOptions options;
  options.width = width;
  const page::Diagram diagram = page::parse_diagram(block.text);
  KeptPicture made{page::layout_diagram(diagram, measure(), options), diagram.kind == page::DiagramKind::gantt ? width : -1};
  if (!made.picture.error.empty()) made.picture = page::error_picture(made.picture.error, block.text, measure());
  return (pictures[&block] = std::move(made)).picture;
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
  made.picture = picture_of(block, width);
  made.zoom = std::clamp(width / std::max(1.0F, made.picture.width), smallest_zoom, 1.0F);
  const std::pair<float, float> size = {made.picture.width * made.zoom, made.picture.height * made.zoom};
  diagrams[&block] = std::move(made);
  return size;
}

void PageView::Impl::lay_out(float width, float wide) {
  const float line = measure().line_height(FontKind::body);
  if (laid_width == width && laid_wide == wide && laid_line == line) return;

  // What stood at the top stands there again.
  std::optional<std::uint32_t> top;
  if (laid_width >= 0 && view_top > 1) {
    const auto [first, last] = layout.visible(view_top, view_top + view_height);
    for (std::size_t i = first; i < last && !top; ++i) {
      if (layout.boxes[i].y >= view_top) top = layout.boxes[i].begin;
    }
  }
  if (laid_line != line) pictures.clear();
  laid_width = width;
  laid_wide = wide;
  laid_line = line;
  diagrams.clear();
  page::FlowOptions options;
  options.width = width;
  options.wide = wide;
  options.size_of = [this](const Block& block, float most) { return size_of(block, most); };
  layout = page::flow(document, options, measure());
  sideways.assign(layout.regions.size(), 0);
  if (!query.empty()) hits = layout.find(query);
  if (top && wanted_anchor.empty() && wanted_mention.empty() && !wanted_offset) wanted_offset = *top;
}

// Of the excerpt, the link or the words that name it, whichever comes first; the line above it is shown, too. -1: none.
float PageView::Impl::mention_y() const {
  float y = -1;
  const auto take = [&](float at) { y = y < 0 ? at : std::min(y, at); };
  for (const page::Decoration& one : layout.decorations) {
    if (one.kind == page::Decoration::Kind::span_header && one.block != nullptr && one.block->target == wanted_mention) take(one.y);
  }
  for (const page::TextBox& box : layout.boxes) {
    if (box.link >= 0 && layout.links[static_cast<std::size_t>(box.link)].find(wanted_mention) != std::string::npos) take(box.y);
  }
  if (y >= 0) return std::max(0.0F, y - laid_line);
  const auto found = layout.find(wanted_mention);
  if (found.empty()) return -1;
  const auto boxes = layout.boxes_of(found.front().first, found.front().second, measure());
  return boxes.empty() ? -1 : std::max(0.0F, boxes.front().y - laid_line);
}

void PageView::Impl::follow_wishes() {
  float y = -1;
  if (!wanted_anchor.empty()) y = layout.anchor_y(wanted_anchor);
  if (!wanted_mention.empty()) y = mention_y();
  if (wanted_offset) {
    const auto at = static_cast<std::uint32_t>(std::min(*wanted_offset, layout.text.size()));
    const auto boxes = layout.boxes_of(at, std::min<std::uint32_t>(at + 1, static_cast<std::uint32_t>(layout.text.size())), measure());
    if (!boxes.empty()) y = boxes.front().y;
  }
  if (wanted_y) y = *wanted_y;
  wanted_anchor.clear();
  wanted_mention.clear();
  wanted_offset.reset();
  wanted_y.reset();
  if (y >= 0) ImGui::SetScrollY(std::max(0.0F, std::floor(y)));
}

}  // namespace shardbook::ui
