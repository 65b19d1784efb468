#include "tests/house/markdown.hpp"

#include <cctype>
#include <regex>
#include <sstream>

namespace shardbook::tests {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string slug(const std::string& heading) {
  std::string out;
  for (char letter : heading) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x80 || std::isalnum(byte) || letter == '_' || letter == '-') {
      out += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    } else if (letter == ' ') {
      out += '-';
    }
  }
  return out;
}

std::vector<std::string> Markdown::anchors() const {
  std::vector<std::string> all = ids;
  for (const std::string& heading : headings) all.push_back(slug(heading));
  return all;
}

namespace {

// The line with inline code blanked, so that what looks like a link in it is none. Link texts keep their code.
std::string without_code(const std::string& line) {
  std::string out = line;
  bool in_code = false, in_link = false;
  for (char& letter : out) {
    if (letter == '[' && !in_code) in_link = true;
    if (letter == ']' && !in_code) in_link = false;
    if (letter == '`' && !in_link) {
      in_code = !in_code;
      letter = ' ';
    } else if (in_code) {
      letter = ' ';
    }
  }
  return out;
}

void read_prose_line(const std::string& line, int number, Markdown& page) {
  static const std::regex heading(R"(^(#{1,6}) +(.*?) *$)");
  static const std::regex link(R"(\[([^\]]*)\]\(([^)\s]+)\))");
  static const std::regex id(R"re(<a id="([^"]+)"></a>)re");
  std::smatch match;
  if (std::regex_match(line, match, heading)) {
    page.heading_levels.push_back(static_cast<int>(match[1].length()));
    page.headings.push_back(match[2]);
  }
  const std::string plain = without_code(line);
  for (std::sregex_iterator at(plain.begin(), plain.end(), link), end; at != end; ++at) {
    page.links.push_back({number, (*at)[1], (*at)[2]});
  }
  for (std::sregex_iterator at(plain.begin(), plain.end(), id), end; at != end; ++at) page.ids.push_back((*at)[1]);
  page.prose.push_back(line);
}

}  // namespace

Markdown parse_markdown(const std::string& text) {
  Markdown page;
  bool in_fence = false;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.compare(begin, 3, "```") == 0) {
      if (in_fence) {
        page.fences.back().closed = true;
      } else {
        page.fences.push_back({number, line.substr(begin + 3), {}, false});
      }
      in_fence = !in_fence;
    } else if (in_fence) {
      page.fences.back().content.push_back(line);
    } else {
      read_prose_line(line, number, page);
    }
  }
  return page;
}

}  // namespace shardbook::tests
