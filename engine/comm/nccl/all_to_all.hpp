// comm/nccl/all_to_all: one group of sends and receives, for NCCL before 2.28 has no all-to-all and none has splits.
#pragma once

#include <nccl.h>

#include <cstdint>

#include "engine/base/types.hpp"

namespace shardbook::comm {

ncclDataType_t nccl_type_of(base::DType dtype);

// send[i] elements go to rank i, receive[i] come from it, in the order of ranks; `size` entries each. Pairs that exchange
// nothing are left out.
ncclResult_t nccl_all_to_all(const void* in, void* out, base::DType dtype, const std::int64_t* send, const std::int64_t* receive, int size, ncclComm_t nccl, cudaStream_t stream);

}  // namespace shardbook::comm
