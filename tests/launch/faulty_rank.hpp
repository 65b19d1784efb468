// tests/launch: the test program is also the program whose ranks it starts, and a rank may be told to go wrong.
#pragma once

#include <string>

#include "engine/device/device.hpp"

namespace shardbook::launch::test {

struct Fault {
  base::Rank rank = -1;
  std::int64_t step = 0;
  std::string where, what;
};

// Makes that rank's device go wrong. Called by each rank, before its first step.
void plant(device::Device& device, const Fault& fault);

// Set in a test's process and so in its ranks': "RANK STEP WHERE WHAT", such as "3 3 backward killed". WHERE is forward,
// backward, reduction, optimizer or adam_w (behind the norm): the fault comes when the rank's device runs the first op of that kind in that
// step; setup: before the rank meets the others; or saving: while a checkpoint is written (STEP is not looked at). WHAT is killed, stopped, throws, exits, memory (more of it than there is), slow (a second, and it
// goes on), day_later or day_earlier (its clock is set), full_disk (for all that it writes from then on), or spoils: what the op
// reads is no number any more.
inline constexpr const char* fault_variable = "SHARDBOOK_TEST_FAULT";

// So many MiB more than its libraries took a rank, and who starts it, may have for its data.
inline constexpr const char* spare_variable = "SHARDBOOK_TEST_SPARE_MEMORY";

// The folder of a run whose ranks are not started by ourselves.
inline constexpr const char* out_variable = "SHARDBOOK_TEST_OUT";

// One rank of the run whose config is in that file. Returns the exit code.
int train_rank_of_test(const std::string& config_file);

// Within what all ranks have ended: four of them, on two busy processors.
inline constexpr double soon_s = 8;

}  // namespace shardbook::launch::test
