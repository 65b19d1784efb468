// What a test of one row of the table of switches is called: its key, in letters that a test's name may have.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "engine/config/switches.hpp"

namespace shardbook::tests {

inline std::string name_of_row(const testing::TestParamInfo<config::Switch>& info) {
  std::string name = info.param.key;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
}

}  // namespace shardbook::tests
