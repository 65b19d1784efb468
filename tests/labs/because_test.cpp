// Every "because" of the labs and of notes 03, 04 and 06 is a claim: without its cause the effect must be gone.
//
// because.txt lists the sentences, each with the test that takes its cause away, and because_list_test.cpp holds the list and
// the pages together. The tests of this file are those that no room has of its own; figures_test.cpp has more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/labs/modelled.hpp"
#include "tests/labs/pages.hpp"

namespace shardbook::labs {
namespace {

namespace fs = std::filesystem;
using program::Command;
using program::CommandKind;
using program::Op;
using program::OpIndex;
using program::OpKind;
using program::Phase;

double mean_us(const Modelled& run, OpKind kind, Phase phase, const simulate::Change& changed = {}) {
  const Timing timing = run.clock().timing(changed);
  double sum = 0, count = 0;
  const std::vector<Op>& ops = run.issued().program().ops;
  for (OpIndex at = 0; at < ops.size(); ++at) {
    if (ops[at].desc.kind != kind || ops[at].key.phase != phase || ops[at].key.layer < 0) continue;
    sum += static_cast<double>(timing.took[at]) / 1e3;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

// Every collective of this kind takes `factor` times as long.
simulate::Change slower(const Modelled& run, OpKind kind, double factor) {
  simulate::Change made;
  made.factor = [&run, kind, factor](base::Rank rank, OpIndex op) {
    return run.issued().program(static_cast<int>(rank)).ops[op].desc.kind == kind ? factor : 1.0;
  };
  return made;
}

// ---- Lab 00, run 4; lab 02, part a ----------------------------------------------------------------

TEST(Because, WhatComesNextNeedsAForwardSumSoNothingHidesIt) {
  const Modelled run({{"model", "gpt-1.3b"}, {"tp", "4"}, {"sequences", "8"}});
  const program::Program& program = run.issued().program();
  std::vector<OpIndex> forward;
  std::vector<program::SourceLine> awaiting;
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const Command& command = program.commands[at];
    if (command.kind != CommandKind::op || program.ops[command.op].desc.kind != OpKind::all_reduce || program.ops[command.op].key.phase != Phase::forward) continue;
    forward.push_back(command.op);
    // The next op's stream waits for what this one records
    for (std::size_t next = at + 1; next < program.commands.size() && program.commands[next].kind != CommandKind::op; ++next) {
      if (program.commands[next].kind == CommandKind::wait_event && program.commands[next].stream != command.stream) awaiting.push_back(program.commands[next].where);
    }
  }
  ASSERT_GE(forward.size(), 48u);
  ASSERT_FALSE(awaiting.empty());
  const auto exposed = [&](const simulate::Change& changed) { return static_cast<double>(run.clock().timing(changed).exposed(forward)); };
  EXPECT_GT(exposed({}), 0.95 * static_cast<double>(forward.size()) * 1e3 * mean_us(run, OpKind::all_reduce, Phase::forward)) << "each is exposed whole";
  simulate::Change not_needed;
  not_needed.without_waits = awaiting;
  EXPECT_LT(exposed(not_needed), 0.1 * exposed({}));
}

// Asked for by the rows that ranks hold, the same matmuls wait for the rows of one rank each, and the rest crosses beside them.
TEST(Because, AMatmulOfAllRowsWaitsForAllOfThemForItIsAskedForAtOnce) {
  const auto exposed = [](const char* overlap) {
    const Modelled run({{"model", "gpt-1.3b"}, {"tp", "2"}, {"sequences", "8"}, {"set", "tensor_parallel.sequence=cut"}, {"set", std::string("tensor_parallel.overlap=") + overlap}});
    const std::vector<Op>& ops = run.issued().program().ops;
    std::vector<OpIndex> crossing;
    for (OpIndex at = 0; at < ops.size(); ++at) {
      const bool of_a_block = ops[at].key.layer >= 0 && ops[at].key.phase == Phase::forward;
      if (of_a_block && program::class_of(ops[at].desc.kind) == program::OpClass::communication) crossing.push_back(at);
    }
    EXPECT_FALSE(crossing.empty());
    return static_cast<double>(run.clock().timing({}).exposed(crossing));
  };
  const double at_once = exposed("none"), in_pieces = exposed("pieces");
  EXPECT_GT(at_once, 5e6) << "ns of a step";
  EXPECT_LT(in_pieces, 0.4 * at_once);
}

TEST(Because, ABackwardSumTakesLongerThanAForwardOneForItSharesTheGpu) {
  const Modelled run({{"model", "gpt-1.3b"}, {"tp", "4"}, {"sequences", "8"}, {"set", "tensor_parallel.input_gradient_sum=overlapped"}});
  const Modelled alone({{"model", "gpt-1.3b"}, {"tp", "4"}, {"sequences", "8"}, {"set", "tensor_parallel.input_gradient_sum=awaited"}});
  EXPECT_GT(mean_us(run, OpKind::all_reduce, Phase::backward), 1.3 * mean_us(run, OpKind::all_reduce, Phase::forward));
  EXPECT_NEAR(mean_us(alone, OpKind::all_reduce, Phase::backward), mean_us(alone, OpKind::all_reduce, Phase::forward), 0.02 * mean_us(alone, OpKind::all_reduce, Phase::forward));
}

// Behind a weight gradient it waits for room. With a head start it runs beside it, and lies open only while compute takes its moment.
TEST(Because, ABackwardSumLiesOpenForAWeightGradientCameFirst) {
  base::Result<simulate::Profile> profile = simulate::find_profile("h200x8");
  ASSERT_TRUE(profile.ok());
  const simulate::DeviceCosts& device = profile.value().device;
  for (const auto& [sequence, kind] : {std::pair("whole", OpKind::all_reduce), std::pair("cut", OpKind::reduce_scatter)}) {
    SCOPED_TRACE(sequence);
    const auto exposed = [sequence = sequence, kind = kind](const char* sum) {
      const Modelled run({{"model", "gpt-1.3b"}, {"tp", "2"}, {"sequences", "4"}, {"set", std::string("tensor_parallel.sequence=") + sequence}, {"set", std::string("tensor_parallel.input_gradient_sum=") + sum}});
      const std::vector<Op>& ops = run.issued().program().ops;
      const Timing timing = run.clock().timing({});
      std::vector<OpIndex> sums;
      double pauses = 0;
      for (OpIndex at = 0; at < ops.size(); ++at) {
        if (ops[at].key.layer < 0 || ops[at].key.phase != Phase::backward) continue;
        if (ops[at].desc.kind == kind) sums.push_back(at);
        if (ops[at].desc.name == std::string_view(program::pause_name)) pauses += static_cast<double>(timing.took[at]);
      }
      EXPECT_EQ(sums.size(), 48u);
      return std::pair(static_cast<double>(timing.exposed(sums)), pauses);
    };
    const auto [behind, none] = exposed("overlapped");
    const auto [first, pauses] = exposed("first");
    EXPECT_GT(behind, 1.5e6) << "ns of a step";
    EXPECT_EQ(none, 0);
    EXPECT_GE(pauses, 48.0 * program::pause_ns);
    // No sum lies open for longer than compute pauses before the weight gradient, and hears that it may
    EXPECT_LE(first, pauses + 48 * (device.event_latency_ns + device.stream_gap_ns + 1));
    if (kind == OpKind::all_reduce) {
      EXPECT_LT(first, 0.1 * behind);
    }
  }
}

// ---- Lab 01 -----------------------------------------------------------------------------------------

TEST(Because, BucketsRunBesideBackwardButForTheLastTwo) {
  const auto run = [](const char* choice) { return Modelled({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", choice}}); };
  const Modelled buckets = run("data_parallel.bucket_mib=32"), flat = run("data_parallel.reduce=flat");
  const std::vector<OpIndex> sums = buckets.issued().collectives();
  ASSERT_EQ(sums.size(), 8u) << "seven buckets, and the norm's";
  const Timing timing = buckets.clock().timing();
  const auto open = [&](std::size_t at) { return static_cast<double>(timing.exposed({sums[at]})) / static_cast<double>(timing.took[sums[at]]); };
  for (std::size_t at = 0; at < 5; ++at) EXPECT_LT(open(at), 0.1) << at;
  EXPECT_GT(open(6), 0.99) << "the first layer's gradient comes last: nothing is left to run beside its sum";
  // Backward is what hides: where it takes no time, every bucket lies open, and buckets save next to nothing
  const simulate::Change no_compute = change({.compute = 0});
  EXPECT_GT(flat.ms() - buckets.ms(), 0.7);
  EXPECT_LT(flat.ms(no_compute) - buckets.ms(no_compute), 0.25);
}

// ---- Lab 02 -----------------------------------------------------------------------------------------

TEST(Because, TwoAndFourGpusTakeTheTutorAsLongForTheirHostsIssueTheSameCalls) {
  const Modelled two(Options{{"tp", "2"}}), four(Options{{"tp", "4"}});
  EXPECT_EQ(two.issued().program().commands.size(), four.issued().program().commands.size());
  EXPECT_DOUBLE_EQ(two.ms(), four.ms());
  for (const simulate::Change& device : {change({.compute = 0.5}), change({.communication = 0.5})}) {
    EXPECT_NEAR(two.ms(device), two.ms(), 0.01 * two.ms()) << "nothing that the device does decides";
    EXPECT_NEAR(four.ms(device), four.ms(), 0.01 * four.ms());
  }
  EXPECT_GT(std::abs(two.ms(change({.host = 0})) - four.ms(change({.host = 0}))), 0.01) << "with a host that is free they differ";
}

TEST(Because, SumsOverMoreGpusCostMore) {
  const Modelled run(Options{{"tp", "2"}});
  const auto& over = run.clock().profile().collectives.at(OpKind::all_reduce);
  for (base::Bytes bytes : {std::int64_t{0}, std::int64_t{32} << 20}) {
    EXPECT_LT(simulate::at(over.at(2), bytes), simulate::at(over.at(4), bytes)) << bytes;
    EXPECT_LT(simulate::at(over.at(4), bytes), simulate::at(over.at(8), bytes)) << bytes;
  }
}

// The batch at which two GPUs begin to win on the tutor: predicted from what the kinds of work cost alone, and found.
struct Parts {
  double host = 0, compute = 0, forward_sums = 0, backward_sums = 0, weight_gradients = 0, sums = 0, found = 0;   // ns; sums: how many
  double side_by_side = 0, beside = 0;   // those weight gradients that a sum runs beside; how many times as long they then take
};

Parts tutor_parts(int sequences, int tp, int width = 128) {
  const Modelled run({{"tp", std::to_string(tp)}, {"width", std::to_string(width)}, {"heads", std::to_string(width / 32)}, {"sequences", std::to_string(sequences)}, {"micro-batches", "1"}});
  Parts parts;
  parts.found = static_cast<double>(run.clock().step_ns());
  parts.host = static_cast<double>(run.clock().step_ns(change({.compute = 0, .communication = 0, .memory = 0, .launch = 0, .contention = 0})));
  parts.compute = static_cast<double>(run.clock().step_ns(change({.communication = 0, .host = 0, .contention = 0})));
  const Timing alone = run.clock().timing(change({.host = 0, .contention = 0}));
  const simulate::CostModel model(run.clock().profile());
  const std::vector<Op>& ops = run.issued().program().ops;
  for (OpIndex at = 0; at < ops.size(); ++at) {
    const double took = static_cast<double>(alone.took[at]);
    if (ops[at].desc.kind == OpKind::gemm && std::string_view(ops[at].desc.name).find("weight_gradient") != std::string_view::npos) {
      parts.weight_gradients += took;
      // A column-parallel one: the sum of its input's gradient has just been issued
      if (at > 0 && program::class_of(ops[at - 1].desc.kind) == program::OpClass::communication) {
        parts.side_by_side += took;
        parts.beside += took * model.gemm_beside(ops[at].desc.gemm, ops[at].desc.dtype);
      }
    }
    if (program::class_of(ops[at].desc.kind) != program::OpClass::communication) continue;
    ++parts.sums;
    (ops[at].key.phase == Phase::backward ? parts.backward_sums : parts.forward_sums) += took;
  }
  if (parts.side_by_side > 0) parts.beside /= parts.side_by_side;
  return parts;
}

// What the rule of lab 02 says of a step, and what it says with costs that it leaves out.
enum Rule { lab, with_gaps, with_hiding, rules };

double by_the_rule(const Parts& parts, Rule rule, const simulate::Profile& profile) {
  double device = parts.compute + parts.forward_sums + std::max(0.0, parts.backward_sums - parts.weight_gradients);
  if (rule >= with_gaps) device += 2 * profile.device.event_latency_ns * parts.sums;
  // A weight gradient lasts `beside` times as long under a sum, which does that over its own factor meanwhile and the rest after it
  if (rule >= with_hiding) device += parts.beside * (1 - 1 / profile.contention.front().collective_by_gemm) * parts.side_by_side;
  return std::max(parts.host, device);
}

TEST(Because, TheWidthTurnsLaterThanPredictedForEventsAreAwaitedWithAGap) {
  // The width at which two steps are equal, between neighbours in a line
  const auto turn = [](const auto& step) {
    double before = 0;
    for (int width = 640; width <= 1024; width += 64) {
      const double difference = step(width, 2) - step(width, 1);
      if (difference <= 0) return width - 64 * -difference / (before - difference);
      before = difference;
    }
    return 0.0;
  };
  const auto resolved = [&](const simulate::Change& changed) {
    return turn([&](int width, int tp) { return Modelled({{"tp", std::to_string(tp)}, {"width", std::to_string(width)}, {"heads", std::to_string(width / 32)}}).ms(changed); });
  };
  const double found = resolved({}), no_gaps = resolved(change({.launch = 0})), no_contention = resolved(change({.contention = 0}));
  const Modelled tutor(Options{});
  const auto ruled = [&](Rule rule) { return turn([&](int width, int tp) { return by_the_rule(tutor_parts(16, tp, width), tp == 1 ? lab : rule, tutor.clock().profile()); }); };
  // The solution of lab 02c has these three
  EXPECT_NEAR(found, 748, 0.5);
  EXPECT_NEAR(ruled(lab), 725, 0.5);
  EXPECT_NEAR(ruled(with_gaps), 753, 0.5);
  EXPECT_LT(std::abs(ruled(with_gaps) - found), 0.5 * (found - ruled(lab))) << "gaps are most of what the rule leaves out";
  EXPECT_GT(found, no_gaps + 20) << "without them it turns earlier";
  EXPECT_LT(found - no_contention, 0.5 * (found - no_gaps)) << "what running together costs is less of why";
}

TEST(Because, TheTutorsBatchTurnsWhereSumsPayForGapsAndForHiding) {
  const Modelled tutor(Options{{"tp", "2"}});
  const simulate::Profile& profile = tutor.clock().profile();
  const simulate::Contention& together = profile.contention.front();
  ASSERT_EQ(together.ranks, 2);
  const double gap_ns = profile.device.event_latency_ns;
  const auto predicted = [&](const Parts& parts, Rule rule) { return by_the_rule(parts, rule, profile); };
  // Tokens at which the difference of two steps changes its sign, between neighbours in a line
  const int sequence = 128;
  double turn[rules + 1] = {}, before[rules + 1] = {}, beside = 0;
  for (int sequences = 896; sequences <= 1664; sequences += 128) {
    const Parts one = tutor_parts(sequences, 1), two = tutor_parts(sequences, 2);
    for (int rule = lab; rule <= rules; ++rule) {
      const double difference = rule == rules ? two.found - one.found : predicted(two, Rule(rule)) - (rule == lab ? predicted(one, lab) : one.compute);
      if (turn[rule] == 0 && before[rule] > 0 && difference <= 0) turn[rule] = sequence * (sequences - 128 * -difference / (before[rule] - difference));
      before[rule] = difference;
    }
    if (turn[rules] != 0 && beside == 0) beside = two.beside;
  }
  const double found = turn[rules];
  EXPECT_LT(turn[lab], 0.8 * found) << "what the lab's rule leaves out";
  EXPECT_LT(turn[with_gaps], 0.9 * found);
  EXPECT_NEAR(turn[with_hiding], found, 0.05 * found);
  // Note 03 has these figures
  const std::string note = prose_of(read(fs::path(SHARDBOOK_SOURCE_DIR) / "notes/03_tensor_parallel.md"));
  const auto says = [&](const char* form, double value) {
    char shown[64];
    std::snprintf(shown, sizeof shown, form, value);
    EXPECT_NE(note.find(shown), std::string::npos) << "note 03 lacks '" << shown << "': " << value;
  };
  for (double tokens : turn) says("| %.0f 000 |", tokens / 1000);
  says("to what awaits it: %.1f µs each", gap_ns / 1e3);
  says("a weight gradient lasts %.1f times as long", beside);
  says("the sum %.2f times", together.collective_by_gemm);
  says("is %.0f %% early", 100 * (1 - turn[with_hiding] / found));
  says("the first %.0f %% early", 100 * (1 - turn[lab] / found));
}

// ---- Lab 04 -----------------------------------------------------------------------------------------

TEST(Because, OrderMattersMoreInBackwardForGathersAndReductionsShareAQueue) {
  const auto run = [](Options more) {
    more.insert(more.end(), {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}});
    return Modelled(more);
  };
  const Modelled none = run({{"prefetch", "0"}}), forward = run({{"set", "fsdp.backward_prefetch=none"}}), both = run({});
  const auto free_sums = [](const Modelled& of) { return of.ms(slower(of, OpKind::reduce_scatter, 0)); };
  const double in_forward = none.ms() - forward.ms(), in_backward = forward.ms() - both.ms();
  EXPECT_GT(in_backward, 2 * in_forward);
  // Reductions that cost nothing hold no gather up: then asking early gives in backward no more than it gives in forward
  EXPECT_LT(free_sums(forward) - free_sums(both), free_sums(none) - free_sums(forward));
}

TEST(Because, TheBatchTurnsEarlierThanPredictedForMatmulsLoseBesideCollectives) {
  const auto open = [](int tokens, const simulate::Change& changed) {
    const Modelled run({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequence", "256"}, {"sequences", std::to_string(8 * tokens / 256)}, {"micro-batches", "1"}});
    std::vector<OpIndex> gathers;
    double all = 0;
    const Timing timing = run.clock().timing(changed);
    for (OpIndex op : run.issued().collectives()) {
      const Op& one = run.issued().program().ops[op];
      if (one.desc.kind != OpKind::all_gather || one.key.layer < 0) continue;
      gathers.push_back(op);
      all += static_cast<double>(timing.took[op]);
    }
    return static_cast<double>(timing.exposed(gathers)) / all;
  };
  EXPECT_LT(open(2304, {}), 0.1);
  EXPECT_GT(open(2304, change({.contention = 0})), 0.1) << "the rule predicts 2495 tokens";
}

TEST(Because, BackwardIsTheTighterOfTheTwoForGradientsAreSummedInFp32) {
  const Modelled run({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}, {"micro-batches", "1"}});
  const Timing timing = run.clock().timing(change({.contention = 0}));
  double forward = 0, backward = 0;
  const std::vector<Op>& ops = run.issued().program().ops;
  for (OpIndex at = 0; at < ops.size(); ++at) {
    if (ops[at].key.layer != 12 || program::class_of(ops[at].desc.kind) != program::OpClass::compute) continue;
    (ops[at].key.phase == Phase::forward ? forward : backward) += static_cast<double>(timing.took[at]);
  }
  const base::Bytes parameters = 12 * 2048 * 2048;
  const auto over_8 = [&](OpKind kind, base::Bytes bytes) { return simulate::at(run.clock().profile().collectives.at(kind).at(8), bytes); };
  const double gather = over_8(OpKind::all_gather, 2 * parameters);
  const auto tightness = [&](base::Bytes of_a_gradient) { return (gather + over_8(OpKind::reduce_scatter, of_a_gradient * parameters)) / backward; };
  EXPECT_GT(tightness(4), 1.3 * gather / forward);
  EXPECT_LT(tightness(2), 1.1 * gather / forward) << "in bf16: as tight as forward";
}

// ---- Note 06 ----------------------------------------------------------------------------------------

// The buffers that ops of this name write in backward.
std::set<program::BufferId> written_in_backward(const Modelled& run, const std::string& name) {
  std::set<program::BufferId> all;
  for (const Op& op : run.issued().program().ops) {
    if (op.desc.name != name || op.key.phase != Phase::backward) continue;
    for (int use = 0; use < op.desc.uses.size(); ++use) {
      if ((op.desc.written_mask >> use & 1) != 0) all.insert(op.desc.uses[use].buffer);
    }
  }
  return all;
}

// How often in two steps something is written into this buffer that a use of another block may still need, when the ops that
// `moves` picks run on a stream of their own and not where they were issued.
int overwritten(const Modelled& run, program::BufferId buffer, const std::function<bool(const Op&)>& moves) {
  program::Program program = run.issued().program();
  program::Catalogue catalogue = run.issued().catalogue();
  const auto other = static_cast<program::StreamId>(catalogue.streams.size());
  catalogue.streams.push_back({"other"});
  for (Command& command : program.commands) {
    if (command.kind == CommandKind::op && moves(program.ops[command.op])) command.stream = program.ops[command.op].stream = other;
  }
  int found = 0;
  for (const check::Race& race : check::races(catalogue, {&program, &program})) {
    const bool of_two_blocks = program.ops[race.first.op].key.layer != program.ops[race.second.op].key.layer;
    found += race.buffer == buffer && race.second_writes && of_two_blocks;
  }
  return found;
}

const auto none_moves = [](const Op&) { return false; };

TEST(Because, OneRoundedGradientIsEnoughForOneStreamWritesAndReadsIt) {
  const Modelled run(Options{{"fsdp", "4"}, {"set", "fsdp.reduce_dtype=bf16"}});
  const std::vector<program::BufferInfo>& buffers = run.issued().catalogue().buffers;
  const auto rounded = std::find_if(buffers.begin(), buffers.end(), [](const program::BufferInfo& one) { return one.name == "fsdp.gradient_rounded"; });
  ASSERT_NE(rounded, buffers.end());
  const auto buffer = static_cast<program::BufferId>(rounded - buffers.begin());
  const auto rounds = [&](const Op& op) {
    for (int use = 0; use < op.desc.uses.size(); ++use) {
      if ((op.desc.written_mask >> use & 1) != 0 && op.desc.uses[use].buffer == buffer) return true;
    }
    return false;
  };
  EXPECT_EQ(overwritten(run, buffer, none_moves), 0);
  EXPECT_GE(overwritten(run, buffer, rounds), 4) << "rounded on another stream, a block's gradient meets that of the block before";
}

TEST(Because, OneSquareIsEnoughForBlocksAreComputedAgainOneAfterTheOther) {
  const auto run = [](const char* recompute) { return Modelled(Options{{"fsdp", "2"}, {"set", std::string("activations.recompute=") + recompute}}); };
  EXPECT_TRUE(written_in_backward(run("none"), "attention_scores").empty());
  for (const char* recompute : {"selective", "full"}) {
    const Modelled again = run(recompute);
    const std::set<program::BufferId> squares = written_in_backward(again, "attention_scores");
    ASSERT_EQ(squares.size(), 1u) << recompute << ": one for all blocks";
    EXPECT_EQ(overwritten(again, *squares.begin(), none_moves), 0) << recompute;
    // Two blocks at work at a time: one writes where the other still reads
    const auto every_other = [](const Op& op) { return op.key.phase == Phase::backward && op.key.layer % 2 == 1; };
    EXPECT_GE(overwritten(again, *squares.begin(), every_other), 2) << recompute;
  }
}

// One is used and the next is gathered; without that, half is enough.
TEST(Because, UnitsOfHalfTheBlocksHoldAllForTwoAreWholeAtOnce) {
  const auto whole_blocks = [](const char* blocks, const char* prefetch) {
    const Modelled run(Options{{"fsdp", "2"}, {"prefetch", prefetch}, {"set", std::string("fsdp.blocks_a_unit=") + blocks}});
    base::Bytes bytes = 0;
    for (const program::BufferInfo& one : run.issued().catalogue().buffers) bytes += one.name.starts_with("fsdp.gathered.") ? one.bytes : 0;
    return bytes;
  };
  const base::Bytes all = whole_blocks("4", "1");
  EXPECT_GT(all, 0);
  EXPECT_EQ(whole_blocks("2", "1"), all);
  EXPECT_EQ(whole_blocks("2", "0"), all / 2);
}

TEST(Because, AShardStandsBesideWhatIsWholeForAGatherReadsTheOneAndWritesTheOther) {
  const auto held = [](const Modelled& run, program::MemoryKind kind) {
    base::Bytes bytes = 0;
    for (const program::BufferInfo& one : run.issued().catalogue().buffers) bytes += one.kind == kind ? one.bytes : 0;
    return bytes;
  };
  const Modelled whole(Options{{"dp", "4"}}), zero_2(Options{{"fsdp", "4"}, {"reshard", "false"}});
  int gathers = 0;
  for (OpIndex at : zero_2.issued().collectives()) {
    const Op& op = zero_2.issued().program().ops[at];
    if (op.desc.kind != OpKind::all_gather) continue;
    ++gathers;
    for (int use = 0; use < op.desc.uses.size(); ++use) {
      const program::MemoryKind kind = zero_2.issued().catalogue().buffers[op.desc.uses[use].buffer].kind;
      EXPECT_EQ(kind, (op.desc.written_mask >> use & 1) != 0 ? program::MemoryKind::gathered : program::MemoryKind::parameter);
    }
  }
  EXPECT_GT(gathers, 0);
  const base::Bytes all = held(whole, program::MemoryKind::parameter);
  EXPECT_NEAR(static_cast<double>(held(zero_2, program::MemoryKind::gathered)), static_cast<double>(all), 0.01 * static_cast<double>(all));
  EXPECT_NEAR(static_cast<double>(held(zero_2, program::MemoryKind::parameter)), static_cast<double>(all) / 4, 0.01 * static_cast<double>(all));
  // Nothing is gathered where all of it is kept, and there is no second copy
  EXPECT_EQ(held(whole, program::MemoryKind::gathered), 0);
}

}  // namespace
}  // namespace shardbook::labs
