// What one layout has written another one reads: the state is the same to the bit, and so is what follows, but for the order
// of sums.
#include "engine/checkpoint/saver.hpp"
#include "engine/launch/rank.hpp"
#include "tests/checkpoint/runs.hpp"
#include "tests/support/host_ranks.hpp"

namespace shardbook::tests {
namespace {

const std::vector<Asked>& layouts() {
  static const std::vector<Asked> all = {
      {},
      {{"tp", "2"}, {"fsdp", "2"}},
      {{"tp", "4"}},
      {{"fsdp", "4"}},
      {{"fsdp", "8"}},                                                       // shards that end within a row, and padding
      {{"fsdp", "2"}, {"dp", "2"}},
      {{"dp", "4"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"dp", "2"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"set", "tensor_parallel.sequence=cut"}},
      {{"fsdp", "4"}, {"reshard", "false"}, {"micro-batches", "2"}},         // ZeRO-2, with accumulation
      {{"fsdp", "4"}, {"set", "fsdp.sharding=per_parameter"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"set", "fsdp.offload=optimizer"}}};
  return all;
}

std::string words_of(const Asked& asked) {
  std::string words = "a run of";
  for (const auto& [option, value] : asked) words += " --" + option + " " + value;
  return words;
}

// Numbers as they are computed in fp64, so that layouts differ by no more than the order of its sums (tests/train).
Asked in_f64(const Asked& layout) { return with({{"host-dtype", "f64"}, {"steps", "4"}}, layout); }

struct Saved {
  std::string folder, state;
};

// Three steps, then saved; the state of all layouts, merged, by layout.
Saved saved_by(const Asked& layout, const Folder& folder, int number) {
  Saved saved{folder / ("by" + std::to_string(number)), ""};
  const Numbers numbers = numbers_of(small(with(in_f64(layout), {{"checkpoint", saved.folder}, {"save-every", "3"}, {"keep-checkpoints", "0"}})));
  EXPECT_EQ(numbers.error, "");
  saved.folder = checkpoint::path_of_step(saved.folder, 3);
  saved.state = merged(saved.folder, folder);
  return saved;
}

// Reads a checkpoint under one layout, and writes it again under the same with no step between; where it is then.
std::string rewritten(const config::RunConfig& asked, const std::string& from, const std::string& to) {
  config::RunConfig config = asked;
  config.resume = from;
  config.checkpoint = to;
  const base::Result<checkpoint::Claim> claim = checkpoint::Claim::take(to, "again");
  EXPECT_TRUE(claim.ok());
  const base::Result<std::unique_ptr<data::TokenSource>> source = launch::open_source(config);
  const base::Result<checkpoint::Found> found = checkpoint::find(from);
  EXPECT_TRUE(source.ok() && found.ok());
  if (!source || !found) return "";
  const std::string error = on_host_ranks(config.ranks, [&](HostRank& rank) {
    train::Trainer trainer(config, rank.device, rank.backend, launch::mesh_of(config), rank.world.rank(), source.value().get());
    if (base::Status restored = trainer.state()->restore(found.value().manifest, from); !restored) throw base::Failure(restored.error());
    trainer.state()->take();
    trainer.state()->await_taken();
    checkpoint::Saver saver({to, "again", rank.world.rank(), config.ranks, 0});
    saver.begin(found.value().manifest.step, "{}", trainer.state()->written());
    saver.wait([&] { rank.world.throw_if_failed(); });
    if (base::Status saved = saver.status(); !saved) throw base::Failure(saved.error());
  }, 0, base::DType::f64);
  EXPECT_EQ(error, "");
  return to;
}

// Twelve pairs: each layout reads what the one before it wrote.
TEST(Layouts, ReadWhatAnotherWroteToTheBitAndComputeTheSameNextLoss) {
  const Folder folder;
  const Numbers one_rank = numbers_of(small(in_f64({})));
  ASSERT_EQ(one_rank.error, "");
  for (std::size_t at = 0; at < layouts().size(); at += one_in) {
    const Asked &writes = layouts()[at], &reads = layouts()[(at + 1) % layouts().size()];
    SCOPED_TRACE(words_of(writes) + ", then " + words_of(reads));
    const Saved saved = saved_by(writes, folder, static_cast<int>(at));
    ASSERT_FALSE(saved.state.empty());
    EXPECT_EQ(merged(rewritten(small(in_f64(reads)), saved.folder, folder / ("again" + std::to_string(at))), folder), saved.state);

    const Numbers next = numbers_of(small(with(in_f64(reads), {{"resume", saved.folder}})));
    ASSERT_EQ(next.error, "");
    ASSERT_EQ(next.steps, std::vector<std::int64_t>{3});
    EXPECT_NEAR(next.losses[0], one_rank.losses[3], 1e-11);
    EXPECT_NEAR(next.norms[0], one_rank.norms[3], 1e-9);
  }
}

// Padding and gaps lie in no file, and nothing is written twice: whichever layout wrote it, a checkpoint has as many bytes.
TEST(Layouts, WriteEachNumberOnce) {
  const Folder folder;
  const config::RunConfig config = small({});
  for (std::size_t at = 0; at < layouts().size(); at += one_in) {
    const Asked asked = with(with({{"steps", "1"}, {"warmup-steps", "0"}}, layouts()[at]), {{"checkpoint", folder / std::to_string(at)}});
    ASSERT_EQ(numbers_of(small(asked)).error, "");
    const base::Result<checkpoint::Found> found = checkpoint::find(folder / std::to_string(at));
    ASSERT_TRUE(found) << found.error();
    EXPECT_EQ(found.value().manifest.bytes(), 3 * 4 * config::parameter_count(config.model)) << words_of(layouts()[at]);
  }
}

}  // namespace
}  // namespace shardbook::tests
