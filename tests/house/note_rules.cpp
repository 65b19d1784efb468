// Rules on pages alone: fences, titles, paths, translations.
#include "tests/house/note_rules.hpp"

#include <algorithm>
#include <regex>

#include "engine/base/check.hpp"
#include "tests/house/markdown.hpp"

namespace shardbook::tests {

using base::text;

Problems broken_fences(const Tree& tree) {
  static const std::set<std::string> kinds{"flowchart", "sequenceDiagram", "gantt"};
  Problems problems;
  for (const std::string& page : tree.pages()) {
    for (const Fence& fence : parse_markdown(tree.texts.at(page)).fences) {
      const std::string where = text(page, ":", fence.line, ": ");
      if (!fence.closed) problems.push_back(where + "this fence is not closed");
      if (fence.info != "mermaid") continue;
      const std::string first = fence.content.empty() ? "" : fence.content[0].substr(0, fence.content[0].find(' '));
      if (!kinds.contains(first)) problems.push_back(text(where, "a diagram begins with its kind, not with '", first, "'"));
      if (fence.content.size() < 2) problems.push_back(where + "this diagram is empty");
    }
  }
  return problems;
}

Problems foreign_paths(const Tree& tree) {
  // An absolute path belongs to one machine. A slash within a word or between blanks is none.
  static const std::regex absolute(R"((^|[\s("'`=])(/|[A-Z]:\\)[A-Za-z_][\w.-]*(/|\\|\b))");
  Problems problems;
  for (const std::string& page : tree.pages()) {
    int number = 0;
    for (const std::string& line : lines_of(tree.texts.at(page))) {
      ++number;
      std::smatch match;
      if (std::regex_search(line, match, absolute)) problems.push_back(text(page, ":", number, ": ", match.str(), " is a path of one machine"));
    }
  }
  return problems;
}

Problems bad_titles(const Tree& tree) {
  Problems problems;
  for (const std::string& page : tree.pages()) {
    const std::string& content = tree.texts.at(page);
    const std::vector<int> levels = parse_markdown(content).heading_levels;
    if (!content.starts_with("# ")) problems.push_back(page + ":1: a page begins with its title");
    if (std::count(levels.begin(), levels.end(), 1) != 1) problems.push_back(page + ": a page has one title");
  }
  return problems;
}

Problems stray_translations(const Tree& tree) {
  Problems problems;
  for (const std::string& page : tree.pages()) {
    if (!page.ends_with(".es.md")) continue;
    const std::string original = page.substr(0, page.size() - 6) + ".md";
    if (!tree.texts.contains(original)) {
      problems.push_back(page + " translates a page that is not there");
      continue;
    }
    const Markdown from = parse_markdown(tree.texts.at(original)), to = parse_markdown(tree.texts.at(page));
    auto targets = [](const Markdown& markdown) {
      std::vector<std::string> all;
      for (const Link& link : markdown.links) all.push_back(link.target);
      return all;
    };
    // What is run, woven in or drawn is the same in every language; what is quoted need not be.
    auto run = [](const Markdown& markdown) {
      std::vector<std::string> all;
      for (const Fence& fence : markdown.fences) {
        if (fence.info == "text") continue;
        for (const std::string& line : fence.content) all.push_back(line);
      }
      return all;
    };
    if (from.ids != to.ids) problems.push_back(page + " has other anchors than its original");
    if (from.heading_levels != to.heading_levels) problems.push_back(page + " has other sections than its original");
    if (run(from) != run(to)) problems.push_back(page + " has other commands, spans or diagrams than its original");
    if (targets(from) != targets(to)) problems.push_back(page + " has other links than its original");
  }
  return problems;
}

}  // namespace shardbook::tests
