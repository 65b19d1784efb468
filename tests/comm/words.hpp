// What tests of faults between ranks share: how many ranks there are, and that an error holds all words of its cause.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardbook::tests {

inline constexpr int ranks = 3;

inline void expect_words(const std::string& error, const std::vector<std::string>& words) {
  for (const std::string& one : words) EXPECT_NE(error.find(one), std::string::npos) << one << "\nin: " << error;
}

}  // namespace shardbook::tests
