#include "engine/cli/markdown.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "engine/base/nearest.hpp"
#include "engine/cli/console.hpp"

namespace shardbook::cli {

using base::Done;
using base::Error;
using base::Status;
using base::text;

namespace {

std::string trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// "- text", "* text", "12. text": how many characters the marker takes with its blank; 0: no item.
std::size_t item_marker(const std::string& line) {
  const std::size_t begin = indent_of(line);
  if (line.compare(begin, 2, "- ") == 0 || line.compare(begin, 2, "* ") == 0 || line.compare(begin, 2, "+ ") == 0) return 2;
  std::size_t digits = begin;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits]))) ++digits;
  const bool numbered = digits > begin && digits - begin < 4 && line.compare(digits, 2, ". ") == 0;
  return numbered ? digits - begin + 2 : 0;
}

bool is_rule(const std::string& line) {
  const std::string plain = trimmed(line);
  return plain.size() >= 3 && (plain.find_first_not_of('-') == std::string::npos || plain.find_first_not_of('*') == std::string::npos);
}

// The character before a blank is swallowed by no style, so styled words still break at blanks: each word is
// styled by itself.
std::string styled_words(const std::string& words, std::string (*style)(std::string_view, bool), bool on) {
  if (!on) return words;
  std::string out, word;
  for (const char c : words + ' ') {
    if (c != ' ') {
      word += c;
      continue;
    }
    out += (word.empty() ? "" : style(word, true)) + ' ';
    word.clear();
  }
  out.pop_back();
  return out;
}

// Where a mark stands next, asked from left to right: the text is searched once, however often is asked.
class Marks {
 public:
  Marks(const std::string& text, std::string_view mark) : text_(text), mark_(mark) {}
  std::size_t from(std::size_t begin) {
    if (!searched_ || next_ < begin) next_ = text_.find(mark_, begin);
    searched_ = true;
    return next_;
  }

 private:
  const std::string& text_;
  std::string_view mark_;
  std::size_t next_ = 0;
  bool searched_ = false;
};

class Page {
 public:
  Page(const std::string& markdown, const std::string& name, const std::vector<book::Excerpt>& excerpts, const PageOptions& options,
       int depth = 0)
      : name_(name), excerpts_(excerpts), options_(options), depth_(depth) {
    std::istringstream in(markdown);
    for (std::string line; std::getline(in, line);) source_.push_back(line);
  }

  base::Result<std::vector<std::string>> lines() {
    while (at_ < source_.size()) {
      if (Status status = block(); !status) return status.as_error();
    }
    while (!out_.empty() && out_.back().empty()) out_.pop_back();
    return std::move(out_);
  }

 private:
  Status block() {
    const std::string& line = source_[at_];
    const std::string plain = trimmed(line);
    if (plain.empty()) {
      ++at_;
      gap();
    } else if (plain.compare(0, 3, "```") == 0) {
      return fence();
    } else if (plain[0] == '#') {
      heading(plain);
    } else if (plain[0] == '|') {
      return table();
    } else if (plain[0] == '>' && depth_ < deepest_quote) {
      return quote();
    } else if (plain.compare(0, 4, "<!--") == 0) {
      while (at_ < source_.size() && source_[at_].find("-->") == std::string::npos) ++at_;
      ++at_;
    } else if (plain.compare(0, 2, "<a") == 0 && plain.size() > 4 && plain.compare(plain.size() - 4, 4, "</a>") == 0) {
      ++at_;   // an anchor shows nothing
    } else if (is_rule(line)) {
      ++at_;
      out_.push_back(dim(rule(options_.columns), options_.styled));
    } else {
      return paragraph();
    }
    return Done{};
  }

  void gap() {
    if (!out_.empty() && !out_.back().empty()) out_.emplace_back();
  }

  static std::string rule(int columns) {
    std::string line;
    for (int i = 0; i < columns; ++i) line += "─";
    return line;
  }

  void heading(const std::string& plain) {
    const std::size_t level = std::min(plain.find_first_not_of('#'), plain.size());
    gap();
    const std::string title = inline_text(trimmed(plain.substr(level)), false);
    out_.push_back(bold(title, options_.styled));
    if (level <= 2) {
      std::string underline;
      for (int i = 0; i < width_of(title); ++i) underline += level == 1 ? "═" : "─";
      out_.push_back(bold(underline, options_.styled));
    }
    out_.emplace_back();
    ++at_;
  }

  // A paragraph or one item of a list, with the lines that go on with it.
  Status paragraph() {
    const std::string first = source_[at_];
    const std::size_t begin = indent_of(first), marker = item_marker(first);
    std::string words = first.substr(begin + marker);
    for (++at_; at_ < source_.size() && continues(source_[at_]); ++at_) words += " " + trimmed(source_[at_]);
    if (problem_.empty()) words = inline_text(words, options_.styled);
    if (!problem_.empty()) return Error{problem_};
    std::string lead(begin, ' ');
    if (marker > 0) lead += first.substr(begin, marker)[0] == '-' || marker == 2 ? "• " : first.substr(begin, marker);
    const std::string indent(begin + marker, ' ');
    std::vector<std::string> wrapped = wrap(words, options_.columns - static_cast<int>(indent.size()));
    for (std::size_t i = 0; i < wrapped.size(); ++i) out_.push_back((i == 0 ? lead : indent) + wrapped[i]);
    return Done{};
  }

  static bool continues(const std::string& line) {
    const std::string plain = trimmed(line);
    return !plain.empty() && plain[0] != '#' && plain[0] != '|' && plain[0] != '>' && plain.compare(0, 3, "```") != 0 &&
           item_marker(line) == 0;
  }

  Status quote() {
    std::string inner;
    for (; at_ < source_.size() && trimmed(source_[at_]).compare(0, 1, ">") == 0; ++at_) {
      const std::string plain = trimmed(source_[at_]).substr(1);
      inner += (plain.compare(0, 1, " ") == 0 ? plain.substr(1) : plain) + "\n";
    }
    PageOptions narrower = options_;
    narrower.columns -= 2;
    base::Result<std::vector<std::string>> lines = Page(inner, name_, excerpts_, narrower, depth_ + 1).lines();
    if (!lines) return lines.as_error();
    for (const std::string& line : lines.value()) out_.push_back(dim("│", options_.styled) + (line.empty() ? "" : " " + line));
    return Done{};
  }

  // Cells as wide as the widest of their column; where the table would be too wide, its widest column wraps.
  Status table() {
    std::vector<std::vector<std::string>> rows;
    std::vector<bool> right;
    for (; at_ < source_.size() && trimmed(source_[at_]).compare(0, 1, "|") == 0; ++at_) {
      std::vector<std::string> cells = cells_of(trimmed(source_[at_]));
      const bool dashes = std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
        return !cell.empty() && cell.find_first_not_of("-: ") == std::string::npos;
      });
      if (dashes && rows.size() == 1) {
        for (const std::string& cell : cells) right.push_back(cell.back() == ':' && cell.front() != ':');
        continue;
      }
      for (std::string& cell : cells) cell = inline_text(cell, options_.styled);
      rows.push_back(std::move(cells));
    }
    if (!problem_.empty()) return Error{problem_};

    std::vector<int> widths;
    for (const auto& row : rows) {
      widths.resize(std::max(widths.size(), row.size()), 0);
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
    }
    right.resize(widths.size(), false);
    int sum = 2 * (static_cast<int>(widths.size()) - 1);
    for (const int width : widths) sum += width;
    while (sum > options_.columns) {
      int& widest = *std::max_element(widths.begin(), widths.end());
      if (widest <= 12) break;
      --widest;
      --sum;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      put_row(rows[r], widths, right, r == 0);
      if (r == 0) {
        std::string line;
        for (std::size_t c = 0; c < widths.size(); ++c) line += (c == 0 ? "" : "  ") + rule(widths[c]);
        out_.push_back(dim(line, options_.styled));
      }
    }
    return Done{};
  }

  static std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::string cell;
    bool in_code = false;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '`') in_code = !in_code;
      if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
        cell += line[++i];
      } else if (line[i] == '|' && !in_code) {
        cells.push_back(trimmed(cell));
        cell.clear();
      } else {
        cell += line[i];
      }
    }
    if (!trimmed(cell).empty()) cells.push_back(trimmed(cell));
    return cells;
  }

  void put_row(const std::vector<std::string>& row, const std::vector<int>& widths, const std::vector<bool>& right, bool is_head) {
    std::vector<std::vector<std::string>> wrapped;
    std::size_t height = 1;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      wrapped.push_back(wrap(c < row.size() ? row[c] : "", widths[c]));
      height = std::max(height, wrapped.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (std::size_t c = 0; c < widths.size(); ++c) {
        const std::string cell = h < wrapped[c].size() ? wrapped[c][h] : "";
        line += (c == 0 ? "" : "  ") + (right[c] ? pad_left(cell, widths[c]) : pad_right(cell, widths[c]));
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out_.push_back(is_head ? bold(line, options_.styled) : line);
    }
  }

  Status fence() {
    const std::string opening = trimmed(source_[at_]);
    const std::size_t ticks = std::min(opening.find_first_not_of('`'), opening.size());
    const std::string kind = trimmed(opening.substr(ticks));
    const std::size_t begin = ++at_;
    while (at_ < source_.size() && trimmed(source_[at_]) != std::string(ticks, '`')) ++at_;
    if (at_ == source_.size()) return Error{text(name_, ":", begin, ": this code block has no end")};
    const std::vector<std::string> content(source_.begin() + static_cast<std::ptrdiff_t>(begin),
                                           source_.begin() + static_cast<std::ptrdiff_t>(at_));
    ++at_;
    if (kind == "span") return weave(trimmed(content.empty() ? "" : content.front()), begin);
    if (kind == "mermaid") out_.push_back(dim("    (a diagram; the web and the viewer draw it)", options_.styled));
    for (const std::string& line : content) out_.push_back(line.empty() ? "" : dim("    " + line, options_.styled));
    return Done{};
  }

  Status weave(const std::string& name, std::size_t line) {
    const book::Excerpt* excerpt = find(name);
    if (excerpt == nullptr) return Error{no_span(name, line)};
    out_.push_back("┌ " + bold(excerpt->title, options_.styled));
    out_.push_back("│ " + dim(text(excerpt->path, ":", excerpt->line), options_.styled));
    for (const std::string& code : excerpt->text) out_.push_back(code.empty() ? "│" : "│ " + code);
    out_.emplace_back("└");
    return Done{};
  }

  const book::Excerpt* find(const std::string& name) const {
    const auto found = std::find_if(excerpts_.begin(), excerpts_.end(), [&](const book::Excerpt& one) { return one.name == name; });
    return found == excerpts_.end() ? nullptr : &*found;
  }

  std::string no_span(const std::string& name, std::size_t line) const {
    std::vector<std::string> known;
    for (const book::Excerpt& excerpt : excerpts_) known.push_back(excerpt.name);
    return text(name_, ":", line, ": the engine has no span '", name, "'",
                known.empty() ? std::string() : "; the nearest is " + base::nearest(name, known));
  }

  // `code`, **bold**, *emphasis*, [words](target). Marks go, words stay; a link is followed by its target
  // unless that leads only about in the notes.
  std::string inline_text(const std::string& source, bool on) {
    std::string out;
    Marks code(source, "`"), strong(source, "**"), emphasis(source, "*"), link_middle(source, "]("), link_end(source, ")");
    for (std::size_t i = 0; i < source.size();) {
      std::size_t end;
      if (source[i] == '\\' && i + 1 < source.size() && std::ispunct(static_cast<unsigned char>(source[i + 1]))) {
        out += source[i + 1];
        i += 2;
      } else if (source[i] == '`' && (end = code.from(i + 1)) != std::string::npos) {
        out += styled_words(source.substr(i + 1, end - i - 1), bold, on);
        i = end + 1;
      } else if (source.compare(i, 2, "**") == 0 && (end = strong.from(i + 2)) != std::string::npos) {
        out += styled_words(inline_text(source.substr(i + 2, end - i - 2), false), bold, on);
        i = end + 2;
      } else if (source[i] == '*' && i + 1 < source.size() && source[i + 1] != ' ' && (end = emphasis.from(i + 1)) != std::string::npos &&
                 source[end - 1] != ' ') {
        out += styled_words(inline_text(source.substr(i + 1, end - i - 1), false), bold, on);
        i = end + 1;
      } else if (source[i] == '[' && (end = link_middle.from(i)) != std::string::npos && link_end.from(end) != std::string::npos) {
        const std::size_t close = link_end.from(end);
        out += link(inline_text(source.substr(i + 1, end - i - 1), on), source.substr(end + 2, close - end - 2), on);
        i = close + 1;
      } else {
        out += source[i++];
      }
    }
    return out;
  }

  std::string link(const std::string& words, const std::string& target, bool on) {
    if (target.compare(0, 5, "span:") == 0) {
      const book::Excerpt* excerpt = find(target.substr(5));
      if (excerpt == nullptr) {
        if (problem_.empty()) problem_ = no_span(target.substr(5), at_);
        return words;
      }
      return words + " " + dim(text("(", excerpt->path, ":", excerpt->line, ")"), on);
    }
    const bool outside = target.find("://") != std::string::npos;
    return outside && words != target ? words + " " + styled_words("(" + target + ")", dim, on) : words;
  }

  std::string name_;
  const std::vector<book::Excerpt>& excerpts_;
  PageOptions options_;
  static constexpr int deepest_quote = 16;
  int depth_;                                // of quotes in quotes
  std::vector<std::string> source_, out_;
  std::size_t at_ = 0;
  std::string problem_;   // the first span of a link that is not there
};

}  // namespace

base::Result<std::vector<std::string>> page_lines(const std::string& markdown, const std::string& name,
                                                  const std::vector<book::Excerpt>& excerpts, const PageOptions& options) {
  return Page(markdown, name, excerpts, options).lines();
}

std::string title_of(const std::string& markdown) {
  std::istringstream in(markdown);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 1, "#") == 0) return trimmed(line.substr(std::min(line.find_first_not_of('#'), line.size())));
  }
  return "";
}

}  // namespace shardbook::cli
