#include "engine/shard/flat_unit.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.hpp"

namespace shardbook::shard {

namespace {

std::size_t place_of(const Placement& placement, const std::vector<Placement>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Placement& one) { return equal(one, placement); });
  return static_cast<std::size_t>(found - all.begin());
}

int parts_of(const Placement& placement) {
  return static_cast<int>(std::count_if(placement.begin(), placement.end(), [](const Along& one) { return one.value == Held::part; }));
}

// The placements of a unit, those with fewer parts first; else as they come.
std::vector<Placement> placements_of(const std::vector<FlatParameter>& parameters) {
  std::vector<Placement> all;
  for (const FlatParameter& parameter : parameters) {
    if (place_of(parameter.placement, all) == all.size()) all.push_back(parameter.placement);
  }
  std::stable_sort(all.begin(), all.end(), [](const Placement& left, const Placement& right) { return parts_of(left) < parts_of(right); });
  return all;
}

// The order of the zones in the head of flat_unit.hpp: in for what is decayed, and out again for what is not.
int zone_of(const FlatParameter& parameter, const std::vector<Placement>& placements) {
  const std::size_t at = place_of(parameter.placement, placements);
  return static_cast<int>(parameter.weight_decay ? at : 2 * placements.size() - 1 - at);
}

}  // namespace

FlatUnit::FlatUnit(std::string name, std::vector<FlatParameter> parameters, int shards)
    : name_(std::move(name)), shards_(shards), parameters_(std::move(parameters)) {
  SHARDBOOK_CHECK(shards_ >= 1, "unit ", name_, " in ", shards_, " shards");
  SHARDBOOK_CHECK(!parameters_.empty(), "unit ", name_, " has no parameters");

  // Order by zone; a stable sort keeps the given order within one.
  const std::vector<Placement> placements = placements_of(parameters_);
  std::stable_sort(parameters_.begin(), parameters_.end(), [&](const auto& left, const auto& right) {
    return zone_of(left, placements) < zone_of(right, placements);
  });

  // Lay end to end, each at an aligned offset, and note where the zones end.
  std::set<std::string> names;
  for (const FlatParameter& parameter : parameters_) {
    SHARDBOOK_CHECK(parameter.shape.elements() >= 1, parameter.name, " ", base::to_string(parameter.shape),
                    " has no elements");
    SHARDBOOK_CHECK(names.insert(parameter.name).second, "unit ", name_, " holds ", parameter.name, " twice");
    SHARDBOOK_CHECK(problem_of(parameter.placement).empty(), parameter.name, " ", problem_of(parameter.placement));
    const std::int64_t begin = round_up(elements_, parameter_alignment);
    elements_ = begin + parameter.shape.elements();
    ranges_.push_back({begin, elements_});
    if (parameter.weight_decay) decay_end_ = elements_;
  }

  // Pad, so that shards are equal and aligned.
  shard_elements_ = round_up(round_up(elements_, shards_) / shards_, shard_alignment);
}

std::vector<Interval> FlatUnit::where(const std::function<bool(const Placement&)>& is) const {
  std::vector<Interval> runs;
  bool joins = false;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    const bool here = is(parameters_[parameter].placement);
    if (here && joins) runs.back().end = ranges_[parameter].end;
    else if (here) runs.push_back(ranges_[parameter]);
    joins = here;
  }
  return runs;
}

std::vector<Interval> FlatUnit::summands_over(std::string_view axis) const {
  return where([&](const Placement& placement) { return along(placement, axis).gradient == Held::summand; });
}

std::vector<Interval> FlatUnit::counted(const Place& place) const {
  const auto mine = where([&](const Placement& placement) { return counts(placement, place); });
  return mine == std::vector{Interval{0, elements_}} ? std::vector{Interval{0, padded()}} : mine;
}

int FlatUnit::index_of(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const FlatParameter& parameter) { return parameter.name == name; });
  SHARDBOOK_CHECK(found != parameters_.end(), "unit ", name_, " has no parameter ", name);
  return static_cast<int>(found - parameters_.begin());
}

Interval FlatUnit::shard(int index) const {
  SHARDBOOK_CHECK(0 <= index && index < shards_, "shard ", index, " of ", shards_, " of unit ", name_);
  return {index * shard_elements_, (index + 1) * shard_elements_};
}

std::vector<Piece> FlatUnit::pieces(Interval flat) const {
  std::vector<Piece> result;
  for (std::size_t parameter = 0; parameter < ranges_.size(); ++parameter) {
    const Interval both = intersect(ranges_[parameter], flat);
    if (both.empty()) continue;
    result.push_back({static_cast<int>(parameter), both.relative_to(ranges_[parameter].begin), both});
  }
  return result;
}

}  // namespace shardbook::shard
