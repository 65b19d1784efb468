// The memory that a run's record shows is what its schedule promises.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "engine/launch/launch.hpp"
#include "engine/program/file.hpp"
#include "engine/timeline/memory.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

namespace fs = std::filesystem;
using program::MemoryKind;

// A run on meta of four blocks, sharded over two ranks, as it is read from its files.
struct Shown {
  timeline::Timeline timeline;
  program::Record record;

  explicit Shown(const std::string& option_asked = "", const std::string& value_asked = "") {
    const fs::path folder = fs::temp_directory_path() / ("shardbook-memory-test-" + std::to_string(::getpid()));
    fs::remove_all(folder);
    tests::Asked options{{"device", "meta"}, {"layers", "4"},    {"width", "32"},
                                                             {"heads", "4"},     {"sequence", "16"}, {"sequences", "8"},
                                                             {"tp", "1"},        {"fsdp", "2"},      {"out", folder.string()}};
    if (!option_asked.empty()) options.emplace_back(option_asked, value_asked);
    EXPECT_TRUE(run(tests::config_of(options), {}).ok());
    timeline = timeline::read(folder.string()).value();
    record = program::load((folder / "rank0.program").string()).value();
    fs::remove_all(folder);
  }

  const timeline::Counter& counter(MemoryKind kind) const {
    const std::string name = std::string(timeline::memory_counter_prefix) + name_of(kind);
    const auto found = std::find_if(timeline.counters.begin(), timeline.counters.end(),
                                    [&](const timeline::Counter& c) { return c.rank == 0 && c.name == name; });
    EXPECT_NE(found, timeline.counters.end()) << name;
    return *found;
  }
  std::int64_t level(MemoryKind kind, base::Nanoseconds time) const {
    const timeline::Counter& c = counter(kind);
    const auto after = std::upper_bound(c.time.begin(), c.time.end(), time);
    return after == c.time.begin() ? 0 : c.value[static_cast<std::size_t>(after - c.time.begin() - 1)];
  }
  std::int64_t peak(MemoryKind kind) const { return *std::max_element(counter(kind).value.begin(), counter(kind).value.end()); }
  // When the first op of backward starts in the first step.
  base::Nanoseconds first_backward() const {
    base::Nanoseconds first = std::numeric_limits<base::Nanoseconds>::max();
    timeline::for_each_device_span(timeline, 0, [&](timeline::SpanRef span) {
      if (timeline.step(span) != timeline.steps[0].number || timeline.cls(span) != timeline::Class::compute) return;
      if (timeline.strings[timeline.detail(span).phase] == "backward") first = std::min(first, timeline.start(span));
    });
    return first;
  }
  // Bytes of the buffers of a kind; of those whose name begins with `name`, if given.
  base::Bytes buffers(MemoryKind kind, const std::string& name = "") const {
    base::Bytes sum = 0;
    for (const program::BufferInfo& buffer : record.catalogue.buffers) {
      if (buffer.kind == kind && buffer.name.starts_with(name)) sum += buffer.bytes;
    }
    return sum;
  }
};

TEST(LiveMemory, OfGatheredUnitsIsNeverMoreThanTheSlotsOfThePrefetch) {
  std::map<int, std::int64_t> peaks;
  for (const int prefetch : {0, 1, 2}) {
    const Shown shown("prefetch", std::to_string(prefetch));
    // A unit as its all-gathers say; what is resident is gathered into slots of its own.
    std::map<std::int32_t, base::Bytes> unit_of_layer;
    timeline::for_each_device_span(shown.timeline, 0, [&](timeline::SpanRef span) {
      if (!shown.timeline.has_collective(span)) return;
      const timeline::Collective& collective = shown.timeline.collective(span);
      if (collective.op == timeline::CollectiveOp::all_gather) unit_of_layer[shown.timeline.detail(span).layer] = collective.bytes;
    });
    const base::Bytes unit = unit_of_layer.at(0);
    const base::Bytes resident = shown.buffers(MemoryKind::gathered) - shown.buffers(MemoryKind::gathered, "fsdp.gathered");
    EXPECT_LE(shown.peak(MemoryKind::gathered), resident + (prefetch + 1) * unit) << "prefetch " << prefetch;
    EXPECT_GE(shown.peak(MemoryKind::gathered), unit);
    peaks[prefetch] = shown.peak(MemoryKind::gathered);
  }
  EXPECT_LT(peaks[0], peaks[1]) << "gathering ahead holds one unit more";
}

TEST(LiveMemory, HoldsEveryUnitWhereNothingIsFreedAfterForward) {
  const Shown freed, kept("reshard", "false");
  EXPECT_GT(kept.peak(MemoryKind::gathered), freed.peak(MemoryKind::gathered));
  EXPECT_EQ(kept.peak(MemoryKind::gathered), kept.buffers(MemoryKind::gathered));
  EXPECT_EQ(kept.level(MemoryKind::gathered, kept.first_backward()), kept.buffers(MemoryKind::gathered));
}

TEST(LiveMemory, IsAtTheEndOfAStepWhatItWasAtItsBegin) {
  const Shown shown;
  ASSERT_FALSE(shown.timeline.steps.empty());
  for (const timeline::Step& step : shown.timeline.steps) {
    if (step.rank != 0) continue;
    EXPECT_EQ(shown.level(MemoryKind::gathered, step.end), 0);
    EXPECT_EQ(shown.level(MemoryKind::activation, step.end), 0);
    EXPECT_EQ(shown.level(MemoryKind::gradient, step.end), shown.level(MemoryKind::gradient, step.start));
    EXPECT_EQ(shown.level(MemoryKind::workspace, step.end), shown.level(MemoryKind::workspace, step.start));
    EXPECT_EQ(shown.level(MemoryKind::parameter, step.end), shown.buffers(MemoryKind::parameter));
    EXPECT_EQ(shown.level(MemoryKind::optimizer, step.end), shown.buffers(MemoryKind::optimizer));
  }
  EXPECT_GT(shown.peak(MemoryKind::activation), 0);
}

TEST(LiveMemory, OfActivationsIsLeastAtTheBeginAndMostWhereBackwardBegins) {
  const Shown shown;
  const timeline::Counter& activation = shown.counter(MemoryKind::activation);
  const std::int64_t peak = shown.peak(MemoryKind::activation);
  const auto at_peak = std::find(activation.value.begin(), activation.value.end(), peak) - activation.value.begin();
  const base::Nanoseconds begin = shown.timeline.steps[0].start, when = activation.time[static_cast<std::size_t>(at_peak)];
  EXPECT_EQ(shown.level(MemoryKind::activation, begin - 1), 0);
  // Near the end of forward or the begin of backward, where the head's ops are.
  const base::Nanoseconds turn = shown.first_backward(), end = shown.timeline.steps[0].end;
  EXPECT_GT(when, begin + (turn - begin) * 4 / 5);
  EXPECT_LT(when, turn + (end - turn) / 5);
}

}  // namespace
}  // namespace shardbook::launch
