// tests/world: GoogleTest, or one rank of a run that a test started.
#include <gtest/gtest.h>

#include "tests/world/roles.hpp"

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "rank") return shardbook::world::test::run_role(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
