#include "engine/base/json.hpp"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace shardbook::base {

namespace {

template <class Value>
std::string text_of(const Value& value, int indent, bool ascii) {
  return value.dump(indent, ' ', ascii, Value::error_handler_t::replace);
}

nlohmann::json parse_to(std::string_view text, int deepest, bool& too_deep, bool throws, std::string* twice = nullptr) {
  too_deep = false;
  std::vector<std::set<std::string>> keys(static_cast<std::size_t>(twice != nullptr ? deepest : 0) + 2);   // of the objects that are open
  return nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    too_deep = too_deep || depth > deepest;
    if (too_deep || twice == nullptr) return !too_deep;
    if (event == nlohmann::json::parse_event_t::object_start) keys[static_cast<std::size_t>(depth) + 1].clear();
    if (event == nlohmann::json::parse_event_t::key && !keys[static_cast<std::size_t>(depth)].insert(value.get<std::string>()).second) {
      *twice = value.get<std::string>();
    }
    return true;
  }, throws);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text); }
nlohmann::json try_parse_json(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }
nlohmann::ordered_json try_parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text, nullptr, false); }
nlohmann::json parse_json(std::string_view text, int deepest, bool& too_deep) { return parse_to(text, deepest, too_deep, true); }
nlohmann::json try_parse_json(std::string_view text, int deepest, bool& too_deep) { return parse_to(text, deepest, too_deep, false); }
nlohmann::json try_parse_json(std::string_view text, int deepest, bool& too_deep, std::string& twice) {
  twice.clear();
  return parse_to(text, deepest, too_deep, false, &twice);
}
bool is_json(std::string_view text) { return nlohmann::json::accept(text); }

std::string json_text(const nlohmann::json& value, int indent, bool ascii) { return text_of(value, indent, ascii); }
std::string json_text(const nlohmann::ordered_json& value, int indent, bool ascii) { return text_of(value, indent, ascii); }
std::string json_text_or_throw(const nlohmann::json& value, int indent) { return value.dump(indent); }
std::string json_text_or_throw(const nlohmann::ordered_json& value, int indent) { return value.dump(indent); }

}  // namespace shardbook::base
