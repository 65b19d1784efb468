// train/seams: what does a value of a switch become?
//
// The one file that knows switches and rooms (tests/house looks for others). For each key, a function from the value
// to a choice; so a room gets a number, a policy or a piece, and has no `if` for a switch.
#include <charconv>
#include <functional>
#include <map>

#include "engine/config/switches.hpp"
#include "engine/train/order.hpp"

namespace shardbook::train {

namespace {

using Seam = std::function<void(Choices&, const std::string& value)>;

int number_in(const std::string& value) {
  int number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

const std::map<std::string, Seam, std::less<>>& seams() {
  static const std::map<std::string, Seam, std::less<>> table{
      {"accumulate.reduce", [](Choices& c, const std::string& v) { c.reduce = v == "last" ? plan::Reduce::last_micro_batch : plan::Reduce::every_micro_batch; }},
      {"activations.recompute", [](Choices& c, const std::string& v) { c.recompute = v == "full"; }},
      {"data_parallel.bucket_mib", [](Choices& c, const std::string& v) { c.sums.bucket = base::Bytes{number_in(v)} << 20; }},
      {"data_parallel.reduce",
       [](Choices& c, const std::string& v) {
         using data_parallel::Sums;
         c.sums.sums = v == "naive" ? Sums::naive : v == "flat" ? Sums::flat : Sums::bucketed;
       }},
      {"fsdp.backward_prefetch",
       [](Choices& c, const std::string& v) {
         const int ahead = c.gathers.forward.at_begin;
         c.gathers.backward = v == "pre" ? fsdp::Ahead{ahead, 0} : v == "post" ? fsdp::Ahead{0, ahead} : fsdp::Ahead{0, 0};
       }},
      {"fsdp.limit_all_gathers", [](Choices& c, const std::string& v) { c.limit = number_in(v); }},
      {"fsdp.prefetch", [](Choices& c, const std::string& v) { c.gathers.forward = c.gathers.backward = {number_in(v), 0}; }},
      {"fsdp.reshard", [](Choices& c, const std::string& v) { c.store.reshard = v == "true"; }},
      {"host.synchronize", [](Choices& c, const std::string& v) { c.synchronize = v == "layer"; }},
      {"tensor_parallel.input_gradient_sum", [](Choices& c, const std::string& v) { c.pieces.await_input_gradient = v == "awaited"; }},
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
