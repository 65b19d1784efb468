// world/cause: what is said of an exception that ended a rank?
#pragma once

#include <exception>
#include <string>

namespace shardbook::world {

// Its own words, and what to do where they are the C++ library's: no memory, no thread.
std::string cause_of(const std::exception& failure);

}  // namespace shardbook::world
