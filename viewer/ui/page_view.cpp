// ui/page_view: the face of a page on the screen, and the order of its frame; see page_view.hpp.
#include "viewer/ui/page_view.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "viewer/ui/page_view_state.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::ui {

namespace {

// Longer lines are hard to read.
constexpr float widest_units = 780, margin_units = 18;

}  // namespace

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
  page.lay_out(width, std::max(width, std::floor(room - 2 * px(margin_units))));
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
  page.draw_hits_and_selection();
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
void PageView::scroll_to_mention(const std::string& name) {
  impl_->wanted_mention = name;
  if (!name.empty()) impl_->wanted_y.reset();
}
void PageView::scroll_to_offset(std::size_t text_offset) { impl_->wanted_offset = text_offset; }

void PageView::find(const std::string& query) {
  if (query == impl_->query) return;
  impl_->query = query;
  impl_->hits = query.empty() ? std::vector<Impl::Range>{} : impl_->layout.find(query);
  impl_->hit = -1;
}

int PageView::found() const { return static_cast<int>(impl_->hits.size()); }

void PageView::next_found(int direction) { impl_->next_hit(direction); }
std::string PageView::selected_text() const { return impl_->layout.text_between(impl_->mark, impl_->cursor); }
float PageView::scrolled() const { return impl_->view_top; }
const std::string& PageView::top_anchor() const { return impl_->anchor; }

}  // namespace shardbook::ui
