// The table of switches, held to what each row promises: one instance a row.
#include <gtest/gtest.h>

#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/rows.hpp"

namespace shardbook::tests {
namespace {

using config::Promise;
using config::RunConfig;
using config::Switch;

class Switches : public testing::TestWithParam<Switch> {};

// A run without the switch: rows that need the same have it in common, so it is made once.
const HostRun& run_without(const RunConfig& config, const TestTokens& tokens) {
  static std::map<std::string, HostRun> runs;
  const auto [run, is_new] = runs.try_emplace(config::to_json(config));
  if (is_new) run->second = run_on_host(config, tokens);
  return run->second;
}

TEST_P(Switches, KeepTheirPromiseInEveryLayout) {
  const Switch& row = GetParam();
  if (row.promise == Promise::wrong || row.promise == Promise::time_only) return;   // see Mistakes, and IdealNetwork
  if (row.of_gpus_alone()) return;   // of GPUs alone
  int tried = 0;
  for (int tp : numbers_of_ranks) {
    for (int fsdp : numbers_of_ranks) {
      const std::optional<RunConfig> plain = meeting_needs(row, small_config(tp, fsdp));
      if (!plain) continue;
      RunConfig config = *plain;
      config.steps = one_in == 1 ? 10 : 2;
      const TestTokens tokens(config.model.vocab, config.model.sequence);
      const HostRun& without = run_without(config, tokens);
      ASSERT_EQ(without.error, "");
      for (const std::string& value : other_values(row)) {
        RunConfig with = config;
        const base::Status set = config::set_switch(with, row.key + "=" + value);
        ASSERT_TRUE(set) << set.error();
        ASSERT_TRUE(config::check_switches(with)) << config::check_switches(with).error();
        with.drain_seed = static_cast<std::uint64_t>(++tried);   // another order of the queues each time
        const HostRun run = run_on_host(with, tokens);
        ASSERT_EQ(run.error, "") << row.key << "=" << value;
        const std::string where = base::text(row.key, "=", value, " at tp ", tp, ", fsdp ", fsdp, ", dp ", with.dp);
        if (row.promise == Promise::same_bits) {
          EXPECT_EQ(run.losses, without.losses) << where;
          EXPECT_EQ(run.gradients, without.gradients) << where;
          EXPECT_EQ(run.masters, without.masters) << where;
        } else {
          // Sums in another order: rounding of f32 in every one of them, and no more (the host rounds to no narrower type)
          for (std::size_t step = 0; step < run.losses.size(); ++step) EXPECT_NEAR(run.losses[step], without.losses[step], 1e-4 * without.losses[step]) << where;
        }
      }
    }
  }
  EXPECT_GT(tried, 0) << "no layout meets the needs of " << row.key;
}

TEST_P(Switches, ReadBackWhatWasSetAndRefuseWhatTheyDoNotKnow) {
  const Switch& row = GetParam();
  RunConfig config = small_config(2, 2, 2);
  EXPECT_EQ(config::switch_value(config, row.key), row.default_value);
  const auto set = row.promise == Promise::wrong ? config::set_wrong : config::set_switch;
  for (const std::string& value : other_values(row)) {
    ASSERT_TRUE(set(config, row.key + "=" + value));
    EXPECT_EQ(config::switch_value(config, row.key), value);
  }
  const base::Status wrong = set(config, row.key + "=perhaps");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().find("may be"), std::string::npos) << wrong.error();
}

TEST_P(Switches, AreRefusedWhereTheyDoNothing) {
  const Switch& row = GetParam();
  if (row.needs.empty() || !row.option.empty()) return;
  RunConfig config = small_config(1, 1);
  config.prefetch = 0;
  const auto set = row.promise == Promise::wrong ? config::set_wrong : config::set_switch;
  ASSERT_TRUE(set(config, row.key + "=" + other_values(row).front()));
  const base::Status status = config::check_switches(config);
  ASSERT_FALSE(status) << row.key;
  EXPECT_NE(status.error().find("it needs"), std::string::npos) << status.error();
}

INSTANTIATE_TEST_SUITE_P(Table, Switches, testing::ValuesIn(config::switches()), name_of_row);

// ---- A lab's machine ---------------------------------------------------------------------------

// The first step is real; from the second on nothing is moved, so a rank learns from its own part alone.
TEST(IdealNetwork, MovesNothingAfterTheFirstStep) {
  for (const auto& [tp, fsdp] : {std::pair{2, 1}, std::pair{1, 2}, std::pair{2, 2}}) {
    RunConfig config = small_config(tp, fsdp);
    config.steps = 3;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun real = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, "network=ideal"));
    const HostRun ideal = run_on_host(config, tokens);
    ASSERT_EQ(ideal.error, "");
    EXPECT_EQ(ideal.losses[0], real.losses[0]);
    EXPECT_NE(ideal.losses[2], real.losses[2]);
    // The same is issued, in the same order
    EXPECT_EQ(ideal.program_hashes, real.program_hashes);
  }
}

// By this CPU's clock what is slower is slower: every op that is issued, every kernel of the slow rank.
TEST(SlowMachines, TakeTheTimeThatWasAskedFor) {
  RunConfig config = small_config(1, 2);
  config.steps = 2;
  config.clock = config::Clock::wall;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const auto seconds = [&](const std::string& set) {
    RunConfig with = config;
    EXPECT_TRUE(config::set_switch(with, set));
    const base::Nanoseconds begin = program::host_now();
    const HostRun run = run_on_host(with, tokens);
    EXPECT_EQ(run.error, "");
    return static_cast<double>(program::host_now() - begin) / 1e9;
  };
  device::MetaDevice device(0);
  auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
  trainer.issue(0, false);
  const double ops = static_cast<double>(device.recorder().programs()[0]->ops.size());
  // At least so long, whatever else this machine does; a rank's ops, of two steps
  EXPECT_GE(seconds("host.delay=200"), 2 * ops * 200e-6);
  EXPECT_GE(seconds("rank.slow=1:300"), 2 * 0.7 * ops * 300e-6);
}

// ---- Gradients that cross the network in fewer bytes ------------------------------------------

// The host stores bf16 as it computes, so all that is left of the switch is where numbers go: through the rounded copy, over
// the ranks, and back into the shard, by writing and by adding. Not a bit may get lost there, in any form of a step. (What
// GPUs round is the business of tests/gpu/train_test.cpp.)
TEST(ReduceDtype, OfBf16KeepsEveryBitOnTheHostInEveryFormOfAStep) {
  std::uint64_t seed = 0;
  for (const StepForm& form : some_of<StepForm>({{1, 2, 1, 1, true, ""}, {1, 4, 1, 2, true, ""}, {2, 2, 1, 2, false, ""}, {1, 2, 2, 2, true, ""},
                           {1, 2, 2, 2, false, "accumulate.reduce=last"}, {2, 2, 1, 2, true, "tensor_parallel.sequence=cut"},
                           {1, 2, 1, 2, true, "fsdp.reshard=false"}, {1, 2, 1, 2, true, "fsdp.prefetch=0"}})) {
    RunConfig config = small_config(form);
    config.steps = 3;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun in_fp32 = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, "fsdp.reduce_dtype=bf16"));
    config.drain_seed = ++seed;
    const HostRun in_bf16 = run_on_host(config, tokens);
    SCOPED_TRACE(words_of(form));
    ASSERT_EQ(in_bf16.error, "");
    EXPECT_NE(in_bf16.program_hashes, in_fp32.program_hashes);
    expect_same_bits(in_bf16, in_fp32);
  }
}

// ---- Weight gradients that are added apart -----------------------------------------------------

// Of one step of rank 0.
int ops_named(const std::string& op, const RunConfig& config) {
  device::MetaDevice device(0);
  auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
  trainer.issue(0, true);
  const std::vector<program::Op>& ops = device.recorder().programs()[0]->ops;
  return static_cast<int>(std::count_if(ops.begin(), ops.end(), [&](const program::Op& one) { return op == one.desc.name; }));
}

// Four linears a block and the head; each but the first micro-batch adds, and none with another value. In fp64 what is left of
// the other order is less than a rounding of fp32.
TEST(WeightGradients, MadeApartAreAddedOnceAMicroBatchAndComeToTheSame) {
  for (const auto& [tp, fsdp, dp, sequence] : some_of<std::tuple<int, int, int, const char*>>({{2, 2, 2, "cut"}, {1, 1, 2, "whole"}, {1, 2, 1, "whole"}, {2, 1, 2, "whole"}})) {
    for (bool tied : {true, false}) {
      SCOPED_TRACE(base::text("tp ", tp, ", fsdp ", fsdp, ", dp ", dp, ", sequence ", sequence, tied ? ", tied" : ""));
      RunConfig config = small_config(tp, fsdp, dp);
      config.steps = 2;
      config.micro_batches = 3;
      config.sequences = 3 * config.ranks;
      config.model.tied = tied;
      config.host_dtype = config::HostDtype::f64;
      if (fsdp > 1) config.switches["accumulate.reduce"] = "last";
      if (tp > 1) config.switches["tensor_parallel.sequence"] = sequence;
      const TestTokens tokens(config.model.vocab, config.model.sequence);
      const HostRun fused = run_on_host(config, tokens);
      ASSERT_EQ(fused.error, "");
      const int before = ops_named("accumulate", config);
      ASSERT_TRUE(config::set_switch(config, "accumulate.weight_gradient=apart"));
      const HostRun apart = run_on_host(config, tokens);
      ASSERT_EQ(apart.error, "");
      const int linears = 4 * config.model.layers + 1;
      // A tied embedding adds to what the head has written, by its own kernel, and the head adds to that
      EXPECT_EQ(ops_named("accumulate", config) - before, 2 * linears);
      for (const auto& [name, values] : fused.gradients) {
        ASSERT_EQ(apart.gradients.at(name).size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(apart.gradients.at(name)[i], values[i], 1e-12) << name << ", " << i;
      }
    }
  }
}

// ---- A smaller group --------------------------------------------------------------------------

// What backward gathers near is what forward had whole, so in no form of a step may a bit change; and the checks that
// run_on_host makes of the record find no race between a copy, its gather and the next use of the buffer.
TEST(ReshardGroup, KeepsEveryBitInEveryFormOfAStep) {
  struct Form {
    int tp, fsdp, dp, micro_batches, near;
    bool tied;
    const char* set;
  };
  std::uint64_t seed = 0;
  for (const Form& form : {Form{1, 4, 1, 1, 2, true, "fsdp.prefetch=0"}, Form{1, 4, 1, 2, 2, false, "fsdp.prefetch=2"}, Form{2, 4, 1, 2, 2, true, "tensor_parallel.sequence=cut"},
                           Form{1, 4, 2, 2, 2, true, "fsdp.sharding=per_parameter"}, Form{1, 4, 1, 2, 2, false, "accumulate.reduce=last"}, Form{1, 8, 1, 1, 4, true, "fsdp.backward_prefetch=post"},
                           Form{1, 8, 1, 2, 2, true, "fsdp.limit_all_gathers=1"}, Form{1, 4, 1, 2, 2, true, "activations.recompute=full"}, Form{1, 6, 1, 1, 3, true, "fsdp.blocks_a_unit=2"},
                           Form{1, 4, 1, 2, 2, true, "fsdp.reduce_dtype=bf16"}}) {
    RunConfig config = small_config(form.tp, form.fsdp, form.dp);
    config.model.layers = 3;
    config.steps = 3;
    config.micro_batches = form.micro_batches;
    config.sequences = 2 * config.ranks;
    config.model.tied = form.tied;
    ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun over_all = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, base::text("fsdp.reshard_group=", form.near)));
    config.drain_seed = ++seed;
    const HostRun near = run_on_host(config, tokens);
    SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.set));
    ASSERT_EQ(over_all.error, "");
    ASSERT_EQ(near.error, "");
    EXPECT_NE(near.program_hashes, over_all.program_hashes);
    expect_same_bits(near, over_all);
  }
}

// ---- Units -------------------------------------------------------------------------------------

// What is gathered together decides where a number lies, and so in which order the norm is summed. Without clipping nothing
// asks for the norm, and not a bit may change, in any form of a step.
TEST(Units, OfSeveralBlocksAndParametersOneByOneChangeNoBitButThoseOfTheNorm) {
  std::uint64_t seed = 0;
  for (const StepForm& form : some_of<StepForm>({{1, 2, 1, 1, true, ""}, {1, 4, 1, 2, false, ""}, {2, 2, 1, 2, true, "tensor_parallel.sequence=cut"}, {1, 2, 2, 2, true, ""},
                           {1, 2, 2, 2, false, "accumulate.reduce=last"}, {1, 2, 1, 2, true, "fsdp.reshard=false"}, {1, 2, 1, 1, true, "fsdp.prefetch=0"},
                           {1, 2, 1, 2, false, "fsdp.prefetch=2"}, {1, 2, 1, 1, true, "activations.recompute=full"}, {1, 2, 1, 2, true, "fsdp.limit_all_gathers=1"},
                           {1, 2, 1, 2, true, "fsdp.reduce_dtype=bf16"}})) {
    RunConfig config = small_config(form);
    config.model.layers = 5;
    config.steps = 3;
    config.clip = 0;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun one = run_on_host(config, tokens);
    for (const char* blocks : {"1", "2", "4", "5"}) {   // 2, 2 and 1, which take the two buffers of gradients in turn; 4 and 1
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", blocks)));
      ASSERT_TRUE(config::set_switch(config, *blocks == '2' || *blocks == '4' ? "fsdp.sharding=flat" : "fsdp.sharding=per_parameter"));
      config.drain_seed = ++seed;
      const HostRun several = run_on_host(config, tokens);
      SCOPED_TRACE(base::text(words_of(form), ", units of ", blocks));
      ASSERT_EQ(several.error, "");
      EXPECT_NE(several.program_hashes, one.program_hashes);
      EXPECT_EQ(several.losses, one.losses);
      EXPECT_EQ(several.gradients, one.gradients);
      EXPECT_EQ(several.masters, one.masters);
      for (std::size_t step = 0; step < one.norms.size(); ++step) EXPECT_NEAR(several.norms[step], one.norms[step], 1e-5 * one.norms[step]);
    }
  }
}

// Where one unit has padding another has a weight, and both use one buffer: what the one leaves there may not come into the
// norm of the other. In fp64, for a few small gradients are far below a rounding of fp32.
TEST(Units, ThatDifferLeaveNothingOfThemselvesInEachOthersGaps) {
  for (const auto& [fsdp, micro_batches] : {std::pair{2, 1}, std::pair{2, 2}, std::pair{4, 2}}) {
    RunConfig config = small_config(1, fsdp);
    config.host_dtype = config::HostDtype::f64;
    config.model.layers = 5;
    config.steps = 3;
    config.clip = 0;
    config.micro_batches = micro_batches;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun one = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, "fsdp.blocks_a_unit=2"));
    const HostRun uneven = run_on_host(config, tokens);
    ASSERT_EQ(one.error, "");
    ASSERT_EQ(uneven.error, "");
    ASSERT_EQ(one.norms.size(), 3u);
    ASSERT_EQ(uneven.norms.size(), 3u);
    for (std::size_t step = 0; step < one.norms.size(); ++step) EXPECT_NEAR(uneven.norms[step], one.norms[step], 1e-13 * one.norms[step]) << fsdp << ", " << micro_batches;
  }
}

}  // namespace
}  // namespace shardbook::tests
