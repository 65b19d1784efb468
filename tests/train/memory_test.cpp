// What a rank holds: as the formulas say, to the byte, and what is kept for backward.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "engine/config/presets.hpp"
#include "engine/train/planned.hpp"
#include "tests/train/meta_step.hpp"
#include "tests/train/ways.hpp"

namespace shardbook::tests {
namespace {

// What a rank keeps of a micro-batch for its backward, but for the logits: x, norms, attention, residuals, MLP.
base::Bytes kept_bytes(const config::RunConfig& config) {
  MetaStep step(config, 0);
  base::Bytes kept = 0;
  for (const program::BufferInfo& buffer : step.catalogue().buffers) {
    const std::string_view name = buffer.name;
    if (buffer.kind != program::MemoryKind::activation || name.starts_with("workspace.") || name.starts_with("loss.") || name == "logits") continue;
    kept += buffer.bytes;
  }
  return kept;
}

// Korthikanti et al. 2022, equations 2 and 4: under tensor parallelism what norms and residuals keep stays whole on each
// rank, 10 of 34 bytes a token and width there (8 of 32 here, for want of dropout masks); with tokens cut all of it is
// divided by t.
TEST(Memory, WithTokensCutARankKeepsOneTthOfWhatOneRankKeeps) {
  for (bool llama : {false, true}) {
    for (config::AttentionKind attention : {config::AttentionKind::unfused, config::AttentionKind::flash, config::AttentionKind::cudnn}) {
      for (const std::string recompute : {"none", "cheap", "selective", "full"}) {
        if (recompute == "selective" && attention != config::AttentionKind::unfused) continue;   // it has no square to leave out
        auto config_of = [&](int tp) {
          config::RunConfig config = llama ? small_llama(tp, 1) : small_config(tp, 1);
          config.attention = attention;
          config.switches["activations.recompute"] = recompute;
          return config;
        };
        const base::Bytes one = kept_bytes(config_of(1));
        for (int tp : {2, 4}) {
          const config::RunConfig config = config_of(tp);
          EXPECT_EQ(kept_bytes(with_tokens_cut(config)) * tp, one) << "tp " << tp;
          // Whole on each rank: a block's input, two norms' outputs, where they are kept, and their statistics, the residual between its halves
          const std::int64_t N = config.tokens_per_micro_batch(), row = 2 * config.model.width, statistics = (llama ? 1 : 2) * 4;
          const std::int64_t L = config.model.layers, kept_blocks = recompute == "full" ? 1 : L;
          const std::int64_t rows_kept = recompute == "cheap" ? 1 : 3;
          const std::int64_t whole = N * ((L + 1) * row + kept_blocks * (rows_kept * row + 2 * statistics) + row + statistics);
          EXPECT_EQ(kept_bytes(config), whole + (one - whole) / tp) << "tp " << tp;
        }
      }
    }
  }
}

// What rank 0 sets aside on host ranks: by line of the formulas, in nominal bytes; and what the device says it gave.
struct OnHost {
  std::map<plan::Held, base::Bytes> held;
  base::Bytes allocated = 0;
};
OnHost set_up_on_host(const config::RunConfig& config) {
  OnHost host;
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const std::string error = on_host_ranks(config.ranks, [&](HostRank& rank) {
    const train::Trainer trainer(config, rank.device, rank.backend, mesh_of(config), rank.world.rank(), &tokens);
    if (rank.world.rank() == 0) host = {train::held_in(rank.device.recorder().catalogue()), rank.device.allocated_bytes()};
  });
  EXPECT_EQ(error, "");
  return host;
}

std::map<plan::Held, base::Bytes> lines_of(const plan::Holding& holding) {
  std::map<plan::Held, base::Bytes> lines;
  for (const plan::HeldLine& line : holding.lines) lines[line.held] += line.bytes;
  return lines;
}

std::vector<config::RunConfig> models() {
  config::RunConfig untied = small_config(1, 1), flash = small_config(1, 1), cudnn = small_llama(1, 1);
  untied.model.tied = false;
  untied.model.layers = 3;
  untied.model.vocab = 512;   // a root that is no smaller than a block, and fewer tokens than rows
  flash.attention = config::AttentionKind::flash;
  cudnn.attention = config::AttentionKind::cudnn;   // whose heads share keys, and a row is no multiple of 64
  return {small_config(1, 1), untied, flash, cudnn, small_llama(1, 1)};
}

TEST(Memory, OfEveryLayoutIsWhatTheFormulasSayToTheByte) {
  int tried = 0, cut = 0, sharded = 0, laid = 0;
  for (const config::RunConfig& model : models()) {
    for (const Way& way : {ddp, zero_1, zero_2, zero_3}) {
      for (int tp : {1, 2}) {
        for (int ranks : numbers_of_ranks) {
          for (int micro_batches : {1, 2}) {
            for (const char* recompute : {"none", "cheap", "selective", "full"}) {
              if (model.attention != config::AttentionKind::unfused && *recompute == 's') continue;   // it has no square to leave out
              config::RunConfig config = cut_over(model, way, tp, ranks, micro_batches);
              ASSERT_TRUE(config::set_switch(config, base::text("activations.recompute=", recompute)));
              // Of two in five layouts that are cut over tp, the rows between the linears as well
              if (tp > 1 && ++cut % 5 < 2) {
                ASSERT_TRUE(config::set_switch(config, "tensor_parallel.sequence=cut"));
                if (cut % 5 == 0) {
                  ASSERT_TRUE(config::set_switch(config, "tensor_parallel.overlap=pieces"));
                }
              }
              // Of two in five that shard, gradients cross in bf16, two in five have all blocks in one unit, half have parameters one by one
              const bool shards = config.fsdp > 1, rounded = shards && ++sharded % 5 < 2, joined = shards && sharded % 5 > 0 && sharded % 5 < 3, each = shards && sharded % 2 > 0;
              if (rounded) {
                ASSERT_TRUE(config::set_switch(config, "fsdp.reduce_dtype=bf16"));
              }
              if (joined) {
                ASSERT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", config.model.layers)));
              }
              const std::string where = base::text(way.name, ", tp ", tp, ", ", ranks, " ranks, ", micro_batches, " micro-batches, recompute ", recompute, rounded ? ", gradients in bf16" : "", joined ? ", one unit" : "", each ? ", one by one" : "");
              if (each) {
                ASSERT_TRUE(config::set_switch(config, "fsdp.sharding=per_parameter"));
              }
              // Of one in three, masters and moments lie in host memory
              if (++laid % 3 == 0) {
                ASSERT_TRUE(config::set_switch(config, "fsdp.offload=optimizer"));
              }
              // What would be held in bf16, line by line; and in fp32, which the host stores as it is, in all
              EXPECT_EQ(lines_of(plan::holding_of(train::shapes_of(config))), set_up_on_host(config).held) << where;
              if (++tried % 5 > 1) continue;
              config.precision = config::Precision::fp32;
              config.switches.erase("fsdp.reduce_dtype");
              EXPECT_EQ(plan::holding_of(train::shapes_of(config)).all(), set_up_on_host(config).allocated) << where;
            }
          }
        }
      }
    }
  }
}

// A mask is made anew where it is needed, from its counter: dropout holds not a byte.
TEST(Memory, OfDropoutIsNone) {
  for (const char* set : {"activations.recompute=none", "activations.recompute=cheap", "activations.recompute=selective", "activations.recompute=full", "attention.kernel=flash"}) {
    for (const bool cut : {false, true}) {
      config::RunConfig config = small_config(2, 2);
      config.micro_batches = 2;
      ASSERT_TRUE(config::set_switch(config, set));
      if (cut) config = with_tokens_cut(config);
      const base::Bytes without = set_up_on_host(config).allocated;
      config.hidden_dropout = config.attention_dropout = 0.1;
      EXPECT_EQ(lines_of(plan::holding_of(train::shapes_of(config))), set_up_on_host(config).held) << set;
      EXPECT_EQ(set_up_on_host(config).allocated, without) << set;
    }
  }
}

// Prefetch is slots, and replicas of shards hold what shards hold; so with units of one block, and of several.
TEST(Memory, OfEverySwitchThatHoldsMoreIsWhatTheFormulasSay) {
  for (const char* set : {"fsdp.prefetch=0", "fsdp.prefetch=2", "fsdp.prefetch=5", "fsdp.backward_prefetch=none", "fsdp.backward_prefetch=post",
                          "fsdp.limit_all_gathers=1", "accumulate.reduce=last", "fsdp.reshard=false", "fsdp.reduce_dtype=bf16", "accumulate.weight_gradient=apart", "fsdp.sharding=per_parameter", "fsdp.offload=optimizer", "fsdp.parameter_copy=made", "loss.chunks=3", "loss.kernel=fused", "gelu.kernel=in_matmuls"}) {
    for (int dp : {1, 2}) {
      for (const char* units : {"1", "2", "3", "4", "100"}) {   // of 4 blocks: 3, and the one that is left
        config::RunConfig config = small_config(1, 2, dp);
        config.model.layers = 4;
        config.micro_batches = 2;
        ASSERT_TRUE(config::set_switch(config, set));
        ASSERT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", units)));
        const auto planned = train::planned(config, mesh_of(config), 1);
        ASSERT_TRUE(planned);
        EXPECT_EQ(lines_of(planned.value().holding), planned.value().laid_out) << set << ", units of " << units;
      }
    }
  }
}

// Of each unit of blocks the larger of what they keep and the shard of their gradient: so with short sequences, and with long ones.
TEST(Memory, OfLentMemoryIsWhatTheFormulasSay) {
  int larger[2] = {};   // by whether the gradient is
  for (const config::RunConfig& model : models()) {
    for (const char* recompute : {"none", "cheap", "selective"}) {
      if (model.attention == config::AttentionKind::flash && *recompute == 's') continue;
      for (const char* units : {"1", "2"}) {
        for (int sequences : {1, 16}) {
          for (bool cut : {false, true}) {
            config::RunConfig config = cut_over(model, zero_3, cut ? 2 : 1, 2, 1);
            config.sequences = 2 * sequences;
            config.model.layers = 3;
            if (cut) config = with_tokens_cut(config);
            ASSERT_TRUE(config::set_switch(config, base::text("activations.recompute=", recompute)));
            ASSERT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", units)));
            // Where blocks make again what a lent place holds, GELU's gradient has none to share
            if (config.model.architecture == config::Architecture::gpt && *units == '2') { ASSERT_TRUE(config::set_switch(config, "gelu.kernel=in_matmuls")); }
            const auto own = train::planned(config, mesh_of(config), 1);
            ASSERT_TRUE(config::set_switch(config, "fsdp.gradient_memory=lent"));
            const auto lent = train::planned(config, mesh_of(config), 1);
            ASSERT_TRUE(own && lent);
            EXPECT_EQ(lines_of(lent.value().holding), lent.value().laid_out) << recompute << ", units of " << units << ", " << sequences << " sequences";
            EXPECT_EQ(lines_of(lent.value().holding), set_up_on_host(config).held);
            EXPECT_LT(lent.value().holding.all(), own.value().holding.all());
            const auto held = [](const auto& planned, plan::Held line) { return planned.value().laid_out.contains(line) ? planned.value().laid_out.at(line) : 0; };
            ++larger[held(lent, plan::Held::lent) == held(own, plan::Held::gradient_sums) - held(lent, plan::Held::gradient_sums)];
          }
        }
      }
    }
  }
  EXPECT_GT(larger[0], 5);
  EXPECT_GT(larger[1], 5);
}

TEST(Memory, OfPartsThatAreKeptIsWhatTheFormulasSay) {
  for (const char* set : {"fsdp.prefetch=0", "fsdp.prefetch=2", "accumulate.reduce=last", "fsdp.reduce_dtype=bf16", "fsdp.sharding=per_parameter", "fsdp.blocks_a_unit=2"}) {
    for (int near : {2, 3}) {
      for (int tp : {1, 2}) {
        config::RunConfig config = small_config(tp, 6, 2);
        config.model.layers = 4;
        config.micro_batches = 2;
        config.sequences = 24;
        ASSERT_TRUE(config::set_switch(config, set));
        ASSERT_TRUE(config::set_switch(config, base::text("fsdp.reshard_group=", near)));
        const auto planned = train::planned(config, mesh_of(config), 7);
        ASSERT_TRUE(planned);
        EXPECT_EQ(lines_of(planned.value().holding), planned.value().laid_out) << set << ", near " << near << ", tp " << tp;
        EXPECT_EQ(planned.value().needs.kept_bytes, planned.value().laid_out.at(plan::Held::kept_parts));
      }
    }
  }
}

// Blocks of 7.1 million: five of them have 30 million, and of twelve two are left.
TEST(Memory, OfUnitsBySizeIsWhatTheFormulasSay) {
  config::RunConfig config = small_config(1, 4);
  config.model = config::find_preset("gpt-124m")->model;
  for (const auto& [millions, units] : {std::pair{"7", std::vector<std::string>{}}, std::pair{"30", std::vector<std::string>{"root", "blocks.0-4", "blocks.5-9", "blocks.10-11"}},
                                        std::pair{"43", std::vector<std::string>{"root", "blocks.0-6", "blocks.7-11"}}, std::pair{"100000", std::vector<std::string>{"root", "blocks.0-11"}}}) {
    for (int near : {0, 2}) {
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.min_num_params=", millions)));
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.reshard_group=", near)));
      const auto planned = train::planned(config, mesh_of(config), 1);
      ASSERT_TRUE(planned);
      EXPECT_EQ(lines_of(planned.value().holding), planned.value().laid_out) << millions;
      std::vector<std::string> names;
      for (const plan::Unit& unit : planned.value().network.units) names.push_back(unit.name);
      if (units.empty()) EXPECT_EQ(names.size(), 13u);
      else EXPECT_EQ(names, units);
    }
  }
}

// At its fullest a step has as much whole as is set aside for it, but for the one gradient that may be made meanwhile.
TEST(Memory, ThatIsSetAsideIsFullAtTheFullestMomentOfAStep) {
  for (const Way& way : {zero_1, zero_2, zero_3}) {
    const config::RunConfig config = cut_over(small_config(1, 1), way, 1, 4, 2);
    const auto planned = train::planned(config, mesh_of(config), 0);
    ASSERT_TRUE(planned);
    auto lines = lines_of(planned.value().holding);
    EXPECT_EQ(planned.value().needs.gathered_bytes, lines[plan::Held::whole_blocks] + lines[plan::Held::whole_ends]) << way.name;
    const base::Bytes spare = std::string_view(way.reduce) == "each" ? planned.value().network.units[1].gradient : 0;
    EXPECT_EQ(planned.value().needs.gradient_bytes, lines[plan::Held::block_gradients] + lines[plan::Held::end_gradients] - spare) << way.name;
  }
}

// Parameters begin at multiples of 8 numbers; the formulas leave those gaps out.
TEST(Memory, OfOddWidthsIsWithinAPercentOfTheFormulas) {
  int apart = 0;
  for (const Way& way : {ddp, zero_3}) {
    config::RunConfig config = cut_over(small_config(1, 1), way, 1, 3, 1);
    config.sequences = 12;
    config.model.width = 100;
    config.model.head_dim = 25;
    config.model.ffn_width = 203;
    const auto planned = train::planned(config, mesh_of(config), 0);
    ASSERT_TRUE(planned);
    for (const auto& [kind, bytes] : planned.value().buffers) {
      EXPECT_NEAR(static_cast<double>(planned.value().holding.bytes(kind)), static_cast<double>(bytes), 0.01 * static_cast<double>(bytes)) << program::name_of(kind);
    }
    apart += lines_of(planned.value().holding) != planned.value().laid_out;
  }
  EXPECT_GE(apart, 1);   // a shard's own padding may swallow them
}

// ---- States in host memory ----------------------------------------------------------------------

// What leaves the device is masters and moments, 12 bytes a number of this rank's shards; what comes is three slots of the largest shard.
TEST(Memory, OfOffloadedStatesIsInTheHostButForThreeSlots) {
  for (int fsdp : {1, 2, 4}) {
    config::RunConfig config = small_config(2, fsdp);
    const base::Bytes without = set_up_on_host(config).allocated;
    const auto planned = train::planned(config, mesh_of(config), 0);
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned.value().on_host, 0);
    const base::Bytes states = planned.value().buffers.at(program::MemoryKind::optimizer);
    ASSERT_TRUE(config::set_switch(config, "fsdp.offload=optimizer"));
    const auto offloaded = train::planned(config, mesh_of(config), 0);
    ASSERT_TRUE(offloaded);
    EXPECT_EQ(offloaded.value().on_host, states);
    std::int64_t numbers = 0, largest = 0;
    MetaStep step(config, 0);
    for (const program::BufferInfo& buffer : step.catalogue().buffers) {
      if (buffer.kind != program::MemoryKind::parameter) continue;   // a shard of bf16 each
      numbers += buffer.bytes / 2;
      largest = std::max(largest, buffer.bytes / 2);
    }
    EXPECT_EQ(states, 12 * numbers);
    EXPECT_EQ(offloaded.value().buffers.at(program::MemoryKind::optimizer), 3 * 12 * largest);
    EXPECT_EQ(without - set_up_on_host(config).allocated, 12 * numbers - 36 * largest) << "fsdp " << fsdp;
  }
}

// 12 bytes a number of this rank's shards cross each way once a step, however many micro-batches it has; three copies a piece.
// Slots are used in turn: the first three pieces are sent for before anything is computed, each other one once its slot is
// free. Seven pieces, so that a turn ends in the middle.
TEST(Bytes, OfOffloadedStatesCrossOnceEachWayAStepThroughThreeSlotsInTurn) {
  for (int fsdp : {1, 2, 4}) {
    for (int micro_batches : {1, 2}) {
      config::RunConfig config = small_config(1, fsdp);
      config.model.layers = 6;
      config.micro_batches = micro_batches;
      ASSERT_TRUE(config::set_switch(config, "fsdp.offload=optimizer"));
      constexpr int pieces = 7, slots = 3;   // a root that is embedding and head, and six blocks
      MetaStep step(config, 0);
      base::Bytes shards = 0, up = 0, down = 0;
      for (const program::BufferInfo& buffer : step.catalogue().buffers) shards += buffer.kind == program::MemoryKind::parameter ? buffer.bytes / 2 : 0;
      int ahead = 0;
      bool computes = false;
      std::vector<std::string> came, went;   // from which buffer of the host to which slot, and back
      for (const program::Command& command : step.program().commands) {
        if (command.kind != program::CommandKind::op) continue;
        const program::Op& op = step.program().ops[command.op];
        computes = computes || op.key.phase == program::Phase::forward;
        const std::string_view name = op.desc.name;
        if (name != "to_device" && name != "to_host") continue;
        EXPECT_EQ(op.key.phase, program::Phase::update);
        EXPECT_EQ(step.catalogue().streams[op.stream].name, name);
        // Each has a line of the plan: the first are sent for by themselves, the others are the update's
        EXPECT_EQ(std::string_view(command.planned.file), "engine/plan/passes.cpp");
        EXPECT_EQ(command.planned_leads, !computes);
        (name == "to_device" ? up : down) += op.desc.bytes_read + op.desc.bytes_written;
        ahead += !computes;
        const auto buffer = [&](int use) { return step.catalogue().buffers[op.desc.uses[use].buffer].name; };
        if (name == "to_device") came.push_back(buffer(0) + " in " + buffer(1));
        else went.push_back(buffer(1) + " in " + buffer(0));
      }
      EXPECT_EQ(up, 12 * shards);
      EXPECT_EQ(down, 12 * shards);
      EXPECT_EQ(ahead, 3 * slots);
      ASSERT_EQ(came.size(), 3u * pieces);
      EXPECT_EQ(went, came);
      for (std::size_t copy = 0; copy < came.size(); ++copy) {
        const std::string unit = copy < 3 ? "root" : "blocks." + std::to_string(copy / 3 - 1), what = copy % 3 == 0 ? ".master" : copy % 3 == 1 ? ".first_moment" : ".second_moment";
        EXPECT_EQ(came[copy], unit + what + " in host memory in optimizer.slot." + std::to_string(copy / 3 % slots) + what);
      }
    }
  }
}

// One wait left out, and nothing orders what is then a race.
TEST(Races, OfOffloadedStatesAreFoundWhereAWaitIsLeftOut) {
  config::RunConfig config = small_config(1, 2);
  config.model.layers = 5;   // six pieces, so that slots are used again
  ASSERT_TRUE(config::set_switch(config, "fsdp.offload=optimizer"));
  const std::map<std::string, std::string> named{
      {"", ""},
      {".loaded", "compute overwrites optimizer.slot.0.master"},
      {".updated", "to_host reads optimizer.slot.0.master"},
      {".stored", "to_device reads root.master in host memory"}};
  for (const auto& [left_out, said] : named) {
    device::MetaDevice device(0);
    const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
    train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
    device.leave_out_waits(left_out);
    for (std::int64_t step = 0; step < 2; ++step) trainer.issue(step, false);
    const Recorded recorded = recorded_by(device.recorder());
    const check::Steps issued{&recorded.programs[0]}, steps = check::steps_to_check(issued);
    const std::vector<check::Race> races = check::races(recorded.catalogue, steps);
    std::string all;
    bool found = false;
    for (const check::Race& race : races) {
      const std::string sentence = check::sentence(race, recorded.catalogue, steps);
      found = found || sentence.starts_with(said);
      all += sentence + "\n";
    }
    EXPECT_EQ(found, !said.empty()) << "without " << left_out << ": " << all;
  }
}

// A shard that is larger than a piece crosses in several, and moves as it does whole: the same bits, in any order of the queues.
TEST(Offload, OfShardsInPiecesMovesThemAsIfTheyHadNeverLeft) {
  for (const optimizer::OffloadConfig& offload : {optimizer::OffloadConfig{64, 3}, optimizer::OffloadConfig{64, 2}, optimizer::OffloadConfig{128, 1}, optimizer::OffloadConfig{1 << 24, 3}}) {
    for (std::uint64_t seed : {0, 1, 2, 3}) {
      const std::string error = on_host_ranks(1, [&](HostRank& rank) {
        device::Device& device = rank.device;
        device::Stream& compute = device.create_stream("compute");
        const shard::FlatUnit large("large", {{"w", {20, 16}, {}, true}, {"b", {40}, {}, false}}, 1), small("small", {{"w", {8, 8}, {}, true}}, 1);
        std::vector<optimizer::ShardState> here, there;
        for (std::vector<optimizer::ShardState>* states : {&here, &there}) {
          for (const shard::FlatUnit* unit : {&large, &small}) {
            optimizer::ShardState& state = states->emplace_back();
            state.layout = unit;
            state.flat = unit->shard(0);
            state.on_host = states == &here ? optimizer::OnHost::nothing : optimizer::OnHost::states;
            const base::Shape shape{state.flat.size()};
            const auto make = [&](const char* name) { return tensor::allocate(device, shape, base::DType::f32, program::MemoryKind::parameter, name); };
            state.master = states == &here ? make("master") : optimizer::on_host(device, shape[0], base::DType::f32, program::MemoryKind::optimizer, unit->name() + ".master");
            state.gradient = make("gradient");
            state.parameter = make("parameter");
            for (std::int64_t at = 0; at < shape[0]; ++at) set(state.master, at, std::sin(static_cast<double>(at)));
            for (std::int64_t at = 0; at < shape[0]; ++at) set(state.gradient, at, std::cos(static_cast<double>(3 * at)));
          }
        }
        const tensor::Tensor scalars = tensor::allocate(device, {6}, base::DType::f32, program::MemoryKind::workspace, "scalars");
        optimizer::AdamWConfig config;
        optimizer::AdamW stays(device, config, here, scalars.slice(0, {3}), {});
        config.offload = offload;
        optimizer::AdamW moves(device, config, there, scalars.slice(3, {3}), {});
        device.seal();
        for (int step = 0; step < 3; ++step) {
          device.begin_step(step, false);
          for (optimizer::AdamW* adamw : {&stays, &moves}) {
            if (adamw == &moves) adamw->send_for_states();
            std::vector<std::size_t> order(here.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            adamw->sum_squares(compute, order, [](std::size_t) {});
            adamw->step(compute, step, 0.01f, [](std::size_t) {});
          }
          device.end_step();
        }
        device.synchronize();
        EXPECT_EQ(problem_of({recorded_by(device.recorder())}), "");
        for (std::size_t shard = 0; shard < here.size(); ++shard) {
          for (auto which : {&optimizer::ShardState::master, &optimizer::ShardState::first_moment, &optimizer::ShardState::second_moment, &optimizer::ShardState::parameter}) {
            for (std::int64_t at = 0; at < here[shard].flat.size(); ++at) ASSERT_EQ(get(here[shard].*which, at), get(there[shard].*which, at)) << shard << " " << at;
          }
          EXPECT_NE(get(there[shard].master, 1), static_cast<float>(std::sin(1.0)));
        }
      }, seed);
      EXPECT_EQ(error, "");
    }
  }
}

}  // namespace
}  // namespace shardbook::tests
