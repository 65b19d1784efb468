// What tests of the page look at: is it well-formed, and which figures does it state?
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "engine/report/page.hpp"
#include "tests/metrics/scene.hpp"

namespace shardbook::report {

inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// "" if the page is a tree of closed elements with quoted attributes and nothing but known entities; else what is wrong.
// Counts elements whose name is not one that the room writes as wrong, so that no name of a trace becomes one.
inline std::string problem_of(std::string_view page) {
  static const std::vector<std::string_view> known{
      "html", "head", "meta", "title", "style", "body", "svg", "defs", "pattern", "rect", "circle", "path", "line", "text", "g",
      "header", "section", "h1", "h2", "p", "b", "i", "span", "div", "code", "pre", "dl", "dt", "dd", "data", "figure", "table",
      "thead", "tbody", "tr", "th", "td"};
  const std::string_view doctype = "<!DOCTYPE html>\n";
  if (!page.starts_with(doctype)) return "no doctype";
  std::vector<std::string_view> open;
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
  const auto near = [&](std::size_t at) { return std::string(page.substr(at, 80)); };
  std::size_t at = doctype.size();
  const auto entity = [&]() {
    for (std::string_view one : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (page.substr(at).starts_with(one)) return at += one.size(), true;
    }
    return false;
  };
  while (at < page.size()) {
    if (page[at] == '&') {
      if (!entity()) return "an entity that is none: " + near(at);
    } else if (page[at] == '>') {
      return "a > outside of a tag: " + near(at);
    } else if (page[at] != '<') {
      ++at;
    } else {
      const bool closes = page.substr(at + 1).starts_with('/');
      std::size_t begin = at + 1 + closes, end = begin;
      while (end < page.size() && is_name(page[end])) ++end;
      const std::string_view name = page.substr(begin, end - begin);
      if (std::find(known.begin(), known.end(), name) == known.end()) return "an element of an unknown name: " + near(at);
      at = end;
      if (closes) {
        if (open.empty() || open.back() != name || page[at] != '>') return "closes what is not open: " + near(begin);
        open.pop_back();
        ++at;
        continue;
      }
      // Attributes: name="value"
      while (at < page.size() && page[at] == ' ') {
        end = ++at;
        while (end < page.size() && is_name(page[end])) ++end;
        if (end == at || !page.substr(end).starts_with("=\"")) return "an attribute without a quoted value: " + near(at);
        if (page.substr(at).starts_with("on")) return "an attribute that is a script: " + near(at);
        at = end + 2;
        while (at < page.size() && page[at] != '"') {
          if (page[at] == '<' || page[at] == '>' || page[at] == '\n') return "markup in an attribute: " + near(at);
          if (page[at] != '&') ++at;
          else if (!entity()) return "an entity that is none: " + near(at);
        }
        ++at;
      }
      if (page.substr(at).starts_with("/>")) {
        at += 2;
      } else {
        if (at >= page.size() || page[at] != '>') return "a tag that does not end: " + near(at);
        open.push_back(name);
        ++at;
      }
    }
  }
  return open.empty() ? "" : "not closed: " + std::string(open.back());
}

// The part of a page from the heading that begins with `title` to the section's end.
inline std::string_view section_of(std::string_view page, std::string_view title) {
  const std::size_t begin = page.find("<h2>" + std::string(title));
  return begin == std::string_view::npos ? "" : page.substr(begin, page.find("</section>", begin) - begin);
}

// The values of its <data> elements, in order; each is checked against the text that a reader sees.
inline std::vector<std::int64_t> data_of(std::string_view part) {
  std::vector<std::int64_t> values;
  const std::string_view tag = "<data value=\"";
  for (std::size_t at = part.find(tag); at != std::string_view::npos; at = part.find(tag, at + 1)) {
    const std::string rest(part.substr(at + tag.size(), 80));
    values.push_back(std::stoll(rest));
    const std::string shown = rest.substr(rest.find('>') + 1, rest.find('<') - rest.find('>') - 1);
    std::string digits = shown;
    digits.erase(digits.find('.'), 1);
    EXPECT_EQ(std::stoll(digits), values.back()) << shown;
  }
  return values;
}

inline std::string page_of(const Timeline& timeline, std::optional<int> step = {}, const timeline::RunInfo* run = nullptr) {
  const Figures figures = figures_of(timeline, step);
  return page({timeline, figures, run, "a run", "shardbook report"});
}

}  // namespace shardbook::report
