// The twin of cuda_device.cpp for a build without CUDA: there are no GPUs, and it says why.
#include "engine/device/cuda/cuda_device.hpp"

namespace shardbook::device {
namespace {
constexpr const char* no_cuda = "this build has no CUDA (configure with -DSHARDBOOK_CUDA=ON where nvcc is installed)";
}

int cuda_device_count() { return 0; }
std::string cuda_problem() { return no_cuda; }
std::string cuda_blas_problem() { return no_cuda; }
std::string cuda_device_name(int) { throw base::Failure(no_cuda); }
base::Bytes cuda_device_memory(int) { throw base::Failure(no_cuda); }
int cuda_driver_version() { return 0; }
int cuda_runtime_version() { return 0; }

base::Result<std::unique_ptr<Device>> make_cuda_device(int, Storage, base::Rank rank) {
  return base::Error{base::text("rank ", rank, " has no GPU: ", no_cuda, "; use --device host")};
}

void* cuda_scratch(Device&, base::Bytes) { throw base::Failure(no_cuda); }
void cuda_keep_buffers_whole(Device&) { throw base::Failure(no_cuda); }
CudaPiece cuda_piece_of(const void*) { throw base::Failure(no_cuda); }
CudaTiming cuda_timing(const Device&) { throw base::Failure(no_cuda); }
double cuda_clock(Device&) { throw base::Failure(no_cuda); }

}  // namespace shardbook::device
