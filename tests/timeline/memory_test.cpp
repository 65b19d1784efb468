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

// Ops of one stream, each with its uses and its time; the step's window is 1000 long.
class Record {
 public:
  Record() : recorder_(0) { stream_ = recorder_.add_stream("compute"); }
  BufferId buffer(MemoryKind kind, Bytes bytes) { return recorder_.add_buffer({"b", kind, bytes}); }
  void begin(std::int64_t step) { recorder_.begin_step(step); }
  OpDesc op() const { return OpDesc("op", OpKind::pointwise, base::DType::bf16); }
  void add(const OpDesc& desc, Nanoseconds start, Nanoseconds end) {
    recorder_.op(stream_, desc, {"engine/a.cpp", 1});
    ran_.push_back({start, end});
  }
  void end(Nanoseconds window_start) {
    program::StepTimes& times = recorder_.end_step();
    times.window = {window_start, window_start + 1000};
    for (program::TimeSpan& issued : times.issued) issued = {window_start, window_start};
    times.ran = std::move(ran_);
    ran_.clear();
    times_.push_back(times);
  }
  Timeline timeline() const {
    TimelineBuilder builder;
    std::vector<ProgramStep> steps;
    for (const program::StepTimes& times : times_) steps.push_back({recorder_.programs()[times.program].get(), &times});
    add_program(builder, {.rank = 0, .clock = Clock::modelled, .profile = "p"}, recorder_.catalogue(), steps);
    return builder.finish();
  }

 private:
  program::Recorder recorder_;
  program::StreamId stream_;
  std::vector<program::TimeSpan> ran_;
  std::vector<program::StepTimes> times_;
};

using Points = std::vector<std::pair<Nanoseconds, std::int64_t>>;

Points points(const Timeline& timeline, const char* kind) {
  Points points;
  for (const Counter& counter : timeline.counters) {
    if (counter.name != std::string(memory_counter_prefix) + kind) continue;
    for (std::size_t i = 0; i < counter.time.size(); ++i) points.emplace_back(counter.time[i], counter.value[i]);
  }
  return points;
}

TEST(Memory, OfAValueIsLiveFromItsWriteToItsLastReader) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::activation, 100);
  record.begin(0);
  record.add(record.op().writes({a, 0, 100}), 10, 20);
  record.add(record.op().reads({a, 0, 100}), 30, 40);
  record.add(record.op().reads({a, 0, 100}), 50, 60);
  record.add(record.op().writes({a, 0, 100}), 70, 80);      // a second value, which nobody reads
  record.end(0);
  EXPECT_EQ(points(record.timeline(), "activation"), (Points{{0, 0}, {10, 100}, {60, 0}, {70, 100}, {80, 0}}));
}

TEST(Memory, IsCountedByTheValueNotByTheBuffer) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::gathered, 1000);
  record.begin(0);
  record.add(record.op().writes({a, 0, 60}), 10, 20);
  record.add(record.op().writes({a, 60, 100}), 20, 30);
  record.add(record.op().reads({a, 40, 80}), 40, 50);       // 40..60 of the first, 60..80 of the second
  record.add(record.op().reads({a, 0, 10}), 60, 70);
  record.end(0);
  EXPECT_EQ(points(record.timeline(), "gathered"),
            (Points{{0, 0}, {10, 60}, {20, 100}, {50, 60}, {70, 0}}));
}

TEST(Memory, OfAValueThatIsOverwrittenInPartCountsOnlyWhatIsLeft) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::gathered, 100);
  record.begin(0);
  record.add(record.op().writes({a, 0, 100}), 10, 20);
  record.add(record.op().reads({a, 0, 100}), 20, 30);
  record.add(record.op().writes({a, 0, 40}), 40, 50);
  record.add(record.op().reads({a, 90, 100}), 60, 70);
  record.end(0);
  EXPECT_EQ(points(record.timeline(), "gathered"), (Points{{0, 0}, {10, 100}, {50, 60}, {70, 0}}));
}

TEST(Memory, ThatIsUpdatedInPlaceHoldsOneValue) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::gradient, 8);
  record.begin(0);
  record.add(record.op().writes({a, 0, 8}), 10, 20);
  record.add(record.op().updates({a, 0, 8}), 30, 40);
  record.add(record.op().reads({a, 0, 8}).writes({a, 0, 4}), 50, 60);
  record.end(0);
  EXPECT_EQ(points(record.timeline(), "gradient"), (Points{{0, 0}, {10, 8}, {60, 0}}));
}

TEST(Memory, OfAValueFromBeforeTheStepIsLiveAcrossSteps) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::workspace, 8);
  for (std::int64_t step = 0; step < 2; ++step) {
    const Nanoseconds t = 1000 * step;
    record.begin(step);
    record.add(record.op().reads({a, 0, 8}), t + 100, t + 200);      // what the step before left
    record.add(record.op().writes({a, 0, 8}), t + 500, t + 600);     // what this one leaves
    record.end(t);
  }
  EXPECT_EQ(points(record.timeline(), "workspace"), (Points{{0, 8}, {200, 0}, {500, 8}, {1200, 0}, {1500, 8}}));
}

TEST(Memory, OfParametersAndOptimizerIsThereAllTheTime) {
  Record record;
  const BufferId parameter = record.buffer(MemoryKind::parameter, 30);
  record.buffer(MemoryKind::parameter, 12);
  record.buffer(MemoryKind::optimizer, 90);
  record.begin(0);
  record.add(record.op().writes({parameter, 0, 30}), 10, 20);
  record.end(5);
  const Timeline timeline = record.timeline();
  EXPECT_EQ(points(timeline, "parameter"), (Points{{5, 42}}));
  EXPECT_EQ(points(timeline, "optimizer"), (Points{{5, 90}}));
  EXPECT_TRUE(points(timeline, "activation").empty()) << "no buffer of that kind, no counter";
}

TEST(Memory, LeavesOutOpsThatNeverRan) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::activation, 8);
  record.begin(0);
  record.add(record.op().writes({a, 0, 8}), 10, 20);
  record.add(record.op().reads({a, 0, 8}), 0, -1);
  record.end(0);
  EXPECT_EQ(points(record.timeline(), "activation"), (Points{{0, 0}, {10, 8}, {20, 0}}));
}

TEST(Memory, StandsInTheRankFileAndIsReadBack) {
  Record record;
  const BufferId a = record.buffer(MemoryKind::activation, 100);
  record.begin(0);
  record.add(record.op().writes({a, 0, 100}), 10, 20);
  record.add(record.op().reads({a, 0, 100}), 30, 41);
  record.end(0);
  const Timeline timeline = record.timeline();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(timeline, 0, folder / "rank0.json"));
  EXPECT_EQ(violations(folder / "rank0.json"), std::vector<std::string>{});
  EXPECT_NE(content_of(folder / "rank0.json").find("{\"ph\":\"C\",\"name\":\"live bytes: activation\",\"pid\":0,\"tid\":1,\"ts\":0.041,"
                                                   "\"args\":{\"value\":0}}"), std::string::npos);
  const auto again = read(folder / "rank0.json");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(points(again.value(), "activation"), points(timeline, "activation"));
}

}  // namespace
}  // namespace shardbook::timeline
