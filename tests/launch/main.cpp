// tests/launch: GoogleTest, or one rank of a run that a test started.
#include <gtest/gtest.h>

#include "tests/launch/faulty_rank.hpp"

int main(int argc, char** argv) {
  if (argc >= 4 && std::string(argv[1]) == "train") return shardbook::launch::test::train_rank_of_test(argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
