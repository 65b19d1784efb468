// What who writes texts and labs types. `figures`: a number of a text holds when what it names, made anew, rounds to it; a lab and
// its starter are tried.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/cli/figures.hpp"
#include "tests/cli/own_project.hpp"

namespace shardbook::cli {
namespace {

std::string text_of_percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

TEST(Figures, OfNotesLabsAndSolutionsHold) {
  const Spoken spoken = shardbook({"figures", "--stale"});
  EXPECT_EQ(spoken.code, 0) << spoken.out;
}

TEST(Figures, AreRightWhenTheTermRoundsToTheWords) {
  struct { double value; const char* words; bool right; } const cases[] = {
      {1319176, "1.319 ms", true}, {1319176, "1.32 ms", true}, {1319176, "1.318 ms", false}, {1319176, "1319 µs", true},
      {0.2249, "22 %", true},      {0.2251, "22 %", false},    {7493, "7500", true},         {7440, "7500", false},
      {511.4, "511", true},        {90, "90 calls", true},     {91, "90 calls", false},      {43012, "43 000 tokens", true},
      {722728, "723 TFLOP/s", true}, {-0.29, "-29 %", true},
  };
  for (const auto& one : cases) {
    const base::Result<bool> said = rounds_to(one.value, one.words);
    ASSERT_TRUE(said) << one.words;
    EXPECT_EQ(said.value(), one.right) << one.value << " as " << one.words;
  }
  EXPECT_FALSE(rounds_to(1, "many"));
  EXPECT_FALSE(rounds_to(1, "1 parsec"));
}

TEST(Figures, StaleOnesAreNamedWithTheirLineAndWhatIsSoNow) {
  const std::string page = "The rate is 999 TFLOP/s.\n\n<!-- says\nrate 4096 4096 4096 -> 999 TFLOP/s\n-->\n";
  const std::vector<Said> said = said_in(page, "page.md");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_FALSE(said[0].holds);
  EXPECT_EQ(said[0].line, 4);
  EXPECT_EQ(said[0].problem, "it is 723 TFLOP/s now");
}

// The unit and the decimals are those of the text, so that what is so now can be written there.
TEST(Figures, SayWhatIsSoNowInTheUnitOfTheText) {
  const auto now = [](const std::string& words) { return said_in(words + "\n<!-- says\nstep --tp 2 --fsdp 1 -> " + words + "\n-->\n", "page.md").at(0).problem; };
  EXPECT_EQ(now("80 ms"), "it is 1.32 ms now");
  EXPECT_EQ(now("2.0000 ms"), "it is 1.3192 ms now");
  EXPECT_EQ(now("80 µs"), "it is 1319 µs now");
}

TEST(Figures, OfASavingAreAShareOfWhatItWas) {
  const double one = value_of_term("step --tp 2 --fsdp 1 with host=0").value(), other = value_of_term("step --tp 2 --fsdp 1").value();
  const double saved = value_of_term("step --tp 2 --fsdp 1 with host=0 below step --tp 2 --fsdp 1").value();
  EXPECT_DOUBLE_EQ(saved, (other - one) / other);
  EXPECT_TRUE(rounds_to(saved, text_of_percent(saved)).value());
}

TEST(Figures, MustStandInTheParagraphAboveTheirComment) {
  const std::string page = "Elsewhere 723 TFLOP/s.\n\nNothing here.\n<!-- says\nrate 4096 4096 4096 -> 723 TFLOP/s\n-->\n";
  const std::vector<Said> said = said_in(page, "page.md");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].problem.find("does not say '723 TFLOP/s'"), std::string::npos) << said[0].problem;
}

// The first and the third number of the paragraph are stale, what is no whole number of its own or stands elsewhere is not touched.
TEST(Figures, AreMadeAnewInTheCommentAndInTheParagraphAboveIt) {
  const auto page = [](const std::string& first, const std::string& third, const std::string& fourth) {
    return "A page says 999 TFLOP/s.\n\nOnce " + first + ", then 723 TFLOP/s,\nthen " + third + ", not 1999 TFLOP/s; from " + fourth + " on.\n\n<!-- says\nrate 4096 4096 4096 -> " + first +
           "\nrate 4096 4096 4096 -> 723 TFLOP/s\nrate 4096 4096 4096 -> " + third + "\ntp_tokens 2048 8 -> " + fourth + "\n-->\n\nThe end: 999 TFLOP/s\n";
  };
  const std::string stale = page("999 TFLOP/s", "999 TFLOP/s", "1 000 000 tokens"), now = with_figures_anew(stale, said_in(stale, "page.md"));
  EXPECT_EQ(now, page("723 TFLOP/s", "723 TFLOP/s", "678 tokens"));
  const std::string of_tokens = page("723.0 TFLOP/s", "0.7 TFLOP/s", "1 234 tokens");
  EXPECT_EQ(with_figures_anew(of_tokens, said_in(of_tokens, "page.md")), page("722.7 TFLOP/s", "722.7 TFLOP/s", "678 tokens"));
  EXPECT_EQ(with_figures_anew(now, said_in(now, "page.md")), page("723 TFLOP/s", "723 TFLOP/s", "678 tokens"));
  for (const Said& said : said_in(with_figures_anew(of_tokens, said_in(of_tokens, "page.md")), "page.md")) EXPECT_TRUE(said.holds) << said.term << " " << said.words << ": " << said.problem;
}

TEST(Figures, OfWhatAParagraphDoesNotSayStayAsTheyAre) {
  const std::string page = "Nothing here.\n<!-- says\nrate 4096 4096 4096 -> 999 TFLOP/s\nrate 1 -> 5\nno arrow\n-->";
  EXPECT_EQ(with_figures_anew(page, said_in(page, "page.md")), page);
}

TEST(Figures, ATermThatThereIsNotIsOneSentence) {
  const base::Result<double> none = value_of_term("speed 3");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().find("there is no term 'speed'"), std::string::npos) << none.error();
  EXPECT_FALSE(value_of_term("step --tpp 2"));
  EXPECT_FALSE(value_of_term("alpha all_reduce 3"));
  EXPECT_FALSE(value_of_term("rate 1 2"));
}

TEST(Figures, OfMemoryAreWhatIsSetAside) {
  // 18 bytes a parameter on one rank, of which there are 842 496; a multiple of 64 in every unit
  const double model = value_of_term("memory parameter").value() + value_of_term("memory gradient").value() + value_of_term("memory optimizer").value();
  EXPECT_EQ(model, 18 * 842496.0);
  EXPECT_TRUE(rounds_to(model, "15.2 MB").value());
  EXPECT_GT(value_of_term("memory all").value(), model);
  EXPECT_FALSE(value_of_term("memory"));
  EXPECT_FALSE(value_of_term("memory heap --fsdp 2"));
}

TEST(Figures, OfARunFollowWhatIsTakenAway) {
  const double step = value_of_term("step --tp 2 --fsdp 1").value();
  EXPECT_EQ(value_of_term("step --tp 2 --fsdp 1 with comm=0").value(), step);   // the host sets the pace
  EXPECT_LT(value_of_term("step --tp 2 --fsdp 1 with host=0").value(), 0.9 * step);
  EXPECT_NEAR(value_of_term("step --tp 2 --fsdp 1 / step --tp 2 --fsdp 1").value(), 1, 0);
  EXPECT_GT(value_of_term("exposed --tp 2 --fsdp 1").value(), value_of_term("exposed --tp 2 --fsdp 1 with comm=0").value());
}

using Author = OwnProject;

TEST_F(Author, FiguresAreWrittenIntoTheFileThatIsNamed) {
  folder.write("page.md", "It is 999 TFLOP/s.\n<!-- says\nrate 4096 4096 4096 -> 999 TFLOP/s\n-->\n");
  const std::string path = (folder.path() / "page.md").string();
  const Spoken stale = shardbook({"figures", path});
  EXPECT_EQ(stale.code, 1);
  const Spoken written = shardbook({"figures", path, "--write"});
  EXPECT_EQ(written.code, 0) << written.out << written.err;
  EXPECT_NE(written.out.find("which was 999 TFLOP/s"), std::string::npos) << written.out;
  EXPECT_NE(written.out.find("1 figures, 1 made anew, 0 stale"), std::string::npos) << written.out;
  EXPECT_EQ(content_of(folder / "page.md"), "It is 723 TFLOP/s.\n<!-- says\nrate 4096 4096 4096 -> 723 TFLOP/s\n-->\n");
}

TEST_F(Author, TheStarterIsCheckedWithoutAPredictionAndNothingIsNoted) {
  const std::string before = progress();
  const Spoken starter = type({"check", "00b", "--starter"});
  EXPECT_EQ(starter.code, 1) << starter.err;
  EXPECT_TRUE(has(starter.out, "✗ the starter of 00b does not pass: At 2 MiB you say 18.6 µs and 27.2 were measured (−32 %): one line cannot do it.")) << starter.out;
  EXPECT_TRUE(has(type({"check", "00a", "--starter"}).err, "--starter is of an exercise, and 00a has none"));
  EXPECT_EQ(progress(), before);
}

TEST_F(Author, OneLabIsTriedAndWhatItsTextsStateIsMadeAnew) {
  for (const char* one : {"labs", "solutions"}) std::filesystem::remove(folder.path() / one);
  std::filesystem::create_directory(folder.path() / "labs");
  EXPECT_TRUE(has(type({"lab", "new", "98", "x"}).out, "fill in what says TODO, then ./shardbook build, ./shardbook lab figures 98 --write, ./shardbook lab lint 98."));
  folder.write("labs/98_x/text.es.md", "Un paso: 80 ms.\n\n<!-- says\nstep --tp 2 --fsdp 1 -> 80 ms\n-->\n");
  const Spoken linted = type({"lab", "lint", "98"});
  EXPECT_EQ(linted.code, 1);
  EXPECT_NE(linted.out.find("labs/98_x/lab.json:3: says TODO still\n"), std::string::npos) << linted.out;
  EXPECT_NE(linted.out.find("\nlabs/98_x/text.es.md:4: step --tp 2 --fsdp 1 -> 80 ms: it is 1.32 ms now\n"), std::string::npos) << linted.out;
  EXPECT_NE(linted.out.find("\nsolutions/98_x/work.cpp: "), std::string::npos) << linted.out;
  EXPECT_TRUE(has(linted.out, "labs/98a.json: No such file or directory; run ./shardbook build, which makes it")) << linted.out;
  EXPECT_TRUE(has(linted.err, "trying 6 files"));
  // Of all labs the form alone: quick
  EXPECT_EQ(type({"lab", "lint"}).err, "");
  EXPECT_EQ(type({"lab", "figures", "98", "--write"}).code, 2);
}

}  // namespace
}  // namespace shardbook::cli
