// kernels/host/embedding: rows fetched by token and by position, and their gradients.
//
// The backward of the token table takes the same road as a GPU's: positions come grouped by token, each
// row is written once, its sum in rising position.
#include <algorithm>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void fetch_rows(const EmbeddingForwardArgs& args) {
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    T* x = as<T>(args.x_ND) + n * args.width;
    const std::int32_t token = args.token_N[n];
    if (token < args.vocab_begin || token >= args.vocab_end) {
      std::fill(x, x + args.width, T(0));
    } else {
      const T* row = as<T>(args.weight_VD) + (token - args.vocab_begin) * args.width;
      std::copy(row, row + args.width, x);
    }
  }
}

template <class T>
void add_rows(const EmbeddingBackwardArgs& args) {
  T* dweight = as<T>(args.dweight_VD);
  if (!args.accumulate) {
    std::fill(dweight, dweight + (args.vocab_end - args.vocab_begin) * args.width, T(0));
  }
  for (std::int32_t segment = 0; segment < *args.segments; ++segment) {
    T* row = dweight + (args.segment_token_N[segment] - args.vocab_begin) * args.width;
    for (std::int32_t at = args.segment_begin_N[segment]; at < args.segment_begin_N[segment + 1]; ++at) {
      const T* dx = as<T>(args.dx_ND) + args.order_N[at] * args.width;
      for (std::int64_t i = 0; i < args.width; ++i) row[i] += dx[i];
    }
  }
}

template <class T>
void add_positions(const PositionForwardArgs& args) {
  for (std::int64_t n = 0; n < args.rows; ++n) {
    T* x = as<T>(args.x_ND) + n * args.width;
    const T* weight = as<T>(args.weight_SD) + (args.first + n) % args.positions * args.width;
    for (std::int64_t i = 0; i < args.width; ++i) x[i] += weight[i];
  }
}

template <class T>
void sum_positions(const PositionBackwardArgs& args) {
  if (!args.accumulate) std::fill(as<T>(args.dweight_SD), as<T>(args.dweight_SD) + args.positions * args.width, T(0));
  for (std::int64_t n = 0; n < args.rows; ++n) {
    const T* dx = as<T>(args.dx_ND) + n * args.width;
    T* dweight = as<T>(args.dweight_SD) + (args.first + n) % args.positions * args.width;
    for (std::int64_t i = 0; i < args.width; ++i) dweight[i] += dx[i];
  }
}

}  // namespace

void embedding_forward(const EmbeddingForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { fetch_rows<decltype(zero)>(args); });
}
void embedding_backward(const EmbeddingBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_rows<decltype(zero)>(args); });
}
void position_forward(const PositionForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_positions<decltype(zero)>(args); });
}
void position_backward(const PositionBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { sum_positions<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
