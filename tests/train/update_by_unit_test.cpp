// Norm and gathers that wait for each unit's own sum and update (fsdp.update=by_unit): the same bits but for the order in which the
// norm adds, no race, and no more waits than are needed.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "engine/check/words.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/rows.hpp"

namespace shardbook::tests {
namespace {

using config::RunConfig;

const char* const by_unit = "fsdp.update=by_unit";

// Without clipping nothing asks for the norm. Also where two units lie in one place in turn, where shards are on the host, and where replicas sum as well. The checks that
// run_on_host makes of its record find no race.
TEST(UpdateByUnit, KeepsEveryBitButThoseOfTheNormInEveryFormOfAStep) {
  std::uint64_t seed = 0;
  for (const StepForm& form : some_of<StepForm>({{1, 2, 1, 1, true, ""}, {1, 2, 1, 1, false, "fsdp.gradient_memory=lent"}, {1, 4, 1, 2, false, ""}, {2, 2, 1, 2, true, "tensor_parallel.sequence=cut"},
                           {1, 2, 2, 2, true, ""}, {1, 2, 1, 2, true, "accumulate.reduce=last"}, {1, 2, 1, 1, false, "fsdp.prefetch=0"}, {1, 2, 1, 1, true, "fsdp.parameter_copy=made"},
                           {1, 2, 1, 2, true, "fsdp.offload=parameters"}, {1, 2, 1, 1, true, "fsdp.offload=optimizer"}, {1, 2, 1, 1, true, "fsdp.reshard=false"},
                           {1, 4, 1, 2, true, "fsdp.reshard_group=2"}, {1, 2, 1, 1, true, "fsdp.sharding=per_parameter"}, {1, 2, 1, 2, true, "fsdp.reduce_dtype=bf16"}})) {
    RunConfig config = small_config(form);
    config.steps = 3;
    config.clip = 0;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun whole = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, by_unit));
    config.drain_seed = ++seed;
    const HostRun found = run_on_host(config, tokens);
    SCOPED_TRACE(words_of(form));
    ASSERT_EQ(found.error, "");
    EXPECT_NE(found.program_hashes, whole.program_hashes);
    EXPECT_EQ(found.losses, whole.losses);
    EXPECT_EQ(found.gradients, whole.gradients);
    EXPECT_EQ(found.masters, whole.masters);
    for (std::size_t step = 0; step < whole.norms.size(); ++step) EXPECT_NEAR(found.norms[step], whole.norms[step], 1e-5 * whole.norms[step]);
  }
}

TEST(UpdateByUnit, IsRacedForWhereAUnitIsNotAwaited) {
  RunConfig config = small_config(1, 2);
  ASSERT_TRUE(config::set_switch(config, by_unit));
  for (const char* left_out : {"no such event", "root.fsdp.updated", "blocks.0.fsdp.updated", "root.gradient.summed", "blocks.0.gradient.summed", "root.gathered.gathered", "fsdp.gathered.0.gathered"}) {
    device::MetaDevice device(0);
    const auto backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
    device.leave_out_waits(left_out);
    for (std::int64_t step = 0; step < 2; ++step) trainer.issue(step, false);
    const Recorded recorded = recorded_by(device.recorder());
    const check::Steps issued{&recorded.programs[0]}, steps = check::steps_to_check(issued);
    EXPECT_EQ(check::races(recorded.catalogue, steps).empty(), std::string_view(left_out) == "no such event") << "without waits for " << left_out;
  }
}

// Squares of a unit wait for its own sum and for no other, those of blocks for no sum of an end; and of a step's gathers the first of each unit waits for its update, no other.
TEST(UpdateByUnit, WaitsForNoMoreThanItNeeds) {
  RunConfig config = small_config(1, 2);
  ASSERT_TRUE(config::set_switch(config, by_unit));
  device::MetaDevice device(0);
  const auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
  trainer.issue(0, false);
  const Recorded recorded = recorded_by(device.recorder());
  const program::Program& step = recorded.programs[0];
  const auto name_of = [&](const program::Command& command) -> const std::string& { return recorded.catalogue.events[static_cast<std::size_t>(command.event)]; };
  std::map<std::string, int> updates;
  std::vector<std::string> sums;   // that compute waited for, and "squares"
  for (const program::Command& command : step.commands) {
    if (command.kind == program::CommandKind::op && std::string_view(step.ops[command.op].desc.name) == "sum_of_squares") sums.push_back("squares");
    if (command.kind != program::CommandKind::wait_event) continue;
    if (name_of(command).ends_with("fsdp.updated")) ++updates[name_of(command)];
    if (name_of(command).ends_with("gradient.summed")) sums.push_back(name_of(command));
    EXPECT_TRUE(sums.empty() || !name_of(command).ends_with(".reduced")) << name_of(command) << " tells of the last unit that lay there";
  }
  std::vector<std::string> expected;
  for (int block = config.model.layers - 1; block >= 0; --block) expected.insert(expected.end(), {"blocks." + std::to_string(block) + ".gradient.summed", "squares"});
  expected.insert(expected.end(), {"root.gradient.summed", "squares"});
  EXPECT_EQ(sums, expected);
  EXPECT_EQ(static_cast<int>(updates.size()), config.model.layers + 1);   // tied: one unit holds both ends
  for (const auto& [name, waits] : updates) EXPECT_EQ(waits, 1) << name;
}

// What a step needs first is gathered at the end of the one before it, behind the update of all but what is gathered; only shards
// in host memory come first.
TEST(UpdateByUnit, GathersForTheNextStep) {
  RunConfig config = small_config(1, 2);
  for (const auto& [set, in_front, behind] : std::vector<std::tuple<const char*, int, int>>{{"", 0, 2}, {"fsdp.prefetch=2", 0, 3}, {"fsdp.prefetch=0", 0, 1}, {"fsdp.offload=parameters", 2, 0}}) {
    RunConfig asked = config;
    ASSERT_TRUE(config::set_switch(asked, by_unit));
    if (*set != 0) {
      ASSERT_TRUE(config::set_switch(asked, set));
    }
    device::MetaDevice device(0);
    const auto backend = comm::make_meta_backend();
    train::Trainer trainer(asked, device, *backend, mesh_of(asked), 0, nullptr);
    trainer.issue(0, false);
    const Recorded recorded = recorded_by(device.recorder());
    int gathers_in_front = 0, gathers_behind = 0;
    bool computes = false, updated = false;
    for (const program::Op& op : recorded.programs[0].ops) {
      computes = computes || (program::class_of(op.desc.kind) == program::OpClass::compute && op.key.phase == program::Phase::forward);
      updated = updated || op.key.phase == program::Phase::update;
      if (op.desc.kind != program::OpKind::all_gather) continue;
      gathers_in_front += !computes;
      gathers_behind += updated;
    }
    EXPECT_EQ(gathers_in_front, in_front) << set;
    EXPECT_EQ(gathers_behind, behind) << set;
  }
}

}  // namespace
}  // namespace shardbook::tests
