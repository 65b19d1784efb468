// ui/table: texts in columns, sorted by a click on a head; see widgets.hpp.
#include <imgui_internal.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"
#include "viewer/ui/widgets_state.hpp"

namespace shardbook::ui {

namespace {

// "1.5 ms" -> 1500000: numbers are compared with their units. What is no number comes last.
double value_of(const std::string& cell) {
  std::string digits;
  std::size_t at = 0;
  while (at < cell.size() && cell[at] == ' ') ++at;
  if (cell.compare(at, 3, "−") == 0) {     // a minus sign of typography
    digits = "-";
    at += 3;
  }
  for (; at < cell.size() && (std::isdigit(static_cast<unsigned char>(cell[at])) != 0 || cell[at] == '.' || cell[at] == '-' || cell[at] == '+'); ++at) {
    digits += cell[at];
  }
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  if (end == digits.c_str()) return -HUGE_VAL;
  while (at < cell.size() && cell[at] == ' ') ++at;
  const std::string_view unit = std::string_view(cell).substr(at);
  static const std::pair<std::string_view, double> units[] = {
      {"ns", 1}, {"µs", 1e3}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
      {"TiB", 1099511627776}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  for (const auto& [name, factor] : units) {
    if (unit == name || unit.substr(0, name.size() + 1) == std::string(name) + " " || unit.substr(0, name.size() + 1) == std::string(name) + "/") {
      return number * factor;
    }
  }
  return number;
}

using Cells = std::vector<std::vector<std::string>>;

// The order that was last asked for, and how wide the columns want to be, per table; made anew when it or the
// contents change.
struct Order {
  std::size_t seen = 0;
  int column = -1;
  bool down = false;
  std::vector<int> rows;

  std::size_t measured = 0;      // the contents that `widths` are of
  float measured_line = 0;       // and the height of a line
  std::vector<float> widths;
};

// Of some rows: to notice other contents without reading all of them in each frame.
std::size_t fingerprint(const Cells& cells) {
  std::size_t sum = cells.size();
  const std::size_t stride = std::max<std::size_t>(1, cells.size() / 64);
  for (std::size_t i = 0; i < cells.size(); i += stride) {
    for (const std::string& cell : cells[i]) sum = sum * 1099511628211ULL ^ std::hash<std::string>()(cell);
  }
  return sum;
}

void sort(Order& order, const Cells& cells, std::size_t seen, const std::vector<Column>& columns, int column, bool down) {
  if (order.seen == seen && order.column == column && order.down == down && order.rows.size() == cells.size()) return;
  order.seen = seen;
  order.column = column;
  order.down = down;
  order.rows.resize(cells.size());
  std::iota(order.rows.begin(), order.rows.end(), 0);
  if (column < 0) return;
  const auto cell = [&](int row) -> const std::string& {
    static const std::string none;
    return static_cast<std::size_t>(column) < cells[row].size() ? cells[row][column] : none;
  };
  if (columns[column].number) {
    std::vector<double> values(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) values[i] = value_of(cell(static_cast<int>(i)));
    std::stable_sort(order.rows.begin(), order.rows.end(), [&](int a, int b) { return down ? values[a] > values[b] : values[a] < values[b]; });
  } else {
    std::stable_sort(order.rows.begin(), order.rows.end(), [&](int a, int b) { return down ? cell(a) > cell(b) : cell(a) < cell(b); });
  }
}

// How wide each column wants to be: as it was given, else as its title and the widest of some of its cells are.
void measure_columns(Order& order, const Cells& cells, std::size_t seen, const std::vector<Column>& columns) {
  const float line = measure().line_height(page::FontKind::body);
  if (order.measured == seen && order.measured_line == line && order.widths.size() == columns.size()) return;
  order.measured = seen;
  order.measured_line = line;
  order.widths.clear();
  const float widest = px(420);
  const std::size_t stride = std::max<std::size_t>(1, cells.size() / 200);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    float width = columns[i].width;
    if (width <= 0) {
      width = measure().width(columns[i].title, page::FontKind::bold);
      for (std::size_t row = 0; row < cells.size(); row += stride) {
        if (i < cells[row].size()) width = std::max(width, measure().width(cells[row][i], page::FontKind::body));
      }
      width = std::min(std::ceil(width) + px(6), widest);
    }
    order.widths.push_back(width);
  }
}

// Text in a cell, to the right for numbers; the column's edge cuts what is too long.
void cell_text(const std::string& text, bool number) {
  if (number) {
    const float spare = ImGui::GetContentRegionAvail().x - measure().width(text, page::FontKind::body);
    if (spare > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::floor(spare));
  }
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
}

void head_row(const std::vector<Column>& columns) {
  const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  const int sorted = specs != nullptr && specs->SpecsCount > 0 ? specs->Specs[0].ColumnIndex : -1;
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    ImGui::TableSetColumnIndex(static_cast<int>(i));
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = ImGui::GetContentRegionAvail().x;
    ImGui::TableHeader("##head");
    ImGui::PopID();
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    note_spot(columns[i].title, low, high);
    // Above numbers, to the right like them; the arrow of the sorted column keeps its place.
    const float arrow = static_cast<int>(i) == sorted ? px(16) : 0;
    const float spare = room - arrow - measure().width(columns[i].title, page::FontKind::bold);
    const float x = at.x + (columns[i].number ? std::max(0.0F, spare) : 0);
    draw_text(ImGui::GetWindowDrawList(), page::FontKind::bold, {x, at.y}, theme().dim, columns[i].title);
    note_words(columns[i].title);
  }
}

}  // namespace

int table(const char* name, const std::vector<Column>& columns, const Cells& cells, int selected, float height) {
  ScreenState& state = screen_state();
  const std::string pane = state.stack.empty() ? std::string() : state.stack.back();
  state.rows_now.insert(pane);
  const ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_ScrollY |
                                ImGuiTableFlags_Resizable | ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoSavedSettings |
                                ImGuiTableFlags_PadOuterX;
  if (columns.empty()) return -1;
  static std::map<std::string, Order> orders;
  Order& order = orders[pane + "/" + name];
  const std::size_t seen = fingerprint(cells);
  measure_columns(order, cells, seen, columns);

  // Where there is too little room it is scrolled sideways, behind its first column if that leaves room; where there
  // is much, a number does not stand far away from the name of its row.
  const float room = ImGui::GetContentRegionAvail().x, bar = ImGui::GetStyle().ScrollbarSize;
  float wanted = bar, spare = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    wanted += order.widths[i] + 2 * ImGui::GetStyle().CellPadding.x;
    spare += columns[i].width > 0 ? 0 : px(48);
  }
  const bool scrolled = wanted > room;
  if (scrolled && height > 0) height = std::clamp(ImGui::GetContentRegionAvail().y, height, height + bar);   // the bar hides no row
  const ImVec2 size(scrolled ? 0 : std::min(room, wanted + spare), height);
  const ImGuiTableFlags sideways = scrolled ? ImGuiTableFlags_ScrollX : ImGuiTableFlags_None;
  if (!ImGui::BeginTable(name, static_cast<int>(columns.size()), flags | sideways, size, scrolled ? wanted : 0)) return -1;
  ImGui::TableSetupScrollFreeze(scrolled && order.widths[0] < room / 2 ? 1 : 0, 1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ImGuiTableColumnFlags width = columns[i].width > 0 ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch;
    const ImGuiTableColumnFlags first = columns[i].number ? ImGuiTableColumnFlags_PreferSortDescending : ImGuiTableColumnFlags_None;
    ImGui::TableSetupColumn(columns[i].title.c_str(), width | first, order.widths[i]);
  }
  head_row(columns);

  // As asked for: by a column, or as they came.
  const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  const bool sorted = specs != nullptr && specs->SpecsCount > 0;
  sort(order, cells, seen, columns, sorted ? specs->Specs[0].ColumnIndex : -1,
       sorted && specs->Specs[0].SortDirection == ImGuiSortDirection_Descending);

  // Only the rows in sight.
  int clicked = -1;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(cells.size()));
  while (clipper.Step()) {
    for (int line = clipper.DisplayStart; line < clipper.DisplayEnd; ++line) {
      const int index = order.rows[line];
      const std::vector<std::string>& row_cells = cells[index];
      ImGui::TableNextRow();
      ImGui::TableSetColumnIndex(0);
      ImGui::PushID(index);
      const ImVec2 at = ImGui::GetCursorPos();
      if (ImGui::Selectable("##row", index == selected, ImGuiSelectableFlags_SpanAllColumns)) clicked = index;
      note_spot(row_cells.empty() ? std::string() : row_cells[0], ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
      ImGui::SetCursorPos(at);
      for (std::size_t i = 0; i < columns.size() && i < row_cells.size(); ++i) {
        ImGui::TableSetColumnIndex(static_cast<int>(i));
        cell_text(row_cells[i], columns[i].number);
        note_words(row_cells[i]);
      }
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
  return clicked;
}

}  // namespace shardbook::ui
