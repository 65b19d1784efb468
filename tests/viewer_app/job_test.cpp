// A job: one of the workbook's own commands, as a child that no frame waits for.
#include "viewer/app/job.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace shardbook::app {
namespace {

using std::chrono::steady_clock;

// A project whose launcher is this shell script.
class Project {
 public:
  explicit Project(const std::string& script) {
    std::string name = (std::filesystem::temp_directory_path() / "shardbook-job-XXXXXX").string();
    root = ::mkdtemp(name.data());
    std::ofstream(root + "/shardbook") << "#!/bin/sh\n" << script;
    ::chmod((root + "/shardbook").c_str(), 0755);
  }
  ~Project() { std::filesystem::remove_all(root); }
  std::string root;
};

void wait_for(Job& job) {
  const auto begin = steady_clock::now();
  while (!job.poll() && job.running()) {
    ASSERT_LT(steady_clock::now() - begin, std::chrono::seconds(60));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(Job, GivesItsWordsToTheProjectsProgramAndKeepsWhatThatSays) {
  const Project project("pwd; echo \"$@\"; echo wrong >&2; exit 3\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"check", "04a"}));
  EXPECT_EQ(job.command(), "./shardbook check 04a");
  wait_for(job);
  EXPECT_EQ(job.code(), 3);
  EXPECT_FALSE(job.running());
  EXPECT_NE(job.said().find(project.root + "\ncheck 04a\nwrong\n"), std::string::npos) << job.said();
}

TEST(Job, SaysHowWideItsLinesMayBe) {
  const Project project("echo \"[$SHARDBOOK_COLUMNS]\"\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"check", "04a"}, 57));
  wait_for(job);
  EXPECT_EQ(job.said(), "[57]\n");
}

TEST(Job, IsOneAtATime) {
  const Project project("sleep 60\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"run", "02"}));
  const base::Status second = job.start(project.root, {"hint", "02"});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().find("`./shardbook run 02` still runs"), std::string::npos);
}

TEST(Job, ThatIsCancelledEndsWithAllThatItHasStarted) {
  const Project project("sleep 60 & echo $! ; wait\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"run", "02"}));
  while (job.said().find('\n') == std::string::npos) job.poll();
  const pid_t grandchild = static_cast<pid_t>(std::stol(job.said()));
  job.cancel();
  wait_for(job);
  EXPECT_NE(job.code(), 0);
  // Gone, or a corpse that nobody has buried yet
  for (int i = 0; i < 1000 && ::kill(grandchild, 0) == 0; ++i) {
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string words((std::istreambuf_iterator<char>(stat)), {});
    if (words.find(") Z ") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_NE(::kill(grandchild, 0), 0);
}

TEST(Job, ThatDoesNotStopWhenAskedIsEnded) {
  const Project project("trap '' INT; echo deaf; while :; do sleep 0.05; done\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"run", "02"}));
  while (job.said().empty()) job.poll();
  job.cancel();
  wait_for(job);
  EXPECT_EQ(job.code(), 128 + 9);
}

TEST(Job, ThatFloodsKeepsTheEndOfWhatItSays) {
  const Project project("i=0; while [ $i -lt 400 ]; do printf '%01024d' 0; i=$((i+1)); done; echo; echo last\n");
  Job job;
  ASSERT_TRUE(job.start(project.root, {"run", "02"}));
  wait_for(job);
  EXPECT_LE(job.said().size(), 256u << 10);
  EXPECT_TRUE(job.said().ends_with("last\n"));
}

TEST(Job, ThatCannotBeStartedSaysWhy) {
  Job job;
  ASSERT_TRUE(job.start("/nowhere", {"run"}));
  wait_for(job);
  EXPECT_EQ(job.code(), 127);
}

TEST(PlainOutput, IsWhatATerminalWouldShowInTheEnd) {
  EXPECT_EQ(plain_output("a\x1b[1mb\x1b[0m c\n"), "ab c\n");
  EXPECT_EQ(plain_output("first\nstep 1\r\x1b[Kstep 2\nlast\r\n"), "first\nstep 2\nlast\n");
  EXPECT_EQ(plain_output("cut off \x1b["), "cut off ");
}

TEST(RunNamedIn, IsTheLastFolderOfARun) {
  EXPECT_EQ(run_named_in("run  experiments/a/runs/1\nthen experiments/02_x/runs/2026-1.\n"), "experiments/02_x/runs/2026-1");
  EXPECT_EQ(run_named_in("no run"), "");
  EXPECT_EQ(run_named_in("experiments/02_x is a folder, x/runs/1"), "");
}

TEST(OwnWords, AreTheWorkbooksVerbsAndNothingThatAShellWouldRead) {
  EXPECT_EQ(own_words("./shardbook run 02 --tp 2"), (std::vector<std::string>{"run", "02", "--tp", "2"}));
  EXPECT_TRUE(own_words("./shardbook run 02; rm -rf /").empty());
  EXPECT_TRUE(own_words("./shardbook run $(id)").empty());
  EXPECT_TRUE(own_words("rm x").empty());
  EXPECT_TRUE(own_words("./shardbook").empty());
  EXPECT_TRUE(own_words("./shardbook test").empty());
  EXPECT_TRUE(own_words("./shardbook calibrate --out /etc/passwd").empty());
}

}  // namespace
}  // namespace shardbook::app
