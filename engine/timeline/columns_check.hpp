// timeline/columns_check: can a timeline that was read be trusted with its own indices?
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// Holds all that the rest of the engine takes for granted: indices within their tables, kinds that there
// are, spans that end after they start, in their order, ranks that are known. One sentence, with `name` for the file.
base::Status check_indices(const Timeline& timeline, const std::string& name);

}  // namespace shardbook::timeline
