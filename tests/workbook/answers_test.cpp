// Answers and predictions are read as people write them; what is right is computed from the captured runs.
#include "engine/workbook/answers.hpp"
#include "engine/workbook/course.hpp"
#include "engine/workbook/learner.hpp"
#include "tests/workbook/place.hpp"

namespace shardbook::workbook {
namespace {

TEST(Answers, NumbersMayBeWrittenAsPeopleDo) {
  for (const char* written : {"25.7", "25,7 ms", "~25.7ms", "25700us", "25700 µs", "0.0257 s", "≈ 25.7"}) {
    ASSERT_TRUE(number_in(written, "ms").has_value()) << written;
    EXPECT_NEAR(*number_in(written, "ms"), 25.7, 1e-9) << written;
  }
  EXPECT_EQ(number_in("rank 2", "rank"), 2.0);
  EXPECT_EQ(number_in("-3", "ms"), -3.0);
  for (const char* written : {"", "much", "25 MB", "nan", "rank"}) EXPECT_FALSE(number_in(written, "ms").has_value()) << written;
}

TEST(Answers, AFileIsReadBackAsItWasFilledIn) {
  Part part;
  part.id = "00a";
  part.answers = {{"late_rank", "Which?", "rank", "x", 0, {}, {}, "", ""}, {"regime", "What?", "", "x", 0, {"host", "compute"}, {}, "", ""}};
  const std::string blank = blank_answers(part);
  EXPECT_TRUE(answers_from(blank, part, "f").value().empty());
  const std::string filled = with_answers(blank, {{"regime", "host"}});
  EXPECT_EQ(answers_from(filled, part, "f").value(), (Answers{{"regime", "host"}}));
  EXPECT_EQ(with_answers(filled, {{"regime", "compute"}}).find("host\n"), std::string::npos);
  EXPECT_EQ(answers_from("late_rnak = 2\n", part, "f").error(), "f:1: 00a does not ask for 'late_rnak'; the nearest is late_rank");
  EXPECT_EQ(answers_from("two words\n", part, "f").error(), "f:1 is no answer: write KEY = VALUE, or begin it with #");
  EXPECT_EQ(answers_from("late_rank = 1\nlate_rank = 2\n", part, "f").error(), "f:2: 'late_rank' is answered twice");
}

class Lab00 : public ::testing::Test {
 protected:
  Lab00() : labs(all_labs(project.root()).value()), place(find_part(labs, "00a").value()), facts(project.root(), *place.lab) {}
  double number(const std::string& name) { return facts.value(name).value().number; }
  Answers right() { return answers_from(content_of(project / solution_of(place)), *place.part, "solution").value(); }
  std::string first_on(Answers answers) {
    const Verdict verdict = judge_answers(facts, *place.part, answers, "f").value();
    return verdict.passed ? "passed" : verdict.findings.front().message;
  }

  Project project;
  std::vector<Lab> labs;
  Place place;
  Facts facts;
};

// Read off the tables of `shardbook metrics` and `why` by hand.
TEST_F(Lab00, FactsAreWhatTheTablesSay) {
  EXPECT_NEAR(number("exposed_less"), 60.399303 - 5.163893, 1e-6);
  EXPECT_NEAR(number("compute_more"), 283.432737 - 253.284155, 1e-6);
  EXPECT_NEAR(number("window_less"), 315.552631 - 289.889638, 1e-6);
  EXPECT_NEAR(number("window_quiet"), 289.882, 0.001);
  EXPECT_NEAR(number("busy_exposed_3"), 97.169638, 1e-6);
  EXPECT_NEAR(number("busy_exposed_2"), 4.403390, 1e-6);
  EXPECT_EQ(number("late_rank"), 2);
  EXPECT_EQ(facts.value("busy_regime").value().word, "rank");
  EXPECT_EQ(facts.value("tutor_regime").value().word, "host");
  EXPECT_EQ(facts.value("tp4_regime").value().word, "bandwidth");
  EXPECT_NEAR(number("tutor_exposed"), 0.318915, 1e-6);
  EXPECT_NEAR(number("tutor_host_share"), 77.1, 0.1);
  EXPECT_NEAR(number("tp4_exposed"), 16.5842, 1e-4);
  EXPECT_NEAR(number("all_reduce_32MiB"), 171.766, 1e-3);
}

// The cause taken away, and the effect gone.
TEST_F(Lab00, FreeCommunicationHelpsTensorParallelAndNotTheTutor) {
  EXPECT_LT(number("tutor_comm_price"), 0.1 * number("tutor_step"));
  EXPECT_LT(number("tutor_compute_price"), 0.1 * number("tutor_step"));
  EXPECT_GT(number("tp4_comm_price"), 0.25 * number("tp4_step"));
  EXPECT_LT(number("tp4_alpha_price"), 0.05 * number("tp4_step"));
}

TEST_F(Lab00, TheSolutionPassesAndBlankAnswersAskTheFirstQuestion) {
  EXPECT_EQ(first_on(right()), "passed");
  EXPECT_EQ(first_on({}), "question 1, late_rank: no answer yet. " + place.part->answers.front().text);
}

TEST_F(Lab00, EachTypicalWrongAnswerGetsTheMessageMeantForIt) {
  const auto with = [&](const std::string& key, const std::string& value) {
    Answers answers = right();
    answers[key] = value;
    return first_on(answers);
  };
  EXPECT_EQ(with("late_rank", "3").find("question 1, late_rank, you said 3. Rank 3 exposes most (97.2 ms) because it waits; rank 2 exposes 4.4, and"), 0u) << with("late_rank", "3");
  EXPECT_NE(with("busy_regime", "compute").find("Three of four GPUs stand still"), std::string::npos);
  EXPECT_NE(with("compute_more", "55.2").find("That is the communication that is no longer exposed"), std::string::npos) << with("compute_more", "55.2");
  EXPECT_NE(with("tutor_regime", "bandwidth-bound").find("% of the path is the host's"), std::string::npos);
  EXPECT_NE(with("tp4_regime", "latency").find("It is the bytes"), std::string::npos);
  EXPECT_NE(with("tp4_regime", "communication").find("'communication' is none of host, latency"), std::string::npos);
  EXPECT_NE(with("tutor_exposed", "some").find("'some' is no number"), std::string::npos);
}

TEST_F(Lab00, EveryMessageHintAndWhyCanBeFilledIn) {
  for (const Lab& lab : labs) {
    Facts of_lab(project.root(), lab);
    for (const Part& part : lab.parts) {
      const auto fills = [&](const std::string& content) {
        const base::Result<std::string> filled = of_lab.filled(content);
        EXPECT_TRUE(filled.ok()) << (filled ? "" : filled.error());
        EXPECT_EQ(filled.value().find('{'), std::string::npos) << filled.value();
      };
      fills(part.why);
      for (const Answer& answer : part.answers) {
        for (const Wrong& wrong : answer.wrong) fills(wrong.message);
        fills(answer.otherwise);
        EXPECT_TRUE(of_lab.value(answer.fact).ok());
      }
    }
  }
}

TEST_F(Lab00, PredictionsAreComparedWithWhatWasFound) {
  PartState state;
  state.predicted = {{"shorter", "51"}, {"fault", "3"}};
  const std::vector<Compared> both = compared(facts, *place.part, state, {}).value();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(sentence(both[0]), "you 51 ms, found 25.7 ms: 1.99 ×");
  EXPECT_EQ(sentence(both[1]), "you rank 3, found rank 2");
  state.predicted->at("fault") = "2";
  EXPECT_EQ(sentence(compared(facts, *place.part, state, {}).value()[1]), "you rank 2, found rank 2: right");
  EXPECT_FALSE(prediction_of(*place.part, place.part->predict[0], "a lot").ok());
  EXPECT_FALSE(prediction_of(*place.part, place.part->predict[0], "-7").ok());
  EXPECT_EQ(prediction_of(*place.part, place.part->predict[0], " 0.02 s").value(), "20");
  // A count has no unit, and is a number all the same; words are for what an answer has words for.
  Part part;
  const Prediction count{"sums", "How many?", "", "sums_a_block"}, word{"cause", "Which?", "", "cause"};
  EXPECT_EQ(prediction_of(part, count, "four").error(), "'four' is no number: a guess will do, such as sums=10");
  EXPECT_FALSE(prediction_of(part, count, "about500").ok());
  EXPECT_EQ(prediction_of(part, count, "4").value(), "4");
  Answer answer;
  answer.key = "cause";
  answer.choices = {"host", "network"};
  part.answers = {answer};
  EXPECT_EQ(prediction_of(part, word, "Host").value(), "host");
}

TEST(LabJson, WhatIsMissingIsNamedWithItsFile) {
  EXPECT_NE(lab_from_json("{", "05_x", "labs/05_x/lab.json").error().find("labs/05_x/lab.json: this lab's description cannot be read"), std::string::npos);
  EXPECT_NE(lab_from_json(R"({"title": "t", "parts": [{"id": "05a", "title": "t", "question": "q", "minutes": 5, "kind": "dance"}]})", "05_x", "f").error().find("`parts[0].kind` is \"dance\"; it may be"), std::string::npos);
  EXPECT_NE(lab_from_json(R"({"title": "t", "parts": [{"id": "05a", "title": "t", "question": "q", "minutes": 5, "kind": "exercise"}]})", "05_x", "f").error().find("without \"exercise\""), std::string::npos);
}

TEST(LabJson, ABadEntryIsNamedWithItsKey) {
  const auto error_of = [](const std::string& part) { return lab_from_json(R"({"title": "t", "parts": [{"id": "05a", "title": "t", "question": "q", "minutes": 5, "kind": "notes"}, )" + part + "]}", "05_x", "f").error(); };
  const std::string whole = R"({"id": "05b", "title": "t", "question": "q", "kind": "notes")";
  EXPECT_EQ(error_of(whole + "}"), "f: `parts[1]` needs \"minutes\"");
  EXPECT_EQ(error_of(whole + R"(, "minutes": "forty"})"), "f: `parts[1].minutes` is \"forty\", and should be a number");
  EXPECT_EQ(error_of(whole + R"(, "minutes": 40, "predict": [{"text": "?", "found": 1}]})"), "f: `parts[1].predict[0]` needs \"key\"");
  EXPECT_EQ(error_of(whole + R"(, "minutes": 40, "cards": [{"q": "?", "a": "!"}, {"q": 7, "a": "!"}]})"), "f: `parts[1].cards[1].q` is 7, and should be a text in quotes");
  EXPECT_EQ(error_of(whole + R"(, "minutes": 40, "hints": "look"})"), "f: `parts[1].hints` is \"look\", and should be a list in [...]");
  EXPECT_EQ(lab_from_json(R"({"title": {"es": "t"}})", "05_x", "f").error(), "f: `title` needs \"en\"");
  EXPECT_EQ(lab_from_json(R"({"title": "t", "facts": {"step": {"run": "r"}}})", "05_x", "f").error(), "f: `facts.step` needs \"figure\"");
}

}  // namespace
}  // namespace shardbook::workbook
