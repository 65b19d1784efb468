#include "engine/base/json.hpp"

#include <nlohmann/json.hpp>

namespace shardbook::base {

namespace {

template <class Value>
std::string text_of(const Value& value, int indent, bool ascii) {
  return value.dump(indent, ' ', ascii, Value::error_handler_t::replace);
}

nlohmann::json parse_to(std::string_view text, int deepest, bool& too_deep, bool throws) {
  too_deep = false;
  return nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  }, throws);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text); }
nlohmann::json try_parse_json(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }
nlohmann::ordered_json try_parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text, nullptr, false); }
nlohmann::json parse_json(std::string_view text, int deepest, bool& too_deep) { return parse_to(text, deepest, too_deep, true); }
nlohmann::json try_parse_json(std::string_view text, int deepest, bool& too_deep) { return parse_to(text, deepest, too_deep, false); }
bool is_json(std::string_view text) { return nlohmann::json::accept(text); }

std::string json_text(const nlohmann::json& value, int indent, bool ascii) { return text_of(value, indent, ascii); }
std::string json_text(const nlohmann::ordered_json& value, int indent, bool ascii) { return text_of(value, indent, ascii); }
std::string json_text_or_throw(const nlohmann::json& value, int indent) { return value.dump(indent); }
std::string json_text_or_throw(const nlohmann::ordered_json& value, int indent) { return value.dump(indent); }

}  // namespace shardbook::base
