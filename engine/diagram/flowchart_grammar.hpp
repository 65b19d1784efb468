// diagram/flowchart_grammar: the parser of flowcharts, a function a production; only its two files include this.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/diagram/flowchart_lexer.hpp"
#include "engine/diagram/flowchart_parser.hpp"
#include "engine/diagram/word_cursor.hpp"

namespace shardbook::diagram::flowchart {

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

// Throws a DiagramError where the text is wrong.
class Parser : WordCursor<FlowWord> {
 public:
  Parser(const DiagramSource& source, Diagram& out) : WordCursor(source, flowchart_words(source.text)), out_(out) {}

  void run() {
    header();
    std::vector<std::string> members;
    std::string direction;
    document(false, members, direction);
    settle_subgraphs();
  }

 private:
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

  Diagram& out_;
  std::vector<int> open_lines_;          // where the subgraphs began that are open
  int unnamed_ = 0;
  std::unordered_map<std::string, std::size_t> node_at_;
  std::unordered_map<std::string, std::vector<std::size_t>> subgraphs_of_;
  std::unordered_set<std::string> placed_;
};

}  // namespace shardbook::diagram::flowchart
