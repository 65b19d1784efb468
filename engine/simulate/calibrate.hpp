// simulate/calibrate: which measurements make a profile, and how?
//
// plan() lists the micro-benchmarks; whoever has the devices runs them and fills in the times; fit() makes
// the Profile. None of them is a training step: a model that is fitted to the runs it is judged on proves nothing.
//
// How each is to be timed (the rule of profile.hpp): issue it often enough that the device, not the host, is
// the limit, and divide the device's time by the count. For launch costs the other way round: the host's time.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/program/program.hpp"
#include "engine/simulate/profile.hpp"

namespace shardbook::simulate {

struct GemmBenchmark {
  program::GemmSize size;
  base::DType dtype = base::DType::bf16;
  double ns = 0;
  double beside_ns = 0;   // while all-gathers over all GPUs are under way; 0: not measured
  double cycles = 0;      // of the GPU's clock in `ns`, as it was then; 0: not known
  double flops() const { return 2.0 * size.m * size.n * size.k * size.batch; }
  double bytes() const { return 2.0 * size.batch * (size.m * size.k + size.k * size.n + size.m * size.n); }   // in bf16, each number once
};

// A kernel other than a matmul. `kernel` is an op's name, or the name of a kind of op.
struct KernelBenchmark {
  std::string kernel;
  base::Bytes bytes = 0;  // read and written
  double ns = 0;
};

struct CollectiveBenchmark {
  program::OpKind kind = program::OpKind::all_reduce;
  int ranks = 2;
  base::Bytes bytes = 0;  // of the whole buffer
  double ns = 0;          // of the slowest rank
};

// `repeat` computations on one stream and `collectives` collectives on another, started together. The times are
// from the common start to the end of the last of each, alone and together.
struct OverlapBenchmark {
  enum class Compute : std::uint8_t { gemm, pointwise };
  Compute compute = Compute::gemm;
  program::GemmSize size;         // of a gemm (bf16)
  base::Bytes compute_bytes = 0;  // of a pointwise kernel
  int repeat = 4;
  program::OpKind kind = program::OpKind::all_gather;
  int ranks = 2;
  base::Bytes bytes = 0;
  int collectives = 2;
  double compute_alone_ns = 0, collectives_alone_ns = 0;
  double compute_together_ns = 0, collectives_together_ns = 0;
};

// A matmul that fills the device begins, and then a collective that is much shorter. Times from the matmul's start.
struct RoomBenchmark {
  std::string matmul;       // its op's name; libraries have other kernels for each
  program::GemmSize size;   // bf16
  program::OpKind kind = program::OpKind::reduce_scatter;
  int ranks = 2;
  base::Bytes bytes = 0;
  double matmul_ns = 0, collective_ns = 0;   // to the end of each
  // Were the collective's blocks let in beside the matmul's? Else they wait for its end.
  bool finds_room() const { return collective_ns < matmul_ns; }
};

// A mix of large matmuls with something that draws less, again and again until the clock has settled. From matmuls without a
// pause on to those that rest most, it says what the limit on power leaves (clock.hpp).
struct PowerBenchmark {
  program::GemmSize size;      // bf16
  int matmuls = 8;             // of a mix, one after the other; after them:
  int collectives = 0;         // all-gathers over all GPUs
  int kernels = 0;             // pointwise ones
  base::Bytes bytes = 0;       // of each of these
  double rest_ns = 0;          // with the device idle
  // For so long mixes are not looked at, and so long they are: the clock goes up and down by a twentieth, some times a second.
  double settled_after_ns = 1e9, measured_ns = 2e9;
  // Of a mix once the clock has settled: how long it was, all matmuls, all collectives, all kernels.
  double window_ns = 0, matmuls_ns = 0, collectives_ns = 0, kernels_ns = 0;
  double clock = 0;   // cycles a nanosecond at its end; 0: not known
  double matmul_ns() const { return matmuls_ns / matmuls; }
};

// Everything that a profile is fitted from.
struct Benchmarks {
  std::string name;
  std::string made_at;
  std::vector<std::string> origin;
  HostCosts host;           // measured through the same calls that training makes
  DeviceCosts device;       // memory_bytes_per_ns is fitted, not measured
  Network network;
  std::vector<GemmBenchmark> gemms;
  std::vector<KernelBenchmark> kernels;
  double among_others_ns = 0;   // by how much a matmul or a kernel takes longer among ones of other kinds than in its own train, as those times are
  std::vector<CollectiveBenchmark> collectives;
  std::vector<OverlapBenchmark> overlaps;
  std::vector<RoomBenchmark> rooms;
  std::vector<PowerBenchmark> power;   // none: power is never short
  double idle_power = 0;    // the part of its limit that an idle device draws, not measured here
};

// What to measure on a node of so many GPUs: sizes filled in, times zero. `kernels` holds the kinds only;
// callers add the kernels that they know by name.
Benchmarks plan(int gpus);

// Errors: a table without measurements, a time that is not positive.
base::Result<Profile> fit(const Benchmarks& measured);

// What to measure where memory is windows to NCCL: the same collectives, how reduce-scatters and what computes slow each other, and which
// sums find room beside a matmul. (A gather is copy engines' there, and needs none.) And what comes of it. Errors: as of fit().
Benchmarks plan_windows(int gpus);
base::Result<Windows> fit_windows(const Benchmarks& measured);
// Those benchmarks of room in half a sentence, for a profile's origin: "over 2 ranks linear_forward 372, all_reduce 516, reduce_scatter 445; ..." (us).
std::string told(const std::vector<RoomBenchmark>& rooms);

}  // namespace shardbook::simulate
