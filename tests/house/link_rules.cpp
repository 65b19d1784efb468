// Rules on links: those that the web follows, and those that only the viewer does.
//
// The viewer's grammar is viewer/scene/link.hpp's. It is written down a second time here, so that a fault of the
// viewer's parser hides no dead link, and so that these tests need nothing that a machine without a display lacks.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>

#include "engine/base/check.hpp"
#include "tests/house/markdown.hpp"
#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

using base::text;

namespace {

template <class Range, class Value>
bool holds(const Range& range, const Value& value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

bool is_elsewhere(const std::string& target) { return target.find("://") != std::string::npos || target.starts_with("mailto:"); }

// "trace:RUN?sel=x" -> {"trace", "RUN?sel=x"}; nothing if it is no link of the viewer.
std::optional<std::pair<std::string, std::string>> of_viewer(const std::string& target) {
  static const std::regex kinds(R"(^(trace|lab|note|room|span|source):(.*)$)");
  std::smatch match;
  if (!std::regex_match(target, match, kinds)) return std::nullopt;
  return std::pair{match[1].str(), match[2].str()};
}

std::pair<std::string, std::string> split(const std::string& words, char at) {
  const std::size_t place = std::min(words.find(at), words.size());
  return {words.substr(0, place), place < words.size() ? words.substr(place + 1) : ""};
}

// What lab:02 or note:03 means: the page of that name, or whose name begins so. "" if there is none.
std::string page_named(const Tree& tree, const std::string& before, const std::string& name, const std::string& after) {
  static const std::regex word(R"([\w-]+)");
  if (!std::regex_match(name, word)) return "";
  const std::regex path(before + name + "(_[^/]*)?" + after);
  const std::vector<std::string> pages = tree.pages();
  const auto page = std::find_if(pages.begin(), pages.end(), [&](const std::string& one) { return std::regex_match(one, path); });
  return page == pages.end() ? "" : *page;
}

bool has_anchor(const Tree& tree, const std::string& page, const std::string& anchor) {
  return anchor.empty() || !page.ends_with(".md") || holds(parse_markdown(tree.texts.at(page)).anchors(), anchor);
}

// Of trace:RUN?t=1.2ms..1.9ms&pin=r0.s20&open=r0&sel=r0.s20/117: what is wrong with it, or "".
std::string wrong_trace(const Tree& tree, const std::string& rest) {
  static const std::string time = "[0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s)";
  static const std::regex part("t=" + time + "\\.\\." + time + "|(pin|open)=r[0-9]+[a-z0-9.]*|sel=(next-exposed|r[0-9]+[a-z0-9.]*/[0-9]+)");
  const auto [run, parts] = split(rest, '?');
  if (!run.empty() && !tree.paths.contains(run)) return text("there is no run or pack ", run);
  for (auto [one, more] = split(parts, '&'); !one.empty(); std::tie(one, more) = split(more, '&')) {
    if (!std::regex_match(one, part)) return text("\"", one, "\" is no part of a view");
  }
  return "";
}

std::string wrong_page(const Tree& tree, const std::string& page, const std::string& name, const std::string& anchor) {
  if (page.empty()) return text("there is no page ", name);
  return has_anchor(tree, page, anchor) ? "" : text(page, " has no anchor ", anchor);
}

std::string wrong_source(const Tree& tree, const std::string& rest) {
  const auto [path, line] = split(rest, ':');
  if (!tree.paths.contains(path)) return text("there is no file ", path);
  if (line.empty()) return "";
  const bool is_number = std::all_of(line.begin(), line.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
  const bool is_known = tree.texts.contains(path);
  if (is_number && is_known && std::stoul(line) <= lines_of(tree.texts.at(path)).size() && line != "0") return "";
  return text(path, " has no line ", line);
}

// "" if the link leads somewhere.
std::string wrong_of_viewer(const Tree& tree, const std::string& kind, const std::string& rest) {
  const auto [name, anchor] = split(rest, '#');
  if (kind == "trace") return wrong_trace(tree, rest);
  if (kind == "lab") return wrong_page(tree, page_named(tree, "labs/", name, "/text\\.md"), name, anchor);
  if (kind == "note") return wrong_page(tree, page_named(tree, "notes/", name, "\\.md"), name, anchor);
  if (kind == "room") return wrong_page(tree, page_named(tree, "notes/rooms/", name, "\\.md"), name, anchor);
  if (kind == "source") return wrong_source(tree, rest);
  Problems unused;
  return find_spans(tree, unused).contains(rest) ? "" : text("the engine has no span ", rest);
}

std::string wrong_relative(const Tree& tree, const std::string& page, const std::string& target) {
  const auto [file, anchor] = split(target, '#');
  std::string path = file.empty() ? page : (std::filesystem::path(page).parent_path() / file).lexically_normal().generic_string();
  if (path.ends_with("/")) path.pop_back();
  if (!tree.paths.contains(path)) return text("the link to ", target, " leads nowhere");
  return has_anchor(tree, path, anchor) ? "" : text(path, " has no anchor ", anchor);
}

}  // namespace

Problems broken_links(const Tree& tree) {
  Problems problems;
  for (const std::string& page : tree.pages()) {
    for (const Link& link : parse_markdown(tree.texts.at(page)).links) {
      if (is_elsewhere(link.target)) continue;
      const auto viewer = of_viewer(link.target);
      const std::string wrong = viewer ? wrong_of_viewer(tree, viewer->first, viewer->second) : wrong_relative(tree, page, link.target);
      if (!wrong.empty()) problems.push_back(text(page, ":", link.line, ": ", wrong));
    }
  }
  return problems;
}

Problems links_for_the_viewer_alone(const Tree& tree) {
  Problems problems;
  for (const std::string& page : tree.pages()) {
    const Markdown markdown = parse_markdown(tree.texts.at(page));
    const std::vector<std::string> lines = lines_of(tree.texts.at(page));
    for (const Link& link : markdown.links) {
      if (!of_viewer(link.target)) continue;
      const bool has_command = lines[static_cast<std::size_t>(link.line) - 1].find("`./shardbook ") != std::string::npos;
      const bool has_plain = std::any_of(markdown.links.begin(), markdown.links.end(), [&](const Link& other) {
        return other.line == link.line && !of_viewer(other.target);
      });
      if (!has_command && !has_plain) {
        problems.push_back(text(page, ":", link.line, ": on the web ", link.target, " is dead; let a plain link or a command stand beside it"));
      }
    }
  }
  return problems;
}

}  // namespace shardbook::tests
