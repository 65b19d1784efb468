// A run that goes on from a checkpoint is the run that was never interrupted.
#include <algorithm>
#include <cmath>
#include <csignal>

#include "tests/checkpoint/runs.hpp"
#include "tests/support/checked.hpp"

namespace shardbook::tests {
namespace {

// Trains to the end, saving after `first` steps; then goes on from there, and must compute the same.
void expect_resumes(const Asked& asked, int first) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const Numbers whole = numbers_of(small(with(asked, {{"checkpoint", saved}, {"save-every", std::to_string(first)}, {"keep-checkpoints", "0"}})));
  ASSERT_EQ(whole.error, "");
  ASSERT_EQ(numbers_of(small(asked)).losses, whole.losses) << "saving changes no number";
  const std::string step = checkpoint::path_of_step(saved, first);
  ASSERT_EQ(damage_of(step), "");
  expect_goes_on(numbers_of(small(with(asked, {{"resume", step}}))), whole, first);
}

TEST(Resume, GivesTheLossesOfTheUninterruptedRunInEveryFormOfAStep) {
  const std::vector<Asked> forms = {
      {},
      {{"tp", "2"}, {"fsdp", "2"}, {"precision", "fp32"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"precision", "bf16"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"host-dtype", "f64"}},
      {{"fsdp", "4"}, {"reshard", "false"}},                                             // ZeRO-2
      {{"fsdp", "4"}, {"set", "fsdp.sharding=per_parameter"}},
      {{"fsdp", "4"}, {"set", "fsdp.reshard_group=2"}},
      {{"fsdp", "2"}, {"dp", "2"}},                                                      // sharded within, replicas without
      {{"dp", "4"}, {"set", "data_parallel.reduce=naive"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"micro-batches", "2"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"micro-batches", "2"}, {"set", "accumulate.reduce=last"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"hidden-dropout", "0.1"}, {"attention-dropout", "0.1"}},
      {{"tp", "2"}, {"set", "tensor_parallel.sequence=cut"}, {"hidden-dropout", "0.1"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"set", "fsdp.offload=optimizer"}},
      {{"fsdp", "2"}, {"set", "fsdp.offload=parameters"}},
      {{"fsdp", "2"}, {"set", "fsdp.blocks_a_unit=2"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"set", "fsdp.parameter_copy=made"}},
      {{"fsdp", "2"}, {"set", "fsdp.gradient_memory=lent"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"set", "fsdp.update=by_unit"}},                      // the first gathers come before the first step
      {{"fsdp", "2"}, {"tied", "false"}, {"architecture", "llama"}},
      {{"tp", "2"}, {"fsdp", "2"}, {"drain-seed", "7"}}};
  for (std::size_t at = 0; at < forms.size(); at += one_in) {
    const Asked& form = forms[at];
    std::string words;
    for (const auto& [option, value] : form) words += " --" + option + " " + value;
    SCOPED_TRACE(words);
    expect_resumes(form, 3);
  }
}

TEST(Resume, IsTheSameWhereverARunWasCut) {
  const Folder folder;
  const Asked asked{{"tp", "2"}, {"fsdp", "2"}};
  const std::string saved = folder / "saved";
  const Numbers whole = numbers_of(small(with(asked, {{"checkpoint", saved}, {"save-every", "1"}, {"keep-checkpoints", "0"}, {"drain-seed", "3"}})));
  ASSERT_EQ(whole.error, "");
  EXPECT_EQ(checkpoint::steps_in(saved), (std::vector<std::int64_t>{8, 7, 6, 5, 4, 3, 2, 1}));
  for (int first = 1; first < 8; ++first) {
    expect_goes_on(numbers_of(small(with(asked, {{"resume", checkpoint::path_of_step(saved, first)}}))), whole, first);
  }
}

TEST(Resume, OfTheTutorGoesOnInTheMiddleOfItsGrammar) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Folder folder;
    const Asked asked{{"layers", "4"}, {"width", "128"}, {"heads", "4"}, {"vocab", "256"}, {"sequence", "32"}, {"data", "grammar"}, {"steps", "6"}, {"tp", "2"},
                      {"fsdp", "2"}, {"precision", precision}, {"hidden-dropout", "0.1"}};
    const Numbers whole = numbers_of(small(with(asked, {{"checkpoint", folder / "saved"}, {"save-every", "4"}})));
    expect_goes_on(numbers_of(small(with(asked, {{"resume", folder / "saved/step-00000004"}}))), whole, 4);
  }
}

// A run goes on in the folder that it saves to, from the newest; each time the numbers are the same.
TEST(Resume, InTheSameFolderGoesOnFromTheNewestAndKeepsSoMany) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const Asked asked{{"fsdp", "2"}, {"steps", "12"}};
  const Numbers whole = numbers_of(small(asked));
  // Three runs of one schedule: the first two are stopped by a folder that cannot be written any more
  const Asked saving{{"checkpoint", saved}, {"save-every", "2"}, {"keep-checkpoints", "3"}};
  const Numbers first = numbers_of(small(with(asked, saving)));
  ASSERT_EQ(first.error, "");
  EXPECT_EQ(checkpoint::steps_in(saved), (std::vector<std::int64_t>{12, 10, 8}));
  std::filesystem::remove_all(checkpoint::path_of_step(saved, 12));
  std::filesystem::remove_all(checkpoint::path_of_step(saved, 10));
  expect_goes_on(numbers_of(small(with(with(asked, saving), {{"resume", saved}}))), whole, 8);
  EXPECT_EQ(checkpoint::steps_in(saved), (std::vector<std::int64_t>{12, 10, 8}));
}

TEST(Resume, TellsWhyItCannotBe) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const Asked asked{{"fsdp", "2"}};
  ASSERT_EQ(numbers_of(small(with(asked, {{"checkpoint", saved}, {"save-every", "4"}}))).error, "");
  const auto error_of = [&](const Asked& more) { return numbers_of(small(with(asked, more))).error; };
  const auto has = [](const std::string& error, const std::string& words) {
    EXPECT_NE(error.find(words), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  };
  has(error_of({{"resume", saved}}), "has done 8 steps, and this run is to have 8: ask for more with --steps");
  has(error_of({{"resume", folder / "nowhere"}}), "there is no folder");
  std::filesystem::create_directory(folder / "empty");
  has(error_of({{"resume", folder / "empty"}}), "there is no checkpoint in");
  has(error_of({{"checkpoint", saved}}), "holds a checkpoint of step 8, and this run does not begin there but at step 0: go on from it with --resume");
  has(error_of({{"steps", "9"}, {"checkpoint", saved}, {"resume", checkpoint::path_of_step(saved, 4)}}), "holds a checkpoint of step 8, and this run does not begin there but at step 4: go on");
  std::filesystem::create_directory(folder / "mine");
  std::filesystem::copy(checkpoint::path_of_step(saved, 4), checkpoint::path_of_step(folder / "mine", 4), std::filesystem::copy_options::recursive);
  has(error_of({{"steps", "9"}, {"checkpoint", folder / "mine"}, {"resume", saved}}), "does not begin there but at step 8 of another folder");
  has(error_of({{"steps", "9"}, {"resume", saved}, {"width", "64"}}), "and this model's is [64, 64]: ask for the sizes of the run that wrote it");
  has(error_of({{"steps", "9"}, {"resume", saved}, {"layers", "1"}}), "has a tensor blocks.1.");
  has(error_of({{"steps", "9"}, {"resume", saved}, {"layers", "3"}}), "has no tensor blocks.2.");
  has(error_of({{"steps", "9"}, {"resume", saved}, {"host-dtype", "f64"}}), "holds f32 and this run computes in f64: ask for the --host-dtype of the run that wrote it");
  has(error_of({{"steps", "9"}, {"resume", saved}, {"device", "meta"}}), "--device meta has shapes only");
}

// A run that is asked to stop saves where it stopped, however far that is from the last.
TEST(Saving, OfARunThatIsAskedToStopHasItsLastStep) {
  const Folder folder;
  const Asked asked{{"fsdp", "2"}, {"steps", "200"}, {"progress", "1"}};
  launch::LaunchOptions options;
  options.write_run = false;
  options.progress = [](const launch::Progress& now) {
    if (now.result.step == 5) std::raise(SIGINT);
  };
  const base::Result<launch::Outcome> stopped = launch::run(small(with(asked, {{"checkpoint", folder / "saved"}, {"save-every", "100"}})), options);
  ASSERT_TRUE(stopped) << stopped.error();
  ASSERT_TRUE(stopped.value().stopped_early);
  const auto done = static_cast<std::int64_t>(stopped.value().results.size());
  EXPECT_EQ(checkpoint::steps_in(folder / "saved"), std::vector<std::int64_t>{done});
  EXPECT_EQ(stopped.value().saves.count, 1);
  const Numbers whole = numbers_of(small(with(asked, {{"progress", "0"}})));
  expect_goes_on(numbers_of(small(with(asked, {{"progress", "0"}, {"resume", folder / "saved"}}))), whole, done);
}

// A rank that fails ends a save that is under way without a checkpoint; those before it are whole.
TEST(Saving, EndsWithoutACheckpointWhereARankFails) {
  const Asked asked{{"tp", "2"}, {"fsdp", "2"}, {"steps", "40"}};
  const Numbers whole = numbers_of(small(asked));
  for (const std::int64_t fails_at : {3, 6, 7}) {
    const Folder folder;
    launch::LaunchOptions options;
    options.write_run = false;
    options.progress = [&](const launch::Progress& now) {
      if (now.result.step == fails_at) throw base::Failure("no memory for layer 7");
    };
    const base::Result<launch::Outcome> failed =
        launch::run(small(with(asked, {{"progress", "1"}, {"checkpoint", folder / "saved"}, {"save-every", "1"}, {"keep-checkpoints", "0"}})), options);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error(), "rank 0: no memory for layer 7");
    const std::vector<std::int64_t> steps = checkpoint::steps_in(folder / "saved");
    EXPECT_LE(steps.size(), static_cast<std::size_t>(fails_at) + 1);
    for (const std::int64_t step : steps) EXPECT_EQ(damage_of(checkpoint::path_of_step(folder / "saved", step)), "");
    if (steps.empty()) continue;
    expect_goes_on(numbers_of(small(with(asked, {{"resume", folder / "saved"}}))), whole, steps[0]);
  }
}

// The update awaits the copy, in each step alike; and nothing else of the record is another.
TEST(Saving, LeavesOneMoreWaitInEachStepAndNoRace) {
  const Folder folder;
  const Asked asked{{"tp", "2"}, {"fsdp", "2"}, {"trace-steps", "3:8"}};
  const auto run = [&](const Asked& more, const std::string& out) {
    const base::Result<launch::Outcome> outcome = launch::run(small(with(with(asked, more), {{"out", folder / out}})), {});
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error());
    EXPECT_EQ(problem_of_run(folder / out, 4), "");
    return program::load(folder / (out + "/rank0.program"));
  };
  const base::Result<program::Record> plain = run({}, "plain"), saving = run({{"checkpoint", folder / "saved"}, {"save-every", "2"}}, "saving");
  ASSERT_TRUE(plain && saving);
  const auto waits = [](const program::Record& record) {
    const auto& commands = record.programs.back()->commands;
    return std::count_if(commands.begin(), commands.end(), [](const program::Command& command) { return command.kind == program::CommandKind::wait_event; });
  };
  EXPECT_EQ(saving.value().programs.size(), plain.value().programs.size()) << "steps that are saved are as those that are not";
  EXPECT_EQ(saving.value().programs.back()->ops.size(), plain.value().programs.back()->ops.size());
  EXPECT_EQ(waits(saving.value()), waits(plain.value()) + 1);
}

TEST(Saving, NamesNoFolderOfARunWhoseLossIsNotFinite) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const config::RunConfig config = small({{"fsdp", "2"}, {"lr", "999"}, {"clip", "0"}, {"warmup-steps", "0"}, {"steps", "40"}, {"checkpoint", saved}, {"save-every", "1"}, {"keep-checkpoints", "0"}});
  const Numbers numbers = numbers_of(config);
  ASSERT_EQ(numbers.error, "");
  const auto bad = std::find_if(numbers.losses.begin(), numbers.losses.end(), [](double loss) { return !std::isfinite(loss); });
  if (bad == numbers.losses.end()) GTEST_SKIP() << "every loss was finite";
  // The update of the last step with a finite loss and norm may be saved; none after it
  const auto finite = static_cast<std::int64_t>(bad - numbers.losses.begin());
  for (const std::int64_t step : checkpoint::steps_in(saved)) EXPECT_LE(step, finite);
}

}  // namespace
}  // namespace shardbook::tests
