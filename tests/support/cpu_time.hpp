// How long a thread has run: for bounds that hold on a busy machine, too.
#pragma once

#include <ctime>

namespace shardbook::tests {

// CPU time of this thread, so that what runs beside does not count.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace shardbook::tests
