// kernels/host/flash_attention: the online softmax, one query at a time, keys by tiles.
//
// Forward: the largest score so far, the sum of exponentials and the sum of values under it; a tile with a larger
// score shrinks both sums by e^(old − new). Backward makes each probability again from the logsumexp, and each
// query adds its part to the gradients of the keys that it saw, in rising order of query head and query, so that
// grouped heads and a run repeat bit for bit. Derivation: notes/05_flash_attention.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/exponential.hpp"
#include "engine/kernels/host/references.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::host {
namespace {

constexpr std::int64_t tile = 64;  // keys at a time

template <class T>
T dot(const T* a, const T* b, std::int64_t count) {
  return lane_sum<T>(count, [&](std::int64_t i) { return a[i] * b[i]; });
}

// A query and the keys that it may see: position s of head h of sequence b.
template <class T>
struct Query {
  Query(const FlashAttentionSizes& sizes, std::int64_t b, std::int64_t h, std::int64_t s)
      : token(b * sizes.positions + s),
        first_key(b * sizes.positions),
        keys(s + 1),
        stat((b * sizes.heads + h) * sizes.positions + s),
        own(token * sizes.row_stride + h * sizes.head_dim),
        out(token * sizes.heads * sizes.head_dim + h * sizes.head_dim),
        shared(h / (sizes.heads / sizes.key_value_heads) * sizes.head_dim) {}
  // Where key or value t begins, from the pointer to all keys or values.
  std::int64_t key(const FlashAttentionSizes& sizes, std::int64_t t) const { return (first_key + t) * sizes.row_stride + shared; }

  std::int64_t token, first_key, keys, stat, own, out, shared;
};

// Which of a query's probabilities are dropped.
template <class T>
struct Drops {
  Drops(const DropoutMask& mask, const FlashAttentionSizes& sizes, const Query<T>& query) : mask(mask), drawn_by(key_of(mask)) {
    const std::int64_t b = query.stat / (sizes.heads * sizes.positions), row = query.stat % (sizes.heads * sizes.positions);
    first = mask.first + b * mask.stride + row * sizes.positions;
  }
  bool operator()(std::int64_t t) const { return mask.threshold > 0 && is_dropped(drawn_by, static_cast<std::uint64_t>(first + t), mask.threshold); }

  const DropoutMask& mask;
  std::uint64_t drawn_by;
  std::int64_t first;
};

template <class T, class Body>
void for_each_query(const FlashAttentionSizes& sizes, Body body) {
  for (std::int64_t b = 0; b < sizes.sequences; ++b) {
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      for (std::int64_t s = 0; s < sizes.positions; ++s) body(Query<T>(sizes, b, h, s));
    }
  }
}

//@ kernels.online_softmax: A larger score shrinks what was summed under a smaller one.
template <class T>
void forward(const FlashAttentionForwardArgs& args) {
  const FlashAttentionSizes& sizes = args.sizes;
  const std::int64_t width = sizes.head_dim;
  const T scale = T(args.scale);
  for_each_query<T>(sizes, [&](const Query<T>& query) {
    const T* q = as<T>(args.q) + query.own;
    const Drops<T> drops(args.mask, sizes, query);
    T* out = as<T>(args.out_NHK) + query.out;
    std::fill(out, out + width, T(0));
    T largest = -std::numeric_limits<T>::infinity(), sum = T(0);

    for (std::int64_t begin = 0; begin < query.keys; begin += tile) {
      const std::int64_t count = std::min(tile, query.keys - begin);
      // Scores of the tile
      std::array<T, tile> p;
      for (std::int64_t t = 0; t < count; ++t) p[t] = scale * dot(q, as<T>(args.k) + query.key(sizes, begin + t), width);

      // Under the largest score so far; what was summed under a smaller one shrinks
      const T larger = std::max(largest, lane_max(p.data(), count));
      const T shrink = exponential(largest - larger);
      largest = larger;
      for (std::int64_t t = 0; t < count; ++t) p[t] = exponential(p[t] - largest);
      sum = sum * shrink + lane_sum<T>(count, [&](std::int64_t t) { return p[t]; });

      // Values, each by its weight, but for those that are dropped
      for (std::int64_t i = 0; i < width; ++i) out[i] *= shrink;
      for (std::int64_t t = 0; t < count; ++t) {
        if (drops(begin + t)) continue;
        const T* v = as<T>(args.v) + query.key(sizes, begin + t);
        for (std::int64_t i = 0; i < width; ++i) out[i] += p[t] * v[i];
      }
    }
    for (std::int64_t i = 0; i < width; ++i) out[i] = out[i] * T(args.mask.scale) / sum;
    as<T>(args.logsumexp_BHS)[query.stat] = largest + std::log(sum);
  });
}
//@end

template <class T>
void backward(const FlashAttentionBackwardArgs& args) {
  const FlashAttentionSizes& sizes = args.sizes;
  const std::int64_t width = sizes.head_dim;
  const T scale = T(args.scale);

  // Each key-value head's gradient is a sum over queries: begin with nothing.
  for (std::int64_t n = 0; n < sizes.sequences * sizes.positions; ++n) {
    for (void* gradient : {args.dk, args.dv}) {
      T* row = as<T>(gradient) + n * sizes.row_stride;
      std::fill(row, row + sizes.key_value_heads * width, T(0));
    }
  }
  for_each_query<T>(sizes, [&](const Query<T>& query) {
    const T* q = as<T>(args.q) + query.own;
    const T* dout = as<T>(args.dout_NHK) + query.out;
    T* dq = as<T>(args.dq) + query.own;
    const Drops<T> drops(args.mask, sizes, query);
    std::fill(dq, dq + width, T(0));
    // Σ_t p·dp, without p
    const T delta = dot(dout, as<T>(args.out_NHK) + query.out, width);
    as<T>(args.delta_BHS)[query.stat] = delta;
    const T logsumexp = as<T>(args.logsumexp_BHS)[query.stat];

    for (std::int64_t t = 0; t < query.keys; ++t) {
      const std::int64_t key = query.key(sizes, t);
      const T* k = as<T>(args.k) + key;
      // The probability again, and through p · v; what was dropped had no part in it
      const T p = exponential(scale * dot(q, k, width) - logsumexp);
      const T kept = drops(t) ? T(0) : T(args.mask.scale);
      const T dp = kept * dot(dout, as<T>(args.v) + key, width);
      T* dv = as<T>(args.dv) + key;
      for (std::int64_t i = 0; i < width; ++i) dv[i] += kept * p * dout[i];

      // Through the softmax and its scale, to q and k
      const T dscore = scale * p * (dp - delta);
      T* dk = as<T>(args.dk) + key;
      for (std::int64_t i = 0; i < width; ++i) dq[i] += dscore * k[i];
      for (std::int64_t i = 0; i < width; ++i) dk[i] += dscore * q[i];
    }
  });
}

}  // namespace

void flash_attention_forward(const FlashAttentionForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { forward<decltype(zero)>(args); });
}
void flash_attention_backward(const FlashAttentionBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { backward<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
