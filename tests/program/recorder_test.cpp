// Is what was issued written down whole, once, and without allocating?
#include "engine/program/recorder.hpp"

#include <gtest/gtest.h>

#include "tests/program/allocations.hpp"
#include "tests/program/small_step.hpp"

namespace shardbook::program {
namespace {

TEST(Recorder, StoresTheSameProgramOnce) {
  Recorder recorder(0);
  SmallStep step(recorder);
  const std::uint32_t first = step.step(0).program;
  const std::uint32_t second = step.step(1).program;
  EXPECT_EQ(first, second);
  EXPECT_EQ(recorder.programs().size(), 1u);
}

TEST(Recorder, StoresAnotherProgramBesideTheFirstAndFindsTheFirstAgain) {
  Recorder recorder(0);
  SmallStep step(recorder);
  EXPECT_EQ(step.step(0).program, 0u);
  EXPECT_EQ(step.step(1, false).program, 1u);
  EXPECT_EQ(step.step(2).program, 0u);
  EXPECT_EQ(recorder.programs().size(), 2u);
}

TEST(Recorder, OfAStepThatNobodyWillAskForHoldsNoMoreThanItsNumberAndItsWindow) {
  Recorder recorder(0);
  SmallStep step(recorder);
  step.step(0);
  const std::size_t before = allocation_count();
  for (std::int64_t number = 1; number < 1000; ++number) {
    recorder.begin_step(number, false);
    EXPECT_TRUE(recorder.in_step());
    EXPECT_FALSE(recorder.records());
    const StepTimes& times = recorder.end_step();
    EXPECT_EQ(times.step, number);
    EXPECT_EQ(times.program, no_program);
    EXPECT_TRUE(times.issued.empty() && times.ran.empty());
    EXPECT_LE(times.window.start, times.window.end);
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(recorder.programs().size(), 1u);
  EXPECT_EQ(step.step(2000).program, 0u) << "the step after it is recorded as ever";
}

TEST(Recorder, AllocatesNothingInAStepLikeTheOneBefore) {
  Recorder recorder(0);
  SmallStep step(recorder);
  step.step(0);
  step.step(1);
  const std::size_t before = allocation_count();
  step.step(2);
  EXPECT_EQ(allocation_count(), before);
}

TEST(Recorder, TimesEachCommandFromItsCallToItsEnd) {
  Recorder recorder(0);
  SmallStep step(recorder);
  const StepTimes& times = step.step(7);
  const Program& program = *recorder.programs()[times.program];
  EXPECT_EQ(times.step, 7);
  ASSERT_EQ(times.issued.size(), program.commands.size());
  ASSERT_EQ(times.ran.size(), program.ops.size());
  base::Nanoseconds last = times.window.start;
  for (const TimeSpan& call : times.issued) {
    EXPECT_LE(last, call.start);
    EXPECT_LE(call.start, call.end);
    last = call.start;
  }
  EXPECT_LE(last, times.window.end);
  for (const TimeSpan& ran : times.ran) EXPECT_GT(ran.start, ran.end) << "what no device told is not known";
}

TEST(Recorder, CountsGenerationsOfEventsAndBuffersFromEachStepsBegin) {
  Recorder recorder(0);
  SmallStep step(recorder);
  step.step(0);
  const StepTimes& times = step.step(1);
  const Program& program = *recorder.programs()[times.program];
  ASSERT_EQ(program.ops.size(), 4u);
  // The first gather finds the whole parameter unwritten, the use after it written once, and so on.
  EXPECT_EQ(program.ops[0].desc.uses[1].generation, 0u);
  EXPECT_EQ(program.ops[1].desc.uses[0].generation, 1u);
  EXPECT_EQ(program.ops[2].desc.uses[1].generation, 1u);
  EXPECT_EQ(program.ops[3].desc.uses[0].generation, 2u);
  EXPECT_EQ(program.ops[0].desc.collective.sequence, 0u);
  EXPECT_EQ(program.ops[2].desc.collective.sequence, 1u);
  EXPECT_EQ(program.commands.back().kind, CommandKind::host_wait);
  EXPECT_EQ(program.commands.back().generation, 2u);
  EXPECT_EQ(recorder.host_waits(), 1);
}

TEST(Recorder, NamesOpsByTheScopesAroundThem) {
  Recorder recorder(0);
  SmallStep step(recorder);
  recorder.begin_step(0);
  {
    Scope outer(recorder, Phase::backward, 3, 1);
    recorder.op(step.compute, OpDesc("a", OpKind::pointwise, base::DType::f32), {"a.cpp", 1});
    {
      Scope inner(recorder, Phase::reduce);
      recorder.op(step.compute, OpDesc("b", OpKind::pointwise, base::DType::f32), {"a.cpp", 2});
    }
    recorder.op(step.compute, OpDesc("c", OpKind::pointwise, base::DType::f32), {"a.cpp", 3});
  }
  const Program& program = *recorder.programs()[recorder.end_step().program];
  EXPECT_EQ(program.ops[0].key.phase, Phase::backward);
  EXPECT_EQ(program.ops[0].key.layer, 3);
  EXPECT_EQ(program.ops[1].key.phase, Phase::reduce);
  EXPECT_EQ(program.ops[1].key.layer, 3);
  EXPECT_EQ(program.ops[1].key.micro_batch, 1);
  EXPECT_EQ(program.ops[1].key.n, 0);
  EXPECT_EQ(program.ops[2].key.phase, Phase::backward);
  EXPECT_EQ(program.ops[2].key.n, 1);
}

TEST(Recorder, RefusesACommandOutsideOfAStep) {
  Recorder recorder(0);
  SmallStep step(recorder);
  EXPECT_THROW(step.issue(), base::Failure);
}

// --- The hash ---------------------------------------------------------------------------------------

std::uint64_t hash_of_step(bool wait_before_reuse, base::Bytes bytes, std::vector<base::Rank> group = {0, 1}) {
  Recorder recorder(0);
  if (group != std::vector<base::Rank>{0, 1}) recorder.add_group({"dp_shard", group});
  SmallStep step(recorder);
  if (group != std::vector<base::Rank>{0, 1}) step.group = 0;
  const StepTimes& times = step.step(0, wait_before_reuse, bytes);
  return recorder.program_hashes()[times.program];
}

TEST(Hash, IsEqualForTheSameCommands) { EXPECT_EQ(hash_of_step(true, 2048), hash_of_step(true, 2048)); }

TEST(Hash, DiffersWhenAWaitIsDropped) { EXPECT_NE(hash_of_step(true, 2048), hash_of_step(false, 2048)); }

TEST(Hash, DiffersWhenASizeDiffers) { EXPECT_NE(hash_of_step(true, 2048), hash_of_step(true, 1024)); }

TEST(Hash, CountsGroupsBySizeNotByTheirMembers) {
  EXPECT_EQ(hash_of_step(true, 2048), hash_of_step(true, 2048, {2, 3}));
  EXPECT_NE(hash_of_step(true, 2048), hash_of_step(true, 2048, {0, 1, 2}));
}

TEST(Hash, OfTheCollectiveOrderSeesNothingElse) {
  Recorder left(0), right(1);
  SmallStep with(left), without(right);
  const Program& waits = *left.programs()[with.step(0).program];
  const Program& does_not = *right.programs()[without.step(0, false).program];
  EXPECT_NE(hash(waits, left.catalogue()), hash(does_not, right.catalogue()));
  EXPECT_EQ(collective_order_hash(waits, left.catalogue()), collective_order_hash(does_not, right.catalogue()));
}

TEST(Hash, OfTheCollectiveOrderLeavesOutWhatRanksMayCallDifferently) {
  const auto hash_with = [](OpKind kind, base::Bytes bytes) {
    Recorder recorder(0);
    const StreamId stream = recorder.add_stream("comm");
    const GroupId group = recorder.add_group({"tp", {0, 1, 2}});
    recorder.begin_step(0);
    const auto call = [&](OpKind of, base::Bytes size) {
      recorder.op(stream, OpDesc("call", of, base::DType::f32).collective_of({group, recorder.next_sequence(group), size, -1}), {"test.cpp", 1});
      recorder.issued();
    };
    if (bytes > 0) call(kind, bytes);
    call(OpKind::all_reduce, 64);
    return collective_order_hash(*recorder.programs()[recorder.end_step().program], recorder.catalogue());
  };
  const std::uint64_t alone = hash_with(OpKind::all_gather, 0);
  EXPECT_EQ(hash_with(OpKind::send, 32), alone) << "the third rank calls none";
  EXPECT_EQ(hash_with(OpKind::recv, 32), alone);
  EXPECT_EQ(hash_with(OpKind::all_to_all, 32), hash_with(OpKind::all_to_all, 48));
  EXPECT_NE(hash_with(OpKind::all_to_all, 32), alone);
  EXPECT_NE(hash_with(OpKind::all_gather, 32), hash_with(OpKind::all_gather, 48));
}

// --- The edges --------------------------------------------------------------------------------------

bool has_edge(const std::vector<Edge>& edges, OpIndex from, OpIndex to, EdgeKind kind) {
  for (const Edge& edge : edges) {
    if (edge.from == from && edge.to == to && edge.kind == kind) return true;
  }
  return false;
}

TEST(Edges, SayWhyEachOpCannotStartEarlier) {
  Recorder recorder(0);
  SmallStep step(recorder);
  const Program& program = *recorder.programs()[step.step(0).program];
  const std::vector<Edge> found = edges(program);
  EXPECT_TRUE(has_edge(found, 0, 1, EdgeKind::event));         // gather 0 before its use
  EXPECT_TRUE(has_edge(found, 2, 3, EdgeKind::event));         // gather 1 before its use
  EXPECT_TRUE(has_edge(found, 1, 2, EdgeKind::buffer_reuse));  // use 0 before gather 1 overwrites
  EXPECT_TRUE(has_edge(found, 0, 2, EdgeKind::stream));
  EXPECT_TRUE(has_edge(found, 1, 3, EdgeKind::stream));
  EXPECT_TRUE(has_edge(found, 0, 2, EdgeKind::communicator));
  EXPECT_EQ(found.size(), 6u);
}

TEST(Edges, NameTheCommandThatRecordedTheAwaitedEvent) {
  Recorder recorder(0);
  SmallStep step(recorder);
  const Program& program = *recorder.programs()[step.step(0).program];
  for (const Edge& edge : edges(program)) {
    if (edge.kind != EdgeKind::event && edge.kind != EdgeKind::buffer_reuse) continue;
    const Command& recorded = program.commands.at(edge.record_command);
    EXPECT_EQ(recorded.kind, CommandKind::record_event);
    EXPECT_EQ(recorded.where.line, edge.kind == EdgeKind::event ? 11u : 13u);
  }
}

TEST(Edges, LoseTheReuseEdgeWithItsWait) {
  Recorder recorder(0);
  SmallStep step(recorder);
  const Program& program = *recorder.programs()[step.step(0, false).program];
  for (const Edge& edge : edges(program)) EXPECT_NE(edge.kind, EdgeKind::buffer_reuse);
}

// Three streams, each with an op that writes its own buffer.
struct ThreeStreams {
  explicit ThreeStreams(Recorder& recorder) : recorder(recorder) {
    for (const char* name : {"a", "b", "c"}) {
      streams.push_back(recorder.add_stream(name));
      events.push_back(recorder.add_event(name));
      buffers.push_back(recorder.add_buffer({name, MemoryKind::workspace, 16}));
    }
  }
  void op(int stream) {
    recorder.op(streams.at(static_cast<std::size_t>(stream)), OpDesc("op", OpKind::pointwise, base::DType::f32).writes({buffers.at(static_cast<std::size_t>(stream)), 0, 16}), {"test.cpp", 1});
  }
  void record(int stream) { recorder.record_event(streams.at(static_cast<std::size_t>(stream)), events.at(static_cast<std::size_t>(stream)), {"test.cpp", 2}); }
  void wait(int stream, int event) { recorder.wait_event(streams.at(static_cast<std::size_t>(stream)), events.at(static_cast<std::size_t>(event)), WaitReason::data, {"test.cpp", 3}); }

  Recorder& recorder;
  std::vector<StreamId> streams;
  std::vector<EventId> events;
  std::vector<BufferId> buffers;
};

TEST(Edges, FollowAWaitThatIsRelayedByAStreamThatRanNothingInBetween) {
  Recorder recorder(0);
  ThreeStreams step(recorder);
  recorder.begin_step(0);
  step.op(0);
  step.record(0);
  step.wait(1, 0);
  step.record(1);
  step.wait(2, 1);
  step.op(2);
  const std::vector<Edge> found = edges(*recorder.programs()[recorder.end_step().program]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(has_edge(found, 0, 1, EdgeKind::event));
  EXPECT_EQ(found[0].record_command, 3u) << "the record that was awaited, not the one that it relays";
}

TEST(Edges, OfARelayedWaitEndWhereTheRelayRanAnOpAfterItsWait) {
  Recorder recorder(0);
  ThreeStreams step(recorder);
  recorder.begin_step(0);
  step.op(0);
  step.record(0);
  step.wait(1, 0);
  step.op(1);
  step.record(1);
  step.wait(2, 1);
  step.op(2);
  const std::vector<Edge> found = edges(*recorder.programs()[recorder.end_step().program]);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(has_edge(found, 0, 1, EdgeKind::event));
  EXPECT_TRUE(has_edge(found, 1, 2, EdgeKind::event)) << "op 0 is before op 1 already";
}

TEST(Edges, CrossTheBorderOfTwoStepsWhereAWaitIsForTheStepBefore) {
  Recorder recorder(0);
  ThreeStreams step(recorder);
  recorder.begin_step(0);
  step.wait(1, 0);    // what stream a recorded last, in the step before
  step.record(1);
  step.wait(2, 1);    // relayed
  step.op(2);         // op 0
  step.op(0);         // op 1
  step.record(0);
  step.op(0);         // op 2: after the record, so not awaited
  const Program& program = *recorder.programs()[recorder.end_step().program];
  EXPECT_EQ(edges(program).size(), 1u) << "stream a alone has two ops";
  const std::vector<Edge> found = edges_across(program, program);
  EXPECT_TRUE(has_edge(found, 1, 0, EdgeKind::event)) << "op 1 of the step before, op 0 of this one";
  EXPECT_TRUE(has_edge(found, 0, 0, EdgeKind::stream));
  EXPECT_TRUE(has_edge(found, 2, 1, EdgeKind::stream));
  EXPECT_EQ(found.size(), 3u);
}

}  // namespace
}  // namespace shardbook::program
