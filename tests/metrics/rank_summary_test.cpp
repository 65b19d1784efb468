// The overlap of PyTorch's own traces, against what an independent program printed of them.
//
// data/: two of four ranks of PyTorch 2.11 FSDP2 on H200s; expected.jsonl holds interval unions of the same
// files, computed from exact decimals in Python.
#include "engine/metrics/rank_summary.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/reader.hpp"

namespace shardbook::metrics {
namespace {

const std::string data = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/metrics/data/";

TEST(RankSummary, OfPyTorchTracesEqualsTheIndependentOneToTheNanosecond) {
  if (!timeline::can_gunzip()) GTEST_SKIP() << "built without zlib";
  std::ifstream expected(data + "expected.jsonl");
  std::string line;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(std::getline(expected, line));
    const auto timeline = timeline::read(data + "fsdp_rank" + std::to_string(rank) + ".json.gz");
    ASSERT_TRUE(timeline) << timeline.error();
    EXPECT_EQ(json_line(rank_summary(timeline.value(), rank)), line);
  }
}

TEST(RankSummary, IsTheSameWhenBothRanksAreReadTogether) {
  if (!timeline::can_gunzip()) GTEST_SKIP() << "built without zlib";
  const auto timeline = timeline::read(data);
  ASSERT_TRUE(timeline) << timeline.error();
  ASSERT_EQ(timeline.value().ranks.size(), 2u);
  std::ifstream expected(data + "expected.jsonl");
  for (int rank = 0; rank < 2; ++rank) {
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    EXPECT_EQ(json_line(rank_summary(timeline.value(), rank)), line);
  }
}

TEST(PercentAsPython, PrintsTheShortestTextOfTheRoundedShare) {
  EXPECT_EQ(percent_as_python(217937380, 248548818, 4), "87.6839");
  EXPECT_EQ(percent_as_python(1, 1, 4), "100.0");
  EXPECT_EQ(percent_as_python(1, 2, 4), "50.0");
  EXPECT_EQ(percent_as_python(1, 3, 4), "33.3333");
  EXPECT_EQ(percent_as_python(0, 7, 4), "0.0");
  EXPECT_EQ(percent_as_python(1, 800, 2), "0.12");      // an exact tie goes to the even digit
}

}  // namespace
}  // namespace shardbook::metrics
