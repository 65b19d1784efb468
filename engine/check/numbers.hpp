// check/numbers: are these the losses and gradients of the same training?
//
// Another layout is another way to compute the same numbers. So what one rank computes is what all must, and where they
// differ first says what was done wrong: a first loss that is n times the other's was divided by too few tokens; one
// that is merely another comes from other weights. The same first loss with another gradient norm is a mistake on the way
// back. The same first step and another second one is a mistake in what the first update moved.
//
// Norms and losses are sums over everything, so two mistakes that cancel are not seen, nor one that is smaller than the
// rounding of sums in another order.
#pragma once

#include <string>
#include <vector>

namespace shardbook::check {

struct Numbers {
  std::vector<double> losses, norms;   // of each step: mean loss, global norm of the gradient before clipping
  int tp = 1;
  int data_ranks = 1;                  // ranks that split the batch
  bool attention_dropout = false;      // attention drops probabilities, whose heads tp cuts
  bool drops_again = false;            // blocks that drop are computed again
  bool in_bf16 = false;                // activations, or gradients on their way, are rounded to bf16
};

// By how much losses of the first two steps may differ for sums in another order, as a part: of numbers in f32, or bf16.
// Gradient norms: by ten times that; later losses, to which rounding adds up: by fifty times.
inline constexpr double rounding_f32 = 2e-5, rounding_bf16 = 2e-3;

// One sentence on the first difference and what makes it; empty where there is none. `one` is of a layout that is trusted.
std::string difference(const Numbers& run, const Numbers& one, double rounding = rounding_f32);

}  // namespace shardbook::check
