// kernels/host/cross_entropy: the three steps of a cross entropy over a cut vocabulary, row by row; and all of them.
#include <cmath>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/exponential.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void row_maxima(const CrossEntropyMaxArgs& args) {
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    as<T>(args.row_max_N)[n] = lane_max(as<T>(args.logit_NV) + n * args.vocab, args.vocab);
  }
}

template <class T>
void row_sums(const CrossEntropySumsArgs& args) {
  T* sums = as<T>(args.sums_2N);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* logit = as<T>(args.logit_NV) + n * args.vocab;
    const T most = as<T>(args.row_max_N)[n];
    sums[n] = lane_sum<T>(args.vocab, [&](std::int64_t v) { return exponential(logit[v] - most); });
    const std::int64_t target = std::int64_t{args.target_N[n]} - args.vocab_begin;
    const bool local = target >= 0 && target < args.vocab;
    sums[args.tokens + n] = local ? logit[target] - most : T(0);
  }
}

template <class T>
void gradient(const CrossEntropyGradientArgs& args) {
  const T* sums = as<T>(args.sums_2N);
  const T scale = T(args.scale);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    T* logit = as<T>(args.logit_NV) + n * args.vocab;
    const T most = as<T>(args.row_max_N)[n];
    as<T>(args.loss_N)[n] = std::log(sums[n]) - sums[args.tokens + n];
    const T factor = scale / sums[n];
    for (std::int64_t v = 0; v < args.vocab; ++v) logit[v] = factor * exponential(logit[v] - most);
    const std::int64_t target = std::int64_t{args.target_N[n]} - args.vocab_begin;
    if (target >= 0 && target < args.vocab) logit[target] -= scale;
  }
}

}  // namespace

void cross_entropy_max(const CrossEntropyMaxArgs& args) {
  with_float(args.dtype, [&](auto zero) { row_maxima<decltype(zero)>(args); });
}
void cross_entropy_sums(const CrossEntropySumsArgs& args) {
  with_float(args.dtype, [&](auto zero) { row_sums<decltype(zero)>(args); });
}
void cross_entropy_gradient(const CrossEntropyGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { gradient<decltype(zero)>(args); });
}

// Row by row the three of them, so the numbers are theirs.
void cross_entropy(const CrossEntropyArgs& args) {
  with_float(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t n = 0; n < args.tokens; ++n) {
      T* const logit = as<T>(args.logit_NV) + n * args.vocab;
      T most{}, sums[2] = {};
      row_maxima<T>({logit, &most, 1, args.vocab, args.dtype});
      row_sums<T>({logit, &most, args.target_N + n, sums, 1, args.vocab, 0, args.dtype});
      gradient<T>({logit, &most, sums, args.target_N + n, as<T>(args.loss_N) + n, 1, args.vocab, 0, args.scale, args.dtype});
    }
  });
}

}  // namespace shardbook::kernels::host
