// Input that was made to be slow or large: its cost grows as its size does, and who waits hears how far it is.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <random>
#include <tuple>

#include "engine/timeline/columns.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/gzip.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

std::string trace_of(int events, const std::function<std::string(int)>& event) {
  std::string out = R"({"distributedInfo":{"rank":0,"world_size":1},"baseTimeNanoseconds":0,"traceEvents":[)";
  for (int i = 0; i < events; ++i) out += (i > 0 ? ",\n" : "") + event(i);
  return out + "]}";
}

using tests::cpu_seconds;

// The least of three turns. Memory of the turn before is there for the next: what new pages cost the kernel grows in steps.
double cost_of(const std::string& trace) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  double least = 1e9;
  for (int turn = 0; turn < 3; ++turn) {
    const double before = cpu_seconds();
    const auto read = read_bytes(trace, "a.json");
    least = std::min(least, cpu_seconds() - before);
    EXPECT_TRUE(read) << (read ? "" : read.error());
  }
  return least;
}

// Sixteen times the events in well below the 256 times of what is quadratic. (Before it was mended each of these
// cost 1 to 4 s at 40 000 events.)
void expect_no_square(const std::function<std::string(int)>& event) {
  const double small = cost_of(trace_of(2'000, event)), large = cost_of(trace_of(32'000, event));
  EXPECT_LT(large, 80 * std::max(small, 0.001));
}

TEST(ReadingCost, OfManySpansThatOverlapOnOneRowIsNotTheirSquare) {
  expect_no_square([](int i) { return base::text(R"({"ph":"X","cat":"cpu_op","name":"k","pid":0,"tid":7,"ts":)", i, R"(,"dur":)", 100'000 + i, "}"); });
}

TEST(ReadingCost, OfManyCountersIsNotTheirSquare) {
  expect_no_square([](int i) {
    if (i == 0) return std::string(R"({"ph":"X","cat":"cpu_op","name":"k","pid":0,"tid":7,"ts":1,"dur":2})");
    return base::text(R"({"ph":"C","name":"counter )", i, R"(","pid":0,"ts":)", i, R"(,"args":{"value":1}})");
  });
}

TEST(ReadingCost, OfManyThreadsIsNotTheirSquare) {
  expect_no_square([](int i) { return base::text(R"({"ph":"X","cat":"cpu_op","name":"k","pid":)", i % 3, R"(,"tid":)", i, R"(,"ts":)", i, R"(,"dur":3})"); });
}

TEST(ReadingCost, OfManyDevicesIsNotTheirSquare) {
  expect_no_square([](int i) {
    return base::text(R"({"ph":"X","cat":"kernel","name":"k","pid":)", i, R"(,"tid":7,"ts":)", i, R"(,"dur":3,"args":{"stream":7,"device":0}})");
  });
}

TEST(ReadingCost, OfManyGroupsIsNotTheirSquare) {
  expect_no_square([](int i) {
    return base::text(R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","pid":0,"tid":7,"ts":)", 2 * i,
                      R"(,"dur":1,"args":{"stream":7,"Process Group Name":"g)", i, R"(","Process Group Ranks":"[0, 1]"}})");
  });
}

// What stood here before: each lane is tried, one after the other.
std::vector<std::int32_t> plain_lanes(const std::vector<std::pair<Nanoseconds, Nanoseconds>>& spans) {
  std::vector<std::vector<Nanoseconds>> lanes;
  std::vector<std::int32_t> of;
  for (const auto& [start, end] : spans) {
    std::size_t lane = 0;
    for (; lane < lanes.size(); ++lane) {
      while (!lanes[lane].empty() && lanes[lane].back() <= start) lanes[lane].pop_back();
      if (lanes[lane].empty() || end <= lanes[lane].back()) break;
    }
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back(end);
    of.push_back(static_cast<std::int32_t>(lane));
  }
  return of;
}

TEST(Lanes, AreTheFirstInWhichASpanNests) {
  std::mt19937 random(11);
  const auto any = [&](int below) { return static_cast<Nanoseconds>(random() % static_cast<unsigned>(below)); };
  for (int turn = 0; turn < 200; ++turn) {
    const int longest = 1 + static_cast<int>(any(400));
    std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
    for (int i = 0; i < 200; ++i) {
      const Nanoseconds start = any(500);
      spans.emplace_back(start, start + any(longest));
    }
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
    TimelineBuilder builder;
    builder.add_rank({.rank = 0});
    for (const auto& [start, end] : spans) builder.add(builder.track(0, TrackKind::host, 1), {.start = start, .end = end, .cls = Class::host});
    std::vector<SpanRef> where;
    const Timeline timeline = builder.finish(&where);
    const std::vector<std::int32_t> expected = plain_lanes(spans);
    for (std::size_t i = 0; i < spans.size(); ++i) ASSERT_EQ(timeline.tracks[where[i].track].lane, expected[i]) << "turn " << turn << " span " << i;
  }
}

TEST(Builder, LeavesNoRoomForWhatWillNotCome) {
  TimelineBuilder builder;
  builder.add_rank({.rank = 0});
  for (int i = 0; i < 70'000; ++i) {
    builder.add(builder.track(0, TrackKind::stream, 7), {.start = i, .end = i + 1});
    builder.add_counter(0, "bytes", i, i);
  }
  const Timeline timeline = builder.finish();
  EXPECT_EQ(timeline.tracks[0].start.capacity(), timeline.tracks[0].size());
  EXPECT_EQ(timeline.tracks[0].flags.capacity(), timeline.tracks[0].size());
  EXPECT_EQ(timeline.counters[0].time.capacity(), 70'000u);
}

TEST(Edges, AreGivenAsTheyWereAndTakeTwelveBytes) {
  std::mt19937 random(5);
  std::vector<Edge> edges;
  for (int i = 0; i < 10'000; ++i) {
    const auto any = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
    edges.push_back({{any(5), any(1000)}, {any(5), any(1000)}, static_cast<EdgeKind>(any(7))});
  }
  const Timeline timeline = [&] {
    Timeline made;
    made.edges = in_order(edges);
    return made;
  }();
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind); });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  EXPECT_TRUE(std::equal(edges.begin(), edges.end(), timeline.edges.begin(), timeline.edges.end()));
  EXPECT_EQ(timeline.edges, Edges(edges));
  EXPECT_LT(timeline.edges.memory(), 12 * edges.size() + 4096);
  // Found by bisection, as metrics and the viewer do.
  const SpanRef wanted = edges[edges.size() / 2].to;
  const auto first = std::lower_bound(timeline.edges.begin(), timeline.edges.end(), wanted, [](const Edge& edge, SpanRef span) { return edge.to < span; });
  EXPECT_EQ(first->to, wanted);
  EXPECT_TRUE(first == timeline.edges.begin() || std::prev(first)->to < wanted);
}

// --- Bombs --------------------------------------------------------------------------------------

std::string packed(const TemporaryFolder& folder, const std::string& content) {
  {
    Output out(folder / "packed");
    Deflater deflater(out);
    deflater.write(content);
    deflater.finish();
    EXPECT_TRUE(out.commit());
  }
  return content_of(folder / "packed");
}

TEST(Gunzip, OfWhatUnpacksToAHundredTimesItsSizeIsOneSentence) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const TemporaryFolder folder;
  const std::string bomb = packed(folder, "[" + std::string(std::size_t{40} << 20, ' '));
  ASSERT_LT(bomb.size(), 50'000u);
  write_file(folder / "rank0.json.gz", bomb);
  const auto read = timeline::read(folder / "rank0.json.gz");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), base::text(folder / "rank0.json.gz", " unpacks to more than 16 MiB, which is more than its ", bomb.size(),
                                     " bytes may become in memory; if it is a trace, unpack it with gunzip and open what comes out"));
  // In a pack, and from memory.
  const auto named = read_named({{"rank0.json.gz", bomb}});
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().find("unpacks to more than 16 MiB"), std::string::npos) << named.error();
}

TEST(Gunzip, HasABoundThatRealTracesStayFarBelow) {
  EXPECT_EQ(most_unpacked(0), std::size_t{16} << 20);
  EXPECT_EQ(most_unpacked(1 << 20), std::size_t{100} << 20);
  EXPECT_EQ(most_unpacked(std::size_t{1} << 40), std::size_t{4} << 30);
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  // 20 MB whose every event is new, packed to about a tenth.
  const TemporaryFolder folder;
  const std::string trace = trace_of(150'000, [](int i) {
    return base::text(R"({"ph":"X","cat":"kernel","name":"kernel number )", i * 7919LL % 1000, R"(","pid":0,"tid":7,"ts":)", 3 * i, R"(,"dur":1,"args":{"stream":7,"correlation":)", i, "}}");
  });
  ASSERT_GT(trace.size(), std::size_t{17} << 20);
  write_file(folder / "rank0.json.gz", packed(folder, trace));
  const auto read = timeline::read(folder / "rank0.json.gz");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().spans(), 150'000u);
}

TEST(Pack, ThatUnpacksToAHundredTimesItsSizeIsOneSentence) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  write_file(folder / "run" + "/rank0.json", "[" + std::string(std::size_t{40} << 20, ' ') + R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2}])");
  ASSERT_TRUE(write_pack(folder / "run", "", folder / "a.tar.gz"));
  const auto opened = open_pack(folder / "a.tar.gz", folder / "target");
  const auto read = read_pack(folder / "a.tar.gz");
  ASSERT_FALSE(opened);
  ASSERT_FALSE(read);
  for (const std::string& error : {opened.error(), read.error()}) {

    EXPECT_EQ(error, folder / "a.tar.gz" + " would unpack to more than 16 MiB or 200000 files; it is not opened");
  }
}

// --- Progress -----------------------------------------------------------------------------------

// All that was heard while these were read, which must succeed.
std::vector<double> heard_of(const std::vector<std::string>& paths) {
  std::vector<double> shares;
  const auto read = timeline::read(paths, [&](double share) {
    shares.push_back(share);
    return true;
  });
  EXPECT_TRUE(read) << (read ? "" : read.error());
  return shares;
}

// Ascends to 1 in steps of which none is larger than `largest`.
void expect_progress(const std::vector<double>& shares, double largest) {
  ASSERT_FALSE(shares.empty());
  EXPECT_EQ(shares.back(), 1);
  double last = 0;
  for (const double share : shares) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, last + largest);
    last = share;
  }
}

std::string large_trace() {
  static const std::string trace = trace_of(150'000, [](int i) { return base::text(R"({"ph":"X","cat":"cpu_op","name":"k","pid":0,"tid":7,"ts":)", 3 * i, R"(,"dur":1,"args":{"External id":)", i, "}}"); });
  return trace;
}

TEST(Progress, FollowsTheBytesOfOneFile) {
  const TemporaryFolder folder;
  write_file(folder / "rank0.json", large_trace());
  const std::vector<double> shares = heard_of({folder / "rank0.json"});
  expect_progress(shares, 0.15);
  EXPECT_GT(shares.size(), 8u);
}

TEST(Progress, FollowsTheBytesOfAllFilesOfARun) {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 3; ++rank) {
    std::string trace = large_trace();
    trace.replace(trace.find("\"rank\":0"), 8, base::text("\"rank\":", rank));
    write_file(folder / base::text("rank", rank, ".json"), trace);
  }
  expect_progress(heard_of({folder.path()}), 0.15);
}

TEST(Progress, FollowsUnpackingAndReading) {
  if (!can_gunzip()) GTEST_SKIP() << "built without zlib";
  const TemporaryFolder folder;
  write_file(folder / "rank0.json.gz", packed(folder, large_trace()));
  const std::vector<double> shares = heard_of({folder / "rank0.json.gz"});
  expect_progress(shares, 0.3);
  EXPECT_TRUE(std::any_of(shares.begin(), shares.end(), [](double share) { return share > 0 && share < 0.46; })) << "while it is unpacked";
  EXPECT_TRUE(std::any_of(shares.begin(), shares.end(), [](double share) { return share > 0.46 && share < 0.9; })) << "while it is read";
}

TEST(Progress, FollowsTheColumns) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_columns(read_bytes(large_trace(), "a.json").value(), folder / "run.tlb"));
  expect_progress(heard_of({folder / "run.tlb"}), 0.3);
}

TEST(Progress, FollowsThePackThatIsUnpacked) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  write_file(folder / "run" + "/rank0.json", large_trace());
  ASSERT_TRUE(write_pack(folder / "run", "", folder / "a.tar"));
  std::vector<double> shares;
  ASSERT_TRUE(open_pack(folder / "a.tar", folder / "target", [&](double share) { return shares.push_back(share), true; }));
  expect_progress(shares, 0.15);
}

TEST(Progress, WhoHearsItEndsTheReading) {
  const TemporaryFolder folder;
  write_file(folder / "rank0.json", large_trace());
  ASSERT_TRUE(write_columns(read_bytes(large_trace(), "a.json").value(), folder / "run.tlb"));
  for (const char* file : {"rank0.json", "run.tlb"}) {
    int calls = 0;
    const auto read = timeline::read(std::vector<std::string>{folder / file}, [&](double) { return ++calls < 3; });
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error(), "reading " + (folder / file) + " was stopped");
    EXPECT_EQ(calls, 3);
  }
}

}  // namespace
}  // namespace shardbook::timeline
