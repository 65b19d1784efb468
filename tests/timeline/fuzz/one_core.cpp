// Stands in for engine/timeline/cores.cpp in fuzz targets: one thread, so that an execution costs no threads and is the same each time.
#include "engine/timeline/cores.hpp"

namespace shardbook::timeline {

void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = 0; i < count; ++i) work(i);
}

}  // namespace shardbook::timeline
