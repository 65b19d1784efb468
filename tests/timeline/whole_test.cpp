// A run that is not whole opens, and says so.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "engine/timeline/builder.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/whole.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

// A timeline of `ranks` ranks, a span each.
Timeline run_of(int ranks) {
  TimelineBuilder builder;
  for (int rank = 0; rank < ranks; ++rank) {
    Provenance provenance;
    provenance.rank = rank;
    provenance.world_size = ranks;
    provenance.clock = Clock::modelled;
    builder.add_rank(provenance);
  }
  return builder.finish();
}

std::vector<std::string> banners_of(const std::string& folder) {
  const auto read = timeline::read(folder);
  EXPECT_TRUE(read) << (read ? "" : read.error());
  return read ? read.value().banners : std::vector<std::string>{};
}

TEST(Whole, ARunWithAllItsRanksSaysNothing) {
  const TemporaryFolder folder;
  RunInfo info;
  info.id = "aa";
  ASSERT_TRUE(write_run(run_of(4), info, folder.path()));
  EXPECT_EQ(banners_of(folder.path()), std::vector<std::string>{});
}

TEST(Whole, MissingRanksAreNamed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(run_of(4), RunInfo{}, folder.path()));
  std::filesystem::remove(folder / "rank2.json");
  const auto banners = banners_of(folder.path());
  ASSERT_EQ(banners.size(), 1u);
  EXPECT_EQ(banners[0], folder.path() + " holds 3 of 4 ranks of its run (missing: 2): what is summed over ranks is not the whole");
}

TEST(Whole, FilesOfTwoRunsInOneFolderAreNamed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(run_of(2), 0, folder / "rank0.json", "aa"));
  ASSERT_TRUE(write_rank(run_of(2), 1, folder / "rank1.json", "bb"));
  const auto banners = banners_of(folder.path());
  ASSERT_EQ(banners.size(), 1u);
  EXPECT_NE(banners[0].find("rank1.json is of another run than "), std::string::npos) << banners[0];
}

TEST(Whole, ARunThatWasInterruptedSaysByWhat) {
  const TemporaryFolder folder;
  RunInfo info;
  info.results = {{"failure", "rank 1 was killed"}};
  ASSERT_TRUE(write_run(run_of(2), info, folder.path()));
  const auto banners = banners_of(folder.path());
  ASSERT_EQ(banners.size(), 1u);
  EXPECT_EQ(banners[0], folder.path() + " is of a run that did not end as it should: rank 1 was killed");
}

TEST(Whole, ARunThatWasStoppedSaysAfterWhichStep) {
  const TemporaryFolder folder;
  RunInfo info;
  info.config = {{"steps", 40}};
  info.results = {{"failure", ""}, {"stopped_early", true}, {"losses", {5.5, 5.4, 5.3}}};
  ASSERT_TRUE(write_run(run_of(2), info, folder.path()));
  EXPECT_EQ(banners_of(folder.path()), std::vector<std::string>{folder.path() + " is of a run that was stopped after 3 of 40 steps"});
  info.results["stopped_early"] = false;
  const TemporaryFolder whole;
  ASSERT_TRUE(write_run(run_of(2), info, whole.path()));
  EXPECT_TRUE(banners_of(whole.path()).empty());
}

TEST(Whole, ARunUnderWayIsNotTakenForWhole) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(run_of(2), RunInfo{}, folder.path()));
  write_file(folder / unfinished_name, "{}");
  const auto banners = banners_of(folder.path());
  ASSERT_EQ(banners.size(), 1u);
  EXPECT_NE(banners[0].find("has not ended"), std::string::npos);
}

TEST(Reader, APipeIsNoTraceAndHoldsNobodyUp) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "rank0.json").c_str(), 0600), 0);
  const auto read = timeline::read(folder.path());
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().find("it is not a file"), std::string::npos) << read.error();
  ASSERT_EQ(mkfifo((folder / "run.json").c_str(), 0600), 0);
  EXPECT_FALSE(read_run_info(folder / "run.json"));
}

TEST(WriteRun, DoesNotWriteThroughALinkThatSomeoneLeft) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "keep me");
  std::filesystem::create_symlink(folder / "precious", folder / "rank0.json.tmp");
  ASSERT_TRUE(write_rank(run_of(1), 0, folder / "rank0.json"));
  std::ifstream file(folder / "precious");
  std::string content;
  std::getline(file, content);
  EXPECT_EQ(content, "keep me");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "rank0.json"));
}

}  // namespace
}  // namespace shardbook::timeline
