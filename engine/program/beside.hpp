// program/beside: which ops run beside a collective, and how much of the device must they leave to it?
//
// A collective holds multiprocessors. A matmul that has them all keeps a collective waiting that comes a moment later: the
// sum of an input gradient, behind the weight gradient that was issued after it. A matmul that is planned for fewer
// (kernels/cuda/gemm.cu) lets it in at once. To a collective that is under way already it should leave nothing: what that one
// holds lies scattered, blocks that come in clusters find no neighbours there, and the matmul is the slower for it (measured:
// experiments/contention, "Leaving room"). So a matmul leaves room to a collective that *starts* beside it: issued before it,
// not awaited by its stream, on a stream that was idle, and no other op of the matmul's stream between. Whether a stream is
// idle is a matter of time, so a rule has a clock: how long each op takes alone. All of it is the same in each step and on
// each rank, and so are the bits.
//
// A sum with a head start (tensor_parallel/regions.hpp) looks as if it started beside the matmul, too, and is left room: two ways
// to the same end, of which one is enough.
//
// Here are commands alone, so the same class follows a step as it is issued (device/device.cpp) and one that was recorded.
//
// Sources: pytorch/pytorch @0040fe0d, aten/src/ATen/cuda/CUDABlas.cpp, _SMCarveout_EXPERIMENTAL: one number for all matmuls,
// which whoever runs them sets and resets; issue pytorch/pytorch#143988 tells why: beside NCCL, which holds a tenth of an
// H100, matmuls took twice as long. NVIDIA/TransformerEngine: NVTE_EXT_MARGIN_SM, one number for the whole run, and
// num_comm_sm for the one collective that a matmul is cut up with.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::program {

class Beside {
 public:
  struct Rule {
    int multiprocessors = 0;                    // that each collective beside it is left by a matmul; 0: none
    std::function<double(const OpDesc&)> ns;    // how long an op takes alone
  };
  Beside();
  explicit Beside(Rule rule);
  bool on() const { return rule_.multiprocessors > 0; }

  // A step follows its commands, in the order in which they are issued. REQUIRES of all: on().
  void begin_step();
  // How many multiprocessors the op leaves: so many to each stream whose collective starts beside it, and lasts for at least
  // half of it.
  int op(StreamId stream, const OpDesc& desc);
  void record(StreamId stream, EventId event);
  void wait(StreamId stream, EventId event);

 private:
  using ByStream = std::vector<double>;   // of a stream's collectives so many ns
  double ns_of(const OpDesc& desc);
  double left_of(StreamId collectives, StreamId seen_from) const;
  void pass(double ns, StreamId but);
  ByStream& known_to(StreamId stream);

  Rule rule_;
  ByStream issued_, over_;                       // in all; and by the clock
  ByStream begun_;                               // by the clock, when the last one began that found its stream idle
  std::vector<ByStream> known_;                  // by stream: what it has awaited
  enum class Does : std::uint8_t { nothing, computes, communicates };
  std::vector<Does> does_;                       // by stream, so far: where computing is done time goes by
  std::vector<ByStream> at_event_;               // ... and what it knew, and had issued itself, when the event was recorded
  std::map<std::array<std::int64_t, 9>, double> times_;
};

// The same of a step that was recorded: by op.
std::vector<int> left_beside(const Program& program, Beside::Rule rule);

}  // namespace shardbook::program
