// scene/idle_causes: why did this device stand still?
//
// A piece of idle time ends with the span that starts first of all streams; what held that span back is the cause, by
// the rule of metrics/idle. Sums by cause of any window cost two look-ups.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/metrics/idle.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::scene {

class Scene;

struct IdlePiece {
  base::Interval time;
  metrics::GapReason reason;
  timeline::SpanRef next;            // the span that ends it; not valid() where it is the CPU's work that does
};

class IdleCauses {
 public:
  static constexpr int causes = 5;   // of metrics::IdleCause
  using Sums = std::array<base::Nanoseconds, causes>;

  IdleCauses(const timeline::Timeline& timeline, const timeline::Links& links, base::Rank rank);
  // Ascending, none touching.
  const std::vector<IdlePiece>& pieces() const { return pieces_; }
  // The piece that a time lies in, or null: before the rank's first span and after its last one there is none, but
  // where the CPU still works on its own.
  const IdlePiece* at(base::Nanoseconds time) const;
  // Idle time within the window by cause.
  Sums within(metrics::Window window) const;

  std::size_t memory() const { return pieces_.capacity() * sizeof(IdlePiece) + sums_.capacity() * sizeof(Sums); }

 private:
  // Behind the last of the device, until the CPU's own work is done.
  void add_cpu_behind(const timeline::Timeline& timeline, base::Rank rank, base::Nanoseconds busy_until);
  Sums before(base::Nanoseconds time) const;

  std::vector<IdlePiece> pieces_;
  std::vector<Sums> sums_;           // of all pieces before each one
};

// "the host was late: cudaLaunchKernel of qkv · L3 began 12 us after the device had run dry".
std::string words_of(const Scene& scene, const IdlePiece& piece);
// "host 3.1 ms, wait 0.2 ms": the largest first, what is less than a hundredth of all left out. "" if there is none.
std::string words_of(const IdleCauses::Sums& sums);

}  // namespace shardbook::scene
