// What does a mark between two ops cost? Ops on one stream, one behind the other, with a mark behind each, in turns:
//   none       no mark
//   order      an event that keeps no time
//   time       an event that keeps the time
//   kernel     a kernel of one thread that writes down the GPU's clock
//   early      the same, let in while the op before it still ends (programmatic stream serialization)
//   write      a number that the stream writes to memory
//   beside     an event that keeps no time, for which another stream waits, which then records one that keeps it
//   aside      the same, and that stream then runs such a kernel
// Said are an op's period, and, of marks that keep the time, by how much the median distance of two differs from it, and how far
// nine of ten distances are from their median at most.
#include <cuda.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "engine/device/cuda/owners.hpp"
#include "engine/program/recorder.hpp"
#include "tests/gpu/cost_bench.hpp"

namespace shardbook::cost {
namespace {

using device::cuda::OwnedEvent;

__device__ unsigned long long gpu_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__global__ void mark_kernel(unsigned long long* at) { *at = gpu_now(); }
__global__ void early_mark_kernel(unsigned long long* at) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  *at = gpu_now();
}
__global__ void work_kernel(float4* to, std::size_t count, float value) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) to[i] = make_float4(value, value, value, value);
}
__global__ void granule_kernel(unsigned long long* least) {
  unsigned long long before = gpu_now(), smallest = ~0ull;
  for (int changes = 0; changes < 200;) {
    const unsigned long long now = gpu_now();
    if (now != before) {
      smallest = now - before < smallest ? now - before : smallest;
      ++changes;
      before = now;
    }
  }
  *least = smallest;
}

constexpr int ops = 300, turns = 7;
enum Kind { none, order, time, kernel, early, write, beside, aside, kinds };
constexpr const char* names[kinds] = {"none", "order", "time", "kernel", "early", "write", "beside", "aside"};

struct Bench {
  device::cuda::OwnedStream stream = device::cuda::make_stream(0, "marks"), other = device::cuda::make_stream(0, "marks");
  std::vector<OwnedEvent> order_events, time_events;
  OwnedEvent begin = device::cuda::make_timed_event("marks"), end = device::cuda::make_timed_event("marks");
  float4* memory = nullptr;
  unsigned long long* at = nullptr;

  void mark(Kind kind, int i) {
    const std::size_t which = static_cast<std::size_t>(i);
    switch (kind) {
      case order: SHARDBOOK_CUDA(cudaEventRecord(order_events[which].get(), stream.get()), "order"); break;
      case time: SHARDBOOK_CUDA(cudaEventRecord(time_events[which].get(), stream.get()), "time"); break;
      case kernel: mark_kernel<<<1, 1, 0, stream.get()>>>(at + i); break;
      case early: {
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(1);
        config.blockDim = dim3(1);
        config.stream = stream.get();
        config.attrs = &attribute;
        config.numAttrs = 1;
        SHARDBOOK_CUDA(cudaLaunchKernelEx(&config, early_mark_kernel, at + i), "early");
        break;
      }
      case write: {
        using Write = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
        static const Write function = [] {
          void* found = nullptr;
          SHARDBOOK_CUDA(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &found, 12000, cudaEnableDefault, nullptr), "write");
          return reinterpret_cast<Write>(found);
        }();
        if (function(stream.get(), reinterpret_cast<CUdeviceptr>(at + i), 1, 0) != CUDA_SUCCESS) throw base::Failure("cuStreamWriteValue32 failed");
        break;
      }
      case beside:
      case aside:
        SHARDBOOK_CUDA(cudaEventRecord(order_events[which].get(), stream.get()), "beside");
        SHARDBOOK_CUDA(cudaStreamWaitEvent(other.get(), order_events[which].get(), 0), "beside");
        if (kind == beside) SHARDBOOK_CUDA(cudaEventRecord(time_events[which].get(), other.get()), "beside");
        else mark_kernel<<<1, 1, 0, other.get()>>>(at + i);
        break;
      default: break;
    }
  }

  // ns of the stream and of the host, each of an op; a thousand longer ops first, so that the host is ahead.
  void run(Kind kind, std::size_t bytes, double& device_ns, double& host_ns) {
    const std::size_t count = bytes / sizeof(float4);
    const unsigned blocks = static_cast<unsigned>(count < 132 * 8 * 256 ? (count + 255) / 256 : 132 * 8);
    for (int i = 0; i < 12; ++i) work_kernel<<<132 * 8, 256, 0, stream.get()>>>(memory, (std::size_t{1} << 30) / sizeof(float4), 1.0f);
    SHARDBOOK_CUDA(cudaEventRecord(begin.get(), stream.get()), "run");
    const base::Nanoseconds before = program::host_now();
    for (int i = 0; i < ops; ++i) {
      work_kernel<<<blocks, 256, 0, stream.get()>>>(memory, count, static_cast<float>(i));
      mark(kind, i);
    }
    host_ns = static_cast<double>(program::host_now() - before) / ops;
    SHARDBOOK_CUDA(cudaEventRecord(end.get(), stream.get()), "run");
    SHARDBOOK_CUDA(cudaDeviceSynchronize(), "run");
    float milliseconds = 0;
    SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "run");
    device_ns = 1e6 * static_cast<double>(milliseconds) / ops;
  }

  // Distances of neighbouring marks, ns.
  std::vector<double> distances(Kind kind) const {
    std::vector<double> all;
    std::vector<unsigned long long> seen(ops);
    SHARDBOOK_CUDA(cudaMemcpy(seen.data(), at, ops * sizeof(unsigned long long), cudaMemcpyDefault), "distances");
    for (std::size_t i = ops / 4; i + 1 < ops; ++i) {
      float milliseconds = 0;
      const bool events = kind == time || kind == beside;
      if (events) SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, time_events[i].get(), time_events[i + 1].get()), "distances");
      all.push_back(events ? 1e6 * static_cast<double>(milliseconds) : static_cast<double>(seen[i + 1]) - static_cast<double>(seen[i]));
    }
    return all;
  }
};

}  // namespace

void of_marks() {
  Bench bench;
  SHARDBOOK_CUDA(cudaMalloc(reinterpret_cast<void**>(&bench.memory), std::size_t{1} << 30), "marks");
  SHARDBOOK_CUDA(cudaMalloc(reinterpret_cast<void**>(&bench.at), ops * sizeof(unsigned long long)), "marks");
  for (int i = 0; i < ops; ++i) {
    bench.order_events.push_back(device::cuda::make_order_event("marks"));
    bench.time_events.push_back(device::cuda::make_timed_event("marks"));
  }
  granule_kernel<<<1, 1, 0, bench.stream.get()>>>(bench.at);
  SHARDBOOK_CUDA(cudaDeviceSynchronize(), "marks");
  unsigned long long granule = 0;
  SHARDBOOK_CUDA(cudaMemcpy(&granule, bench.at, sizeof granule, cudaMemcpyDefault), "marks");
  std::printf("the clock that kernels read goes in steps of %llu ns\n", granule);
  for (const std::size_t bytes : {std::size_t{1} << 14, std::size_t{1} << 23, std::size_t{1} << 26}) {
    std::vector<double> device_ns[kinds], host_ns[kinds];
    double spread[kinds] = {}, far[kinds] = {};
    for (int turn = -1; turn < turns; ++turn) {
      for (int kind = 0; kind < kinds; ++kind) {
        double device = 0, host = 0;
        bench.run(static_cast<Kind>(kind), bytes, device, host);
        if (turn >= 0) device_ns[kind].push_back(device), host_ns[kind].push_back(host);
        if (kind == none || kind == order || kind == write) continue;
        std::vector<double> distances = bench.distances(static_cast<Kind>(kind));
        const double middle = median(distances);
        spread[kind] = middle - device;
        for (double& distance : distances) distance = std::abs(distance - middle);
        std::sort(distances.begin(), distances.end());
        far[kind] = distances[distances.size() * 9 / 10];
      }
    }
    for (int kind = 0; kind < kinds; ++kind) {
      std::printf("ops of %8zu bytes, mark %-6s  %8.0f ns an op, %+6.0f ns for the mark; the host %6.0f ns, %+6.0f ns; distances %+6.0f ns, 90 %% within %6.0f ns\n", bytes, names[kind], median(device_ns[kind]),
                  median(device_ns[kind]) - median(device_ns[none]), median(host_ns[kind]), median(host_ns[kind]) - median(host_ns[none]), spread[kind], far[kind]);
    }
  }
  cudaFree(bench.memory);
  cudaFree(bench.at);
}

}  // namespace shardbook::cost
