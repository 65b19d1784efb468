// run.tlb: what is written is read back; what is cut off, damaged or made up is one sentence.
#include "engine/timeline/columns.hpp"

#include <chrono>
#include <random>

#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

// A timeline of any shape: more or fewer of everything, empty tables among them.
Timeline random_timeline(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
  TimelineBuilder builder;
  builder.set_base_ns(static_cast<std::int64_t>(random()));
  std::vector<TimelineBuilder::SpanNumber> numbers;
  const auto ranks = static_cast<Rank>(below(4));
  for (Rank rank = 0; rank < ranks; ++rank) {
    Provenance provenance;
    provenance.rank = 3 * rank;
    provenance.world_size = 9;
    provenance.clock = static_cast<Clock>(below(4));
    provenance.profile = std::string(below(5), 'p');
    provenance.device = "device";
    provenance.clock_error_ns = below(100);
    provenance.foreign = below(2) == 1;
    builder.add_rank(provenance);
    const std::uint32_t group = builder.group(base::text("group", below(2)), {0, 3 * rank + 1});
    for (std::uint32_t t = 0; t < below(4); ++t) {
      const auto track = builder.track(3 * rank, static_cast<TrackKind>(t), 7 + below(3), base::text("track ", t));
      for (std::uint32_t i = 0; i < below(60); ++i) {
        Detail detail;
        detail.op = builder.intern(base::text("op ", below(5)));
        detail.layer = static_cast<std::int32_t>(below(3));
        detail.source = {builder.intern("engine/a.cpp"), static_cast<std::int32_t>(below(9))};
        detail.awaits = {builder.intern("engine/b.cpp"), -1};
        detail.flops = std::int64_t{1} << below(62);
        NewSpan span;
        span.start = static_cast<Nanoseconds>(below(10'000)) - 500;
        span.end = span.start + below(900);
        span.label = builder.intern(base::text("label ", below(7), std::string(1, '\0')));
        span.cls = static_cast<Class>(below(6));
        span.correlation = below(50);
        span.detail = builder.detail(detail);
        if (below(3) == 0) {
          span.collective = builder.collective({.group = group, .seq = i, .op = static_cast<CollectiveOp>(below(10)),
                                                .dtype = builder.intern("bf16"), .bytes = below(1000), .wait_ns = below(9)});
        }
        span.step = static_cast<std::int32_t>(below(3)) - 1;
        span.launch_bound = below(2) == 1;
        numbers.push_back(builder.add(track, span));
      }
    }
    builder.add_step({.rank = 3 * rank, .number = 4, .start = 5, .end = 900, .host_start = 1, .host_end = 2});
    for (std::uint32_t i = 0; i < below(20); ++i) builder.add_counter(3 * rank, base::text("counter ", below(2)), i, below(1000));
  }
  for (std::uint32_t i = 0; i < below(40) && numbers.size() > 0; ++i) {
    builder.add_edge(numbers[below(static_cast<std::uint32_t>(numbers.size()))], numbers[below(static_cast<std::uint32_t>(numbers.size()))],
                     static_cast<EdgeKind>(below(7)));
  }
  if (below(2) == 1) builder.add_banner("a banner");
  return builder.finish();
}

TEST(Columns, AreReadBackAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.tlb";
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Timeline written = seed == 0 ? sample_timeline() : random_timeline(seed);
    ASSERT_TRUE(write_columns(written, path));
    const auto read = read_columns(path);
    ASSERT_TRUE(read) << read.error() << ", seed " << seed;
    ASSERT_EQ(description(read.value()), description(written)) << "seed " << seed;
    // Not only the same text: the same numbers.
    ASSERT_EQ(read.value().strings.size(), written.strings.size());
    EXPECT_EQ(read.value().details, written.details);
    EXPECT_EQ(read.value().collectives, written.collectives);
    EXPECT_EQ(read.value().groups, written.groups);
    EXPECT_EQ(read.value().edges, written.edges);
    EXPECT_EQ(read.value().banners, written.banners);
    for (std::size_t t = 0; t < written.tracks.size(); ++t) EXPECT_EQ(read.value().tracks[t].label, written.tracks[t].label);
    for (std::size_t i = 0; i < written.ranks.size(); ++i) {
      EXPECT_EQ(read.value().ranks[i].foreign, written.ranks[i].foreign);
      EXPECT_EQ(read.value().ranks[i].path, path);
    }
    // And written again, the same bytes.
    ASSERT_TRUE(write_columns(read.value(), folder / "again.tlb"));
    ASSERT_EQ(content_of(folder / "again.tlb"), content_of(path)) << "seed " << seed;
  }
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(Columns, CutOffAnywhereAreOneSentence) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_columns(sample_timeline(), folder / "run.tlb"));
  const std::string whole = content_of(folder / "run.tlb");
  const std::string path = folder / "cut.tlb";
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    const std::string cut = whole.substr(0, length);
    const auto read = read_columns_bytes(cut, path);
    ASSERT_FALSE(read) << "cut at byte " << length;
    if (length == 0) {
      EXPECT_EQ(read.error(), path + " is no timeline in columns: it does not begin with SHARDTLB");
    } else if (length > 64) {
      EXPECT_EQ(read.error(), base::text(path, " is cut off: it has ", length, " of ", whole.size(), " bytes"));
    }
  }
  write_file(path, whole.substr(0, 40));
  EXPECT_EQ(read_columns(path).error(), path + " is cut off at byte 40, within its first 64");
  write_file(path, whole + "more");
  EXPECT_FALSE(read_columns(path));
}

TEST(Columns, OfAnotherKindOrVersionAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.tlb";
  write_file(path, std::string(200, '{'));
  EXPECT_EQ(read_columns(path).error(), path + " is no timeline in columns: it does not begin with SHARDTLB");
  ASSERT_TRUE(write_columns(sample_timeline(), path));
  std::string content = content_of(path);
  content[8] = 9;
  write_file(path, content);
  EXPECT_EQ(read_columns(path).error(), path + " has version 9; this build reads version 2");
  EXPECT_EQ(read_columns(folder / "missing.tlb").error(), "cannot read " + (folder / "missing.tlb") + ": No such file or directory");
}

TEST(Columns, WithAChangedBitAreRefusedOrUnchanged) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.tlb";
  ASSERT_TRUE(write_columns(sample_timeline(), path));
  const std::string whole = content_of(path), expected = description(sample_timeline());
  std::mt19937 random(11);
  int refused = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    std::string changed = whole;
    const std::size_t at = random() % changed.size();
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    const auto read = read_columns_bytes(changed, path);
    if (!read) {
      ++refused;
      EXPECT_TRUE(read.error().starts_with(path)) << read.error();
      continue;
    }
    ASSERT_EQ(description(read.value()), expected) << "byte " << at;     // what only aligns the columns
  }
  EXPECT_GT(refused, 1000);
}

TEST(Columns, WithIndicesThatPointToNothingAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.tlb";
  // Written as such, so that all checksums are right.
  const auto refused = [&](const char* why, auto damage) {
    Timeline timeline = sample_timeline();
    damage(timeline);
    ASSERT_TRUE(write_columns(timeline, path));
    const auto read = read_columns(path);
    ASSERT_FALSE(read) << why;
    EXPECT_TRUE(read.error().starts_with(path + " is damaged: ")) << read.error();
  };
  refused("label", [](Timeline& t) { t.tracks[1].label[0] = static_cast<std::uint32_t>(t.strings.size()); });
  refused("detail", [](Timeline& t) { t.tracks[1].detail[0] = 1000; });
  refused("collective", [](Timeline& t) { t.tracks[1].collective[0] = 1000; });
  refused("class", [](Timeline& t) { t.tracks[1].cls[0] = static_cast<Class>(77); });
  refused("end before start", [](Timeline& t) { t.tracks[1].end[0] = t.tracks[1].start[0] - 1; });
  refused("order", [](Timeline& t) { std::swap(t.tracks[0].start[0], t.tracks[0].start[2]); });
  refused("far", [](Timeline& t) { t.tracks[1].end.back() = std::numeric_limits<Nanoseconds>::max(); });
  const auto first_edge = [](auto damage) {
    return [damage](Timeline& t) {
      std::vector<Edge> edges(t.edges.begin(), t.edges.end());
      damage(edges[0]);
      t.edges = Edges(edges);
    };
  };
  refused("edge", first_edge([](Edge& edge) { edge.to.index = 1000; }));
  refused("edge track", first_edge([](Edge& edge) { edge.from.track = 1000; }));
  refused("edge kind", first_edge([](Edge& edge) { edge.kind = static_cast<EdgeKind>(9); }));
  refused("track twice", [](Timeline& t) { t.tracks[1].id = t.tracks[2].id, t.tracks[1].kind = t.tracks[2].kind, t.tracks[1].lane = t.tracks[2].lane; });
  refused("edges out of order", [](Timeline& t) {
    std::vector<Edge> edges(t.edges.begin(), t.edges.end());
    std::swap(edges.front(), edges.back());
    t.edges = Edges(edges);
  });
  refused("group", [](Timeline& t) { t.collectives[1].group = 9; });
  refused("op", [](Timeline& t) { t.details[1].op = 1000; });
  refused("counter", [](Timeline& t) { t.counters[0].value.push_back(1); });
  refused("rank", [](Timeline& t) { t.tracks[0].rank = 9; });
  refused("track kind", [](Timeline& t) { t.tracks[0].kind = static_cast<TrackKind>(9); });
}

TEST(Columns, OfARunAreReadUnlessARankFileIsNewer) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(sample_timeline(), RunInfo{}, folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.tlb")) << "a small run has none";
  ASSERT_TRUE(write_columns(sample_timeline(), folder / "run.tlb"));
  const auto from_columns = read(folder.path());
  ASSERT_TRUE(from_columns) << from_columns.error();
  EXPECT_EQ(from_columns.value().ranks[0].path, folder / "run.tlb");
  EXPECT_EQ(description(from_columns.value()), description(sample_timeline()));

  const auto now = std::filesystem::last_write_time(folder / "run.tlb");
  std::filesystem::last_write_time(folder / "rank1.json", now + std::chrono::seconds(1));
  const auto from_files = read(folder.path());
  ASSERT_TRUE(from_files) << from_files.error();
  EXPECT_EQ(from_files.value().ranks[0].path, folder / "rank0.json");
  EXPECT_EQ(description(from_files.value()), description(sample_timeline()));

  // Named itself it is read in any case; beside other files it is refused.
  const auto named = read(folder / "run.tlb");
  ASSERT_TRUE(named) << named.error();
  EXPECT_EQ(read({folder / "run.tlb", folder / "rank0.json"}).error(),
            (folder / "run.tlb") + " holds all ranks of a run; name it alone, or the rank files of each run");

  // Without rank files it is all there is.
  std::filesystem::remove(folder / "rank0.json");
  std::filesystem::remove(folder / "rank1.json");
  EXPECT_TRUE(read(folder.path()));
}

TEST(Columns, ThatAreDamagedArePassedOverForTheRankFiles) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_run(sample_timeline(), RunInfo{}, folder.path()));
  write_file(folder / "run.tlb", "SHARDTLB");
  const auto read_files = read(folder.path());
  ASSERT_TRUE(read_files) << read_files.error();
  EXPECT_EQ(read_files.value().banners, std::vector<std::string>{(folder / "run.tlb") + " is cut off at byte 8, within its first 64; "
                                                                 "its rank files were read instead"});
  // A run that is written again takes the one of the old run away.
  ASSERT_TRUE(write_run(sample_timeline(), RunInfo{}, folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.tlb"));
}

TEST(Columns, AreKeptForLargeRuns) {
  EXPECT_FALSE(keeps_columns(2'000'000));
  EXPECT_TRUE(keeps_columns(2'000'001));
}

}  // namespace
}  // namespace shardbook::timeline
