#include "engine/fsdp/sharded_unit.hpp"

#include "engine/kernels/initialize.hpp"

namespace shardbook::fsdp {

std::unique_ptr<shard::FlatUnit> layout_of(const model::Unit& unit, int shards) {
  std::vector<shard::FlatParameter> flat;
  for (const model::Parameter* parameter : unit.parameters) {
    flat.push_back({parameter->name, parameter->shape, parameter->replicated_over_tp, parameter->weight_decay});
  }
  return std::make_unique<shard::FlatUnit>(unit.name, std::move(flat), shards);
}

//@ fsdp.views: A parameter is a view into its unit's flat buffer, wherever that is whole right now.
void view_values(const ShardedUnit& unit, const Tensor& full) {
  for (model::Parameter* parameter : unit.unit->parameters) {
    parameter->value = full.slice(unit.layout->range(parameter->name).begin, parameter->shape);
  }
}

void view_gradients(const ShardedUnit& unit, const Tensor& full) {
  for (model::Parameter* parameter : unit.unit->parameters) {
    parameter->gradient = full.slice(unit.layout->range(parameter->name).begin, parameter->shape);
    parameter->gradient_written = false;
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
  for (const shard::Piece& piece : unit.layout->pieces(state.flat)) {
    const std::string& name = unit.layout->parameters()[static_cast<std::size_t>(piece.parameter)].name;
    const Tensor to = state.master.slice(piece.flat.begin - state.flat.begin, {piece.flat.size()});
    for (const model::Parameter* parameter : unit.unit->parameters) {
      if (parameter->name == name) draw(lane, *parameter, piece.elements, to, seed);
    }
  }
  kernels::cast(lane, state.master, state.parameter);
}

}  // namespace shardbook::fsdp
