// Traces of others, and files that are cut off, empty or no traces at all.
#include "engine/timeline/reader.hpp"

#include <random>

#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

const std::string traces = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/metrics/data/";

std::string message(const std::string& bytes) {
  const auto read = read_bytes(bytes, "x.json");
  return read.ok() ? "read" : read.error();
}

std::string trace_of(const std::string& events, const std::string& more = "") {
  return "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 1}" + more + ", \"traceEvents\": [" + events + "]}";
}

TEST(Reader, ReadsPyTorchsOwnTraces) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const auto read_ranks = read({traces + "fsdp_rank0.json.gz", traces + "fsdp_rank1.json.gz"});
  ASSERT_TRUE(read_ranks) << read_ranks.error();
  const Timeline& timeline = read_ranks.value();
  ASSERT_EQ(timeline.ranks.size(), 2u);
  EXPECT_EQ(timeline.ranks[0].world_size, 4);
  EXPECT_EQ(timeline.ranks[0].device, "NVIDIA H200");
  EXPECT_EQ(timeline.ranks[0].clock, Clock::measured);
  EXPECT_TRUE(timeline.ranks[0].foreign);
  int device_spans = 0, gathers = 0;
  for_each_device_span(timeline, 1, [&](SpanRef span) {
    ++device_spans;
    if (!timeline.has_collective(span) || timeline.collective(span).op != CollectiveOp::all_gather) return;
    ++gathers;
    EXPECT_EQ(timeline.groups[timeline.collective(span).group].ranks, (std::vector<Rank>{0, 1, 2, 3}));
    EXPECT_EQ(timeline.strings[timeline.collective(span).dtype], "BFloat16");
    EXPECT_GT(timeline.collective(span).bytes, 0);
  });
  EXPECT_EQ(device_spans, 3390);
  EXPECT_GT(gathers, 0);
  EXPECT_TRUE(timeline.banners.empty());
}

TEST(Reader, LosesNothingOfAPyTorchTraceThatIsWrittenAgain) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const auto original = read(traces);
  ASSERT_TRUE(original) << original.error();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(original.value(), RunInfo{}, folder.path()));
  const auto again = read(folder.path());
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(description(again.value()), description(original.value()));
}

TEST(Reader, OpensAFileCutOffAnywhereUpToItsLastWholeEvent) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(sample_timeline(), 0, folder / "rank0.json"));
  const std::string whole = content_of(folder / "rank0.json");
  const std::size_t first_event_ends = whole.find("}},\n") + 2;
  std::size_t spans_before = 0;
  for (std::size_t length = 0; length < whole.size() - 3; ++length) {
    const auto cut = read_bytes(whole.substr(0, length), "rank0.json");
    if (length < first_event_ends) {
      EXPECT_FALSE(cut.ok()) << "cut at byte " << length;
      continue;
    }
    ASSERT_TRUE(cut.ok()) << "cut at byte " << length << ": " << cut.error();
    ASSERT_EQ(cut.value().banners.size(), 1u) << "cut at byte " << length;
    EXPECT_NE(cut.value().banners[0].find("rank0.json is cut off at byte"), std::string::npos);
    EXPECT_GE(cut.value().spans(), spans_before);
    spans_before = cut.value().spans();
  }
  EXPECT_EQ(spans_before, sample_timeline().spans() / 2);
}

TEST(Reader, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message(""), "x.json is empty: a trace has at least one event");
  EXPECT_EQ(message("\x7f" "ELF binary"), "x.json: byte 0 does not begin JSON; expected a Chrome or Kineto trace");
  EXPECT_EQ(message("  hello"), "x.json: byte 2 does not begin JSON; expected a Chrome or Kineto trace");
  EXPECT_EQ(message("{\"a\": 1}"), "x.json: no \"traceEvents\" up to byte 8; it is JSON, but no Chrome or Kineto trace");
  EXPECT_EQ(message("{\"traceEvents\": 5}"),
            "x.json: no \"traceEvents\" up to byte 18; it is JSON, but no Chrome or Kineto trace");
  EXPECT_EQ(message("{\"a\": 1, \"traceEvents\""), "x.json ends at byte 22, before its first event");
  EXPECT_EQ(message("{\"traceEvents\": [{\"ph\":"), "x.json ends at byte 23, before its first whole event");
  EXPECT_EQ(message("{\"a\" 1}"), "x.json: malformed JSON at byte 5");
  const auto place = [](const std::string& bytes, const char* what) { return std::to_string(bytes.find(what)); };
  const std::string semicolon = trace_of("{\"ph\":\"M\"}, {\"ph\";\"X\"}", ", \"baseTimeNanoseconds\": 1");
  EXPECT_EQ(message(semicolon), "x.json: malformed JSON at byte " + place(semicolon, ";") + ", in event 2");
  const std::string huge = trace_of("{\"ph\":\"X\",\"ts\":1e99,\"dur\":1}");
  EXPECT_EQ(message(huge), "x.json: a number that is larger than any time or size at byte " + place(huge, "1e99"));
}

TEST(Reader, SaysWhichFileCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(read(folder / "missing.json").error(), "cannot read " + (folder / "missing.json") + ": No such file or directory");
  EXPECT_EQ(read(folder.path()).error(), "no rank files in " + folder.path() + ": expected rank0.json, rank1.json, ...");
  write_file(folder / "empty.json", "");
  EXPECT_EQ(read(folder / "empty.json").error(), (folder / "empty.json") + " is empty: a trace has at least one event");
  write_file(folder / "a.json", trace_of(""));
  EXPECT_EQ(read({folder / "a.json", folder / "a.json"}).error(),
            (folder / "a.json") + " says that it is rank 0, which another file already is; give one file a rank");
}

TEST(Reader, UnpacksGzipAndOpensWhatIsLeftOfACutOffOne) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const TemporaryFolder folder;
  const std::string packed = content_of(traces + "fsdp_rank0.json.gz");
  write_file(folder / "rank0.json.gz", packed.substr(0, packed.size() / 2));
  const auto half = read(folder / "rank0.json.gz");
  ASSERT_TRUE(half) << half.error();
  ASSERT_EQ(half.value().banners.size(), 1u);
  EXPECT_GT(half.value().spans(), 1000u);
  std::string damaged = packed;
  for (std::size_t i = 5000; i < 5100; ++i) damaged[i] = '\x55';
  write_file(folder / "rank1.json.gz", damaged);
  const auto refused = read(folder / "rank1.json.gz");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("the gzip data is damaged at byte"), std::string::npos) << refused.error();
}

TEST(Reader, FindsRankAndBaseWhereverTheyStand) {
  const std::string event = R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":7}})";
  const std::string before = R"({"distributedInfo":{"rank": 3},"baseTimeNanoseconds":1000,"traceEvents":[)" + event + "]}";
  const std::string after = R"({"traceEvents":[)" + event + R"(],"baseTimeNanoseconds":1000,"distributedInfo":{"rank": 3}})";
  const auto one = read_bytes(before, "x.json"), other = read_bytes(after, "x.json");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one.value().ranks[0].rank, 3);
  EXPECT_EQ(one.value().base_ns, 1000);
  EXPECT_EQ(description(one.value()), description(other.value()));
  // A bare list of events, its end missing, as Chrome itself writes it; the rank from the file's name.
  const auto bare = read_bytes("[" + event + ",\n", "trace_rank12.json");
  ASSERT_TRUE(bare) << bare.error();
  EXPECT_EQ(bare.value().ranks[0].rank, 12);
  EXPECT_EQ(bare.value().spans(), 1u);
}

TEST(Reader, PutsRanksWithDifferentBasesOnOneTimeAxis) {
  const TemporaryFolder folder;
  const auto file = [](int rank, std::int64_t base) {
    return base::text(R"({"distributedInfo":{"rank": )", rank, R"(},"baseTimeNanoseconds":)", base,
                      R"(,"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":1,"args":{"stream":7}}]})");
  };
  write_file(folder / "rank0.json", file(0, 5'000'000));
  write_file(folder / "rank1.json", file(1, 5'000'250));
  const auto both = read(folder.path());
  ASSERT_TRUE(both) << both.error();
  EXPECT_EQ(both.value().tracks[0].start[0], 10'000);
  EXPECT_EQ(both.value().tracks[1].start[0], 10'250);
}

TEST(Reader, CountsATraceThatStatesNoBaseFromItsFirstEvent) {
  const TemporaryFolder folder;
  const auto file = [](int rank, const char* us) {
    return base::text(R"({"distributedInfo":{"rank": )", rank, R"(},"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":)", us,
                      R"(,"dur":1,"args":{"stream":7}}]})");
  };
  write_file(folder / "rank0.json", file(0, "1695851037123456.789"));
  write_file(folder / "rank1.json", file(1, "1695851037123458.789"));
  const auto both = read(folder.path());
  ASSERT_TRUE(both) << both.error();
  EXPECT_EQ(both.value().base_ns, 1'695'851'037'123'456'789);
  EXPECT_EQ(both.value().tracks[0].start[0], 0);
  EXPECT_EQ(both.value().tracks[1].start[0], 2'000);
}

TEST(Reader, GivesKernelsTheStepThatLaunchedThem) {
  const auto read = read_bytes(trace_of(R"(
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":9,"tid":9,"ts":0,"dur":10},
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":9,"tid":9,"ts":10,"dur":10},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":2,"dur":1,"args":{"correlation":1}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":12,"dur":1,"args":{"correlation":2}},
    {"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":15,"dur":5,"args":{"stream":7,"correlation":1}},
    {"ph":"X","cat":"kernel","name":"next","pid":0,"tid":7,"ts":22,"dur":3,"args":{"stream":7,"correlation":2}})"), "x.json");
  ASSERT_TRUE(read) << read.error();
  const Timeline& timeline = read.value();
  ASSERT_EQ(timeline.tracks[0].kind, TrackKind::stream);
  EXPECT_EQ(timeline.tracks[0].step, (std::vector<std::int32_t>{4, 5}));
  ASSERT_EQ(timeline.steps.size(), 2u);
  EXPECT_EQ(timeline.steps[0].start, 15'000);
  EXPECT_EQ(timeline.steps[0].end, 22'000);
  EXPECT_EQ(timeline.steps[1].end, 25'000);
}

TEST(Reader, WorksOutWhatAStreamWaitedForFromSyncRows) {
  const auto read = read_bytes(trace_of(R"(
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":1,"dur":1,"args":{"correlation":1}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":9,"tid":9,"ts":3,"dur":1,"args":{"correlation":2}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":9,"tid":9,"ts":5,"dur":1,"args":{"correlation":3}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":7,"dur":1,"args":{"correlation":4}},
    {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":4,"dur":50,"args":{"stream":20,"correlation":1}},
    {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":55,"dur":5,"args":{"stream":7,"correlation":4}},
    {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":54,"dur":1,
     "args":{"stream":7,"correlation":3,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":2}})"), "x.json");
  ASSERT_TRUE(read) << read.error();
  const Timeline& timeline = read.value();
  bool found = false;
  for (const Edge& edge : timeline.edges) {
    if (timeline.label(edge.to) != "gemm") continue;
    found = true;
    EXPECT_EQ(edge.kind, EdgeKind::event);
    EXPECT_EQ(timeline.label(edge.from), "ncclDevKernel_AllGather_RING_LL");
    EXPECT_EQ(timeline.collective(edge.from).op, CollectiveOp::all_gather);
  }
  EXPECT_TRUE(found);
}

TEST(Reader, OutlivesDamageAtAnyByte) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(sample_timeline(), 0, folder / "rank0.json"));
  const std::string whole = content_of(folder / "rank0.json");
  std::mt19937 random(7);
  const std::string alphabet = "\"\\{}[],:0123456789eE.-+ntu \x01\xff";
  std::uniform_int_distribution<std::size_t> at(0, whole.size() - 1), letter(0, alphabet.size() - 1), run(1, 12);
  int opened = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    std::string damaged = whole;
    for (std::size_t i = at(random), left = run(random); left > 0 && i < damaged.size(); --left, ++i) damaged[i] = alphabet[letter(random)];
    const auto read = read_bytes(damaged, "rank0.json");
    if (!read) {
      EXPECT_TRUE(read.error().starts_with("rank0.json")) << read.error();
      continue;
    }
    ++opened;
    EXPECT_LE(read.value().spans(), sample_timeline().spans() / 2 + 3);     // a step whose name is damaged is a span
  }
  EXPECT_GT(opened, 0);
}

TEST(Reader, JoinsBeginAndEndEventsOfAThread) {
  const auto read = read_bytes(trace_of(R"json(
    {"ph":"B","name":"outer","cat":"cpu_op","pid":1,"tid":1,"ts":1,"args":{"correlation":5}},
    {"ph":"B","name":"other thread","pid":1,"tid":2,"ts":2},
    {"ph":"B","name":"inner","pid":1,"tid":1,"ts":3.5},
    {"ph":"E","name":"a name that doesn't matter","pid":1,"tid":1,"ts":4},
    {"ph":"E","pid":1,"tid":2,"ts":5},
    {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6},
    {"ph":"E","pid":0,"tid":7,"ts":8,"args":{"stream":7,"correlation":9}},
    {"ph":"E","pid":1,"tid":1,"ts":9},
    {"ph":"B","name":"ends before it begins","pid":1,"tid":1,"ts":12},{"ph":"E","pid":1,"tid":1,"ts":11})json"), "x.json");
  ASSERT_TRUE(read) << read.error();
  const Timeline& timeline = read.value();
  const auto text = [&](std::uint32_t track, std::uint32_t i) {
    const SpanRef span{track, i};
    return base::text(timeline.label(span), " ", timeline.start(span), "..", timeline.end(span), " c", timeline.correlation(span));
  };
  ASSERT_EQ(timeline.tracks.size(), 3u);
  EXPECT_EQ(timeline.tracks[0].kind, TrackKind::stream);
  EXPECT_EQ(text(0, 0), "k 6000..8000 c9");
  ASSERT_EQ(timeline.tracks[1].size(), 2u);
  EXPECT_EQ(text(1, 0), "outer 1000..9000 c5");
  EXPECT_EQ(text(1, 1), "inner 3500..4000 c0");
  EXPECT_EQ(text(2, 0), "other thread 2000..5000 c0");
  EXPECT_EQ(timeline.banners,
            std::vector<std::string>{"x.json: 1 events without a time, or with an impossible one, were passed over"});
}

TEST(Reader, GivesTheSameTimelineHoweverManyFilesAreReadAtOnce) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (Rank rank = 0; rank < 24; ++rank) {
    // Every third file states no rank: it gets the first that is free.
    TimelineBuilder builder;
    builder.set_base_ns(1000 + 7 * rank);
    builder.add_rank({.rank = rank, .world_size = 24, .clock = Clock::wall});
    const auto track = builder.track(rank, TrackKind::stream, 7, "stream 7");
    for (int i = 0; i < 50; ++i) {
      Detail detail;
      detail.op = builder.intern(base::text("op", (i * (rank + 1)) % 11));
      detail.layer = i % (rank + 1);
      builder.add(track, {.start = 10 * i, .end = 10 * i + 9, .label = builder.intern(base::text("name", (i + rank) % 13)),
                          .detail = builder.detail(detail)});
    }
    paths.push_back(folder / base::text(rank % 3 == 0 ? "part" : "rank", rank, ".json"));
    const Timeline timeline = builder.finish();
    ASSERT_TRUE(write_rank(timeline, rank, paths.back()));
    if (rank % 3 != 0) continue;
    std::string content = content_of(paths.back());
    const std::string stated = base::text("\"rank\": ", rank, ",");
    content.erase(content.find(stated), stated.size());
    write_file(paths.back(), content);
  }
  const auto first = read(paths);
  ASSERT_TRUE(first) << first.error();
  ASSERT_EQ(first.value().ranks.size(), 24u);
  const std::string expected = description(first.value());
  for (int turn = 0; turn < 20; ++turn) {
    const auto again = read(paths);
    ASSERT_TRUE(again);
    ASSERT_EQ(description(again.value()), expected);
    ASSERT_EQ(again.value().tracks[5].label, first.value().tracks[5].label);
  }
  // Those without a rank took 0, 3, ..., which were free when their turn came.
  EXPECT_EQ(first.value().ranks[23].path, paths[23]);
}

TEST(Reader, TellsOfEventsThatItPassesOver) {
  const auto read = read_bytes(trace_of(R"json(
    {"ph":"B","name":"never ends","pid":1,"tid":1,"ts":1},{"ph":"E","pid":1,"tid":2,"ts":2},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":-1,"args":{"stream":7}},
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":1,"dur":5})json"), "x.json");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().spans(), 0u);
  ASSERT_EQ(read.value().banners.size(), 2u);
  EXPECT_EQ(read.value().banners[0], "x.json: 2 begin or end events (ph B, E) without their other half were passed over");
}

}  // namespace
}  // namespace shardbook::timeline
