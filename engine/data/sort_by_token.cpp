#include "engine/data/sort_by_token.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace shardbook::data {

int sort_by_token(std::span<const std::int32_t> tokens, int vocab_begin, int vocab_end, std::span<std::int32_t> order,
                  std::span<std::int32_t> segment_token, std::span<std::int32_t> segment_begin) {
  SHARDBOOK_CHECK(vocab_begin <= vocab_end, "vocabulary ", vocab_begin, " to ", vocab_end);
  const auto rows = static_cast<std::size_t>(vocab_end - vocab_begin);
  SHARDBOOK_CHECK(order.size() >= tokens.size(), order.size(), " places for ", tokens.size(), " positions");
  SHARDBOOK_CHECK(segment_token.size() >= std::min(tokens.size(), rows), segment_token.size(), " segment tokens");
  SHARDBOOK_CHECK(segment_begin.size() >= rows + 1, segment_begin.size(), " counters for ", rows, " tokens");
  auto row_of = [&](std::int32_t token) { return static_cast<std::size_t>(token - vocab_begin); };
  auto is_mine = [&](std::int32_t token) { return vocab_begin <= token && token < vocab_end; };

  // Count each token one place further on; sums then give where each token's positions begin.
  const auto counter = segment_begin.first(rows + 1);
  std::fill(counter.begin(), counter.end(), 0);
  for (std::int32_t token : tokens) {
    if (is_mine(token)) ++counter[row_of(token) + 1];
  }
  for (std::size_t row = 0; row < rows; ++row) counter[row + 1] += counter[row];

  // Place each position; a token's counter ends where the next token begins.
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    if (!is_mine(tokens[position])) continue;
    order[static_cast<std::size_t>(counter[row_of(tokens[position])]++)] = static_cast<std::int32_t>(position);
  }

  // Close up over the tokens that occur. Segments are never ahead of rows, so no counter is
  // overwritten before it is read.
  std::size_t segments = 0;
  std::int32_t begin = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t end = counter[row];
    if (end == begin) continue;
    segment_token[segments] = vocab_begin + static_cast<std::int32_t>(row);
    segment_begin[segments] = begin;
    ++segments;
    begin = end;
  }
  segment_begin[segments] = begin;
  return static_cast<int>(segments);
}

}  // namespace shardbook::data
