// Mistakes on purpose: each is caught by its check, in words that name it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/check/numbers.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/model/dropout.hpp"
#include "engine/train/mistakes.hpp"
#include "tests/train/rows.hpp"

namespace shardbook::tests {
namespace {

using config::Promise;
using config::RunConfig;
using config::Switch;

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

INSTANTIATE_TEST_SUITE_P(Table, Mistakes, testing::ValuesIn(mistakes()), name_of_row);

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

}  // namespace
}  // namespace shardbook::tests
