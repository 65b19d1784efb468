#include "engine/comm/nccl/process.hpp"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "engine/base/check.hpp"
#include "engine/comm/nccl/nccl.hpp"

namespace shardbook::comm {

bool prepare_process(bool in_graphs) {
  static std::once_flag once;
  static bool orders = false;
  std::call_once(once, [in_graphs] {
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", in_graphs ? "0" : "1", in_graphs ? 1 : 0);
    if (in_graphs) setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
    setenv("NCCL_RUNTIME_CONNECT", "0", 0);
    const char* const asked = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    orders = std::strcmp(asked, "0") != 0;
  });
  if (in_graphs && orders) throw base::Failure("calls of NCCL cannot be in graphs in a process whose first ones were not to be");
  return orders && has_launch_order();
}

int version_number() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

bool has_launch_order() { return version_number() >= 22600; }

std::string nccl_version() {
  const int version = version_number();
  return version == 0 ? "" : base::text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace shardbook::comm
