// train/schedule: in what order does a step happen?
//
// A step is a list of actions, so that another order (a pipeline's, say) is another list and not another
// trainer.
#pragma once

#include <vector>

namespace shardbook::train {

enum class ActionKind { forward, backward, reduce, update };

struct Action {
  ActionKind kind;
  int micro_batch = 0;  // of forward and backward
};

// Forward and backward of each micro-batch in turn, then the sums over ranks, then the update.
std::vector<Action> one_after_the_other(int micro_batches);

}  // namespace shardbook::train
