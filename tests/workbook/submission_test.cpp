// What a teacher gets, and what is believed of it: twelve submissions.
#include "engine/workbook/learner.hpp"
#include "engine/workbook/lint.hpp"
#include "engine/workbook/submission.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

const std::string real = SHARDBOOK_SOURCE_DIR;

// Lab 00 alone: other labs' checks take longer, and are judged by the same code.
Course course_of(const Project& project) {
  Course course = open_course(project.root()).value();
  std::erase_if(course.labs, [](const Lab& lab) { return lab.id != "00"; });
  return course;
}

// A learner who has this exercise and these answers, and noted what the loop would have noted.
struct Learner {
  Project project;

  void note(const std::string& part, const std::string& what, std::map<std::string, std::string> values = {}) {
    ASSERT_TRUE(append(project.root(), {"", part, what, std::move(values), "", 0}).ok());
  }
  void seed(int number) { note("--", "seed", {{"number", std::to_string(number)}}); }
  void write_fit(const std::string& content) { project.write("experiments/00_timeline/fit.cpp", content); }
  void write_answers(const std::string& content) { project.write("experiments/00_timeline/00a.txt", content); }
  void pass(const std::string& part) {
    const Course course = course_of(project);
    note(part, "passed", {{"file", own_hash(project.root(), course.part(part).value())}});
  }
  Submission submit(const std::string& name) { return submission_from_json(to_json(submission_of(course_of(project), name).value()), name).value(); }
};

std::string solution() { return content_of(real + "/solutions/00_timeline/fit.cpp"); }
std::string answers() { return content_of(real + "/solutions/00_timeline/00a.txt"); }
std::string own_way(const std::string& alpha) {
  return "#include \"labs/00_timeline/lab.hpp\"\nnamespace shardbook::lab00 {\ndouble all_reduce_us(double bytes) {\n  // mine\n  if (bytes < 4 * MiB) return " + alpha +
         " + bytes * 8.3e-6;\n  return 23 + bytes * 4.276e-6;\n}\n}\n";
}
std::string wrong(const std::string& slug) { return content_of(real + "/tests/data/labs/00b/" + slug + ".cpp"); }

class Grading : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<Submission> all;
    const auto learner = [&](const std::string& name, int seed, const std::string& fit, const std::string& answered, bool passes) {
      Learner one;
      one.seed(seed);
      one.note("00b", "predicted", {{"all_reduce_32MiB", "343.5"}});
      one.note("00b", "failed", {{"file", "x"}, {"rule", "one_line"}});
      one.note("00b", "hint", {{"number", "1"}});
      if (!fit.empty()) one.write_fit(fit);
      if (!answered.empty()) one.write_answers(answered);
      if (passes) one.pass("00b");
      all.push_back(one.submit(name));
    };
    learner("ada", 1, own_way("10"), answers(), true);                                      // good
    learner("ben", 2, own_way("10.2"), "", true);                                           // good, another way; half of the work
    learner("cleo", 3, wrong("one_line"), "late_rank = 3\n", false);                        // partial
    learner("dan", 4, "", answers(), false);                                                // only the answers
    learner("eve", 5, content_of(real + "/labs/00_timeline/fit.cpp"), "", false);           // untouched
    learner("fay", 6, solution(), "", true);                                                // the solution
    std::string renamed = own_way("10");                                                    // ada's, with other names and words
    for (std::size_t at = renamed.find("bytes"); at != std::string::npos; at = renamed.find("bytes", at)) renamed.replace(at, 5, "size");
    learner("gus", 7, "// my own work\n" + renamed, "", true);
    learner("hal", 8, "does not compile", "", false);
    learner("ida", 9, "#include \"labs/00_timeline/lab.hpp\"\nnamespace shardbook::lab00 { double all_reduce_us(double) { while (true) {} } }\n", "", false);
    learner("jon", 10, wrong("one_line"), "", true);                                        // claims a pass that is none
    // kim copies ada's folder, progress and all, and puts another seed above it.
    Submission copied = all[0];
    copied.name = "kim";
    copied.progress.replace(copied.progress.find("number=1"), 8, "number=77");
    all.push_back(submission_from_json(to_json(copied), "kim").value());
    // leo edits the finished file.
    std::string edited = to_json(all[2]);
    edited.replace(edited.find("\"cleo\""), 6, "\"leo\"");
    all.push_back(submission_from_json(edited, "leo").value());

    const Project teacher;
    TrialOptions options;
    options.seconds = 2;
    options.patience = 60;
    grades_ = new std::vector<Grade>(grade(course_of(teacher), all, options).value());
  }
  static void TearDownTestSuite() { delete grades_; }

  static const Grade& of(std::string_view name, std::string_view part = "00b") {
    for (const Grade& one : *grades_) {
      if (one.name == name && one.part == part) return one;
    }
    throw std::out_of_range(std::string(name));
  }
  static bool remarks(const std::string& name, const std::string& words) {
    for (const std::string& one : of(name).remarks) {
      if (one.find(words) != std::string::npos) return true;
    }
    return false;
  }
  static std::vector<Grade>* grades_;
};
std::vector<Grade>* Grading::grades_ = nullptr;

TEST_F(Grading, GoodWorkPassesWithItsTriesHintsAndPredictions) {
  const Grade& ada = of("ada");
  EXPECT_TRUE(ada.passed) << ada.finding;
  EXPECT_EQ(ada.tries, 2);
  EXPECT_EQ(ada.hints, 1);
  EXPECT_EQ(ada.predictions, "all_reduce_32MiB 2.00x");   // 343.5 of 171.766
  EXPECT_TRUE(of("ada", "00a").passed);
  EXPECT_TRUE(of("ben").passed);
  EXPECT_FALSE(of("ben", "00a").handed_in);
  EXPECT_TRUE(of("ben").remarks.empty());
}

TEST_F(Grading, PartialWorkFailsWithTheSentenceThatTheLearnerSaw) {
  EXPECT_NE(of("cleo").finding.find("one line cannot do it"), std::string::npos);
  EXPECT_NE(of("cleo", "00a").finding.find("Rank 3 exposes most"), std::string::npos);
  EXPECT_FALSE(of("dan").handed_in);
  EXPECT_TRUE(of("dan", "00a").passed);
  EXPECT_FALSE(of("eve").passed);
  EXPECT_NE(of("hal").finding.find(""), std::string::npos);
  EXPECT_FALSE(of("hal").passed);
  EXPECT_NE(of("ida").finding.find("did not end within 2 s"), std::string::npos);
}

TEST_F(Grading, EqualCodeIsNamedWhateverItsNamesAndComments) {
  const auto has = [](const Grade& grade, const std::string& name) { return std::find(grade.equal_to.begin(), grade.equal_to.end(), name) != grade.equal_to.end(); };
  EXPECT_TRUE(has(of("gus"), "ada"));
  EXPECT_TRUE(has(of("ada"), "gus"));
  EXPECT_TRUE(has(of("fay"), "the solution"));
  EXPECT_TRUE(of("eve").equal_to.empty());   // untouched is no copy
  EXPECT_TRUE(of("hal").equal_to.empty());
}

TEST_F(Grading, EditedAndCopiedWorkIsNamed) {
  EXPECT_TRUE(remarks("jon", "the progress file says passed, and the file does not pass here"));
  EXPECT_TRUE(remarks("kim", "of another seed"));
  EXPECT_TRUE(remarks("leo", "edited after it was made"));
  EXPECT_TRUE(remarks("leo", "seed 3 is also cleo's"));
  EXPECT_EQ(of("kim").tries, 1);   // her sealed pass does not count
  EXPECT_FALSE(remarks("ada", "edited"));
}

TEST_F(Grading, TheTableHasARowALearnersPart) {
  const std::string csv = to_csv(*grades_);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 12 * 2);
  EXPECT_EQ(csv.find("name,seed,part,result,"), 0u);
  Grade formula;
  formula.name = "=cmd()";
  formula.finding = "a, \"b\"";
  EXPECT_NE(to_csv({formula}).find("'=cmd()"), std::string::npos);
  EXPECT_NE(to_csv({formula}).find("\"a, \"\"b\"\"\""), std::string::npos);
}

TEST(Submission, WhatIsNoneIsNamed) {
  EXPECT_FALSE(submission_from_json("{}", "f").ok());
  EXPECT_NE(submission_from_json("{\"format\": \"x\"}", "f").error().find("f is no submission"), std::string::npos);
}

TEST(Lint, TheLabThatShipsIsWhole) {
  const base::Result<std::vector<std::string>> found = lint(real, "00");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value(), std::vector<std::string>{});
}

// All but what is still to be written, which is named with its line.
std::vector<std::string> but_for_what_is_to_be_written(std::vector<std::string> findings) {
  std::erase_if(findings, [](const std::string& one) { return one.ends_with(": says TODO still"); });
  return findings;
}

TEST(Lint, ANewLabIsWholeInForm) {
  const Project project;
  // Where it may write: labs, solutions and tests of its own.
  for (const char* one : {"labs", "solutions"}) std::filesystem::remove(project / one);
  std::filesystem::create_directories(project / "labs");
  ASSERT_TRUE(make_lab(project.root(), "05", "sequence_parallel").ok());
  const std::vector<std::string> found = lint(project.root(), "05").value();
  EXPECT_EQ(but_for_what_is_to_be_written(found), std::vector<std::string>{});
  EXPECT_NE(std::find(found.begin(), found.end(), "labs/05_sequence_parallel/text.md:1: says TODO still"), found.end());
  EXPECT_NE(std::find(found.begin(), found.end(), "solutions/05_sequence_parallel/solution.md:3: says TODO still"), found.end());
  EXPECT_FALSE(make_lab(project.root(), "05", "other").ok());
  EXPECT_FALSE(make_lab(project.root(), "6", "x").ok());
  EXPECT_FALSE(make_lab(project.root(), "06", "../x").ok());
}

TEST(Lint, WhatIsMissingIsNamed) {
  const Project project;
  for (const char* one : {"labs", "solutions"}) std::filesystem::remove(project / one);
  std::filesystem::create_directories(project / "labs");
  ASSERT_TRUE(make_lab(project.root(), "05", "x").ok());
  std::filesystem::remove(project / "solutions/05_x/work.cpp");
  std::filesystem::remove(project / "tests/data/labs/05a/halved.cpp");
  std::string json = content_of(project / "labs/05_x/lab.json");
  json.replace(json.find("\"minutes\": 40"), 13, "\"minutes\": 50");
  project.write("labs/05_x/lab.json", json);
  const std::vector<std::string> found = but_for_what_is_to_be_written(lint(project.root(), "05").value());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "labs/05_x/lab.json, 05a: takes 50 minutes; a part takes at most 45");
  EXPECT_NE(found[1].find("solutions/05_x/work.cpp: is missing"), std::string::npos);
  EXPECT_NE(found[2].find("holds 2 typical wrong answers"), std::string::npos);
}

// Lab 00 with its part b alone, whose check is the smallest.
class LabTrials : public ::testing::Test {
 protected:
  LabTrials() {
    for (const char* one : {"labs", "solutions"}) std::filesystem::remove(project / one);
    project.write("solutions/00_timeline/fit.cpp", solution());
    describe(R"("found": "all_reduce_32MiB_us"}])");
  }
  void describe(const std::string& ending) {
    project.write("labs/00_timeline/lab.json", R"({"title": "t", "parts": [{"id": "00b", "title": "t", "question": "q", "minutes": 5, "kind": "exercise", "exercise": "fit.cpp", "predict": [{"key": "sum", "text": "?", )" + ending + "}]}");
  }
  std::vector<std::string> tried() { return try_lab(project.root(), "00", {}, [this](const std::string& file, int, int) { files.push_back(file); }).value(); }

  Project project;
  std::vector<std::string> files;   // in the order in which they were tried
};

TEST_F(LabTrials, FindNothingWhereTheSolutionPassesAndItsFiguresAreThoseOfToday) {
  ASSERT_EQ(write_figures(project.root(), "00", {}, {}).value(), std::vector<std::string>{"solutions/00_timeline/00b.figures.json"});
  EXPECT_EQ(content_of(project / "solutions/00_timeline/00b.figures.json"), content_of(real + "/solutions/00_timeline/00b.figures.json")) << "as CMake writes it";
  EXPECT_EQ(tried(), std::vector<std::string>{});
  EXPECT_EQ(files, std::vector<std::string>(2, "solutions/00_timeline/fit.cpp")) << "with another seed, too";
}

TEST_F(LabTrials, NameWhatIsNotAsTheFilesSay) {
  describe(R"("found": "nope"}], "show": ["worst_error_percent", "best"], "by_seed": ["other.cpp"])");
  project.write("solutions/00_timeline/other.cpp", "int unused(int number) { return 1; }\n");
  project.write("solutions/00_timeline/00b.figures.json", "{\"worst_error_percent\": 11}\n");
  project.write("labs/00_timeline/fit.cpp", content_of(real + "/labs/00_timeline/fit.cpp"));
  project.write("tests/data/labs/00b/starter.txt", "two lines cannot do it\n");
  project.write("tests/data/labs/00b/right.cpp", "// fails with: anything\n" + solution());
  project.write("tests/data/labs/00b/wrong.cpp", "// fails with: nonsense\nint main() { return 0 }\n");
  const std::vector<std::string> found = tried();
  const std::string lab = "labs/00_timeline/lab.json, 00b: ", gives = "; it gives all_reduce_32MiB_us, worst_error_percent";
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(found[0], lab + "prediction `sum`: the check gives no figure `nope`" + gives);
  EXPECT_EQ(found[1], lab + "\"show\": the check gives no figure `best`" + gives);
  EXPECT_EQ(found[2], "solutions/00_timeline/00b.figures.json: is stale: ./shardbook lab figures 00 --write; then look at the texts that quote it");
  EXPECT_EQ(found[3].find("tests/data/labs/00b/starter.txt: its first line expects 'two lines cannot do it'; the check of labs/00_timeline/fit.cpp says 'At 2 MiB you say 18.6"), 0u) << found[3];
  EXPECT_EQ(found[4].find("solutions/00_timeline/other.cpp: does not pass: unused parameter"), 0u) << found[4] << ": a warning is an error, as in the tests";
  EXPECT_EQ(found[5], "tests/data/labs/00b/right.cpp: passes, and must not");
  EXPECT_EQ(found[6].find("tests/data/labs/00b/wrong.cpp: its first line expects 'nonsense'; the check says 'expected"), 0u) << found[6];
}

TEST_F(LabTrials, ThatCannotBeMadeAreOneSentenceAPart) {
  describe(R"("found": "nope"}])");
  project.write("labs/00_timeline/fit.cpp", "");
  TrialOptions options;
  options.build_folder = project / "build";
  const std::vector<std::string> found = try_lab(project.root(), "00", options, {}).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("run ./shardbook build, which makes it"), std::string::npos) << found[0];
  EXPECT_EQ(try_lab(project.root(), "99", options, {}).error().find("there is no lab '99'"), 0u);
}

}  // namespace
}  // namespace shardbook::workbook
