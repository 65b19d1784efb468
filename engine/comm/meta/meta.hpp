// comm/meta: collectives of ranks that exist only as programs. Each is recorded; nothing is exchanged.
#pragma once

#include "engine/comm/comm.hpp"

namespace shardbook::comm {

std::unique_ptr<Backend> make_meta_backend();

}  // namespace shardbook::comm
