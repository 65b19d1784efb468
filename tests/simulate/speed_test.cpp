// Is a large training step resolved while one waits? 64 ranks, 8 by 8, 2 500 ops each, three steps.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>

#include "engine/simulate/resolver.hpp"
#include "tests/simulate/programs.hpp"
#include "tests/support/cpu_time.hpp"

namespace shardbook::simulate {
namespace {

// Layers of matmuls and kernels with two all-reduces of tp each; the gather of the next layer runs beside.
void issue(TestRank& rank, int me, int layers) {
  Recorder& recorder = rank.recorder();
  std::vector<base::Rank> row, column;
  for (int at = 0; at < 8; ++at) {
    row.push_back(me / 8 * 8 + at);
    column.push_back(me % 8 + 8 * at);
  }
  const program::GroupId tp = rank.group("tp", row), fsdp = rank.group("dp_shard", column);
  for (int layer = 0; layer < layers; ++layer) {
    OpDesc gather("all_gather", OpKind::all_gather, base::DType::bf16);
    recorder.wait_event(1, static_cast<EventId>(layer % 2), WaitReason::buffer_reuse, {});
    recorder.op(1, gather.collective_of({fsdp, recorder.next_sequence(fsdp), 50 << 20, -1}), {});
    recorder.record_event(1, static_cast<EventId>(2 + layer % 2), {});
    if (layer > 0) recorder.wait_event(0, static_cast<EventId>(2 + (layer - 1) % 2), WaitReason::data, {});
    for (int half = 0; half < 2; ++half) {
      for (int at = 0; at < 5; ++at) {
        OpDesc kernel("kernel", OpKind::pointwise, base::DType::bf16);
        kernel.bytes_read = 32 << 20;
        recorder.op(0, kernel, {});
        OpDesc gemm("gemm", OpKind::gemm, base::DType::bf16);
        recorder.op(0, gemm.size({4096, 4096, 512 + 128 * at, 1}), {});
      }
      OpDesc reduce("all_reduce", OpKind::all_reduce, base::DType::bf16);
      recorder.op(0, reduce.collective_of({tp, recorder.next_sequence(tp), 32 << 20, -1}), {});
    }
    recorder.record_event(0, static_cast<EventId>(layer % 2), {});
  }
}

TEST(Speed, OfSixtyFourRanksOfTwoThousandFiveHundredOps) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  std::vector<TestRank> ranks;
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < 64; ++rank) issue(ranks.emplace_back(rank), rank, 110);
  for (TestRank& rank : ranks) programs.push_back({rank.recorder().rank(), &rank.recorder().catalogue(), &rank.program()});
  ASSERT_GE(programs[0].program->ops.size(), 2500u);

  const double begin = tests::cpu_seconds();
  const auto out = resolve(programs, CostModel(std::move(profile).value()), 3);
  const double seconds = tests::cpu_seconds() - begin;
  ASSERT_TRUE(out.ok()) << out.error();
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  std::printf("64 ranks x %zu ops x 3 steps resolved in %.2f s, process at most %ld MiB, step %.1f ms\n",
              programs[0].program->ops.size(), seconds, used.ru_maxrss / 1024, static_cast<double>(out.value().step_ns) / 1e6);
  EXPECT_LT(seconds, 10);
  EXPECT_LT(used.ru_maxrss, 4L << 20);
}

}  // namespace
}  // namespace shardbook::simulate
