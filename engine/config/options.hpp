// config/options: taking a value for one row of the table, for the command line and for files alike.
#pragma once

#include <string>
#include <vector>

#include "engine/config/config.hpp"

namespace shardbook::config {

// What ask() does once the row is found. Its error lacks the option's name, which a command line
// writes as --name and a file as "name". On an error the config is as it was.
base::Status take(RunConfig& config, const Option& option, const std::vector<std::string>& values);

}  // namespace shardbook::config
