// `pack`: a run becomes one file that `metrics` and `show` open like the run.
#include <gtest/gtest.h>

#include "engine/timeline/pack.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

namespace fs = std::filesystem;

TEST(Pack, MakesAFileThatOpensLikeTheRun) {
  const Folder folder;
  const std::string run = made_run(folder);
  const std::string out = folder / ("carried" + timeline::pack_ending());
  const Spoken spoken = shardbook({"pack", run, "--out", out});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("Pack  " + out), std::string::npos) << spoken.out;
  EXPECT_EQ(shardbook({"metrics", out}).out, shardbook({"metrics", run}).out);
  EXPECT_EQ(shardbook({"show", out, "--plain"}).code, 0);

  // With what is read beside it, and without needing gzip.
  const std::string plain = folder / "plain.tar", target = folder / "opened";
  EXPECT_EQ(shardbook({"pack", run, "--out", plain}).code, 0);
  const auto opened = timeline::open_pack(plain, target);
  ASSERT_TRUE(opened) << opened.error();
  for (const char* file : {"/run/rank0.json", "/run/rank1.program", "/run/run.json", "/notes/words.md"}) {
    EXPECT_TRUE(fs::exists(opened.value().root + file)) << file;
  }
}

TEST(Pack, IsNamedLikeTheRunWhereNoNameIsGiven) {
  const Folder folder;
  const std::string run = made_run(folder);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const Spoken spoken = shardbook({"pack", "first/"});
  fs::current_path(before);
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_TRUE(fs::exists(folder / ("first" + timeline::pack_ending())));
}

TEST(Pack, RefusesInOneSentenceAndLeavesNothing) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& reason) { expect_refused(words, reason, folder); };
  refused({"pack"}, "pack");
  refused({"pack", folder / "missing", "--out", folder / "x.tar"}, "there is no " + (folder / "missing"));
  refused({"pack", folder.path().string(), "--out", folder / "x.tar"}, "no rank files in");
  refused({"pack", folder.path().string(), "--out", folder / "x.zip"}, "ends in .tar.gz, .tgz or .tar");
  const Folder other;
  refused({"pack", made_run(other), "--out", folder / "missing/x.tar"}, "cannot write");
}

}  // namespace
}  // namespace shardbook::cli
