// A measured step resolved again where power is short: what is taken away is in part lost to a slower clock.
#include <cmath>

#include "engine/simulate/replay.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

// A machine on which nothing that runs together slows, and power is short: matmuls at speed s draw s².
CostModel at_its_limit() {
  base::Result<Profile> profile = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  profile.value().contention = {{.ranks = 2}};
  profile.value().power = {.exponent = 2, .idle = 0.1, .communication = 0.7, .memory = 0.6, .fastest = 1.3};
  return CostModel(std::move(profile).value());
}

// Steps measured on that machine, to be resolved again.
struct AtItsLimit {
  explicit AtItsLimit(std::vector<RankSteps> of) : steps(std::move(of)), times(resolved(steps)) {}
  Replayed again(const Change& change = {}) const { return replay.value().resolve(change).value(); }

  std::vector<RankSteps> steps;
  Resolved times;
  CostModel model = at_its_limit();
  base::Result<Replay> replay = Replay::measured(as_measured(steps, times), &model);
};

// 800 µs of a matmul and 200 of a kernel, which draws 0.6: 880 are left for the matmul's 800, so it ran at √1.1. Without the
// kernel nothing rests: the matmul takes √1.1 times as long, at speed 1.
TEST(AtItsClock, AMatmulIsSlowerWhereTheKernelThatDrewLessIsGone) {
  TestRank rank(0);
  rank.matmul(0, 800'000);
  rank.op(0, 200'000, 0, OpKind::pointwise);
  const AtItsLimit run({rank.steps()});
  EXPECT_EQ(run.again().step_ns(), 1'000'000) << "with nothing changed it is what it was";
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const double settled = 2e-3;   // the search ends where the clock moves by less than one in a thousand
  EXPECT_NEAR(run.again(gone).step_ns(), 800'000 * std::sqrt(1.1), settled * 800'000);
  gone.same_clock = true;
  EXPECT_EQ(run.again(gone).step_ns(), 800'001);
}

// A matmul of 600 µs and two kernels of 200, which draw 0.6: 760 are left for the matmul, so it ran at √(760/600). Without the first
// kernel it is slower, and the second is, too, by the power of 0.35: at speed s both draw m s² + 0.6 k in the m + k that they take.
TEST(AtItsClock, OtherKernelsFeelAPartOfIt) {
  TestRank rank(0);
  rank.matmul(0, 600'000);
  for (int i = 0; i < 2; ++i) rank.op(0, 200'000, 0, OpKind::pointwise);
  const AtItsLimit run({rank.steps()});
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const double before = std::sqrt(760.0 / 600);
  double low = 0.5, high = before, matmul = 0, kernel = 0;
  for (int i = 0; i < 60; ++i) {
    const double speed = (low + high) / 2;
    matmul = 600'000 * before / speed;
    kernel = 200'000 * std::pow(before / speed, 0.35);
    (matmul * speed * speed + 0.6 * kernel > matmul + kernel ? high : low) = speed;
  }
  EXPECT_GT(kernel, 201'000);
  EXPECT_NEAR(run.again(gone).step_ns(), matmul + kernel, 2e-3 * (matmul + kernel));
}

// The same twice, in forward and in backward. Where forward's kernel is gone, forward's matmul slows by √1.1 and backward's does
// not: the limit holds for a mean over milliseconds. With one clock for all, each would take 1.039 times as long.
TEST(AtItsClock, ForwardAndBackwardHaveAClockOfTheirOwn) {
  TestRank rank(0);
  for (const program::Phase phase : {program::Phase::forward, program::Phase::backward}) {
    const program::Scope scope(rank.recorder(), phase, 0);
    rank.matmul(0, 800'000);
    rank.op(0, 200'000, 0, OpKind::pointwise);
  }
  const AtItsLimit run({rank.steps()});
  EXPECT_EQ(run.again().step_ns(), 2'000'000);
  Change gone;
  gone.factor = [](base::Rank, program::OpIndex op) { return op == 1 ? 0.0 : 1.0; };
  const Replayed without = run.again(gone);
  const std::vector<program::TimeSpan>& ran = without.ranks.front().steps.back().ran;
  EXPECT_NEAR(ran[0].end - ran[0].start, 800'000 * std::sqrt(1.1), 2e-3 * 800'000);
  EXPECT_EQ(ran[2].end - ran[2].start, 800'000);
}

// Rank 0 computes for 500 µs and waits for rank 1, which computes for 700; then both sum for 100. Rank 0's collective is there
// for 300 µs: it waits for 200 and draws 0.4, midway between rest and a collective's 0.7, then moves for 100: 650 are left for
// 500, so its speed was √1.3. When rank 1 no longer is late, rank 0 waits no more, and its matmul sets the pace: its work,
// 500 √1.3, at speed s takes m = that / s, and draws that · s; with the sum's 70 this is the step's m + 100. Were waits counted
// as rest, the step would be 681 µs instead of 655; as the collective itself, 628.
TEST(AtItsClock, AWaitInACollectiveDrawsHalfAsMuchMoreThanRestAsTheCollectiveDoes) {
  std::vector<TestRank> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1});
    one.matmul(0, rank == 1 ? 700'000 : 500'000);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 100'000);
  }
  const AtItsLimit run({ranks[0].steps(), ranks[1].steps()});
  ASSERT_EQ(run.times.ranks[0].wait_ns[0][1], 200'000);
  Change punctual;
  punctual.of_rank[1].compute = 5.0 / 7;
  const double work = 500'000 * std::sqrt(1.3), sum = 100'000;
  // work · s + 0.7 sum = work / s + sum
  const double speed = (0.3 * sum + std::sqrt(0.09 * sum * sum + 4 * work * work)) / (2 * work);
  const double step = work / speed + sum;
  EXPECT_NEAR(step, 655'285, 10);
  EXPECT_NEAR(run.again(punctual).step_ns(), step, 2e-3 * step);
}

// A step that is made as its middle rank goes through it runs at the clock at which that rank did, not at each rank's own. Matmuls of
// 500, 600 and 700 µs, then a sum of 100: the middle one waits for 100, so 690 of 800 are left for its 600, and it ran at √1.15. At its
// own clock, which was faster, the first rank would be the slowest now.
TEST(AtItsClock, OfRanksMadeAlikeIsThatOfTheRankInTheMiddle) {
  std::vector<TestRank> ranks;
  std::vector<RankSteps> steps;
  for (int rank = 0; rank < 3; ++rank) {
    TestRank& one = ranks.emplace_back(rank);
    one.group("all", {0, 1, 2});
    one.matmul(0, 500'000 + 100'000 * rank);
    one.record(0, 0);
    one.wait(1, 0);
    one.collective(1, 0, 100'000);
  }
  for (TestRank& rank : ranks) steps.push_back(rank.steps());
  const AtItsLimit run(std::move(steps));
  Change alike;
  alike.alike = true;
  const double work = 600'000 * std::sqrt(1.15), sum = 100'000;
  // As above: work · s + 0.7 sum = work / s + sum
  const double speed = (0.3 * sum + std::sqrt(0.09 * sum * sum + 4 * work * work)) / (2 * work);
  const double step = work / speed + sum;
  EXPECT_NEAR(run.again(alike).step_ns(), step, 2e-3 * step);
}

// Gathers that are issued when they are needed, one buffer: then one place earlier, as with two.
TEST(Earlier, IssuesAGatherWhileTheUnitBeforeIsUsed) {
  TestRank rank(0);
  rank.group("shard", {0});
  constexpr int units = 4;
  Recorder& recorder = rank.recorder();
  Costs costs;
  const auto issue = [&] { costs.issue_ns.push_back(0); };
  const auto op = [&](StreamId stream, OpKind kind, base::Nanoseconds ns, std::uint32_t line) {
    OpDesc desc("op", kind, base::DType::bf16);
    if (kind == OpKind::all_gather) desc.collective_of({0, recorder.next_sequence(0), 1024});
    recorder.op(stream, desc, {"test.cpp", line});
    costs.op_ns.push_back(ns);
    costs.shared_part.push_back(0);
    issue();
  };
  for (int unit = 0; unit < units; ++unit) {
    recorder.wait_event(1, 1, WaitReason::buffer_reuse, {"test.cpp", 1}), issue();   // released
    op(1, OpKind::all_gather, 60, 2);
    recorder.record_event(1, 0, {"test.cpp", 3}), issue();                           // gathered
    recorder.wait_event(0, 0, WaitReason::data, {"test.cpp", 4}), issue();
    op(0, OpKind::gemm, 100, 5);
    recorder.record_event(0, 1, {"test.cpp", 6}), issue();
  }
  const program::Program& program = rank.program();
  const auto end_of = [&](const program::Program& which) {
    RankSteps steps{0, &recorder.catalogue(), {{&which, std::make_shared<const Costs>(costs)}}};
    return resolved({steps}).step_end.back();
  };
  EXPECT_EQ(end_of(program), units * 160);
  const Reordered once = issued_earlier(program, {{"test.cpp", 2}});
  EXPECT_EQ(once.moved, 3u);
  EXPECT_EQ(once.program.commands.size(), program.commands.size());
  EXPECT_EQ(end_of(once.program), 60 + units * 100) << "all but the first hide";
  EXPECT_EQ(issued_earlier(program, {{"test.cpp", 9}}).moved, 0u);
}

TEST(Earlier, DoesNotPassWhatTheCollectiveDependsOn) {
  TestRank rank(0);
  rank.group("tp", {0});
  for (int layer = 0; layer < 3; ++layer) {
    rank.op(0, 100);
    rank.record(0, 0);
    rank.wait(1, 0);
    rank.recorder().op(1, OpDesc("sum", OpKind::all_reduce, base::DType::bf16).collective_of({0, rank.recorder().next_sequence(0), 8}), {"sum.cpp", 1});
    rank.record(1, 1);
    rank.wait(0, 1);
  }
  EXPECT_EQ(issued_earlier(rank.program(), {{"sum.cpp", 1}}).moved, 0u) << "each sums what was computed just before";
}

}  // namespace
}  // namespace shardbook::simulate
