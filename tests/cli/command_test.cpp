// A line of words becomes switches and places, or one sentence.
#include <gtest/gtest.h>

#include "engine/cli/command.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

Command command() {
  Command one;
  one.name = "show";
  one.places = "FILE...";
  one.least_places = 1;
  one.most_places = 2;
  one.switches = {{"width", "N", "", ""}, {"data", "FILE...", "", "", true}, {"reshard", "true|false", "", "", false, true}, {"json", "", "", ""}};
  return one;
}

Line line_of(const std::vector<std::string>& words) { return read_line(command(), words).value(); }
std::string problem_of(const std::vector<std::string>& words) {
  const base::Result<Line> line = read_line(command(), words);
  return line ? "" : line.error();
}

TEST(Command, PlacesAndSwitchesMayStandInAnyOrder) {
  const Line line = line_of({"--width", "90", "a", "--json", "b"});
  EXPECT_EQ(line.places, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(line.value("width"), "90");
  EXPECT_TRUE(line.has("json"));
  EXPECT_FALSE(line.has("data"));
}

TEST(Command, ValuesMayFollowAnEqualsSign) { EXPECT_EQ(line_of({"a", "--width=90"}).value("width"), "90"); }

TEST(Command, ASwitchForManyTakesAllThatFollow) {
  EXPECT_EQ(line_of({"a", "--data", "x", "y"}).switches.at("data"), (std::vector<std::string>{"x", "y"}));
}

TEST(Command, ABooleanAloneIsTrueAndTakesNoPlace) {
  const Line line = line_of({"--reshard", "a"});
  EXPECT_EQ(line.value("reshard"), "true");
  EXPECT_EQ(line.places, std::vector<std::string>{"a"});
  EXPECT_EQ(line_of({"a", "--reshard", "false"}).value("reshard"), "false");
}

TEST(Command, AnUnknownSwitchNamesTheNearest) {
  EXPECT_EQ(problem_of({"a", "--widht", "9"}), "there is no option --widht; the nearest is --width");
}

TEST(Command, AMissingValueSaysWhatItIs) { EXPECT_EQ(problem_of({"a", "--width"}), "--width needs a value: N"); }

TEST(Command, ASwitchGivenTwiceIsRefused) {
  EXPECT_NE(problem_of({"a", "--width", "9", "--width", "8"}).find("--width is given 2 times"), std::string::npos);
}

TEST(Command, TooFewAndTooManyPlacesAreRefused) {
  EXPECT_NE(problem_of({}).find("show needs FILE..."), std::string::npos);
  EXPECT_NE(problem_of({"a", "b", "c"}).find("'c' is one word too many"), std::string::npos);
}

TEST(Help, AloneItTeachesTheFirstSteps) {
  const Spoken alone = shardbook({});
  EXPECT_EQ(alone.code, 0);
  EXPECT_NE(alone.out.find("./shardbook run 02"), std::string::npos);
}

TEST(Help, TheOverviewNamesEveryCommandWithinAHundredColumns) {
  const Spoken help = shardbook({"--help"});
  for (const char* name : {"run LAB", "train", "show", "metrics", "read", "doctor", "calibrate", "view", "test", "fetch", "notes", "verify", "figures", "bench", "tune", "plan", "why", "whatif", "diff",
                           "pack", "report", "checkpoint", "submit", "grade", "lab", "diagram", "switches", "next", "check", "hint", "list", "card", "solution", "reset", "build"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + name), std::string::npos) << name;
  }
  for (const char* name : {"train", "run", "show", "metrics", "read", "doctor", "calibrate"}) {
    std::istringstream lines(shardbook({name, "--help"}).out + help.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 120) << line;
  }
}

TEST(Help, TrainingExplainsEveryOptionOfTheConfig) {
  const std::string help = shardbook({"train", "--help"}).out;
  for (const char* option : {"--model", "--tp", "--fsdp", "--prefetch", "--clock", "--trace-steps", "--config"}) {
    EXPECT_NE(help.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(help, shardbook({"help", "train"}).out);
}

TEST(Console, WidthsCountCharactersNotBytesOrEscapes) {
  EXPECT_EQ(width_of("≈ µs"), 4);
  EXPECT_EQ(width_of(bold("abc", true)), 3);
  EXPECT_EQ(pad_left("µ", 3), "  µ");
}

TEST(Console, WrappedLinesKeepToTheWidth) {
  const std::vector<std::string> lines = wrap("one two three four", 9, "  ");
  EXPECT_EQ(lines, (std::vector<std::string>{"one two", "  three", "  four"}));
}

TEST(Console, ShortNumbersHaveThreeDigits) {
  EXPECT_EQ(short_number(412345), "412k");
  EXPECT_EQ(short_number(1.4236e9, " "), "1.42 G");
  EXPECT_EQ(short_number(999.7e3), "1.00M");
  EXPECT_EQ(short_number(42), "42");
}

}  // namespace
}  // namespace shardbook::cli
