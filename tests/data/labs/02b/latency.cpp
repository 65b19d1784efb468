// fails with: not latency: with collectives that cost nothing your step still grows by 212 µs: the host issues for 1.32 ms of 1.32 ms
#include "labs/02_tensor_parallel/lab.hpp"

namespace shardbook::lab02 {

Why why() {
  return {.step_tp2_ms = 1.319, .step_tp4_ms = 1.319, .step_tp2_free_network_ms = 1.319, .host_us_per_sum = 10.1, .cause = Cause::latency};
}

}  // namespace shardbook::lab02
