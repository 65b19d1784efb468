// What labs 01, 02 and 04 ask of a trace of PyTorch, on traces of two H200s: those of good scripts pass, each bad one fails
// with the message that is meant for it. tests/data/labs/traces/README.md says how they were made.
#include "engine/workbook/trace_predicates.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

const std::string root = SHARDBOOK_SOURCE_DIR;
const std::string traces = root + "/tests/data/labs/traces/";

class Traces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!timeline::can_gunzip()) GTEST_SKIP() << "built without zlib";
  }
};

base::Result<OwnTrace> opened(const std::vector<std::string>& places) {
  base::Result<timeline::Timeline> timeline = timeline::read(places);
  if (!timeline) return timeline.as_error();
  return own_trace(std::move(timeline).value());
}

TraceVerdict judged(const std::string& part, const std::vector<std::string>& places) {
  const base::Result<OwnTrace> trace = opened(places);
  EXPECT_TRUE(trace) << trace.error();
  if (!trace) return {};
  base::Result<TraceVerdict> verdict = judge_trace(trace.value(), part);
  EXPECT_TRUE(verdict) << verdict.error();
  return verdict ? verdict.value() : TraceVerdict{};
}

// "small_sums open_sums": what does not hold, in order.
std::string failed(const TraceVerdict& verdict) {
  std::string rules;
  for (const Predicate& one : verdict.predicates) {
    if (!one.holds) rules += (rules.empty() ? "" : " ") + one.rule;
  }
  return rules;
}
const Predicate& first_failed(const TraceVerdict& verdict) {
  static const Predicate none;
  for (const Predicate& one : verdict.predicates) {
    if (!one.holds) return one;
  }
  return none;
}
bool begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

TEST_F(Traces, OfGoodScriptsPass) {
  const std::vector<std::pair<std::string, std::string>> good = {{"01", "01/bucketed"}, {"01a", "01/bucketed"}, {"01b", "01/sharded"}, {"02", "02/hidden"}, {"02a", "02/hidden"},
                                                                 {"02b", "02/hidden-width128-connections8"}, {"02c", "02/hidden"}, {"04", "04/prefetch"}, {"04a", "04/prefetch"},
                                                                 {"04b", "04/prefetch"}, {"04c", "04/prefetch"}, {"04c", "04/no-prefetch"}, {"04a", "04/prefetch-sequences1"}};
  for (const auto& [part, folder] : good) {
    const TraceVerdict verdict = judged(part, {traces + folder});
    EXPECT_EQ(failed(verdict), "") << part << " " << folder;
    EXPECT_GE(verdict.predicates.size(), 2u) << part;
  }
}

TEST_F(Traces, OfBadScriptsFailWithTheMessageThatIsMeantForThem) {
  struct Bad {
    const char *part, *folder, *rules, *why;
  };
  const Bad all[] = {
      {"01", "01/flat", "open_sums", "It was issued when backward was over."},
      {"01", "01/naive", "small_sums open_sums", "Each costs its start, whatever it moves."},
      {"01a", "01/sharded", "small_sums", "No all-reduce stands in a step."},
      {"01b", "01/flat", "scattered gathered", "Every GPU gets the sum of everything"},
      {"01b", "04/prefetch", "gathered", "Compute reads the parameters in bf16"},
      {"02", "02/awaited", "open_input_gradients", "Each is awaited before the weight gradient"},
      {"02", "02/hidden-connections8", "open_input_gradients", "13 of 16 were issued before the weight gradient and began after it"},
      {"02", "02/forgotten-connections8", "both_ways", "The input gradient of a linear with cut outputs is each rank's summand"},
      {"02", "02/hidden-width128-connections8", "open_input_gradients", "The host is late"},
      {"02", "04/prefetch", "both_ways", "No linear with cut inputs is summed"},
      {"02b", "02/hidden", "regime", "This model is wide enough"},
      {"02c", "02/hidden-width128-connections8", "regime", "The GPUs wait for calls"},
      {"04", "04/no-prefetch", "prefetch open_gathers", "Calls of one group run in the order of issue"},
      {"04a", "04/no-prefetch", "prefetch", "Calls of one group run in the order of issue"},
      {"04", "04/prefetch-sync", "host_waits open_gathers", "What is issued behind a wait begins when the device has nothing left to do: 6 gathers, open for 15.2 ms"},
      {"04c", "04/prefetch-sync", "host_waits", "What is issued behind a wait begins when the device has nothing left to do: 6 gathers, open for 15.2 ms"},
      {"04", "04/prefetch-whole", "gathers", "Blocks stay whole after forward"},
      {"04", "04/prefetch-sequences1", "open_gathers", "Too little compute stands beside a gather"},
      {"04b", "04/prefetch-sequences1", "open_gathers", "Too little compute stands beside a gather"},
      {"04b", "04/prefetch-whole", "open_gathers", "The host is late"},
      {"04", "02/hidden", "gathers", "The model is one unit or none"},
  };
  for (const Bad& one : all) {
    const TraceVerdict verdict = judged(one.part, {traces + one.folder});
    EXPECT_EQ(failed(verdict), one.rules) << one.part << " " << one.folder;
    EXPECT_TRUE(begins(first_failed(verdict).why, one.why)) << one.part << " " << one.folder << ": " << first_failed(verdict).why;
    EXPECT_FALSE(first_failed(verdict).page.empty());
  }
}

TEST_F(Traces, WhatFailsNamesRankStepAndSpan) {
  EXPECT_TRUE(begins(first_failed(judged("04", {traces + "04/no-prefetch"})).place, "rank 0 · step 2 · all-gather of blocks.4, "));
  EXPECT_EQ(first_failed(judged("04", {traces + "04/prefetch-sync"})).place, "rank 0 · step 2 · cudaStreamSynchronize in aten::is_nonzero, for 99.9 ms");
  EXPECT_TRUE(begins(first_failed(judged("01", {traces + "01/flat"})).place, "rank 0 · step 2 · all-reduce, "));
}

// Each count by hand: six blocks and the rest of the model are seven units; four blocks have two sums each way.
TEST_F(Traces, CountsAreThoseOfTheScripts) {
  std::map<std::string, double> figures = judged("04", {traces + "04/prefetch"}).figures;
  EXPECT_EQ(figures["gathers_forward"], 7);
  EXPECT_EQ(figures["gathers_backward"], 6);
  EXPECT_EQ(figures["reductions"], 7);
  EXPECT_EQ(figures["gathers_ahead"], 5);
  EXPECT_EQ(judged("04", {traces + "04/no-prefetch"}).figures["gathers_ahead"], 0);
  EXPECT_EQ(judged("04", {traces + "04/prefetch-sync"}).figures["host_waits"], 6);
  figures = judged("02", {traces + "02/hidden"}).figures;
  EXPECT_EQ(figures["sums_forward"], 8);
  EXPECT_EQ(figures["sums_backward"], 8);
  EXPECT_EQ(judged("01", {traces + "01/naive"}).figures["sums"], 2 + 4 * 12 + 3);   // an embedding, blocks, a norm, a head
}

TEST_F(Traces, GathersAreOfTheUnitsInTheOrderOfUse) {
  const base::Result<OwnTrace> trace = opened({traces + "04/prefetch"});
  ASSERT_TRUE(trace) << trace.error();
  ASSERT_EQ(trace.value().steps.size(), 2u);
  for (const TracedStep& step : trace.value().steps) {
    for (const RankStep& rank : step.ranks) {
      std::string forward, backward;
      for (const Call& call : rank.calls) {
        if (call.op == timeline::CollectiveOp::all_gather) (call.backward ? backward : forward) += (call.unit.empty() ? "root" : call.unit) + " ";
      }
      EXPECT_EQ(forward, "root blocks.0 blocks.1 blocks.2 blocks.3 blocks.4 blocks.5 ");
      EXPECT_EQ(backward, "blocks.5 blocks.4 blocks.3 blocks.2 blocks.1 blocks.0 ");
    }
  }
}

// By an independent program: tests/data/labs/traces/independent.py.
TEST_F(Traces, OpenSharesAreTheIndependentOnes) {
  struct Share {
    const char *part, *folder, *figure;
    double percent;
  };
  const Share all[] = {{"01", "01/bucketed", "open_sums_percent", 8.42},   {"01", "01/flat", "open_sums_percent", 100},
                       {"01", "01/naive", "open_sums_percent", 100},       {"02", "02/hidden", "open_input_gradients_percent", 1.05},
                       {"02", "02/awaited", "open_input_gradients_percent", 100}, {"02", "02/hidden-connections8", "open_input_gradients_percent", 68.29},
                       {"04", "04/prefetch", "open_gathers_percent", 2.66}, {"04", "04/no-prefetch", "open_gathers_percent", 51.11},
                       {"04", "04/prefetch-sync", "open_gathers_percent", 50.08}, {"04", "04/prefetch-sequences1", "open_gathers_percent", 20.16}};
  for (const Share& one : all) {
    TraceVerdict verdict = judged(one.part, {traces + one.folder});
    EXPECT_NEAR(verdict.figures[one.figure], one.percent, 0.005) << one.folder;
  }
}

TEST_F(Traces, OfOthersPassToo) {
  // FSDP2 of 12 compiled blocks on four H200s; two of its ranks
  const std::string data = root + "/tests/metrics/data/";
  const TraceVerdict verdict = judged("04", {data + "fsdp_rank0.json.gz", data + "fsdp_rank1.json.gz"});
  EXPECT_TRUE(verdict.passed()) << failed(verdict);
}

TEST_F(Traces, OfTwoRunsDiffer) {
  const TraceVerdict verdict = judged("04", {traces + "04/prefetch/rank0.json.gz", traces + "04/no-prefetch/rank1.json.gz"});
  EXPECT_EQ(failed(verdict), "same_calls");
  EXPECT_TRUE(begins(first_failed(verdict).found, "in step 2 they differ: call 9 is all_gather of ")) << first_failed(verdict).found;
}

TEST_F(Traces, ThatCannotShowItAreOneSentence) {
  const std::string one = traces + "04/prefetch/rank0.json.gz";
  EXPECT_EQ(opened({one}).error(), one + " is one rank of 2: name the traces of all ranks, as a collective begins when its last rank comes");
  EXPECT_TRUE(begins(opened({root + "/experiments/captured/gpt-1.3b-tp4.tar.gz"}).error(), root + "/experiments/captured/gpt-1.3b-tp4.tar.gz"));
  EXPECT_NE(opened({root + "/experiments/captured/gpt-1.3b-tp4.tar.gz"}).error().find("no trace of PyTorch"), std::string::npos);
  EXPECT_EQ(judge_trace(opened({traces + "02/awaited"}).value(), "03").error(), "nothing is asked of traces of 03: labs 01, 02 and 04 and their parts have a script for PyTorch");

  // Two ranks of one kernel each: nothing but what the sentence misses changes from one to the next
  const Project project;
  const auto rank = [&](int number, const std::string& rows) {
    return project.write("rank" + std::to_string(number) + ".json", "{\"distributedInfo\": {\"rank\": " + std::to_string(number) + ", \"world_size\": 2}, \"baseTimeNanoseconds\": 0, \"traceEvents\": [" + rows +
                         "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1, \"ts\": 10, \"dur\": 2, \"args\": {\"correlation\": 5}},"
                         "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": 20, \"dur\": 5, \"args\": {\"correlation\": 5, \"stream\": 7, \"device\": 0}}]}");
  };
  const std::string step = "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 99},";
  const std::string engine = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"autograd::engine::evaluate_function: MmBackward0\", \"pid\": 1, \"tid\": 2, \"ts\": 30, \"dur\": 9},";
  const auto said = [&](const std::string& rows) {
    const base::Result<OwnTrace> trace = opened({rank(0, rows), rank(1, rows)});
    return trace ? std::string() : trace.error();
  };
  EXPECT_NE(said("").find(" has no steps: give torch.profiler.profile a schedule"), std::string::npos) << said("");
  EXPECT_NE(said(step).find(" has no rows of autograd"), std::string::npos) << said(step);
  EXPECT_TRUE(begins(said(step + engine), "no step of these 2 traces has a collective: was the script started by torchrun")) << said(step + engine);
}

// Each figure that a lab's text quotes from check stands there as check says it.
TEST_F(Traces, TheTextsQuoteWhatCheckFinds) {
  const auto plain = [](const std::string& content) {
    std::istringstream words(content);
    std::string all;
    for (std::string word; words >> word;) all += word + " ";
    return all;
  };
  const auto shown = [&](const std::string& part, const std::string& folder, const std::string& rule) {
    for (const Predicate& one : judged(part, {traces + folder}).predicates) {
      if (one.rule == rule) return one.found.substr(0, one.found.find(','));
    }
    return std::string("no such rule");
  };
  const auto expect_stated = [&](const std::string& lab, const std::string& before, const std::string& found, const std::string& after) {
    EXPECT_NE(plain(content_of(root + "/labs/" + lab + "/text.md")).find(before + found + after), std::string::npos) << lab << " should state '" << before << found << after << "'";
  };
  expect_stated("01_data_parallel", "`--sums bucketed` passes (", shown("01", "01/bucketed", "open_sums"), ")");
  expect_stated("01_data_parallel", "`flat` fails (", shown("01", "01/flat", "open_sums"), ")");
  expect_stated("01_data_parallel", "`naive` (", shown("01", "01/naive", "small_sums"), ")");
  expect_stated("02_tensor_parallel", "`--sums hidden` passes (", shown("02", "02/hidden", "open_input_gradients"), ")");
  expect_stated("02_tensor_parallel", "`awaited` fails (", shown("02", "02/awaited", "open_input_gradients"), ")");
  expect_stated("02_tensor_parallel", "`hidden --connections 8` (", shown("02", "02/hidden-connections8", "open_input_gradients"), ")");
  expect_stated("04_fsdp", "`--prefetch 1` passes (", shown("04", "04/prefetch", "open_gathers"), ")");
  expect_stated("04_fsdp", "`--prefetch 0` fails (", shown("04", "04/no-prefetch", "open_gathers"), ")");
  expect_stated("04_fsdp", "`--sync` (", shown("04", "04/prefetch-sync", "open_gathers"), ")");
  expect_stated("04_fsdp", "`--sequences 1` (", shown("04", "04/prefetch-sequences1", "open_gathers"), ")");
}

}  // namespace
}  // namespace shardbook::workbook
