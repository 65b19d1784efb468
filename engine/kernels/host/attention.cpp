// kernels/host/attention: heads to the front and back, and the causal softmax, row by row.
#include <algorithm>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/exponential.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void permute(const SplitHeadsArgs& args) {
  const std::int64_t head_dim = args.head_dim;
  T* tokens_first = as<T>(args.tokens_first_NPHK);
  T* heads_first = as<T>(args.heads_first_PBHSK);
  for (std::int64_t p = 0; p < args.parts; ++p) {
    for (std::int64_t b = 0; b < args.sequences; ++b) {
      for (std::int64_t h = 0; h < args.heads; ++h) {
        for (std::int64_t s = 0; s < args.positions; ++s) {
          const std::int64_t token = b * args.positions + s;
          T* by_token = tokens_first + token * args.row_stride + (p * args.heads + h) * head_dim;
          T* by_head = heads_first + (((p * args.sequences + b) * args.heads + h) * args.positions + s) * head_dim;
          if (args.inverse) std::copy(by_head, by_head + head_dim, by_token);
          else std::copy(by_token, by_token + head_dim, by_head);
        }
      }
    }
  }
}

template <class T>
void forward(const CausalSoftmaxForwardArgs& args) {
  const std::int64_t positions = args.positions;
  const T scale = T(args.scale);
  for (std::int64_t row = 0; row < args.batch_heads * positions; ++row) {
    const T* score = as<T>(args.score_BHSS) + row * positions;
    T* probability = as<T>(args.probability_BHSS) + row * positions;
    // Keys up to and including the query's own position.
    const std::int64_t keys = row % positions + 1;
    for (std::int64_t t = 0; t < keys; ++t) probability[t] = scale * score[t];
    const T most = lane_max(probability, keys);
    for (std::int64_t t = 0; t < keys; ++t) probability[t] = exponential(probability[t] - most);
    const T factor = T(1) / lane_sum<T>(keys, [&](std::int64_t t) { return probability[t]; });
    for (std::int64_t t = 0; t < keys; ++t) probability[t] *= factor;
    std::fill(probability + keys, probability + positions, T(0));
  }
}

template <class T>
void backward(const CausalSoftmaxBackwardArgs& args) {
  const std::int64_t positions = args.positions;
  const T scale = T(args.scale);
  for (std::int64_t row = 0; row < args.batch_heads * positions; ++row) {
    const T* p = as<T>(args.probability_BHSS) + row * positions;
    const T* dp = as<T>(args.dprobability_BHSS) + row * positions;
    T* dscore = as<T>(args.dscore_BHSS) + row * positions;
    const std::int64_t keys = row % positions + 1;
    const T mean = lane_sum<T>(keys, [&](std::int64_t t) { return p[t] * dp[t]; });
    for (std::int64_t t = 0; t < keys; ++t) dscore[t] = scale * p[t] * (dp[t] - mean);
    std::fill(dscore + keys, dscore + positions, T(0));
  }
}

}  // namespace

void split_heads(const SplitHeadsArgs& args) {
  with_float(args.dtype, [&](auto zero) { permute<decltype(zero)>(args); });
}
void causal_softmax_forward(const CausalSoftmaxForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { forward<decltype(zero)>(args); });
}
void causal_softmax_backward(const CausalSoftmaxBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { backward<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
