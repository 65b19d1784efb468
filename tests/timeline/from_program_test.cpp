// A recorded step of two streams becomes spans, edges and lines.
#include "engine/timeline/from_program.hpp"

#include <fstream>
#include <sstream>

#include "engine/program/recorder.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/rules.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

using program::OpDesc;
using program::OpKind;

// compute: gemm_a, then gemm_b that awaits the gather; fsdp: gather, then one that the limiter holds
// until gemm_b. Times are set by hand.
struct Recorded {
  explicit Recorded(Rank rank) : recorder(rank) {
    const auto compute = recorder.add_stream("compute");
    const auto fsdp = recorder.add_stream("fsdp");
    const auto gathered = recorder.add_event("gathered");
    const auto used = recorder.add_event("used");
    const auto group = recorder.add_group({"dp_shard", {0, 1}});
    for (std::int64_t number = 5; number < 7; ++number) {
      recorder.begin_step(number);
      program::Scope scope(recorder, program::Phase::forward, 2, 0);
      recorder.op(compute, OpDesc("gemm", OpKind::gemm, base::DType::bf16).size({4, 4, 4, 1}), {"engine/a.cpp", 10});
      const auto gather = [&](std::uint32_t line) {
        recorder.op(fsdp, OpDesc("all_gather", OpKind::all_gather, base::DType::bf16)
                              .collective_of({group, recorder.next_sequence(group), 4096}), {"engine/a.cpp", line});
      };
      gather(20);
      recorder.record_event(fsdp, gathered, {"engine/a.cpp", 21});
      recorder.wait_event(compute, gathered, program::WaitReason::data, {"engine/a.cpp", 30});
      recorder.op(compute, OpDesc("gemm", OpKind::gemm, base::DType::bf16).size({4, 4, 4, 1}), {"engine/a.cpp", 31});
      recorder.record_event(compute, used, {"engine/a.cpp", 32});
      recorder.wait_event(fsdp, used, program::WaitReason::limiter, {"engine/a.cpp", 33});
      gather(34);
      recorder.host_wait(used, {"engine/a.cpp", 35});
      program::StepTimes& step = recorder.end_step();
      const Nanoseconds t = 10'000 * number;
      step.window = {t, t + 5000};
      for (std::size_t i = 0; i < step.issued.size(); ++i) {
        const auto at = static_cast<Nanoseconds>(i);
        step.issued[i] = {t + 100 * at, t + 100 * at + 50};
      }
      step.issued.back() = {t + 800, t + 2600};
      step.ran = {{t + 200, t + 1000}, {t + 300, t + 1500}, {t + 1500, t + 2500}, {t + 2500, t + 4000}};
      times.push_back(step);
    }
  }
  Timeline timeline(const std::vector<std::vector<Nanoseconds>>* waits = nullptr) const {
    TimelineBuilder builder;
    Provenance provenance;
    provenance.rank = recorder.rank();
    provenance.world_size = 2;
    provenance.clock = Clock::measured;
    std::vector<ProgramStep> steps;
    for (std::size_t i = 0; i < times.size(); ++i) {
      steps.push_back({recorder.programs()[times[i].program].get(), &times[i], waits != nullptr ? &(*waits)[i] : nullptr});
    }
    add_program(builder, provenance, recorder.catalogue(), steps);
    return builder.finish();
  }
  program::Recorder recorder;
  std::vector<program::StepTimes> times;
};

SpanRef device_span(const Timeline& timeline, Nanoseconds start) {
  SpanRef found;
  for_each_device_span(timeline, 0, [&](SpanRef span) {
    if (timeline.start(span) == start) found = span;
  });
  EXPECT_TRUE(found.valid()) << start;
  return found;
}

// The CPU's own work stands on its stream, is no work of the device, and comes back from a file as what it is.
TEST(FromProgram, ShowsTheCpusWorkOnItsStreamAndCountsItToNoDevice) {
  program::Recorder recorder(0);
  const auto compute = recorder.add_stream("compute"), cpu = recorder.add_stream("cpu");
  const auto there = recorder.add_event("there"), updated = recorder.add_event("updated");
  recorder.begin_step(0);
  recorder.op(compute, OpDesc("clip_factor", OpKind::pointwise, base::DType::f32), {"engine/a.cpp", 1});
  recorder.record_event(compute, there, {"engine/a.cpp", 2});
  recorder.wait_event(cpu, there, program::WaitReason::data, {"engine/a.cpp", 3});
  recorder.op(cpu, OpDesc("adam_w_on_host", OpKind::host, base::DType::bf16), {"engine/a.cpp", 4});
  recorder.record_event(cpu, updated, {"engine/a.cpp", 5});
  recorder.wait_event(compute, updated, program::WaitReason::data, {"engine/a.cpp", 6});
  recorder.op(compute, OpDesc("gelu", OpKind::pointwise, base::DType::bf16), {"engine/a.cpp", 7});
  program::StepTimes step = recorder.end_step();
  step.window = {0, 50};
  for (std::size_t at = 0; at < step.issued.size(); ++at) step.issued[at] = {static_cast<Nanoseconds>(at), static_cast<Nanoseconds>(at) + 1};
  step.ran = {{10, 20}, {20, 900}, {900, 950}};
  TimelineBuilder builder;
  Provenance provenance;
  provenance.clock = Clock::measured;
  add_program(builder, provenance, recorder.catalogue(), {{recorder.programs()[0].get(), &step, nullptr}});
  const Timeline timeline = builder.finish();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(timeline, 0, folder / "rank0.json"));
  std::stringstream file;
  file << std::ifstream(folder / "rank0.json").rdbuf();
  EXPECT_NE(file.str().find("\"cat\":\"cpu_op\",\"name\":\"adam_w_on_host\""), std::string::npos) << file.str();
  EXPECT_NE(file.str().find("cudaLaunchHostFunc"), std::string::npos);
  const auto read_back = read(folder / "rank0.json");
  ASSERT_TRUE(read_back) << read_back.error();
  EXPECT_EQ(description(read_back.value()), description(timeline));
  int found = 0, of_device = 0;
  for_each_device_span(timeline, 0, [&](SpanRef) { ++of_device; });
  EXPECT_EQ(of_device, 2);
  for (const Track& track : timeline.tracks) {
    for (std::size_t i = 0; i < track.size(); ++i) {
      if (track.kind != TrackKind::stream || track.cls[i] != Class::host) continue;
      ++found;
      EXPECT_EQ(track.name, "stream " + std::to_string(stream_number(cpu)) + " cpu");
      EXPECT_EQ(track.end[i] - track.start[i], 880);
    }
  }
  EXPECT_EQ(found, 1);
}

TEST(FromProgram, PlacesOpsOnTheirStreamsWithTheirKey) {
  const Timeline timeline = Recorded(0).timeline();
  const SpanRef gemm = device_span(timeline, 51'500);
  const Detail& detail = timeline.detail(gemm);
  EXPECT_EQ(timeline.tracks[gemm.track].id, 7);
  EXPECT_EQ(timeline.end(gemm), 52'500);
  EXPECT_EQ(timeline.step(gemm), 5);
  EXPECT_EQ(timeline.strings[detail.op], "gemm");
  EXPECT_EQ(timeline.strings[detail.phase], "forward");
  EXPECT_EQ(detail.layer, 2);
  EXPECT_EQ(detail.micro_batch, 0);
  EXPECT_EQ(detail.flops, 2 * 4 * 4 * 4);
  EXPECT_EQ(line_text(timeline, detail.source), "engine/a.cpp:31");
  // Details of both steps are stored once.
  EXPECT_EQ(timeline.tracks[gemm.track].detail[gemm.index], timeline.tracks[gemm.track].detail[gemm.index + 2]);
}

TEST(FromProgram, NamesTheLineThatRecordedTheAwaitedEvent) {
  const Timeline timeline = Recorded(0).timeline();
  EXPECT_EQ(line_text(timeline, timeline.detail(device_span(timeline, 51'500)).awaits), "engine/a.cpp:21");
  EXPECT_EQ(line_text(timeline, timeline.detail(device_span(timeline, 52'500)).awaits), "engine/a.cpp:32");
}

TEST(FromProgram, TurnsWaitsIntoEdgesOfTheirKind) {
  const Timeline timeline = Recorded(0).timeline();
  const SpanRef gather = device_span(timeline, 50'300), gemm = device_span(timeline, 51'500), held = device_span(timeline, 52'500);
  int event_edges = 0, limiter_edges = 0, host_edges = 0;
  for (const Edge& edge : timeline.edges) {
    if (edge.to == gemm && edge.kind == EdgeKind::event && edge.from == gather) ++event_edges;
    if (edge.to == held && edge.kind == EdgeKind::limiter && edge.from == gemm) ++limiter_edges;
    if (edge.kind == EdgeKind::host && edge.from == gemm) {
      ++host_edges;
      EXPECT_EQ(timeline.label(edge.to), "cudaEventSynchronize");
      EXPECT_EQ(timeline.cls(edge.to), Class::sync);
    }
  }
  EXPECT_EQ(event_edges, 1);
  EXPECT_EQ(limiter_edges, 1);
  EXPECT_EQ(host_edges, 1);
}

TEST(FromProgram, NumbersCollectivesThroughAllSteps) {
  const Timeline timeline = Recorded(0).timeline();
  std::vector<std::int64_t> numbers;
  for_each_device_span(timeline, 0, [&](SpanRef span) {
    if (!timeline.has_collective(span)) return;
    numbers.push_back(timeline.collective(span).seq);
    EXPECT_EQ(timeline.collective(span).bytes, 4096);
    EXPECT_EQ(timeline.strings[timeline.groups[timeline.collective(span).group].name], "dp_shard");
  });
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(FromProgram, MarksWhatTheHostLaunchedLate) {
  Recorded recorded(0);
  for (auto& step : recorded.times) step.issued[4].start = step.issued[4].end = step.window.start + 1501;
  const Timeline timeline = recorded.timeline();
  EXPECT_TRUE(timeline.launch_bound(device_span(timeline, 51'500)));
  EXPECT_FALSE(timeline.launch_bound(device_span(timeline, 52'500)));
}

TEST(FromProgram, GivesFilesThatKeepTheRulesAndReadBackTheSame) {
  const Timeline timeline = Recorded(0).timeline();
  const TemporaryFolder folder;
  ASSERT_TRUE(write_rank(timeline, 0, folder / "rank0.json"));
  for (const std::string& violation : violations(folder / "rank0.json")) ADD_FAILURE() << violation;
  const auto again = read(folder / "rank0.json");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(description(again.value()), description(timeline));
}

TEST(FromProgram, StepsFollowEachOtherOnTheDevice) {
  const Timeline timeline = Recorded(0).timeline();
  ASSERT_EQ(timeline.steps.size(), 2u);
  EXPECT_EQ(timeline.steps[0].start, 50'000);
  EXPECT_EQ(timeline.steps[0].end, 54'000);
  EXPECT_EQ(timeline.steps[1].start, 60'000);
  EXPECT_EQ(timeline.steps[1].host_end, 65'000);
}

}  // namespace
}  // namespace shardbook::timeline
