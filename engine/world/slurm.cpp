// world/launchers: the one value of Slurm's that needs a parser, its compressed list of hosts.
#include <cctype>

#include "engine/world/launchers.hpp"

namespace shardbook::world {

// "gpu[07-09,12],login1" means gpu07 gpu08 gpu09 gpu12 login1; a name may have several brackets,
// "r[1-2]n[1-4]". Only the first host is wanted: of each bracket the first number, up to a comma
// that is outside of brackets.
std::string first_host(const std::string& slurm_node_list) {
  std::string host;
  for (std::size_t at = 0; at < slurm_node_list.size(); ++at) {
    const char letter = slurm_node_list[at];
    if (letter == ',') break;
    if (letter != '[') {
      host += letter;
      continue;
    }
    const std::size_t end = slurm_node_list.find(']', at);
    if (end == std::string::npos) return "";
    std::size_t digits = 0;
    while (std::isdigit(static_cast<unsigned char>(slurm_node_list[at + 1 + digits]))) ++digits;
    if (digits == 0) return "";
    host += slurm_node_list.substr(at + 1, digits);
    at = end;
  }
  return host;
}

}  // namespace shardbook::world
