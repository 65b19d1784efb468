// diagram/flowchart_parser: the grammar of flowcharts; see flowchart_parser.hpp.
//
// Recursive descent over the words of flowchart_lexer. Errors unwind by a DiagramError, which parse_diagram catches.
// Styles, classes, clicks and what all of it means are in flowchart_statements.cpp.
// Facts of the grammar and of what it means: mermaid 11.17.2, flow.jison and flowDb.ts.
#include "engine/diagram/flowchart_parser.hpp"

#include <algorithm>

#include "engine/diagram/flowchart_grammar.hpp"

namespace shardbook::diagram {

namespace flowchart {

namespace {

Head head_of(char c) {
  return c == 'x' ? Head::cross : c == 'o' ? Head::circle : c == '>' || c == '<' ? Head::arrow : Head::none;
}

// The word that ends a link ("-->", "-.->", "x--x") says kind and length.
LinkKind link_of(std::string_view word) {
  word = trimmed(word);
  LinkKind link;
  link.head = head_of(word.back());
  std::string_view line = word.substr(0, word.size() - 1);
  if (link.head != Head::none && !line.empty() && head_of(line.front()) == link.head) {
    link.tail = link.head;
    line.remove_prefix(1);
  }
  const auto dots = std::count(line.begin(), line.end(), '.');
  link.length = static_cast<int>(line.size()) - 1;
  if (!line.empty() && line[0] == '=') link.stroke = Stroke::thick;
  if (!line.empty() && line[0] == '~') link.stroke = Stroke::invisible;
  if (dots > 0) {
    link.stroke = Stroke::dotted;
    link.length = static_cast<int>(dots);
  }
  link.length = std::clamp(link.length, 1, 10);
  return link;
}

}  // namespace

// --- Statements --------------------------------------------------------------------------------------
void Parser::header() {
  while (take(Kind::space) || take(Kind::newline)) {}
  expect(Kind::graph, "`flowchart` or `graph`");
  if (take(Kind::no_direction)) return;
  const std::string_view direction = expect(Kind::direction_header, "a direction (TB, TD, BT, LR or RL)");
  out_.direction = direction == "<" ? "RL" : direction == ">" ? "LR" : direction == "^" ? "BT"
                 : direction == "v" || direction == "TD" ? "TB" : std::string(direction);
  if (take(Kind::semicolon) || take(Kind::newline) || is(Kind::end_of_file)) return;
  if (!spaces() || !take(Kind::newline)) wrong("the end of the first line");
}

void Parser::document(bool nested, std::vector<std::string>& members, std::string& direction) {
  for (;;) {
    if (nested && take(Kind::end)) return;
    switch (word().kind) {
      case Kind::end_of_file:
        if (nested) throw DiagramError{open_lines_.back(), "this subgraph has no `end`"};
        return;
      case Kind::semicolon:
      case Kind::newline:
      case Kind::accessible:
      case Kind::space: ++at_; break;
      case Kind::direction:
        direction = word().text == "TD" ? "TB" : std::string(word().text);
        ++at_;
        break;
      case Kind::subgraph: subgraph(members); break;
      case Kind::style: style(); break;
      case Kind::link_style: link_style(); break;
      case Kind::class_def: class_definition(); break;
      case Kind::class_: class_statement(); break;
      case Kind::click: click(); break;
      default: vertex_statement(members);
    }
  }
}

void Parser::subgraph(std::vector<std::string>& members) {
  const int begin = line();
  if (static_cast<int>(open_lines_.size()) >= most_nesting) throw DiagramError{begin, "subgraphs are nested deeper than " + std::to_string(most_nesting)};
  ++at_;
  expect(Kind::space, "the name of the subgraph");

  // Its name: words up to a bracket or the end of the line; or one quoted text.
  std::string name;
  bool markdown = false, any = false;
  for (;; ++at_) {
    const Kind kind = word().kind;
    const bool quoted = kind == Kind::string || kind == Kind::markdown;
    const bool plain = kind == Kind::number || kind == Kind::word || kind == Kind::space || kind == Kind::minus || kind == Kind::ampersand ||
                       kind == Kind::unicode || kind == Kind::colon || kind == Kind::star || kind == Kind::hash || kind == Kind::start_link ||
                       kind == Kind::style || kind == Kind::link_style || kind == Kind::class_def || kind == Kind::class_ ||
                       kind == Kind::click || kind == Kind::graph || kind == Kind::subgraph || kind == Kind::end || kind == Kind::down || kind == Kind::up;
    if (!plain && !(quoted && !any)) break;
    markdown = markdown || kind == Kind::markdown;
    name += word().text;
    any = true;
  }
  if (!any) wrong("the name of the subgraph");
  Subgraph group;
  group.line = begin;
  group.id = std::string(trimmed(name));
  group.title = label_text(name, markdown);
  if (take(Kind::square_begin)) {
    group.title = text("the title of the subgraph").text;
    expect(Kind::square_end, "`]` after the title");
  } else if (name.find_first_of(" \t\n") != std::string::npos) {
    group.id.clear();
  }
  separator("the subgraph's first line");

  open_lines_.push_back(begin);
  document(true, group.members, group.direction);
  open_lines_.pop_back();
  if (group.id.empty()) group.id = "subGraph" + std::to_string(unnamed_);
  ++unnamed_;

  // A node belongs to the first subgraph that ends with it inside.
  std::vector<std::string> own;
  std::unordered_set<std::string> seen;
  for (const std::string& member : group.members) {
    if (placed_.count(member) == 0 && seen.insert(member).second) own.push_back(member);
  }
  placed_.insert(own.begin(), own.end());
  group.members = std::move(own);
  if (out_.subgraphs.size() >= most_parts) throw DiagramError{begin, "there are more than " + std::to_string(most_parts) + " subgraphs"};
  subgraphs_of_[group.id].push_back(out_.subgraphs.size());
  members.push_back(group.id);
  out_.subgraphs.push_back(std::move(group));
}

void Parser::vertex_statement(std::vector<std::string>& members) {
  bool with_data = false;
  std::vector<std::string> left = node_group(with_data);
  std::vector<std::string> all = left;
  bool spaced = !with_data && spaces();
  while (is(Kind::link) || is(Kind::start_link) || is(Kind::link_id)) {
    const LinkKind kind = link();
    std::vector<std::string> right = node_group(with_data);
    add_edges(left, right, kind);
    all.insert(all.end(), right.begin(), right.end());
    left = std::move(right);
    spaced = !with_data && spaces();
  }
  (void)spaced;
  separator("the line, `&` or a link");
  members.insert(members.end(), all.begin(), all.end());
}

// a & b & c
std::vector<std::string> Parser::node_group(bool& ends_with_data) {
  std::vector<std::string> ids{styled_vertex()};
  for (;;) {
    ends_with_data = is(Kind::shape_data);
    if (ends_with_data) shape_data(ids.back());
    const std::size_t before = at_;
    if (!spaces() || !take(Kind::ampersand)) {
      // After shape data a blank may only lead to `&`.
      if (ends_with_data && at_ > before) wrong("`&`");
      at_ = before;
      return ids;
    }
    if (!spaces()) wrong("a blank after `&`");
    ids.push_back(styled_vertex());
  }
}

std::string Parser::styled_vertex() {
  const std::string id = vertex();
  if (take(Kind::class_separator)) set_class(id, id_string("a class's name"));
  return id;
}

std::string Parser::vertex() {
  const int begin = line();
  const std::string id = id_string("a node");
  Label label;
  NodeShape shape = NodeShape::rectangle;
  const auto shaped = [&](NodeShape which, Kind close, const char* sign) {
    shape = which;
    label = text("the node's text");
    if (!take(close)) wrong(std::string("`") + sign + "`");
  };
  switch (word().kind) {
    case Kind::square_begin: ++at_; shaped(NodeShape::rectangle, Kind::square_end, "]"); break;
    case Kind::double_begin: ++at_; shaped(NodeShape::double_circle, Kind::double_end, ")))"); break;
    case Kind::ellipse_begin: ++at_; shaped(NodeShape::ellipse, Kind::ellipse_end, "-)"); break;
    case Kind::stadium_begin: ++at_; shaped(NodeShape::stadium, Kind::stadium_end, "])"); break;
    case Kind::subroutine_begin: ++at_; shaped(NodeShape::subroutine, Kind::subroutine_end, "]]"); break;
    case Kind::cylinder_begin: ++at_; shaped(NodeShape::cylinder, Kind::cylinder_end, ")]"); break;
    case Kind::flag_begin: ++at_; shaped(NodeShape::flag, Kind::square_end, "]"); break;
    case Kind::round_begin:
      ++at_;
      if (take(Kind::round_begin)) {
        shaped(NodeShape::circle, Kind::round_end, "))");
        expect(Kind::round_end, "`))`");
      } else {
        shaped(NodeShape::round, Kind::round_end, ")");
      }
      break;
    case Kind::brace_begin:
      ++at_;
      if (take(Kind::brace_begin)) {
        shaped(NodeShape::hexagon, Kind::brace_end, "}}");
        expect(Kind::brace_end, "`}}`");
      } else {
        shaped(NodeShape::diamond, Kind::brace_end, "}");
      }
      break;
    case Kind::slash_begin:
    case Kind::backslash_begin: {
      const bool slash = word().kind == Kind::slash_begin;
      ++at_;
      label = text("the node's text");
      if (take(Kind::slash_end)) {
        shape = slash ? NodeShape::parallelogram : NodeShape::trapezoid_back;
      } else {
        expect(Kind::backslash_end, "`/]` or `\\]`");
        shape = slash ? NodeShape::trapezoid : NodeShape::parallelogram_back;
      }
      break;
    }
    case Kind::properties_begin:
      ++at_;
      expect(Kind::word, "a property");
      expect(Kind::colon, "`:`");
      expect(Kind::word, "the property's value");
      expect(Kind::pipe, "`|`");
      shaped(NodeShape::rectangle, Kind::square_end, "]");
      break;
    default: break;
  }
  const bool is_new = node_at_.count(id) == 0;
  DiagramNode& made = node(id);
  if (is_new) made.line = begin;
  if (label.given) {
    made.label = label.text;
    made.shape = shape;
  }
  return id;
}

void Parser::shape_data(const std::string& id) {
  const int begin = line();
  std::string text;
  while (is(Kind::shape_data)) text += next().text;
  std::vector<std::pair<std::string, std::string>> fields;
  if (text.rfind("@{", 0) != 0 || !read_shape_data(std::string_view(text).substr(2), fields)) {
    throw DiagramError{begin, "the fields in @{ } cannot be read: they look like shape: rect, label: \"text\""};
  }
  DiagramNode& made = node(id);
  for (const auto& [key, value] : fields) {
    if (key == "label") made.label = label_text(value);
    if (key == "shape" && !shape_of_name(value, made.shape)) throw DiagramError{begin, "the shape `" + value + "` is not one that is drawn here"};
  }
}

LinkKind Parser::link() {
  take(Kind::link_id);
  LinkKind kind;
  if (is(Kind::start_link)) {
    // -- text -->: where the begin names a head, both ends have it.
    const std::string_view start = trimmed(next().text);
    std::string label;
    bool any = false, markdown = false;
    while (is(Kind::edge_text) || is(Kind::unicode) || (!any && (is(Kind::string) || is(Kind::markdown)))) {
      markdown = markdown || is(Kind::markdown);
      label += next().text;
      any = true;
    }
    if (!any) wrong("the link's text");
    kind = link_of(expect(Kind::link, "the end of the link (such as `-->`)"));
    const Head tail = head_of(start.front());
    if (tail != Head::none && tail == kind.head) kind.tail = tail;
    kind.label = label_text(label, markdown);
    return kind;
  }
  kind = link_of(expect(Kind::link, "a link"));
  if (take(Kind::pipe)) {
    kind.label = text("the link's text").text;
    expect(Kind::pipe, "`|` after the link's text");
    take(Kind::space);
  }
  return kind;
}

Label Parser::text(const char* where) {
  Label label;
  std::string raw;
  bool markdown = false;
  while (is(Kind::text) || is(Kind::unicode) || (!label.given && (is(Kind::string) || is(Kind::markdown)))) {
    markdown = markdown || is(Kind::markdown);
    raw += next().text;
    label.given = true;
  }
  if (!label.given) wrong(where);
  label.text = label_text(raw, markdown);
  if (label.text.size() >= 2 && label.text.front() == '"' && label.text.back() == '"') label.text = label.text.substr(1, label.text.size() - 2);
  return label;
}

std::string Parser::id_string(const char* what) {
  std::string id;
  for (;; ++at_) {
    const Kind kind = word().kind;
    if (kind != Kind::number && kind != Kind::word && kind != Kind::down && kind != Kind::minus && kind != Kind::default_ && kind != Kind::comma &&
        kind != Kind::colon && kind != Kind::ampersand && kind != Kind::hash && kind != Kind::star && kind != Kind::unicode) break;
    id += word().text;
  }
  if (id.empty()) wrong(what);
  return id;
}

}  // namespace flowchart

void read_flowchart(const DiagramSource& source, Diagram& out) { flowchart::Parser(source, out).run(); }

}  // namespace shardbook::diagram
