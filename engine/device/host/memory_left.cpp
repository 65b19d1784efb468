#include "engine/device/host/memory_left.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

namespace shardbook::device {

namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// The number behind a name in a file of names and numbers; of a file that is a number alone, the name is "".
std::uint64_t number_in(const std::string& path, const std::string& name, std::uint64_t otherwise) {
  std::ifstream file(path);
  for (std::string found, rest; !name.empty() && file >> found && found != name;) std::getline(file, rest);
  std::uint64_t number = 0;
  return file >> number ? number : otherwise;   // "max" is no number
}

std::uint64_t left_in_group(const std::string& folder) {
  const std::uint64_t most = number_in(folder + "/memory.max", "", no_limit);
  if (most == no_limit) return no_limit;
  const std::uint64_t files = number_in(folder + "/memory.stat", "inactive_file", 0), current = number_in(folder + "/memory.current", "", 0);
  const std::uint64_t taken = current - std::min(current, files);
  return most - std::min(most, taken);
}

// "/user.slice/job_7", of the line "0::/user.slice/job_7"; "" at the root, and where there are none.
std::string group_of_process(const std::string& proc) {
  std::ifstream file(proc + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.size() > 4 ? line.substr(3) : "";
  }
  return "";
}

}  // namespace

std::uint64_t memory_left(const std::string& proc, const std::string& groups) {
  const std::uint64_t kib = number_in(proc + "/meminfo", "MemAvailable:", no_limit);
  std::uint64_t left = kib == no_limit ? no_limit : kib << 10;
  // A group is held by the limits of those that it is in, too
  for (std::string group = group_of_process(proc);; group.erase(group.rfind('/'))) {
    left = std::min(left, left_in_group(groups + group));
    if (group.empty()) return left;
  }
}

}  // namespace shardbook::device
