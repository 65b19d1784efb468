// Setting switches, and whether what was set can be carried out together.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

#include "engine/base/nearest.hpp"
#include "engine/config/config.hpp"
#include "engine/config/in_force.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::config {

using base::Done;
using base::Error;
using base::Status;
using base::text;

const char* name_of(Promise promise) {
  static constexpr const char* names[] = {"same bits", "bounded", "time only", "wrong"};
  return names[static_cast<int>(promise)];
}

const char* name_of(Seam seam) {
  static constexpr const char* names[] = {"spec", "plan", "store", "machine", "group"};
  return names[static_cast<int>(seam)];
}

namespace {

std::optional<double> number_in(std::string_view words) {
  double number = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc{} || end != words.data() + words.size()) return std::nullopt;
  return number;
}

std::string_view trimmed(std::string_view words) {
  while (!words.empty() && words.front() == ' ') words.remove_prefix(1);
  while (!words.empty() && words.back() == ' ') words.remove_suffix(1);
  return words;
}

// A condition's name: an option or a switch.
std::string value_named(const RunConfig& config, std::string_view name) {
  if (const Option* option = find_option(name)) return option->get(config);
  SHARDBOOK_CHECK(find_switch(name) != nullptr, "a condition names ", name, ", which is neither an option nor a switch");
  return switch_value(config, name);
}

}  // namespace

namespace {

// "2:50": a rank, and microseconds.
struct RankAndTime {
  int rank = 0, microseconds = 0;
};
std::optional<RankAndTime> rank_and_time(std::string_view words) {
  const std::size_t colon = words.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<double> rank = number_in(words.substr(0, colon)), time = number_in(words.substr(colon + 1));
  constexpr double most_us = 100000;
  const auto whole = [](const std::optional<double>& number, double most) { return number && *number >= 0 && *number <= most && *number == static_cast<int>(*number); };
  if (!whole(rank, 65535) || !whole(time, most_us)) return std::nullopt;
  return RankAndTime{static_cast<int>(*rank), static_cast<int>(*time)};
}

bool is_value_of(const Switch& row, const std::string& value) {
  if (std::find(row.values.begin(), row.values.end(), value) != row.values.end()) return true;
  if (!row.form.empty()) return rank_and_time(value).has_value();
  const std::optional<double> number = number_in(value);
  return row.values.empty() && number && *number == static_cast<int>(*number) && *number >= row.least && *number <= row.most;
}

bool is_wrong(std::string_view key) {
  const Switch* row = find_switch(key);
  return row != nullptr && row->promise == Promise::wrong;
}

// Those that were set to another value than the default, with their rows.
std::vector<const Switch*> set_otherwise(const RunConfig& config) {
  std::vector<const Switch*> rows;
  for (const auto& [key, value] : config.switches) {
    if (const Switch* row = find_switch(key); row != nullptr && value != row->default_value) rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::string Switch::values_text() const {
  if (values.empty()) return text(least, " to ", most);
  std::string all;
  for (const std::string& value : values) all += (all.empty() ? "" : ", ") + value;
  if (!form.empty()) all += " or " + form;
  return all;
}

const Switch* find_switch(std::string_view key) {
  // Each trainer asks for every switch
  static const std::unordered_map<std::string_view, const Switch*> by_key = [] {
    std::unordered_map<std::string_view, const Switch*> rows;
    for (const Switch& row : switches()) rows[row.key] = &row;
    return rows;
  }();
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : found->second;
}

std::string switch_value(const RunConfig& config, std::string_view key) {
  const Switch* row = find_switch(key);
  SHARDBOOK_CHECK(row != nullptr, "there is no switch ", key);
  if (!row->option.empty()) return find_option(row->option)->get(config);
  const auto set = config.switches.find(key);
  return set == config.switches.end() ? row->default_value : set->second;
}

std::map<std::string, std::string> switches_in_force(const RunConfig& config) {
  std::map<std::string, std::string> values;
  for (const Switch& row : switches()) values[row.key] = switch_value(config, row.key);
  return values;
}

namespace {

Status set_any(RunConfig& config, std::string_view key_and_value, bool wrong) {
  const std::size_t equals = key_and_value.find('=');
  if (equals == std::string_view::npos) return Error{text("must be KEY=VALUE, as in ", wrong ? "tensor_parallel.row_bias=before_the_sum" : "fsdp.prefetch=0", ", not '", key_and_value, "'")};
  const std::string key(key_and_value.substr(0, equals)), value(key_and_value.substr(equals + 1));
  const Switch* row = find_switch(key);
  if (row == nullptr) {
    std::vector<std::string> keys;
    for (const Switch& known : switches()) keys.push_back(known.key);
    return Error{text("knows no switch '", key, "'; the nearest is ", base::nearest(key, keys), " (shardbook switches lists them)")};
  }
  if (wrong && row->promise != Promise::wrong) return Error{text("is for what is wrong on purpose, and ", key, " is not: --set ", key, "=", value)};
  if (!wrong && row->promise == Promise::wrong) return Error{text("does not set ", key, ", which is a mistake on purpose, for labs: --wrong ", key, "=", value, " asks for it")};
  if (!is_value_of(*row, value)) return Error{text(key, " may be ", row->values_text(), ", not '", value, "'")};
  if (row->option.empty()) {
    config.switches[key] = value;
    return Done{};
  }
  config.asked.insert(row->option);
  return find_option(row->option)->set(config, value);
}

}  // namespace

Status set_switch(RunConfig& config, std::string_view key_and_value) { return set_any(config, key_and_value, false); }
Status set_wrong(RunConfig& config, std::string_view key_and_value) { return set_any(config, key_and_value, true); }

std::vector<std::string> set_switches(const RunConfig& config, bool wrong) {
  std::vector<std::string> all;
  for (const auto& [key, value] : config.switches) {
    if (is_wrong(key) == wrong) all.push_back(text(key, "=", value));
  }
  return all;
}

bool only_times_count(const RunConfig& config) {
  const std::vector<const Switch*> rows = set_otherwise(config);
  return std::any_of(rows.begin(), rows.end(), [](const Switch* row) { return row->promise == Promise::time_only; });
}

std::string wrong_on_purpose(const RunConfig& config) {
  std::string all;
  for (const Switch* row : set_otherwise(config)) {
    if (row->promise == Promise::wrong) all += text(all.empty() ? "" : ", ", row->key, "=", switch_value(config, row->key));
  }
  return all;
}

std::vector<std::string> warnings(const RunConfig& config) {
  std::vector<std::string> all;
  if (const std::string wrong = wrong_on_purpose(config); !wrong.empty()) all.push_back(text("this run is wrong on purpose (", wrong, "): its losses are those of a mistake"));
  for (const Switch* row : set_otherwise(config)) {
    if (row->promise == Promise::time_only) all.push_back(text("with ", row->key, "=", switch_value(config, row->key), " only times count: losses mean nothing, so none are kept"));
  }
  return all;
}

bool holds(const RunConfig& config, std::string_view condition) {
  if (const std::size_t either = condition.find(" or "); either != std::string_view::npos) {
    return holds(config, condition.substr(0, either)) || holds(config, condition.substr(either + 4));
  }
  const std::size_t sign = condition.find_first_of("=<>");
  SHARDBOOK_CHECK(sign != std::string_view::npos, "the condition '", condition, "' compares nothing");
  const std::string value = value_named(config, trimmed(condition.substr(0, sign)));
  const std::string_view wanted = trimmed(condition.substr(sign + 1));
  if (condition[sign] == '=') return value == wanted;
  const double is = number_in(value).value_or(std::numeric_limits<double>::quiet_NaN()), limit = number_in(wanted).value_or(0);
  return condition[sign] == '>' ? is > limit : is < limit;
}

Status check_switches(const RunConfig& config) {
  // Two at once would hide each other from the checks
  if (const std::string wrong = wrong_on_purpose(config); wrong.find(", ") != std::string::npos) {
    return Error{text("--wrong takes one mistake at a time, not ", wrong)};
  }
  for (const auto& [key, value] : config.switches) {
    const Switch* row = find_switch(key);
    if (row == nullptr) return Error{text("there is no switch ", key)};
    if (value == row->default_value) continue;
    const char* asked_by = row->promise == Promise::wrong ? "--wrong " : "--set ";
    if (const auto of = rank_and_time(value); !row->form.empty() && of && of->rank >= config.ranks) {
      return Error{text(asked_by, key, "=", value, " names rank ", of->rank, ", and the ranks are 0 to ", config.ranks - 1)};
    }
    for (const std::string& condition : row->needs) {
      if (holds(config, condition)) continue;
      const std::string_view name = trimmed(std::string_view(condition).substr(0, condition.find_first_of("=<>")));
      return Error{text(asked_by, key, "=", value, " does nothing here: it needs ", condition, ", and ", name, " is ", value_named(config, name))};
    }
    for (const std::string& excluded : row->excludes) {
      const std::size_t colon = excluded.find(": ");
      if (colon != std::string::npos && excluded.substr(0, colon) != value) continue;   // of another value alone
      const std::string condition = colon == std::string::npos ? excluded : excluded.substr(colon + 2);
      if (holds(config, condition)) return Error{text(asked_by, key, "=", value, " cannot go with ", condition, ": leave one of them out")};
    }
  }
  return Done{};
}

}  // namespace shardbook::config
