// What the fuzzers began with and what they found worth keeping still holds; see fuzz/README.md for the fuzzers themselves.
#include <gtest/gtest.h>

#include "engine/timeline/tar.hpp"
#include "tests/timeline/fuzz/targets.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

std::size_t replay(const char* folder, void (*check)(std::string_view)) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/timeline/fuzz/corpus" / folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string bytes = content_of(entry.path().string());
    EXPECT_NO_THROW(check(bytes));
    ++files;
  }
  return files;
}

TEST(FuzzCorpus, TracesAreReadAndMeasured) { EXPECT_GE(replay("trace", fuzz::check_trace), 59u); }
TEST(FuzzCorpus, ColumnsAreReadAndMeasured) { EXPECT_GE(replay("columns", fuzz::check_columns), 15u); }
TEST(FuzzCorpus, PacksAreReadAndUnpacked) { EXPECT_GE(replay("pack", fuzz::check_pack), 11u); }
TEST(FuzzCorpus, RunInfosAreReadAndWritten) { EXPECT_GE(replay("run_info", fuzz::check_run_info), 5u); }

// The sums that the fuzzers write are the ones that the reader asks for: else they would never come past them.
TEST(FuzzCorpus, MendedFilesAreReadAsTheyWere) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_columns(sample_timeline(), folder / "run.tlb"));
  std::string bytes = content_of(folder / "run.tlb");
  EXPECT_EQ(fuzz::mended_columns(bytes), bytes);
  const std::size_t name = bytes.find("cudaEventRecord");
  ASSERT_NE(name, std::string::npos);
  bytes[name] = 'k';
  write_file(folder / "run.tlb", bytes);
  EXPECT_FALSE(read_columns(folder / "run.tlb"));
  write_file(folder / "run.tlb", fuzz::mended_columns(bytes));
  const auto read = read_columns(folder / "run.tlb");
  ASSERT_TRUE(read) << read.error();
  EXPECT_NE(read.value().strings.find("kudaEventRecord"), 0u);
}

TEST(FuzzCorpus, MendedArchivesAreReadAsTheyWere) {
  const TemporaryFolder folder;
  {
    TarWriter writer(folder / "a.tar");
    ASSERT_TRUE(writer.add_text("r/first", "1") && writer.add_text("r/second", "2") && writer.commit());
  }
  std::string bytes = content_of(folder / "a.tar");
  EXPECT_EQ(fuzz::mended_tar(bytes), bytes);
  bytes[bytes.find("second")] = 'b';
  const auto names = [&](const std::string& content) {
    write_file(folder / "a.tar", content);
    base::Result<TarReader> reader = TarReader::open(folder / "a.tar");
    std::string names;
    while (true) {
      const auto entry = reader.value().next();
      if (!entry) return names + "damaged";
      if (entry.value().name.empty()) return names;
      names += entry.value().name + " ";
    }
  };
  EXPECT_EQ(names(bytes), "r/first damaged");
  EXPECT_EQ(names(fuzz::mended_tar(bytes)), "r/first r/becond ");
}

// What was found by fuzzing, said in words.
TEST(FuzzCorpus, ARankSaidAgainAfterTheEventsChangesNothing) {
  const auto read = read_bytes(R"({"distributedInfo":{"rank":2},"baseTimeNanoseconds":0,
    "traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}],"distributedInfo":{"rank":5}})", "a.json");
  ASSERT_TRUE(read) << read.error();
  ASSERT_EQ(read.value().ranks.size(), 1u);
  EXPECT_EQ(read.value().ranks[0].rank, 2);
  EXPECT_EQ(read.value().tracks.at(0).rank, 2);
}

TEST(FuzzCorpus, FilesThatBeginYearsApartAreNotOneRun) {
  const auto file = [](const char* name, const char* base) {
    return NamedBytes{name, std::string(R"({"baseTimeNanoseconds":)") + base + R"(,"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2}]})"};
  };
  const auto apart = read_named({file("rank0.json", "1790000000000000000"), file("rank1.json", "0")});
  ASSERT_FALSE(apart);
  EXPECT_EQ(apart.error(), "rank1.json begins 56 years before rank0.json: they are not of one run; open them one at a time");
  EXPECT_TRUE(read_named({file("rank0.json", "1790000000000000000"), file("rank1.json", "1790000000000000123")}));
}

TEST(FuzzCorpus, ColumnsWithTimesThatCannotBeAddedAreDamage) {
  constexpr Nanoseconds earliest = -400'000'000'000'000'000, farthest = 2'300'000'000'000'000'000;
  for (const Nanoseconds beyond : {0, 1}) {
    const auto sound = [&](Nanoseconds start, Nanoseconds end, Nanoseconds counted) {
      TimelineBuilder builder;
      builder.add_rank({.rank = 0});
      builder.add(builder.track(0, TrackKind::stream, 7), {.start = start, .end = end});
      builder.add_counter(0, "bytes", counted, 1);
      return check_indices(builder.finish(), "run.tlb").ok();
    };
    EXPECT_EQ(sound(earliest - beyond, farthest, 0), beyond == 0);
    EXPECT_EQ(sound(earliest, farthest + beyond, 0), beyond == 0);
    EXPECT_EQ(sound(0, 1, farthest + beyond), beyond == 0);
    EXPECT_EQ(sound(0, 1, earliest - beyond), beyond == 0);
  }
}

TEST(FuzzCorpus, ARunInfoThatNestsTooDeepIsOneSentence) {
  const TemporaryFolder folder;
  const auto nested = [](std::size_t levels) { return R"({"format":1,"config":)" + std::string(levels, '[') + std::string(levels, ']') + "}"; };
  write_file(folder / "run.json", nested(99));
  EXPECT_TRUE(read_run_info(folder / "run.json"));
  write_file(folder / "run.json", nested(1'000'000));
  const auto read = read_run_info(folder / "run.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), folder / "run.json" + " is not the run.json of a run: its values nest deeper than 100 levels");
}

}  // namespace
}  // namespace shardbook::timeline
