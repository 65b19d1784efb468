// data/sort_by_token: which positions of a micro-batch hold the same token?
//
// The backward of an embedding adds the gradient rows of all positions that hold a token into that
// token's row. With positions grouped by token, each row has one writer that adds in a fixed order:
// no float atomics, and the same sum on every run.
//
// Idea: a stable counting sort over [vocab_begin, vocab_end), whose counters live in segment_begin.
#pragma once

#include <cstdint>
#include <span>

namespace shardbook::data {

// Groups the positions of `tokens` by token, ascending; within a token positions stay in order.
// Tokens outside [vocab_begin, vocab_end) belong to another tp rank and are left out.
//
//   order          positions, grouped; size >= tokens.size()
//   segment_token  token of segment k; size >= min(tokens.size(), vocab_end - vocab_begin)
//   segment_begin  first place in `order` of segment k, and after the last segment the number of
//                  positions kept; size >= vocab_end - vocab_begin + 1 (it holds the counters)
//
// Returns the number of segments. Positions of segment k: order[segment_begin[k]] up to but not
// including order[segment_begin[k + 1]]. What lies behind the used parts is unspecified.
// Allocates nothing; time O(tokens + vocabulary part).
int sort_by_token(std::span<const std::int32_t> tokens, int vocab_begin, int vocab_end,
                  std::span<std::int32_t> order, std::span<std::int32_t> segment_token,
                  std::span<std::int32_t> segment_begin);

}  // namespace shardbook::data
