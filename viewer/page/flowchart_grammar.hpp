// page/flowchart_grammar: the parser of flowcharts, a function a production; only its two files include this.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/check.hpp"
#include "viewer/page/diagram_limits.hpp"
#include "viewer/page/flowchart_lexer.hpp"
#include "viewer/page/flowchart_parser.hpp"

namespace shardbook::page::flowchart {

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

// Throws a DiagramError where the text is wrong.
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

}  // namespace shardbook::page::flowchart
