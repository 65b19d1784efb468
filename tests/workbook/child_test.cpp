// A child ends when it should, and nothing of it stays.
#include <csignal>

#include "engine/base/signals.hpp"
#include "engine/workbook/child.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

ChildEnd shell(const std::string& words, ChildOptions options = {}) { return run_child({"sh", "-c", words}, options).value(); }

TEST(Child, ItsWordsAndExitCodeComeBack) {
  const ChildEnd end = shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(end.why, ChildEnd::Why::exited);
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(end.said, "out\nerr\n");
}

ChildEnd out_of_time(const std::string& words, double seconds, double patience) {
  ChildOptions options;
  options.seconds = seconds;
  options.patience = patience;
  const ChildEnd end = shell(words, options);
  EXPECT_EQ(end.why, ChildEnd::Why::out_of_time);
  return end;
}

TEST(Child, OneThatNeverEndsIsStoppedInTime) {
  const ChildEnd end = out_of_time("while true; do :; done", 0.5, 60);   // the machine may be busy: its time on a processor counts
  EXPECT_GE(end.seconds, 0.5);
  EXPECT_LT(end.cpu_seconds, 1);
}

TEST(Child, OneThatIsNotLetRunIsStoppedToo) {
  const ChildEnd end = out_of_time("exec sleep 30", 0.2, 3);   // uses no processor, as one that gets none
  EXPECT_GE(end.seconds, 0.6);
  EXPECT_LT(end.seconds, 3);
}

TEST(Child, OneThatOnlyWaitsIsStoppedBeforeItsTime) {
  ChildOptions options;
  options.seconds = 20;
  options.idle_seconds = 0.5;
  const ChildEnd end = shell("exec sleep 30", options);
  EXPECT_EQ(end.why, ChildEnd::Why::idle);
  EXPECT_LT(end.seconds, 5);
}

TEST(Child, WhatItStartedEndsWithIt) {
  const Project project;
  const std::string file = project / "alive";
  const ChildEnd end = shell("(sleep 0.6; echo still > " + file + ") & exit 0");
  EXPECT_EQ(end.why, ChildEnd::Why::exited);
  ::usleep(900000);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Child, CtrlCEndsItAndNotThisProgram) {
  const base::SignalGuard signals;
  EXPECT_EQ(base::stop_signal(), 0);
  // The signal comes from the child itself, so it surely runs.
  const base::Result<ChildEnd> end = run_child({"sh", "-c", "kill -INT " + std::to_string(::getpid()) + "; exec sleep 60"}, {});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error(), "sh was stopped, as asked");
  EXPECT_EQ(base::stop_signal(), SIGINT);
}

TEST(Child, AFloodOfWordsIsCutAndDoesNotHoldItUp) {
  const ChildEnd end = shell("yes | head -c 3000000; exit 3");
  EXPECT_EQ(end.code, 3);
  EXPECT_LE(end.said.size(), 65536u);
}

TEST(Child, ASignalIsNamed) {
  const ChildEnd end = shell("kill -SEGV $$");
  EXPECT_EQ(end.why, ChildEnd::Why::signalled);
  EXPECT_EQ(end.code, SIGSEGV);
}

TEST(Child, AProgramThatIsNotThereIsAnErrorAndNoOutcome) {
  EXPECT_FALSE(run_child({"no-such-program-here"}, {}).ok());
  EXPECT_FALSE(run_child({"/no/such/program"}, {}).ok());
  EXPECT_EQ(run_child({"true"}, {"/no/such/folder"}).ok(), false);
}

}  // namespace
}  // namespace shardbook::workbook
