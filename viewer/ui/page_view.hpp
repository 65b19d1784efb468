// ui/page_view: a laid out page on the screen.
//
// Lays a page::Document out once for its width and scale, then draws only the boxes in sight. Text can
// be selected and copied (Ctrl+C), found (marks on all hits), links clicked or reached by Tab and Enter:
// the raw target is returned and the desk resolves it. Code is highlighted, diagrams are drawn where they
// stand; one that is not understood is a box with line and reason.
// While it has the keys, it acts itself on text.copy, text.select_all and the four scroll commands.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "viewer/page/diagram_layout.hpp"
#include "viewer/page/document.hpp"
#include "viewer/page/flow.hpp"

namespace shardbook::ui {

// A picture that a page shows, ready to be drawn; pixels as in its file.
struct Image {
  ImTextureID texture{};
  float width = 0, height = 0;
};
// Who can make one of a file: the stage, which has the graphics. Called again for the same path, it returns the
// same. Without a loader, or where it finds none, a box with the path is drawn.
using ImageLoader = std::function<std::optional<Image>(const std::string& path)>;
void set_image_loader(ImageLoader loader);

class PageView {
 public:
  PageView();
  ~PageView();
  PageView(PageView&&) noexcept;
  PageView& operator=(PageView&&) noexcept;

  void set(page::Document document, const std::string& folder);   // folder: of images
  const page::Document& document() const;
  // In the current child window, its whole content region. Returns the target of a link that was
  // clicked, or "".
  std::string draw();
  void scroll_to(const std::string& anchor);      // at the next draw
  // To the first place that names a span of the book or a file: its excerpt, a link to it, or its name in the text.
  void scroll_to_mention(const std::string& name);
  void scroll_to_offset(std::size_t text_offset);
  void find(const std::string& query);            // marks; "" = none
  int found() const;                              // number of hits
  void next_found(int direction);
  std::string selected_text() const;
  float scrolled() const;                         // points of the page above what is in sight
  const std::string& top_anchor() const;          // of the part that is in sight: for history

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A diagram alone, with its upper left corner at `at` on the screen, its tooltips and links included; returns
// the link that was clicked, or "".
std::string draw_picture(const page::Picture& picture, ImVec2 at, float zoom);

// Source text: line numbers, highlighting, one marked line, to which it scrolls if asked. Lines are selected by
// dragging, and copied by Ctrl+C.
struct CodeLines;
struct CodeView {
  std::string text, language;
  int first_line = 1;
  int marked = 0;                 // line number, 0 = none
  bool scroll = false;            // to the marked line; reset when done
  bool picks = false;             // a click selects its line, with Shift up to it; each line is a spot, "L142"
  int from = 0, to = 0;           // selected lines, both included, in the order selected; 0: none
  bool reveal = false;            // brings `to` in sight; reset when done
  int low() const { return from < to ? from : to; }
  int high() const { return from < to ? to : from; }
  std::shared_ptr<CodeLines> made;   // draw_code's own: the text cut into coloured pieces
};
void draw_code(CodeView& code, ImVec2 size);

}  // namespace shardbook::ui
