#include <algorithm>
#include <cmath>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using page::FontKind;
using ui::px;

namespace {

constexpr float gap_units = 5;

// --- The source -------------------------------------------------------------------------------------

void draw_files(const Reading& reading, Intents& intents) {
  std::string repository;
  for (std::size_t i = 0; i < reading.files.size(); ++i) {
    const Reading::File& file = reading.files[i];
    if (file.repository != repository) {
      repository = file.repository;
      ui::heading(repository);
    }
    ImGui::PushID(static_cast<int>(i));
    if (ui::row(file.path, static_cast<int>(i) == reading.shown, file.here ? "" : "not here")) intents.push_back({"reading.file", std::to_string(i)});
    ImGui::PopID();
  }
}

// What is selected, and what can be done with it: always in one place, so that nothing moves when lines are chosen.
void draw_citation(const Reading& reading, Intents& intents) {
  const bool any = !reading.citation.empty();
  if (ui::button("Copy", "The citation of the selected lines (Ctrl+Shift+C)", any)) intents.push_back({"reading.copy", ""});
  ImGui::SameLine(0, px(6));
  if (ui::button("Add to notes", "Begins a choice with this citation; a copy of the note is kept (Ctrl+Shift+A)", any)) intents.push_back({"reading.append", ""});
  ImGui::SameLine(0, px(12));
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(any ? 6 : 8));
  if (any) ui::words_line(reading.citation);
  else ui::dim_line("Drag over lines, or Ctrl+Down and Shift+Down: they become a citation.");
}

void draw_source_side(Reading& reading, ImVec2 size, Intents& intents) {
  ui::begin_pane("sources", size, false, "", false);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(6), px(5)});
  if (ui::small_button("Files", "All files that the lab reads")) intents.push_back({"reading.files", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Close", "Back to text and timeline (L)")) intents.push_back({"reading", ""});
  if (reading.shown < 0 || reading.choosing) {
    ImGui::SameLine(0, px(10));
    ui::dim_line("What lab 03 reads, at the commits that your notes name");
    if (!reading.missing.empty()) ui::paragraph(reading.missing, ui::theme().warning);
    ImGui::BeginChild("files", {0, 0});
    draw_files(reading, intents);
    ImGui::EndChild();
    ImGui::PopStyleVar();
    ui::end_pane();
    return;
  }
  const Reading::File& file = reading.files[static_cast<std::size_t>(reading.shown)];
  ImGui::SameLine(0, px(10));
  if (reading.searching) {
    if (ui::text_field("Find in the file", &reading.query, px(200), reading.take_focus)) intents.push_back({"reading.find", ImGui::GetIO().KeyShift ? "-1" : "1"});
    reading.take_focus = false;
  } else {
    ui::dim_line(file.repository + " at " + reading.commit.substr(0, 8));
  }
  ui::words_line(file.path);
  const float line = std::ceil(ui::font(FontKind::body)->FontSize + px(10)) + px(7);   // the buttons below, and what parts them
  ui::draw_code(reading.code, {ImGui::GetContentRegionAvail().x, std::max(px(60), ImGui::GetContentRegionAvail().y - line)});
  draw_citation(reading, intents);
  ImGui::PopStyleVar();
  ui::end_pane();
}

// --- The notes --------------------------------------------------------------------------------------

// A stretch of a line in one font; `place` counts the line's citations, -1 is none.
struct Stretch {
  std::size_t begin, end;
  FontKind font;
  int place;
};

std::vector<Stretch> stretches_of(const Reading::Line& line) {
  const FontKind plain = line.fenced ? FontKind::mono : line.text.starts_with("#") ? FontKind::bold : FontKind::body;
  std::vector<Stretch> all;
  bool code = false;
  // What stands between backticks is code, with them; a citation may stand in the middle of it.
  const auto prose = [&](std::size_t at, std::size_t end) {
    while (at < end) {
      const std::size_t tick = line.fenced ? end : std::min(line.text.find('`', at), end);
      const std::size_t stop = tick == end ? end : code ? tick + 1 : tick;
      if (stop > at) all.push_back({at, stop, code ? FontKind::mono : plain, -1});
      if (tick < end && !code) all.push_back({tick, tick + 1, FontKind::mono, -1});
      if (tick < end) code = !code;
      at = tick < end ? tick + 1 : end;
    }
  };
  std::size_t at = 0;
  for (std::size_t i = 0; i < line.places.size(); ++i) {
    prose(at, line.places[i].begin);
    all.push_back({line.places[i].begin, line.places[i].end, FontKind::mono, static_cast<int>(i)});
    at = line.places[i].end;
  }
  prose(at, line.text.size());
  return all;
}

float line_step() { return std::round(ui::measure().line_height(FontKind::body)); }

// How far it is to the next blank from `from` in stretch `at`: what must not be broken may go on in the next stretches.
float unbroken(const Reading::Line& line, const std::vector<Stretch>& all, std::size_t at, std::size_t from) {
  float width = 0;
  for (; at < all.size(); ++at, from = at < all.size() ? all[at].begin : 0) {
    const std::size_t blank = std::min(line.text.find(' ', from), all[at].end);
    width += ui::measure().width(std::string_view(line.text).substr(from, blank - from), all[at].font);
    if (blank < all[at].end) break;
  }
  return width;
}

// A word of a citation that can be clicked.
void draw_place(const std::string& place, int number, ImVec2 corner, ImVec2 end, Intents& intents) {
  ui::note_spot(place, corner, end);
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(corner, end)) return;
  ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  ImGui::GetWindowDrawList()->AddLine({corner.x, end.y - px(2)}, {end.x, end.y - px(2)}, ui::theme().link, px(1));
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) intents.push_back({"reading.cite", std::to_string(number) + " " + place});
}

// Lays one line out below `at` and draws what of it is in sight; returns its height.
float draw_note_line(const Reading::Line& line, int number, ImVec2 at, float width, Intents& intents) {
  const page::Measure& measure = ui::measure();
  const float height = line_step(), top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  const std::vector<Stretch> all = stretches_of(line);
  float x = 0, y = 0;
  bool after_blank = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FontKind font = all[i].font;
    for (std::size_t from = all[i].begin; from < all[i].end;) {
      // A word with the blank behind it, on the next line where it would not fit; one wider than the column is cut.
      std::size_t to = std::min(line.text.find(' ', from), all[i].end - 1) + 1;
      if (after_blank && x > 0 && x + unbroken(line, all, i, from) > width) x = 0, y += height;
      const auto word_width = [&] { return measure.width(std::string_view(line.text).substr(from, to - from), font); };
      while (to - from > 1 && x + word_width() > width + px(6)) {
        do --to;
        while (to > from + 1 && (static_cast<unsigned char>(line.text[to]) & 0xC0) == 0x80);
      }
      const std::string_view word = std::string_view(line.text).substr(from, to - from);
      const ImVec2 corner{at.x + x, at.y + y}, end{corner.x + word_width(), corner.y + height};
      if (end.y > top && corner.y < bottom) {
        const float down = std::floor((height - ui::font(font)->FontSize) / 2);
        ui::draw_text(ImGui::GetWindowDrawList(), font, {corner.x, corner.y + down}, all[i].place >= 0 ? ui::theme().link : ui::theme().text, word);
        if (all[i].place >= 0) draw_place(line.places[static_cast<std::size_t>(all[i].place)].words, number, corner, end, intents);
      }
      x = end.x - at.x;
      after_blank = word.back() == ' ' || (to < all[i].end && word.back() != ' ');
      if (to < all[i].end && word.back() != ' ') x = 0, y += height;
      from = to;
    }
  }
  if (at.y + y + height > top && at.y < bottom) ui::note_words(line.text);
  // A blank line parts what stands around it, and needs less.
  return line.text.empty() ? std::round(height * 0.6F) : y + height;
}

void draw_note(Reading& reading, float height, Intents& intents) {
  ImGui::BeginChild("note", {0, height}, false, ImGuiWindowFlags_NoNavInputs);
  if (!reading.unread.empty()) ui::paragraph(reading.unread, ui::theme().warning);
  const ui::Theme& colours = ui::theme();
  const float letter = ui::measure().width("0", FontKind::small);
  const float gutter = letter * static_cast<float>(std::to_string(reading.lines.size()).size()) + px(14);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = std::max(px(80), ImGui::GetContentRegionAvail().x - gutter - px(6)), small = ui::font(FontKind::small)->FontSize;
  ImDrawList* list = ImGui::GetWindowDrawList();
  float y = 0;
  for (std::size_t i = 0; i < reading.lines.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const bool found = std::any_of(reading.findings.begin(), reading.findings.end(), [&](const auto& one) { return one.line == number; });
    if (number == reading.marked) {
      if (reading.scroll) ImGui::SetScrollY(std::max(0.0F, y - ImGui::GetWindowHeight() / 3));
      list->AddRectFilled({origin.x - px(2), origin.y + y}, {origin.x + gutter + width, origin.y + y + line_step()}, colours.hover);
    }
    const std::string digits = std::to_string(number);
    const float middle = std::floor(((reading.lines[i].text.empty() ? line_step() * 0.6F : line_step()) - small) / 2);
    ui::draw_text(list, FontKind::small, {origin.x + gutter - px(9) - letter * static_cast<float>(digits.size()), origin.y + y + middle},
                  found ? colours.warning : colours.dim, digits);
    y += draw_note_line(reading.lines[i], number, {origin.x + gutter, origin.y + y}, width, intents);
  }
  reading.scroll = false;
  ImGui::Dummy({width, y + px(8)});
  if (ui::has_keys()) {
    for (const ui::Pressed& pressed : ui::pressed_commands()) {
      const std::string_view id = pressed.command->id;
      const float page = ImGui::GetWindowHeight() * 0.9F, step = px(40);
      const float by = id == "scroll.up" ? -step : id == "scroll.down" ? step : id == "scroll.page_up" ? -page : id == "scroll.page_down" ? page : 0;
      if (by != 0) ImGui::SetScrollY(ImGui::GetScrollY() + by);
    }
  }
  ImGui::EndChild();
}

void draw_findings(const Reading& reading, Intents& intents) {
  if (ui::small_button("Check again", "What ./shardbook notes check looks at, but runs (F5)")) intents.push_back({"reading.check", ""});
  ImGui::SameLine(0, px(8));
  ui::dim_line(reading.verdict);
  ImGui::BeginChild("found", {0, 0});
  for (std::size_t i = 0; i < reading.findings.size(); ++i) {
    const Reading::Finding& one = reading.findings[i];
    ImGui::PushID(static_cast<int>(i));
    if (ui::link(one.line > 0 ? one.file + ":" + std::to_string(one.line) : one.file)) intents.push_back({"reading.finding", std::to_string(i)});
    ImGui::SameLine(0, px(8));
    ui::dim_line(one.warning ? one.rule + ", a warning" : one.rule);
    ui::paragraph(one.sentence, one.warning ? 0 : ui::theme().bad);
    ImGui::PopID();
  }
  if (!reading.unjudged.empty()) ui::heading("Not judged");
  for (const std::string& sentence : reading.unjudged) ui::paragraph(sentence, ui::theme().dim);
  ImGui::EndChild();
}

}  // namespace

Intents draw_reading(Reading& reading, ImVec2 size) {
  Intents intents;
  const ImVec2 at = ImGui::GetCursorPos();
  float left = std::round(size.x * (1 - reading.notes_share));
  draw_source_side(reading, {left, size.y}, intents);
  ImGui::SetCursorPos({at.x + left, at.y});
  if (ui::splitter("sources | notes", true, &left, px(300), px(260), size.x)) reading.notes_share = 1 - left / size.x;
  ImGui::SetCursorPos({at.x + left + px(gap_units), at.y});
  const ImVec2 right{size.x - left - px(gap_units), size.y};
  ImGui::BeginChild("notes side", right, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  float upper = std::round(right.y * (1 - reading.findings_share));
  ui::begin_pane("notes", {right.x, upper}, false, "", false);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(6), px(4)});
  for (std::size_t i = 0; i < reading.notes.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, px(2));
    if (ui::tab(reading.notes[i], static_cast<int>(i) == reading.note)) intents.push_back({"reading.note", std::to_string(i)});
  }
  ui::dim_line(reading.folder + ": edit it in any editor, it is read again when you save");
  draw_note(reading, ImGui::GetContentRegionAvail().y, intents);
  ImGui::PopStyleVar();
  ui::end_pane();
  ImGui::SetCursorPos({0, upper});
  if (ui::splitter("notes / findings", false, &upper, px(160), px(90), right.y)) reading.findings_share = 1 - upper / right.y;
  ImGui::SetCursorPos({0, upper + px(gap_units)});
  ui::begin_pane("findings", {right.x, right.y - upper - px(gap_units)}, false, "", false);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(6), px(4)});
  draw_findings(reading, intents);
  ImGui::PopStyleVar();
  ui::end_pane();
  ImGui::EndChild();
  return intents;
}

}  // namespace shardbook::views
