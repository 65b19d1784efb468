// The tests of NCCL, or, as `test_gpu_nccl faulty_ranks ...`, what experiments/faults times.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/gpu/faulty_ranks.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "faulty_ranks") return shardbook::gpu_test::faulty_ranks(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
