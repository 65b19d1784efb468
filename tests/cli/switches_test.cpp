// `switches`, and the runs that a row names to try it on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/config/switches.hpp"
#include "tests/cli/spoken.hpp"
#include "tests/support/switch_names.hpp"

namespace shardbook::cli {
namespace {

using config::switches;
using config::Trial;

TEST(Switches, AreListedWithTheirValuesAndSentencesIn80Columns) {
  const Spoken spoken = shardbook({"switches"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  std::istringstream lines(spoken.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const config::Switch& row : switches()) {
    EXPECT_NE(spoken.out.find("\n" + row.key + " "), std::string::npos) << row.key;
    EXPECT_NE(spoken.out.find(row.values_text() + " [" + row.default_value + "]"), std::string::npos) << row.key;
  }
}

TEST(Switches, TellAllOfOneByItsName) {
  const Spoken spoken = shardbook({"switches", "fsdp.backward_prefetch"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  for (const char* said : {"torch/distributed/fsdp/_runtime_utils.py:L686-L689 @a1cb3cc0", "BackwardPrefetch.BACKWARD_PRE", "fsdp > 1", "same bits",
                           "notes/04_fsdp.md#depth", "./shardbook train --device meta --model", "--set fsdp.backward_prefetch=none"}) {
    EXPECT_NE(spoken.out.find(said), std::string::npos) << said << "\n" << spoken.out;
  }
}

TEST(Switches, AreTheSameAsJson) {
  const Spoken all = shardbook({"switches", "--json"});
  ASSERT_EQ(all.code, 0) << all.err;
  const nlohmann::json rows = base::parse_json(all.out);
  ASSERT_EQ(rows.size(), switches().size());
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(base::parse_json(shardbook({"switches", row["key"], "--json"}).out), row);
    for (const nlohmann::json& original : row["originals"]) EXPECT_TRUE(std::string(original["url"]).starts_with("https://github.com/"));
  }
}

// What a row says of an original begins with a name that stands in its lines; lab 03 asks for such names, and has the table.
TEST(Switches, NameWhatStandsInTheLinesOfTheOriginal) {
  std::ifstream file(book::project_root() + "/labs/03_reading/places.json");
  std::map<std::string, nlohmann::json> names;
  const nlohmann::json places = base::parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  for (const nlohmann::json& project : places["projects"]) {
    for (const nlohmann::json& one : project["files"]) names[one["path"]] = one["names"];
  }
  int looked_up = 0;
  for (const config::Switch& row : switches()) {
    for (const config::Original& original : row.originals) {
      const auto known = names.find(original.path);
      if (known == names.end()) continue;
      const std::string name = original.what.substr(0, original.what.find(':'));
      const std::vector<int> lines = known->second.value(name, std::vector<int>{});
      EXPECT_TRUE(std::ranges::any_of(lines, [&](int line) { return line >= original.first_line && line <= original.last_line; }))
          << row.key << ": " << name << " in " << original.path << ":" << original.first_line;
      ++looked_up;
    }
  }
  EXPECT_GE(looked_up, 15);
}

TEST(Switches, AMissedNameGetsTheNearestOne) {
  const Spoken spoken = shardbook({"switches", "fsdp.prefetsh"});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("the nearest is fsdp.prefetch,"), std::string::npos) << spoken.err;
  EXPECT_EQ(spoken.out, "");
}

TEST(Switches, TheHelpOfTrainAndRunSaysHowToSetThem) {
  for (const char* command : {"train", "run"}) {
    const std::string help = shardbook({command, "--help"}).out;
    EXPECT_NE(help.find("--set fsdp.backward_prefetch=none"), std::string::npos);
    EXPECT_NE(help.find("`shardbook switches`"), std::string::npos);
  }
}

TEST(Switches, InForceAreWrittenBesideTheRun) {
  const Folder folder;
  const std::string run = folder / "run";
  const Spoken trained = shardbook({"train", "--device", "meta", "--fsdp", "2", "--set", "fsdp.backward_prefetch=post", "--out", run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const nlohmann::json info = base::parse_json(content_of(run + "/run.json"));
  EXPECT_EQ(info["switches"].size(), switches().size());
  EXPECT_EQ(info["switches"]["fsdp.backward_prefetch"], "post");
  EXPECT_EQ(info["switches"]["fsdp.prefetch"], "1");
}

TEST(Switches, AreNamedByDiffWhereTheyDifferAndOnce) {
  const Folder folder;
  const std::vector<std::string> plain = {"train", "--device", "meta", "--fsdp", "2", "--out"};
  std::vector<std::string> other = {"train", "--device", "meta", "--fsdp", "2", "--set", "fsdp.backward_prefetch=none", "--prefetch", "2", "--out"};
  for (auto [words, name] : {std::pair{plain, "before"}, std::pair{other, "after"}}) {
    words.push_back(folder / name);
    ASSERT_EQ(shardbook(words).code, 0);
  }
  const Spoken spoken = shardbook({"diff", folder / "before", folder / "after", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json expected = {{{"option", "fsdp.backward_prefetch"}, {"before", "pre"}, {"after", "none"}},
                                   {{"option", "prefetch"}, {"before", "1"}, {"after", "2"}}};
  EXPECT_EQ(base::parse_json(spoken.out).at("changed"), expected) << spoken.out;
}

// Of two values of one switch neither is taken, whichever way each is asked for; the same value twice is one.
TEST(Switches, OfTwoValuesAreRefusedAndNamedAsTheyWereTyped) {
  const Folder folder;
  const std::vector<std::string> made = {"train", "--device", "meta", "--fsdp", "2", "--steps", "1", "--trace-steps", "0:0", "--out", folder / "run"};
  ASSERT_EQ(shardbook(made).code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{"train", "--device", "meta", "--fsdp", "2", "--prefetch", "2", "--set", "fsdp.prefetch=0", "--out", folder / "other"}, "--set fsdp.prefetch=0 and --prefetch 2 ask for two values of fsdp.prefetch: leave one of them out"},
      {{"plan", "--fsdp", "2", "--set", "fsdp.prefetch=0", "--set", "fsdp.prefetch=1"}, "--set fsdp.prefetch=0 and --set fsdp.prefetch=1 ask for two values of fsdp.prefetch"},
      {{"whatif", folder / "run", "--prefetch", "2", "--set", "fsdp.prefetch=0"}, "--set fsdp.prefetch=0 and --prefetch 2 ask for two values of fsdp.prefetch"},
      {{"whatif", folder / "run", "comm=0", "comm=1"}, "comm=0 and comm=1 ask for two values of comm"}};
  for (const auto& [words, sentence] : lines) {
    const Spoken spoken = shardbook(words);
    EXPECT_EQ(spoken.code, 2) << words.front();
    EXPECT_NE(spoken.err.find(sentence), std::string::npos) << spoken.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
  EXPECT_EQ(shardbook({"plan", "--fsdp", "2", "--prefetch", "0", "--set", "fsdp.prefetch=0"}).code, 0);
}

// ---- Trials ------------------------------------------------------------------------------------

// The modelled step of a line of options, without what tracing costs: as `train --device meta` says it, but no folder is written.
// The same line is run once.
double modelled_step_ns(const std::string& options) {
  static std::map<std::string, double> known;
  if (const auto found = known.find(options); found != known.end()) return found->second;
  std::vector<std::string> words = {"--steps", "1", "--trace-steps", "0:0"};
  std::istringstream typed(options);
  for (std::string word; typed >> word;) words.push_back(word);
  const base::Result<launch::Outcome> ran = run_on_meta(words);
  EXPECT_TRUE(ran.ok()) << options << "\n" << ran.error();
  return known[options] = ran.ok() ? ran.value().speed.step_ns : 0;
}

// What a rank sets aside, by the formulas.
double bytes_set_aside(const std::string& options) {
  std::vector<std::string> words = {"plan", "--memory", "--json"};
  std::istringstream typed(options);
  for (std::string word; typed >> word;) words.push_back(word);
  const Spoken spoken = shardbook(words);
  EXPECT_EQ(spoken.code, 0) << options << "\n" << spoken.err;
  return spoken.code == 0 ? base::parse_json(spoken.out).at("memory").at("bytes").get<double>() : 0;
}

double percent_of_change(const std::string& key, const Trial& trial) {
  if (trial.memory) return 100 * std::abs(bytes_set_aside(trial.options + " --set " + key + "=" + trial.value) / bytes_set_aside(trial.options) - 1);
  const double without = modelled_step_ns(trial.options), with = modelled_step_ns(trial.options + " --set " + key + "=" + trial.value);
  return 100 * std::abs(with / without - 1);
}

class Trials : public testing::TestWithParam<config::Switch> {};

TEST_P(Trials, MoveTheStepOrTheMemoryWhereTheySayAndNotWhereTheySay) {
  const config::Switch& row = GetParam();
  EXPECT_GE(percent_of_change(row.key, row.moves), row.moves.percent) << row.moves.options;
  if (row.still.value.empty()) return;   // the table says why
  EXPECT_LT(percent_of_change(row.key, row.still), row.still.percent) << row.still.options;
}

// Whoever has the run without a switch is told what the one with it takes, to the nanosecond.
TEST_P(Trials, AreForetoldByWhatIf) {
  const config::Switch& row = GetParam();
  const Folder folder;
  std::vector<std::string> words = {"train", "--device", "meta", "--steps", "1", "--trace-steps", "0:0", "--out", folder / "run"};
  std::istringstream typed(row.moves.options);
  for (std::string word; typed >> word;) words.push_back(word);
  ASSERT_EQ(shardbook(words).code, 0);
  const Spoken spoken = shardbook({"whatif", folder / "run", "--set", row.key + "=" + row.moves.value, "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json answer = base::parse_json(spoken.out);
  EXPECT_EQ(answer.at("is"), "a model, not a measurement");
  EXPECT_EQ(answer.at("step_ns").get<double>(), modelled_step_ns(row.moves.options));
  EXPECT_EQ(answer.at("would_be_ns").get<double>(), modelled_step_ns(row.moves.options + " --set " + row.key + "=" + row.moves.value));
}

std::vector<config::Switch> that_a_clock_shows() {
  std::vector<config::Switch> rows;
  for (const config::Switch& row : switches()) {
    if (row.promise != config::Promise::wrong && !row.of_gpus_alone()) rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Table, Trials, testing::ValuesIn(that_a_clock_shows()), tests::name_of_row);

// What no model has was measured, and the page of what was measured says so.
TEST(Switches, ThatOnlyAGpuShowsStandInTheTableOfWhatWasMeasured) {
  std::ifstream file(book::project_root() + "/experiments/switches/README.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(std::ranges::any_of(switches(), [](const config::Switch& row) { return row.moves.measured; }));
  for (const config::Switch& row : switches()) {
    if (!row.of_gpus_alone()) continue;
    EXPECT_TRUE(std::ranges::any_of(row.needs, [](const std::string& need) { return need.starts_with("device = cuda"); })) << row.key;
    for (const Trial* trial : {&row.moves, &row.still}) {
      if (!trial->measured) continue;
      EXPECT_NE(page.find("`" + row.key + "=" + trial->value + "`"), std::string::npos) << row.key << "=" << trial->value;
    }
    EXPECT_NE(shardbook({"switches", row.key}).out.find("changes the measured step (on 2 H200s) by at least"), std::string::npos) << row.key;
    const Spoken refused = shardbook({"train", "--device", "meta", "--fsdp", "2", "--set", row.key + "=" + row.moves.value});
    EXPECT_EQ(refused.code, 2);
    // What a profile may have, the one that ships has not
    const bool of_profiles = std::ranges::count(row.needs, "device = cuda") == 0;
    EXPECT_NE(refused.err.find(of_profiles ? "profile h200x8 has no collectives of windows" : "does nothing here: it needs device = cuda"), std::string::npos) << refused.err;
    const Spoken foretold = shardbook({"whatif", book::project_root() + "/experiments/captured/gpt-1.3b-fsdp4.tar.gz", "--set", row.key + "=" + row.moves.value});
    EXPECT_EQ(foretold.code, 2);
    EXPECT_NE(foretold.err.find("that is only measured; train with it"), std::string::npos) << foretold.err;
  }
}

// Options and their values, in any order; all axes are said.
std::multiset<std::string> options_in(const std::string& said) {
  std::multiset<std::string> options;
  std::istringstream typed(said);
  for (std::string option, value; typed >> option >> value;) options.insert(option + " " + value);
  for (const char* axis : {"--tp ", "--fsdp ", "--dp "}) {
    if (std::ranges::none_of(options, [axis](const std::string& one) { return one.starts_with(axis); })) options.insert(std::string(axis) + "1");
  }
  return options;
}

// The step of the measured runs that have these options, over turns the median, in ms; 0 where there is none.
double measured_step_ms(const nlohmann::json& runs, const std::string& options) {
  for (const auto& [said, run] : runs.items()) {
    if (options_in(said) != options_in(options) || run.at("turns").empty()) continue;
    std::vector<double> steps;
    for (const nlohmann::json& turn : run.at("turns")) steps.push_back(turn.at("step_ms").get<double>());
    std::ranges::sort(steps);
    return (steps[(steps.size() - 1) / 2] + steps[steps.size() / 2]) / 2;
  }
  return 0;
}

// The file of the runs that stand behind them is in experiments/, and holds them to what they say.
TEST(Switches, ThatOnlyAGpuShowsWereMeasuredToMoveTheStepAndNotToMoveIt) {
  std::ifstream file(book::project_root() + "/experiments/switches/h200x2.json");
  const nlohmann::json runs = base::parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  for (const config::Switch& row : switches()) {
    if (!row.of_gpus_alone()) continue;
    for (const Trial* trial : {&row.moves, &row.still}) {
      ASSERT_TRUE(trial->measured) << row.key;
      const double without = measured_step_ms(runs, trial->options), with = measured_step_ms(runs, trial->options + " --set " + row.key + "=" + trial->value);
      ASSERT_GT(without, 0) << trial->options;
      ASSERT_GT(with, 0) << trial->options << " --set " << row.key << "=" << trial->value;
      const double percent = 100 * std::abs(with / without - 1);
      if (trial == &row.moves) EXPECT_GE(percent, trial->percent) << row.key;
      else EXPECT_LT(percent, trial->percent) << row.key;
    }
  }
}

// ---- Machines and mistakes of the labs ----------------------------------------------------------

nlohmann::json why_of(const Folder& folder, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"train", "--device", "meta", "--steps", "1", "--out", folder / "run"};
  words.insert(words.end(), options.begin(), options.end());
  const Spoken trained = shardbook(words);
  EXPECT_EQ(trained.code, 0) << trained.err;
  return base::parse_json(shardbook({"why", folder / "run", "--json"}).out);
}

TEST(LabMachines, AreNamedByWhy) {
  for (const char* rank : {"0", "1", "3"}) {
    const Folder folder;
    const nlohmann::json why = why_of(folder, {"--model", "gpt-124m", "--tp", "4", "--sequences", "8", "--set", std::string("rank.slow=") + rank + ":20"});
    EXPECT_EQ(why["regime"], "rank") << rank;
    const std::string what = why["causes"][0]["what"];
    EXPECT_TRUE(what.starts_with(std::string("all wait for rank ") + rank + ", whose kernels take ")) << what;
  }
  const Folder folder;
  const nlohmann::json why = why_of(folder, {"--model", "gpt-124m", "--fsdp", "8", "--sequences", "32", "--set", "host.delay=20"});
  EXPECT_EQ(why["regime"], "host");
  const Folder fast;
  EXPECT_NE(why_of(fast, {"--model", "gpt-124m", "--fsdp", "8", "--sequences", "32"})["regime"], "host");
}

TEST(LabMachines, WithAnIdealNetworkReportNoNumbers) {
  const Folder folder;
  const Spoken spoken = shardbook({"train", "--device", "host", "--tp", "2", "--layers", "1", "--width", "16", "--heads", "2", "--sequence", "16", "--sequences", "2",
                                   "--steps", "3", "--clock", "wall", "--progress", "1", "--set", "network=ideal", "--out", folder / "run"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("with these switches only times count"), std::string::npos) << spoken.out;
  EXPECT_EQ((spoken.out + spoken.err).find("· loss"), std::string::npos) << spoken.out << spoken.err;
  const nlohmann::json info = base::parse_json(content_of(folder / "run/run.json"));
  EXPECT_EQ(info["switches"]["network"], "ideal");
  EXPECT_EQ(info["results"]["only_times_count"], true);
  EXPECT_TRUE(info["results"]["losses"].empty());
  const Spoken verified = shardbook({"verify", folder / "run", "--against", folder / "run"});
  EXPECT_EQ(verified.code, 2);
  EXPECT_NE(verified.err.find("only its times count"), std::string::npos) << verified.err;
  // No rank waits for another, so there is no step of all ranks to explain
  const Spoken why = shardbook({"why", folder / "run"});
  EXPECT_EQ(why.code, 2);
  EXPECT_NE(why.err.find("the network was ideal"), std::string::npos) << why.out << why.err;
}

// Two steps of a small model, into a folder of this name.
Spoken train_small(const Folder& folder, const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train", "--device", "host", "--layers", "1", "--width", "16", "--heads", "2", "--sequence", "16", "--sequences", "4",
                                    "--steps", "2", "--warmup-steps", "0", "--trace-steps", "0:0", "--out", folder / name};
  words.insert(words.end(), more.begin(), more.end());
  return shardbook(words);
}

TEST(Mistakes, AreMarkedInTheRunAndFoundByVerify) {
  const Folder folder;
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) { return train_small(folder, name, more); };
  ASSERT_EQ(train("one", {}).code, 0);
  ASSERT_EQ(train("right", {"--fsdp", "2"}).code, 0);
  const Spoken wrong = train("wrong", {"--fsdp", "2", "--wrong", "loss.divisor=own_tokens"});
  ASSERT_EQ(wrong.code, 0) << wrong.err;
  EXPECT_NE((wrong.out + wrong.err).find("this run is wrong on purpose (loss.divisor=own_tokens)"), std::string::npos) << wrong.out << wrong.err;
  EXPECT_EQ(base::parse_json(content_of(folder / "wrong/run.json"))["results"]["wrong_on_purpose"], "loss.divisor=own_tokens");

  EXPECT_EQ(shardbook({"verify", folder / "right", "--against", folder / "one"}).code, 0);
  const Spoken found = shardbook({"verify", folder / "wrong", "--against", folder / "one", "--json"});
  EXPECT_EQ(found.code, 1);
  const std::string numbers = base::parse_json(found.out).at("numbers");
  EXPECT_NE(numbers.find("exactly 2 times"), std::string::npos) << numbers;
  // A plan that cannot be right is refused before a rank starts
  const Spoken refused = train("early", {"--fsdp", "2", "--wrong", "optimizer.update=before_sums"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("the norm comes before the gradient of root is summed"), std::string::npos) << refused.err;
}

// Of masks nothing is recorded and no wait is missing: one rank's numbers tell, if it dropped as much.
TEST(Mistakes, InDropoutMasksAreFoundByTheNumbersOfOneRank) {
  const Folder folder;
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--hidden-dropout", "0.1", "--attention-dropout", "0.1"});
    const Spoken spoken = train_small(folder, name, more);
    EXPECT_EQ(spoken.code, 0) << spoken.err;
  };
  const auto numbers = [&](const std::string& name) -> std::string {
    return base::parse_json(shardbook({"verify", folder / name, "--against", folder / "one", "--json"}).out).at("numbers");
  };
  train("one", {});
  train("right", {"--tp", "2", "--fsdp", "2", "--set", "activations.recompute=full"});
  EXPECT_EQ(numbers("right"), "");
  train("stream", {"--tp", "2", "--wrong", "dropout.stream=one"});
  EXPECT_NE(numbers("stream").find("from one random stream all 2 tp ranks give their heads the same ones"), std::string::npos) << numbers("stream");
  train("anew", {"--tp", "2", "--set", "activations.recompute=full", "--wrong", "dropout.recompute=anew"});
  EXPECT_NE(numbers("anew").find("did not drop what forward had dropped"), std::string::npos) << numbers("anew");
  // One that drops nothing cannot tell
  ASSERT_EQ(train_small(folder, "whole", {}).code, 0);
  const Spoken refused = shardbook({"verify", folder / "right", "--against", folder / "whole"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("differ in --"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace shardbook::cli
