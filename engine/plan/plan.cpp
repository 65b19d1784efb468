#include "engine/plan/plan.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "engine/base/check.hpp"

namespace shardbook::plan {

const char* name_of(Kind kind) {
  static constexpr const char* names[] = {"load", "states", "to_device", "gather", "keep", "release", "limit", "synchronize", "forward", "recompute", "remake", "backward", "reduce", "to_host", "norm", "update"};
  return names[static_cast<int>(kind)];
}

bool computes(Kind kind) { return kind == Kind::forward || kind == Kind::recompute || kind == Kind::remake || kind == Kind::backward; }

bool communicates(Kind kind) { return kind == Kind::gather || kind == Kind::reduce; }

bool moves(Kind kind) { return communicates(kind) || kind == Kind::to_device || kind == Kind::to_host || kind == Kind::states; }

bool Action::operator==(const Action& other) const {
  return kind == other.kind && phase == other.phase && micro_batch == other.micro_batch && layer == other.layer &&
         unit == other.unit && units == other.units && slot == other.slot && shard_slot == other.shard_slot && std::strcmp(axis, other.axis) == 0;
}

bool sums_in_place(std::string_view axis) { return axis != "dp_shard"; }

bool empties(const Unit& unit, std::string_view axis) {
  const auto first = std::find_if(unit.sums.begin(), unit.sums.end(), [](const std::string& sum) { return sum != "tp"; });
  return first != unit.sums.end() && *first == axis;
}

std::string to_string(const Action& action) {
  std::string words = name_of(action.kind);
  if (action.layer >= 0) words += base::text(" layer ", action.layer);
  else if (action.units > 1) words += base::text(" units ", action.unit, " to ", action.unit + action.units - 1);
  else if (action.unit >= 0) words += base::text(" unit ", action.unit);
  if (*action.axis != 0) words += base::text(" over ", action.axis);
  if (action.micro_batch >= 0) words += base::text(" of micro-batch ", action.micro_batch);
  return words;
}

std::string line_of(const Action& action) { return base::text(action.where.file, ":", action.where.line); }

std::vector<Action> for_the_next_step(const Plan& plan) {
  std::vector<Action> gathers;
  const auto update = std::find_if(plan.actions.begin(), plan.actions.end(), [](const Action& action) { return action.kind == Kind::update; });
  std::copy_if(update, plan.actions.end(), std::back_inserter(gathers), [](const Action& action) { return action.kind == Kind::gather; });
  return gathers;
}

namespace {

Action action(Kind kind, Phase phase, Where where) {
  Action made;
  made.kind = kind;
  made.phase = phase;
  made.where = {where.file_name(), where.line()};
  return made;
}

Action of_layer(Kind kind, Phase phase, int layer, int micro_batch, Where where) {
  Action made = action(kind, phase, where);
  made.layer = layer;
  made.micro_batch = micro_batch;
  return made;
}

Action of_unit(Kind kind, Phase phase, int unit, Where where) {
  Action made = action(kind, phase, where);
  made.unit = unit;
  return made;
}

}  // namespace

Action load(int micro_batch, Where where) { return of_layer(Kind::load, Phase::forward, -1, micro_batch, where); }
Action states(Where where) { return action(Kind::states, Phase::update, where); }
Action to_device(int unit, Where where) { return of_unit(Kind::to_device, Phase::forward, unit, where); }
Action gather(int unit, const char* axis, Where where) {
  Action made = of_unit(Kind::gather, Phase::forward, unit, where);
  made.axis = axis;
  return made;
}
Action keep(int unit, Where where) { return of_unit(Kind::keep, Phase::forward, unit, where); }
Action release(int unit, Where where) { return of_unit(Kind::release, Phase::forward, unit, where); }
Action limit(int unit, Where where) { return of_unit(Kind::limit, Phase::forward, unit, where); }
Action synchronize(Where where) { return action(Kind::synchronize, Phase::forward, where); }
Action forward(int layer, int micro_batch, Where where) { return of_layer(Kind::forward, Phase::forward, layer, micro_batch, where); }
Action recompute(int layer, int micro_batch, Where where) { return of_layer(Kind::recompute, Phase::backward, layer, micro_batch, where); }
Action remake(int layer, int micro_batch, Where where) { return of_layer(Kind::remake, Phase::backward, layer, micro_batch, where); }
Action backward(int layer, int micro_batch, Where where) { return of_layer(Kind::backward, Phase::backward, layer, micro_batch, where); }
Action reduce(int unit, const char* axis, Where where) { return reduce_bucket(unit, 1, axis, where); }
Action reduce_bucket(int first_unit, int units, const char* axis, Where where) {
  Action made = of_unit(Kind::reduce, Phase::backward, first_unit, where);
  made.units = units;
  made.axis = axis;
  return made;
}
Action to_host(int unit, Where where) { return of_unit(Kind::to_host, Phase::backward, unit, where); }
Action norm(Where where) { return action(Kind::norm, Phase::reduce, where); }
Action update(Where where) { return action(Kind::update, Phase::update, where); }

}  // namespace shardbook::plan
