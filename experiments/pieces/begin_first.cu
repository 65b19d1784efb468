// Two questions to one GPU about matmuls in pieces. Who begins first, where a matmul and a kernel like NCCL's wait for one
// event: and does it help to let the matmul wait for an event of the other's stream, or for a small kernel? And what does a matmul
// lose in pieces?
//
//     nvcc -O2 -std=c++17 -arch=sm_90 -o begin_first experiments/pieces/begin_first.cu -lcublas && ./begin_first
//
// The other kernel stands for a send and a receive: 24 blocks of 512 threads with 104 kB of shared memory each, as those of
// NCCL 2.28 in traces of H200s, that stay for 40 µs and move nothing.
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    if (const auto code = (call); static_cast<int>(code) != 0) {                       \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(code)); \
      return 1;                                                                        \
    }                                                                                  \
  } while (false)

constexpr int room = 104 * 1024;

__global__ void stay(long long ns) {
  extern __shared__ char held[];
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  held[threadIdx.x] = 0;
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

struct Size {
  const char* name;
  int m, n, k;
};

// What stands on the matmul's stream before it.
struct Way {
  const char* name;
  bool waits;            // for an event that the other stream records before its kernel
  bool fills;            // a memset of 64 bytes
  long long stays_ns;    // a kernel of one block; below 0: none
};
constexpr Way ways[] = {{"nothing", false, false, -1}, {"event", true, false, -1}, {"kernel", false, false, 0}, {"event, kernel", true, false, 0},
                        {"event, memset", true, true, -1}, {"event, 2 us", true, false, 2000}, {"event, 5 us", true, false, 5000}};

float middle(std::vector<float> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2] * 1000;   // µs
}

int main() {
  cudaStream_t compute, other;
  int lowest, highest;
  CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  CHECK(cudaStreamCreateWithPriority(&compute, cudaStreamNonBlocking, lowest));
  CHECK(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, highest));
  cublasHandle_t blas;
  CHECK(cublasCreate(&blas));
  CHECK(cublasSetStream(blas, compute));
  void *a, *b, *c, *workspace;
  const std::size_t most = std::size_t{16384} * 16384 * 2;
  for (void** memory : {&a, &b, &c}) {
    CHECK(cudaMalloc(memory, most));
    CHECK(cudaMemset(*memory, 0, most));
  }
  CHECK(cudaMalloc(&workspace, 64 << 20));
  CHECK(cublasSetWorkspace(blas, workspace, 64 << 20));
  CHECK(cudaFuncSetAttribute(stay, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  cudaEvent_t produced, reached, timed[4];
  for (cudaEvent_t* event : {&produced, &reached}) CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  for (cudaEvent_t& event : timed) CHECK(cudaEventCreate(&event));
  // y[m, n] = x[m, k] W[n, k]ᵀ, row-major
  const auto multiply = [&](int m, int n, int k) {
    const float one = 1, zero = 0;
    return cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16BF, k, a, CUDA_R_16BF, k, &zero, c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  };
  const std::vector<Size> sizes = {{"gpt-1.3b tp 2 projection", 8192, 2048, 1024}, {"gpt-1.3b tp 2 qkv", 8192, 3072, 2048}, {"gpt-1.3b tp 2 up", 8192, 4096, 2048}, {"gpt-1.3b tp 2 down", 8192, 2048, 4096},
                                   {"gpt-6.9b tp 2 projection", 4096, 4096, 2048}, {"gpt-6.9b tp 2 qkv", 4096, 6144, 4096}, {"gpt-6.9b tp 2 up", 4096, 8192, 4096}, {"gpt-6.9b tp 2 down", 4096, 4096, 8192}};

  std::printf("Ends of the other kernel / of the matmul, in us after the event, where the matmul waits for\n%-26s %8s %8s %8s |", "us", "whole", "2 halves", "a half");
  for (const Way& way : ways) std::printf(" %13s", way.name);
  std::printf("\n");
  for (const Size& size : sizes) {
    const int half = size.m / 2;
    for (int i = 0; i < 40; ++i) CHECK(multiply(i % 2 == 0 ? size.m : half, size.n, size.k));
    // Back to back, ten at a time
    const auto time = [&](int pieces, int m, float* us) {
      std::vector<float> all;
      for (int turn = 0; turn < 15; ++turn) {
        CHECK(cudaEventRecord(timed[0], compute));
        for (int i = 0; i < 10 * pieces; ++i) CHECK(multiply(m, size.n, size.k));
        CHECK(cudaEventRecord(timed[1], compute));
        CHECK(cudaEventSynchronize(timed[1]));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, timed[0], timed[1]));
        all.push_back(ms / 10);
      }
      *us = middle(all);
      return 0;
    };
    float whole, halves, one_half;
    if (time(1, size.m, &whole) != 0 || time(2, half, &halves) != 0 || time(1, half, &one_half) != 0) return 1;
    std::printf("%-26s %8.1f %8.1f %8.1f |", size.name, whole, halves, one_half);
    // A matmul, the event; then a matmul on its stream and the other kernel on the other
    for (const Way& way : ways) {
      std::vector<float> of_other, of_matmul;
      for (int turn = 0; turn < 25; ++turn) {
        for (int i = 0; i < 4; ++i) CHECK(multiply(half, size.n, size.k));   // so that the host is ahead
        CHECK(cudaEventRecord(timed[0], compute));
        CHECK(cudaEventRecord(produced, compute));
        CHECK(cudaStreamWaitEvent(other, produced, 0));
        if (way.waits) {
          CHECK(cudaEventRecord(reached, other));
          CHECK(cudaStreamWaitEvent(compute, reached, 0));
        }
        stay<<<24, 512, room, other>>>(40'000);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(timed[1], other));
        if (way.fills) CHECK(cudaMemsetAsync(workspace, 0, 64, compute));
        if (way.stays_ns >= 0) stay<<<1, 32, 1024, compute>>>(way.stays_ns);
        CHECK(multiply(half, size.n, size.k));
        CHECK(cudaEventRecord(timed[2], compute));
        CHECK(cudaDeviceSynchronize());
        float ms;
        CHECK(cudaEventElapsedTime(&ms, timed[0], timed[1]));
        of_other.push_back(ms);
        CHECK(cudaEventElapsedTime(&ms, timed[0], timed[2]));
        of_matmul.push_back(ms);
      }
      std::printf(" %6.1f/%6.1f", middle(of_other), middle(of_matmul));
    }
    std::printf("\n");
  }
  return 0;
}
