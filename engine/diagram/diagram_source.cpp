// diagram/diagram_source: cleaning of Mermaid text; see diagram_source.hpp.
#include "engine/diagram/diagram_source.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace shardbook::diagram {

namespace {

constexpr char entity_begin = '\x01', entity_end = '\x02';

// One kind of line end; no control characters that we use ourselves.
std::string with_plain_lines(std::string_view raw) {
  std::string text;
  text.reserve(raw.size() + 1);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\r') {
      text += '\n';
      if (i + 1 < raw.size() && raw[i + 1] == '\n') ++i;
    } else {
      text += raw[i] == entity_begin || raw[i] == entity_end || raw[i] == '\0' ? ' ' : raw[i];
    }
  }
  return text;
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end && i < text.size(); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// Blanks `---` ... `---` at the top and returns its title.
std::string take_front_matter(std::string& text) {
  std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos || text.compare(begin, 3, "---") != 0) return "";
  const std::size_t first_end = text.find('\n', begin);
  if (first_end == std::string::npos || !trimmed(std::string_view(text).substr(begin + 3, first_end - begin - 3)).empty()) return "";
  std::string title;
  for (std::size_t at = first_end + 1; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.substr(0, 3) == "---" && trimmed(line.substr(3)).empty()) {
      blank(text, begin, end);
      return title;
    }
    if (line.substr(0, 6) == "title:") {
      std::string_view value = trimmed(line.substr(6));
      if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) value = value.substr(1, value.size() - 2);
      title = std::string(value);
    }
    at = end + 1;
  }
  return "";
}

void blank_directives(std::string& text) {
  for (std::size_t at = text.find("%%{"); at != std::string::npos; at = text.find("%%{", at)) {
    const std::size_t end = text.find("}%%", at);
    if (end == std::string::npos) return;
    blank(text, at, end + 3);
    at = end + 3;
  }
}

void blank_comment_lines(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(" \t", at);
    if (first < end && text.compare(first, 2, "%%") == 0 && text.compare(first, 3, "%%{") != 0 && first + 2 < end) blank(text, at, end);
    at = end + 1;
  }
}

// <a href="x"> becomes <a href='x'>: the quotes of a tag end no label.
void single_quotes_in_tags(std::string& text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (at + 1 >= text.size() || !is_word_char(text[at + 1])) continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return;
    for (std::size_t i = at; i + 1 < end; ++i) {
      if (text[i] != '=' || text[i + 1] != '"') continue;
      const std::size_t close = std::string_view(text).substr(0, end).find('"', i + 2);
      if (close == std::string_view::npos) break;
      text[i + 1] = text[close] = '\'';
      i = close;
    }
    at = end;
  }
}

// `style A fill:#f9f;` has a last ';' that would make #f9f; an entity: it is dropped where a colour stands before it.
void drop_last_semicolon(std::string& line, std::string_view keyword) {
  const std::size_t begin = line.find(keyword);
  const std::size_t last = line.rfind(';');
  if (begin == std::string::npos || last == std::string::npos) return;
  bool after_colon = false;
  for (std::size_t i = begin + keyword.size(); i < last; ++i) {
    if (is_blank(line[i])) after_colon = false;
    if (line[i] == ':') after_colon = true;
    if (line[i] == '#' && after_colon) {
      line.erase(last, 1);
      return;
    }
  }
}

std::string with_entities_marked(const std::string& line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '#') {
      out += line[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < line.size() && is_word_char(line[end])) ++end;
    if (end == i + 1 || end >= line.size() || line[end] != ';') {
      out.append(line, i, end - i);
      i = end - 1;
      continue;
    }
    out += entity_begin;
    out.append(line, i + 1, end - i - 1);
    out += entity_end;
    i = end;
  }
  return out;
}

struct NamedEntity {
  std::string_view name, text;
};
constexpr std::array<NamedEntity, 71> named_entities{{
    {"quot", "\""}, {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"apos", "'"}, {"nbsp", "\u00a0"}, {"semi", ";"},
    {"colon", ":"}, {"comma", ","}, {"num", "#"}, {"lpar", "("}, {"rpar", ")"}, {"lbrack", "["}, {"rbrack", "]"},
    {"lbrace", "{"}, {"rbrace", "}"}, {"lsqb", "["}, {"rsqb", "]"}, {"lcub", "{"}, {"rcub", "}"}, {"vert", "|"},
    {"verbar", "|"}, {"sol", "/"}, {"bsol", "\\"}, {"excl", "!"}, {"quest", "?"}, {"equals", "="}, {"plus", "+"},
    {"ast", "*"}, {"percnt", "%"}, {"dollar", "$"}, {"commat", "@"}, {"grave", "`"}, {"lowbar", "_"}, {"Hat", "^"},
    {"hearts", "\u2665"}, {"infin", "\u221e"}, {"larr", "\u2190"}, {"uarr", "\u2191"}, {"rarr", "\u2192"}, {"darr", "\u2193"},
    {"harr", "\u2194"}, {"alpha", "\u03b1"}, {"beta", "\u03b2"}, {"gamma", "\u03b3"}, {"delta", "\u03b4"}, {"lambda", "\u03bb"},
    {"mu", "\u03bc"}, {"pi", "\u03c0"}, {"sigma", "\u03c3"}, {"Sigma", "\u03a3"}, {"times", "\u00d7"}, {"divide", "\u00f7"},
    {"le", "\u2264"}, {"ge", "\u2265"}, {"ne", "\u2260"}, {"sum", "\u2211"}, {"cap", "\u2229"}, {"cup", "\u222a"},
    {"middot", "\u00b7"}, {"hellip", "\u2026"}, {"mdash", "\u2014"}, {"ndash", "\u2013"}, {"deg", "\u00b0"}, {"copy", "\u00a9"},
    {"micro", "\u00b5"}, {"plusmn", "\u00b1"}, {"sup2", "\u00b2"}, {"bull", "\u2022"}, {"check", "\u2713"}, {"cross", "\u2717"},
}};

// br, BR, br /: what stands between < and > of a line break.
bool is_break(std::string_view tag) {
  if (tag.size() < 2 || (tag[0] != 'b' && tag[0] != 'B') || (tag[1] != 'r' && tag[1] != 'R')) return false;
  const std::string_view rest = trimmed(tag.substr(2));
  return rest.empty() || rest == "/";
}

// Emphasis marks of a Markdown label, where they stand in pairs or at a word's edge.
std::string without_emphasis(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inside_word = i > 0 && i + 1 < text.size() && is_word_char(text[i - 1]) && is_word_char(text[i + 1]) && text[i] == '_';
    if (text[i] == '*' || (text[i] == '_' && !inside_word)) continue;
    out += text[i];
  }
  return out;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 63));
    out += static_cast<char>(0x80 | ((code >> 6) & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

std::uint32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(offset++);
  const int more = first >= 0xF0 && first < 0xF8 ? 3 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xC2 && first < 0xE0 ? 1 : 0;
  if (more == 0 || offset + static_cast<std::size_t>(more) > text.size()) return first;
  std::uint32_t code = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(offset + static_cast<std::size_t>(i)) & 0xC0) != 0x80) return first;
    code = (code << 6) | (byte(offset + static_cast<std::size_t>(i)) & 63u);
  }
  offset += static_cast<std::size_t>(more);
  return code;
}

std::string entity_text(std::string_view name) {
  const bool hexadecimal = name.size() > 1 && (name[0] == 'x' || name[0] == 'X');
  const std::string_view digits = hexadecimal ? name.substr(1) : name;
  const bool is_number = !digits.empty() && digits.size() < 8 && std::all_of(digits.begin(), digits.end(), [&](char c) {
    return hexadecimal ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  std::string out;
  if (is_number) {
    append_utf8(out, static_cast<std::uint32_t>(std::stoul(std::string(digits), nullptr, hexadecimal ? 16 : 10)));
    return out;
  }
  for (const NamedEntity& entity : named_entities) {
    if (entity.name == name) return std::string(entity.text);
  }
  return out;
}

int DiagramSource::line_at(std::size_t offset) const {
  return static_cast<int>(std::upper_bound(line_begin.begin(), line_begin.end(), offset) - line_begin.begin());
}

DiagramSource prepare_diagram(std::string_view raw) {
  DiagramSource source;
  std::string text = with_plain_lines(raw);
  source.title = take_front_matter(text);
  blank_directives(text);
  blank_comment_lines(text);
  single_quotes_in_tags(text);

  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    drop_last_semicolon(line, "style");
    drop_last_semicolon(line, "classDef");
    source.line_begin.push_back(source.text.size());
    source.text += with_entities_marked(line);
    source.text += '\n';
    at = end + 1;
  }
  return source;
}

std::string label_text(std::string_view raw, bool markdown) {
  std::string text = markdown ? without_emphasis(raw) : std::string(raw);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // An entity, ours or HTML's own.
    if (text[i] == entity_begin || text[i] == '&') {
      const char close = text[i] == '&' ? ';' : entity_end;
      const std::size_t end = std::string_view(text).substr(0, i + 12).find(close, i);
      if (end != std::string_view::npos) {
        std::string_view name = std::string_view(text).substr(i + 1, end - i - 1);
        if (text[i] == '&' && !name.empty() && name[0] == '#') name.remove_prefix(1);
        const std::string shown = entity_text(name);
        if (!shown.empty()) {
          out += shown;
          i = end;
          continue;
        }
      }
      out += '&';
      continue;
    }
    if (text[i] == entity_end) {
      out += ';';
      continue;
    }
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n') {
      out += '\n';
      ++i;
      continue;
    }
    // A tag: <br> breaks the line, others are dropped.
    if (text[i] == '<' && i + 1 < text.size() && (std::isalpha(static_cast<unsigned char>(text[i + 1])) != 0 || text[i + 1] == '/')) {
      const std::size_t end = std::string_view(text).substr(0, i + 200).find('>', i);
      if (end != std::string_view::npos) {
        const std::string_view tag = trimmed(std::string_view(text).substr(i + 1, end - i - 1));
        if (is_break(tag)) out += '\n';
        i = end;
        continue;
      }
    }
    out += text[i];
  }

  // Each line without the blanks around it.
  std::string lines;
  const std::string_view whole = trimmed(out);
  for (std::size_t at = 0; at <= whole.size();) {
    const std::size_t end = std::min(whole.find('\n', at), whole.size());
    if (at > 0) lines += '\n';
    lines += trimmed(whole.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace shardbook::diagram
