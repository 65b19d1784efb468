// cli/window: which part of a timeline is meant by --step and --window?
#pragma once

#include <optional>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"
#include "engine/metrics/critical_path.hpp"

namespace shardbook::cli {

// The switches that say so.
std::vector<Switch> window_switches();

// --step N: that step over all ranks. --window A:B: from A to B, each with its unit ("1.5ms:2ms", "300us:", "0:4ms"),
// counted from the timeline's first device span. None where neither is given.
// Errors: no such step (those that exist are named), text that is no window, both given.
base::Result<std::optional<metrics::Window>> window_of(const Line& line, const timeline::Timeline& timeline);

// Nanoseconds of "1.5ms", "300us", "300µs", "20ns", "2s"; without a unit milliseconds, as tables print them.
base::Result<base::Nanoseconds> duration_of(const std::string& text);

}  // namespace shardbook::cli
