// Bad input: one sentence on the error stream, exit code 2, nothing on standard output, nothing written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/launch/launch.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

// Refused in one line that holds `word`; the folder that the run was to leave is not there.
void expect_refused(std::vector<std::string> arguments, const std::string& word) {
  const Folder folder;
  const std::string out = folder / "run";
  const bool trains = arguments[0] == "train" || arguments[0] == "run";
  if (trains && std::find(arguments.begin(), arguments.end(), "--out") == arguments.end()) {
    arguments.push_back("--out");
    arguments.push_back(out);
  }
  const Spoken spoken = shardbook(arguments);
  EXPECT_EQ(spoken.code, 2) << spoken.err;
  EXPECT_EQ(lines_in(spoken.err), 1) << spoken.err;
  EXPECT_EQ(spoken.err.substr(0, 11), "shardbook: ");
  EXPECT_NE(spoken.err.find(word), std::string::npos) << spoken.err;
  EXPECT_EQ(spoken.out, "");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(BadInput, SizesThatDoNotDivide) {
  expect_refused({"train", "--device", "host", "--tp", "3"}, "4 heads");
  expect_refused({"train", "--device", "host", "--tp", "4", "--vocab", "258"}, "258");
  expect_refused({"train", "--device", "host", "--tp", "2", "--ranks", "3"}, "--ranks 3");
  expect_refused({"train", "--device", "host", "--fsdp", "3", "--sequences", "16"}, "16 sequences");
}

TEST(BadInput, MoreRanksThanGpus) {
  const int gpus = launch::gpus_available();
  expect_refused({"train", "--device", "cuda", "--tp", "1", "--fsdp", "64"}, gpus == 0 ? "needs a GPU" : "64 ranks");
}

TEST(BadInput, MissingData) { expect_refused({"train", "--device", "host", "--data", "/nowhere/text.txt"}, "/nowhere/text.txt"); }

TEST(BadInput, EmptyData) {
  const Folder folder;
  expect_refused({"train", "--device", "host", "--data", folder.write("empty.txt", "")}, "empty.txt");
}

TEST(BadInput, UnreadableData) { expect_refused({"train", "--device", "host", "--data", "/proc"}, "/proc"); }

TEST(BadInput, MalformedConfig) {
  const Folder folder;
  expect_refused({"train", "--config", folder.write("c.json", "{\n\"tp\": 2,\n\"steps\" 3}")}, "c.json:3");
  expect_refused({"train", "--config", folder.write("d.json", "{\"stepz\": 3}")}, "d.json:1: unknown key \"stepz\"");
  expect_refused({"train", "--config", folder / "missing.json"}, "missing.json");
}

TEST(BadInput, UnknownOptionCommandOrLab) {
  expect_refused({"train", "--stepz", "3"}, "--steps");
  expect_refused({"train", "--model", "gpt-9"}, "grammar-tutor");
  expect_refused({"trian"}, "train");
  expect_refused({"run", "77"}, "02_tensor_parallel");
  expect_refused({"run"}, "LAB");
}

TEST(BadInput, AProfileThatIsNotThere) { expect_refused({"train", "--device", "meta", "--profile", "nowhere.json"}, "nowhere.json"); }

TEST(BadInput, AFolderThatCannotBeWritten) {
  expect_refused({"train", "--device", "meta", "--steps", "1", "--out", "/proc/run"}, "/proc/run");
  expect_refused({"train", "--device", "host", "--steps", "1", "--out", "/proc/run"}, "/proc/run");
}

TEST(BadInput, ATraceThatIsMissingMalformedOrCutOff) {
  const Folder folder;
  expect_refused({"metrics", folder / "missing.json"}, "missing.json");
  expect_refused({"show", folder / "missing.json"}, "missing.json");
  expect_refused({"metrics", folder.write("malformed.json", "no trace at all")}, "malformed.json");
  expect_refused({"metrics", folder.path().string()}, folder.path().string());
  expect_refused({"why", folder.write("short.json", R"({"schemaVersion": 1, "distributedInfo": {"rank": 0},
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, "args": {"stream": 7}}, {"ph": "X", "ca)")},
                 "cut off");
  expect_refused({"metrics", folder.write("cut.json", R"({"schemaVersion": 1, "distributedInfo": {"rank": 0},
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, "args": {"stream": 7}}, {"ph": "X", "ca)")},
                 "cut off");
}

TEST(BadInput, WindowsThatAreNone) {
  const std::string trace = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/metrics/data/fsdp_rank0.json.gz";
  expect_refused({"metrics", trace, "--step", "99"}, "no step 99");
  expect_refused({"metrics", trace, "--window", "5ms"}, "A:B");
  expect_refused({"metrics", trace, "--window", "5ms:4ms"}, "before");
  expect_refused({"metrics", trace, "--window", "5parsec:"}, "5parsec");
}

TEST(BadInput, NotesThatAreNotThere) { expect_refused({"read", "77"}, "there is no note '77'"); }

TEST(BadInput, CommandsOfTheLauncherAndTheViewerSayWhoDoesThem) {
  expect_refused({"fetch"}, "./shardbook fetch");
  expect_refused({"test"}, "./shardbook test");
}

TEST(BadInput, CalibrateNeedsAGpu) {
  if (launch::gpus_available() > 0) GTEST_SKIP() << "there are GPUs";
  expect_refused({"calibrate"}, "there is none");
  expect_refused({"tune"}, "tune measures a GPU, and there is none");
  expect_refused({"tune", "--device", "host"}, "leave --device host out");
  expect_refused({"tune", "--matmuls", "m.json"}, "there is no option --matmuls");
}

}  // namespace
}  // namespace shardbook::cli
