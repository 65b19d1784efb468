// All that is computed and drawn of a trace stands whatever a damaged file says: no overflow, no endless walk.
#include <fstream>
#include <random>
#include <sstream>

#include "engine/metrics/exposure.hpp"
#include "engine/metrics/idle.hpp"
#include "engine/metrics/table.hpp"
#include "engine/metrics/terminal.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::metrics {
namespace {

TEST(Metrics, StandWhateverADamagedFileSays) {
  const timeline::TemporaryFolder folder;
  ASSERT_TRUE(timeline::write_rank(timeline::sample_timeline(), 0, folder / "rank0.json"));
  const std::string whole = timeline::content_of(folder / "rank0.json");
  std::mt19937 random(11);
  std::uniform_int_distribution<std::size_t> at(0, whole.size() - 1);
  std::uniform_int_distribution<char> digit('0', '9');
  for (int turn = 0; turn < 400; ++turn) {
    // Digits become others, or grow in number: times, streams, correlations and ids that make no sense.
    std::string damaged = whole;
    for (int i = 0; i < 20; ++i) {
      const std::size_t place = damaged.find_first_of("0123456789", at(random));
      if (place == std::string::npos) continue;
      if (i % 4 == 0) damaged.insert(place, std::string(at(random) % 16, digit(random)));
      else damaged[place] = digit(random);
    }
    const auto read = timeline::read_bytes(damaged, "rank0.json");
    if (!read) continue;
    const Timeline& timeline = read.value();
    const Window window = common_window(timeline);
    for (const RankRow& row : rank_rows(timeline)) {
      const Partition& parts = row.partition;
      EXPECT_EQ(parts.compute_ns + parts.exposed_communication_ns + parts.exposed_memory_ns + parts.idle_ns, parts.window.length());
      idle_gaps(timeline, row.rank, parts.window);
    }
    Nanoseconds covered = 0;
    for (const PathPiece& piece : critical_path(timeline, window).pieces) covered += piece.time.length();
    EXPECT_EQ(covered, window.length());
    exposure_sentence(timeline, window);
    ViewState state;
    for (const char* key : {"w", "a", "n", "s", "s", "d", "N"}) {
      state = step(timeline, state, key_of(key));
      draw(timeline, state, {});
    }
  }
}

}  // namespace
}  // namespace shardbook::metrics
