#include "engine/world/process_state.hpp"

#include <csignal>
#include <cerrno>
#include <fstream>
#include <string>

namespace shardbook::world {

ProcessState state_of_process(pid_t pid) {
  // "4711 (a name, in which anything may stand) T 1 ..."
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return ::kill(pid, 0) != 0 && errno == ESRCH ? ProcessState::ended : ProcessState::running;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return ProcessState::running;
  switch (line[name_end + 2]) {
    case 'T': case 't': return ProcessState::stopped;
    case 'Z': case 'X': return ProcessState::ended;
    default: return ProcessState::running;
  }
}

}  // namespace shardbook::world
