// `why`, `whatif` and `diff` on the command line, and the sentence that all commands share.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const std::string captured = std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/";

// Text as one line: words of a paragraph are broken where the columns end.
std::string unbroken(const std::string& text) {
  std::string out;
  bool blank = false;
  for (char c : text) {
    const bool is_blank = c == '\n' || c == ' ';
    if (!is_blank) out += (blank && !out.empty() ? " " : "") + std::string(1, c);
    blank = is_blank;
  }
  return out;
}

TEST(Why, IsOneSentenceEverywhere) {
  const Folder folder;
  const std::string run = folder / "run";
  const Spoken trained = shardbook({"train", "--device", "meta", "--tp", "2", "--out", run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string sentence = json_of({"why", run})["sentence"];
  EXPECT_NE(sentence.find("host-bound"), std::string::npos) << sentence;
  EXPECT_EQ(json_of({"metrics", run})["sentence"], sentence);
  EXPECT_EQ(json_of({"report", run, "--out", folder / "page.html"})["sentence"], sentence);
  for (const std::string& text : {trained.out, shardbook({"why", run}).out, shardbook({"metrics", run}).out,
                                  shardbook({"report", run, "--out", folder / "page.html"}).out}) {
    EXPECT_NE(unbroken(text).find(sentence + "."), std::string::npos) << text;
  }
  const std::string page = content_of(folder / "page.html");
  EXPECT_NE(page.find("<p class=\"why\">T" + sentence.substr(1, 40)), std::string::npos);
  // Packed it says the same.
  ASSERT_EQ(shardbook({"pack", run, "--out", folder / "run.tar"}).code, 0);
  EXPECT_EQ(json_of({"why", folder / "run.tar"})["sentence"], sentence);
}

TEST(Why, WithoutRunJsonSaysThatItIsMissing) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--tp", "2", "--out", run}).code, 0);
  EXPECT_EQ(shardbook({"why", run}).err.find("run.json"), std::string::npos);
  std::filesystem::remove(run + "/run.json");
  const Spoken why = shardbook({"why", run});
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_NE(why.err.find(" has no run.json, without which what its ranks recorded is not read"), std::string::npos) << why.err;
}

TEST(WhatIf, SaysWhyComputeMovesByMoreThanItsFactor) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--tp", "2", "--out", run}).code, 0);
  EXPECT_NE(unbroken(shardbook({"whatif", run, "--scale", "compute=0.5"}).out).find("and the gap stays as it is"), std::string::npos);
  EXPECT_EQ(unbroken(shardbook({"whatif", run, "--scale", "host=0.5"}).out).find("and the gap stays as it is"), std::string::npos);
}

// What the step would take without the cause is never said as what the change gives; the viewer has the same words, which
// first_look.script looks for.
TEST(Why, SaysWhatTheCauseCostsApartFromWhatActsOnIt) {
  const std::string run = captured + "grammar-tutor-tp2-fsdp2.tar.gz";
  const nlohmann::json why = json_of({"why", run, "--step", "11"});
  const std::string sentence = why["sentence"];
  EXPECT_NE(sentence.find("; with that gone altogether the step would take 1.52 ms; what acts on it, and need not give that: --tp 1 --fsdp 2"), std::string::npos) << sentence;
  EXPECT_EQ(why["causes"][0]["without_it_ns"].get<std::int64_t>() + why["causes"][0]["gain_ns"].get<std::int64_t>(), why["step_ns"]);
  EXPECT_TRUE(why["causes"][0]["remedy_gives_ns"].is_null()) << "another cut was not resolved";
  EXPECT_EQ(why["shares_of"], "the critical path across ranks");
  EXPECT_EQ(why["idle_of"], "rank 0");
  const std::string script = content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/tests/viewer_scripts/first_look.script");
  EXPECT_NE(script.find("expect cause = \"Step 11" + sentence.substr(std::string("this step").size()) + ".\""), std::string::npos) << sentence;
  // Where the change itself was resolved, its result is said as its own.
  const nlohmann::json late = json_of({"why", captured + "gpt-1.3b-fsdp4-no-prefetch.tar.gz", "--top", "1"});
  EXPECT_NE(late["sentence"].get<std::string>().find("--prefetch 1 would give"), std::string::npos);
  EXPECT_EQ(late["causes"][0]["remedy_gives_ns"], late["causes"][0]["without_it_ns"]);
}

TEST(Why, OfAPackExplainsTheStepThatIsAskedFor) {
  const nlohmann::json why = json_of({"why", captured + "grammar-tutor-tp2-fsdp2.tar.gz", "--step", "11", "--top", "1"});
  EXPECT_EQ(why["step"], 11);
  EXPECT_EQ(why["causes"].size(), 1u);
  const Spoken spoken = shardbook({"why", captured + "grammar-tutor-tp2-fsdp2.tar.gz", "--step", "99"});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("there is no step 99 in this run; it has 10 to 12"), std::string::npos) << spoken.err;
}

TEST(WhatIf, GivesTheTutorsFigures) {
  const Folder folder;
  const std::string run = made_run(folder);
  const auto step_ms = [&](const std::string& change) { return json_of({"whatif", run, change})["would_be_ns"].get<double>() / 1e6; };
  EXPECT_NEAR(json_of({"whatif", run})["would_be_ns"].get<double>() / 1e6, 1.319, 5e-4);
  EXPECT_NEAR(step_ms("host=0"), 0.793, 5e-4);
  EXPECT_NEAR(step_ms("comm=0"), 1.319, 5e-4);
  EXPECT_NEAR(step_ms("alpha=0"), 1.319, 5e-4);
  EXPECT_EQ(json_of({"whatif", run, "--scale", "host=0"}), json_of({"whatif", run, "host=0"}));
  EXPECT_NE(shardbook({"whatif", run, "host=0"}).out.find("A model, not a measurement"), std::string::npos);
}

// README quotes it; its other figures are held by `says` comments.
TEST(Why, SaysOfTheFirstTenMinutesWhatReadmeQuotes) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--model", "gpt-1.3b", "--fsdp", "8", "--sequences", "64", "--prefetch", "0", "--out", run}).code, 0);
  const std::string readme = content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/README.md"), begin = "on what bounds its step, \"";
  const std::size_t at = readme.find(begin);
  ASSERT_NE(at, std::string::npos);
  const std::string quoted = readme.substr(at + begin.size(), readme.find('"', at + begin.size()) - at - begin.size());
  EXPECT_GT(quoted.size(), 20u);
  const nlohmann::json why = json_of({"why", run});
  EXPECT_NE(why["sentence"].get<std::string>().find(quoted), std::string::npos) << why["sentence"] << "\nREADME: " << quoted;
}

// A list takes every word behind it, so it is told there which is the run.
// What a measured step loses to its clock is told apart from what was asked; a modelled one has no clock of its own.
TEST(WhatIf, TellsWhatTheClockTakes) {
  const std::string run = std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz";
  const nlohmann::json answer = base::parse_json(shardbook({"whatif", run, "comm=0", "--json"}).out);
  const double clock_ns = answer.at("of_the_clock_ns"), slower_ns = answer.at("would_be").at("compute_ns").get<double>() - answer.at("as_it_is").at("compute_ns").get<double>();
  EXPECT_GT(clock_ns, 0.01 * answer.at("step_ns").get<double>());
  EXPECT_NEAR(clock_ns, slower_ns, 0.1 * slower_ns) << "nothing else makes compute slower where nothing is communicated";
  EXPECT_NE(shardbook({"whatif", run, "comm=0"}).out.find(" of that step are the clock's"), std::string::npos);
  EXPECT_EQ(shardbook({"whatif", run, "compute=1"}).out.find("the clock's"), std::string::npos);
}

TEST(WhatIf, TakesTheRunBeforeAListAndBehindIt) {
  const Folder folder;
  const std::string run = made_run(folder), named = folder / "tp=2";   // as folders of runs are named
  std::filesystem::rename(run, named);
  for (const auto& [list, value] : {std::pair{"--scale", "host=0"}, {"--drop", "waits=host"}, {"--set", "host.synchronize=layer"}}) {
    const Spoken before = shardbook({"whatif", named, list, value, "--json"}), behind = shardbook({"whatif", list, value, named, "--json"});
    EXPECT_EQ(before.code, 0) << before.err;
    EXPECT_EQ(behind.code, 0) << behind.err;
    EXPECT_EQ(before.out, behind.out) << list;
  }
  // What names a line is no run, in neither place
  for (const auto& [list, value] : {std::pair{"--drop", "wait=engine/no_such.cpp:1"}, {"--earlier", "engine/no_such.cpp:1"}}) {
    const Spoken before = shardbook({"whatif", named, list, value}), behind = shardbook({"whatif", list, value, named});
    EXPECT_NE(before.err.find("no_such.cpp:1"), std::string::npos) << before.err;
    EXPECT_EQ(before.err, behind.err);
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"whatif"}, {"whatif", "--set", "fsdp.prefetch=2"}, {"whatif", named, named}}) {
    const Spoken spoken = shardbook(words);
    EXPECT_EQ(spoken.code, 2);
    EXPECT_NE(spoken.err.find("whatif takes one run"), std::string::npos) << spoken.err;
  }
}

// Set to what it was, a switch changes nothing: every op is found again, by its key, in a step issued anew.
TEST(WhatIf, WithASwitchAsItWasGivesTheMeasuredStep) {
  for (const char* pack : {"gpt-1.3b-fsdp4.tar.gz", "gpt-1.3b-tp2-fsdp2.tar.gz", "grammar-tutor-tp2-fsdp2.tar.gz"}) {
    const nlohmann::json answer = json_of({"whatif", captured + pack, "--set", "host.synchronize=never"});
    EXPECT_NEAR(answer["would_be_ns"].get<double>() / answer["step_ns"].get<double>(), 1, 0.02) << pack;
    EXPECT_GT(answer["ops"]["measured"], 800) << pack;
    EXPECT_EQ(answer["ops"]["alike"], 0) << pack;
    EXPECT_EQ(answer["ops"]["modelled"], 0) << pack;
  }
}

// What is computed again was measured in forward already; a gather that is not there takes its time with it.
TEST(WhatIf, SaysThatARunHasWhatItIsAskedFor) {
  const std::string run = std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz";
  EXPECT_NE(shardbook({"whatif", run, "--set", "fsdp.prefetch=0"}).out.find("fsdp.prefetch is 0 in this run already."), std::string::npos);
  EXPECT_EQ(shardbook({"whatif", run, "--set", "fsdp.prefetch=1"}).out.find("already"), std::string::npos);
}

TEST(WhatIf, TakesMeasuredTimesOfOpsThatStandElsewhere) {
  const nlohmann::json again = json_of({"whatif", captured + "gpt-1.3b-fsdp4.tar.gz", "--set", "activations.recompute=full"});
  EXPECT_GT(again["ops"]["alike"], 1000);
  EXPECT_EQ(again["ops"]["modelled"], 0);
  EXPECT_GT(again["would_be_ns"], again["step_ns"]);
  const nlohmann::json whole = json_of({"whatif", captured + "gpt-1.3b-fsdp4.tar.gz", "--set", "fsdp.reshard=false"});
  EXPECT_LT(whole["ops"]["measured"], json_of({"whatif", captured + "gpt-1.3b-fsdp4.tar.gz", "--set", "host.synchronize=never"})["ops"]["measured"]);
}

// An option that is a switch's other name is taken; one that changes ranks or model is refused with what to do.
TEST(WhatIf, TakesOptionsThatHaveASwitchAndSaysWhatToDoOfOthers) {
  const std::string run = captured + "gpt-1.3b-fsdp4-no-prefetch.tar.gz";
  const nlohmann::json by_option = json_of({"whatif", run, "--prefetch", "1"});
  EXPECT_EQ(by_option, json_of({"whatif", run, "--set", "fsdp.prefetch=1"}));
  EXPECT_LT(by_option["would_be_ns"], by_option["step_ns"]);
  EXPECT_EQ(json_of({"whatif", run, "--reshard", "false"}), json_of({"whatif", run, "--set", "fsdp.reshard=false"}));
  for (const char* option : {"tp", "sequences", "model"}) {
    const Spoken spoken = shardbook({"whatif", run, std::string("--") + option, "2"});
    EXPECT_EQ(spoken.code, 2);
    EXPECT_NE(spoken.err.find(std::string("whatif takes no --") + option + ": it keeps the ranks, the model and the batch of the run"), std::string::npos) << spoken.err;
  }
  EXPECT_NE(shardbook({"whatif", run, "--stepp", "2"}).err.find("the nearest is --step"), std::string::npos);
}

TEST(WhatIf, RefusesWhatHasNoRecord) {
  const Spoken spoken = shardbook({"whatif", std::string(SHARDBOOK_SOURCE_DIR) + "/tests/metrics/data/fsdp_rank0.json.gz", "host=0"});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("not a run of ours with its record"), std::string::npos) << spoken.err;
}

TEST(Diff, OfTwoCapturedRunsNamesThePrefetch) {
  const nlohmann::json diff = json_of({"diff", captured + "gpt-1.3b-fsdp4.tar.gz", captured + "gpt-1.3b-fsdp4-no-prefetch.tar.gz"});
  ASSERT_EQ(diff["changed"].size(), 1u);
  EXPECT_EQ(diff["changed"][0]["option"], "prefetch");
  EXPECT_NEAR(diff["compute_ns"].get<double>() + diff["exposed_communication_ns"].get<double>() + diff["exposed_memory_ns"].get<double>() +
                  diff["idle_ns"].get<double>(),
              diff["after_ns"].get<double>() - diff["before_ns"].get<double>(), 2);
  // The viewer says the same sentence and the same sums, which compare.script looks for in its panel.
  const std::string script = content_of(std::string(SHARDBOOK_SOURCE_DIR) + "/tests/viewer_scripts/compare.script");
  EXPECT_NE(script.find("expect compared.sentence = \"" + diff["sentence"].get<std::string>() + ".\""), std::string::npos) << diff["sentence"];
  EXPECT_NE(script.find("The step " + diff["reconciliation"].get<std::string>() + "."), std::string::npos) << diff["reconciliation"];
}

TEST(Commands, AreCalledNearestOnlyIfTheyMayBeASlip) {
  for (const char* word : {"banana", "yesterday", "xylophone"}) {
    const Spoken spoken = shardbook({word});
    EXPECT_EQ(spoken.code, 2);
    EXPECT_EQ(spoken.err.find("nearest"), std::string::npos) << spoken.err;
  }
  EXPECT_NE(shardbook({"metrcis"}).err.find("the nearest is `metrics`"), std::string::npos);
}

TEST(Report, OfAPackLeavesNothingBesideThePack) {
  const Folder folder, elsewhere;
  const std::string run = made_run(folder);
  ASSERT_EQ(shardbook({"pack", run, "--out", folder / "p.tar"}).code, 0);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(elsewhere.path());
  const Spoken spoken = shardbook({"report", folder / "p.tar"});
  std::filesystem::current_path(before);
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "p.html"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() / "p.html"));
}

}  // namespace
}  // namespace shardbook::cli
