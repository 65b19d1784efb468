// tests/support: the name of a run of ranks.
#pragma once

#include <unistd.h>

#include <string>

namespace shardbook::tests {

// A name that no run of a test program beside this one has: they may try the same ports.
inline std::string own_run_id() { return "test of process " + std::to_string(::getpid()); }

}  // namespace shardbook::tests
