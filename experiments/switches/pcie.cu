// How long does a copy between page-locked host memory and a GPU take: alone, both ways at once, on both GPUs at once?
//
//   nvcc -O2 -arch=sm_90 -o pcie experiments/switches/pcie.cu && ./pcie
//
// Prints ns a copy, from start to start of copies that follow each other on a stream: a stream for each direction.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(code));
  std::exit(1);
}

constexpr std::size_t most = std::size_t{256} << 20;
constexpr int up = 0, down = 1;

struct Gpu {
  int id = 0;
  char* host[2] = {};
  char* device[2] = {};
  cudaStream_t stream[2] = {};
};

static Gpu make(int id) {
  Gpu gpu;
  gpu.id = id;
  check(cudaSetDevice(id));
  for (int way : {up, down}) {
    check(cudaHostAlloc(reinterpret_cast<void**>(&gpu.host[way]), most, cudaHostAllocDefault));
    std::memset(gpu.host[way], 0, most);
    check(cudaMalloc(reinterpret_cast<void**>(&gpu.device[way]), most));
    check(cudaStreamCreateWithFlags(&gpu.stream[way], cudaStreamNonBlocking));
  }
  return gpu;
}

// ns of a copy in each direction that is asked for.
struct Times {
  double ns[2] = {};
};

static Times measure(const Gpu& gpu, std::size_t bytes, std::vector<int> ways) {
  check(cudaSetDevice(gpu.id));
  const std::size_t copies = std::max<std::size_t>(8, std::min<std::size_t>(400, (std::size_t{3} << 30) / bytes));
  cudaEvent_t begin[2], end[2];
  for (int way : ways) {
    check(cudaEventCreate(&begin[way]));
    check(cudaEventCreate(&end[way]));
  }
  for (int round = 0; round < 2; ++round) {   // the first warms up
    check(cudaDeviceSynchronize());
    for (int way : ways) check(cudaEventRecord(begin[way], gpu.stream[way]));
    for (std::size_t copy = 0; copy < copies; ++copy) {
      for (int way : ways) {
        if (way == up) check(cudaMemcpyAsync(gpu.device[up], gpu.host[up], bytes, cudaMemcpyHostToDevice, gpu.stream[up]));
        else check(cudaMemcpyAsync(gpu.host[down], gpu.device[down], bytes, cudaMemcpyDeviceToHost, gpu.stream[down]));
      }
    }
    for (int way : ways) check(cudaEventRecord(end[way], gpu.stream[way]));
    check(cudaDeviceSynchronize());
  }
  Times times;
  for (int way : ways) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin[way], end[way]));
    times.ns[way] = ms * 1e6 / static_cast<double>(copies);
  }
  return times;
}

int main() {
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus));
  std::vector<Gpu> all;
  for (int id = 0; id < std::min(gpus, 2); ++id) all.push_back(make(id));
  const auto together = [&](std::size_t bytes, const std::vector<int>& ways) {
    std::vector<Times> times(all.size());
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < all.size(); ++at) threads.emplace_back([&, at] { times[at] = measure(all[at], bytes, ways); });
    for (std::thread& thread : threads) thread.join();
    return times;
  };
  std::printf("%10s | one GPU %10s %10s, both ways %10s %10s | both GPUs %10s %10s, both ways %10s %10s\n", "bytes", "up", "down", "up", "down", "up", "down", "up", "down");
  for (std::size_t bytes : {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{16} << 20, std::size_t{64} << 20, most}) {
    const Times both = measure(all[0], bytes, {up, down});
    std::printf("%10zu |         %10.0f %10.0f            %10.0f %10.0f", bytes, measure(all[0], bytes, {up}).ns[up], measure(all[0], bytes, {down}).ns[down], both.ns[up], both.ns[down]);
    const double up_alone = together(bytes, {up})[0].ns[up], down_alone = together(bytes, {down})[0].ns[down];
    const Times both_gpus = together(bytes, {up, down})[0];
    std::printf(" |           %10.0f %10.0f            %10.0f %10.0f\n", up_alone, down_alone, both_gpus.ns[up], both_gpus.ns[down]);
  }
}
