// `report`: a page beside the run, with the figures of `metrics`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/timeline/pack.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

namespace fs = std::filesystem;

TEST(Report, LiesBesideTheRunWithTheFiguresOfMetrics) {
  const Folder folder;
  const std::string run = made_run(folder);
  const nlohmann::json metrics = base::parse_json(shardbook({"metrics", run, "--json"}).out);
  const Spoken spoken = shardbook({"report", run + "/", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json report = base::parse_json(spoken.out);
  EXPECT_EQ(report["tables"], metrics["tables"]);
  EXPECT_EQ(report["exposure"], metrics["exposure"]);
  const std::string page = content_of(run + "/report.html");
  for (const nlohmann::json& rank : metrics["tables"][0]["ranks"]) {
    for (const char* key : {"window_ns", "compute_ns", "exposed_communication_ns", "idle_ns", "overlapped_ns"}) {
      EXPECT_NE(page.find("<data value=\"" + base::json_text(rank[key]) + "\">"), std::string::npos) << key;
    }
  }
  // run.json was read: the command stands in the page.
  EXPECT_NE(page.find("shardbook train"), std::string::npos);
  EXPECT_FALSE(fs::exists(run + "/report.html.tmp"));
}

TEST(Report, OfAStepIsMetricsOfThatStep) {
  const Folder folder;
  const std::string run = made_run(folder), out = folder / "step.html";
  const nlohmann::json all = base::parse_json(shardbook({"report", run, "--json", "--out", out}).out);
  const int step = all["exposures"].empty() ? 0 : all["exposures"][0]["step"].get<int>();
  const std::string number = std::to_string(step);
  const nlohmann::json of_step = base::parse_json(shardbook({"report", run, "--step", number, "--json", "--out", out}).out);
  const nlohmann::json metrics = base::parse_json(shardbook({"metrics", run, "--step", number, "--json"}).out);
  EXPECT_EQ(of_step["tables"], metrics["tables"]);
  EXPECT_EQ(of_step["exposure"], metrics["exposure"]);
}

TEST(Report, OfAPackIsThatOfTheRun) {
  const Folder folder;
  const std::string run = made_run(folder), pack = folder / ("carried" + timeline::pack_ending());
  ASSERT_EQ(shardbook({"pack", run, "--out", pack}).code, 0);
  const Spoken spoken = shardbook({"report", pack, "--out", folder / "carried.html"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(content_of(folder / "carried.html").find("shardbook train"), std::string::npos);
}

TEST(Report, OfAPackWhoseRunJsonIsDamagedIsRefused) {
  const Folder folder;
  const std::string run = made_run(folder), pack = folder / ("carried" + timeline::pack_ending());
  std::ofstream(run + "/run.json") << "{";
  ASSERT_TRUE(timeline::write_pack(run, "", pack).ok());
  const Spoken spoken = shardbook({"report", pack});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("run.json"), std::string::npos) << spoken.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "carried.html"));
}

TEST(Report, OfPyTorchsTracesHasTheIndependentReadersFigures) {
  const Folder folder;
  const std::string out = folder / "two.html";
  const Spoken spoken = shardbook({"report", metrics_data + "fsdp_rank0.json.gz", metrics_data + "fsdp_rank1.json.gz", "--out", out, "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json ranks = base::parse_json(spoken.out)["tables"][0]["ranks"];
  std::istringstream lines(content_of(metrics_data + "expected.jsonl"));
  std::size_t rank = 0;
  for (std::string line; std::getline(lines, line); ++rank) {
    const nlohmann::json expected = base::parse_json(line);
    EXPECT_EQ(ranks[rank]["window_ns"], expected["window_ns"]);
    EXPECT_EQ(ranks[rank]["exposed_communication_ns"], expected["exposed_comm_ns"]);
    EXPECT_EQ(ranks[rank]["idle_ns"], expected["idle_ns"]);
  }
  EXPECT_EQ(rank, 2u);
  const std::string page = content_of(out);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_NE(page.find("No run.json"), std::string::npos);
}

TEST(Report, OfAFileThatIsCutOffSaysSoInThePage) {
  const Folder folder;
  const std::string run = made_run(folder);
  const std::string whole = content_of(run + "/rank0.json"), trace = folder.write("cut.json", whole.substr(0, whole.size() * 3 / 4));
  const Spoken spoken = shardbook({"report", trace, "--out", folder / "cut.html"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.err.find("cut off"), std::string::npos) << spoken.err;
  EXPECT_NE(content_of(folder / "cut.html").find("Figures count only what is there"), std::string::npos);
}

TEST(Report, RefusesInOneSentenceAndLeavesNothing) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& reason) { expect_refused(words, reason, folder); };
  const std::string trace = metrics_data + "fsdp_rank0.json.gz";
  refused({"report"}, "report");
  refused({"report", folder / "missing"}, folder / "missing");
  refused({"report", folder.path().string()}, "no rank files in");
  refused({"report", trace, "--out", folder / "page.pdf"}, "ends in .html");
  refused({"report", trace, "--out", folder / "missing/page.html"}, "cannot write");
  refused({"report", trace, "--step", "99", "--out", folder / "page.html"}, "there is no step 99");
  refused({"report", trace, "--step", "many", "--out", folder / "page.html"}, "--step");
}

TEST(Report, OfARunWhoseRecordIsDamagedIsRefused) {
  const Folder folder;
  const std::string run = made_run(folder);
  folder.write("first/run.json", "{");
  const Spoken spoken = shardbook({"report", run});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("is not valid JSON"), std::string::npos) << spoken.err;
  EXPECT_FALSE(fs::exists(run + "/report.html"));
}

}  // namespace
}  // namespace shardbook::cli
