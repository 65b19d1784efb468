#include "engine/check/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/check.hpp"

namespace shardbook::check {

using base::text;

namespace {

bool close(double a, double b, double part) { return std::abs(a - b) <= part * std::abs(b); }

std::string number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.5g", value);
  return out;
}

std::string loss_differs(const Numbers& run, const Numbers& one, double rounding) {
  const double ratio = run.losses[0] / one.losses[0];
  const std::string begins = text("the loss of step 0 is ", number(run.losses[0]), ", and one rank's is ", number(one.losses[0]));
  if (run.data_ranks > 1 && close(ratio, run.data_ranks, rounding)) {
    return text(begins, ": exactly ", run.data_ranks, " times. Each of the ", run.data_ranks,
                " ranks that split the batch divides by its own tokens, and the sum over ranks wants those of all");
  }
  if (run.data_ranks > 1 && close(ratio, 1.0 / run.data_ranks, rounding)) {
    return text(begins, ": ", run.data_ranks, " times less. What is divided by the tokens of all ranks is not summed over them, or is divided once more");
  }
  const std::string by_place = text(begins, ": nothing was learnt yet, so the weights are others, or forward is. A rank must draw its slices by their place in the whole");
  if (run.tp == 1 || !run.attention_dropout) return by_place;
  return text(by_place, ", and so its dropout masks: from one random stream all ", run.tp, " tp ranks give their heads the same ones. If both runs agree without dropout, it is the masks");
}

std::string norm_differs(const Numbers& run, const Numbers& one) {
  const double ratio = run.norms[0] / one.norms[0];
  const std::string begins = text("step 0 has the right loss, and ", number(ratio), " times the right gradient norm (", number(run.norms[0]), " for ", number(one.norms[0]), "): ");
  if (run.drops_again && ratio > 0.5 && ratio < 2) {
    return begins + "what backward computed again did not drop what forward had dropped, so the gradient is another network's: the state of the generator, or the counter, must be the same both times. If both runs agree without dropout, it is that";
  }
  if (ratio > 1) return begins + text("on the way back something is summed over ranks that each of them holds whole already", run.tp > 1 ? text(", so it counts ", run.tp, " times at every such sum") : "");
  return begins + "on the way back a part is taken for the whole: a sum over ranks is missing";
}

}  // namespace

std::string difference(const Numbers& run, const Numbers& one, double rounding) {
  const std::size_t steps = std::min({run.losses.size(), one.losses.size(), run.norms.size(), one.norms.size()});
  if (steps == 0) return "one of the two runs has no losses to compare";
  if (!close(run.losses[0], one.losses[0], rounding)) return loss_differs(run, one, rounding);
  if (!close(run.norms[0], one.norms[0], 10 * rounding)) return norm_differs(run, one);
  for (std::size_t step = 1; step < steps; ++step) {
    if (close(run.losses[step], one.losses[step], step == 1 ? rounding : 50 * rounding)) continue;
    const std::string begins = text("loss and gradient are right until the update of step ", step - 1, ", and the loss of step ", step, " is ", number(run.losses[step]), " for ", number(one.losses[step]), ": ");
    if (step > 1) return begins + "the two drift apart by more than rounding";
    return begins + text("what the first update moved counts otherwise than one rank counts it",
                         run.tp > 1 ? text(", as a bias that begins at 0 and is added by each of ", run.tp, " ranks before their sum") : "");
  }
  return "";
}

}  // namespace shardbook::check
