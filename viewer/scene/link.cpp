// scene/link: links read and written; see link.hpp.
#include "viewer/scene/link.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "engine/base/check.hpp"

namespace shardbook::scene {

using base::Nanoseconds;

namespace {

struct Unit {
  const char* name;
  Nanoseconds ns;
};
constexpr Unit units[] = {{"ns", 1}, {"us", 1'000}, {"µs", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};

base::Error wrong(const std::string& text, const std::string& why) { return {base::text("link \"", text, "\": ", why)}; }

// --- Letters --------------------------------------------------------------------------------------

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %20 and the like; what is no such pair stays as it is.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0;
    if (pair) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string encoded(std::string_view text) {
  constexpr std::string_view special = "%?&#=:<>\"' ";
  constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && special.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  return out;
}

bool all_of(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || extra.find(c) != std::string_view::npos;
  });
}

std::optional<int> whole_number(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

// --- Times ----------------------------------------------------------------------------------------

// "1.25ms" exactly, never through a double; none if it is no time or finer than a nanosecond.
std::optional<Nanoseconds> parse_time(std::string_view text) {
  bool negative = false;
  if (!text.empty() && text[0] == '-') {
    negative = true;
    text.remove_prefix(1);
  }
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, digits), name = text.substr(digits);
  const auto unit = std::find_if(std::begin(units), std::end(units), [&](const Unit& entry) { return name == entry.name; });
  if (number.empty() || unit == std::end(units)) return std::nullopt;
  const std::size_t point = std::min(number.find('.'), number.size());
  std::string_view fraction = point < number.size() ? number.substr(point + 1) : std::string_view();
  if (point == 0 || (point < number.size() && fraction.empty()) || fraction.find('.') != std::string_view::npos) return std::nullopt;
  Nanoseconds value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + point, value);
  constexpr Nanoseconds most = Nanoseconds{1} << 62;
  if (error != std::errc() || end != number.data() + point || value > most / unit->ns) return std::nullopt;
  value *= unit->ns;
  Nanoseconds place = unit->ns;
  for (char digit : fraction) {
    if (place % 10 != 0 || place == 1) {
      if (digit != '0') return std::nullopt;
      continue;
    }
    place /= 10;
    value += (digit - '0') * place;
  }
  return negative ? -value : value;
}

// In the largest unit of which there is at least one, without trailing zeros.
std::string time_text(Nanoseconds ns) {
  const Nanoseconds size = ns < 0 ? -ns : ns;
  const Unit unit = size >= 1'000'000'000 ? units[4] : size >= 1'000'000 ? units[3] : size >= 1'000 ? units[1] : units[0];
  std::string out = base::text(ns < 0 ? "-" : "", size / unit.ns);
  if (Nanoseconds rest = size % unit.ns; rest != 0) {
    std::string fraction = std::to_string(unit.ns + rest).substr(1);
    while (fraction.back() == '0') fraction.pop_back();
    out += '.';
    out += fraction;
  }
  return out + unit.name;
}

// --- Kinds ----------------------------------------------------------------------------------------

// A path from the root without "." and ".."; none if it leaves the root or is none.
std::optional<std::string> normal_path(const std::string& folder, const std::string& path) {
  if (path.starts_with('/') || path.find('\0') != std::string::npos) return std::nullopt;
  std::vector<std::string> parts;
  const std::string all = folder.empty() ? path : folder + "/" + path;
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find('/', at), all.size());
    const std::string part = all.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += '/';
    out += part;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

base::Result<Link> parse_trace(const std::string& text, std::string_view rest) {
  Link link;
  link.kind = Link::Kind::trace;
  const std::size_t question = std::min(rest.find('?'), rest.size());
  link.target = decoded(rest.substr(0, question));
  std::string_view parts = question < rest.size() ? rest.substr(question + 1) : std::string_view();
  while (!parts.empty()) {
    const std::size_t end = std::min(parts.find('&'), parts.size());
    const std::string_view part = parts.substr(0, end);
    parts.remove_prefix(std::min(end + 1, parts.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return wrong(text, base::text("\"", part, "\" has no value; parts are t=, pin=, open= and sel="));
    const std::string_view key = part.substr(0, equals);
    const std::string value = decoded(part.substr(equals + 1));
    const bool is_row = !value.empty() && value[0] == 'r' && all_of(value, ".-");
    if (key == "t") {
      const std::size_t dots = value.find("..");
      if (dots == std::string::npos) return wrong(text, base::text("t=", value, " is no window: write t=1.2ms..1.9ms"));
      link.start = parse_time(std::string_view(value).substr(0, dots));
      link.end = parse_time(std::string_view(value).substr(dots + 2));
      if (!link.start || !link.end || *link.end <= *link.start) return wrong(text, base::text("t=", value, " is no window: write t=1.2ms..1.9ms, first the earlier time"));
    } else if ((key == "pin" || key == "open") && is_row) {
      (key == "pin" ? link.pins : link.open).push_back(value);
    } else if (key == "sel" && (value == "next-exposed" || (value.starts_with('r') && value.find('/') != std::string::npos && all_of(value, "./-")))) {
      link.selected = value;
    } else if (key == "pin" || key == "open") {
      return wrong(text, base::text(key, "=", value, " names no row: write ", key, "=r0.s20"));
    } else if (key == "sel") {
      return wrong(text, base::text("sel=", value, " names no span: write sel=r0.s20/117 or sel=next-exposed"));
    } else {
      return wrong(text, base::text("\"", key, "\" is no part of a view; parts are t=, pin=, open= and sel="));
    }
  }
  return link;
}

// labs/02, notes/03, rooms: a number or name, and an anchor.
base::Result<Link> parse_page(const std::string& text, std::string_view rest, const std::string& before, const std::string& after) {
  const std::size_t hash = std::min(rest.find('#'), rest.size());
  const std::string name = decoded(rest.substr(0, hash));
  if (name.empty() || !all_of(name, "_-")) return wrong(text, base::text("\"", name, "\" is no name of a page"));
  Link link;
  link.kind = Link::Kind::page;
  link.target = before + name + after;
  if (hash < rest.size()) link.anchor = decoded(rest.substr(hash + 1));
  return link;
}

// PATH, PATH:118 or PATH#L118 below a folder.
base::Result<Link> parse_path(const std::string& text, std::string_view rest, const std::string& page, bool is_source) {
  Link link;
  const std::size_t hash = std::min(rest.find('#'), rest.size());
  const std::string anchor = hash < rest.size() ? decoded(rest.substr(hash + 1)) : "";
  // A colon of the name itself is written %3A.
  const std::string_view whole = rest.substr(0, hash);
  const std::size_t colon = whole.rfind(':');
  const std::string path = decoded(whole.substr(0, colon));
  if (path.empty() && colon == std::string_view::npos && !page.empty() && !is_source) {
    link.kind = Link::Kind::page;
    link.target = page;
    link.anchor = anchor;
    return link;
  }
  if (colon != std::string_view::npos) {
    const std::optional<int> line = whole_number(whole.substr(colon + 1));
    if (!line || *line == 0) return wrong(text, base::text("\"", whole.substr(colon + 1), "\" is no line number"));
    link.line = *line;
  }
  const std::size_t slash = page.rfind('/');
  const std::string folder = is_source || slash == std::string::npos ? "" : page.substr(0, slash);
  const std::optional<std::string> target = normal_path(folder, path);
  if (!target) return wrong(text, base::text("\"", path, "\" is no path within the project"));
  link.target = *target;
  link.kind = target->ends_with(".md") && !is_source ? Link::Kind::page : Link::Kind::source;
  if (link.kind == Link::Kind::page) {
    if (link.line != 0) return wrong(text, "a page has anchors, not lines");
    link.anchor = anchor;
  } else if (!anchor.empty()) {
    const std::optional<int> line = anchor[0] == 'L' ? whole_number(std::string_view(anchor).substr(1)) : std::nullopt;
    if (!line || *line == 0) return wrong(text, base::text("\"#", anchor, "\" is no line of a file: write #L118"));
    link.line = *line;
  }
  return link;
}

}  // namespace

base::Result<Link> parse_link(const std::string& text, const std::string& page) {
  const std::string_view all(text);
  if (all.empty()) return wrong(text, "it is empty");
  // "word:" at the beginning says the kind. A colon before a line number ("schedule.cpp:118") does not.
  const std::size_t colon = std::min(all.find(':'), all.size());
  const std::string_view kind = all.substr(0, colon);
  const bool has_kind = colon < all.size() && !kind.empty() && all_of(kind, "+-");
  if (!has_kind) return parse_path(text, all, page, false);
  const std::string_view rest = all.substr(colon + 1);
  if (kind == "trace") return parse_trace(text, rest);
  if (kind == "lab") return parse_page(text, rest, "labs/", "");
  if (kind == "note") return parse_page(text, rest, "notes/", "");
  if (kind == "room") return parse_page(text, rest, "notes/rooms/", ".md");
  if (kind == "source") return parse_path(text, rest, "", true);
  Link link;
  if (kind == "span") {
    if (rest.empty() || !all_of(rest, "_.")) return wrong(text, base::text("\"", rest, "\" is no name of a span"));
    link.kind = Link::Kind::span;
    link.target = std::string(rest);
    return link;
  }
  if (kind == "http" || kind == "https" || kind == "mailto") {
    link.kind = Link::Kind::web;
    link.target = text;
    return link;
  }
  return wrong(text, base::text("\"", kind, ":\" is no kind of link; kinds are trace, lab, note, room, span, source and https"));
}

std::string link_text(const Link& link) {
  const std::string anchor = link.anchor.empty() ? "" : "#" + encoded(link.anchor);
  switch (link.kind) {
    case Link::Kind::web: return link.target;
    case Link::Kind::span: return "span:" + link.target;
    case Link::Kind::source: return "source:" + encoded(link.target) + (link.line > 0 ? base::text(":", link.line) : "");
    case Link::Kind::page:
      if (link.target.ends_with(".md")) return encoded(link.target) + anchor;
      if (link.target.starts_with("labs/")) return "lab:" + encoded(link.target.substr(5)) + anchor;
      if (link.target.starts_with("notes/")) return "note:" + encoded(link.target.substr(6)) + anchor;
      return encoded(link.target) + anchor;
    case Link::Kind::trace: break;
  }
  std::string parts;
  const auto add = [&](const char* key, const std::string& value) { parts += (parts.empty() ? "?" : "&") + std::string(key) + "=" + value; };
  if (link.start && link.end) add("t", time_text(*link.start) + ".." + time_text(*link.end));
  for (const std::string& row : link.pins) add("pin", encoded(row));
  for (const std::string& row : link.open) add("open", encoded(row));
  if (!link.selected.empty()) add("sel", encoded(link.selected));
  return "trace:" + encoded(link.target) + parts;
}

}  // namespace shardbook::scene
