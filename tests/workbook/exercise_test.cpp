// An exercise is judged; and whatever it does instead becomes one clear sentence.
#include "engine/workbook/exercise.hpp"
#include "engine/workbook/learner.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

// Under a sanitizer memory cannot be bounded, and nothing may be loaded before the program.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool instrumented = true;
#else
constexpr bool instrumented = false;
#endif

class Trial : public ::testing::Test {
 protected:
  Trial() : labs_(all_labs(project.root()).value()), place(find_part(labs_, "00b").value()) {}

  // The verdict on a body of all_reduce_us.
  Verdict verdict_on(const std::string& body, TrialOptions options = {}) {
    // Only what the body needs: including costs more than compiling it. The body begins in line 5.
    const std::string header = body.find("ofstream") != std::string::npos ? "fstream" : body.find("condition_variable") != std::string::npos ? "condition_variable"
                               : body.find("vector") != std::string::npos ? "vector" : body.find("FILE") != std::string::npos || body.find("remove") != std::string::npos ? "cstdio" : "cstdlib";
    const std::string file = project.write("experiments/00_timeline/fit.cpp", "#include \"labs/00_timeline/lab.hpp\"\n#include <" + header +
                                           ">\nnamespace shardbook::lab00 {\ndouble all_reduce_us(double bytes) {\n" + body + "\n}\n}\n");
    return try_exercise(project.root(), place, file, options).value();
  }
  Finding first_of(const std::string& body, TrialOptions options = {}) {
    const Verdict verdict = verdict_on(body, options);
    EXPECT_FALSE(verdict.passed);
    return verdict.findings.empty() ? Finding{} : verdict.findings.front();
  }

  Project project;

 private:
  std::vector<Lab> labs_;

 protected:
  Place place;
};

TEST_F(Trial, TheSolutionPassesAndTheStarterTeaches) {
  const Verdict solution = try_exercise(project.root(), place, project / solution_of(place)).value();
  EXPECT_TRUE(solution.passed);
  EXPECT_NEAR(solution.figures.at("all_reduce_32MiB_us"), 171.766, 0.01);   // h200x8.json, all_reduce over 4
  const Verdict starter = try_exercise(project.root(), place, project / starter_of(place)).value();
  EXPECT_FALSE(starter.passed);
  EXPECT_NE(starter.findings.front().message.find("At 2 MiB you say 18.6 µs and 27.2 were measured (−32 %): one line cannot do it"), std::string::npos);
}

// Ranks that compute on the host, a BLAS and CUDA's libraries, mapped and not called, all fit what a trial may use.
TEST(Trials, OfSolutionsThatComputeOnTheHostStayWithinTheirLimits) {
  const std::string root = SHARDBOOK_SOURCE_DIR;
  const std::vector<Lab> labs = all_labs(root).value();
  for (const char* part : {"01a", "02a", "04a"}) {
    const Place place = find_part(labs, part).value();
    const Verdict verdict = try_exercise(root, place, root + "/" + solution_of(place)).value();
    EXPECT_TRUE(verdict.passed) << part << ": " << (verdict.findings.empty() ? "" : verdict.findings.front().message);
  }
}

TEST_F(Trial, AnotherSeedAsksForOtherSizes) {
  // Nine cases and nothing between them.
  const std::string table = "const double us[] = {9.8, 11.1, 11.4, 14.9, 27.2, 59.1, 171.8, 615.4, 2317.8};\n"
                            "const double at[] = {4096, 32768, 131072, 524288, 2097152, 8388608, 33554432, 134217728, 536870912};\n"
                            "for (int i = 0; i < 9; ++i) { if (bytes == at[i]) return us[i]; }\nreturn 1;";
  EXPECT_TRUE(verdict_on(table).passed);
  TrialOptions seeded;
  seeded.seed = 7;
  EXPECT_FALSE(verdict_on(table, seeded).passed);
  EXPECT_TRUE(try_exercise(project.root(), place, project / solution_of(place), seeded).value().passed);
}

TEST_F(Trial, WhatDoesNotCompileIsNamedWithItsLine) {
  const Finding finding = first_of("double us = 9.8\nreturn us;");
  EXPECT_EQ(finding.rule, "compile");
  EXPECT_EQ(finding.file, "experiments/00_timeline/fit.cpp");
  EXPECT_EQ(finding.line, 6);   // where the compiler misses it
  EXPECT_NE(finding.message.find("the statement before it lacks its semicolon"), std::string::npos);
  EXPECT_EQ(first_of("return alfa;").page, "labs/00_timeline/lab.hpp");
}

TEST_F(Trial, AFunctionThatIsNotThereIsNamed) {
  const std::string file = project.write("experiments/00_timeline/fit.cpp", "double all_reduce(double) { return 1; }\n");
  const Verdict verdict = try_exercise(project.root(), place, file).value();
  EXPECT_EQ(verdict.findings.front().rule, "link");
  EXPECT_NE(verdict.findings.front().message.find("it lacks"), std::string::npos);
  EXPECT_NE(verdict.findings.front().message.find("all_reduce_us"), std::string::npos);
}

TEST_F(Trial, OneThatNeverEndsIsStoppedAndSaid) {
  TrialOptions options;
  options.seconds = 1;
  options.patience = 60;
  const Finding finding = first_of("volatile bool on = true; while (on) {} return bytes;", options);
  EXPECT_EQ(finding.rule, "endless");
  EXPECT_NE(finding.message.find("did not end within 1 s"), std::string::npos);
}

TEST_F(Trial, ADeadlockIsNamedBeforeTheTimeIsUp) {
  TrialOptions options;
  options.idle_seconds = 1;
  const Finding finding = first_of("std::mutex m; std::condition_variable c; std::unique_lock lock(m); c.wait(lock, [] { return false; }); return bytes;", options);
  EXPECT_EQ(finding.rule, "deadlock");
  EXPECT_NE(finding.message.find("nothing in it had run for 1 s"), std::string::npos);
}

TEST_F(Trial, OneThatEatsTheMemoryIsStopped) {
  if (instrumented) GTEST_SKIP() << "an instrumented program has no bound";
  // Asked for and not written: what counts is what it asks for, and pages take seconds where they are dear.
  const Finding finding = first_of("std::vector<double*> all; while (true) all.push_back(new double[1000000]), all.back()[0] = bytes; return 0;");
  EXPECT_EQ(finding.rule, "memory");
  EXPECT_NE(finding.message.find("2048 MiB"), std::string::npos);
}

TEST_F(Trial, OneThatWritesOutsideItsFolderIsStoppedBeforeItDoes) {
  if (instrumented) GTEST_SKIP() << "an instrumented program is not guarded";
  const std::string outside = project / "experiments/mine.txt";
  for (const std::string& how : {"std::ofstream(\"" + outside + "\") << 1;", "if (FILE* f = std::fopen(\"" + outside + "\", \"a\")) std::fclose(f);"}) {
    const Finding finding = first_of(how + " return bytes;");
    EXPECT_EQ(finding.rule, "outside");
    EXPECT_NE(finding.message.find(outside), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(outside));
  }
  project.write("experiments/precious.txt", "work");
  EXPECT_EQ(first_of("std::remove(\"" + (project / "experiments/precious.txt") + "\"); return bytes;").rule, "outside");
  EXPECT_EQ(content_of(project / "experiments/precious.txt"), "work");
  // Within its folder it may.
  EXPECT_EQ(first_of("std::ofstream(\"scratch.txt\") << 1; return 1;").rule, "latency");
}

TEST_F(Trial, CrashesAndEarlyEndsAreSaid) {
  EXPECT_EQ(first_of("volatile int* nothing = nullptr; *nothing = 1; return bytes;").rule, "crash");
  EXPECT_EQ(first_of("throw 1; return bytes;").rule, "crash");
  EXPECT_EQ(first_of("std::exit(0); return bytes;").rule, "ended");
  EXPECT_EQ(first_of("std::exit(3); return bytes;").rule, "ended");
}

TEST(FirstError, IsTheFirstOfACompilersMany) {
  const Finding finding = first_error("In file included from /r/a.hpp:1:\n/r/labs/x/a.cpp:7:3: error: 'foo' was not declared in this scope\n/r/labs/x/a.cpp:9:1: error: second\n", "/r", "a.cpp", "labs/x/lab.hpp");
  EXPECT_EQ(finding.file, "labs/x/a.cpp");
  EXPECT_EQ(finding.line, 7);
  EXPECT_EQ(finding.message, "'foo' was not declared in this scope; is the name spelt as in the header?");
  EXPECT_EQ(finding.page, "labs/x/lab.hpp");
}

TEST(FirstError, OfALinkerIsTheFunctionThatIsMissingOrThereTwice) {
  const auto message = [](const std::string& said) {
    const Finding finding = first_error(said, "/r", "a.cpp", "");
    EXPECT_EQ(finding.rule, "link");
    return finding.message;
  };
  const std::string advice = ", which the check calls; keep its name, namespace and arguments as the starter has them";
  const std::string missing = "it lacks 'f(double)'" + advice, twice = "it defines 'f(double)' a second time";
  // As ld, gold and lld say it
  EXPECT_EQ(message("/usr/bin/ld: e.o: in function `main':\na.cpp:(.text+0x5): undefined reference to 'f(double)'\n"), missing);
  EXPECT_EQ(message("e.o:a.cpp:function main: error: undefined reference to 'f(double)'\n"), missing);
  EXPECT_EQ(message("ld.lld: error: undefined symbol: f(double)\n>>> referenced by a.cpp\n"), "it lacks f(double)" + advice);
  EXPECT_EQ(message("/usr/bin/ld: b.o: in function `f(double)':\nb.cpp:(.text+0x0): multiple definition of 'f(double)'\n"), twice);
  EXPECT_EQ(message("b.o: error: multiple definition of 'f(double)'\n"), twice);
  EXPECT_EQ(message("ld.lld: error: duplicate symbol: f(double)\n"), "it defines f(double) a second time");
}

TEST(FromJson, FindingsThatCannotBeReadAreAnError) {
  EXPECT_FALSE(verdict_from_json("", "f").ok());
  EXPECT_FALSE(verdict_from_json("{\"passed\": false, \"findings\": []}", "f").ok());
  const Verdict verdict = verdict_from_json(R"({"passed": false, "findings": [{"rule": "race", "message": "m", "rank": 2, "layer": null, "phase": "", "span": "all_reduce", "file": "a.cpp", "line": 5}],
    "figures": {"step_ms": 1.5}})", "f").value();
  EXPECT_EQ(verdict.findings.front().place, "rank 2 · all_reduce");
  EXPECT_EQ(verdict.figures.at("step_ms"), 1.5);
}

}  // namespace
}  // namespace shardbook::workbook
