// train/seams: what does a value of a switch become?
//
// The one file that knows switches and rooms (tests/house looks for others). For each key, a function from the value
// to a choice; so a room gets a number, a policy or a piece, and has no `if` for a switch.
#include <charconv>
#include <functional>
#include <map>

#include "engine/config/switches.hpp"
#include "engine/train/mistakes.hpp"
#include "engine/train/order.hpp"

namespace shardbook::train {

namespace {

using Seam = std::function<void(Choices&, const std::string& value)>;

int number_in(const std::string& value) {
  int number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

void leave_out(Choices& choices, bool wrong, const char* event_ends_in) {
  if (wrong) choices.mistakes.unawaited = event_ends_in;
}

const std::map<std::string, Seam, std::less<>>& seams() {
  static const std::map<std::string, Seam, std::less<>> table{
      {"accumulate.reduce", [](Choices& c, const std::string& v) { c.reduce = v == "last" ? plan::Reduce::last_micro_batch : plan::Reduce::every_micro_batch; }},
      {"accumulate.weight_gradient", [](Choices& c, const std::string& v) { c.gradients_apart = v == "apart"; }},
      {"activations.recompute",
       [](Choices& c, const std::string& v) {
         c.recompute = v == "full";
         c.remake = v == "cheap";
         c.recompute_attention = v == "selective";
       }},
      {"attention.kernel",
       [](Choices& c, const std::string& v) {
         c.flash_attention = v == "flash";
         c.cudnn_attention = v == "cudnn";
       }},
      {"data_parallel.bucket_mib", [](Choices& c, const std::string& v) { c.sums.bucket = base::Bytes{number_in(v)} << 20; }},
      {"data_parallel.reduce",
       [](Choices& c, const std::string& v) {
         using data_parallel::Sums;
         c.sums.sums = v == "naive" ? Sums::naive : v == "flat" ? Sums::flat : Sums::bucketed;
       }},
      {"dropout.recompute",
       [](Choices& c, const std::string& v) {
         if (v == "anew") c.mistakes.draw = draw_anew;
       }},
      {"dropout.stream",
       [](Choices& c, const std::string& v) {
         if (v == "one") c.mistakes.uncut = with_one_stream;
       }},
      {"fsdp.backward_prefetch",
       [](Choices& c, const std::string& v) {
         const int ahead = c.gathers.forward.at_begin;
         c.gathers.backward = v == "pre" ? fsdp::Ahead{ahead, 0} : v == "post" ? fsdp::Ahead{0, ahead} : fsdp::Ahead{0, 0};
       }},
      {"fsdp.blocks_a_unit", [](Choices& c, const std::string& v) { c.unit.blocks = number_in(v); }},
      {"fsdp.gradient_memory", [](Choices& c, const std::string& v) { c.store.lends = v == "lent"; }},
      {"fsdp.limit_all_gathers", [](Choices& c, const std::string& v) { c.limit = number_in(v); }},
      {"fsdp.min_num_params", [](Choices& c, const std::string& v) { c.unit.numbers = std::int64_t{1'000'000} * number_in(v); }},
      {"fsdp.offload",
       [](Choices& c, const std::string& v) {
         using optimizer::OnHost;
         c.store.on_host = v == "optimizer" ? OnHost::states : v == "parameters" ? OnHost::everything : OnHost::nothing;
       }},
      {"fsdp.parameter_copy", [](Choices& c, const std::string& v) { c.store.keeps_copy = v == "kept"; }},
      {"fsdp.prefetch", [](Choices& c, const std::string& v) { c.gathers.forward = c.gathers.backward = {number_in(v), 0}; }},
      {"fsdp.reduce_dtype", [](Choices& c, const std::string& v) { c.store.reduce = v == "bf16" ? base::DType::bf16 : base::DType::f32; }},
      {"fsdp.reshard", [](Choices& c, const std::string& v) { c.store.reshard = v == "true"; }},
      {"fsdp.reshard_group", [](Choices& c, const std::string& v) { c.store.near = number_in(v); }},
      {"fsdp.sharding", [](Choices& c, const std::string& v) { c.store.each_parameter = v == "per_parameter"; }},
      {"fsdp.gather_awaited", [](Choices& c, const std::string& v) { leave_out(c, v == "no", ".gathered"); }},
      {"fsdp.update", [](Choices& c, const std::string& v) { c.store.updates_by_unit = c.gathers.for_the_next_step = v == "by_unit"; }},
      {"fsdp.update_awaited", [](Choices& c, const std::string& v) { leave_out(c, v == "no", "fsdp.updated"); }},
      {"gelu.kernel", [](Choices& c, const std::string& v) { c.gelu_in_matmuls = v == "in_matmuls"; }},
      {"host.connections", [](Choices& c, const std::string& v) { c.machine.connections = number_in(v); }},
      {"host.delay", [](Choices& c, const std::string& v) { c.machine.call_us = number_in(v); }},
      {"host.graph", [](Choices& c, const std::string& v) { c.graph = v == "on"; }},
      {"host.synchronize", [](Choices& c, const std::string& v) { c.synchronize = v == "layer"; }},
      {"initialization.slices",
       [](Choices& c, const std::string& v) {
         if (v == "alike") c.mistakes.model.push_back(forget_places);
       }},
      {"loss.chunks", [](Choices& c, const std::string& v) { c.loss_chunks = number_in(v); }},
      {"loss.divisor", [](Choices& c, const std::string& v) { c.mistakes.own_tokens = v == "own_tokens"; }},
      {"loss.kernel", [](Choices& c, const std::string& v) { c.loss_in_one = v == "fused"; }},
      {"matmul.sms_beside", [](Choices& c, const std::string& v) { c.machine.sms_beside = number_in(v); }},
      {"nccl.buffers",
       [](Choices& c, const std::string& v) {
         using comm::Buffers;
         c.machine.buffers = v == "registered" ? Buffers::registered : v == "windows" ? Buffers::windows : Buffers::plain;
       }},
      {"nccl.last_ctas", [](Choices& c, const std::string& v) { c.machine.last_ctas = number_in(v); }},
      {"nccl.max_ctas", [](Choices& c, const std::string& v) { c.machine.max_ctas = number_in(v); }},
      {"network", [](Choices& c, const std::string& v) { c.machine.ideal_network = v == "ideal"; }},
      {"optimizer.update",
       [](Choices& c, const std::string& v) {
         if (v == "before_sums") c.mistakes.order = updated_before_the_sums;
       }},
      {"rank.slow",
       [](Choices& c, const std::string& v) {
         const std::size_t colon = v.find(':');
         if (colon == std::string::npos) return;
         c.machine.slow_rank = number_in(v.substr(0, colon));
         c.machine.kernel_us = number_in(v.substr(colon + 1));
       }},
      {"tensor_parallel.conjugates",
       [](Choices& c, const std::string& v) {
         if (v == "both_ways") c.mistakes.pieces = with_sums_both_ways;
       }},
      {"tensor_parallel.input_gradient_sum",
       [](Choices& c, const std::string& v) {
         using tensor_parallel::InputGradientSum;
         c.pieces.input_gradient_sum = v == "awaited" ? InputGradientSum::awaited : v == "first" ? InputGradientSum::first : InputGradientSum::overlapped;
       }},
      {"tensor_parallel.overlap", [](Choices& c, const std::string& v) { c.pieces.in_turns = v == "pieces"; }},
      {"tensor_parallel.partial_gradients",
       [](Choices& c, const std::string& v) {
         if (v == "unsummed") c.mistakes.model.push_back(take_summands_for_sums);
       }},
      {"tensor_parallel.row_bias",
       [](Choices& c, const std::string& v) {
         if (v == "before_the_sum") c.mistakes.pieces = with_bias_before_the_sum;
       }},
      {"tensor_parallel.sequence", [](Choices& c, const std::string& v) { c.pieces.cut_tokens = v == "cut"; }},
      {"tensor_parallel.sum_awaited", [](Choices& c, const std::string& v) { leave_out(c, v == "no", "_region.summed"); }},
  };
  return table;
}

}  // namespace

Choices choices_of(const config::RunConfig& config) {
  Choices choices;
  choices.store.replicas = config.dp;
  choices.store.micro_batches = config.micro_batches;
  choices.store.parameter = config.precision == config::Precision::bf16 ? base::DType::bf16 : base::DType::f32;
  // The depth of prefetch comes first: what backward does follows it
  seams().at("fsdp.prefetch")(choices, config::switch_value(config, "fsdp.prefetch"));
  for (const config::Switch& row : config::switches()) {
    const auto seam = seams().find(row.key);
    SHARDBOOK_CHECK(seam != seams().end(), "the switch ", row.key, " has no seam");
    if (row.key != "fsdp.prefetch") seam->second(choices, config::switch_value(config, row.key));
  }
  return choices;
}

}  // namespace shardbook::train
