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
  int first = -1, last = -1;           // selected lines, counted from 0; -1: none
  bool dragging = false;
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

std::string selected_lines(const CodeLines& made) {
  std::string out;
  const auto [low, high] = std::minmax(made.first, made.last);
  for (int i = std::max(low, 0); low >= 0 && i <= high && i < static_cast<int>(made.lines.size()); ++i) {
    for (const CodeLines::Piece& piece : made.lines[i]) out.append(made.text, piece.begin, piece.end - piece.begin);
    out += '\n';
  }
  return out;
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
  const int marked = code.marked - code.first_line;
  if (code.scroll && marked >= 0 && marked < count) {
    ImGui::SetScrollY(std::max(0.0F, height * static_cast<float>(marked) - ImGui::GetWindowHeight() / 3));
    ImGui::SetScrollX(0);
  }
  code.scroll = false;

  // Selecting lines, and the commands for them.
  const ImVec2 mouse = ImGui::GetMousePos();
  const int under = static_cast<int>(std::floor((mouse.y - origin.y) / height));
  const bool inside = ImGui::IsWindowHovered() && under >= 0 && under < count;
  if (inside) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  if (inside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    made.dragging = true;
    made.first = made.last = -1;
  }
  if (made.dragging && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    const int from = static_cast<int>(std::floor((ImGui::GetIO().MouseClickedPos[0].y - origin.y) / height));
    made.first = std::clamp(from, 0, count - 1);
    made.last = std::clamp(under, 0, count - 1);
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) made.dragging = false;
  if (has_keys()) {
    for (const Pressed& pressed : pressed_commands()) {
      const std::string_view id = pressed.command->id;
      if (id == "text.select_all") made.first = 0, made.last = count - 1;
      if (id == "text.copy" && made.first >= 0) ImGui::SetClipboardText(selected_lines(made).c_str());
      if (id == "scroll.up" || id == "scroll.down") ImGui::SetScrollY(ImGui::GetScrollY() + (id == "scroll.up" ? -1 : 1) * height);
      if (id == "scroll.page_up" || id == "scroll.page_down") {
        ImGui::SetScrollY(ImGui::GetScrollY() + (id == "scroll.page_up" ? -0.9F : 0.9F) * ImGui::GetWindowHeight());
      }
    }
  }

  // The lines in sight.
  ImDrawList* list = ImGui::GetWindowDrawList();
  const int first = std::max(0, static_cast<int>((window.y - origin.y) / height));
  const int last = std::min(count, static_cast<int>((window.y + ImGui::GetWindowHeight() - origin.y) / height) + 1);
  const auto [low, high] = std::minmax(made.first, made.last);
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
    draw_text(list, FontKind::mono, {window.x + gutter - px(14) - letter * static_cast<float>(number.size()), y + down},
              i == marked ? colours.text : colours.dim, number);
  }
  ImGui::EndChild();
}

}  // namespace shardbook::ui
