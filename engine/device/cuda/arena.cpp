#include "engine/device/cuda/arena.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "engine/device/cuda/owners.hpp"

namespace shardbook::device::cuda {
namespace {

constexpr base::Bytes alignment = 256;
constexpr base::Bytes smallest_piece = base::Bytes{64} << 20;

base::Bytes round_up(base::Bytes bytes, base::Bytes multiple) { return (bytes + multiple - 1) / multiple * multiple; }

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw base::Failure(base::text("the NVIDIA driver has no ", name, ": it is too old for this program"));
  }
}

void check_driver(CUresult code, const char* expression, const std::string& context) {
  if (code == CUDA_SUCCESS) return;
  const char* name = "unknown error";
  driver().get_error_name(code, &name);
  throw base::Failure(base::text(context, ": ", expression, " failed: ", name));
}
#define CHECK_DRIVER(expression) check_driver((expression), #expression, context_)

}  // namespace

const Driver& driver() {
  static const Driver functions = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw base::Failure("the NVIDIA driver (libcuda.so.1) is not installed");
    Driver found = {};
    find(library, "cuGetErrorName", found.get_error_name);
    find(library, "cuMemGetAllocationGranularity", found.get_granularity);
    find(library, "cuMemAddressReserve", found.address_reserve);
    find(library, "cuMemAddressFree", found.address_free);
    find(library, "cuMemCreate", found.create);
    find(library, "cuMemRelease", found.release);
    find(library, "cuMemMap", found.map);
    find(library, "cuMemUnmap", found.unmap);
    find(library, "cuMemSetAccess", found.set_access);
    find(library, "cuMemGetAddressRange_v2", found.get_address_range);
    return found;
  }();
  return functions;
}

namespace {

CUmemAllocationProp properties_on(int gpu) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = gpu;
  // Asked for at creation or never: lets a later part of the project share pieces between processes.
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace

Arena::Arena(int gpu, std::string context) : gpu_(gpu), context_(std::move(context)) {
  const CUmemAllocationProp properties = properties_on(gpu);
  std::size_t granularity = 0;
  CHECK_DRIVER(driver().get_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  granularity_ = static_cast<base::Bytes>(granularity);

  std::size_t free = 0, total = 0;
  SHARDBOOK_CUDA(cudaMemGetInfo(&free, &total), context_);
  reserved_ = round_up(static_cast<base::Bytes>(total), granularity_);
  CHECK_DRIVER(driver().address_reserve(&base_, static_cast<std::size_t>(reserved_), 0, 0, 0));
}

Arena::~Arena() {
  for (const Piece& piece : pieces_) {
    driver().unmap(base_ + static_cast<CUdeviceptr>(piece.begin), static_cast<std::size_t>(piece.bytes));
    driver().release(piece.handle);
  }
  if (base_ != 0) driver().address_free(base_, static_cast<std::size_t>(reserved_));
}

void Arena::keep_whole() {
  SHARDBOOK_CHECK(used_ == 0, context_, ": memory was given before it was to be kept whole");
  whole_ = true;
}

void* Arena::allocate_whole(base::Bytes bytes) {
  const base::Bytes size = round_up(std::max<base::Bytes>(bytes, 1), alignment);
  if (used_ + size > shared_end_) {
    const base::Bytes piece = mapped_;
    const bool alone = size >= smallest_piece / 2;
    grow(size, alone ? 0 : smallest_piece);
    if (alone) return reinterpret_cast<void*>(base_ + static_cast<CUdeviceptr>(piece));
    used_ = piece;
    shared_end_ = mapped_;
  }
  used_ += size;
  return reinterpret_cast<void*>(base_ + static_cast<CUdeviceptr>(used_ - size));
}

void* Arena::allocate(base::Bytes bytes) {
  if (whole_) return allocate_whole(bytes);
  const base::Bytes end = used_ + round_up(std::max<base::Bytes>(bytes, 1), alignment);
  if (end > mapped_) grow(end - mapped_, smallest_piece);
  void* place = reinterpret_cast<void*>(base_ + static_cast<CUdeviceptr>(used_));
  used_ = end;
  return place;
}

CUresult Arena::create(base::Bytes bytes, CUmemGenericAllocationHandle& handle) const {
  const CUmemAllocationProp properties = properties_on(gpu_);
  return driver().create(&handle, static_cast<std::size_t>(bytes), &properties, 0);
}

void Arena::grow(base::Bytes bytes, base::Bytes at_least) {
  // A large piece where there is room, else just what is needed.
  const base::Bytes needed = round_up(bytes, granularity_);
  base::Bytes size = std::max(needed, round_up(at_least, granularity_));
  CUmemGenericAllocationHandle handle = 0;
  CUresult code = mapped_ + size <= reserved_ ? create(size, handle) : CUDA_ERROR_OUT_OF_MEMORY;
  if (code == CUDA_ERROR_OUT_OF_MEMORY && mapped_ + needed <= reserved_) {
    size = needed;
    code = create(size, handle);
  }
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0, total = 0;
    SHARDBOOK_CUDA(cudaMemGetInfo(&free, &total), context_);
    throw base::Failure(base::text(context_, ": GPU ", gpu_, " has ", free >> 20, " of ", total >> 20,
                                   " MiB free, and ", needed >> 20, " MiB more are needed"));
  }
  CHECK_DRIVER(code);
  pieces_.push_back({handle, mapped_, size});

  // Map it behind what is mapped, and allow this GPU to use it.
  const CUdeviceptr at = base_ + static_cast<CUdeviceptr>(mapped_);
  if (const CUresult map_code = driver().map(at, static_cast<std::size_t>(size), 0, handle, 0); map_code != CUDA_SUCCESS) {
    driver().release(handle);
    pieces_.pop_back();
    CHECK_DRIVER(map_code);
  }
  mapped_ += size;
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = gpu_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK_DRIVER(driver().set_access(at, static_cast<std::size_t>(size), &access, 1));

  const OwnedStream stream = make_stream(0, context_);
  SHARDBOOK_CUDA(cudaMemsetAsync(reinterpret_cast<void*>(at), 0, static_cast<std::size_t>(size), stream.get()), context_);
  SHARDBOOK_CUDA(cudaStreamSynchronize(stream.get()), context_);
}

}  // namespace shardbook::device::cuda
