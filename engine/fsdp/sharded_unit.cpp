#include "engine/fsdp/sharded_unit.hpp"

#include "engine/kernels/initialize.hpp"

namespace shardbook::fsdp {

std::int64_t ShardedUnit::padded() const { return flats.empty() ? 0 : flats.back().begin + flats.back().layout->padded(); }

std::int64_t ShardedUnit::shard_elements() const { return flats.empty() ? 0 : padded() / flats.front().layout->shards(); }

std::vector<shard::Placement> ShardedUnit::placements() const {
  std::vector<shard::Placement> all;
  for (const Flat& flat : flats) {
    for (const shard::FlatParameter& parameter : flat.layout->parameters()) all.push_back(parameter.placement);
  }
  return all;
}

std::vector<shard::Interval> ShardedUnit::summands_over(std::string_view axis) const {
  std::vector<shard::Interval> parts;
  for (const Flat& flat : flats) {
    for (const shard::Interval& part : flat.layout->summands_over(axis)) parts.push_back({flat.begin + part.begin, flat.begin + part.end});
  }
  return parts;
}

//@ fsdp.lay_out: All parameters of a unit end to end and cut as one, or each padded and cut by itself.
void lay_out(ShardedUnit& unit, int shards, bool each_parameter, std::size_t first_state, const shard::Placement& data) {
  auto lay = [&](const std::string& name, std::vector<shard::FlatParameter> parameters) {
    const std::int64_t begin = unit.padded();
    unit.flats.push_back({std::make_unique<shard::FlatUnit>(name, std::move(parameters), shards), first_state + unit.flats.size(), begin});
  };
  std::vector<shard::FlatParameter> together;
  for (const model::Parameter* parameter : unit.unit->parameters) {
    const shard::FlatParameter known{parameter->name, parameter->shape, joined(parameter->placement, data), parameter->weight_decay};
    if (each_parameter) lay(parameter->name, {known});
    else together.push_back(known);
  }
  if (!each_parameter) lay(unit.unit->name, std::move(together));

  for (std::size_t at = 0; at < unit.unit->parameters.size(); ++at) {
    const Flat& flat = unit.flats[each_parameter ? at : 0];
    unit.begins.push_back(flat.begin + flat.layout->range(unit.unit->parameters[at]->name).begin);
  }
}
//@end

std::vector<shard::Interval> gaps_of(const ShardedUnit& unit) {
  std::vector<shard::Interval> gaps;
  for (const Flat& flat : unit.flats) {
    std::int64_t end = 0;
    const auto gap_until = [&](std::int64_t next) {
      if (next > end) gaps.push_back({flat.begin + end, flat.begin + next});
    };
    for (std::size_t at = 0; at < flat.layout->parameters().size(); ++at) {
      const shard::Interval range = flat.layout->range(static_cast<int>(at));
      gap_until(range.begin);
      end = range.end;
    }
    gap_until(flat.layout->padded());
  }
  return gaps;
}

//@ fsdp.views: A parameter is a view into its unit's buffer, wherever that is whole right now.
void view_values(const ShardedUnit& unit, const Tensor& full) {
  for (std::size_t at = 0; at < unit.begins.size(); ++at) {
    model::Parameter& parameter = *unit.unit->parameters[at];
    parameter.value = full.slice(unit.begins[at], parameter.shape);
  }
}

void view_gradients(const ShardedUnit& unit, const Tensor& full) {
  for (std::size_t at = 0; at < unit.begins.size(); ++at) {
    model::Parameter& parameter = *unit.unit->parameters[at];
    parameter.gradient = full.slice(unit.begins[at], parameter.shape);
    parameter.gradient_written = false;
  }
}
//@end

namespace {

// Elements [begin, end) of the parameter, counted as they lie here, drawn into `to`.
void draw(device::Lane lane, const model::Parameter& parameter, shard::Interval elements, const Tensor& to,
          std::uint64_t seed) {
  const std::int64_t global_columns = parameter.global_shape.dims() == 2 ? parameter.global_shape[1] : 1;
  std::int64_t box_begin = 0;
  for (const shard::Box& box : parameter.boxes) {
    const shard::Interval in_box{box_begin, box_begin + box.elements()};
    box_begin = in_box.end;
    const shard::Interval part = shard::intersect(in_box, elements);
    if (part.empty()) continue;
    const shard::Interval columns = box.dims == 2 ? box[1] : shard::Interval{0, 1};
    const kernels::MatrixPart where{box[0].begin, columns.begin, columns.size(), global_columns, part.begin - in_box.begin};
    kernels::init_normal(lane, to.slice(part.begin - elements.begin, {part.size()}), where, seed,
                         model::generator_key(parameter), parameter.initial.mean, parameter.initial.deviation);
  }
}

}  // namespace

void initialize(device::Lane lane, const ShardedUnit& unit, const optimizer::ShardState& state, std::uint64_t seed) {
  for (const shard::Piece& piece : state.layout->pieces(state.flat)) {
    const std::string& name = state.layout->parameters()[static_cast<std::size_t>(piece.parameter)].name;
    const Tensor to = state.master.slice(piece.flat.begin - state.flat.begin, {piece.flat.size()});
    for (const model::Parameter* parameter : unit.unit->parameters) {
      if (parameter->name == name) draw(lane, *parameter, piece.elements, to, seed);
    }
  }
  if (state.parameter.exists()) kernels::cast(lane, state.master, state.parameter);
}

}  // namespace shardbook::fsdp
