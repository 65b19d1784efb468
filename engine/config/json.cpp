// A config as a flat JSON object: read with file, line and key in every error, written so that
// reading it back gives the same config.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.hpp"
#include "engine/config/config.hpp"
#include "engine/config/options.hpp"

namespace shardbook::config {

namespace {

using base::Done;
using base::Error;
using base::Status;
using base::text;
using Json = nlohmann::json;

// A key of the outermost object and the line that it stands on, counted from 1.
struct KeyAt {
  std::string key;
  int line = 1;
};

// The keys of the outermost object, in order. A parsed document no longer knows its lines, hence
// this second, shallow reading: it only follows strings and brackets, so it also serves for text
// that is malformed further on.
std::vector<KeyAt> keys_of(std::string_view json) {
  std::vector<KeyAt> keys;
  std::string last_string;
  int last_line = 1;
  int line = 1;
  int depth = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == ':' && depth == 1) keys.push_back({last_string, last_line});
    if (c != '"') continue;
    const std::size_t begin = ++at;
    while (at < json.size() && json[at] != '"' && json[at] != '\n') at += json[at] == '\\' ? 2 : 1;
    last_string = json.substr(std::min(begin, json.size()), std::min(at, json.size()) - begin);
    last_line = line;
    if (at < json.size() && json[at] == '\n') ++line;
  }
  return keys;
}

// Where a byte offset is: "c.json:3: malformed JSON at or after the key "steps"".
std::string place_of(std::string_view json, std::size_t byte, std::string_view name) {
  const std::string_view before = json.substr(0, std::min(byte, json.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::vector<KeyAt> keys = keys_of(before);
  return text(name, ":", line, ": malformed JSON ",
              keys.empty() ? std::string("before the first key") : "at or after the key \"" + keys.back().key + "\"");
}

// What nlohmann says is wrong, without its own name and account of the place: "[...] parse error at line 1, column 1:
// attempting to ..." or "... column 9: syntax error while parsing value - unexpected ...".
std::string reason_of(const Json::parse_error& error) {
  std::string what = error.what();
  for (const std::string_view before : {" - ", ": "}) {
    if (const auto at = what.rfind(before); at != std::string::npos) return what.substr(at + before.size());
  }
  return what;
}

// The texts that an option's set() reads, or nothing when the JSON value cannot stand for any.
std::vector<std::string> texts_of(const Json& value, bool takes_many) {
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return {base::json_text(value)};
  std::vector<std::string> texts;
  if (takes_many && value.is_array()) {
    for (const Json& element : value) {
      if (!element.is_string()) return {};
      texts.push_back(element.get<std::string>());
    }
  }
  return texts;
}

// The values of an option that takes many, as get() gives them: one a line.
std::vector<std::string> lines_of(std::string_view value) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('\n', begin), value.size());
    lines.emplace_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

Status read_json(RunConfig& config, std::string_view json, std::string_view name) {
  // To the parser a zero byte is the end of the text.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
    return Error{text(place_of(json, zero, name), ": byte ", zero, " is zero, and a config is text")};
  }
  Json document;
  constexpr int deepest = 8;
  bool too_deep = false;
  try {
    document = base::parse_json(json, deepest, too_deep);
  } catch (const Json::parse_error& error) {
    return Error{text(place_of(json, error.byte, name), ": ", reason_of(error))};
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    return Error{text(name, ": ", what.substr(std::min(what.size(), what.find("] ") + 2)))};   // "number overflow parsing '1e999'"
  }
  if (too_deep) return Error{text(name, ": its values nest deeper than any option's")};
  if (!document.is_object()) {
    return Error{text(name, ":1: a config is one JSON object of options, not ", document.type_name())};
  }

  RunConfig changed = config;
  std::set<std::string> seen;
  for (const KeyAt& at : keys_of(json)) {
    const std::string place = text(name, ":", at.line, ": ");
    const Option* option = find_option(at.key);
    if (option == nullptr) {
      return Error{text(place, "unknown key \"", at.key, "\"; the nearest is \"", nearest_option(at.key), "\"")};
    }
    if (!seen.insert(at.key).second) return Error{text(place, "the key \"", at.key, "\" stands here a second time")};
    const Json& value = document.at(at.key);
    const std::vector<std::string> values = texts_of(value, option->takes_many);
    if (values.empty()) {
      return Error{text(place, "\"", at.key, "\" takes ", option->values, ", not ", base::json_text(value))};
    }
    if (Status status = take(changed, *option, values); !status) {
      return Error{text(place, "\"", at.key, "\" ", status.error())};
    }
  }
  config = std::move(changed);
  return Done{};
}

Status read_file(RunConfig& config, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{text("the config ", path, " is a folder; name the JSON file within it")};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{text("cannot read the config ", path, ": ", std::strerror(errno))};
  constexpr std::size_t largest = std::size_t{1} << 20;
  std::string content(largest + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.size() > largest) return Error{text("the config ", path, " is larger than 1 MiB: that is no config")};
  if (content.empty()) return Error{text("the config ", path, " is empty; the least config is {}")};
  return read_json(config, content, path);
}

std::string to_json(const RunConfig& config) {
  std::string out = "{\n";
  for (const Option& option : options()) {
    if (!option.stored) continue;
    const std::string value = option.get(config);
    if (option.takes_many && value.empty()) continue;
    if (out.size() > 2) out += ",\n";
    out += "  \"" + option.name + "\": ";
    switch (option.kind) {
      case Option::Kind::integer:
      case Option::Kind::number:
      case Option::Kind::boolean: out += value; break;
      case Option::Kind::choice:
      case Option::Kind::text: out += base::json_text_or_throw(Json(value)); break;
      case Option::Kind::texts: out += base::json_text_or_throw(Json(lines_of(value))); break;
    }
  }
  return out + "\n}\n";
}

}  // namespace shardbook::config
