// base/nearest: which known word did they mean?
//
// For sentences such as "there is no option --precison; the nearest is --precision".
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardbook::base {

// How many insertions, deletions, replacements and swaps of neighbours lead from one word to the other (Damerau 1964,
// each letter touched once).
inline std::size_t edits_between(std::string_view word, std::string_view other) {
  std::vector<std::size_t> before, above, row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < word.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = above[j] + (word[i] == other[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, above[j + 1] + 1, row[j] + 1});
      const bool swapped = i > 0 && j > 0 && word[i] == other[j - 1] && word[i - 1] == other[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

// Whether one may be a slip of the other: at most a third of its letters differ.
inline bool is_near(std::string_view word, std::string_view other) {
  return 3 * edits_between(word, other) <= std::max(word.size(), other.size());
}

// The word of `known` that is fewest edits from `word`; the first of equals. REQUIRES: known is not empty.
inline std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  return *std::min_element(known.begin(), known.end(), [&](const std::string& left, const std::string& right) {
    return edits_between(word, left) < edits_between(word, right);
  });
}

}  // namespace shardbook::base
