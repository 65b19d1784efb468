// comm/nccl/all_to_all: groups of sends and receives. NCCL before 2.28 has no all-to-all and none has splits, and a shift it
// has not at all: within a group each send is under way while its rank receives, so a ring of them does not wait for itself.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

#include "engine/base/types.hpp"

namespace shardbook::comm {

ncclDataType_t nccl_type_of(base::DType dtype);

// send[i] elements go to rank i, receive[i] come from it, in the order of ranks; `size` entries each. Pairs that exchange
// nothing are left out.
ncclResult_t nccl_all_to_all(const void* in, void* out, base::DType dtype, const std::int64_t* send, const std::int64_t* receive, int size, ncclComm_t nccl, cudaStream_t stream);

// `count` elements to the rank `by` places behind rank `me` of `size`, and as many from the one as far before it.
ncclResult_t nccl_shift(const void* in, void* out, std::size_t count, ncclDataType_t type, int by, int me, int size, ncclComm_t nccl, cudaStream_t stream);

}  // namespace shardbook::comm
