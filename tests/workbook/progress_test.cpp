// The progress file: what its lines mean, what does not count, and who may write.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <set>
#include <thread>

#include "engine/workbook/course.hpp"
#include "engine/workbook/learner.hpp"
#include "engine/workbook/progress.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

// A line as the program writes it, at this time.
std::string at(const std::string& time, const std::string& what, std::map<std::string, std::string> values = {}, const std::string& said = "", int seed = 0) {
  return line_of({"2026-11-22 " + time, "02b", what, std::move(values), said, 0}, seed) + "\n";
}
PartState state_of_lines(const std::string& lines, const std::string& hash) { return state_of(progress_of(lines, "p"), "02b", hash); }

TEST(Progress, AnEventIsALineThatCanBeRead) {
  EXPECT_EQ(at("10:31", "failed", {{"rule", "cause"}, {"file", "77ab01c2"}}, "it is \"slow\""), "2026-11-22 10:31 02b failed file=77ab01c2 rule=cause \"it is 'slow'\"\n");
  const Progress progress = progress_of(at("10:14", "predicted", {{"step", "1.5ms"}}) + at("10:31", "failed", {{"rule", "cause"}}, "no"), "p");
  EXPECT_TRUE(progress.problems.empty());
  ASSERT_EQ(progress.events.size(), 2u);
  EXPECT_EQ(progress.events[0].values.at("step"), "1.5ms");
  EXPECT_EQ(progress.events[1].said, "no");
}

TEST(Progress, ASealedLineThatWasChangedDoesNotCountAndIsNamed) {
  std::string line = at("10:14", "predicted", {{"step", "1.5"}});
  EXPECT_TRUE(progress_of(line, "p").problems.empty());
  line.replace(line.find("1.5"), 3, "1.3");
  const Progress progress = progress_of("\n" + line, "p");
  EXPECT_TRUE(progress.events.empty());
  ASSERT_EQ(progress.problems.size(), 1u);
  EXPECT_EQ(progress.problems[0], "p:2 does not count: it was changed after it was sealed");
}

TEST(Progress, APassOfSomebodyElsesSeedDoesNotCount) {
  const std::string mine = "2026-11-22 10:00 -- seed number=7\n", passed = at("10:40", "passed", {{"file", "a"}}, "", 8);
  EXPECT_EQ(progress_of(mine + passed, "p").problems.size(), 1u);
  EXPECT_TRUE(progress_of(mine + at("10:40", "passed", {{"file", "a"}}, "", 7), "p").problems.empty());
}

TEST(Progress, WhatIsNoEventIsPassedOverAndNamed) {
  const Progress progress = progress_of("# mine\nhello\n2026-11-22 10:00 02b danced\n2026-11-22 10:00 02b passed file=a\n\xff\xfe\n" + at("10:00", "hint"), "p");
  EXPECT_EQ(progress.events.size(), 1u);
  EXPECT_EQ(progress.problems.size(), 4u);
}

TEST(Progress, APassHoldsForItsFileAlone) {
  const std::string lines = at("10:14", "failed", {{"file", "old"}}) + at("10:20", "passed", {{"file", "new"}});
  EXPECT_TRUE(state_of_lines(lines, "new").passed);
  EXPECT_FALSE(state_of_lines(lines, "other").passed);
  EXPECT_TRUE(state_of_lines(lines, "other").reopened);
  EXPECT_FALSE(state_of_lines(lines, "").passed);
  EXPECT_FALSE(state_of_lines(lines + at("10:30", "failed", {{"file", "new"}}), "new").passed);
  EXPECT_FALSE(state_of_lines(at("10:14", "failed", {{"file", "old"}}), "old").reopened);
}

TEST(Progress, TheFirstPredictionStands) {
  const PartState state = state_of_lines(at("10:14", "predicted", {{"step", "1"}}) + at("10:15", "predicted", {{"step", "2"}}), "");
  EXPECT_EQ(state.predicted->at("step"), "1");
}

TEST(Progress, MinutesLeaveOutLongBreaksAndEndWithThePass) {
  const std::string lines = at("10:00", "opened") + at("10:20", "hint") + at("13:20", "hint") + at("13:25", "passed", {{"file", "a"}}) + at("13:50", "card");
  EXPECT_EQ(state_of_lines(lines, "a").minutes, 20 + 30 + 5);
}

TEST(Progress, LineEndsAndBlanksBehindThemDoNotChangeAFile) {
  EXPECT_EQ(file_hash("a;\nb;\n"), file_hash("a;  \r\nb;"));
  EXPECT_NE(file_hash("a;\nb;\n"), file_hash("a;\n b;\n"));
}

TEST(Progress, TwoTerminalsAtOnceLoseNoLine) {
  const Project project;
  std::vector<std::thread> terminals;
  for (int i = 0; i < 4; ++i) {
    terminals.emplace_back([&] {
      for (int n = 0; n < 25; ++n) EXPECT_TRUE(append(project.root(), {"", "02b", "hint", {{"number", "1"}}, "", 0}).ok());
    });
  }
  for (std::thread& one : terminals) one.join();
  const Progress progress = read_progress(project.root()).value();
  EXPECT_EQ(progress.events.size(), 100u);
  EXPECT_TRUE(progress.problems.empty());
}

TEST(Progress, TwoProcessesAtOnceLoseNoLineAndTearNone) {
  const Project project;
  for (const char* who : {"a", "b"}) {
    if (::fork() != 0) continue;
    bool well = true;
    for (int n = 0; n < 20; ++n) well &= append(project.root(), {"", "02b", "failed", {{"number", who + std::to_string(n)}}, std::string(120, who[0]), 0}).ok();
    ::_exit(well ? 0 : 1);
  }
  for (int i = 0; i < 2; ++i) {
    int status = 0;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  const Progress progress = read_progress(project.root()).value();
  EXPECT_TRUE(progress.problems.empty());
  std::set<std::string> numbers;
  for (const Event& one : progress.events) {
    numbers.insert(one.values.at("number"));
    EXPECT_EQ(one.said, std::string(120, one.values.at("number")[0]));
  }
  EXPECT_EQ(numbers.size(), 40u);
  EXPECT_EQ(progress.events.size(), 40u);
}

TEST(Progress, AProgramThatHoldsTheFileIsWaitedForAndThenNamed) {
  const Project project;
  const std::string before = at("10:00", "opened"), path = project.write("experiments/progress.txt", before);
  const int held = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  const base::Status noted = append(project.root(), {"", "02b", "hint", {}, "", 0}, nullptr, 0.05);
  ::close(held);
  ASSERT_FALSE(noted.ok());
  EXPECT_EQ(noted.error(), "another program holds experiments/progress.txt, so nothing was noted: end it, or try again");
  EXPECT_EQ(project.progress(), before);
}

TEST(Progress, AFileThatIsNoTextIsNamedWithItsLineAndLeftAsItIs) {
  using namespace std::string_literals;
  const Project project;
  for (const auto& [content, where] : {std::pair{"\xFF\xFE" "2\0" "0\0"s, "experiments/progress.txt:1 is UTF-16"}, std::pair{"\xFE\xFF\0" "2"s, "experiments/progress.txt:1 is UTF-16"},
                                       std::pair{"# mine\n\x7F" "ELF\0"s, "experiments/progress.txt:2 holds a byte of zero"}}) {
    project.write("experiments/progress.txt", content);
    const base::Result<Progress> read = read_progress(project.root());
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().find(where), 0u) << read.error();
    EXPECT_FALSE(append(project.root(), {"", "02b", "hint", {}, "", 0}).ok());
    EXPECT_EQ(project.progress(), content);
  }
}

TEST(Progress, WindowsEndsOfLineAndAByteOrderMarkCountAsTheSameLines) {
  const Project project;
  std::string sealed = at("10:14", "predicted", {{"step", "1.5"}});
  sealed.insert(sealed.size() - 1, "\r");
  project.write("experiments/progress.txt", "\xEF\xBB\xBF" + sealed);
  ASSERT_TRUE(append(project.root(), {"", "02b", "hint", {{"number", "1"}}, "", 0}).ok());
  const Progress progress = read_progress(project.root()).value();
  EXPECT_TRUE(progress.problems.empty());
  EXPECT_EQ(progress.events.size(), 2u);
  EXPECT_EQ(project.progress().find("\xEF\xBB\xBF" + sealed), 0u);
}

TEST(Progress, ALineAddedByHandWithoutItsEndStaysALineOfItsOwn) {
  const Project project;
  project.write("experiments/progress.txt", "# note of mine");
  ASSERT_TRUE(append(project.root(), {"", "02b", "hint", {}, "", 0}).ok());
  EXPECT_EQ(read_progress(project.root()).value().events.size(), 1u);
  EXPECT_EQ(project.progress().find("# note of mine\n"), 0u);
}

TEST(Progress, NotesOfSeveralPartsGrowInOneFolderAndKeepTheirPasses) {
  const Project project;
  Lab lab;
  Part part;
  part.id = "03a";
  part.kind = Kind::notes;
  part.exercise = "35-reading-notes";
  const Place place{&lab, &part};
  EXPECT_EQ(own_hash(project.root(), place), "");
  EXPECT_EQ(provide_own_file(project.root(), place).value(), project / "experiments/35-reading-notes");
  EXPECT_EQ(own_hash(project.root(), place), "");
  project.write("experiments/35-reading-notes/megatron.md", "one");
  const std::string hash = own_hash(project.root(), place);
  project.write("experiments/35-reading-notes/fsdp.md", "two");
  EXPECT_EQ(own_hash(project.root(), place), hash);
  EXPECT_EQ(own_files(project.root(), place).size(), 2u);
  EXPECT_NE(reset_own_file(project.root(), place).error().find("all yours"), std::string::npos);
}

// What is planted in 04c depends on a course's seed; the learner's file has one name.
TEST(Progress, ASeedDrawsWhichFaultIsPlanted) {
  const Project project;
  Course course{project.root(), all_labs(project.root()).value(), {}};
  std::vector<std::string> begun;
  for (int seed : {0, 1, 2, 7}) {
    course.progress.seed = seed;
    const Place place = course.part("04c").value();
    EXPECT_EQ(own_file_of(place), "experiments/04_fsdp/planted.cpp");
    const std::string file = provide_own_file(project.root(), place).value();
    begun.push_back(content_of(file));
    EXPECT_EQ(begun.back(), content_of(project / starter_of(place)));
    EXPECT_NE(begun.back(), content_of(project / solution_of(place)));
    std::filesystem::remove(file);
  }
  EXPECT_EQ(begun[0], begun[2]);
  EXPECT_EQ(begun[1], begun[3]);
  EXPECT_NE(begun[0], begun[1]);
}

TEST(OwnLook, ChangesWithEachSaveAndNotWithWhatEditorsLeaveForAMoment) {
  const Project project;
  Lab lab;
  Part part;
  part.kind = Kind::notes;
  part.exercise = "35-reading-notes";
  const Place place{&lab, &part};
  std::set<std::string> looks{own_look(project.root(), place)};
  const auto is_new = [&] { return looks.insert(own_look(project.root(), place)).second; };
  const std::string note = project.write("experiments/35-reading-notes/a.md", "one");
  EXPECT_TRUE(is_new());
  project.write("experiments/35-reading-notes/a.md", "one, and more");   // in place
  EXPECT_TRUE(is_new());
  for (const char* passing : {".a.md.swp", "4913", "a.md~", "#a.md#", "a.md.123.tmp"}) project.write(std::string("experiments/35-reading-notes/") + passing, "x");
  EXPECT_FALSE(is_new());
  std::filesystem::rename(project.write("beside", "one, and more"), note);   // beside, and renamed: as long as before
  EXPECT_TRUE(is_new());
  std::filesystem::remove(note);
  EXPECT_FALSE(is_new());   // as at the beginning
}

TEST(Progress, ACheckThatRunsElsewhereIsWaitedForAndThenNamed) {
  const Project project;
  const base::Result<Lock> first = lock_checks(project.root(), "00b", 0);
  ASSERT_TRUE(first.ok());
  int waits = 0;
  const base::Result<Lock> second = lock_checks(project.root(), "00b", 0.1, [&] { ++waits; });
  EXPECT_EQ(waits, 1);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("another terminal is in the middle of a check"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::workbook
