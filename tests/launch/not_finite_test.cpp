// A number that is not finite is named by its rank and by the op that made it, wherever in a step it came.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/checkpoint/folder.hpp"
#include "engine/launch/launch.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/launch/faulty_rank.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

using tests::Asked;
using tests::Folder;

config::RunConfig small_and_checked(const Asked& asked) {
  return tests::config_of(tests::with({{"device", "host"}, {"layers", "2"}, {"width", "16"}, {"heads", "2"}, {"sequence", "8"}, {"sequences", "8"}, {"steps", "6"}, {"check-finite", "true"}}, asked));
}

struct Spoilt {
  std::string where, said;
};

TEST(NotFinite, IsNamedByTheRankAndTheOpThatMadeItWhereverItCame) {
  for (const Spoilt& spoilt : {Spoilt{"forward", "written by embedding_forward, op "}, Spoilt{"backward", "written by "}, Spoilt{"reduction", "brought by reduce_scatter, op "},
                               Spoilt{"optimizer", "written by "}}) {
    SCOPED_TRACE(spoilt.where);
    const Folder folder;
    LaunchOptions options;
    options.with_device = [&](device::Device& device) { test::plant(device, {3, 3, spoilt.where, "spoils"}); };
    const base::Result<Outcome> outcome = run(small_and_checked({{"tp", "2"}, {"fsdp", "2"}, {"trace-steps", "1:3"}, {"steps", "12"}, {"out", folder.run()}}), options);
    ASSERT_TRUE(outcome) << outcome.error();
    const std::string& failure = outcome.value().failure;
    EXPECT_EQ(failure.find("rank 3: the first number that is not finite was " + spoilt.said), 0u) << failure;
    EXPECT_NE(failure.find(" of step 3 ("), std::string::npos) << failure;
    EXPECT_NE(failure.find("; engine/"), std::string::npos) << failure;

    // The run ends, and what it recorded opens and says why.
    EXPECT_LT(outcome.value().results.size(), 12u);
    const auto read = timeline::read(folder.run());
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read.value().steps.size(), 8u) << "two steps of four ranks";
    ASSERT_EQ(read.value().banners.size(), 1u);
    EXPECT_NE(read.value().banners[0].find(failure), std::string::npos) << read.value().banners[0];
  }
}

TEST(NotFinite, IsNothingThatARunOfAnyFormWrites) {
  for (const Asked& form : {Asked{{"tp", "2"}, {"fsdp", "2"}}, Asked{{"dp", "2"}, {"micro-batches", "2"}}, Asked{{"tp", "2"}, {"host-dtype", "f64"}, {"set", "tensor_parallel.sequence=cut"}},
                              Asked{{"fsdp", "2"}, {"set", "attention.kernel=flash"}}, Asked{{"fsdp", "2"}, {"set", "fsdp.offload=optimizer"}},
                              Asked{{"fsdp", "2"}, {"set", "fsdp.offload=parameters"}, {"drain-seed", "7"}}, Asked{{"hidden-dropout", "0.1"}, {"attention-dropout", "0.1"}}}) {
    LaunchOptions options;
    options.write_run = false;
    const base::Result<Outcome> with = run(small_and_checked(form), options);
    Asked off = form;
    off.emplace_back("check-finite", "false");
    const base::Result<Outcome> without = run(small_and_checked(off), options);
    ASSERT_TRUE(with) << with.error();
    ASSERT_TRUE(without) << without.error();
    EXPECT_EQ(with.value().failure, "") << form.back().first << "=" << form.back().second;
    ASSERT_EQ(with.value().results.size(), 6u);
    for (std::size_t step = 0; step < 6; ++step) EXPECT_EQ(with.value().results[step].loss, without.value().results[step].loss) << "the look at it changes no number";
  }
}

// What AdamW writes of step 3 one rank alone has seen when all others still save: the checkpoint of four steps is nobody's.
TEST(NotFinite, WhatOneRankAloneHasSeenNoRankSaves) {
  const Folder folder;
  const std::string saved = (folder.path() / "saved").string();
  LaunchOptions options;
  options.write_run = false;
  options.with_device = [&](device::Device& device) { test::plant(device, {3, 3, "adam_w", "spoils"}); };
  const base::Result<Outcome> outcome = run(small_and_checked({{"tp", "2"}, {"fsdp", "2"}, {"steps", "12"}, {"trace-steps", "0:1"}, {"checkpoint", saved}, {"save-every", "1"}}), options);
  ASSERT_TRUE(outcome) << outcome.error();
  EXPECT_EQ(outcome.value().failure.find("rank 3: the first number that is not finite was written by adam_w, op "), 0u) << outcome.value().failure;
  EXPECT_NE(outcome.value().failure.find(" of step 3 ("), std::string::npos) << outcome.value().failure;
  ASSERT_GT(outcome.value().results.size(), 3u);
  EXPECT_TRUE(std::isfinite(outcome.value().results[3].loss) && std::isfinite(outcome.value().results[3].gradient_norm)) << "which tell the other ranks nothing";
  const base::Result<checkpoint::Found> found = checkpoint::find(saved);
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found.value().manifest.step, 3);
}

TEST(NotFinite, WithoutTheOptionIsNamedByStepAndSaysHowToFindTheOp) {
  LaunchOptions options;
  options.write_run = false;
  options.with_device = [&](device::Device& device) { test::plant(device, {1, 3, "backward", "spoils"}); };
  const base::Result<Outcome> outcome = run(small_and_checked({{"fsdp", "2"}, {"check-finite", "false"}}), options);
  ASSERT_TRUE(outcome) << outcome.error();
  EXPECT_EQ(outcome.value().failure.find("rank 0: the gradient norm of step 3 is nan, on all ranks"), 0u) << outcome.value().failure;
  EXPECT_NE(outcome.value().failure.find("--check-finite names the op"), std::string::npos) << outcome.value().failure;
}

}  // namespace
}  // namespace shardbook::launch
