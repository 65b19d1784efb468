// launch/wire: a rank's outcome as bytes, from its process to rank 0's.
//
// Numbers go as their bits, so that a loss that is not finite arrives as what it is.
#pragma once

#include <string>
#include <string_view>

#include "engine/launch/rank.hpp"

namespace shardbook::launch {

std::string to_bytes(const RankOutcome& outcome);
// Throws base::Failure on bytes that to_bytes did not make.
RankOutcome from_bytes(std::string_view bytes);

}  // namespace shardbook::launch
