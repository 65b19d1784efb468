// run.json, and what happens when a run cannot be written.
#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/timeline/run_info.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

TEST(RunInfo, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  RunInfo info;
  info.lab = "02";
  info.command = "shardbook run 02 --tp 2";
  info.made_at = "2026-11-21T01:00:00Z";
  info.config = {{"tp", 2}, {"data", {"a.txt"}}};
  info.switches = {{"prefetch", true}};
  info.clock = name_of(Clock::modelled);
  info.profile = "h200x8";
  info.clock_error_ns = 17;
  info.sources = {{"engine/a.cpp", hash_text("int a;\n"), "int a;\n"}};
  ASSERT_TRUE(write_run_info(info, folder / "run.json"));
  const auto read = read_run_info(folder / "run.json");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_json(read.value()), to_json(info));
}

TEST(RunInfo, OfAnotherFormatOrTypeIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "new.json", "{\"format\": 2}");
  EXPECT_EQ(read_run_info(folder / "new.json").error(), (folder / "new.json") + " has format 2; this build reads format 1");
  write_file(folder / "list.json", "[]");
  EXPECT_FALSE(read_run_info(folder / "list.json"));
  write_file(folder / "bad.json", "{");
  EXPECT_EQ(read_run_info(folder / "bad.json").error(), (folder / "bad.json") + " is not valid JSON");
}

TEST(SourceExcerpts, HoldTheFilesThatSpansNameWithTheirHash) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "engine/fsdp");
  write_file(root / "engine/fsdp/schedule.cpp", "line one\n");
  const auto excerpts = source_excerpts(sample_timeline(), root.path());
  ASSERT_EQ(excerpts.size(), 1u);
  EXPECT_EQ(excerpts[0].path, "engine/fsdp/schedule.cpp");
  EXPECT_EQ(excerpts[0].content, "line one\n");
  EXPECT_EQ(excerpts[0].hash, hash_text("line one\n"));
}

TEST(HashText, IsFnv1a) {
  // The test vectors of the FNV reference page (Noll).
  EXPECT_EQ(hash_text(""), "cbf29ce484222325");
  EXPECT_EQ(hash_text("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(hash_text("foobar"), "85944171f73967e8");
}

TEST(WriteRun, LeavesNothingHalfWrittenOnAFullDisk) {
  const TemporaryFolder folder;
  const Timeline timeline = sample_timeline();
  // A limit on the size of files stands for the full disk: the write fails midway.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  const auto written = write_rank(timeline, 0, folder / "rank0.json");
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), "cannot write " + (folder / "rank0.json") + ": File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(WriteRun, SaysThatAFolderCannotBeMadeOrWritten) {
  const TemporaryFolder folder;
  write_file(folder / "file", "in the way");
  EXPECT_EQ(write_run(sample_timeline(), RunInfo{}, folder / "file/run").error(),
            "cannot make the folder " + (folder / "file/run") + ": Not a directory");
  EXPECT_EQ(write_rank(sample_timeline(), 0, folder / "missing/rank0.json").error(),
            "cannot write " + (folder / "missing/rank0.json") + ": No such file or directory");
}

TEST(WriteRun, ReplacesAnOlderRunWhole) {
  const TemporaryFolder folder;
  write_file(folder / "rank0.json", "old");
  ASSERT_TRUE(write_rank(sample_timeline(), 0, folder / "rank0.json"));
  EXPECT_TRUE(content_of(folder / "rank0.json").starts_with("{"));
  EXPECT_FALSE(std::filesystem::exists(folder / "rank0.json.tmp"));
}

}  // namespace
}  // namespace shardbook::timeline
