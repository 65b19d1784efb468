// Which matmuls leave room to a collective follows from what was issued, and awaited, before them.
#include "engine/program/beside.hpp"

#include <gtest/gtest.h>

namespace shardbook::program {
namespace {

constexpr StreamId compute = 0, tp = 1, fsdp = 2;
constexpr EventId made = 0, summed = 1, gathered = 2;

// Ops that take as long as their first size says.
OpDesc matmul(std::int64_t ns) { return OpDesc("matmul", OpKind::gemm, base::DType::bf16).size({ns, 1, 1, 1}); }
OpDesc norm(std::int64_t ns) { return OpDesc("norm", OpKind::pointwise, base::DType::bf16).flops(ns).reads({0, 0, ns}); }
OpDesc collective(std::int64_t ns, OpKind kind = OpKind::all_reduce) { return OpDesc("collective", kind, base::DType::bf16).collective_of({0, 0, ns, -1}); }
double ns_of(const OpDesc& desc) {
  if (desc.kind == OpKind::gemm) return static_cast<double>(desc.gemm.m);
  return static_cast<double>(desc.kind == OpKind::pointwise ? desc.bytes_read : desc.collective.bytes);
}

struct Step {
  Beside beside{{24, &ns_of}};
  Step() { beside.begin_step(); }
  int op(const OpDesc& desc, StreamId stream = compute) { return beside.op(stream, desc); }
  void then(StreamId from, EventId event, StreamId to) {
    beside.record(from, event);
    beside.wait(to, event);
  }
};

TEST(Beside, TheWeightGradientLeavesRoomToTheSumOfTheInputGradientAndNothingElseDoes) {
  Step step;
  EXPECT_EQ(step.op(matmul(100)), 0) << "the input gradient";
  step.then(compute, made, tp);
  EXPECT_EQ(step.op(collective(80), tp), 0);
  step.beside.record(tp, summed);
  EXPECT_EQ(step.op(matmul(100)), 24) << "the weight gradient";
  step.beside.wait(compute, summed);
  EXPECT_EQ(step.op(matmul(100)), 0) << "it was awaited";
}

TEST(Beside, AnAwaitedSumLeavesItToNobody) {
  Step step;
  EXPECT_EQ(step.op(matmul(100)), 0);
  step.then(compute, made, tp);
  (void)step.op(collective(80), tp);
  step.then(tp, summed, compute);
  EXPECT_EQ(step.op(matmul(100)), 0);
}

TEST(Beside, ToACollectiveThatIsUnderWayNothingIsLeft) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(1000, OpKind::all_gather), fsdp);
  EXPECT_EQ(step.op(matmul(40)), 24) << "it starts beside this one";
  EXPECT_EQ(step.op(matmul(40)), 0) << "and is under way beside this one";
  Step behind_a_norm;
  (void)behind_a_norm.op(matmul(10));
  (void)behind_a_norm.op(collective(1000, OpKind::all_gather), fsdp);
  EXPECT_EQ(behind_a_norm.op(norm(20)), 0) << "what is no matmul leaves nothing, and lets it start";
  EXPECT_EQ(behind_a_norm.op(matmul(40)), 0);
}

TEST(Beside, AShortOneIsNotWorthIt) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(49), tp);
  EXPECT_EQ(step.op(matmul(100)), 0);
  (void)step.op(collective(50), tp);
  EXPECT_EQ(step.op(matmul(100)), 24) << "half of it";
}

TEST(Beside, OneThatQueuesBehindAnotherDoesNotStart) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(500), tp);
  EXPECT_EQ(step.op(matmul(100)), 24);
  (void)step.op(collective(500), tp);
  EXPECT_EQ(step.op(matmul(100)), 0) << "the first has 400 to go";
  EXPECT_EQ(step.op(matmul(400)), 0);
  EXPECT_EQ(step.op(matmul(500)), 0);
  (void)step.op(collective(500), tp);
  EXPECT_EQ(step.op(matmul(100)), 24) << "both are over";
}

TEST(Beside, TwoThatStartAtOnceAreLeftTwiceAsMuch) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(100), tp);
  (void)step.op(collective(50), fsdp);
  EXPECT_EQ(step.op(matmul(60)), 48);
}

TEST(Beside, WhileComputeStandsStillOtherCollectivesGoOn) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(100), fsdp);
  (void)step.op(collective(90), tp);
  step.then(tp, summed, compute);
  EXPECT_EQ(step.op(matmul(40)), 0) << "10 ns of the gather are left";
}

// Compute waits for fsdp, which has waited for tp: so it has for both.
TEST(Beside, AWaitBringsWhatTheOtherStreamHadAwaited) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(1000), tp);
  step.then(tp, summed, fsdp);
  EXPECT_EQ(step.op(matmul(10)), 24) << "a wait of another stream is not ours";
  (void)step.op(collective(10), fsdp);
  step.then(fsdp, gathered, compute);
  EXPECT_EQ(step.op(matmul(10)), 0);
}

TEST(Beside, AStepForgetsTheOneBefore) {
  Step step;
  (void)step.op(matmul(10));
  (void)step.op(collective(1000), tp);
  step.beside.begin_step();
  step.beside.wait(compute, summed);
  EXPECT_EQ(step.op(matmul(10)), 0);
}

TEST(Beside, IsOffWhereNothingIsLeft) {
  EXPECT_FALSE(Beside().on());
  EXPECT_FALSE(Beside({0, &ns_of}).on());
}

}  // namespace
}  // namespace shardbook::program
