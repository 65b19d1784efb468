// cause/idle: while a device ran nothing, what did it wait for?
#pragma once

#include <vector>

#include "engine/cause/why.hpp"

namespace shardbook::cause {

// Of a rank in a window, longest first; the times sum to what metrics::partition calls idle. Each gap is ended by the
// first span behind it, and what decided that span's start is the gap's cause.
std::vector<Idle> idle_of(const Timeline& timeline, Rank rank, Window window);

}  // namespace shardbook::cause
