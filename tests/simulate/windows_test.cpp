// Where memory is windows to NCCL: how long do collectives take, and which of them need no room?
#include <gtest/gtest.h>

#include "engine/simulate/cost.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

// Where memory is windows a collective takes as long as its profile has it there, or as elsewhere. A gather is copy engines', and draws for
// as long as NCCL's kernel would.
TEST(CostModel, TakesCollectivesOfWindowsFromTheirOwnCurves) {
  base::Result<Profile> found = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  ASSERT_TRUE(found.ok()) << found.error();
  Profile profile = found.value();
  const std::vector<base::Rank> two{0, 1};
  const Conditions windows{.windows = true};
  EXPECT_NE(problem_of(profile, windows).find("calibrate"), std::string::npos);
  EXPECT_EQ(problem_of(profile, {}), "");
  const CostModel plain(profile);
  const CostModel lacks(profile, windows);
  profile.windows.collectives[OpKind::all_gather][2] = {{4096, 20'000}, {1 << 30, 5'000'000}};
  profile.windows.collectives[OpKind::reduce_scatter][2] = {{4096, 20'000}, {1 << 30, 7'000'000}};
  EXPECT_EQ(problem_of(profile, windows), "");
  const CostModel copies(profile, windows);
  const base::Bytes bytes = 1 << 30;
  EXPECT_EQ(copies.collective_ns(OpKind::all_gather, bytes, two), 5'000'000);
  EXPECT_EQ(lacks.collective_ns(OpKind::all_gather, bytes, two), plain.collective_ns(OpKind::all_gather, bytes, two));
  EXPECT_EQ(copies.collective_ns(OpKind::reduce_scatter, bytes, two), 7'000'000);
  for (const OpKind kind : {OpKind::all_reduce, OpKind::shift}) EXPECT_EQ(copies.collective_ns(kind, bytes, two), plain.collective_ns(kind, bytes, two));

  TestRank rank(0);
  const program::GroupId group = rank.group("dp_shard", {0, 1});
  rank.collective(0, group, 0, 0, OpKind::all_gather, bytes);
  rank.collective(0, group, 0, 0, OpKind::reduce_scatter, bytes);
  const program::Catalogue& catalogue = *rank.steps().catalogue;
  const std::shared_ptr<const Costs> of_copies = copies.costs(rank.program(), catalogue), of_plain = plain.costs(rank.program(), catalogue);
  EXPECT_TRUE(is_copied(*of_copies, 0));
  EXPECT_FALSE(is_copied(*of_copies, 1));
  EXPECT_FALSE(is_copied(*of_plain, 0));
  EXPECT_EQ(of_copies->drawn_ns[0], std::llround(plain.collective_ns(OpKind::all_gather, bytes, two)));
}

// Beside a matmul whose blocks leave room for a sum's, as a profile has it of windows by the matmul's name.
TEST(CostModel, SaysWhichSumsOfWindowsAMatmulLetsIn) {
  base::Result<Profile> found = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  ASSERT_TRUE(found.ok()) << found.error();
  Profile profile = found.value();
  profile.windows.collectives[OpKind::all_gather][2] = {{4096, 20'000}};
  TestRank multiplies(0);
  multiplies.op(0, 0, 0, OpKind::gemm);
  const std::string name = multiplies.program().ops[0].desc.name;
  profile.windows.fit["another"] = {OpKind::reduce_scatter};
  EXPECT_EQ(CostModel(profile, Conditions{.windows = true}).costs(multiplies.program(), *multiplies.steps().catalogue)->lets_in, std::vector<std::uint32_t>{0});
  profile.windows.fit[name] = {OpKind::reduce_scatter, OpKind::all_reduce};
  const auto of_matmul = CostModel(profile, Conditions{.windows = true}).costs(multiplies.program(), *multiplies.steps().catalogue);
  EXPECT_EQ(of_matmul->lets_in, std::vector<std::uint32_t>{bit_of(OpKind::reduce_scatter) | bit_of(OpKind::all_reduce)});
  EXPECT_TRUE(CostModel(profile).costs(multiplies.program(), *multiplies.steps().catalogue)->lets_in.empty()) << "windows alone fit";
}

}  // namespace
}  // namespace shardbook::simulate
