// launch/not_finite: which number was the first that is infinite or none, and whose was it?
//
// Idea: loss and gradient norm are sums over all ranks and are looked at after each step, for nothing: what is not finite
// anywhere soon is there. But they tell neither op nor rank. With --check-finite the device looks at whatever each op
// writes (device/finite.hpp); ranks issue the same ops in the same order, so the rank whose op comes first is the one
// that the others have it from.
#pragma once

#include <string>

#include "engine/device/device.hpp"
#include "engine/device/finite.hpp"
#include "engine/train/trainer.hpp"
#include "engine/world/world.hpp"

namespace shardbook::launch {

class NotFinite {
 public:
  explicit NotFinite(device::Device& device) : device_(device) {}

  // After a step was issued.
  void issued(const program::StepTimes& times);
  // When the device has done the step. "" where all is finite; else what is not: "the loss of step 7 is nan, on all ranks; ...".
  std::string look_at(const train::StepResult& result);
  // At the end, called by all ranks: whether no other rank's op came before this one's. True where none was found.
  bool is_first_of_all(world::World& world) const;

 private:
  device::Device& device_;
  struct Issued {
    std::int64_t step = -1;
    std::uint32_t program = 0;
  } issued_[2];                      // by step mod 2: no more are under way
  std::uint64_t ticket_ = device::no_ticket;
};

}  // namespace shardbook::launch
