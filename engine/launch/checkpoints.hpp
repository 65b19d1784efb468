// launch/checkpoints: when does a rank save, and from where does it go on?
//
// The checkpoint of n steps is what step n − 1 leaves: a rank copies its part once that step is issued (checkpoint/state),
// and hands the copy to a thread that writes it (checkpoint/saver) once it is there, and the step is known to have had a
// finite loss. One save is under way at most: the next one waits for it. A save that fails ends the run.
//
// Nothing but tensors is saved, for the rest is a function of step and config: which tokens come (data/), which masks are
// drawn (by seed, step, place), the learning rate.
#pragma once

#include <memory>
#include <string>

#include "engine/checkpoint/folder.hpp"
#include "engine/checkpoint/saver.hpp"
#include "engine/config/config.hpp"
#include "engine/launch/launch.hpp"
#include "engine/train/trainer.hpp"
#include "engine/world/world.hpp"

namespace shardbook::launch {

// Whether the config's checkpoints can be written and read, as far as can be seen before a rank starts; how many steps had
// been done. Errors: there is none to resume from, or it is damaged; nothing is left to do; the folder holds a later one;
// a device or switches without numbers.
base::Result<std::int64_t> check_checkpoints(const config::RunConfig& config);

class Checkpoints {
 public:
  // Collective. Takes the folder, and puts the trainer's state to where it goes on. Throws base::Failure with a sentence.
  Checkpoints(world::World& world, const config::RunConfig& config, train::Trainer& trainer);

  // So many steps had been done when the run began.
  std::int64_t begin() const { return begin_; }
  // After each step, by all ranks: so many are issued, of so many the losses are known. `finite`: all that this rank has seen of
  // them; only where all ranks say so is anything written. Throws base::Failure where a save has failed.
  void after_step(std::int64_t issued, std::int64_t settled, bool finite);
  // After the last step, once the device has been synchronized, by all ranks. `finite`: as above. Saves what was not saved;
  // returns when this rank has written all.
  void end(std::int64_t issued, bool finite);
  const Saves& saves() const { return saves_; }

 private:
  void restore();
  void take(std::int64_t steps);
  void write_taken();
  bool is_finite_everywhere(bool finite);
  void await_saver();
  void expect_no_failure() const;

  world::World& world_;
  const config::RunConfig& config_;
  train::Trainer& trainer_;
  checkpoint::Claim claim_;                        // of rank 0
  std::unique_ptr<checkpoint::Saver> saver_;       // null where nothing is saved
  std::int64_t begin_ = 0;
  std::int64_t taken_ = -1;                        // a copy of so many steps is made, or will be there soon, and nobody writes it yet
  std::int64_t saved_ = -1;                        // the last that was handed to the saver
  bool counted_ = true;                            // in saves_, which has all that have ended
  Saves saves_;
};

}  // namespace shardbook::launch
