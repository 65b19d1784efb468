// simulate/cost: how long does one op take alone?
//
// A CostModel answers from a Profile:
//   matmul       a small model times a correction by the measured points near it. The model: tiles are dealt
//                to multiprocessors in waves, a wave takes as long as one tile at peak, the best of a few
//                tile shapes is taken, memory traffic is a lower bound, and a fixed time is added.
//   attention    fused: the measured curve of its name and of the width of its heads over flops; where there is none, an
//                assumed part of the matmuls' peak, bounded by memory.
//   kernel       the measured curve of its name, else of its kind, over the bytes it moves; of what it reads in host
//                memory the bus is a lower bound.
//   host         the CPU's work: the curve of its name, else "host", over bytes of host memory; where the profile has
//                neither, an assumed bandwidth.
//   collective   the measured curve of its kind and number of ranks; other numbers of ranks by the α–β
//                model from the nearest measured one; between nodes by the adapters' bandwidth.
// A profile's durations are periods; Costs hold spans: the gap between two ops of a stream is taken off.
//
// Beside a collective each matmul loses what measured ones of its size lost there (GemmPoint::beside_ns): one whose tiles
// just fill the device takes nearly twice as long, one of many tiles a third longer.
//
// A matmul that is dealt to all multiprocessors keeps them until it ends: its blocks stay, take tile after tile,
// and use up the shared memory. A collective that comes later waits for its end (see resolver.hpp), but where its blocks were measured
// to fit beside that matmul's (Windows::fit): then neither holds up the other.
//
// Source of the wave and tile model: NVIDIA, "Matrix Multiplication Background User's Guide" (tile and wave
// quantization). That matmuls stay on all 132 multiprocessors and collectives bring 24 blocks: the kernels' grids in
// profiler traces of PyTorch 2.11 on H200s (nvjet kernels of 132 blocks with 213 kB of shared memory, NCCL kernels
// of 24 blocks with 104 kB; a multiprocessor has 228 kB).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/program/program.hpp"
#include "engine/program/times.hpp"
#include "engine/simulate/profile.hpp"

namespace shardbook::simulate {

// How long a program's ops take alone, and what issuing its commands costs the host.
struct Costs {
  std::vector<base::Nanoseconds> op_ns;     // per op
  std::vector<float> shared_part;           // per op: the part of op_ns, 0 to 1, that contention stretches
  std::vector<float> beside;                // per op: how many times as long its shared part takes beside a collective; empty, 0: the machine's factor
  std::vector<float> power;                 // per op: the part of the power limit that it draws, a matmul at speed 1 (clock.hpp); empty: not known
  std::vector<bool> fills;                  // per op: leaves no room for a collective's blocks; empty: none does
  std::vector<std::uint32_t> lets_in;       // per op: collectives whose blocks fit beside its own (bit_of); empty: none do
  std::vector<bool> copied;                 // per op: a collective by copy engines, which takes no multiprocessors; empty: none is
  std::vector<base::Nanoseconds> drawn_ns;  // per op, of a model: for how long one of those draws power: as long as a kernel would take for its bytes
  std::vector<base::Nanoseconds> issue_ns;  // per command: the host's own time
  base::Nanoseconds step_ns = 0;            // the host's time beside its commands, before the first
  std::vector<base::Nanoseconds> fixed_ns;  // per op: of a collective, the part that no size changes (α); empty: not known
  base::Nanoseconds gap_ns = 0;             // with what op_ns is to be made a period again before it is scaled
  base::Nanoseconds event_latency_ns = -1;  // of the step's waits, where it is another than the machine's; −1: it is not
};

inline bool is_copied(const Costs& costs, program::OpIndex op) { return !costs.copied.empty() && costs.copied[op]; }
// A kind of op in a set of them.
constexpr std::uint32_t bit_of(program::OpKind kind) { return 1U << static_cast<unsigned>(kind); }

// Factors on durations and host costs, to ask what would be: a link twice as fast is communication = 0.5.
// What comes of it is a model, not a measurement, and must be labelled so. 0 means that it takes no time, except that
// an op keeps 1 ns, so that order stays visible.
struct Scale {
  double compute = 1;
  double communication = 1;
  double memory = 1;
  double host = 1;
  double latency = 1;     // α: what the smallest collective of its kind and group takes, of every collective
  double bandwidth = 1;   // β: what a collective takes beyond that
  double launch = 1;      // from the host's call, or an awaited event, to the start on the device
  double contention = 1;  // by how much running together slows: 0, not at all
  bool operator==(const Scale&) const = default;
};

// Costs under a scale; a scale of ones changes nothing.
Costs scaled(const Costs& costs, const program::Program& program, const Scale& scale);

// The small model of a matmul, before its correction by measured ones. ns.
double gemm_model_ns(program::GemmSize size, base::DType dtype, const GemmTable& table, const DeviceCosts& device);
// How many blocks it has by that model; those of one wave hold their multiprocessors until the matmul ends.
double gemm_model_blocks(program::GemmSize size, const GemmTable& table, const DeviceCosts& device);

// Does it carry a buffer between the device and host memory? A copy engine does that: it takes nothing from kernels and
// collectives beside it. (Tokens and scalars, whose host side is in no record, are small and count as kernels do.)
bool crosses_to_host(const program::OpDesc& desc);
// Does it leave the device's multiprocessors and memory alone: a copy engine's work, or the CPU's?
inline bool leaves_device_alone(const program::OpDesc& desc) { return crosses_to_host(desc) || desc.kind == program::OpKind::host; }

// What draws power as a matmul does: less in the proportion of its rate.
inline bool is_matmul(const program::OpDesc& desc) { return desc.kind == program::OpKind::gemm || desc.kind == program::OpKind::attention; }
// How long a kernel that is measured at speed 1 takes at another (clock.hpp), as a factor.
double slowed_by(double speed, const program::OpDesc& desc);

// What a lab's machine has otherwise than the profile's. ns.
struct Conditions {
  bool ideal_network = false;     // collectives take no time, and cost the host no more than recording an event
  double call_ns = 0;             // each op costs the host so much more
  base::Rank slow_rank = -1;      // on this rank
  double kernel_ns = 0;           // each kernel that computes takes so much longer: another kernel behind it, which the host launches, too
  bool as_graph = false;          // one call issues the step, unless it is traced
  bool windows = false;           // memory is windows to NCCL (comm.hpp), and copy engines gather
  bool operator==(const Conditions&) const = default;
};

// Why a profile does not say how long ops take under such conditions, in one sentence; empty where it does.
std::string problem_of(const Profile& profile, const Conditions& conditions);

// What recording an event and launching an own kernel cost the host, and from the end of a kernel to the start of the next.
struct SmallCosts {
  double record_ns = 0, launch_ns = 0, gap_ns = 0;
};
// Costs of another machine under them, as `rank` runs the program. Where kernels are to be faster (kernel_ns below 0), the kernel
// behind each is taken away.
void put_under(const Conditions& conditions, Costs& costs, const program::Program& program, base::Rank rank, const SmallCosts& small);

// Costs of the same step, launched by one call (host.graph): each op's period on the device is shorter, and what it awaits is an edge.
void issue_as_graph(Costs& costs, const program::Program& program, const HostCosts& host, const DeviceCosts& device);

class CostModel {
 public:
  explicit CostModel(Profile profile, Conditions conditions = {});
  const Profile& profile() const { return profile_; }
  const Conditions& conditions() const { return conditions_; }

  // ns of one op alone. `catalogue` names the groups of collectives.
  double op_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const;
  double gemm_ns(program::GemmSize size, base::DType dtype) const;
  // How many times as long it takes beside a collective: as measured matmuls near by; 0 where there is none.
  double gemm_beside(program::GemmSize size, base::DType dtype) const;
  // The part of the power limit that it draws: clock.hpp.
  double power(const program::OpDesc& desc, double ns) const;
  double kernel_ns(const program::OpDesc& desc) const;
  double attention_ns(const program::OpDesc& desc) const;
  double host_work_ns(const program::OpDesc& desc) const;
  double collective_ns(program::OpKind kind, base::Bytes bytes, const std::vector<base::Rank>& ranks) const;
  // The part of a collective or matmul that does not depend on size.
  double fixed_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const;
  // Does it hold so many multiprocessors, until it ends, that a collective finds no room beside it?
  bool fills(const program::OpDesc& desc) const;
  double issue_ns(const program::Command& command, const program::Program& program) const;

  // Of all of a program, as `rank` runs it. `traced`: with what timing each op costs the host.
  std::shared_ptr<const Costs> costs(const program::Program& program, const program::Catalogue& catalogue,
                                     const Scale& scale = {}, bool traced = false, base::Rank rank = -1) const;
  // Costs::power of all of a program.
  std::vector<float> powers(const program::Program& program, const program::Catalogue& catalogue) const;
  // Is it known at which speed the profile's matmuls ran (PowerCosts::train)? Only then do modelled steps have a clock of their own.
  bool has_clock() const { return profile_.power.says_its_speed(); }
  // Costs, with what each op draws, and with kernels as long as they are at speed 1 (clocked.hpp); without a clock: costs().
  std::shared_ptr<const Costs> costs_at_speed_one(const program::Program& program, const program::Catalogue& catalogue,
                                                  const Scale& scale = {}, bool traced = false, base::Rank rank = -1) const;

 private:
  std::shared_ptr<const Costs> made(const program::Program& program, const program::Catalogue& catalogue, const Scale& scale, bool traced,
                                    base::Rank rank, bool at_speed_one) const;
  void put_at_speed_one(Costs& costs, const program::Program& program, const program::Catalogue& catalogue) const;
  const Curve* attention_curve(const program::OpDesc& desc) const;
  double within_node_ns(program::OpKind kind, base::Bytes bytes, int ranks, bool windows) const;
  double collective_ns(program::OpKind kind, base::Bytes bytes, const std::vector<base::Rank>& ranks, bool windows) const;
  const std::pair<const base::DType, GemmTable>& gemm_table(base::DType dtype) const;
  const Curve& kernel_curve(const program::OpDesc& desc) const;
  double bus_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const;

  // A matmul's place among others: the logarithms of its sides.
  using Sides = std::array<double, 4>;
  static Sides sides_of(program::GemmSize size);
  // The logarithm of measured over modelled time at a measured matmul.
  struct Correction {
    Sides sides{};
    double log_factor = 0;
    double log_beside = 0;   // of its time beside a collective over that alone; 0: not measured
  };
  double near(program::GemmSize size, const std::vector<Correction>& corrections, double Correction::*value, bool measured_beside) const;

  // What is said of the matmuls of one size. A step has many matmuls and few sizes, so each is asked for once.
  struct OfSize {
    double ns = 0, beside = 0, blocks = 0;
  };
  struct Sizes {
    std::mutex mutex;
    std::map<std::array<std::int64_t, 5>, OfSize> known;   // by dtype and sides
  };
  const OfSize& of_size(program::GemmSize size, base::DType dtype) const;

  Profile profile_;
  Conditions conditions_;
  std::map<base::DType, std::vector<Correction>> corrections_;
  std::shared_ptr<Sizes> sizes_ = std::make_shared<Sizes>();   // threads may ask at once; copies have the same profile, so they share it
};

// Costs as they were measured on this CPU (the wall clock): durations of `ran`, host time from the entry of one
// call to the entry of the next, of host waits only what follows them. No contention.
// REQUIRES: `ran` and `issued` are known.
std::shared_ptr<const Costs> measured_costs(const program::Program& program, const program::StepTimes& times);

}  // namespace shardbook::simulate
