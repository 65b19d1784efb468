// checkpoint/bad: how the reading of a text that may be anyone's ends; only what reads such texts includes this.
#pragma once

#include <string>

#include "engine/base/check.hpp"

namespace shardbook::checkpoint {

// Thrown where a text is not what it must be, and caught in the function that was asked to read it: a Result there.
struct Bad {
  std::string what;
};

template <class... Pieces>
[[noreturn]] void bad(const Pieces&... pieces) {
  throw Bad{base::text(pieces...)};
}

}  // namespace shardbook::checkpoint
