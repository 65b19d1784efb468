// Checkpoints from the command line: saved, listed, verified, converted, and gone on from.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const std::vector<std::string> small_saving = {"train", "--device", "host", "--tp", "2", "--fsdp", "2", "--layers", "2", "--width", "32", "--heads", "4", "--sequence", "16",
                                        "--steps", "8", "--warmup-steps", "2", "--data", "synthetic"};

nlohmann::json losses_of(const Folder& folder, const std::string& run) { return base::parse_json(content_of(folder / (run + "/run.json")))["results"]["losses"]; }

std::string error_of(const std::vector<std::string>& words, int code = 2) {
  const Spoken spoken = shardbook(words);
  EXPECT_EQ(spoken.code, code) << spoken.out << spoken.err;
  EXPECT_EQ(lines_in(spoken.err), 1) << spoken.err;
  return spoken.err;
}

TEST(Checkpoint, IsSavedListedVerifiedAndGoneOnFrom) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const Spoken first = shardbook(with(small_saving, {"--checkpoint", saved, "--save-every", "3", "--keep-checkpoints", "0", "--out", folder / "first"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("./shardbook train --resume " + saved), std::string::npos) << first.out;

  const Spoken listed = shardbook({"checkpoint", saved});
  ASSERT_EQ(listed.code, 0) << listed.err;
  for (const char* words : {"step-00000008", "8 done", "tp 2 × fsdp 2 × dp 1, grammar-tutor, bf16 on host", "in 4 files", "checkpoints of step 6, 3", "blocks.1.mlp.down.weight.second_moment"}) {
    EXPECT_NE(listed.out.find(words), std::string::npos) << words << "\n" << listed.out;
  }
  const nlohmann::json json = base::parse_json(shardbook({"checkpoint", saved, "--json"}).out);
  EXPECT_EQ(json["step"], 8);
  EXPECT_EQ(json["config"]["tp"], 2);
  const Spoken whole = shardbook({"checkpoint", saved, "--verify"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_NE(whole.out.find("are those that were written"), std::string::npos) << whole.out;

  // With the options of the run that wrote it, all alike
  const Spoken again = shardbook({"train", "--resume", saved + "/step-00000003", "--out", folder / "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("goes on from " + saved + "/step-00000003"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("in steps 5 to 7"), std::string::npos) << "steps to record are those from where it goes on\n" << again.out;
  const nlohmann::json losses = losses_of(folder, "first"), later = losses_of(folder, "again");
  ASSERT_EQ(later.size(), 5u);
  for (std::size_t step = 0; step < later.size(); ++step) EXPECT_EQ(later[step], losses[step + 3]);

  // ... and under another layout, which is another in all
  const Spoken other = shardbook({"train", "--resume", saved, "--fsdp", "4", "--steps", "9", "--out", folder / "other"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.out.find("tp 1 × fsdp 4"), std::string::npos) << other.out;
  EXPECT_NE(error_of({"verify", folder / "other", "--against", folder / "first"}).find("went on from a checkpoint"), std::string::npos);
}

TEST(Checkpoint, IsAFileForOtherProgramsAndBack) {
  const Folder folder;
  ASSERT_EQ(shardbook(with(small_saving, {"--checkpoint", folder / "saved", "--out", folder / "first"})).code, 0);
  const Spoken to = shardbook({"checkpoint", folder / "saved", "--to", folder / "a.safetensors"});
  ASSERT_EQ(to.code, 0) << to.err;
  const Spoken from = shardbook({"checkpoint", folder / "made", "--from", folder / "a.safetensors"});
  ASSERT_EQ(from.code, 0) << from.err;
  EXPECT_EQ(shardbook({"checkpoint", folder / "made", "--verify"}).code, 0);
  EXPECT_NE(error_of({"checkpoint", folder / "made", "--from", folder / "a.safetensors"}).find("is there already"), std::string::npos);
  EXPECT_NE(error_of({"checkpoint", folder / "made", "--from", folder / "a.safetensors", "--verify"}).find("one after the other"), std::string::npos);
  const std::string text = folder.write("text.safetensors", "no tensors, but words");
  EXPECT_NE(error_of({"checkpoint", folder / "made", "--from", text}).find("is no safetensors file"), std::string::npos);
}

TEST(Checkpoint, ThatCannotBeIsRefusedInASentence) {
  const Folder folder;
  expect_refused({"checkpoint", folder / "nowhere"}, "there is no folder", folder);
  expect_refused(with(small_saving, {"--save-every", "2", "--out", folder / "run"}), "--save-every 2 saves nowhere: name a folder with --checkpoint DIR", folder);
  expect_refused(with(small_saving, {"--resume", folder / "nowhere", "--out", folder / "run"}), "there is no folder", folder);
  expect_refused({"train", "--device", "meta", "--checkpoint", folder / "saved", "--out", folder / "run"}, "--device meta has shapes only", folder);
  ASSERT_EQ(shardbook(with(small_saving, {"--checkpoint", folder / "saved", "--out", folder / "first"})).code, 0);
  EXPECT_NE(error_of(with(small_saving, {"--checkpoint", folder / "saved", "--out", folder / "second"})).find("holds a checkpoint of step 8"), std::string::npos);

  // One byte of a number
  const std::string data = folder / "saved/step-00000008/rank2.data";
  std::string bytes = content_of(data);
  bytes[500] = static_cast<char>(bytes[500] ^ 4);
  std::ofstream(data, std::ios::binary) << bytes;
  EXPECT_NE(error_of({"checkpoint", folder / "saved", "--verify"}, 1).find("rank2.data is damaged"), std::string::npos);
  EXPECT_NE(error_of({"checkpoint", folder / "saved", "--to", folder / "a.safetensors"}).find("rank2.data is damaged"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.safetensors"));
}

}  // namespace
}  // namespace shardbook::cli
