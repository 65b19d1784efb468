// `notes`: what a learner types in lab 03, and that its predictions are what their runs give (tests/labs has its other figures).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/cli/notes_command.hpp"
#include "engine/reading/check.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const std::string root = SHARDBOOK_SOURCE_DIR;

TEST(NotesCommand, PassesTheReferenceAndRunsItsFiguresAgain) {
  const Spoken spoken = shardbook({"notes", "check", root + "/solutions/03_reading", "--sources", "nowhere"});
  EXPECT_EQ(spoken.code, 0) << spoken.out << spoken.err;
  EXPECT_NE(spoken.out.find("9 figures by their runs"), std::string::npos) << spoken.out;
  EXPECT_NE(spoken.out.find("Passed.\n"), std::string::npos);
  const nlohmann::json json = base::parse_json(shardbook({"notes", "check", root + "/solutions/03_reading", "--sources", "nowhere", "--json"}).out);
  EXPECT_TRUE(json["passed"]);
  EXPECT_EQ(json["choices"], 10);
  EXPECT_EQ(json["judged_by_table"], json["citations"]);
}

TEST(NotesCommand, OfAPartLeadsOnAndAMissingCloneIsNoClone) {
  const std::string reference = root + "/solutions/03_reading";
  const Spoken of_part = shardbook({"notes", "check", reference, "--part", "03a", "--sources", "nowhere"});
  EXPECT_EQ(of_part.code, 0) << of_part.out << of_part.err;
  EXPECT_NE(of_part.out.find("Next  ./shardbook next "), std::string::npos) << of_part.out;
  EXPECT_NE(shardbook({"notes", "check", reference, "--sources", "nowhere"}).out.find("Next  ./shardbook notes compare "), std::string::npos);
  const Spoken missing = shardbook({"notes", "check", reference, "--clone", "/tmp/no such clone"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("there is no folder /tmp/no such clone: --clone names a clone of Megatron-LM or PyTorch"), std::string::npos) << missing.err;
}

TEST(NotesCommand, OfTheReferenceHaveNoWarning) {
  const nlohmann::json json = base::parse_json(shardbook({"notes", "check", root + "/solutions/03_reading", "--json"}).out);
  EXPECT_EQ(json["findings"], nlohmann::json::array()) << base::json_text(json, 1);
}

TEST(NotesCommand, FailsWithFileLineAndRule) {
  const Folder folder;
  for (const char* file : {"megatron-tp-layers.md", "fsdp-prefetch.md", "synthesis.md", "megatron-sha.txt", "pytorch-sha.txt"}) {
    folder.write(file, content_of(root + "/solutions/03_reading/" + file));
  }
  std::string note = content_of(folder / "fsdp-prefetch.md");
  const std::size_t at = note.find("66.91 ms");
  ASSERT_NE(at, std::string::npos);
  folder.write("fsdp-prefetch.md", note.replace(at, 8, "60.94 ms"));
  const Spoken spoken = shardbook({"notes", "check", folder.path().string(), "--sources", "nowhere"});
  EXPECT_EQ(spoken.code, 1);
  EXPECT_NE(spoken.out.find("fsdp-prefetch.md:"), std::string::npos);
  EXPECT_NE(spoken.out.find("[figure]"), std::string::npos) << spoken.out;
  EXPECT_NE(spoken.out.find("Not passed: 1 finding."), std::string::npos) << spoken.out;
  EXPECT_EQ(shardbook({"notes", "check", folder / "gone"}).code, 1);
}

TEST(NotesCommand, ComparesAndKeepsAMark) {
  const Folder folder;
  for (const char* file : {"megatron-tp-layers.md", "fsdp-prefetch.md", "megatron-sha.txt", "pytorch-sha.txt"}) {
    folder.write(file, content_of(root + "/tests/data/labs/03/own_path/" + file));
  }
  const std::string notes = folder.path().string();
  Spoken spoken = shardbook({"notes", "compare", notes});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("not cited"), std::string::npos);
  EXPECT_NE(spoken.out.find("Cited by you alone"), std::string::npos);
  EXPECT_NE(spoken.out.find("Places are compared, not reasons"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "comparison.txt")) << "looking leaves nothing";
  spoken = shardbook({"notes", "compare", notes, "--mark", "2=missed", "--why", "I did not ask why"});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(content_of(folder / "comparison.txt").find(" | missed | I did not ask why\n"), std::string::npos);
  EXPECT_NE(shardbook({"notes", "compare", notes}).out.find("[missed]"), std::string::npos);
  for (const char* wrong : {"2", "2=perhaps", "0=had", "99=had"}) EXPECT_EQ(shardbook({"notes", "compare", notes, "--mark", wrong}).code, 2) << wrong;
  EXPECT_EQ(shardbook({"notes", "compare", notes, "--why", "x"}).code, 2);
  EXPECT_NE(shardbook({"notes", "compear"}).err.find("the nearest is compare"), std::string::npos);
}

TEST(NotesCommand, TakesSourcesFromAFolderAndRefusesOtherVersions) {
  const Folder folder;
  folder.write("clone/megatron/core/tensor_parallel/layers.py", "another version\n");
  const Spoken spoken = shardbook({"notes", "sources", "--sources", folder / "sources", "--clone", folder / "clone"});
  if (spoken.code == 0) GTEST_SKIP() << "there is a network here, and the files came from it";
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("has another version of it"), std::string::npos) << spoken.err;
  EXPECT_NE(spoken.out.find("Without a network"), std::string::npos) << spoken.out;
  EXPECT_FALSE(std::filesystem::exists(folder / "sources/NVIDIA+Megatron-LM"));
}

TEST(Lab03, PredictionsAreFoundByItsRuns) {
  const nlohmann::json lab = base::parse_json(content_of(root + "/labs/03_reading/lab.json"));
  const std::string big = "--model gpt-1.3b ";
  const std::map<std::string, std::string> runs = {{"awaited", big + "--tp 2 --sequences 8 --set tensor_parallel.input_gradient_sum=awaited"},
                                                   {"tp4", big + "--tp 4 --sequences 8"},
                                                   {"no_backward", "--model gpt-6.9b --fsdp 8 --sequences 8 --set fsdp.backward_prefetch=none"},
                                                   {"no_prefetch", "--model gpt-6.9b --fsdp 8 --sequences 8 --prefetch 0"}};
  std::size_t seen = 0;
  for (const nlohmann::json& part : lab["parts"]) {
    EXPECT_LE(part["minutes"].get<int>(), 45);
    EXPECT_EQ(part["hints"].size(), 3u) << part["id"];
    for (const nlohmann::json& one : part["predict"]) {
      ++seen;
      const std::string key = one["key"];
      if (key == "beside") {
        EXPECT_EQ(one["found"], "2") << "backward's: span model.block.backward";
        continue;
      }
      ASSERT_TRUE(runs.contains(key)) << key;
      const base::Result<double> step = step_ms_of(runs.at(key));
      ASSERT_TRUE(step) << step.error();
      EXPECT_NEAR(std::stod(one["found"].get<std::string>()), step.value(), 0.005 * step.value()) << key;
    }
  }
  EXPECT_EQ(seen, runs.size() + 1);
}

TEST(StepOf, ARunThatIsNoneIsRefusedInOneSentence) {
  EXPECT_NE(step_ms_of("nothing").error().find("neither a folder of a run nor options"), std::string::npos);
  EXPECT_NE(step_ms_of("--tq 2").error().find("the nearest is --"), std::string::npos);
  EXPECT_NE(step_ms_of("--device cuda").error().find("--device meta"), std::string::npos);
  EXPECT_NE(step_ms_of("--fsdp 512").error().find("at most 64"), std::string::npos);
  const Folder folder;
  folder.write("run/run.json", "{}");
  EXPECT_NE(step_ms_of(folder / "run").error().find("says no step"), std::string::npos);
  EXPECT_NEAR(step_ms_of(made_run(folder)).value(), step_ms_of("--tp 2").value(), 1e-9) << "by its folder and by its options";
}

}  // namespace
}  // namespace shardbook::cli
