// base/json: JSON as text.
//
// The parser and the writer of nlohmann/json are templates: every file that names them compiles them anew, for two to six
// seconds (g++ 12, one kind of value or both). They are named here, and compiled once.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace shardbook::base {

// Throws nlohmann::json::parse_error, which says where, or another nlohmann::json::exception (a number too large).
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);
// Of what is no JSON a value that is_discarded().
nlohmann::json try_parse_json(std::string_view text);
nlohmann::ordered_json try_parse_ordered_json(std::string_view text);
// Copying and writing JSON recurse, so what nests deeper than `deepest` levels is refused before it is kept: `too_deep` is set,
// and the value means nothing.
nlohmann::json parse_json(std::string_view text, int deepest, bool& too_deep);
nlohmann::json try_parse_json(std::string_view text, int deepest, bool& too_deep);
// `twice`: a key that an object names twice (the value has the last), "" where none does.
nlohmann::json try_parse_json(std::string_view text, int deepest, bool& too_deep, std::string& twice);
bool is_json(std::string_view text);

// On one line, or with `indent` spaces a level. Bytes that are no UTF-8 are replaced. `ascii`: other letters as \uXXXX.
std::string json_text(const nlohmann::json& value, int indent = -1, bool ascii = false);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1, bool ascii = false);
// For what must be the same when it is read: throws nlohmann::json::type_error where bytes are no UTF-8.
std::string json_text_or_throw(const nlohmann::json& value, int indent = -1);
std::string json_text_or_throw(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace shardbook::base
