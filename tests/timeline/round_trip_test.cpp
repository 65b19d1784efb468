// What the writer writes, the reader reads: nothing is lost, and the form is the one that others need.
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/timeline/links.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/rules.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

TEST(RoundTrip, GivesTheSameTimeline) {
  const Timeline written = sample_timeline();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(written, RunInfo{}, folder.path()));
  const auto read_back = read(folder.path());
  ASSERT_TRUE(read_back) << read_back.error();
  EXPECT_EQ(description(read_back.value()), description(written));
  EXPECT_TRUE(read_back.value().banners.empty());
}

TEST(RoundTrip, OfOneRankOfTwoKeepsThatRank) {
  const Timeline written = sample_timeline(Clock::measured);
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(written, 1, folder / "rank1.json"));
  const auto read_back = read(folder / "rank1.json");
  ASSERT_TRUE(read_back) << read_back.error();
  ASSERT_EQ(read_back.value().ranks.size(), 1u);
  EXPECT_EQ(read_back.value().ranks[0].rank, 1);
  EXPECT_EQ(read_back.value().ranks[0].clock, Clock::measured);
  EXPECT_EQ(read_back.value().spans(), written.spans() / 2);
}

TEST(RoundTrip, TwiceWritesTheSameBytes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(sample_timeline(), 0, folder / "rank0.json"));
  const auto first = read(folder / "rank0.json");
  ASSERT_TRUE(first) << first.error();
  ASSERT_TRUE(write_rank(first.value(), 0, folder / "again.json"));
  EXPECT_EQ(content_of(folder / "again.json"), content_of(folder / "rank0.json"));
}

TEST(Writer, KeepsAllRulesOfItsReaders) {
  const TemporaryFolder folder;
  const Timeline timeline = sample_timeline();
  for (Rank rank : {0, 1}) {
    const std::string path = folder / ("rank" + std::to_string(rank) + ".json");
    ASSERT_TRUE(write_rank(timeline, rank, path));
    for (const std::string& violation : violations(path)) ADD_FAILURE() << violation;
  }
}

TEST(Writer, NamesClockAndProfileInTheProcessAndOnEachKernel) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(sample_timeline(), 0, folder / "rank0.json"));
  const auto document = base::parse_json(content_of(folder / "rank0.json"));
  EXPECT_EQ(document["traceEvents"][0]["args"]["name"], "rank 0 · MODELLED h200x8");
  int kernels = 0;
  for (const auto& event : document["traceEvents"]) {
    if (event.value("cat", "") != "kernel") continue;
    ++kernels;
    EXPECT_EQ(event["args"]["clock"], "modelled");
  }
  EXPECT_EQ(kernels, 6);
}

TEST(Writer, StatesWhatAStreamWaitedForAsHtaExpects) {
  const TemporaryFolder folder;
  const Timeline timeline = sample_timeline();
  ASSERT_TRUE(write_rank(timeline, 0, folder / "rank0.json"));
  const auto document = base::parse_json(content_of(folder / "rank0.json"));
  int waits = 0;
  for (const auto& event : document["traceEvents"]) {
    if (event.value("cat", "") != "cuda_sync") continue;
    ++waits;
    EXPECT_EQ(event["name"], "Stream Wait Event");
    EXPECT_EQ(event["args"]["stream"], 7);
    EXPECT_EQ(event["args"]["wait_on_stream"], 20);
    // The record is the call before the wait.
    EXPECT_EQ(event["args"]["wait_on_cuda_event_record_corr_id"].get<int>() + 1, event["args"]["correlation"].get<int>());
  }
  EXPECT_EQ(waits, 2);
}

TEST(Rules, AreEachMissedWhenBroken) {
  const TemporaryFolder folder;
  const std::string path = folder / "rank0.json";
  ASSERT_TRUE(write_rank(sample_timeline(), 0, path));
  const std::string good = content_of(path);
  const auto broken_by = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    write_file(path, bad);
    const auto found = violations(path);
    return found.empty() ? std::string("nothing") : found.front();
  };
  EXPECT_TRUE(broken_by("\"rank\": 0", "\"rank\":0").starts_with("rule 1"));
  EXPECT_TRUE(broken_by("\"ph\":\"M\"", "\"ph\":\"i\"").starts_with("rule 3"));
  EXPECT_TRUE(broken_by("\"stream\":7", "\"stream\":0").starts_with("rule 4"));
  EXPECT_TRUE(broken_by("\"cat\":\"kernel\"", "\"cat\":\"Kernel\"").starts_with("rule 5"));
  EXPECT_TRUE(broken_by("\"dur\":320,\"args\":{\"device_start", "\"dur\":1320,\"args\":{\"device_start").starts_with("rule 6"));
  EXPECT_TRUE(broken_by("gelu_forward", "gelu\nforward").ends_with("is not valid JSON"));
  EXPECT_TRUE(broken_by("\"name\":\"ncclDevKernel_AllGather\"", "\"name\":\"all_gather\"").starts_with("rule 9"));
  EXPECT_TRUE(broken_by("\"name\":\"gelu_forward\"", "\"name\":\"gelu_Sync\"").starts_with("rule 9"));
  EXPECT_TRUE(broken_by("\"correlation\":101", "\"correlation\":999").starts_with("rule 5"));
  // The span that overlaps another, brought back to that one's tid.
  EXPECT_TRUE(broken_by("\"name\":\"gelu_forward\",\"pid\":0,\"tid\":1000000", "\"name\":\"gelu_forward\",\"pid\":0,\"tid\":7")
                  .starts_with("rule 8"));
}

TEST(Links, FindTheLaunchAndBack) {
  const Timeline timeline = sample_timeline();
  const Links links(timeline, 1);
  int found = 0;
  for_each_device_span(timeline, 1, [&](SpanRef span) {
    const SpanRef call = links.launch_of(span);
    ASSERT_TRUE(call.valid());
    EXPECT_EQ(timeline.tracks[call.track].kind, TrackKind::host);
    EXPECT_EQ(timeline.rank(call), 1);
    EXPECT_EQ(links.launched_by(call), span);
    ++found;
  });
  EXPECT_EQ(found, 10);
}

TEST(Timeline, TakesFewerThan64BytesASpan) {
  TimelineBuilder builder;
  builder.add_rank({});
  const auto stream = builder.track(0, TrackKind::stream, 7, "stream 7");
  constexpr int spans = 200'000;
  for (int i = 0; i < spans; ++i) {
    builder.add(stream, {.start = 10 * i, .end = 10 * i + 9, .label = builder.intern("kernel " + std::to_string(i % 100))});
  }
  const Timeline timeline = builder.finish();
  EXPECT_LE(timeline.memory(), 64u * spans);
}

}  // namespace
}  // namespace shardbook::timeline
