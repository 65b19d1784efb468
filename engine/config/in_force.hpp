// config/in_force: which design choices hold in a run? For whoever writes a run down, and needs no row of the table.
#pragma once

#include <map>
#include <string>

namespace shardbook::config {

struct RunConfig;

// The value of every switch: what was set, or the default. By key.
std::map<std::string, std::string> switches_in_force(const RunConfig& config);

}  // namespace shardbook::config
