// tests/world: the test program is also the program whose ranks it starts.
//
// `test_world rank ROLE` runs one rank of the run that the environment describes and exits with 0,
// or with 1 and the first cause on stderr. Which roles there are: roles.cpp.
#pragma once

#include <chrono>
#include <string>

namespace shardbook::world::test {

int run_role(const std::string& role);

// Seconds since its making.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace shardbook::world::test
