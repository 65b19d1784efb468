// The table of switches, held to what each row promises: one instance a row.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/check/numbers.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/model/dropout.hpp"
#include "engine/train/mistakes.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using config::Promise;
using config::RunConfig;
using config::Switch;
using program::OpKind;

// Values to try, other than the default.
std::vector<std::string> other_values(const Switch& row) {
  if (!row.form.empty()) return {"0:3", "1:20"};
  if (row.values.empty()) {
    std::vector<std::string> some;
    for (int value : {row.least, row.least + 1, row.most}) {
      if (value <= row.most && std::to_string(value) != row.default_value) some.push_back(std::to_string(value));
    }
    return some;
  }
  std::vector<std::string> others = row.values;
  std::erase(others, row.default_value);
  return others;
}

// A layout in which the row's needs are met, or nothing: what a need asks for that is no size of the layout is given.
std::optional<RunConfig> meeting_needs(const Switch& row, RunConfig config) {
  for (const std::string& need : row.needs) {
    if (need == "micro-batches > 1") config.micro_batches = 2;
    if (need.starts_with("dp > 1") && config.ranks <= 4) config.ranks *= config.dp = 2;
    if (need == "attention-dropout > 0") config.attention_dropout = 0.1;
    if (need == "hidden-dropout > 0") config.hidden_dropout = 0.1;
    if (need == "activations.recompute = full") config.switches["activations.recompute"] = "full";
    if (need == "tensor_parallel.sequence = cut") config.switches["tensor_parallel.sequence"] = "cut";
    if (!config::holds(config, need)) return std::nullopt;
  }
  return config;
}

// Instrumented code is ten times slower, and what it looks for does not depend on the layout's size.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const std::vector<int> sizes{2};
constexpr int steps = 2;
#else
const std::vector<int> sizes{1, 2, 4};
constexpr int steps = 10;
#endif

class Switches : public testing::TestWithParam<Switch> {};

TEST_P(Switches, KeepTheirPromiseInEveryLayout) {
  const Switch& row = GetParam();
  if (row.promise == Promise::wrong || row.promise == Promise::time_only) return;   // see Mistakes, and IdealNetwork
  if (row.moves.measured) return;   // of GPUs alone
  int tried = 0;
  for (int tp : sizes) {
    for (int fsdp : sizes) {
      const std::optional<RunConfig> plain = meeting_needs(row, small_config(tp, fsdp));
      if (!plain) continue;
      RunConfig config = *plain;
      config.steps = steps;
      const TestTokens tokens(config.model.vocab, config.model.sequence);
      const HostRun without = run_on_host(config, tokens);
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

INSTANTIATE_TEST_SUITE_P(Table, Switches, testing::ValuesIn(config::switches()), [](const auto& info) {
  std::string name = info.param.key;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
});

// ---- Mistakes ----------------------------------------------------------------------------------

std::vector<Switch> mistakes() {
  std::vector<Switch> rows;
  for (const Switch& row : config::switches()) {
    if (row.promise == Promise::wrong) rows.push_back(row);
  }
  return rows;
}

// What the stream-order check and the ledger say of two steps, of all ranks, as issued on meta.
std::string said_of_the_record(const RunConfig& config) {
  std::vector<Recorded> all;
  auto backend = comm::make_meta_backend();
  for (base::Rank rank = 0; rank < config.ranks; ++rank) {
    device::MetaDevice device(rank);
    train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
    for (std::int64_t step = 0; step < 2; ++step) trainer.issue(step, false);
    all.push_back(recorded_by(device.recorder()));
  }
  return problem_of(all);
}

check::Numbers numbers_of(const HostRun& run, const RunConfig& config) {
  const bool again = config.hidden_dropout > 0 && config::switch_value(config, "activations.recompute") == "full";
  return {run.losses, run.norms, config.tp, config.data_ranks(), config.attention_dropout > 0, again};
}

class Mistakes : public testing::TestWithParam<Switch> {};

// The words that name each: whoever adds a row says what its check must say.
const std::map<std::string, std::string> named{
    {"dropout.recompute", "what backward computed again did not drop what forward had dropped"},
    {"dropout.stream", "from one random stream all 2 tp ranks give their heads the same ones"},
    {"fsdp.gather_awaited", "compute must wait for an event that fsdp records after that, as root.gathered.gathered"},
    {"fsdp.update_awaited", "adam_w (update; engine/train/trainer.cpp"},
    {"initialization.slices", "A rank must draw its slices by their place in the whole"},
    {"loss.divisor", "exactly 2 times. Each of the 2 ranks that split the batch divides by its own tokens"},
    {"optimizer.update", "the norm comes before the gradient of root is summed over dp_shard"},
    {"tensor_parallel.conjugates", "step 0 has the right loss, and"},
    {"tensor_parallel.partial_gradients", "on the way back a part is taken for the whole: a sum over ranks is missing"},
    {"tensor_parallel.row_bias", "a bias that begins at 0 and is added by each of 2 ranks before their sum"},
    {"tensor_parallel.sum_awaited", "compute must wait for an event that tp records after that"},
};

TEST_P(Mistakes, AreCaughtByTheirCheckInWordsThatNameThem) {
  const Switch& row = GetParam();
  RunConfig config = meeting_needs(row, small_config(2, 2)).value();
  config.steps = 3;
  RunConfig wrong = config;
  ASSERT_TRUE(config::set_wrong(wrong, row.key + "=" + row.values.back()));
  ASSERT_TRUE(config::check_switches(wrong)) << config::check_switches(wrong).error();
  std::string said;
  if (row.caught_by == "plan") {
    try {
      said_of_the_record(wrong);
    } catch (const base::Failure& failure) {
      said = failure.what();
    }
  } else if (row.caught_by == "verify") {
    EXPECT_EQ(said_of_the_record(config), "");
    said = said_of_the_record(wrong);
  } else {
    ASSERT_EQ(row.caught_by, "verify --against");
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    RunConfig one = small_config(1, 1);
    one.steps = config.steps;
    one.hidden_dropout = config.hidden_dropout;
    one.attention_dropout = config.attention_dropout;
    const check::Numbers trusted = numbers_of(run_on_host(one, tokens), one);
    EXPECT_EQ(check::difference(numbers_of(run_on_host(config, tokens), config), trusted), "");
    // No wait is missing, and no rank differs: only the numbers tell
    const HostRun run = run_on_host(wrong, tokens);
    ASSERT_EQ(run.error, "");
    said = check::difference(numbers_of(run, wrong), trusted);
  }
  ASSERT_TRUE(named.contains(row.key)) << "what must its check say?";
  EXPECT_NE(said.find(named.at(row.key)), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Table, Mistakes, testing::ValuesIn(mistakes()), [](const auto& info) {
  std::string name = info.param.key;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
});

// Every g that a gradient passes on its way back takes it n times; n is a power of two, so not a bit is lost.
TEST(ConjugatesBothWays, TakeAGradientNTimesAtEachSum) {
  for (int tp : {2, 4}) {
    RunConfig config = small_config(tp, 1);
    config.steps = 1;
    config.model.tied = false;
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun right = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_wrong(config, "tensor_parallel.conjugates=both_ways"));
    const HostRun wrong = run_on_host(config, tokens);
    ASSERT_EQ(wrong.error, "");
    EXPECT_EQ(wrong.losses, right.losses);
    const int last = config.model.layers - 1;
    int compared = 0;
    for (const auto& [name, gradient] : right.gradients) {
      // Sums between the loss and this parameter: none for the head, one for the last block's MLP, two for its attention …
      int sums = 2 * config.model.layers;
      for (int layer = 0; layer <= last; ++layer) {
        if (!name.starts_with("blocks." + std::to_string(layer) + ".")) continue;
        const bool mlp = name.find(".mlp.") != std::string::npos || name.find(".norm_2.") != std::string::npos;
        sums = 2 * (last - layer) + (mlp ? 1 : 2);
      }
      if (name.starts_with("head") || name.starts_with("final") || name.find("norm_f") != std::string::npos || name.starts_with("norm")) sums = 0;
      std::vector<double> expected = gradient;
      for (double& value : expected) value *= std::pow(tp, sums);
      EXPECT_EQ(wrong.gradients.at(name), expected) << name << " at tp " << tp << ", sums " << sums;
      ++compared;
    }
    EXPECT_GT(compared, 12);
  }
}

// The first micro-batch's masks of two heads, as a tp rank draws them; uniform probabilities and unit vectors as values show
// them: out[s, t] is p, or 0 where it was dropped.
std::vector<std::vector<double>> masks_of_ranks(bool one_stream) {
  constexpr std::int64_t S = 8, heads = 4;
  std::vector<std::vector<double>> masks(2);
  const std::string error = on_host_ranks(2, [&](HostRank& rank) {
    device::Stream& compute = rank.device.create_stream("compute");
    device::Stream& stream = rank.device.create_stream("tp");
    const auto group = rank.backend.communicator_or_alone(rank.device, rank.everyone("tp"));
    model::ModelSpec spec = model::with_dropout(model::dense_spec(), {0, 0.5});
    if (one_stream) spec = train::with_one_stream(spec);
    const auto attention = tensor_parallel::parallel_spec(spec, rank.device, {*group, stream}).attention({heads, heads, S, "attention"});
    model::Context ctx{rank.device, compute, {1, S}, base::DType::f32, {}};
    attention->allocate_workspace(ctx);
    model::Kept kept = attention->keep(ctx, "kept");
    constexpr std::int64_t mine = heads / 2, row = 3 * mine * S;
    const tensor::Tensor qkv = model::allocate_activation(ctx, {S, row}, "qkv"), out = model::allocate_activation(ctx, {S, mine * S}, "out");
    for (std::int64_t at = 0; at < qkv.elements(); ++at) set(qkv, at, at % row >= 2 * mine * S && at % S == at / row ? 1 : 0);
    attention->forward(ctx, qkv, out, kept);
    rank.device.synchronize();
    for (std::int64_t at = 0; at < out.elements(); ++at) masks[static_cast<std::size_t>(rank.world.rank())].push_back(get(out, at));
  });
  EXPECT_EQ(error, "");
  return masks;
}

TEST(DropoutOfOneStream, GivesTheHeadsOfAllRanksTheSameMasks) {
  const auto right = masks_of_ranks(false), wrong = masks_of_ranks(true);
  EXPECT_NE(right[0], right[1]);
  EXPECT_EQ(wrong[0], wrong[1]);
  EXPECT_EQ(wrong[0], right[0]) << "the first rank is not wrong";
}

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
  struct Form {
    int tp, fsdp, dp, micro_batches;
    bool tied;
    const char* set;
  };
  std::uint64_t seed = 0;
  for (const Form& form : {Form{1, 2, 1, 1, true, ""}, Form{1, 4, 1, 2, true, ""}, Form{2, 2, 1, 2, false, ""}, Form{1, 2, 2, 2, true, ""},
                           Form{1, 2, 2, 2, false, "accumulate.reduce=last"}, Form{2, 2, 1, 2, true, "tensor_parallel.sequence=cut"},
                           Form{1, 2, 1, 2, true, "fsdp.reshard=false"}, Form{1, 2, 1, 2, true, "fsdp.prefetch=0"}}) {
    RunConfig config = small_config(form.tp, form.fsdp, form.dp);
    config.steps = 3;
    config.micro_batches = form.micro_batches;
    config.model.tied = form.tied;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun in_fp32 = run_on_host(config, tokens);
    ASSERT_TRUE(config::set_switch(config, "fsdp.reduce_dtype=bf16"));
    config.drain_seed = ++seed;
    const HostRun in_bf16 = run_on_host(config, tokens);
    SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.set));
    ASSERT_EQ(in_bf16.error, "");
    EXPECT_NE(in_bf16.program_hashes, in_fp32.program_hashes);
    EXPECT_EQ(in_bf16.losses, in_fp32.losses);
    EXPECT_EQ(in_bf16.norms, in_fp32.norms);
    EXPECT_EQ(in_bf16.gradients, in_fp32.gradients);
    EXPECT_EQ(in_bf16.masters, in_fp32.masters);
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
  for (const auto& [tp, fsdp, dp, sequence] : {std::tuple{1, 1, 2, "whole"}, std::tuple{2, 1, 2, "whole"}, std::tuple{1, 2, 1, "whole"}, std::tuple{2, 2, 2, "cut"}}) {
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

// ---- Units -------------------------------------------------------------------------------------

// What is gathered together decides where a number lies, and so in which order the norm is summed. Without clipping nothing
// asks for the norm, and not a bit may change, in any form of a step.
TEST(Units, OfSeveralBlocksAndParametersOneByOneChangeNoBitButThoseOfTheNorm) {
  struct Form {
    int tp, fsdp, dp, micro_batches;
    bool tied;
    const char* set;
  };
  std::uint64_t seed = 0;
  for (const Form& form : {Form{1, 2, 1, 1, true, ""}, Form{1, 4, 1, 2, false, ""}, Form{2, 2, 1, 2, true, "tensor_parallel.sequence=cut"}, Form{1, 2, 2, 2, true, ""},
                           Form{1, 2, 2, 2, false, "accumulate.reduce=last"}, Form{1, 2, 1, 2, true, "fsdp.reshard=false"}, Form{1, 2, 1, 1, true, "fsdp.prefetch=0"},
                           Form{1, 2, 1, 2, false, "fsdp.prefetch=2"}, Form{1, 2, 1, 1, true, "activations.recompute=full"}, Form{1, 2, 1, 2, true, "fsdp.limit_all_gathers=1"},
                           Form{1, 2, 1, 2, true, "fsdp.reduce_dtype=bf16"}}) {
    RunConfig config = small_config(form.tp, form.fsdp, form.dp);
    config.model.layers = 4;
    config.steps = 3;
    config.clip = 0;
    config.micro_batches = form.micro_batches;
    config.model.tied = form.tied;
    if (*form.set != 0) {
      ASSERT_TRUE(config::set_switch(config, form.set)) << form.set;
    }
    const TestTokens tokens(config.model.vocab, config.model.sequence);
    const HostRun one = run_on_host(config, tokens);
    for (const char* blocks : {"1", "2", "4"}) {
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", blocks)));
      ASSERT_TRUE(config::set_switch(config, *blocks == '2' ? "fsdp.sharding=flat" : "fsdp.sharding=per_parameter"));
      config.drain_seed = ++seed;
      const HostRun several = run_on_host(config, tokens);
      SCOPED_TRACE(base::text("tp ", form.tp, ", fsdp ", form.fsdp, ", dp ", form.dp, ", micro-batches ", form.micro_batches, ", ", form.set, ", units of ", blocks));
      ASSERT_EQ(several.error, "");
      EXPECT_NE(several.program_hashes, one.program_hashes);
      EXPECT_EQ(several.losses, one.losses);
      EXPECT_EQ(several.gradients, one.gradients);
      EXPECT_EQ(several.masters, one.masters);
      for (std::size_t step = 0; step < one.norms.size(); ++step) EXPECT_NEAR(several.norms[step], one.norms[step], 1e-5 * one.norms[step]);
    }
  }
}

// ---- Counts ------------------------------------------------------------------------------------

struct Count {
  int gathers = 0, scatters = 0, all_reduces = 0;
  bool operator==(const Count&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Count& count) {
  return out << count.gathers << " all-gathers, " << count.scatters << " reduce-scatters, " << count.all_reduces << " all-reduces";
}

// Collectives of one step over all axes but tp, or over tp; not those of the norm. `bytes`: of them all.
Count count_of(const RunConfig& config, bool over_tp = false, base::Bytes* bytes = nullptr) {
  device::MetaDevice device(0);
  auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
  trainer.issue(0, true);
  Count count;
  for (const program::Op& op : device.recorder().programs()[0]->ops) {
    if (op.desc.collective.group == program::no_group || op.key.phase == program::Phase::reduce) continue;
    const std::string& axis = device.recorder().catalogue().groups[op.desc.collective.group].axis;
    if ((axis == "tp") != over_tp) continue;
    if (bytes != nullptr) *bytes += op.desc.collective.bytes;
    count.gathers += op.desc.kind == OpKind::all_gather;
    count.scatters += op.desc.kind == OpKind::reduce_scatter;
    count.all_reduces += op.desc.kind == OpKind::all_reduce;
  }
  return count;
}

// Rajbhandari et al. 2020, table 1, for C = L + 1 units (L blocks and a tied root) and two micro-batches.
TEST(Counts, OfEachStageOfZero) {
  for (int layers : {2, 5}) {
    const int units = layers + 1;
    RunConfig config = small_config(1, 4);
    config.model.layers = layers;
    config.micro_batches = 2;

    RunConfig zero_3 = config;
    // The root stays whole: it is gathered once. Each block is gathered for forward and for backward.
    EXPECT_EQ(count_of(zero_3), (Count{4 * layers + 1, 2 * units, 0}));

    RunConfig zero_2 = config;
    zero_2.reshard = false;
    EXPECT_EQ(count_of(zero_2), (Count{units, 2 * units, 0}));

    RunConfig zero_1 = zero_2;
    ASSERT_TRUE(config::set_switch(zero_1, "accumulate.reduce=last"));
    EXPECT_EQ(count_of(zero_1), (Count{units, units, 0}));
  }
}

TEST(Counts, OfDataParallel) {
  RunConfig config = small_config(1, 1, 4);
  config.model.layers = 5;
  config.micro_batches = 2;
  // A bucket of 25 MiB holds all of this small model
  EXPECT_EQ(count_of(config), (Count{0, 0, 1}));
  ASSERT_TRUE(config::set_switch(config, "data_parallel.reduce=flat"));
  EXPECT_EQ(count_of(config), (Count{0, 0, 1}));
  // A block has twelve parameters; the root two tables and the last norm's two
  ASSERT_TRUE(config::set_switch(config, "data_parallel.reduce=naive"));
  EXPECT_EQ(count_of(config), (Count{0, 0, 5 * 12 + 4}));
}

// Megatron's tensor parallelism, without and with sequence parallelism, of L blocks: f and g of each, of the embedding and
// of the head. Two all-reduces a micro-batch are of the loss, 4 N and 8 N bytes.
TEST(Counts, OfTensorAndSequenceParallelism) {
  for (int layers : {2, 5}) {
    for (int micro_batches : {1, 2}) {
      RunConfig config = small_config(4, 1);
      config.model.layers = layers;
      config.micro_batches = micro_batches;
      const base::Bytes N = config.tokens_per_micro_batch(), D = config.model.width, S = config.model.sequence, A = 2 * N * D;
      base::Bytes bytes = 0;
      EXPECT_EQ(count_of(config, true, &bytes), (Count{0, 0, micro_batches * (4 * layers + 4)}));
      EXPECT_EQ(bytes, micro_batches * ((4 * layers + 2) * A + 12 * N));

      // Of an all-reduce each becomes a gather and a scatter of as many bytes, and 2 L + 1 inputs are gathered once more. A
      // block sums the gradients of six rows of D over tp, the root those of positions and of the last norm
      ASSERT_TRUE(config::set_switch(config, "tensor_parallel.sequence=cut"));
      bytes = 0;
      EXPECT_EQ(count_of(config, true, &bytes), (Count{micro_batches * (6 * layers + 3), micro_batches * (4 * layers + 2), micro_batches * (layers + 2 + 2)}));
      EXPECT_EQ(bytes, micro_batches * ((10 * layers + 5) * A + 12 * N + 4 * (6 * layers * D + S * D + 2 * D)));
    }
  }
}

TEST(Counts, OfHybridSharding) {
  RunConfig config = small_config(1, 2, 2);
  config.micro_batches = 2;
  // Shards are summed over replicas once, after the last micro-batch
  EXPECT_EQ(count_of(config), (Count{4 * 2 + 1, 2 * 3, 1}));
}

}  // namespace
}  // namespace shardbook::tests
