// Is it possible: open choices are made, and what was asked for is granted or refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/config/config.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::config {
namespace {

using Asked = std::vector<std::pair<std::string, std::string>>;

RunConfig asking(const Asked& asked, const Asked& suggested = {}) {
  RunConfig config;
  for (const auto& [name, value] : asked) EXPECT_TRUE(ask(config, name, {value}).ok()) << name;
  for (const auto& [name, value] : suggested) EXPECT_TRUE(suggest(config, name, {value}).ok()) << name;
  return config;
}

std::string error_of(const Asked& asked, int gpus = 0) {
  const auto result = validate(asking(asked), gpus);
  return result ? "" : result.error();
}

TEST(Validate, MakesEveryOpenChoiceOnTheHost) {
  const RunConfig config = validate(RunConfig{}, 0).value();
  EXPECT_EQ(config.device, DeviceKind::host);
  EXPECT_EQ(config.clock, Clock::modelled);
  EXPECT_EQ(config.launch, Launch::threads);
  EXPECT_EQ(config.ranks, 1);
  EXPECT_EQ(config.micro_batches, 1);
  EXPECT_EQ(config.warmup_steps, 10);
  EXPECT_EQ(config.trace_steps, (StepRange{10, 13}));
  EXPECT_DOUBLE_EQ(config.min_lr, 2e-4);
  EXPECT_TRUE(config.notes.empty());
}

TEST(Validate, LetsThreadsWaitForEverAndProcessesForAWhile) {
  const auto timeout = [](const Asked& asked, const Asked& suggested = {}) { return validate(asking(asked, suggested), 0).value().comm_timeout; };
  EXPECT_EQ(timeout({}), 0);
  EXPECT_EQ(timeout({{"launch", "processes"}}), 600);
  EXPECT_EQ(timeout({{"launch", "processes"}}, {{"lab", "04_fsdp"}}), 10);
  EXPECT_EQ(timeout({{"launch", "processes"}, {"comm-timeout", "0.5"}}, {{"lab", "04_fsdp"}}), 0.5);
  EXPECT_EQ(timeout({{"comm-timeout", "7"}}), 7);
  EXPECT_TRUE(validate(asking({{"comm-timeout", "7"}}), 0).value().notes.empty());
  // GPUs keep it, too.
  EXPECT_TRUE(validate(asking({{"comm-timeout", "7"}}), 8).value().notes.empty());
}

TEST(Validate, RefusesWhatAGpusMatmulsCannotDo) {
  RunConfig config = asking({{"device", "meta"}, {"model", "gpt-124m"}, {"ffn-width", "3076"}});
  ASSERT_TRUE(set_switch(config, "gelu.kernel=in_matmuls"));
  EXPECT_EQ(validate(config, 0).error(), "--set gelu.kernel=in_matmuls needs rows of a multiple of 16 bytes, so --ffn-width over --tp must divide by 8, and 3076 / 1 does not: change the width, or leave GELU apart");
  config.precision = Precision::fp32;
  EXPECT_TRUE(validate(config, 0));
  config.device = DeviceKind::host;
  config.precision = Precision::bf16;
  EXPECT_TRUE(validate(config, 0));
  EXPECT_NE(error_of({{"device", "host"}, {"matmuls", "m.json"}}, 0).find("--device host has none: leave it out"), std::string::npos);
  EXPECT_TRUE(std::filesystem::path(validate(asking({{"device", "meta"}, {"matmuls", "m.json"}}), 0).value().matmuls).is_absolute());
}

TEST(Validate, TakesAllGpusForAnOpenLayout) {
  const RunConfig config = validate(asking({{"model", "gpt-1.3b"}, {"tp", "2"}}), 8).value();
  EXPECT_EQ(config.device, DeviceKind::cuda);
  EXPECT_EQ(config.clock, Clock::measured);
  EXPECT_EQ(config.launch, Launch::processes);
  EXPECT_EQ(config.fsdp, 4);
  EXPECT_EQ(config.ranks, 8);
}

TEST(Validate, GivesEachGpuEightSequencesOfTheLargeModelUnderFsdp8) {
  const RunConfig config = validate(asking({{"model", "gpt-1.3b"}, {"fsdp", "8"}}), 8).value();
  EXPECT_EQ(config.sequences_per_micro_batch(), 8);
  EXPECT_EQ(config.micro_batches, 1);
  EXPECT_EQ(config.tokens_per_micro_batch(), 8192);
  EXPECT_EQ(config.global_tokens(), 65536);
}

TEST(Validate, CutsALargeShareOfTheBatchIntoMicroBatches) {
  const RunConfig config = validate(asking({{"model", "gpt-1.3b"}, {"tp", "8"}}), 8).value();
  EXPECT_EQ(config.micro_batches, 8);
  EXPECT_EQ(config.sequences_per_micro_batch(), 8);
}

TEST(Validate, LetsAModelledClockMeanTheHost) {
  EXPECT_EQ(validate(asking({{"clock", "wall"}}), 8).value().device, DeviceKind::host);
  EXPECT_EQ(validate(asking({{"host-dtype", "f64"}}), 8).value().device, DeviceKind::host);
}

TEST(Validate, ShrinksASuggestedLayoutToTheGpusAtHandAndSaysSo) {
  const Asked lab = {{"tp", "2"}, {"fsdp", "2"}};
  const RunConfig two = validate(asking({}, lab), 2).value();
  EXPECT_EQ(two.tp, 2);
  EXPECT_EQ(two.fsdp, 1);
  ASSERT_EQ(two.notes.size(), 1u);
  EXPECT_EQ(two.notes[0],
            "tp 2 x fsdp 2 would need 4 GPUs and 2 are here, so this runs tp 2 x fsdp 1; --device host runs all 4 ranks");
  const RunConfig one = validate(asking({}, lab), 1).value();
  EXPECT_EQ(one.ranks, 1);
  const RunConfig four = validate(asking({}, lab), 4).value();
  EXPECT_EQ(four.ranks, 4);
  EXPECT_TRUE(four.notes.empty());
  const RunConfig none = validate(asking({}, lab), 0).value();
  EXPECT_EQ(none.ranks, 4);
  EXPECT_EQ(none.device, DeviceKind::host);
}

TEST(Validate, KeepsTheAskedPartOfALayoutAndShrinksTheRest) {
  const RunConfig config = validate(asking({{"fsdp", "2"}}, {{"tp", "2"}}), 2).value();
  EXPECT_EQ(config.fsdp, 2);
  EXPECT_EQ(config.tp, 1);
}

TEST(Validate, RefusesMoreRanksThanGpusWhenTheyWereAskedFor) {
  EXPECT_EQ(error_of({{"tp", "4"}}, 2),
            "tp 4 x fsdp 1 is 4 ranks, and 2 GPUs are here: ask for fewer ranks, or for --device host");
  EXPECT_EQ(error_of({{"ranks", "2"}}, 1),
            "tp 1 x fsdp 2 is 2 ranks, and 1 GPU is here: ask for fewer ranks, or for --device host");
  EXPECT_EQ(error_of({{"device", "cuda"}}, 0),
            "--device cuda needs a GPU, and none can be used here: choose --device host, or let `shardbook doctor` say "
            "what is missing");
}

TEST(Validate, DerivesTheLayoutFromRanks) {
  EXPECT_EQ(validate(asking({{"ranks", "8"}, {"tp", "2"}}), 0).value().fsdp, 4);
  EXPECT_EQ(validate(asking({{"ranks", "8"}, {"fsdp", "2"}}), 0).value().tp, 4);
  EXPECT_EQ(validate(asking({{"ranks", "8"}}), 0).value().fsdp, 8);
  EXPECT_EQ(validate(asking({{"ranks", "6"}}, {{"tp", "2"}}), 0).value().fsdp, 3);
}

TEST(Validate, RefusesSizesThatDoNotDivideWithTheNumbersAndTheRemedy) {
  EXPECT_EQ(error_of({{"tp", "3"}}), "4 heads do not divide over --tp 3: choose --tp from 1, 2, 4");
  EXPECT_EQ(error_of({{"tp", "4"}, {"vocab", "258"}}),
            "258 rows of the vocabulary do not divide over --tp 4: choose --tp from 1, 2");
  EXPECT_EQ(error_of({{"tp", "4"}, {"ffn-width", "510"}}),
            "510 columns of the feed-forward width do not divide over --tp 4: choose --tp from 1, 2");
  EXPECT_EQ(error_of({{"width", "100"}, {"heads", "3"}}),
            "a width of 100 does not divide over 3 heads: change --width or --heads");
  EXPECT_EQ(error_of({{"ranks", "8"}, {"tp", "2"}, {"fsdp", "2"}}),
            "--ranks 8 is not --tp 2 x --fsdp 2 = 4: leave one of them out");
  EXPECT_EQ(error_of({{"ranks", "9"}, {"tp", "2"}}), "--ranks 9 does not divide by --tp 2: the world is tp x fsdp ranks");
  EXPECT_EQ(error_of({{"ranks", "9"}, {"fsdp", "2"}}),
            "--ranks 9 does not divide by --fsdp 2: the world is tp x fsdp ranks");
  EXPECT_EQ(error_of({{"sequences", "10"}, {"fsdp", "4"}}),
            "10 sequences do not divide over fsdp 4: choose a multiple of 4 with --sequences");
  EXPECT_EQ(error_of({{"sequences", "20"}, {"fsdp", "4"}, {"micro-batches", "2"}}),
            "20 sequences do not divide over fsdp 4 x 2 micro-batches = 8: choose a multiple of 8 with --sequences");
}

TEST(Validate, RefusesHeadsAndAttentionThatDoNotFit) {
  EXPECT_EQ(error_of({{"model", "llama-tutor"}, {"key-value-heads", "3"}}),
            "4 heads do not share 3 key-value heads evenly: change --heads or --key-value-heads");
  EXPECT_EQ(error_of({{"model", "llama-tutor"}, {"tp", "4"}}), "2 key-value heads do not divide over --tp 4: choose --tp from 1, 2");
  EXPECT_EQ(error_of({{"model", "llama-tutor"}, {"width", "12"}}),
            "rotary positions turn pairs, and heads of 3 numbers have one over: change --heads");
  EXPECT_EQ(error_of({{"device", "cuda"}, {"attention", "flash"}, {"precision", "fp32"}}, 1),
            "--attention flash on --device cuda is for --precision bf16 and heads of 32, 64 or 128 numbers, not fp32 and 32: "
            "choose --attention unfused");
  EXPECT_EQ(error_of({{"device", "host"}, {"attention", "flash"}, {"precision", "fp32"}}), "");
  EXPECT_EQ(error_of({{"device", "cuda"}, {"attention", "cudnn"}, {"model", "gpt-124m"}, {"heads", "8"}}, 1),
            "--attention cudnn on --device cuda is for --precision bf16 and heads of 32, 64 or 128 numbers, not bf16 and 96: "
            "choose --attention unfused");
  EXPECT_EQ(error_of({{"device", "host"}, {"attention", "cudnn"}, {"precision", "fp32"}}), "");
}

TEST(Validate, GrowsABatchThatWasNotAskedForAndSaysSo) {
  const RunConfig config = validate(asking({{"fsdp", "3"}}), 0).value();
  EXPECT_EQ(config.sequences, 18);
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0], "the batch of 16 sequences grew to 18, so that it divides over fsdp 3");
}

TEST(Validate, RefusesAClockThatTheDeviceHasNot) {
  EXPECT_EQ(error_of({{"device", "cuda"}, {"clock", "modelled"}}, 1),
            "--clock modelled is for --device host or meta; a run on --device cuda is measured on its GPUs, so leave "
            "--clock out or change the device");
  EXPECT_EQ(error_of({{"device", "host"}, {"clock", "measured"}}, 1),
            "--clock measured needs --device cuda; --device host has modelled and wall");
  EXPECT_EQ(error_of({{"device", "meta"}, {"clock", "wall"}}),
            "--clock wall needs numbers to compute, and --device meta has shapes only: choose --device host, or --clock "
            "modelled");
}

TEST(Validate, BoundsTheRanksOfTheHostButNotOfMeta) {
  EXPECT_EQ(error_of({{"fsdp", "1024"}}),
            "1024 ranks are more than the 256 that --device host runs: choose --device meta, which computes shapes only");
  EXPECT_EQ(error_of({{"fsdp", "1024"}, {"device", "meta"}}), "");
}

TEST(Validate, KeepsWarmUpTraceAndRatesWithinTheRun) {
  const RunConfig one = validate(asking({{"steps", "1"}}), 0).value();
  EXPECT_EQ(one.trace_steps, (StepRange{0, 1}));
  EXPECT_EQ(one.warmup_steps, 0);
  EXPECT_EQ(error_of({{"steps", "4"}, {"warmup-steps", "5"}}), "--warmup-steps 5 is more than --steps 4");
  EXPECT_EQ(error_of({{"trace-steps", "39:41"}}), "--trace-steps 39:41 ends after the 40 steps of the run");
  EXPECT_EQ(error_of({{"lr", "0.001"}, {"min-lr", "0.01"}}), "--min-lr 0.01 is above --lr 0.001");
  EXPECT_EQ(validate(asking({{"trace-steps", "0:0"}}), 0).value().trace_steps, (StepRange{0, 0}));
}

TEST(Validate, KeepsKeywordsOfDataApartAndMakesPathsAbsolute) {
  RunConfig both;
  ASSERT_TRUE(ask(both, "data", {"a.txt", "grammar"}).ok());
  EXPECT_EQ(validate(both, 0).error(), "--data grammar stands alone; a file of that name is ./grammar");
  EXPECT_EQ(error_of({{"vocab", "128"}}), "--data grammar is bytes, so it needs a vocabulary of 256, not 128");
  const RunConfig file = validate(asking({{"data", "./grammar"}}), 0).value();
  EXPECT_EQ(file.data[0], (std::filesystem::current_path() / "grammar").string());
}

TEST(Validate, GivesTheSameConfigWhenStoredReadAndValidatedAgain) {
  for (const Asked& asked : {Asked{}, Asked{{"model", "gpt-6.9b"}, {"device", "meta"}, {"tp", "8"}, {"fsdp", "8"}},
                             Asked{{"model", "gpt-1.3b"}, {"ranks", "8"}}}) {
    const RunConfig first = validate(asking(asked), 8).value();
    EXPECT_EQ(to_json(validate(first, 8).value()), to_json(first));
    RunConfig read;
    ASSERT_TRUE(read_json(read, to_json(first), "run.json").ok());
    EXPECT_EQ(to_json(validate(read, 8).value()), to_json(first));
  }
}

}  // namespace
}  // namespace shardbook::config
