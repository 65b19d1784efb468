// diagram/flowchart_statements: styles, classes and clicks of a flowchart, and what its statements mean; see
// flowchart_parser.hpp.
#include <algorithm>

#include "engine/diagram/flowchart_grammar.hpp"

namespace shardbook::diagram::flowchart {

// --- Styles, classes, clicks -------------------------------------------------------------------------
std::string Parser::style_text() {
  const auto is_part = [&] {
    const Kind kind = word().kind;
    return kind == Kind::number || kind == Kind::word || kind == Kind::colon || kind == Kind::space || kind == Kind::hash || kind == Kind::style;
  };
  std::string text;
  do {
    if (!is_part()) wrong("a style such as fill:#eef");
    while (is_part()) text += next().text;
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
  const std::string ids(next().text);
  std::string target, tooltip;
  const auto text_and_target = [&] {
    if (!take(Kind::space)) return;
    if (is(Kind::string)) {
      tooltip = label_text(next().text);
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

}  // namespace shardbook::diagram::flowchart
