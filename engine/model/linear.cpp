#include "engine/model/linear.hpp"

#include "engine/kernels/gemm.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::model {

std::uint32_t generator_key(const std::string& name) {
  std::uint32_t key = 2166136261u;
  for (unsigned char letter : name) key = (key ^ letter) * 16777619u;
  return key;
}

LinearWeights::LinearWeights(const LinearConfig& config, LinearCut cut) : config_(config) {
  SHARDBOOK_CHECK(cut.dim == LinearCut::Dim::none || !cut.axis.empty(), config.name, " is cut, and over which axis is not said");
  std::int64_t all_outputs = 0;
  for (std::int64_t section : config.sections) all_outputs += section;

  // Take this rank's rows of every section, or its columns of all rows.
  const shard::Interval columns = cut.dim == LinearCut::Dim::inputs ? shard::part_of(config.inputs, cut.parts, cut.part)
                                                                   : shard::Interval{0, config.inputs};
  inputs_ = columns.size();
  std::vector<shard::Box> boxes, bias_boxes;
  std::int64_t section_begin = 0;
  for (std::int64_t section : config.sections) {
    shard::Interval rows = cut.dim == LinearCut::Dim::outputs ? shard::part_of(section, cut.parts, cut.part)
                                                              : shard::Interval{0, section};
    rows = {section_begin + rows.begin, section_begin + rows.end};
    boxes.push_back({{rows, columns}, 2});
    bias_boxes.push_back({{rows}, 1});
    outputs_ += rows.size();
    section_begin += section;
  }

  // A bias goes with the outputs: cut with them, whole and alike on every rank otherwise.
  shard::Placement of_weight, of_bias;
  if (cut.dim != LinearCut::Dim::none) {
    of_weight = {shard::cut_over(cut.axis)};
    of_bias = {cut.dim == LinearCut::Dim::outputs ? shard::cut_over(cut.axis) : shard::alike_over(cut.axis)};
  }

  if (config.tied_weight != nullptr) {
    weight_ = config.tied_weight;
    SHARDBOOK_CHECK_EQ(weight_->shape, (base::Shape{outputs_, inputs_}), config.name, " is tied to ", weight_->name);
  } else {
    own_weight_ = {config.name + ".weight", {all_outputs, config.inputs}, boxes, {outputs_, inputs_},
                   of_weight, true, {0, config.deviation}};
  }
  bias_ = {config.name + ".bias", {all_outputs}, bias_boxes, {outputs_}, of_bias, false, {}};
}

const char* name_of(LinearRole role) {
  static constexpr const char* names[] = {"qkv", "projection", "up", "down", "head"};
  return names[static_cast<int>(role)];
}

std::vector<Parameter*> LinearWeights::parameters() {
  std::vector<Parameter*> all;
  if (config_.tied_weight == nullptr) all.push_back(&own_weight_);
  if (config_.bias) all.push_back(&bias_);
  return all;
}

void LinearWeights::forward(device::Lane lane, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue) {
  program::Part part(lane.recorder(), name_of(config_.role));
  const bool add_bias = config_.bias && !config_.late_bias;
  kernels::linear_forward(lane, x_NI, weight_->value, add_bias ? bias_.value : Tensor{}, y_NO, epilogue);
}

void LinearWeights::input_gradient(device::Lane lane, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue) {
  program::Part part(lane.recorder(), name_of(config_.role));
  kernels::linear_input_gradient(lane, dy_NO, weight_->value, dx_NI, epilogue);
}

void LinearWeights::weight_gradient(device::Lane lane, const Tensor& x_NI, const Tensor& dy_NO, const Tensor& scratch, const Tensor& bias_dy_RO) {
  program::Part part(lane.recorder(), name_of(config_.role));
  kernels::linear_weight_gradient(lane, dy_NO, x_NI, weight_->gradient, weight_->accumulate_now());
  if (config_.bias) kernels::bias_gradient(lane, bias_dy_RO.exists() ? bias_dy_RO : dy_NO, bias_.gradient, scratch, bias_.accumulate_now());
}

void refuse(const Epilogue& epilogue) {
  SHARDBOOK_CHECK(epilogue.what == kernels::Beside::nothing, "a linear cannot do another piece's work with what is still to be summed over ranks");
}

}  // namespace shardbook::model
