// Do formulas read well without images?
#include <gtest/gtest.h>

#include "page_support.hpp"
#include "viewer/page/formula.hpp"

namespace shardbook::page {
namespace {

std::string flat(std::string_view tex) {
  std::string out;
  for (const FormulaRun& run : formula_runs(tex)) out += run.text;
  return out;
}

TEST(Formula, GreekLettersAndFractions) {
  EXPECT_EQ(formula_text("t = \\alpha + n/\\beta"), "t = α + n/β");
  EXPECT_EQ(formula_text("\\frac{n}{\\beta}"), "n/β");
  EXPECT_EQ(formula_text("\\frac{n - 1}{n}"), "(n−1)/n");
}

TEST(Formula, SetsAndSums) {
  EXPECT_EQ(formula_text("|C \\cap K| / |C|"), "|C ∩ K|/|C|");
  EXPECT_EQ(flat("\\sum_{i=0}^{n} x_i"), "∑i=0nxi");
  EXPECT_EQ(formula_text("A \\cup B \\setminus C"), "A ∪ B ∖ C");
  EXPECT_EQ(formula_text("a \\le b \\times c \\ne \\infty"), "a ≤ b × c ≠ ∞");
}

TEST(Formula, LevelsOfSubAndSuperscripts) {
  const std::vector<FormulaRun> runs = formula_runs("x_{ij}^2 + e^{-x^2}");
  std::vector<std::pair<std::string, int>> found;
  for (const FormulaRun& run : runs) {
    if (!found.empty() && found.back().second == run.raise) found.back().first += run.text;
    else found.emplace_back(run.text, run.raise);
  }
  const std::vector<std::pair<std::string, int>> expected{{"x", 0}, {"ij", -1}, {"2", 1}, {" + e", 0}, {"−x", 1}, {"2", 2}};
  EXPECT_EQ(found, expected);
}

TEST(Formula, VariablesAreItalicAndTextIsUpright) {
  const std::vector<FormulaRun> runs = formula_runs("x \\text{ of } 2 \\log n");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_FALSE(runs[0].upright);
  EXPECT_TRUE(runs[1].upright);
  EXPECT_EQ(runs[1].text, " of 2log");
  EXPECT_EQ(runs[2].text, "n");
}

TEST(Formula, BracketsRootsAndAccents) {
  EXPECT_EQ(formula_text("\\left( a \\right)"), "(a)");
  EXPECT_EQ(formula_text("\\sqrt{d}"), "√(d)");
  EXPECT_EQ(flat("\\hat{y}"), "y\u0302");
  EXPECT_EQ(flat("\\{ a \\}"), "{a}");
  EXPECT_EQ(flat("\\lceil n \\rceil"), "⌈n⌉");
}

TEST(Formula, UnknownCommandsShowAsTheirNames) { EXPECT_EQ(flat("\\wibble{x} + \\operatorname{rank}"), "wibblex + rank"); }

TEST(Formula, WrongBracesLoseNoLetters) {
  EXPECT_EQ(flat("}}a{b{c"), "abc");
  EXPECT_EQ(flat("a^"), "a");
  EXPECT_EQ(flat("\\frac{a"), "a/");
  EXPECT_EQ(flat("\\"), "");
}

TEST(Formula, DeepNestingEndsSoon) {
  std::string tex;
  for (int i = 0; i < 20000; ++i) tex += "^{\\frac{a}{";
  const std::vector<FormulaRun> runs = formula_runs(tex);
  for (const FormulaRun& run : runs) EXPECT_LE(run.raise, 20);
  std::string commands;
  for (int i = 0; i < 20000; ++i) commands += "\\text\\hat\\sqrt";
  EXPECT_EQ(flat(commands).find('\\'), std::string::npos);
}

TEST(FormulaOfTheProject, NoFormulaKeepsABackslash) {
  // Formulas of the pages; and of the commands that notes of this kind need, so that the test says something today.
  std::size_t formulas = 0;
  const auto check = [&](const std::string& tex) {
    ++formulas;
    EXPECT_EQ(flat(tex).find('\\'), std::string::npos) << tex;
    EXPECT_FALSE(flat(tex).empty()) << tex;
  };
  for (const std::string& name : test::project_pages()) {
    test::each_block(test::project_page(name).blocks, [&](const Block& block) {
      for (const page::Run& run : block.runs) {
        if ((run.style & Style::math) == 0) continue;
        ++formulas;
        EXPECT_EQ(run.text.find('\\'), std::string::npos) << name << ": " << run.text;
      }
    });
  }
  for (const char* tex : {"t = \\alpha + \\frac{n}{\\beta}", "dx = \\sum_r dy_r \\cdot W_r", "|W| = |K| + |C \\setminus K| + |M \\setminus (K \\cup C)|",
                          "y_{NO} = x_{NI} \\cdot W^\\top", "\\text{overlap} = |C \\cap K| / |C|", "2 (t - 1) / t \\cdot N d \\cdot 2\\,\\mathrm{bytes}",
                          "\\hat m = m / (1 - \\beta_1^t)", "\\theta \\leftarrow \\theta - \\eta \\, \\hat{m} / (\\sqrt{\\hat v} + \\epsilon)",
                          "O(n \\log n) \\ll n^2", "\\forall x \\in \\mathbb{R}: f(x) \\ge 0 \\implies g(x) \\to \\infty", "\\bar{x} \\approx \\mu \\pm \\sigma"}) {
    check(tex);
  }
  EXPECT_GE(formulas, 11u);
}

}  // namespace
}  // namespace shardbook::page
