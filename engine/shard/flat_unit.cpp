#include "engine/shard/flat_unit.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.hpp"

namespace shardbook::shard {

namespace {

// The order of the zones in the head of flat_unit.hpp.
int zone_of(const FlatParameter& parameter) {
  if (parameter.weight_decay) return parameter.replicated_over_tp ? 0 : 1;
  return parameter.replicated_over_tp ? 3 : 2;
}

}  // namespace

FlatUnit::FlatUnit(std::string name, std::vector<FlatParameter> parameters, int shards)
    : name_(std::move(name)), shards_(shards), parameters_(std::move(parameters)) {
  SHARDBOOK_CHECK(shards_ >= 1, "unit ", name_, " in ", shards_, " shards");
  SHARDBOOK_CHECK(!parameters_.empty(), "unit ", name_, " has no parameters");

  // Order by zone; a stable sort keeps the given order within one.
  std::stable_sort(parameters_.begin(), parameters_.end(),
                   [](const auto& left, const auto& right) { return zone_of(left) < zone_of(right); });

  // Lay end to end, each at an aligned offset, and note where the zones end.
  std::set<std::string> names;
  for (const FlatParameter& parameter : parameters_) {
    SHARDBOOK_CHECK(parameter.shape.elements() >= 1, parameter.name, " ", base::to_string(parameter.shape),
                    " has no elements");
    SHARDBOOK_CHECK(names.insert(parameter.name).second, "unit ", name_, " holds ", parameter.name, " twice");
    const std::int64_t begin = round_up(elements_, parameter_alignment);
    elements_ = begin + parameter.shape.elements();
    ranges_.push_back({begin, elements_});
    if (parameter.weight_decay) decay_end_ = elements_;
    if (!parameter.replicated_over_tp) {
      tp_sharded_ = {tp_sharded_.empty() ? begin : tp_sharded_.begin, elements_};
    }
  }

  // Pad, so that shards are equal and aligned.
  shard_elements_ = round_up(round_up(elements_, shards_) / shards_, shard_alignment);
}

std::vector<Interval> FlatUnit::replicated_over_tp() const {
  std::vector<Interval> runs;
  bool joins = false;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    const bool replicated = parameters_[parameter].replicated_over_tp;
    if (replicated && joins) runs.back().end = ranges_[parameter].end;
    else if (replicated) runs.push_back(ranges_[parameter]);
    joins = replicated;
  }
  return runs;
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
