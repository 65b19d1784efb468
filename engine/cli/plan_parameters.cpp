#include "engine/cli/plan_parameters.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/cli/console.hpp"

namespace shardbook::cli {

using base::text;
using shard::Along;
using train::PlannedParameter;
using train::PlannedRank;

namespace {

std::string zone_of(const PlannedParameter& parameter) {
  std::string words = parameter.weight_decay ? "decayed" : "not decayed";
  for (const Along& one : parameter.placement) words += text(", ", shard::name_of(one), " over ", one.axis);
  return words;
}

// "rows 64–127", or "columns 64–127": along the dim that is cut. A line for each box.
std::vector<std::string> boxes_of(const PlannedParameter& parameter) {
  std::vector<std::string> lines;
  std::int64_t here = 0;
  for (const shard::Box& box : parameter.boxes) here += box.elements();
  if (here == parameter.shape.elements()) return {"all"};
  for (const shard::Box& box : parameter.boxes) {
    const int dim = box[0].size() == parameter.shape[0] ? 1 : 0;
    lines.push_back(text(dim == 0 ? "rows " : "columns ", box[dim].begin, "–", box[dim].end - 1));
  }
  return lines;
}

std::string kept_of(const PlannedParameter& parameter) {
  if (parameter.kept == parameter.here) return "all";
  if (parameter.kept == 0) return "none";
  return text(std::clamp<std::int64_t>((100 * parameter.kept + parameter.here / 2) / parameter.here, 1, 99), " %");
}

// Its name within its unit.
std::string short_name(const PlannedParameter& parameter, const std::string& unit) {
  return parameter.name.starts_with(unit + ".") ? parameter.name.substr(unit.size() + 1) : parameter.name;
}

std::string row_of(const PlannedParameter& parameter, const std::string& unit) {
  const std::vector<std::string> boxes = boxes_of(parameter);
  std::string out = text("    ", pad_right(short_name(parameter, unit), 28), " ", pad_right(base::to_string(parameter.shape), 14), " ", pad_right(boxes[0], 20), " ",
                         pad_left(kept_of(parameter), 5), "\n");
  for (std::size_t box = 1; box < boxes.size(); ++box) out += text(std::string(48, ' '), boxes[box], "\n");
  return out;
}

std::string unit_text(const std::vector<const PlannedParameter*>& parameters, const std::string& unit) {
  std::string out, zone;
  for (const PlannedParameter* parameter : parameters) {
    if (zone_of(*parameter) != zone) out += text("  ", zone = zone_of(*parameter), "\n");
    out += row_of(*parameter, unit);
  }
  return out;
}

// What the words mean that stand in the list.
std::string legend(const PlannedRank& rank) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const PlannedParameter& parameter : rank.parameters) {
    for (const Along& one : parameter.placement) {
      const std::pair<std::string, std::string> entry{shard::name_of(one), shard::words_of(one)};
      if (std::find(words.begin(), words.end(), entry) == words.end()) words.push_back(entry);
    }
  }
  std::string out = words.empty() ? "\nThere are no other ranks.\n" : "\n";
  for (const auto& [word, meaning] : words) out += wrapped(pad_right(word, 9), meaning, plain_columns);
  return out;
}

}  // namespace

std::string parameters_text(const PlannedRank& rank, bool all) {
  std::string out = text(std::string(4, ' '), pad_right("parameter", 28), " ", pad_right("whole", 14), " ", pad_right("here", 20), " ", pad_left("kept", 5), "\n");
  std::string before;
  std::vector<std::string> alike;   // units since then that are the same
  auto said = [&] {
    if (!alike.empty()) out += text(alike.front(), alike.size() > 1 ? " … " + alike.back() : "", ": the same\n");
    alike.clear();
  };
  for (std::size_t unit = 0; unit < rank.network.units.size(); ++unit) {
    const std::string& name = rank.network.units[unit].name;
    std::vector<const PlannedParameter*> its;
    for (const PlannedParameter& parameter : rank.parameters) {
      if (parameter.unit == static_cast<int>(unit)) its.push_back(&parameter);
    }
    const std::string body = unit_text(its, name);
    if (!all && body == before) {
      alike.push_back(name);
      continue;
    }
    said();
    out += name + "\n" + body;
    before = body;
  }
  said();
  return out + legend(rank);
}

nlohmann::json parameters_json(const PlannedRank& rank) {
  nlohmann::json parameters = nlohmann::json::array();
  for (const PlannedParameter& parameter : rank.parameters) {
    nlohmann::json shape = nlohmann::json::array(), boxes = nlohmann::json::array(), placement = nlohmann::json::object();
    for (int dim = 0; dim < parameter.shape.dims(); ++dim) shape.push_back(parameter.shape[dim]);
    for (const shard::Box& box : parameter.boxes) {
      nlohmann::json intervals = nlohmann::json::array();
      for (int dim = 0; dim < box.dims; ++dim) intervals.push_back({box[dim].begin, box[dim].end});
      boxes.push_back(std::move(intervals));
    }
    for (const Along& one : parameter.placement) {
      placement[std::string(one.axis)] = {{"value", shard::name_of(one.value)}, {"gradient", shard::name_of(one.gradient)}, {"kept", shard::name_of(one.kept)},
                                          {"before_use", shard::name_of(shard::before_use(one))}, {"after_backward", shard::name_of(shard::after_backward(one))}};
    }
    parameters.push_back({{"name", parameter.name}, {"unit", rank.network.units[static_cast<std::size_t>(parameter.unit)].name}, {"shape", std::move(shape)},
                          {"boxes", std::move(boxes)}, {"elements_here", parameter.here}, {"elements_kept", parameter.kept},
                          {"weight_decay", parameter.weight_decay}, {"placement", std::move(placement)}});
  }
  return parameters;
}

}  // namespace shardbook::cli
