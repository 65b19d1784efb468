// config/in_force: which design choices hold in a run? For whoever writes a run down, and needs no row of the table.
#pragma once

#include <map>
#include <string>

namespace shardbook::config {

struct RunConfig;

// The value of every switch: what was set, or the default. By key.
std::map<std::string, std::string> switches_in_force(const RunConfig& config);

// Whether the run's losses and gradients mean nothing and only its times count: then none are reported.
bool only_times_count(const RunConfig& config);
// "key=value" of what is wrong on purpose; empty: nothing is.
std::string wrong_on_purpose(const RunConfig& config);

}  // namespace shardbook::config
