// base/nearest: which known word did they mean?
//
// For sentences such as "there is no option --precison; the nearest is --precision".
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace shardbook::base {

// The word of `known` with the fewest insertions, deletions and replacements from `word` (Levenshtein 1966); the
// first of equals. REQUIRES: known is not empty.
inline std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const auto distance = [&](std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < other.size(); ++j) {
        const std::size_t replaced = diagonal + (word[i] == other[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
      }
    }
    return row.back();
  };
  return *std::min_element(known.begin(), known.end(), [&](const std::string& left, const std::string& right) {
    return distance(left) < distance(right);
  });
}

}  // namespace shardbook::base
