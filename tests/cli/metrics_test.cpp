// `metrics` and `show` on traces that were not written here.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/cli/doctor.hpp"
#include "engine/cli/window.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

TEST(Metrics, OfPyTorchsTracesAreTheIndependentReadersToTheNanosecond) {
  const Spoken spoken = shardbook({"metrics", metrics_data + "fsdp_rank0.json.gz", metrics_data + "fsdp_rank1.json.gz", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_EQ(spoken.out, content_of(metrics_data + "expected.jsonl"));
}

TEST(Show, ANameThatIsNotUtf8IsStillJson) {
  const Folder folder;
  const std::string path = folder / "odd.json";
  std::ofstream(path) << "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nccl\xff\",\"pid\":0,\"tid\":7,\"ts\":0,\"dur\":5,"
                         "\"args\":{\"stream\":7,\"device\":0}}]}";
  for (const char* command : {"show", "metrics"}) {
    const Spoken spoken = shardbook({command, path, "--json"});
    ASSERT_EQ(spoken.code, 0) << spoken.err;
    EXPECT_TRUE(base::is_json(spoken.out)) << spoken.out;
  }
}

TEST(Metrics, AsATableTheyNameTheClock) {
  const Spoken spoken = shardbook({"metrics", metrics_data + "fsdp_rank0.json.gz"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("clock"), std::string::npos);
  // The window of the independent reader.
  EXPECT_NE(spoken.out.find("465.106"), std::string::npos) << spoken.out;
}

TEST(Metrics, AWindowIsCutOut) {
  const Spoken spoken = shardbook({"metrics", metrics_data + "fsdp_rank0.json.gz", "--window", "10ms:12ms", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json rank = base::parse_json(spoken.out)["tables"][0]["ranks"][0];
  EXPECT_EQ(rank["window_ns"], 2'000'000);
}

TEST(Window, TimesHaveUnits) {
  EXPECT_EQ(duration_of("1.5ms").value(), 1'500'000);
  EXPECT_EQ(duration_of("300us").value(), 300'000);
  EXPECT_EQ(duration_of("300µs").value(), 300'000);
  EXPECT_EQ(duration_of("20ns").value(), 20);
  EXPECT_EQ(duration_of("2").value(), 2'000'000);
  EXPECT_FALSE(duration_of("-2ms").ok());
  EXPECT_FALSE(duration_of("fast").ok());
}

TEST(Show, DrawsPlainlyWithoutATerminal) {
  const Spoken spoken = shardbook({"show", metrics_data + "fsdp_rank0.json.gz", metrics_data + "fsdp_rank1.json.gz", "--ranks", "1"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_EQ(spoken.out.find('\x1b'), std::string::npos);
  EXPECT_NE(spoken.out.find("r1 exposed"), std::string::npos);
  EXPECT_EQ(spoken.out.find("r0 exposed"), std::string::npos);
}

TEST(Doctor, SaysWhatIsHereAndHowToGetTheRest) {
  const Spoken spoken = shardbook({"doctor", "--json"});
  ASSERT_EQ(spoken.code, 0);
  const nlohmann::json findings = base::parse_json(spoken.out);
  EXPECT_EQ(findings[0]["what"], "compiler");
  for (const nlohmann::json& finding : findings) {
    EXPECT_NE(finding["found"], "") << finding;
    EXPECT_NE(finding["effect"], "") << finding;
  }
  std::istringstream lines(shardbook({"doctor"}).out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 100) << line;
}

TEST(Doctor, ReadsTheLinksOfANode) {
  EXPECT_EQ(links_phrase("\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tNV18\tPIX\t0-95\nGPU1\tNV18\t X \tSYS\t0-95\nNIC0\tPIX\tSYS\t X\n"),
            "every pair NV18");
  EXPECT_EQ(links_phrase("\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tSYS\nGPU2\tSYS\tSYS\tX\n"), "pairs differ: NV4 SYS");
  EXPECT_EQ(links_phrase("\tGPU0\nGPU0\tX\n"), "");
}

}  // namespace
}  // namespace shardbook::cli
