// plan/executor: who carries out an action?
//
// A room that can do some kinds of action implements this; train/ registers it for them. All calls issue work and
// return; none waits for the device (but `limit`, whose matter that is).
#pragma once

#include "engine/plan/plan.hpp"

namespace shardbook::plan {

class Executor {
 public:
  virtual ~Executor() = default;
  // A step begins.
  virtual void begin_step() {}
  // `action`, of any kind and of any room, is about to run: its stream shall wait for what it needs of mine. So a
  // forward waits for its parameters, and no room knows another.
  virtual void await(const Action&) {}
  // Does an action of my kinds.
  virtual void run(const Action& action) = 0;
};

}  // namespace shardbook::plan
