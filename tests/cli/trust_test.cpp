// Input from anyone: what is read is bounded, what is printed is printable, what ended badly says so by its code.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/cli/command.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

const std::vector<std::string> tiny{"train", "--device", "host", "--layers", "1", "--width", "16", "--heads", "2", "--sequence", "8", "--sequences", "4"};

std::vector<std::string> tiny_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = tiny;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Config, NumbersBeyondAllNumbersAndDeepNestingAreRefused) {
  const Folder folder;
  for (const auto& [name, content, word] :
       {std::tuple{"large.json", std::string(R"({"lr": 1e999})"), "number overflow"},
        {"deep.json", R"({"lr": )" + repeated("[", 100000) + repeated("]", 100000) + "}", "nest deeper"},
        {"open.json", R"({"lr": )" + repeated("[", 100000), "open.json"},
        {"vast.json", std::string((std::size_t{1} << 20) + 1, ' '), "larger than 1 MiB"}}) {
    const Spoken spoken = shardbook({"train", "--config", folder.write(name, content), "--out", folder / "run"});
    EXPECT_EQ(spoken.code, exit_bad_input) << name;
    EXPECT_EQ(lines_in(spoken.err), 1) << name;
    EXPECT_NE(spoken.err.find(word), std::string::npos) << spoken.err.substr(0, 300);
  }
  EXPECT_EQ(shardbook({"train", "--config", "/dev/zero", "--out", folder / "run"}).code, exit_bad_input);
}

TEST(Names, ThatAreEmptyAreRefused) {
  for (const char* command : {"report", "show", "metrics", "pack"}) {
    const Spoken spoken = shardbook({command, ""});
    EXPECT_EQ(spoken.code, exit_bad_input) << command;
    EXPECT_NE(spoken.err.find("an empty name"), std::string::npos) << spoken.err;
  }
}

TEST(Names, OfFoldersThatAreNoUtf8ArePacked) {
  const Folder folder;
  const std::string run = folder / "run\xff";
  ASSERT_EQ(shardbook(tiny_with({"--out", run})).code, exit_ok);
  const Spoken spoken = shardbook({"pack", run, "--out", folder / "pack.tar"});
  EXPECT_EQ(spoken.code, exit_ok) << spoken.err;
}

TEST(Names, InATraceReachTheTerminalEscaped) {
  const Folder folder;
  const std::string trace = folder.write("rank0.json", R"({"schemaVersion": 1, "distributedInfo": {"rank": 0},
    "deviceProperties": [{"id": 0, "name": "\u001b]0;owned\u0007"}], "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "nccl\u001b[2J\u009b31mAllReduce", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0, "args": {"stream": 7, "device": 0}},
    {"ph": "X", "cat": "kernel", "name": "gemm\u001b[31m", "pid": 0, "tid": 8, "ts": 1.0, "dur": 1.0, "args": {"stream": 8, "device": 0}}]})");
  for (const char* command : {"metrics", "show"}) {
    const Spoken spoken = shardbook({command, trace});
    EXPECT_EQ(spoken.code, exit_ok) << spoken.err;
    for (const std::string& text : {spoken.out, spoken.err}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << command;
      EXPECT_EQ(text.find('\x07'), std::string::npos) << command;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << command;
    }
  }
  const Spoken refused = shardbook({"metrics", folder / "\x1b[2J\nshardbook: all is well"});
  EXPECT_EQ(refused.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(lines_in(refused.err), 1) << refused.err;
}

TEST(Width, HasABound) { EXPECT_EQ(shardbook({"show", "/nowhere", "--width", "999999999"}).code, exit_bad_input); }

TEST(Read, NotesThatNestOrRepeatWithoutEndAreReadInGoodTime) {
  const Folder folder;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(shardbook({"read", folder.write("quotes.md", repeated(">", 20000) + " deep\n")}).code, exit_ok);
  EXPECT_EQ(shardbook({"read", folder.write("links.md", repeated("[a1]", 50000) + "\n")}).code, exit_ok);
  EXPECT_EQ(shardbook({"read", folder.write("stars.md", repeated("*a", 50000) + "\n")}).code, exit_ok);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Run, ThatWasAskedToStopHasACodeOfItsOwn) {
  const Folder folder;
  // The first line that it writes is the signal's.
  class Raising final : public std::stringbuf {
    int sync() override {
      if (str().find("step 3") != std::string::npos && !raised_) raised_ = std::raise(SIGHUP) == 0;
      return 0;
    }
    bool raised_ = false;
  } buffer;
  std::ostream out(&buffer);
  std::ostringstream err;
  EXPECT_EQ(main_with(tiny_with({"--steps", "100000", "--progress", "1", "--out", folder / "run"}), out, err), exit_stopped) << err.str();
  EXPECT_TRUE(std::filesystem::exists(folder / "run/run.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "run/summary.txt"));
}

TEST(Run, WhoseNumbersAreNotFiniteFailsAndSaysWhere) {
  const Folder folder;
  const Spoken spoken = shardbook(tiny_with({"--lr", "999", "--min-lr", "999", "--clip", "0", "--eps", "1e-30", "--warmup-steps", "0",
                                             "--steps", "200", "--out", folder / "run"}));
  EXPECT_EQ(spoken.code, exit_failed);
  EXPECT_EQ(spoken.err.find("shardbook: rank 0: the "), 0u) << spoken.err;
  EXPECT_NE(spoken.err.find("on all ranks"), std::string::npos) << spoken.err;
  EXPECT_NE(spoken.err.find(folder / "run"), std::string::npos) << spoken.err;
  EXPECT_NE(spoken.out.find("FAILED: rank 0: the "), std::string::npos) << spoken.out;
  const Spoken metrics = shardbook({"metrics", folder / "run"});
  EXPECT_NE(metrics.err.find("did not end as it should"), std::string::npos) << metrics.err;
}

TEST(Run, QuotesItsFolderForTheShell) {
  const Folder folder;
  const std::string run = folder / "my run";
  const Spoken spoken = shardbook(tiny_with({"--out", run}));
  EXPECT_EQ(spoken.code, exit_ok) << spoken.err;
  EXPECT_NE(spoken.out.find("./shardbook view '" + run + "'"), std::string::npos) << spoken.out;
  std::ifstream file(run + "/run.json");
  const nlohmann::json info = base::parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_NE(info["command"].get<std::string>().find("--out '" + run + "'"), std::string::npos) << info["command"];
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace shardbook::cli
