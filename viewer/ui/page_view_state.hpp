// ui/page_view_state: what a page on the screen holds. Private to page_view*.cpp.
//
// page_view_layout.cpp gives each block its place, page_view_move.cpp moves, selects and follows links,
// page_view_draw.cpp draws what is in sight, and page_view.cpp is the face that others call.
// Two measures: points of the page count from its upper left corner, unscrolled; `origin` is that corner on the
// screen. Places in the text are byte offsets into layout.text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/ui/page_view.hpp"

namespace shardbook::ui {

struct PageView::Impl {
  using Range = std::pair<std::uint32_t, std::uint32_t>;   // of the text, [first, second)
  struct Diagram {
    page::Picture picture;
    float zoom = 1;
  };

  struct KeptPicture {
    page::Picture picture;
    float width = -1;                          // that it was made for; -1: it is the same in all
  };

  // --- page_view_layout.cpp: where everything is -----------------------------------------------------
  void lay_out(float width, float wide);       // nothing, where widths and letters are as before
  const page::Picture& picture_of(const page::Block& block, float width);
  std::pair<float, float> size_of(const page::Block& block, float width);
  std::optional<Image> image_of(const std::string& target) const;
  float mention_y() const;
  void follow_wishes();                        // scrolls to what was asked for since the last frame

  // --- page_view_move.cpp: moving, selecting, copying ------------------------------------------------
  std::string keys();                          // both return the link that is followed, or ""
  std::string mouse();
  void next_link(int direction);
  void next_hit(int direction);
  ImVec2 on_page(ImVec2 screen, int* region) const;
  Range selection() const { return std::minmax(mark, cursor); }

  // --- page_view_draw.cpp: what is in sight ----------------------------------------------------------
  void look();                                 // sets first_box, last_box and seen
  void draw_decorations(std::string& clicked);
  void draw_decoration(const page::Decoration& one, std::string& clicked);
  void draw_image(const page::Decoration& one, ImVec2 low, ImVec2 high);
  void draw_code_grounds();
  void draw_hits_and_selection();
  void draw_marks(Range range, ImU32 colour, bool outlined);
  void draw_text_boxes();
  void draw_region_bars();
  float shift_of(int region) const { return region < 0 ? 0 : sideways[static_cast<std::size_t>(region)]; }

  page::Document document;
  std::string folder;                          // of its images
  page::FlowLayout layout;
  float laid_width = -1, laid_wide = -1, laid_line = -1;       // what the layout was made for
  std::map<const page::Block*, Diagram> diagrams;
  std::map<const page::Block*, KeptPicture> pictures;   // in the letters that were laid out last
  std::vector<float> sideways;                 // how far each region is scrolled

  std::uint32_t mark = 0, cursor = 0;          // the selection, between them
  bool dragging = false;
  ImVec2 pressed_at;
  std::vector<Range> hits;
  std::string query;
  int hit = -1;
  int tabbed = -1;                             // the link that Tab came to

  std::string wanted_anchor, wanted_mention, anchor;
  std::optional<std::size_t> wanted_offset;
  std::optional<float> wanted_y;

  // What one frame knows.
  ImVec2 origin;                               // of the page on the screen
  float view_top = 0, view_height = 0;         // of what is in sight, in the page
  std::size_t first_box = 0, last_box = 0;     // that may be in sight
  Range seen;                                  // the text that they show
};

}  // namespace shardbook::ui
