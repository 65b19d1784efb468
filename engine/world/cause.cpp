#include "engine/world/cause.hpp"

#include <new>
#include <system_error>

#include "engine/base/check.hpp"

namespace shardbook::world {

std::string cause_of(const std::exception& failure) {
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return base::text("there was too little memory (", failure.what(), "): raise the limit (ulimit -v, -d), or make the run smaller");
  }
  const auto* of_system = dynamic_cast<const std::system_error*>(&failure);
  if (of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again) {
    return base::text("no thread can be made (", failure.what(), "): raise the limit of processes (ulimit -u) or of memory (ulimit -v)");
  }
  return failure.what();
}

}  // namespace shardbook::world
