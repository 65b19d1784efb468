// ui/code_view: source text with numbers and colours; see page_view.hpp.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "viewer/page/highlight.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/page_view.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

using page::FontKind;

// The text cut into coloured pieces, and what is selected.
struct CodeLines {
  struct Piece {
    std::size_t begin, end;
    page::TokenKind kind;
  };
  std::string text, language;
  std::vector<std::vector<Piece>> lines;
  std::size_t longest = 0;             // bytes of the longest line
  bool dragging = false;
  float line_height = 0;               // when it was drawn last
};

namespace {

std::shared_ptr<CodeLines> cut(const std::string& text, const std::string& language) {
  auto made = std::make_shared<CodeLines>();
  made->text = text;
  made->language = language;
  made->lines.emplace_back();
  std::size_t line_begin = 0;
  for (const page::Token& token : page::highlight(text, language)) {
    // A token may hold line ends: comments, strings.
    for (std::size_t at = token.begin; at < token.end;) {
      const std::size_t end = std::min(text.find('\n', at), token.end);
      if (end > at) made->lines.back().push_back({at, end, token.kind});
      made->longest = std::max(made->longest, end - line_begin);
      if (end == token.end) break;
      made->lines.emplace_back();
      at = line_begin = end + 1;
    }
  }
  if (made->lines.size() > 1 && made->lines.back().empty()) made->lines.pop_back();
  return made;
}

std::string selected_lines(const CodeView& code, const CodeLines& made) {
  std::string out;
  const int low = code.low() - code.first_line, high = code.high() - code.first_line;
  for (int i = std::max(low, 0); code.low() > 0 && i <= high && i < static_cast<int>(made.lines.size()); ++i) {
    for (const CodeLines::Piece& piece : made.lines[static_cast<std::size_t>(i)]) out.append(made.text, piece.begin, piece.end - piece.begin);
    out += '\n';
  }
  return out;
}

// What mouse and keys select. `top`: of the first line; `height`: of each.
void select_lines(CodeView& code, CodeLines& made, float top, float height) {
  const int count = static_cast<int>(made.lines.size());
  const int under = static_cast<int>(std::floor((ImGui::GetMousePos().y - top) / height));
  const bool inside = ImGui::IsWindowHovered() && under >= 0 && under < count;
  const auto line_at = [&](int place) { return code.first_line + std::clamp(place, 0, count - 1); };
  if (inside) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  if (inside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    made.dragging = true;
    if (code.picks && ImGui::GetIO().KeyShift && code.from > 0) code.to = line_at(under);
    else code.from = code.to = code.picks ? line_at(under) : 0;
  }
  if (made.dragging && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    const bool longer = code.picks && ImGui::GetIO().KeyShift && code.from > 0;
    if (!longer) code.from = line_at(static_cast<int>(std::floor((ImGui::GetIO().MouseClickedPos[0].y - top) / height)));
    code.to = line_at(under);
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) made.dragging = false;
  if (!has_keys()) return;
  for (const Pressed& pressed : pressed_commands()) {
    const std::string_view id = pressed.command->id;
    if (id == "text.select_all") code.from = line_at(0), code.to = line_at(count - 1);
    if (id == "text.copy" && code.from > 0) ImGui::SetClipboardText(selected_lines(code, made).c_str());
    if (id == "scroll.up" || id == "scroll.down") ImGui::SetScrollY(ImGui::GetScrollY() + (id == "scroll.up" ? -1 : 1) * height);
    if (id == "scroll.page_up" || id == "scroll.page_down") {
      ImGui::SetScrollY(ImGui::GetScrollY() + (id == "scroll.page_up" ? -0.9F : 0.9F) * ImGui::GetWindowHeight());
    }
  }
}

}  // namespace

void draw_code(CodeView& code, ImVec2 size) {
  if (code.made == nullptr || code.made->text != code.text || code.made->language != code.language) code.made = cut(code.text, code.language);
  CodeLines& made = *code.made;
  const Theme& colours = theme();
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours.code_ground);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, px(6)));
  ImGui::BeginChild("code", size, true, ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();

  // Sizes: all letters of mono are as wide.
  const float height = measure().line_height(FontKind::mono), letter = measure().width("0", FontKind::mono);
  const int count = static_cast<int>(made.lines.size());
  const float gutter = letter * static_cast<float>(std::to_string(code.first_line + count).size()) + px(22);
  const ImVec2 origin = ImGui::GetCursorScreenPos(), window = ImGui::GetWindowPos();
  const float width = ImGui::GetWindowWidth();
  ImGui::Dummy({gutter + static_cast<float>(made.longest + 1) * letter, height * static_cast<float>(count)});
  // Larger or smaller letters: the same lines stay in sight.
  if (made.line_height > 0 && made.line_height != height) ImGui::SetScrollY(ImGui::GetScrollY() * height / made.line_height);
  made.line_height = height;
  const int marked = code.marked - code.first_line, moved = code.to - code.first_line;
  // What the keys have moved to stays in sight.
  if (code.reveal && moved >= 0 && moved < count) {
    const float y = height * static_cast<float>(moved), page = ImGui::GetWindowHeight() - 3 * height;
    if (y < ImGui::GetScrollY()) ImGui::SetScrollY(y);
    else if (y > ImGui::GetScrollY() + page) ImGui::SetScrollY(y - page);
  }
  code.reveal = false;
  if (code.scroll && marked >= 0 && marked < count) {
    ImGui::SetScrollY(std::max(0.0F, height * static_cast<float>(marked) - ImGui::GetWindowHeight() / 3));
    ImGui::SetScrollX(0);
  }
  code.scroll = false;

  select_lines(code, made, origin.y, height);

  // The lines in sight.
  ImDrawList* list = ImGui::GetWindowDrawList();
  const int first = std::max(0, static_cast<int>((window.y - origin.y) / height));
  const int last = std::min(count, static_cast<int>((window.y + ImGui::GetWindowHeight() - origin.y) / height) + 1);
  const int low = code.low() - code.first_line, high = code.high() - code.first_line;
  const float down = std::floor((height - font(FontKind::mono)->FontSize) / 2);
  for (int i = first; i < last; ++i) {
    const float y = origin.y + height * static_cast<float>(i);
    if (i == marked) list->AddRectFilled({window.x, y}, {window.x + width, y + height}, colours.hover);
    if (low >= 0 && i >= low && i <= high) list->AddRectFilled({window.x + gutter, y}, {window.x + width, y + height}, colours.selection);
    if (i == marked) list->AddRectFilled({window.x, y}, {window.x + px(3), y + height}, colours.accent);
    for (const CodeLines::Piece& piece : made.lines[i]) {
      const std::string_view line = std::string_view(made.text).substr(piece.begin, piece.end - piece.begin);
      const std::size_t line_begin = made.lines[i].front().begin;
      const float x = measure().width(std::string_view(made.text).substr(line_begin, piece.begin - line_begin), FontKind::mono);
      draw_text(list, FontKind::mono, {origin.x + gutter + x, y + down}, colours.code[static_cast<std::size_t>(piece.kind)], line);
    }
    if (!made.lines[i].empty()) note_words(made.text.substr(made.lines[i].front().begin, made.lines[i].back().end - made.lines[i].front().begin));
  }

  // Numbers last, over what was scrolled under them.
  list->AddRectFilled(window, {window.x + gutter - px(8), window.y + ImGui::GetWindowHeight()}, colours.code_ground);
  for (int i = first; i < last; ++i) {
    const float y = origin.y + height * static_cast<float>(i);
    const std::string number = std::to_string(code.first_line + i);
    if (i == marked) list->AddRectFilled({window.x, y}, {window.x + px(3), y + height}, colours.accent);
    if (code.picks) note_spot("L" + number, {window.x, y}, {window.x + width, y + height});
    draw_text(list, FontKind::mono, {window.x + gutter - px(14) - letter * static_cast<float>(number.size()), y + down},
              i == marked ? colours.text : colours.dim, number);
  }
  ImGui::EndChild();
}

}  // namespace shardbook::ui
