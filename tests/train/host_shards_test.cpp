// Shards that live in host memory: the bits of shards that stay on the device, what crosses the bus, what holds it together.
#include <gtest/gtest.h>

#include "engine/config/switches.hpp"
#include "engine/program/host_memory.hpp"

#include "engine/train/planned.hpp"
#include "tests/train/host_run.hpp"
#include "tests/train/meta_step.hpp"

namespace shardbook::tests {
namespace {

config::RunConfig with_shards_on_host(config::RunConfig config) {
  config.switches["fsdp.offload"] = "parameters";
  return config;
}

struct Form {
  int tp, fsdp, micro_batches;
  bool tied;
  const char* set;
};

// The host's kernels are the device's here, so not a bit may change in any form of a step, in any order of the queues; and the
// checks that run_on_host makes of the record find no race.
TEST(ShardsInHostMemory, MoveByTheSameBitsInEveryFormOfAStep) {
  std::uint64_t seed = 0;
  for (const Form& form : some_of<Form>({{1, 1, 1, true, ""}, {1, 1, 2, false, ""}, {1, 2, 1, true, "fsdp.prefetch=0"}, {1, 2, 2, false, "fsdp.prefetch=2"}, {1, 4, 1, true, "fsdp.prefetch=3"},
                           {1, 4, 3, true, ""}, {2, 1, 2, true, ""}, {2, 2, 1, false, ""}, {2, 2, 2, true, "tensor_parallel.sequence=cut"}, {2, 1, 1, true, "tensor_parallel.sequence=cut"},
                           {1, 2, 2, true, "fsdp.reshard=false"}, {1, 2, 3, true, "accumulate.reduce=last"}, {1, 4, 2, false, "fsdp.sharding=per_parameter"}, {1, 2, 2, true, "fsdp.blocks_a_unit=2"},
                           {1, 4, 2, true, "fsdp.reshard_group=2"}, {1, 2, 2, true, "fsdp.limit_all_gathers=1"}, {1, 2, 1, true, "activations.recompute=full"}, {1, 2, 2, true, "activations.recompute=selective"},
                           {1, 2, 2, true, "fsdp.reduce_dtype=bf16"}, {1, 2, 1, true, "fsdp.backward_prefetch=post"}, {1, 2, 1, true, "attention.kernel=flash"}})) {
    config::RunConfig config = small_config(form.tp, form.fsdp);
    config.model.layers = 3;
    config.steps = 10;
    config.micro_batches = form.micro_batches;
    config.sequences = 2 * form.micro_batches * config.ranks;
    config.model.tied = form.tied;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun here = run_on_host(config, tokens);
    config = with_shards_on_host(config);
    ASSERT_TRUE(config::check_switches(config)) << config::check_switches(config).error();
    config.drain_seed = ++seed;
    const HostRun there = run_on_host(config, tokens);
    SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", micro-batches ", form.micro_batches, ", ", form.set));
    ASSERT_EQ(here.error, "");
    ASSERT_EQ(there.error, "");
    EXPECT_NE(there.program_hashes, here.program_hashes);
    EXPECT_EQ(there.host_waits, here.host_waits);
    EXPECT_EQ(there.losses, here.losses);
    EXPECT_EQ(there.norms, here.norms);
    EXPECT_EQ(there.gradients, here.gradients);
    EXPECT_EQ(there.masters, here.masters);
  }
}

// What crosses: a shard in 2 bytes a number before each gather over all, a sum in 4 after each reduction; the norm reads sums
// where they lie; and the clip factor goes.
TEST(Bytes, OfShardsInHostMemoryCrossForEachGatherAndEachReduction) {
  for (int fsdp : {1, 2, 4}) {
    for (int micro_batches : {1, 2}) {
      for (const char* reduce : {"each", "last"}) {
        config::RunConfig config = with_shards_on_host(small_config(1, fsdp));
        config.model.layers = 5;
        config.micro_batches = micro_batches;
        if (fsdp > 1 && micro_batches > 1) config.switches["accumulate.reduce"] = reduce;
        const int reductions = fsdp > 1 && std::string_view(reduce) == "last" ? 1 : micro_batches;
        MetaStep step(config, 0);
        std::int64_t root = 0, blocks = 0;   // numbers of this rank's shards
        for (const program::BufferInfo& buffer : step.catalogue().buffers) {
          if (buffer.kind != program::MemoryKind::parameter || !program::in_host_memory(buffer)) continue;
          (buffer.name.starts_with("root") ? root : blocks) += buffer.bytes / 2;
        }
        EXPECT_GT(root, 0);
        base::Bytes up = 0, down = 0, updated = 0, added = 0;
        for (const program::Op& op : step.program().ops) {
          const std::string_view name = op.desc.name, stream = step.catalogue().streams[op.stream].name;
          const base::Bytes bytes = op.desc.bytes_read + op.desc.bytes_written;
          if (name == "to_device") up += bytes;
          if (name == "to_host") down += bytes;
          if (op.desc.kind == program::OpKind::host) {
            EXPECT_EQ(stream, "cpu");
            for (int use = 0; use < op.desc.uses.size(); ++use) EXPECT_TRUE(program::in_host_memory(step.catalogue().buffers[op.desc.uses[use].buffer])) << name;
            (name == "adam_w_on_host" ? updated : added) += bytes;
          }
        }
        EXPECT_EQ(up, 2 * (root + 2 * micro_batches * blocks)) << fsdp << ", " << micro_batches;   // the root is gathered once a step
        EXPECT_EQ(down, 4 * reductions * (root + blocks) + 4) << fsdp << ", " << micro_batches;
        EXPECT_EQ(updated, 30 * (root + blocks) + 4 * 6);   // 16 read, 14 written a number, and the factor for each of six shards
        EXPECT_EQ(added, 12 * (reductions - 1) * (root + blocks));
      }
    }
  }
}

// Nothing of what is 18 bytes a parameter stays on the device but the places through which shards and sums pass.
TEST(Memory, OfShardsInHostMemoryIsInTheHostButForPlacesToPassThrough) {
  for (int tp : {1, 2}) {
    for (int fsdp : {1, 2, 4}) {
      for (const char* set : {"", "fsdp.prefetch=0", "fsdp.prefetch=2", "fsdp.reshard=false", "accumulate.reduce=last", "fsdp.reduce_dtype=bf16", "fsdp.sharding=per_parameter", "fsdp.blocks_a_unit=2", "fsdp.blocks_a_unit=4"}) {
        for (int micro_batches : {1, 2}) {
          for (bool tied : {true, false}) {
            if (fsdp == 1 && *set != 0 && std::string_view(set).find("blocks") == std::string_view::npos) continue;
            config::RunConfig config = with_shards_on_host(small_config(tp, fsdp));
            config.model.layers = 4;
            config.model.tied = tied;
            config.micro_batches = micro_batches;
            if (*set != 0) {
              ASSERT_TRUE(config::set_switch(config, set));
            }
            const auto planned = train::planned(config, mesh_of(config), 0);
            ASSERT_TRUE(planned) << planned.error();
            std::map<plan::Held, base::Bytes> lines;
            for (const plan::HeldLine& line : planned.value().holding.lines) lines[line.held] += line.bytes;
            EXPECT_EQ(lines, planned.value().laid_out) << "tp " << tp << ", fsdp " << fsdp << ", micro-batches " << micro_batches << ", " << set;
            EXPECT_EQ(planned.value().buffers.count(program::MemoryKind::optimizer), 0u);
            EXPECT_EQ(planned.value().on_host, planned.value().holding.on_host());
            // What is set aside for shards on their way is as much as the order needs, and one more
            const base::Bytes place = lines[plan::Held::shards_to_device] / 2;
            EXPECT_EQ(lines[plan::Held::sums_to_host], 2 * 2 * place);
            EXPECT_EQ(lines[plan::Held::host_shards] % 2, 0);
            EXPECT_EQ(9 * lines[plan::Held::host_shards] + lines[plan::Held::host_landings] + 4, planned.value().on_host);
          }
        }
      }
    }
  }
}

// Without one of its waits each form of the step has a race, and the sentence names what lies in host memory, or passes.
TEST(Races, OfShardsInHostMemoryAreFoundWhereAWaitIsLeftOut) {
  config::RunConfig config = with_shards_on_host(small_config(1, 2));
  config.model.layers = 5;
  for (const char* left_out : {"", "fsdp.shard.0.there", "fsdp.shard.0.gone", "fsdp.sum.0.there", "fsdp.sum.0.gone", "fsdp.landing.0.there", "fsdp.landing.0.gone", "fsdp.sums_in_host_memory",
                               "fsdp.sums_added_up", ".updated", "optimizer.factor_there"}) {
    config.micro_batches = std::string_view(left_out) == "fsdp.sums_in_host_memory" ? 1 : 2;   // what is added up has come
    device::MetaDevice device(0);
    const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
    device.leave_out_waits(left_out);
    for (std::int64_t step = 0; step < 2; ++step) trainer.issue(step, false);
    const Recorded recorded = recorded_by(device.recorder());
    const check::Steps issued{&recorded.programs[0]}, steps = check::steps_to_check(issued);
    const std::vector<check::Race> races = check::races(recorded.catalogue, steps);
    EXPECT_EQ(races.empty(), *left_out == 0) << "without " << left_out << (races.empty() ? "" : check::sentence(races[0], recorded.catalogue, steps));
  }
}

// The host's queues and no device at all issue one program, and it is the same in each step.
TEST(Program, OfShardsInHostMemoryIsTheSameOnHostAndMeta) {
  for (const auto& [tp, fsdp, micro_batches] : {std::tuple{1, 1, 1}, std::tuple{1, 2, 2}, std::tuple{2, 2, 1}}) {
    config::RunConfig config = with_shards_on_host(small_config(tp, fsdp));
    config.steps = 2;
    config.micro_batches = micro_batches;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun run = run_on_host(config, tokens);
    ASSERT_EQ(run.error, "");
    device::MetaDevice device(0);
    const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
    trainer.issue(0, true);
    EXPECT_EQ(device.recorder().program_hashes().back(), run.program_hashes[0]);
  }
}

// A learner's order knows nothing of host memory; what it leaves out is put in.
TEST(ALearnersPlan, IsCarriedOutWithShardsAndStatesInHostMemory) {
  config::RunConfig config = small_config(1, 2);
  config.steps = 3;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const train::PlanMaker by_hand = [](const plan::Network& network) {
    plan::Plan plan = plan::reduce_gradients(plan::one_after_the_other(network), network, plan::Reduce::every_micro_batch);
    return fsdp::gather_and_release(plan, network, {{0, 0}, {0, 0}, false});
  };
  const HostRun here = run_on_host(config, tokens, {}, by_hand);
  ASSERT_EQ(here.error, "");
  for (const char* offload : {"optimizer", "parameters"}) {
    config.switches["fsdp.offload"] = offload;
    const HostRun there = run_on_host(config, tokens, {}, by_hand);
    ASSERT_EQ(there.error, "") << offload;
    EXPECT_EQ(there.losses, here.losses) << offload;
    EXPECT_EQ(there.masters, here.masters) << offload;
  }
}

}  // namespace
}  // namespace shardbook::tests
