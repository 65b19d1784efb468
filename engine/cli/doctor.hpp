// cli/doctor: what is here, what will work with it, what won't, and what is the remedy?
//
// Changes nothing. Each finding is one row; a part that is missing is no failure, since each has a twin.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

struct Examined {
  enum class State { works, partly, missing };
  std::string what;      // "CUDA Toolkit"
  std::string found;     // "13.0.48"; "none"
  State state = State::works;
  std::string effect;    // what will work, or won't
  std::string remedy;    // empty where nothing is wrong
};

std::vector<Examined> examine();
// The links between GPUs in one phrase, from what `nvidia-smi topo -m` prints: "every pair NV18",
// "pairs: NV18, SYS"; "" where it shows fewer than two GPUs.
std::string links_phrase(const std::string& topology);

int doctor(const Line& line, Console& console);

}  // namespace shardbook::cli
