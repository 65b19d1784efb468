// page/page_finish: see page_finish.hpp.
#include "viewer/page/page_finish.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "engine/base/check.hpp"
#include "engine/base/nearest.hpp"
#include "engine/diagram/diagram_source.hpp"
#include "viewer/page/highlight.hpp"
#include "viewer/page/markdown.hpp"

namespace shardbook::page {

using diagram::append_utf8;
using diagram::next_code_point;
using diagram::trimmed;

namespace {

using base::text;

// <a id="x"></a>, with either quotes or none, or name instead of id. "" if the text does not begin with one.
std::string anchor_at(std::string_view words, std::size_t& length) {
  if (words.substr(0, 3) != "<a ") return "";
  const std::size_t close = words.substr(0, 200).find('>');
  if (close == std::string_view::npos) return "";
  std::string_view inside = trimmed(words.substr(3, close - 3));
  if (!inside.empty() && inside.back() == '/') inside = trimmed(inside.substr(0, inside.size() - 1));
  const std::size_t equals = inside.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view key = trimmed(inside.substr(0, equals));
  std::string_view value = trimmed(inside.substr(equals + 1));
  if (key != "id" && key != "name") return "";
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) value = value.substr(1, value.size() - 2);
  length = close + 1;
  if (words.substr(length, 4) == "</a>") length += 4;
  return std::string(value);
}

class Finisher {
 public:
  Finisher(Document& document, const std::vector<book::Excerpt>& excerpts) : document_(document) {
    for (const book::Excerpt& excerpt : excerpts) {
      by_name_.emplace(excerpt.name, &excerpt);
      names_.push_back(excerpt.name);
    }
  }

  void run() {
    finish(document_.blocks);
    for (const std::string& link : document_.links) check_span_link(link);
    constexpr std::size_t most_problems = 200;
    if (document_.problems.size() <= most_problems) return;
    const std::size_t more = document_.problems.size() - most_problems;
    document_.problems.resize(most_problems);
    document_.problems.push_back(text(document_.name, ": ", more, " more problems"));
  }

 private:
  void finish(std::vector<Block>& blocks);
  void admonition(Block& quote);
  std::vector<Block> anchors(Block& block);
  void heading(Block& block);
  void weave(Block& block);
  void check_span_link(const std::string& link);
  void line_breaks(std::vector<Run>& runs);
  std::string missing(const std::string& name) const;

  Document& document_;
  std::unordered_map<std::string, const book::Excerpt*> by_name_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> ids_;
};

void Finisher::finish(std::vector<Block>& blocks) {
  std::vector<Block> finished;
  finished.reserve(blocks.size());
  for (Block& block : blocks) {
    if (block.kind == Block::Kind::quote) admonition(block);
    if (block.kind == Block::Kind::code && block.language == "span") weave(block);
    if (block.kind == Block::Kind::code && block.language == "mermaid") block.kind = Block::Kind::diagram;
    for (Block& anchor : anchors(block)) finished.push_back(std::move(anchor));
    line_breaks(block.runs);
    for (std::vector<std::vector<Run>>& row : block.cells) {
      for (std::vector<Run>& cell : row) line_breaks(cell);
    }
    if (block.kind == Block::Kind::heading) heading(block);
    const bool empty = block.kind == Block::Kind::paragraph && std::all_of(block.runs.begin(), block.runs.end(), [](const Run& run) { return trimmed(run.text).empty(); });
    finish(block.children);
    if (!empty) finished.push_back(std::move(block));
  }
  blocks = std::move(finished);
}

// > [!NOTE] at the begin of a quote.
void Finisher::admonition(Block& quote) {
  if (quote.children.empty() || quote.children[0].kind != Block::Kind::paragraph || quote.children[0].runs.empty()) return;
  std::string& first = quote.children[0].runs[0].text;
  const std::size_t close = std::string_view(first).substr(0, 16).find(']');
  if (first.substr(0, 2) != "[!" || close == std::string::npos) return;
  std::string kind = first.substr(2, close - 2);
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array<std::string_view, 5> known{"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"};
  if (std::find(known.begin(), known.end(), kind) == known.end()) {
    document_.problems.push_back(text(document_.name, ":", quote.line, ": [!", kind, "] is no kind of admonition: those are NOTE, TIP, IMPORTANT, WARNING and CAUTION"));
    return;
  }
  quote.kind = Block::Kind::admonition;
  quote.title = kind;
  first.erase(0, close + 1);
  first.erase(0, std::min(first.find_first_not_of(" \n"), first.size()));
}

// Takes the anchors out of a block's text; they come before it.
std::vector<Block> Finisher::anchors(Block& block) {
  std::vector<Block> found;
  for (Run& run : block.runs) {
    if ((run.style & Style::code) != 0) continue;
    std::string kept;
    std::size_t last = 0;
    for (std::size_t at = run.text.find("<a "); at != std::string::npos; at = run.text.find("<a ", at)) {
      std::size_t length = 0;
      const std::string id = anchor_at(std::string_view(run.text).substr(at), length);
      if (id.empty()) {
        ++at;
        continue;
      }
      Block anchor;
      anchor.kind = Block::Kind::anchor;
      anchor.target = id;
      anchor.line = block.line;
      found.push_back(std::move(anchor));
      kept.append(run.text, last, at - last);
      at += length;
      last = at;
    }
    if (last > 0) run.text = kept + run.text.substr(last);
  }
  return found;
}

// <br> breaks the line, and a comment says nothing; both are the only HTML beside anchors that has a meaning here.
void Finisher::line_breaks(std::vector<Run>& runs) {
  for (Run& run : runs) {
    if ((run.style & Style::code) != 0 || run.text.find('<') == std::string::npos) continue;
    std::string kept;
    const std::size_t last_close = run.text.rfind("-->");
    for (std::size_t at = 0; at < run.text.size();) {
      const std::string_view rest = std::string_view(run.text).substr(at);
      std::size_t length = 0;
      if (rest.substr(0, 3) == "<br") length = rest.substr(0, 8).find('>') + 1;
      if (length > 0) {
        kept += '\n';
      } else if (rest.substr(0, 4) == "<!--" && last_close != std::string::npos && last_close > at + 3) {
        length = rest.find("-->") + 3;
      } else {
        kept += run.text[at];
        length = 1;
      }
      at += length;
    }
    run.text = std::move(kept);
  }
}

void Finisher::heading(Block& block) {
  const std::string words = plain_text(block.runs);
  std::string id = heading_id(words);
  const int before = ids_[id]++;
  if (before > 0) id += text("-", before);
  block.target = id;
  if (document_.title.empty()) document_.title = std::string(trimmed(words));
}

std::string Finisher::missing(const std::string& name) const {
  std::string sentence = text("there is no span `", name.substr(0, 80), "`");
  // The nearest of many is dear for a long name, and then nobody meant one.
  if (!names_.empty() && name.size() <= 80 && document_.problems.size() < 20) sentence += text("; the nearest is `", base::nearest(name, names_), "`");
  return sentence;
}

void Finisher::weave(Block& block) {
  const std::string name(trimmed(block.text));
  block.kind = Block::Kind::span;
  block.target = name;
  block.text.clear();
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    block.title = missing(name);
    document_.problems.push_back(text(document_.name, ":", block.line, ": ", block.title));
    return;
  }
  const book::Excerpt& excerpt = *found->second;
  block.title = excerpt.title;
  block.source_path = excerpt.path;
  block.source_line = excerpt.line;
  block.language = std::string(extension_of(excerpt.path));
  for (const std::string& line : excerpt.text) block.text += line + "\n";
}

void Finisher::check_span_link(const std::string& link) {
  if (link.compare(0, 5, "span:") != 0 || by_name_.count(link.substr(5)) > 0) return;
  document_.problems.push_back(text(document_.name, ": ", missing(link.substr(5))));
}

}  // namespace

std::string plain_text(const std::vector<Run>& runs) {
  std::string out;
  for (const Run& run : runs) out += run.text;
  return out;
}

std::string heading_id(std::string_view heading) {
  std::string id;
  const std::string_view words = trimmed(heading);
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t begin = at;
    const std::uint32_t code = next_code_point(words, at);
    if (code == ' ') {
      id += '-';
    } else if (code < 0x80) {
      const char c = words[begin];
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (code >= 0xC0 && code <= 0xDE && code != 0xD7) {
      append_utf8(id, code + 0x20);
    } else if (code >= 0x391 && code <= 0x3A9) {
      append_utf8(id, code + 0x20);
    } else if ((code >= 0xDF && code < 0x2000 && code != 0xF7) || code >= 0x2C00 || code == 0xAA || code == 0xB5 || code == 0xBA ||
               (code >= 0x2070 && code < 0x20A0)) {
      id.append(words.substr(begin, at - begin));
    }
  }
  return id;
}

void finish_page(Document& document, const std::vector<book::Excerpt>& excerpts) { Finisher(document, excerpts).run(); }

}  // namespace shardbook::page
