// Levels of memory that follow from what the ops of a record read and write.
#include "engine/timeline/memory.hpp"

#include <map>

#include "engine/program/recorder.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/rules.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

using program::BufferId;
using program::MemoryKind;
using program::OpDesc;
using program::OpKind;

using Points = std::vector<std::pair<Nanoseconds, std::int64_t>>;

Points points(const Timeline& timeline, const char* kind) {
  Points points;
  for (const Counter& counter : timeline.counters) {
    if (counter.name != std::string(memory_counter_prefix) + kind) continue;
    for (std::size_t i = 0; i < counter.time.size(); ++i) points.emplace_back(counter.time[i], counter.value[i]);
  }
  return points;
}

// A record of one stream, step after step, and the levels that follow from it.
class Memory : public ::testing::Test {
 protected:
  struct Ran {
    OpDesc op;
    Nanoseconds start, end;
  };

  BufferId buffer(MemoryKind kind, Bytes bytes, const char* name = "b") { return recorder_.add_buffer({name, kind, bytes}); }
  static OpDesc op() { return OpDesc("op", OpKind::pointwise, base::DType::bf16); }
  // The next step: its window is 1000 long, and these ops ran in it.
  void step(Nanoseconds start, const std::vector<Ran>& ran) {
    recorder_.begin_step(static_cast<std::int64_t>(times_.size()));
    for (const Ran& one : ran) recorder_.op(stream_, one.op, {"engine/a.cpp", 1});
    program::StepTimes& times = recorder_.end_step();
    times.window = {start, start + 1000};
    for (program::TimeSpan& issued : times.issued) issued = {start, start};
    times.ran.clear();
    for (const Ran& one : ran) times.ran.push_back({one.start, one.end});
    times_.push_back(times);
  }
  Timeline timeline() const {
    TimelineBuilder builder;
    std::vector<ProgramStep> steps;
    for (const program::StepTimes& times : times_) steps.push_back({recorder_.programs()[times.program].get(), &times});
    add_program(builder, {.rank = 0, .clock = Clock::modelled, .profile = "p"}, recorder_.catalogue(), steps);
    return builder.finish();
  }
  Points level(const char* kind) const { return points(timeline(), kind); }

 private:
  program::Recorder recorder_{0};
  program::StreamId stream_ = recorder_.add_stream("compute");
  std::vector<program::StepTimes> times_;
};

TEST_F(Memory, OfAValueIsLiveFromItsWriteToItsLastReader) {
  const BufferId a = buffer(MemoryKind::activation, 100);
  step(0, {{op().writes({a, 0, 100}), 10, 20},
           {op().reads({a, 0, 100}), 30, 40},
           {op().reads({a, 0, 100}), 50, 60},
           {op().writes({a, 0, 100}), 70, 80}});            // a second value, which nobody reads
  EXPECT_EQ(level("activation"), (Points{{0, 0}, {10, 100}, {60, 0}, {70, 100}, {80, 0}}));
}

TEST_F(Memory, OfTheHostCountsNowhere) {
  const BufferId slot = buffer(MemoryKind::optimizer, 40), master = buffer(MemoryKind::optimizer, 1000, "blocks.0.master in host memory");
  const BufferId other = buffer(MemoryKind::gradient, 1000, "blocks.0.gradient in host memory");
  step(0, {{op().reads({master, 0, 40}, 0).writes({slot, 0, 40}), 10, 20}, {op().writes({other, 0, 1000}), 20, 30}});
  EXPECT_EQ(level("optimizer"), (Points{{0, 40}}));
  EXPECT_EQ(level("gradient"), (Points{}));
}

TEST_F(Memory, IsCountedByTheValueNotByTheBuffer) {
  const BufferId a = buffer(MemoryKind::gathered, 1000);
  step(0, {{op().writes({a, 0, 60}), 10, 20},
           {op().writes({a, 60, 100}), 20, 30},
           {op().reads({a, 40, 80}), 40, 50},               // 40..60 of the first, 60..80 of the second
           {op().reads({a, 0, 10}), 60, 70}});
  EXPECT_EQ(level("gathered"), (Points{{0, 0}, {10, 60}, {20, 100}, {50, 60}, {70, 0}}));
}

TEST_F(Memory, OfAValueThatIsOverwrittenInPartCountsOnlyWhatIsLeft) {
  const BufferId a = buffer(MemoryKind::gathered, 100);
  step(0, {{op().writes({a, 0, 100}), 10, 20},
           {op().reads({a, 0, 100}), 20, 30},
           {op().writes({a, 0, 40}), 40, 50},
           {op().reads({a, 90, 100}), 60, 70}});
  EXPECT_EQ(level("gathered"), (Points{{0, 0}, {10, 100}, {50, 60}, {70, 0}}));
}

TEST_F(Memory, ThatIsUpdatedInPlaceHoldsOneValue) {
  const BufferId a = buffer(MemoryKind::gradient, 8);
  step(0, {{op().writes({a, 0, 8}), 10, 20}, {op().updates({a, 0, 8}), 30, 40}, {op().reads({a, 0, 8}).writes({a, 0, 4}), 50, 60}});
  EXPECT_EQ(level("gradient"), (Points{{0, 0}, {10, 8}, {60, 0}}));
}

TEST_F(Memory, OfAValueFromBeforeTheStepIsLiveAcrossSteps) {
  const BufferId a = buffer(MemoryKind::workspace, 8);
  for (const Nanoseconds t : {0, 1000}) {
    step(t, {{op().reads({a, 0, 8}), t + 100, t + 200},     // what the step before left
             {op().writes({a, 0, 8}), t + 500, t + 600}});  // what this one leaves
  }
  EXPECT_EQ(level("workspace"), (Points{{0, 8}, {200, 0}, {500, 8}, {1200, 0}, {1500, 8}}));
}

TEST_F(Memory, OfParametersAndOptimizerIsThereAllTheTime) {
  const BufferId parameter = buffer(MemoryKind::parameter, 30);
  buffer(MemoryKind::parameter, 12);
  buffer(MemoryKind::optimizer, 90);
  step(5, {{op().writes({parameter, 0, 30}), 10, 20}});
  EXPECT_EQ(level("parameter"), (Points{{5, 42}}));
  EXPECT_EQ(level("optimizer"), (Points{{5, 90}}));
  EXPECT_TRUE(level("activation").empty()) << "no buffer of that kind, no counter";
}

TEST_F(Memory, LeavesOutOpsThatNeverRan) {
  const BufferId a = buffer(MemoryKind::activation, 8);
  step(0, {{op().writes({a, 0, 8}), 10, 20}, {op().reads({a, 0, 8}), 0, -1}});
  EXPECT_EQ(level("activation"), (Points{{0, 0}, {10, 8}, {20, 0}}));
}

TEST_F(Memory, StandsInTheRankFileAndIsReadBack) {
  const BufferId a = buffer(MemoryKind::activation, 100);
  step(0, {{op().writes({a, 0, 100}), 10, 20}, {op().reads({a, 0, 100}), 30, 41}});
  const Timeline written = timeline();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(written, 0, folder / "rank0.json"));
  EXPECT_EQ(violations(folder / "rank0.json"), std::vector<std::string>{});
  EXPECT_NE(content_of(folder / "rank0.json").find("{\"ph\":\"C\",\"name\":\"live bytes: activation\",\"pid\":0,\"tid\":1,\"ts\":0.041,"
                                                   "\"args\":{\"value\":0}}"), std::string::npos);
  const auto again = read(folder / "rank0.json");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(points(again.value(), "activation"), points(written, "activation"));
}

}  // namespace
}  // namespace shardbook::timeline
