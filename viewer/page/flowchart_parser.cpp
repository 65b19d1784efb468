// page/flowchart_parser: the grammar of flowcharts; see flowchart_parser.hpp.
//
// Recursive descent over the words of flowchart_lexer, a function a production. Errors unwind by an exception that
// does not leave this file. Facts of the grammar and of what it means: mermaid 11.17.2, flow.jison and flowDb.ts.
#include "viewer/page/flowchart_parser.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/check.hpp"
#include "viewer/page/diagram_limits.hpp"
#include "viewer/page/flowchart_lexer.hpp"

namespace shardbook::page {

namespace {

using Kind = FlowToken;

struct Label {
  bool given = false;
  std::string text;
};

struct LinkKind {
  Stroke stroke = Stroke::normal;
  Head head = Head::none, tail = Head::none;
  int length = 1;
  std::string label;
};

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

class Parser {
 public:
  Parser(const DiagramSource& source, Diagram& out) : source_(source), out_(out), words_(flowchart_words(source.text)) {}

  void run() {
    header();
    std::vector<std::string> members;
    std::string direction;
    document(false, members, direction);
    settle_subgraphs();
  }

 private:
  // --- Words -----------------------------------------------------------------------------------------
  const FlowWord& word() const { return words_[std::min(at_, words_.size() - 1)]; }
  bool is(Kind kind) const { return word().kind == kind; }
  bool take(Kind kind) {
    if (!is(kind)) return false;
    ++at_;
    return true;
  }
  std::string_view expect(Kind kind, const char* what) {
    if (!is(kind)) wrong(what);
    return words_[at_++].text;
  }
  [[noreturn]] void wrong(const std::string& expected) const {
    if (is(Kind::invalid)) throw DiagramError{source_.line_at(word().offset), base::text("the sign ", description_of(word()), " has no meaning here; ", expected, " was expected")};
    throw DiagramError{source_.line_at(word().offset), base::text(description_of(word()), " was found where ", expected, " was expected")};
  }
  int line() const { return source_.line_at(word().offset); }
  bool spaces() {
    const std::size_t before = at_;
    while (take(Kind::space)) {}
    return at_ > before;
  }
  void separator(const char* after) {
    if (take(Kind::newline) || take(Kind::semicolon) || is(Kind::end_of_file)) return;
    wrong(std::string("the end of ") + after);
  }

  void header();
  void document(bool nested, std::vector<std::string>& members, std::string& direction);
  void subgraph(std::vector<std::string>& members);
  void vertex_statement(std::vector<std::string>& members);
  std::vector<std::string> node_group(bool& ends_with_data);
  std::string styled_vertex();
  std::string vertex();
  void shape_data(const std::string& id);
  LinkKind link();
  Label text(const char* where);
  std::string id_string(const char* what);
  std::string style_text();
  void style();
  void link_style();
  void class_definition();
  void class_statement();
  void click();

  DiagramNode& node(const std::string& id);
  void add_edges(const std::vector<std::string>& from, const std::vector<std::string>& to, const LinkKind& link);
  void set_class(const std::string& ids, const std::string& name);
  void settle_subgraphs();

  const DiagramSource& source_;
  Diagram& out_;
  std::vector<FlowWord> words_;
  std::size_t at_ = 0;
  std::vector<int> open_lines_;          // where the subgraphs began that are open
  int unnamed_ = 0;
  std::unordered_map<std::string, std::size_t> node_at_;
  std::unordered_map<std::string, std::vector<std::size_t>> subgraphs_of_;
  std::unordered_set<std::string> placed_;
};

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
  while (is(Kind::shape_data)) text += words_[at_++].text;
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
    const std::string_view start = trimmed(words_[at_++].text);
    std::string label;
    bool any = false, markdown = false;
    while (is(Kind::edge_text) || is(Kind::unicode) || (!any && (is(Kind::string) || is(Kind::markdown)))) {
      markdown = markdown || is(Kind::markdown);
      label += words_[at_++].text;
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
    raw += words_[at_++].text;
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

// --- Styles, classes, clicks -------------------------------------------------------------------------
std::string Parser::style_text() {
  const auto is_part = [&] {
    const Kind kind = word().kind;
    return kind == Kind::number || kind == Kind::word || kind == Kind::colon || kind == Kind::space || kind == Kind::hash || kind == Kind::style;
  };
  std::string text;
  do {
    if (!is_part()) wrong("a style such as fill:#eef");
    while (is_part()) text += words_[at_++].text;
    if (is(Kind::comma)) text += ',';
  } while (take(Kind::comma));
  return text;
}

void Parser::style() {
  ++at_;
  expect(Kind::space, "a node's name");
  const std::string id = id_string("a node's name");
  expect(Kind::space, "a style");
  const Styles styles = read_styles(style_text());
  separator("the style");
  Styles& of = node(id).style;
  of.insert(of.end(), styles.begin(), styles.end());
}

void Parser::link_style() {
  const int begin = line();
  ++at_;
  expect(Kind::space, "the number of a link");
  std::vector<std::size_t> which;
  const bool is_default = take(Kind::default_);
  if (!is_default) {
    do {
      const std::string digits(expect(Kind::number, "the number of a link"));
      which.push_back(digits.size() > 9 ? most_parts : static_cast<std::size_t>(std::stoul(digits)));
    } while (take(Kind::comma));
  }
  expect(Kind::space, "a style");
  Styles styles;
  if (take(Kind::interpolate)) {
    expect(Kind::space, "a curve");
    id_string("a curve");
    if (take(Kind::space)) styles = read_styles(style_text());
  } else {
    styles = read_styles(style_text());
  }
  separator("the style");
  if (is_default) out_.default_edge_style = styles;
  for (const std::size_t index : which) {
    if (index >= out_.edges.size()) throw DiagramError{begin, "linkStyle names link " + std::to_string(index) + ", but there are " + std::to_string(out_.edges.size()) + " before it (counted from 0)"};
    Styles& of = out_.edges[index].style;
    of.insert(of.end(), styles.begin(), styles.end());
  }
}

void Parser::class_definition() {
  ++at_;
  expect(Kind::space, "a class's name");
  const std::string names = id_string("a class's name");
  expect(Kind::space, "a style");
  const Styles styles = read_styles(style_text());
  separator("the style");
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    Styles& of = out_.classes[names.substr(begin, end - begin)];
    of.insert(of.end(), styles.begin(), styles.end());
    begin = end + 1;
  }
}

void Parser::class_statement() {
  ++at_;
  expect(Kind::space, "a node's name");
  const std::string ids = id_string("a node's name");
  expect(Kind::space, "a class's name");
  const std::string name = id_string("a class's name");
  separator("the class");
  set_class(ids, name);
}

void Parser::click() {
  const std::string ids(words_[at_++].text);
  std::string target, tooltip;
  const auto text_and_target = [&] {
    if (!take(Kind::space)) return;
    if (is(Kind::string)) {
      tooltip = label_text(words_[at_++].text);
      if (!take(Kind::space)) return;
      expect(Kind::target, "_self, _blank, _parent or _top");
    } else {
      expect(Kind::target, "a tooltip, _self, _blank, _parent or _top");
    }
  };
  if (take(Kind::call)) {
    take(Kind::call_arguments);
    if (take(Kind::space)) tooltip = label_text(expect(Kind::string, "a tooltip"));
  } else if (take(Kind::href) || is(Kind::string)) {
    target = std::string(expect(Kind::string, "a quoted link"));
    text_and_target();
  } else {
    id_string("a link or the name of a function");
    if (take(Kind::space)) tooltip = label_text(expect(Kind::string, "a tooltip"));
  }
  separator("the click");
  for (std::size_t begin = 0; begin <= ids.size();) {
    const std::size_t end = std::min(ids.find(',', begin), ids.size());
    const auto found = node_at_.find(ids.substr(begin, end - begin));
    if (found != node_at_.end()) {
      if (!target.empty()) out_.nodes[found->second].link = target;
      if (!tooltip.empty()) out_.nodes[found->second].tooltip = tooltip;
    }
    begin = end + 1;
  }
}

// --- What it means -----------------------------------------------------------------------------------
DiagramNode& Parser::node(const std::string& id) {
  const auto [place, is_new] = node_at_.emplace(id, out_.nodes.size());
  if (is_new) {
    if (out_.nodes.size() >= most_parts) throw DiagramError{line(), "there are more than " + std::to_string(most_parts) + " nodes"};
    out_.nodes.push_back({id, label_text(id)});
    out_.nodes.back().line = line();
  }
  return out_.nodes[place->second];
}

void Parser::add_edges(const std::vector<std::string>& from, const std::vector<std::string>& to, const LinkKind& link) {
  if (out_.edges.size() + from.size() * to.size() > most_parts) throw DiagramError{line(), "there are more than " + std::to_string(most_parts) + " links"};
  for (const std::string& left : from) {
    for (const std::string& right : to) {
      out_.edges.push_back({left, right, link.label, link.stroke, link.head, link.tail, link.length, {}, line()});
    }
  }
}

void Parser::set_class(const std::string& ids, const std::string& name) {
  for (std::size_t begin = 0; begin <= ids.size();) {
    const std::size_t end = std::min(ids.find(',', begin), ids.size());
    const std::string id = ids.substr(begin, end - begin);
    if (const auto found = node_at_.find(id); found != node_at_.end()) out_.nodes[found->second].classes.push_back(name);
    if (const auto found = subgraphs_of_.find(id); found != subgraphs_of_.end()) {
      out_.subgraphs[found->second.back()].classes.push_back(name);
    }
    begin = end + 1;
  }
}

// Who stands in which subgraph.
void Parser::settle_subgraphs() {
  for (std::size_t i = 0; i < out_.subgraphs.size(); ++i) {
    for (const std::string& member : out_.subgraphs[i].members) {
      const auto inner = subgraphs_of_.find(member);
      if (inner != subgraphs_of_.end()) {
        for (const std::size_t one : inner->second) {
          if (one < i && out_.subgraphs[one].parent < 0) out_.subgraphs[one].parent = static_cast<int>(i);
        }
      }
      const auto found = node_at_.find(member);
      if (found != node_at_.end()) out_.nodes[found->second].subgraph = static_cast<int>(i);
    }
  }
  // A style on a subgraph's name made a node of that name: it is the subgraph's.
  for (Subgraph& group : out_.subgraphs) {
    const auto found = node_at_.find(group.id);
    if (found != node_at_.end()) group.style = out_.nodes[found->second].style;
  }
}

}  // namespace

Diagram parse_flowchart(const DiagramSource& source) {
  Diagram diagram;
  diagram.kind = DiagramKind::flowchart;
  diagram.title = source.title;
  try {
    Parser(source, diagram).run();
    diagram.ok = true;
  } catch (const DiagramError& error) {
    diagram = Diagram{};
    diagram.kind = DiagramKind::flowchart;
    diagram.error_line = error.line;
    diagram.error = error.reason;
  }
  return diagram;
}

}  // namespace shardbook::page
