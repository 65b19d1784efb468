// What takes less memory, or moves fewer bytes, computes the same: copies that are made, gradients in lent memory, logits of some
// tokens at a time, the loss in one kernel.
#include <gtest/gtest.h>

#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/rows.hpp"

namespace shardbook::tests {
namespace {

using config::RunConfig;

// Where a copy is made, and where a gradient lies, changes no bit in any form of a step; and the checks that run_on_host makes of
// the record find no race between activations, the gradient that takes their place and the next step's activations.
TEST(LessMemory, KeepsEveryBitInEveryFormOfAStep) {
  struct Form {
    int tp, fsdp;
    bool llama, tied, flash;
    const char* set;
  };
  std::uint64_t seed = 0;
  for (const Form& form : some_of<Form>({{1, 2, false, true, false, "fsdp.prefetch=0"}, {1, 4, false, false, true, "fsdp.prefetch=2"}, {2, 2, false, true, false, "tensor_parallel.sequence=cut"},
                           {2, 2, true, false, true, "tensor_parallel.sequence=cut"}, {1, 2, true, false, false, "fsdp.sharding=per_parameter"}, {1, 4, false, true, true, "fsdp.blocks_a_unit=2"},
                           {1, 2, false, true, false, "fsdp.reduce_dtype=bf16"}, {1, 2, true, false, true, "fsdp.reshard=false"}, {1, 4, false, true, false, "fsdp.reshard_group=2"},
                           {1, 2, false, true, false, "activations.recompute=selective"}, {1, 2, false, true, false, "fsdp.offload=optimizer"}, {1, 2, false, false, true, "fsdp.limit_all_gathers=1"}, {2, 2, false, false, false, "fsdp.backward_prefetch=post"}})) {
    RunConfig config = form.llama ? small_llama(form.tp, form.fsdp) : small_config(form.tp, form.fsdp);
    config.model.layers = 3;
    config.steps = 3;
    config.model.tied = form.tied;
    if (form.flash) config.attention = config::AttentionKind::flash;
    ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun usual = run_on_host(config, tokens);
    for (const char* less : {"fsdp.parameter_copy=made", "fsdp.gradient_memory=lent", "activations.recompute=cheap"}) {
      // One after the other, and so all three that can go together
      if (std::string_view(less) == "activations.recompute=cheap" && config.switches.contains("activations.recompute")) continue;
      RunConfig with = config;
      ASSERT_TRUE(config::set_switch(with, less));
      if (!config::check_switches(with)) continue;
      config = with;
      config.drain_seed = ++seed;
      const HostRun found = run_on_host(config, tokens);
      SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", ", form.set, ", ", less));
      ASSERT_EQ(found.error, "");
      EXPECT_NE(found.program_hashes, usual.program_hashes);
      expect_same_bits(found, usual);
    }
  }
}

// A race is found where the sum of a gradient is made without waiting for the backward that reads what lies there.
TEST(LessMemory, IsRacedForWhereAReductionWaitsForNoBackward) {
  RunConfig config = small_config(1, 2);
  ASSERT_TRUE(config::set_switch(config, "fsdp.gradient_memory=lent"));
  const auto races = [&](const char* left_out) {
    device::MetaDevice device(0);
    device.leave_out_waits(left_out);
    auto backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
    device.leave_out_waits(left_out);
    for (int step = 0; step < 2; ++step) trainer.issue(step, false);
    const Recorded recorded = recorded_by(device.recorder());
    const check::Steps issued{&recorded.programs[0]}, steps = check::steps_to_check(issued);
    std::string all;
    for (const check::Race& race : check::races(recorded.catalogue, steps)) all += check::sentence(race, recorded.catalogue, steps) + "\n";
    return all;
  };
  EXPECT_EQ(races("no such event"), "");
  EXPECT_NE(races(".complete").find("blocks.0.kept"), std::string::npos) << races(".complete");
}

// An order of somebody's own that keeps blocks' inputs alone leaves nothing to lend.
TEST(LessMemory, IsRefusedWhereBlocksKeepNothing) {
  RunConfig config = small_config(1, 2);
  ASSERT_TRUE(config::set_switch(config, "fsdp.gradient_memory=lent"));
  device::MetaDevice device(0);
  auto backend = comm::make_meta_backend();
  RunConfig other = small_config(1, 2);
  ASSERT_TRUE(config::set_switch(other, "activations.recompute=full"));
  const auto whole = [&](const plan::Network& network) { return train::order_of(train::choices_of(other), network).plan; };
  try {
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr, whole);
    ADD_FAILURE() << "nothing was said";
  } catch (const base::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("they keep nothing whose memory gradients could be lent"), std::string::npos) << failure.what();
  }
}

// ---- Logits of some tokens at a time -----------------------------------------------------------

// In fp64 what is left of the other order of sums is far less than a rounding of fp32: in any form of a step, over tp as well, with
// as many chunks as tokens, and with chunks that do not come out even.
TEST(LossChunks, GiveTheLossesAndGradientsOfAllAtOnce) {
  std::uint64_t seed = 0;
  for (const StepForm& form : some_of<StepForm>({{1, 1, 1, 1, true, ""}, {1, 1, 1, 3, false, ""}, {2, 1, 1, 2, true, ""}, {4, 1, 1, 1, false, ""}, {2, 2, 1, 1, false, "fsdp.prefetch=0"}, {1, 2, 2, 2, true, ""},
                           {1, 2, 1, 2, true, "accumulate.reduce=last"}, {2, 1, 1, 1, true, "tensor_parallel.input_gradient_sum=awaited"}, {2, 1, 1, 1, true, "tensor_parallel.input_gradient_sum=first"}, {1, 1, 2, 3, false, "accumulate.weight_gradient=apart"},
                           {1, 2, 1, 1, true, "activations.recompute=full"}})) {
    RunConfig config = small_config(form);
    config.steps = 2;
    config.sequences = 6 * config.data_ranks();
    config.host_dtype = config::HostDtype::f64;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun whole = run_on_host(config, tokens);
    ASSERT_EQ(whole.error, "");
    for (const char* chunks : {"2", "3", "5", "1024"}) {
      ASSERT_TRUE(config::set_switch(config, base::text("loss.chunks=", chunks)));
      config.drain_seed = ++seed;
      const HostRun found = run_on_host(config, tokens);
      SCOPED_TRACE(base::text(words_of(form), ", chunks ", chunks));
      ASSERT_EQ(found.error, "");
      for (std::size_t step = 0; step < whole.losses.size(); ++step) EXPECT_NEAR(found.losses[step], whole.losses[step], 1e-12);
      for (const auto& [name, values] : whole.gradients) {
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(found.gradients.at(name)[i], values[i], 1e-12) << name << ", " << i;
      }
    }
  }
}

// ---- The loss in one kernel --------------------------------------------------------------------

// Rows are treated as in three steps, however many come at once: not a bit differs, in any form of a step.
TEST(LossInOne, GivesTheBitsOfThreeStepsInEveryFormOfAStep) {
  struct Form {
    int fsdp, dp, micro_batches;
    bool llama;
    const char* set;
  };
  std::uint64_t seed = 0;
  for (const Form& form : some_of<Form>({{1, 1, 1, false, ""}, {1, 1, 3, true, ""}, {1, 1, 1, false, "loss.chunks=3"}, {2, 1, 2, true, "loss.chunks=5"}, {2, 2, 1, false, "fsdp.reshard=false"},
                           {1, 2, 2, false, "accumulate.reduce=last"}, {2, 1, 1, false, "activations.recompute=cheap"}, {2, 1, 1, false, "activations.recompute=full"},
                           {2, 1, 1, true, "attention.kernel=flash"}, {2, 1, 1, false, "fsdp.gradient_memory=lent"}, {2, 1, 1, false, "fsdp.offload=parameters"}})) {
    RunConfig config = form.llama ? small_llama(1, form.fsdp) : small_config(1, form.fsdp, form.dp);
    config.steps = 2;
    config.micro_batches = form.micro_batches;
    config.sequences = 6 * config.data_ranks();
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    SCOPED_TRACE(base::text("fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.set));
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun apart = run_on_host(config, tokens);
    ASSERT_EQ(apart.error, "");
    ASSERT_TRUE(config::set_switch(config, "loss.kernel=fused"));
    config.drain_seed = ++seed;
    const HostRun in_one = run_on_host(config, tokens);
    ASSERT_EQ(in_one.error, "");
    expect_same_bits(in_one, apart);
    EXPECT_NE(in_one.program_hashes, apart.program_hashes) << "other kernels are issued";
  }
}

}  // namespace
}  // namespace shardbook::tests
