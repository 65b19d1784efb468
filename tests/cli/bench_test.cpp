// `bench`: its shapes, the floor of a step, what it foretells and what it refuses. Measured ones need GPUs (tests/gpu).
#include <gtest/gtest.h>

#include <iomanip>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/cli/bench_side.hpp"
#include "engine/cli/bench_suite.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/config/switches.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

using base::DType;
using program::OpDesc;
using program::OpKind;

TEST(BenchSuite, EachShapeIsOneThatTrainsOnTwoGpus) {
  for (const BenchShape& shape : bench_suite()) {
    const base::Result<config::RunConfig> config = config_on_meta(words_of(shape, 2, {}));
    ASSERT_TRUE(config.ok()) << shape.name << ": " << config.error();
    EXPECT_EQ(config.value().ranks, 2) << shape.name;
    EXPECT_EQ(config.value().tp, shape.cut == BenchShape::Cut::tp ? 2 : 1) << shape.name;
    EXPECT_EQ(config.value().model.preset, shape.model);
  }
}

TEST(BenchSuite, TheSequencesOfFsdpAreThoseOfEachGpu) {
  const base::Result<std::vector<BenchShape>> shapes = shapes_named({"gpt-1.3b"});
  ASSERT_TRUE(shapes.ok());
  ASSERT_EQ(shapes.value().size(), 2u);
  EXPECT_EQ(shapes.value()[0].global_sequences(8), 64);
  EXPECT_EQ(shapes.value()[1].global_sequences(8), 8);
}

TEST(BenchSuite, AChoiceOfTheUsersStandsInPlaceOfTheFastest) {
  const BenchShape& shape = bench_suite().front();
  const auto kernel = [&](const std::vector<std::string>& set) { return config_on_meta(words_of(shape, 2, set)).value().attention; };
  EXPECT_NE(kernel({}), kernel({"attention.kernel=unfused"}));
  const auto loss = [&](const std::vector<std::string>& set) { return config::switch_value(config_on_meta(words_of(shape, 2, set)).value(), "loss.kernel"); };
  EXPECT_EQ(loss({}), "fused");
  EXPECT_EQ(loss({"loss.chunks=2"}), "fused");
  EXPECT_EQ(loss({"loss.kernel=apart"}), "apart");
  // Where cuDNN is here its kernels are faster than the engine's own, but for the tutor's small heads
  EXPECT_EQ(config_on_meta(words_of(shape, 2, {}, true)).value().attention, config::AttentionKind::cudnn);
  EXPECT_EQ(config_on_meta(words_of(bench_suite().back(), 2, {}, true)).value().attention, config::AttentionKind::flash);
}

config::RunConfig on_two_gpus(const std::vector<std::string>& words) {
  Command command;
  command.name = "train";
  command.switches = training_switches();
  base::Result<Line> line = read_line(command, words);
  if (!line) throw base::Failure(line.error());
  line.value().switches["device"] = {"cuda"};
  return training_config(line.value(), std::nullopt, 2).value().config;
}

TEST(BenchSuite, WhatIsFasterBetweenLinkedGpusIsOfEachShapesCut) {
  const simulate::Profile profile;   // without windows
  for (const BenchShape& shape : bench_suite()) {
    const std::vector<std::string> all = linked_choices(shape, {});
    const bool is_tutor = std::string_view(shape.model) == "grammar-tutor";
    EXPECT_EQ(all.empty(), is_tutor) << shape.name;
    if (is_tutor) continue;
    EXPECT_EQ(all.front(), "nccl.buffers=windows") << shape.name;
    EXPECT_EQ(linked_choices(shape, {"nccl.buffers=plain", "loss.chunks=2"}).size(), all.size() - 1) << shape.name;
    const std::vector<std::string> known = set_without_gpus(all, profile);
    ASSERT_FALSE(known.empty());
    const base::Result<config::RunConfig> config = config_on_meta(words_of(shape, 2, known));
    ASSERT_TRUE(config.ok()) << shape.name << ": " << config.error();
    const config::RunConfig measured = on_two_gpus(words_of(shape, 2, all));
    for (const std::string& one : all) EXPECT_EQ(config::switch_value(measured, one.substr(0, one.find('='))), one.substr(one.find('=') + 1)) << shape.name;
    if (shape.cut == BenchShape::Cut::tp) EXPECT_EQ(config::switch_value(config.value(), "tensor_parallel.overlap"), "pieces");
    else EXPECT_EQ(config::switch_value(config.value(), "fsdp.update"), "by_unit");
  }
}

// GiB that FSDP2 held over two GPUs, experiments/speed, "sitting-2026-11-27".
TEST(Bench, InTheLeanFormNoMoreIsHeldThanFsdp2Held) {
  constexpr double gib = 1073741824.0;
  for (const auto& [name, fsdp2] : {std::pair("gpt-1.3b-fsdp", 21.6), {"gpt-6.9b-fsdp", 57.3}, {"llama-8b-fsdp", 85.0}}) {
    const auto modelled = [name = name](std::vector<std::string> more) {
      std::vector<std::string> words = {"bench", name, "--device", "meta", "--json"};
      words.insert(words.end(), more.begin(), more.end());
      return base::parse_json(shardbook(words).out)["rows"][0]["modelled"];
    };
    const nlohmann::json fastest = modelled({"--linked"}), lean = modelled({"--linked", "--lean"}), lean_alone = modelled({"--lean"});
    EXPECT_GT(fastest["peak_bytes"], fsdp2 * gib) << name << " need not be lean";
    EXPECT_LE(lean["peak_bytes"], fsdp2 * gib) << name;
    EXPECT_EQ(lean_alone["peak_bytes"], lean["peak_bytes"]) << name;
    EXPECT_LT(lean["step_ns"], 1.05 * fastest["step_ns"].get<double>()) << name << ": for a few percent of a step";
    EXPECT_GT(modelled({"--lean", "--set", "activations.recompute=none"})["peak_bytes"], lean["peak_bytes"]) << name << ": what is typed stands";
  }
  EXPECT_EQ(shardbook({"bench", "gpt-1.3b-tp", "--device", "meta", "--lean"}).out, shardbook({"bench", "gpt-1.3b-tp", "--device", "meta"}).out);
}

TEST(BenchSuite, AsksTheModelForWhatItKnows) {
  const std::vector<std::string> set = {"nccl.buffers=windows", "gelu.kernel=in_matmuls", "nccl.max_ctas=8", "loss.chunks=2", "no.switch=1"};
  simulate::Profile profile;
  EXPECT_EQ(set_without_gpus(set, profile), (std::vector<std::string>{"gelu.kernel=in_matmuls", "loss.chunks=2", "no.switch=1"}));
  profile.windows.collectives[program::OpKind::all_gather][2] = {{1, 1}};
  EXPECT_EQ(set_without_gpus(set, profile), (std::vector<std::string>{"nccl.buffers=windows", "gelu.kernel=in_matmuls", "loss.chunks=2", "no.switch=1"}));
}

TEST(BenchSide, TakesAPeersFiguresFromTheLastLineThatHasSome) {
  Side peer{.name = "PyTorch"};
  EXPECT_FALSE(add_figures("no\n{\"loss\": 1}\n[1]\n{\"step_ns\": \n", peer));
  EXPECT_TRUE(peer.steps.empty());
  EXPECT_EQ(peer.name, "PyTorch");
  ASSERT_TRUE(add_figures("{\"step_ns\": 1}\nW0101 a warning\n{\"name\": \"FSDP2\", \"step_ns\": 150e6, \"step_min_ns\": 142e6, \"step_max_ns\": 391e6, "
                          "\"peak_bytes\": 7, \"busy_ns\": 141e6, \"computing_ns\": 133e6, \"versions\": {\"torch\": \"2\"}}\nbye\n", peer));
  ASSERT_TRUE(add_figures("{\"step_ns\": 170e6, \"step_min_ns\": 160e6, \"step_max_ns\": 180e6}", peer));
  EXPECT_EQ(peer.name, "FSDP2");
  EXPECT_DOUBLE_EQ(peer.step_ns(), 160e6);
  EXPECT_DOUBLE_EQ(peer.least, 142e6);
  EXPECT_DOUBLE_EQ(peer.most, 391e6);
  // What a turn did not say is not that of the turn before
  EXPECT_LT(peer.busy_ns, 0);
  EXPECT_FALSE(json_of(peer).contains("busy_ns"));
}

TEST(BenchSide, APeersMedianIsOfTwentyStepsUnlessFewerAreAskedFor) {
  for (const BenchShape& shape : bench_suite()) {
    EXPECT_GE(peer_steps(0, shape.steps), 12 + 20) << shape.name;
    EXPECT_LE(peer_steps(0, shape.steps), 40) << shape.name;
  }
  EXPECT_EQ(peer_steps(12, 60), 16);
  EXPECT_EQ(peer_steps(24, 60), 24);
  EXPECT_EQ(peer_steps(300, 60), 40);
}

TEST(BenchSide, SaysHowLongAPeersGpuIsBusyBesideOurStep) {
  Side peer, ours;
  ASSERT_TRUE(add_figures("{\"step_ns\": 233e6, \"busy_ns\": 97.9e6, \"computing_ns\": 79.8e6}", peer));
  EXPECT_EQ(busy_sentence(peer, ours), "");
  ours.add(75.9e6, 49.3e6, 80.2e6);
  EXPECT_EQ(busy_sentence(peer, ours), "its GPU is busy for 97.9 ms of a profiled step, 79.8 without NCCL's kernels: 1.29 and 1.05 × our step");
  EXPECT_EQ(json_of(peer).value("busy_ns", 0.0), 97.9e6);
  EXPECT_EQ(busy_sentence(ours, ours), "");
}

// Rates of 2 flops and 4 bytes a ns: each op of the sum is known by hand.
TEST(Floor, IsTheFlopsOfMatmulsAndTheBytesOfAllElseThatComputes) {
  simulate::Profile profile;
  profile.gemm[DType::bf16].peak_flops_per_ns = 2;
  profile.device.memory_bytes_per_ns = 4;
  program::Program step;
  const auto add = [&](OpDesc desc) { step.ops.push_back({.desc = desc}); };
  const auto bytes = [](std::int64_t count) { return program::BufferUse{0, 0, count}; };
  add(OpDesc("linear_forward", OpKind::gemm, DType::bf16).size({.m = 10, .n = 10, .k = 10, .batch = 1}).reads(bytes(999)));   // 2000 flops
  add(OpDesc("flash_attention_forward", OpKind::attention, DType::bf16).flops(500));
  add(OpDesc("gelu_forward", OpKind::pointwise, DType::bf16).flops(77).reads(bytes(100)).writes(bytes(300)));
  add(OpDesc("all_gather", OpKind::all_gather, DType::bf16).writes(bytes(5000)));
  EXPECT_DOUBLE_EQ(floor_of(step, profile).matmul_ns, 1250);
  EXPECT_DOUBLE_EQ(floor_of(step, profile).memory_ns, 100);
  EXPECT_DOUBLE_EQ(floor_of(step, profile).ns(), 1350);
}

TEST(Bench, SaysWhatTheModelForetellsWhereThereIsNoGpu) {
  const Spoken spoken = shardbook({"bench", "--device", "meta", "--gpus", "4", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json out = base::parse_json(spoken.out);
  ASSERT_EQ(out["rows"].size(), bench_suite().size());
  for (const nlohmann::json& row : out["rows"]) {
    const double floor = row["floor"]["matmul_ns"].get<double>() + row["floor"]["memory_ns"].get<double>();
    EXPECT_GT(floor, 0) << row["shape"];
    EXPECT_GT(row["modelled"]["step_ns"], floor) << row["shape"] << ": no step is faster than its floor";
    EXPECT_FALSE(row.contains("ours")) << "nothing was measured";
  }
}

TEST(Bench, TheModelsStepIsThatOfTheSameRun) {
  const nlohmann::json row = base::parse_json(shardbook({"bench", "gpt-124m", "--device", "meta", "--json"}).out)["rows"][0];
  const base::Result<launch::Outcome> run = run_on_meta(words_of(shapes_named({"gpt-124m"}).value()[0], 2, {}));
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_EQ(row["modelled"]["step_ns"], run.value().speed.step_ns);
  EXPECT_EQ(row["tokens"], 2 * 64 * 1024);

  const nlohmann::json linked = base::parse_json(shardbook({"bench", "gpt-124m", "--device", "meta", "--linked", "--set", "fsdp.gradient_memory=own", "--json"}).out)["rows"][0];
  const base::Result<launch::Outcome> typed = run_on_meta(words_of(shapes_named({"gpt-124m"}).value()[0], 2, {"fsdp.update=by_unit", "gelu.kernel=in_matmuls", "fsdp.gradient_memory=own"}));
  ASSERT_TRUE(typed.ok()) << typed.error();
  EXPECT_EQ(linked["modelled"]["step_ns"], typed.value().speed.step_ns);
  EXPECT_NE(linked["modelled"]["step_ns"], row["modelled"]["step_ns"]);
}

// Its traced steps are others, and say nothing of what is exposed of it.
TEST(Bench, OfAStepAsAGraphSaysWhatThatStepExposes) {
  const nlohmann::json row = base::parse_json(shardbook({"bench", "grammar-tutor", "--device", "meta", "--json"}).out)["rows"][0];
  const base::Result<launch::Outcome> run = run_on_meta(words_of(shapes_named({"grammar-tutor"}).value()[0], 2, {}));
  ASSERT_TRUE(run.ok()) << run.error();
  EXPECT_EQ(row["modelled"]["exposed_share"], run.value().speed.exposed_as_graph);
  EXPECT_FALSE(row["modelled"].contains("overlap"));
}

TEST(Bench, APlainTableHasARowAShapeAndItsFloor) {
  const Spoken spoken = shardbook({"bench", "gpt-1.3b", "--device", "meta"});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  for (const char* word : {"MODELLED h200x8", "gpt-1.3b-fsdp", "gpt-1.3b-tp", "floor", "matmuls", "of floor"}) {
    EXPECT_NE(spoken.out.find(word), std::string::npos) << word << "\n" << spoken.out;
  }
  // Its shares of communication are those of the figures, beside each other
  const nlohmann::json rows = base::parse_json(shardbook({"bench", "gpt-1.3b", "--device", "meta", "--json"}).out)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const nlohmann::json& row : rows) {
    std::ostringstream shares;
    shares << std::fixed << std::setprecision(1) << 100 * row["modelled"]["exposed_share"].get<double>() << " %" << std::setw(7) << 100 * row["modelled"]["overlap"].get<double>() << " %";
    EXPECT_NE(spoken.out.find(shares.str()), std::string::npos) << shares.str() << "\n" << spoken.out;
  }
}

TEST(Bench, RefusesInOneSentence) {
  const Folder folder;
  expect_refused({"bench", "gpt-13b", "--device", "meta"}, "bench has no shape \"gpt-13b\": it has gpt-1.3b-fsdp", folder);
  expect_refused({"bench", "--device", "host"}, "it knows no device \"host\"", folder);
  expect_refused({"bench", "--device", "meta", "--vs", "torch"}, "leave one of them out", folder);
  expect_refused({"bench", "--device", "meta", "--steps", "3"}, "--steps", folder);
  expect_refused({"bench", "--device", "meta", "--profile", "none"}, "none", folder);
  expect_refused({"bench", "--device", "meta", "--set", "fsdp.prefetch=many"}, "fsdp.prefetch", folder);
  expect_refused({"bench", "grammar", "--device", "meta", "--gpus", "3"}, "grammar-tutor-tp: ", folder);
  expect_refused({"bench", "--device", "meta", "--set", "nccl.buffers=windows"}, "profile h200x8 has no collectives of windows", folder);
  expect_refused({"bench", "--device", "meta", "--set", "nccl.max_ctas=8"}, "it needs device = cuda", folder);
  expect_refused({"bench", "--device", "meta", "--linked", "--gpus", "1"}, "--linked is of what crosses between GPUs", folder);
  if (launch::gpus_available() == 0) expect_refused({"bench"}, "there is none", folder);
}

}  // namespace
}  // namespace shardbook::cli
