// simulate/clock: how fast do matmuls run where power is short?
//
// A GPU of a node draws all the power that it may while it multiplies: an H200 at its limit of 700 W lowers its clock from
// 1980 to about 1600 MHz. So a step that waits less for the network computes more slowly: gpt-1.3b over two H200s runs at
// 1765 MHz without prefetch and at 1635 with it, and its matmuls take 4 to 5 % longer. Who removes a wait gains less than it.
//
// The model: what a device draws, as part of its limit, is `idle` while nothing runs, `communication` while a collective's
// kernel moves data, midway between both while it polls for a rank that is late, `memory` while a kernel runs that is no
// matmul, and speed^exponent times what a matmul draws at speed 1: `idle`, and `multiplying` in the proportion of its rate, and `moving`
// in that of its bytes. The clock is the fastest with which the mean stays at the limit: of a
// step's forward, of its backward, and of the rest, each by itself (clocked.hpp), since each lasts for milliseconds.
// Speed 1 is that of large matmuls without a pause. Other kernels, which wait for memory as well, feel a part of it: their
// time goes with the speed to the power of minus others_feel. Of a modelled step a collective counts for as long as its bytes take
// alone (clocked.hpp).
//
// Sources: others_feel is what kernels beside nothing did where matmuls beside nothing took 2 to 9 % longer, in twelve pairs of
// runs (experiments/contention). That the limit holds for a mean over milliseconds, and that its reason is told as "SW power cap": NVIDIA, NVML API
// reference, nvmlClocksEventReasons. Clocks and power above: nvidia-smi beside the runs of experiments/contention.
#pragma once

#include "engine/base/types.hpp"

namespace shardbook::simulate {

// Parts of the power limit; see above. An exponent of 0: power is never short.
struct PowerCosts {
  double exponent = 0;
  double idle = 0;
  double communication = 0;
  double memory = 0;
  double fastest = 1;   // the speed where power is to spare
  double multiplying = 0;   // what a matmul draws beyond `idle` at the peak of its type; 0: all the rest, 1 - idle
  double moving = 0;        // and at the device's bandwidth
  double train = 0;     // at which the matmul of the mixes that measure power ran in a train of it alone, as the profile's matmuls were measured; 0: not known
  bool says_its_speed() const { return exponent > 0 && train > 0; }
  bool operator==(const PowerCosts&) const = default;
};

// What one device did in a part of a step. ns.
struct Load {
  double window_ns = 0;         // how long it was
  double matmul_ns = 0;         // matmuls, alone
  double matmul_power_ns = 0;   // the same, each times the part of the limit that it draws at speed 1
  double memory_ns = 0;         // kernels that are no matmuls, alone
  double communication_ns = 0;  // collectives, for as long as they draw (Drawn, in clocked.hpp): waits for other ranks count
  double waiting_ns = 0;        // of those, the waits
};

inline constexpr double others_feel = 0.35;

// What a matmul draws that multiplies at so much of the peak of its type and moves so much of what memory can, and the speed at which a
// train of what draws so much runs, which a settled clock has.
double drawn_by_matmul(const PowerCosts& power, double of_peak, double of_bandwidth);
double speed_in_train(const PowerCosts& power, double drawn);

// The speed at which the device ran, where matmuls took as long as `load` has them; at most power.fastest.
double speed_of(const PowerCosts& power, const Load& load);

// The speed at which it would run a part of that window, where matmuls take as long as `load` has them at `speed`.
double speed_at_limit(const PowerCosts& power, const Load& load, double speed);

}  // namespace shardbook::simulate
