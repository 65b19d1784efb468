// Runs a small model under a layout on host ranks, and hands back what the tests compare: losses, and every
// gradient as a whole parameter. What the ranks issued must be free of races and alike over ranks; that is looked at
// where tests run as shipped, once for each program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "engine/config/switches.hpp"
#include "engine/train/trainer.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/host_ranks.hpp"

namespace shardbook::tests {

// How much of a test of many layouts is run: all of it; where the code is instrumented, and so ten times slower, a part. What
// a sanitizer looks for does not depend on which combination of layout and switch it is.
#if defined(__SANITIZE_THREAD__)
inline constexpr int one_in = 4;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int one_in = 2;
#else
inline constexpr int one_in = 1;
#endif
template <class Form>
std::vector<Form> some_of(const std::vector<Form>& forms) {
  std::vector<Form> some;
  for (std::size_t at = 0; at < forms.size(); at += one_in) some.push_back(forms[at]);
  return some;
}

// Likewise how many ranks there may be along an axis.
inline const std::vector<int> numbers_of_ranks = one_in == 1 ? std::vector<int>{1, 2, 4} : std::vector<int>{2};

// A model small enough for finite differences, with every size divisible by 4.
inline config::RunConfig small_config(int tp, int fsdp, int dp = 1) {
  config::RunConfig config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 4;
  config.model.head_dim = 8;
  config.model.sequence = 8;
  config.model.vocab = 64;
  config.model.ffn_width = 64;
  config.model.tied = true;
  config.device = config::DeviceKind::host;
  config.tp = tp;
  config.fsdp = fsdp;
  config.dp = dp;
  config.ranks = tp * fsdp * dp;
  config.sequences = 16;
  config.micro_batches = 1;
  config.steps = 20;
  config.warmup_steps = 2;
  config.lr = 1e-2;
  config.min_lr = 1e-3;
  config.trace_steps = {0, 0};
  return config;
}

// A form of a step: how ranks are cut, over how many micro-batches gradients are summed, and a switch that is set ("": none).
struct StepForm {
  int tp, fsdp, dp, micro_batches;
  bool tied;
  const char* set;
};
inline config::RunConfig small_config(const StepForm& form) {
  config::RunConfig config = small_config(form.tp, form.fsdp, form.dp);
  config.micro_batches = form.micro_batches;
  config.model.tied = form.tied;
  if (*form.set != 0 && !config::set_switch(config, form.set)) throw base::Failure(base::text("no switch can be set by ", form.set));
  return config;
}
inline std::string words_of(const StepForm& form) {
  return base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.set);
}

// Its kin with Llama's pieces; four of eight heads' worth of keys and values, so that tp 4 still cuts them.
inline config::RunConfig small_llama(int tp, int fsdp) {
  config::RunConfig config = small_config(tp, fsdp);
  config.model.architecture = config::Architecture::llama;
  config.model.heads = 8;
  config.model.head_dim = 4;
  config.model.key_value_heads = 4;
  config.model.rope_theta = 10000;
  config.model.tied = false;
  return config;
}

// Each tp rank holds the rows of its tokens between the linears: sequence parallelism.
inline config::RunConfig with_tokens_cut(config::RunConfig config) {
  config.switches["tensor_parallel.sequence"] = "cut";
  return config;
}

// Uniform tokens, a pure function of (step, sequence, position); `permutation` says which sequence stands where
// in the global batch, so that sums over the batch run in another order.
class TestTokens final : public data::TokenSource {
 public:
  TestTokens(int vocab, int sequence) : vocab_(vocab), sequence_(sequence) {}
  std::vector<int> permutation;

  void fill(std::int64_t step, int, int first, int count, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const override {
    for (int row = 0; row < count; ++row) {
      const int which = permutation.empty() ? first + row : permutation[static_cast<std::size_t>(first + row)];
      for (int at = 0; at <= sequence_; ++at) {
        const int token = token_of(step, which, at);
        if (at < sequence_) tokens[static_cast<std::size_t>(row * sequence_ + at)] = token;
        if (at > 0) targets[static_cast<std::size_t>(row * sequence_ + at - 1)] = token;
      }
    }
  }
  std::int64_t tokens() const override { return 0; }
  std::string describe() const override { return "test tokens"; }

 private:
  // Half of the tokens follow from the one before, so that there is something to learn.
  int token_of(std::int64_t step, int which, int at) const {
    const std::uint64_t key = static_cast<std::uint64_t>((step * 1009 + which) * 131 + at / 2);
    const int base = static_cast<int>((key * 0x9e3779b97f4a7c15ull >> 33) % static_cast<std::uint64_t>(vocab_));
    return at % 2 == 0 ? base : (3 * base + 1) % vocab_;
  }
  int vocab_, sequence_;
};

using Parameters = std::map<std::string, std::vector<double>>;  // by global name, whole

// Elements of a parameter as its rank holds them, row by row of their boxes: body(at, global, count) says that [at, at + count)
// of them are [global, global + count) of the whole.
template <class Body>
void by_rows(const model::Parameter& parameter, shard::Interval elements, Body body) {
  std::int64_t at = elements.begin, before = 0;   // of the boxes before
  for (const shard::Box& box : parameter.boxes) {
    const shard::TensorShard place{parameter.name, parameter.global_shape, box};
    const std::int64_t end = std::min(elements.end, before + box.elements()), row = box.dims == 0 ? 1 : box[box.dims - 1].size();
    while (at < end) {
      const std::int64_t local = at - before, count = std::min(row - local % row, end - at);
      body(at, place.global_element(local), count);
      at += count;
    }
    before += box.elements();
  }
  if (at < elements.end) throw base::Failure("elements beyond a parameter's boxes: " + parameter.name);
}

// Adds what this rank holds of a flat tensor (masters, gradients) to the whole parameters.
inline void collect(train::Trainer& trainer, tensor::Tensor optimizer::ShardState::*which, Parameters& whole) {
  std::map<std::string, model::Parameter*> by_name;
  for (model::Parameter* parameter : trainer.model().parameters()) by_name[parameter->name] = parameter;
  for (const optimizer::ShardState& shard : trainer.shards()) {
    for (const shard::Piece& piece : shard.layout->pieces(shard.flat)) {
      const model::Parameter& parameter = *by_name.at(shard.layout->parameters()[static_cast<std::size_t>(piece.parameter)].name);
      std::vector<double>& values = whole[parameter.name];
      values.resize(static_cast<std::size_t>(parameter.global_shape.elements()));
      by_rows(parameter, piece.elements, [&](std::int64_t at, std::int64_t global, std::int64_t count) {
        const std::int64_t flat = piece.flat.begin - shard.flat.begin + at - piece.elements.begin;
        for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(global + i)] = get(shard.*which, flat + i);
      });
    }
  }
}

struct HostRun {
  std::string error;
  std::vector<double> losses, norms;
  Parameters gradients;   // of the first step
  Parameters masters;     // at the end
  std::vector<std::uint64_t> program_hashes, order_hashes;  // by rank
  int host_waits = 0;     // within any step of any rank
};

// All that a run computes.
inline void expect_same_bits(const HostRun& one, const HostRun& other) {
  EXPECT_EQ(one.losses, other.losses);
  EXPECT_EQ(one.norms, other.norms);
  EXPECT_EQ(one.gradients, other.gradients);
  EXPECT_EQ(one.masters, other.masters);
}

inline mesh::Mesh mesh_of(const config::RunConfig& config) {
  mesh::DenseSizes sizes;
  sizes.dp_replicate = config.dp;
  sizes.dp_shard = config.fsdp;
  sizes.tp = config.tp;
  return mesh::Mesh::dense(sizes);
}

// `prepare` may change a trainer before its first step; `make_plan` writes another order than the config's.
inline HostRun run_on_host(const config::RunConfig& config, const data::TokenSource& source,
                           const std::function<void(train::Trainer&)>& prepare = {}, const train::PlanMaker& make_plan = nullptr) {
  HostRun run;
  run.program_hashes.resize(static_cast<std::size_t>(config.ranks));
  run.order_hashes.resize(static_cast<std::size_t>(config.ranks));
  std::vector<Recorded> recorded(static_cast<std::size_t>(config.ranks));
  // How the code is instrumented that recorded a program does not change it
  static const bool checked = [] {
    if (one_in > 1) return false;
    if (std::getenv("SHARDBOOK_UNCHECKED") == nullptr) return true;   // unset but where the cost of checking is measured
    std::fputs("SHARDBOOK_UNCHECKED is set: no test looks for races, diverging ranks or hangs\n", stderr);
    return false;
  }();
  std::mutex mutex;
  const base::DType stored = config.host_dtype == config::HostDtype::f64 ? base::DType::f64 : base::DType::f32;
  run.error = on_host_ranks(config.ranks, [&](HostRank& rank) {
    const int me = rank.world.rank();
    train::Trainer trainer(config, rank.device, rank.backend, mesh_of(config), me, &source, make_plan);
    if (prepare) prepare(trainer);
    for (int step = 0; step < config.steps; ++step) {
      trainer.issue(step, false);
      const int host_waits = rank.device.recorder().host_waits();
      const train::StepResult result = trainer.await(step);
      std::lock_guard lock(mutex);
      run.host_waits += host_waits;
      if (me == 0) {
        run.losses.push_back(result.loss);
        run.norms.push_back(result.gradient_norm);
      }
      if (step == 0) collect(trainer, &optimizer::ShardState::gradient, run.gradients);
    }
    rank.device.synchronize();   // a step's loss is there before its states are back in host memory
    std::lock_guard lock(mutex);
    collect(trainer, &optimizer::ShardState::master, run.masters);
    const program::Recorder& recorder = rank.device.recorder();
    run.program_hashes[static_cast<std::size_t>(me)] = recorder.program_hashes().back();
    run.order_hashes[static_cast<std::size_t>(me)] = program::collective_order_hash(*recorder.programs().back(), recorder.catalogue());
    if (recorder.programs().size() != 1) throw base::Failure("steps of one run issued different programs");
    if (checked) recorded[static_cast<std::size_t>(me)] = recorded_by(recorder);
  }, config.drain_seed, stored);
  if (checked && run.error.empty()) {
    EXPECT_EQ(problem_of(recorded), "");
  }
  return run;
}

// ‖a − b‖ / ‖b‖ over all parameters.
inline double relative_error(const Parameters& found, const Parameters& truth) {
  double difference = 0, size = 0;
  for (const auto& [name, values] : truth) {
    const std::vector<double>& other = found.at(name);
    for (std::size_t at = 0; at < values.size(); ++at) {
      difference += (other[at] - values[at]) * (other[at] - values[at]);
      size += values[at] * values[at];
    }
  }
  return std::sqrt(difference / size);
}

}  // namespace shardbook::tests
