// Ranks one of which goes wrong, as a program of its own inside test_gpu_nccl: faulty_ranks.cpp says how it is called.
#pragma once

namespace shardbook::gpu_test {

// argv[1] is its name. The exit code.
int faulty_ranks(int argc, char** argv);

}  // namespace shardbook::gpu_test
