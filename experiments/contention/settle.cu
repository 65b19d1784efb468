// How soon does a GPU find the clock that its limit on power has for a matmul?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -o settle experiments/contention/settle.cu -lcublas && ./settle > settle.txt
//
// One GPU, bf16, numbers drawn. One matmul again and again, for so many milliseconds, after a second of rest or right behind another;
// all of it twice. A line for each: "139ms:196.1" is what one took, us, the mean of those that began since the mark before this one.
// Between two marks lie events round so many matmuls as take some 2 ms.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) check((call) == 0, #call)
static void check(bool good, const char* call) {
  if (good) return;
  std::fprintf(stderr, "%s failed: %s\n", call, cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

// Sums of four uniform numbers: about normal.
__global__ void draw(__nv_bfloat16* to, std::size_t count, unsigned seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) {
    unsigned state = static_cast<unsigned>(i) * 2654435761u + seed;
    state ^= state >> 15, state *= 2246822519u, state ^= state >> 13, state *= 3266489917u, state ^= state >> 16;
    float sum = 0;
    for (int draws = 0; draws < 4; ++draws) state = state * 1664525u + 1013904223u, sum += static_cast<float>(state >> 8) / (1 << 24);
    to[i] = __float2bfloat16((sum - 2) * 1.7f);
  }
}

struct Matmul {
  int m, n, k, between_marks;
};

struct Bench {
  __nv_bfloat16 *a, *b, *c;
  cublasHandle_t blas;

  Bench() {
    const std::size_t most = std::size_t{8192} * 8192;
    for (__nv_bfloat16** one : {&a, &b, &c}) CHECK(cudaMalloc(one, most * sizeof(__nv_bfloat16)));
    draw<<<1000, 256>>>(a, most, 1);
    draw<<<1000, 256>>>(b, most, 2);
    CHECK(cublasCreate(&blas));
  }

  void issue(const Matmul& of) {
    const float one = 1, zero = 0;
    CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, of.n, of.m, of.k, &one, a, CUDA_R_16BF, of.k, b, CUDA_R_16BF, of.k, &zero, c, CUDA_R_16BF, of.n,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  void look(const char* when, const Matmul& of, double wanted_ms) {
    constexpr double guess_flops_per_us = 700e6;
    const double piece_us = of.between_marks * 2.0 * of.m * of.n * of.k / guess_flops_per_us;
    const int pieces = std::min(900, static_cast<int>(wanted_ms * 1e3 / piece_us));
    std::vector<cudaEvent_t> marks(pieces + 1);
    for (cudaEvent_t& mark : marks) CHECK(cudaEventCreate(&mark));
    CHECK(cudaEventRecord(marks[0]));
    for (int piece = 0; piece < pieces; ++piece) {
      for (int at = 0; at < of.between_marks; ++at) issue(of);
      CHECK(cudaEventRecord(marks[piece + 1]));
    }
    CHECK(cudaDeviceSynchronize());
    std::printf("%s %dx%dx%d:", when, of.m, of.n, of.k);
    double told_from = 0, sum_ms = 0;
    int matmuls = 0;
    for (int piece = 0; piece < pieces; ++piece) {
      float took_ms, at_ms;
      CHECK(cudaEventElapsedTime(&took_ms, marks[piece], marks[piece + 1]));
      CHECK(cudaEventElapsedTime(&at_ms, marks[0], marks[piece]));
      sum_ms += took_ms, matmuls += of.between_marks;
      if (at_ms < told_from) continue;
      std::printf(" %.0fms:%.1f", at_ms, sum_ms / matmuls * 1e3);
      sum_ms = matmuls = 0;
      told_from = told_from == 0 ? 2 : told_from * 1.6;
    }
    std::printf("\n");
    for (cudaEvent_t mark : marks) CHECK(cudaEventDestroy(mark));
  }
};

int main() {
  Bench bench;
  const Matmul huge{8192, 8192, 8192, 1}, square{4096, 4096, 4096, 10}, deep{2048, 2048, 8192, 20}, light{2048, 8192, 512, 60};
  for (const Matmul& one : {huge, deep, square, light}) bench.issue(one);
  CHECK(cudaDeviceSynchronize());
  for (int turn = 0; turn < 2; ++turn) {
    sleep(1);
    bench.look("after idle", huge, 1200);
    bench.look("after that", deep, 400);
    bench.look("after that", huge, 400);
    bench.look("after that", square, 400);
    bench.look("after that", light, 200);
    bench.look("after that", square, 400);
    sleep(1);
    bench.look("after idle", square, 800);
    sleep(1);
    bench.look("after idle", deep, 800);
  }
}
