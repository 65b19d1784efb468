// simulate/built_in: which profiles does the program carry in itself?
//
// The source is generated: each file of profiles/ by its name.
#pragma once

#include <vector>

namespace shardbook::simulate {

struct BuiltIn {
  const char* name;
  const char* json;
};

// Ascending by name.
const std::vector<BuiltIn>& built_in_profiles();

}  // namespace shardbook::simulate
