// diagram/flowchart_shapes: shape names, shape data and styles; see flowchart_parser.hpp.
#include <algorithm>
#include <array>

#include "engine/diagram/flowchart_parser.hpp"

namespace shardbook::diagram {

namespace {

struct NamedShape {
  std::string_view name;
  NodeShape shape;
};
// Names and aliases of mermaid's documentation, https://mermaid.js.org/syntax/flowchart.html, of the shapes that are drawn here.
constexpr std::array<NamedShape, 58> named_shapes{{
    {"rect", NodeShape::rectangle}, {"proc", NodeShape::rectangle}, {"process", NodeShape::rectangle},
    {"rectangle", NodeShape::rectangle}, {"square", NodeShape::rectangle}, {"rounded", NodeShape::round}, {"event", NodeShape::round},
    {"stadium", NodeShape::stadium}, {"pill", NodeShape::stadium}, {"terminal", NodeShape::stadium},
    {"fr-rect", NodeShape::subroutine}, {"framed-rectangle", NodeShape::subroutine}, {"subproc", NodeShape::subroutine},
    {"subprocess", NodeShape::subroutine}, {"subroutine", NodeShape::subroutine}, {"cyl", NodeShape::cylinder},
    {"cylinder", NodeShape::cylinder}, {"database", NodeShape::cylinder}, {"db", NodeShape::cylinder}, {"circle", NodeShape::circle},
    {"circ", NodeShape::circle}, {"dbl-circ", NodeShape::double_circle}, {"double-circle", NodeShape::double_circle},
    {"doublecircle", NodeShape::double_circle}, {"diam", NodeShape::diamond}, {"decision", NodeShape::diamond},
    {"diamond", NodeShape::diamond}, {"question", NodeShape::diamond}, {"hex", NodeShape::hexagon}, {"hexagon", NodeShape::hexagon},
    {"prepare", NodeShape::hexagon}, {"odd", NodeShape::flag}, {"lean-r", NodeShape::parallelogram},
    {"lean-right", NodeShape::parallelogram}, {"in-out", NodeShape::parallelogram}, {"lean-l", NodeShape::parallelogram_back},
    {"lean-left", NodeShape::parallelogram_back}, {"out-in", NodeShape::parallelogram_back}, {"trap-b", NodeShape::trapezoid},
    {"priority", NodeShape::trapezoid}, {"trapezoid", NodeShape::trapezoid}, {"trapezoid-bottom", NodeShape::trapezoid},
    {"trap-t", NodeShape::trapezoid_back}, {"manual", NodeShape::trapezoid_back}, {"inv-trapezoid", NodeShape::trapezoid_back},
    {"trapezoid-top", NodeShape::trapezoid_back}, {"datastore", NodeShape::cylinder}, {"das", NodeShape::cylinder},
    {"h-cyl", NodeShape::cylinder}, {"horizontal-cylinder", NodeShape::cylinder}, {"lin-cyl", NodeShape::cylinder},
    {"disk", NodeShape::cylinder}, {"lined-cylinder", NodeShape::cylinder}, {"lin-rect", NodeShape::subroutine},
    {"lined-process", NodeShape::subroutine}, {"lined-rectangle", NodeShape::subroutine}, {"fr-circ", NodeShape::double_circle},
    {"stop", NodeShape::double_circle},
}};

}  // namespace

bool shape_of_name(std::string_view name, NodeShape& shape) {
  for (const NamedShape& known : named_shapes) {
    if (known.name != name) continue;
    shape = known.shape;
    return true;
  }
  return false;
}

bool read_shape_data(std::string_view text, std::vector<std::pair<std::string, std::string>>& fields) {
  std::size_t at = 0;
  const auto blanks = [&] {
    while (at < text.size() && std::string_view(" \t\n,").find(text[at]) != std::string_view::npos) ++at;
  };
  for (blanks(); at < text.size(); blanks()) {
    const std::size_t colon = text.find(':', at);
    if (colon == std::string_view::npos) return false;
    const std::string key(trimmed(text.substr(at, colon - at)));
    at = colon + 1;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
    std::string value;
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
      const std::size_t close = text.find(text[at], at + 1);
      if (close == std::string_view::npos) return false;
      value = std::string(text.substr(at + 1, close - at - 1));
      at = close + 1;
    } else {
      const std::size_t end = std::min(text.find_first_of(",\n", at), text.size());
      value = std::string(trimmed(text.substr(at, end - at)));
      at = end;
    }
    if (key.empty() || key.find('\n') != std::string::npos) return false;
    fields.emplace_back(key, value);
  }
  return true;
}

Styles read_styles(std::string_view text) {
  Styles styles;
  std::size_t depth = 0, begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')' && depth > 0) --depth;
    if (i < text.size() && (depth > 0 || (text[i] != ',' && text[i] != ';'))) continue;
    const std::string_view one = text.substr(begin, i - begin);
    const std::size_t colon = one.find(':');
    if (colon != std::string_view::npos) {
      styles.emplace_back(std::string(trimmed(one.substr(0, colon))), std::string(trimmed(one.substr(colon + 1))));
    }
    begin = i + 1;
  }
  return styles;
}

}  // namespace shardbook::diagram
