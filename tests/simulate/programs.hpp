// Small programs for the resolver's tests, written through the recorder as an engine writes them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/program/recorder.hpp"
#include "engine/simulate/replay.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

using program::EventId;
using program::OpDesc;
using program::OpKind;
using program::Recorder;
using program::StreamId;
using program::WaitReason;

// A rank that issues one step, with the costs that a test gives to each op.
class TestRank {
 public:
  explicit TestRank(base::Rank rank, int streams = 2, int events = 8) : recorder_(std::make_unique<Recorder>(rank)) {
    for (int at = 0; at < streams; ++at) recorder_->add_stream(base::text("stream ", at));
    for (int at = 0; at < events; ++at) recorder_->add_event(base::text("event ", at));
    recorder_->begin_step(0);
    costs_ = std::make_shared<Costs>();
  }

  Recorder& recorder() { return *recorder_; }
  program::GroupId group(const std::string& axis, const std::vector<base::Rank>& ranks) {
    return recorder_->add_group({axis, ranks});
  }

  // Each command with its host cost; an op also with its duration alone.
  void op(StreamId stream, base::Nanoseconds ns, base::Nanoseconds issue_ns = 0, OpKind kind = OpKind::gemm, float shared = 1,
          bool fills = false) {
    recorder_->op(stream, OpDesc("op", kind, base::DType::bf16), {"test.cpp", ++line_});
    costs_->op_ns.push_back(ns);
    costs_->shared_part.push_back(shared);
    costs_->fills.push_back(fills);
    costs_->issue_ns.push_back(issue_ns);
  }
  // What this step's waits take, whatever the machine's do.
  void events_take(base::Nanoseconds ns) { costs_->event_latency_ns = ns; }
  // One that draws all the power that it may: of a size, and with flops to spare.
  void matmul(StreamId stream, base::Nanoseconds ns) {
    recorder_->op(stream, OpDesc("matmul", OpKind::gemm, base::DType::bf16).size({8192, 8192, 8192, 1}).flops(1'000'000'000'000'000), {"test.cpp", ++line_});
    costs_->op_ns.push_back(ns);
    costs_->shared_part.push_back(1);
    costs_->fills.push_back(false);
    costs_->issue_ns.push_back(0);
  }
  // The CPU's own work.
  void of_cpu(StreamId stream, base::Nanoseconds ns) { op(stream, ns, 0, OpKind::host); }
  // A copy between host memory and the device.
  void crossing(StreamId stream, base::Nanoseconds ns) {
    const program::BufferId here = recorder_->add_buffer({"here", program::MemoryKind::optimizer, 64}), there = recorder_->add_buffer({"there", program::MemoryKind::optimizer, 64});
    recorder_->op(stream, OpDesc("to_device", OpKind::copy, base::DType::f32).reads({there, 0, 64}, 0).writes({here, 0, 64}), {"test.cpp", ++line_});
    costs_->op_ns.push_back(ns);
    costs_->shared_part.push_back(1);
    costs_->fills.push_back(false);
    costs_->issue_ns.push_back(0);
  }
  void collective(StreamId stream, program::GroupId group, base::Nanoseconds ns, base::Nanoseconds issue_ns = 0,
                  OpKind kind = OpKind::all_gather, base::Bytes bytes = 1024, base::Rank peer = -1) {
    OpDesc desc("collective", kind, base::DType::bf16);
    desc.collective_of({group, recorder_->next_sequence(group), bytes, peer});
    recorder_->op(stream, desc, {"test.cpp", ++line_});
    costs_->op_ns.push_back(ns);
    costs_->shared_part.push_back(1);
    costs_->fills.push_back(false);
    costs_->issue_ns.push_back(issue_ns);
  }
  void record(StreamId stream, EventId event, base::Nanoseconds issue_ns = 0) {
    recorder_->record_event(stream, event, {"test.cpp", ++line_});
    costs_->issue_ns.push_back(issue_ns);
  }
  void wait(StreamId stream, EventId event, WaitReason reason = WaitReason::data, base::Nanoseconds issue_ns = 0) {
    recorder_->wait_event(stream, event, reason, {"test.cpp", ++line_});
    costs_->issue_ns.push_back(issue_ns);
  }
  void host_wait(EventId event, base::Nanoseconds issue_ns = 0) {
    recorder_->host_wait(event, {"test.cpp", ++line_});
    costs_->issue_ns.push_back(issue_ns);
  }
  void read_back(StreamId stream, base::Nanoseconds issue_ns = 0) {
    recorder_->read_back(stream, {"test.cpp", ++line_});
    costs_->issue_ns.push_back(issue_ns);
  }
  void step_cost(base::Nanoseconds ns) { costs_->step_ns = ns; }

  // Ends the step (the first call) and gives it `steps` times.
  RankSteps steps(int steps = 1) {
    if (recorder_->in_step()) recorder_->end_step();
    const Step step{recorder_->programs().front().get(), costs_};
    return {recorder_->rank(), &recorder_->catalogue(), std::vector<Step>(static_cast<std::size_t>(steps), step), 0};
  }
  const program::Program& program() {
    if (recorder_->in_step()) recorder_->end_step();
    return *recorder_->programs().front();
  }

 private:
  std::unique_ptr<Recorder> recorder_;
  std::shared_ptr<Costs> costs_;
  std::uint32_t line_ = 0;
};

// Random ranks that can always end: waits are for events already recorded, and all ranks issue the same
// collectives in the same order, though at other places between their own ops.
struct RandomRanks {
  explicit RandomRanks(unsigned seed, int ranks = 4, int rounds = 30) {
    std::mt19937 draw(seed);
    const auto below = [&draw](int bound) { return static_cast<int>(draw() % static_cast<unsigned>(bound)); };
    constexpr int streams = 3, events = 5;
    for (int rank = 0; rank < ranks; ++rank) all.emplace_back(rank, streams, events);
    // Rows and columns of a mesh of two columns.
    std::vector<std::vector<base::Rank>> rows(static_cast<std::size_t>(ranks / 2)), columns(2);
    for (int rank = 0; rank < ranks; ++rank) {
      rows[static_cast<std::size_t>(rank / 2)].push_back(rank);
      columns[static_cast<std::size_t>(rank % 2)].push_back(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      all[rank].group("row", rows[rank / 2]);
      all[rank].group("column", columns[rank % 2]);
      all[rank].step_cost(below(50));
    }
    const StreamId stream_of_axis[] = {1, 2};
    const OpKind kinds[] = {OpKind::gemm, OpKind::pointwise, OpKind::copy};
    for (int round = 0; round < rounds; ++round) {
      const int axis = below(2), bytes = 1 + below(1000);
      for (TestRank& rank : all) {
        for (int count = below(6); count > 0; --count) {
          const StreamId stream = static_cast<StreamId>(below(streams));
          const EventId event = static_cast<EventId>(below(events));
          switch (below(6)) {
            case 0: rank.record(stream, event, below(5)); break;
            case 1: rank.wait(stream, event, static_cast<WaitReason>(below(3)), below(5)); break;
            case 2:
              if (below(4) == 0) rank.host_wait(event, below(5));
              if (below(8) == 0) rank.read_back(stream, below(5));
              break;
            default: {
              const OpKind kind = kinds[below(3)];
              const bool fills = kind == OpKind::gemm && below(2) == 0;
              rank.op(stream, below(1000), below(60), kind, static_cast<float>(below(5)) / 4, fills);
              break;
            }
          }
        }
        rank.collective(stream_of_axis[axis], static_cast<program::GroupId>(axis), 100 + bytes, below(60),
                        OpKind::all_reduce, bytes);
      }
    }
  }

  std::vector<RankSteps> steps(int count) {
    std::vector<RankSteps> given;
    for (TestRank& rank : all) given.push_back(rank.steps(count));
    return given;
  }

  std::vector<TestRank> all;
};

// The programs must resolve.
inline Resolved resolved(const std::vector<RankSteps>& ranks, const Machine& machine = {}, const ResolveOptions& options = {}) {
  base::Result<Resolved> result = resolve(ranks, machine, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error());
  return std::move(result).value();
}

// `times` must outlive what is returned.
inline std::vector<MeasuredRank> as_measured(const std::vector<RankSteps>& ranks, const Resolved& times) {
  std::vector<MeasuredRank> measured;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    measured.push_back({ranks[at].rank, ranks[at].catalogue, ranks[at].steps.back().program, &times.ranks[at].steps.back()});
  }
  return measured;
}

inline void expect_span(const program::TimeSpan& span, base::Nanoseconds start, base::Nanoseconds end) {
  EXPECT_EQ(span.start, start);
  EXPECT_EQ(span.end, end);
}

}  // namespace shardbook::simulate
