// A learner's way through a part, as it is typed.
#include <chrono>
#include <csignal>
#include <thread>

#include "engine/cli/console.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "tests/cli/own_project.hpp"

namespace shardbook::cli {
namespace {

using Loop = OwnProject;

TEST_F(Loop, AloneSaysWhatIsNextAndHowLongItTakes) {
  const Spoken alone = type({});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_NE(alone.out.find("00a · Read: who made this step slow? · 35 min"), std::string::npos) << alone.out;
  EXPECT_NE(alone.out.find("./shardbook next"), std::string::npos);
  EXPECT_EQ(progress(), "");   // to look changes nothing
}

TEST_F(Loop, PredictionsAreAskedForAndSealedOnce) {
  const Spoken asked = type({"next"}, "20\nlots\nrank 3\n");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_TRUE(has(asked.out, "'lots' is no number of rank"));
  EXPECT_TRUE(has(asked.out, "What it is worth: One busy GPU of four")) << "of a lab's first part";
  EXPECT_TRUE(has(asked.out, "Sealed shorter = 20 ms, fault = 3."));
  EXPECT_TRUE(has(asked.out, "Next ./shardbook metrics experiments/captured/gpt-1.3b-fsdp4-busy-neighbour.tar.gz"));
  EXPECT_NE(progress().find(" 00a predicted fault=3 shorter=20 seal="), std::string::npos) << progress();
  EXPECT_TRUE(has(type({"next", "shorter=1"}).out, "Your prediction was sealed before and stands: shorter = 20 ms"));
  EXPECT_EQ(progress().find("shorter=1 "), std::string::npos);
}

TEST_F(Loop, WhatAPartAsksIsNotToldBeforeItHasPassed) {
  const std::string run = "experiments/captured/gpt-1.3b-fsdp4-busy-neighbour.tar.gz";
  EXPECT_TRUE(has(type({"metrics", folder / run}).out, "all wait for rank 2"));
  type({"next", "00a", "shorter=20", "fault=3"});
  const Spoken asked = type({"metrics", folder / run});
  EXPECT_FALSE(has(asked.out, "all wait for rank 2")) << asked.out;
  EXPECT_TRUE(has(asked.out, "What bounds this step is what 00a asks"));
  EXPECT_TRUE(has(type({"why", folder / run}).out, "all wait for rank 2"));
  // Others of its runs, and its answers when it has passed
  EXPECT_TRUE(has(type({"metrics", folder / "experiments/captured/gpt-1.3b-tp2-fsdp2.tar.gz"}).out, "stand between kernels"));
  folder.write("experiments/00_timeline/00a.txt", content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/solutions/00_timeline/00a.txt"));
  EXPECT_EQ(type({"check", "00a"}).code, 0);
  EXPECT_TRUE(has(type({"metrics", folder / run}).out, "all wait for rank 2"));
}

TEST_F(Loop, NotesOfOthersSourcesMayBeLeftForLater) {
  EXPECT_TRUE(has(type({"next", "03a", "awaited=90"}).out, "Or ./shardbook next 04a"));
}

TEST_F(Loop, WithoutAnswersTheQuestionsAndTheLineToTypeAreShown) {
  const Spoken asked = type({"next"});
  EXPECT_EQ(asked.code, 0);
  EXPECT_TRUE(has(asked.out, "Next ./shardbook next 00a shorter=... fault=...")) << asked.out;
  EXPECT_EQ(progress().find("predicted"), std::string::npos);
  EXPECT_EQ(type({"next", "shorter=much"}).code, 2);
  EXPECT_TRUE(has(type({"next", "shoter=5"}).err, "'shoter=5' is no prediction of 00a: write shorter=VALUE"));
}

TEST_F(Loop, ACheckNeedsAPredictionAndThenSaysTheFirstThingThatIsWrong) {
  EXPECT_TRUE(has(type({"check", "00b"}).err, "00b begins with a prediction, sealed before you look: ./shardbook next 00b"));
  type({"next", "00b", "all_reduce_32MiB=150"});
  const Spoken failed = type({"check", "00b"});
  EXPECT_EQ(failed.code, 1) << failed.err;
  EXPECT_TRUE(has(failed.out, "At 2 MiB you say 18.6 µs and 27.2 were measured (−32 %): one line cannot do it.")) << failed.out;
  EXPECT_NE(failed.out.find("Where experiments/00_timeline/fit.cpp"), std::string::npos);
  EXPECT_TRUE(has(failed.out, "Read ./shardbook read 00b"));
  EXPECT_NE(progress().find("00b failed file="), std::string::npos);
  std::istringstream lines(failed.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 80) << line;
}

TEST_F(Loop, APassComparesPredictionsSaysWhyAndAChangeOpensItAgain) {
  pass_00b();
  const Spoken again = type({"check", "00b"});
  EXPECT_TRUE(has(again.out, "✓ 00b passed"));
  EXPECT_TRUE(has(again.out, "all_reduce_32MiB: you 100 µs, found 172 µs: 1.72 ×")) << again.out;
  EXPECT_TRUE(has(again.out, "See worst_error_percent 11.359.")) << "what the text says to look at: lab.json's \"show\"";
  EXPECT_TRUE(has(again.out, "Why An all-reduce costs its start and its bytes"));
  EXPECT_NE(type({"list"}).out.find("passed"), std::string::npos);
  std::ofstream(folder / "experiments/00_timeline/fit.cpp", std::ios::app) << "// Explained, at last.\n";
  EXPECT_EQ(type({"list"}).out.find("open again"), std::string::npos) << "a comment changes nothing";
  std::ofstream(folder / "experiments/00_timeline/fit.cpp", std::ios::app) << "int changed;\n";
  EXPECT_NE(type({"list"}).out.find("open again"), std::string::npos);
  EXPECT_TRUE(has(type({"next", "00b"}).out, "Open again: it was passed on"));
}

TEST_F(Loop, AFileThatIsGoneIsNotJudgedAsWhatItBegins) {
  type({"next", "00a", "shorter=20", "fault=3"});
  std::filesystem::remove(folder / "experiments/00_timeline/00a.txt");
  const Spoken checked = type({"check", "00a"});
  EXPECT_EQ(checked.code, 2);
  EXPECT_TRUE(has(checked.err, "experiments/00_timeline/00a.txt was not there; what 00a begins with stands there now, and was not judged")) << checked.err;
  EXPECT_EQ(progress().find(" 00a failed"), std::string::npos);
  EXPECT_EQ(type({"check", "00a"}).code, 1) << "then as ever";
}

TEST_F(Loop, AnswersMayStandOnTheLine) {
  type({"next", "shorter=20", "fault=3"});
  const Spoken wrong = type({"check", "00a", "late_rank=3"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(has(wrong.out, "Rank 3 exposes most (97.2 ms) because it waits; rank 2 exposes 4.4, and")) << wrong.out;
  EXPECT_NE(content_of(folder / "experiments/00_timeline/00a.txt").find("late_rank = 3\n"), std::string::npos);
  EXPECT_TRUE(has(type({"check", "00a", "late_rnak=2"}).err, "the nearest is late_rank"));
  const Spoken right = type({"check", "late_rank=2", "busy_regime=rank", "compute_more=30", "tutor_exposed=0.32", "tutor_regime=host-bound", "tp4_regime=bandwidth"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_TRUE(has(right.out, "fault: you rank 3, found rank 2"));
}

TEST_F(Loop, TheSolutionComesWithAPassOrAfterThreeFailures) {
  EXPECT_EQ(type({"check", "00a", "--solution"}).code, 0);
  EXPECT_TRUE(has(type({"solution", "00b"}).err, "comes with a pass, or with --anyway after three failed checks (3 more)"));
  type({"next", "00b", "all_reduce_32MiB=150"});
  for (int i = 0; i < 3; ++i) type({"check", "00b"});
  EXPECT_EQ(type({"solution", "00b"}).code, 2);
  const Spoken shown = type({"solution", "00b", "--anyway"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("std::min("), std::string::npos);
  EXPECT_NE(progress().find("00b solution \"anyway\""), std::string::npos);
}

TEST_F(Loop, HintsComeOneByOneAndAreCounted) {
  EXPECT_TRUE(has(type({"hint", "00b"}).out, "Hint 1 of 3: What does a call cost that moves nothing?"));
  EXPECT_TRUE(has(type({"hint", "00b"}).out, "Hint 2 of 3:"));
  EXPECT_TRUE(has(type({"hint", "00b"}).out, "Hint 3 of 3:"));
  EXPECT_TRUE(has(type({"hint", "00b"}).out, "after three failed checks: ./shardbook solution 00b --anyway"));
}

TEST_F(Loop, DiffShowsYourFileBesideTheSolutionOnceItMayBeSeen) {
  EXPECT_TRUE(has(type({"diff", "00b"}).err, "the solution of 00b comes with a pass"));
  EXPECT_TRUE(has(type({"diff"}).err, "there are fewer than two runs"));
  pass_00b();
  EXPECT_TRUE(has(type({"diff", "00b"}).out, "your file and the solution are equal"));
}

TEST_F(Loop, ATraceOfOnesOwnIsAskedAndPassesNoPart) {
  if (!timeline::can_gunzip()) GTEST_SKIP() << "built without zlib";
  const std::string traces = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/data/labs/traces/04/";
  const Spoken good = type({"check", "04a", "--trace", traces + "prefetch/rank0.json.gz", traces + "prefetch/rank1.json.gz"});
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_TRUE(has(good.out, "04a · your trace: 2 ranks on NVIDIA H200, 2 steps ✓ All ranks make the same calls: 20 a step.")) << good.out;
  EXPECT_NE(progress().find(" 04a traced ranks=2"), std::string::npos) << progress();
  const std::string list = type({"list"}).out;
  EXPECT_EQ(list.find("passed"), std::string::npos) << list;
  EXPECT_EQ(list.find("opened"), std::string::npos) << list;
  const Spoken bad = type({"check", "04", "--trace", traces + "prefetch-sync"});
  EXPECT_EQ(bad.code, 1) << bad.err;
  EXPECT_TRUE(has(bad.out, "✗ The host runs ahead: expected no wait for the device between the first call of a step and the last; found 6 waits in step 2 of rank 0.")) << bad.out;
  EXPECT_TRUE(has(bad.out, "Where rank 0 · step 2 · cudaStreamSynchronize in aten::is_nonzero, for 99.9 ms Read ./shardbook read 04c")) << bad.out;
  EXPECT_EQ(progress().find(" 04 traced"), std::string::npos);
  EXPECT_NE(type({"check", "04", "--trace", traces + "prefetch-sync", "--json"}).out.find("\"host_waits\": 6.0"), std::string::npos);

  // What is no trace is one sentence
  EXPECT_EQ(type({"check", "04", "--trace", "nothing.json"}).code, 2);
  EXPECT_EQ(type({"check", "04", "--trace", "nothing.json"}).err, "shardbook: cannot read nothing.json: No such file or directory\n");
  EXPECT_TRUE(has(type({"check", "04", "--trace", folder.write("rank0.json", "no json")}).err, "does not begin JSON; expected a Chrome or Kineto trace"));
  EXPECT_TRUE(has(type({"check", "04", "--trace", traces + "prefetch/rank0.json.gz"}).err, "is one rank of 2: name the traces of all ranks"));
  EXPECT_TRUE(has(type({"check", "--trace", traces + "prefetch"}).err, "--trace needs one lab or part before it"));
  EXPECT_TRUE(has(type({"check", "03", "--trace", traces + "prefetch"}).err, "nothing is asked of traces of 03"));
  EXPECT_TRUE(has(type({"check", "04", "--watch", "--trace", traces + "prefetch"}).err, "goes with neither --watch nor --solution"));
}

TEST_F(Loop, PredictionsAreScoredOverTheCourse) {
  EXPECT_EQ(type({"list"}).out.find("Your predictions"), std::string::npos);
  pass_00b();
  EXPECT_TRUE(has(type({"list"}).out, "Your predictions: 1 figure, the one in the middle off by 1.72 ×")) << type({"list"}).out;
}

TEST_F(Loop, ResetKeepsWhatStoodThere) {
  type({"next", "00b", "all_reduce_32MiB=150"});
  folder.write("experiments/00_timeline/fit.cpp", "mine\n");
  const Spoken reset = type({"reset", "00b"});
  EXPECT_EQ(reset.code, 0) << reset.err;
  EXPECT_TRUE(has(reset.out, "kept in experiments/00_timeline/kept/fit-")) << reset.out;
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "experiments/00_timeline/kept")) kept += content_of(entry.path().string()) == "mine\n";
  EXPECT_EQ(kept, 1);
  EXPECT_NE(content_of(folder / "experiments/00_timeline/fit.cpp").find("TODO"), std::string::npos);
}

TEST_F(Loop, CardsComeWithPassedParts) {
  EXPECT_TRUE(has(type({"card"}).out, "No card is due"));
  pass_00b();
  EXPECT_TRUE(has(type({"card"}).out, "00b · What is n½ = α/β?"));
  EXPECT_TRUE(has(type({"card"}).out, "00b · Why is one α–β line not enough?"));
  EXPECT_TRUE(has(type({"card", "00a"}).err, "the cards of 00a come when it is passed"));
}

TEST_F(Loop, AnEditedProgressFileIsSaidInOneSentenceAndNothingStops) {
  type({"next", "shorter=20", "fault=3"});
  std::string edited = progress();
  edited.replace(edited.find("shorter=20"), 10, "shorter=26");
  folder.write("experiments/progress.txt", edited);
  const Spoken next = type({"list"});
  EXPECT_EQ(next.code, 0);
  EXPECT_TRUE(has(next.err, "note: experiments/progress.txt:2 does not count: it was changed after it was sealed")) << next.err;
  EXPECT_EQ(lines_in(next.err), 1);
}

// Until the progress file has so many lines of a kind; then `asked` ends a watch that would never end.
void await_lines(const std::string& file, const std::string& what, int count) {
  const auto begin = std::chrono::steady_clock::now();
  const auto there = [&] {
    int found = 0;
    const std::string all = content_of(file);
    for (std::size_t at = all.find(what); at != std::string::npos; at = all.find(what, at + 1)) ++found;
    return found >= count;
  };
  while (!there()) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(120)) {
      ADD_FAILURE() << "no " << count << " of '" << what << "' in\n" << content_of(file);
      std::raise(SIGINT);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_F(Loop, AWatchedFileIsCheckedAtEachSaveUntilItPasses) {
  type({"next", "00b", "all_reduce_32MiB=100"});
  const std::string file = folder / "experiments/00_timeline/fit.cpp", noted = folder / "experiments/progress.txt";
  Spoken watched;
  std::thread watch([&] { watched = shardbook({"check", "00b", "--watch"}); });
  await_lines(noted, " failed ", 1);
  std::ofstream(file, std::ios::app) << "// saved in place\n";
  await_lines(noted, " failed ", 2);
  // As many editors save: beside, and renamed.
  std::filesystem::copy_file(std::string(SHARDBOOK_SOURCE_DIR) + "/solutions/00_timeline/fit.cpp", file + ".beside");
  std::filesystem::rename(file + ".beside", file);
  watch.join();
  EXPECT_EQ(watched.code, 0) << watched.out << watched.err;
  EXPECT_TRUE(has(watched.out, "✓ 00b passed"));
  EXPECT_TRUE(has(watched.out, "Watching experiments/00_timeline/fit.cpp: checked again when it is saved; Ctrl-C ends."));
  EXPECT_EQ(watched.out.find('\x1b'), std::string::npos) << "no terminal, no colours";

  // Ctrl-C ends it, and what was not judged to its end is not noted.
  std::ofstream(file, std::ios::app) << "#error\n";
  std::thread second([&] { watched = shardbook({"check", "00b", "--watch"}); });
  await_lines(noted, "rule=compile", 1);
  std::raise(SIGINT);
  second.join();
  EXPECT_EQ(watched.code, 3);
  EXPECT_EQ(watched.err, "shardbook: stopped, as asked\n");
}

TEST_F(Loop, TwoTerminalsAtOnceShowEachHintOnceAndLoseNoAnswer) {
  Spoken one, other;
  std::thread first([&] { one = shardbook({"hint", "00b"}); }), second([&] { other = shardbook({"hint", "00b"}); });
  first.join();
  second.join();
  EXPECT_NE(one.out.find("Hint 1 of 3") == std::string::npos, other.out.find("Hint 1 of 3") == std::string::npos) << one.out << other.out;
  EXPECT_NE(one.out.find("Hint 2 of 3") == std::string::npos, other.out.find("Hint 2 of 3") == std::string::npos) << one.err << other.err;
  type({"next", "00a", "shorter=20", "fault=3"});
  std::thread third([&] { one = shardbook({"check", "00a", "late_rank=2"}); }), fourth([&] { other = shardbook({"check", "00a", "busy_regime=rank"}); });
  third.join();
  fourth.join();
  const std::string answers = content_of(folder / "experiments/00_timeline/00a.txt");
  EXPECT_NE(answers.find("late_rank = 2\n"), std::string::npos) << answers << one.err << other.err;
  EXPECT_NE(answers.find("busy_regime = rank\n"), std::string::npos) << answers;
  std::istringstream lines(progress());
  int failed = 0;
  for (std::string line; std::getline(lines, line);) failed += line.find(" 00a failed ") != std::string::npos;
  EXPECT_EQ(failed, 2) << progress();
}

TEST(OwnConsole, IsAsWideAsTheViewerSaysWhereThereIsNoTerminal) {
  ::setenv("SHARDBOOK_COLUMNS", "57", 1);
  const Console console = own_console();
  ::unsetenv("SHARDBOOK_COLUMNS");
  if (console.out_is_terminal) GTEST_SKIP() << "there is a terminal here";
  EXPECT_EQ(console.text_columns(), 57);
  EXPECT_NE(own_console().text_columns(), 57);
}

TEST_F(Loop, AFileInAnotherEncodingGetsOneSentenceAndStays) {
  const std::string content("\xFF\xFE" "2\0" "0\0", 6);
  type({"next", "00a", "shorter=20", "fault=3"});
  type({"next", "00b", "all_reduce_32MiB=100"});
  const std::string answers = folder.write("experiments/00_timeline/00a.txt", content);
  folder.write("experiments/00_timeline/fit.cpp", "int a;\nint b;\n" + content.substr(2));
  EXPECT_TRUE(has(type({"check", "00a"}).out, "✗ experiments/00_timeline/00a.txt:1 is UTF-16: save it as UTF-8."));
  EXPECT_EQ(type({"check", "00a", "late_rank=2"}).err, "shardbook: experiments/00_timeline/00a.txt:1 is UTF-16: save it as UTF-8; nothing was added\n");
  EXPECT_EQ(content_of(answers), content);
  const Spoken exercise = type({"check", "00b"});
  EXPECT_TRUE(has(exercise.out, "✗ experiments/00_timeline/fit.cpp:3 holds a byte of zero, which no text does: save it as UTF-8.")) << exercise.out;
}

TEST_F(Loop, AProgressFileThatIsNoTextStopsWithOneSentenceAndStays) {
  const std::string content("\xFF\xFE" "2\0" "0\0", 6);
  folder.write("experiments/progress.txt", content);
  for (const char* verb : {"next", "list", "hint"}) {
    const Spoken said = type({verb});
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.err, "shardbook: experiments/progress.txt:1 is UTF-16: save it as UTF-8, or move it away to begin anew; nothing was written to it\n");
    EXPECT_EQ(progress(), content);
  }
}

TEST_F(Loop, ASeedIsGivenOnce) {
  EXPECT_EQ(type({"next", "--seed", "7"}).code, 0);
  EXPECT_NE(progress().find(" -- seed number=7"), std::string::npos);
  EXPECT_TRUE(has(type({"next", "--seed", "8"}).err, "your seed is 7, and stays"));
}

TEST_F(Loop, JsonHasTheVerdictAndThePredictions) {
  type({"next", "00b", "all_reduce_32MiB=150"});
  const Spoken checked = type({"check", "00b", "--json"});
  EXPECT_EQ(checked.code, 1);
  EXPECT_NE(checked.out.find("\"rule\": \"one_line\""), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("\"predicted\": \"150\""), std::string::npos);
  // What a pass adds: here, that the sources are not at hand
  const Spoken notes = type({"check", "03a", "--solution", "--json"});
  EXPECT_EQ(notes.code, 0) << notes.out << notes.err;
  const std::size_t remarks = notes.out.find("\"remarks\": [\n");
  ASSERT_NE(remarks, std::string::npos) << notes.out;
  EXPECT_NE(notes.out.find("citations were judged by the lab's table alone", remarks), std::string::npos) << notes.out;
}

TEST_F(Loop, APartsChapterCanBeReadAlone) {
  const Spoken read = type({"read", "00b"});
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_NE(read.out.find("Write: two lines for an all-reduce"), std::string::npos);
  EXPECT_EQ(read.out.find("four parts of a rank's time"), std::string::npos);
  EXPECT_NE(type({"read", "00a"}).out.find("four parts of a rank's time"), std::string::npos);
  EXPECT_EQ(type({"read", "00a"}).out.find("all_reduce_us"), std::string::npos);
}

TEST_F(Loop, VerbsOfOtherCoursesLeadToOursAndNeverToTest) {
  const auto said = [&](const std::vector<std::string>& words) { return type(words).err; };
  EXPECT_TRUE(has(said({"start"}), "you may want ./shardbook next"));
  EXPECT_TRUE(has(said({"watch", "00b"}), "you may want ./shardbook check --watch 00b"));
  EXPECT_TRUE(has(said({"exercises"}), "you may want ./shardbook list"));
  EXPECT_TRUE(has(said({"00b"}), "you may want ./shardbook check 00b"));
  EXPECT_TRUE(has(said({"chekc"}), "the nearest is `check`"));
  EXPECT_TRUE(has(said({"nxet"}), "the nearest is `next`"));
  for (const char* word : {"tests", "tset", "tes", "testt"}) EXPECT_EQ(said({word}).find("`test`"), std::string::npos) << word;
}

TEST_F(Loop, SubmitAndGradeGoTogether) {
  EXPECT_TRUE(has(type({"submit", "--name", "Ada"}).err, "there is nothing to submit yet"));
  pass_00b();
  EXPECT_EQ(type({"submit"}).code, 2);
  const std::string file = folder / "ada.json";
  EXPECT_EQ(type({"submit", "--name", "Ada", "--out", file}).code, 0);
  EXPECT_TRUE(has(type({"grade", folder / "none.json"}).err, "cannot read"));
}

// What the launcher shows while it builds for the first time.
TEST(FirstWords, AreTheTableThatMetricsPrints) {
  const std::string first = content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/labs/00_timeline/first.txt");
  const Spoken metrics = shardbook({"metrics", std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/gpt-1.3b-fsdp4-busy-neighbour.tar.gz"});
  std::istringstream lines(metrics.out);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, 3, "   ") != 0 || !std::isdigit(static_cast<unsigned char>(line[3])) || line.find('%') == std::string::npos) continue;
    EXPECT_NE(first.find(line.substr(0, 80) + "\n"), std::string::npos) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

}  // namespace
}  // namespace shardbook::cli
