// Which of cuBLASLt's algorithms is the fastest for each matmul of a block, and does its heuristic name it first?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 experiments/speed/algorithms.cu -lcublasLt -o algorithms && ./algorithms
//
// Shapes are those of gpt-1.3b with 8192 tokens on a GPU, types those of the engine: bf16 in, bf16 out, f32 for weight gradients.
// Numbers are random, for a GPU that multiplies zeros draws less power and runs faster. Each of the first eight
// algorithms runs 3 times and then 12 times between two marks, the list twice over; what is printed is the lesser of the
// two. Of each shape also what it is with the epilogues of kernels/cuda/gemm.cu; all of that once more while 24 blocks as large
// as NCCL's stay on multiprocessors of their own and do nothing ("held"), and then also with so many fewer promised to the
// heuristic (CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET).
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    if (const auto code = (call); code != decltype(code){}) {                           \
      std::fprintf(stderr, "%s failed: %d\n", #call, static_cast<int>(code));           \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (0)

__global__ void randomise(__nv_bfloat16* to, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += std::int64_t{gridDim.x} * blockDim.x) {
    std::uint64_t state = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15ull;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ull;
    state ^= state >> 31;
    to[i] = __float2bfloat16(static_cast<float>(state >> 40) / (1 << 23) - 1.0f);
  }
}

// Blocks of NCCL's size that stay until they are told to end.
constexpr int held_blocks = 24, held_threads = 640, held_bytes = 104 << 10;
__global__ void hold(volatile int* words) {
  if (threadIdx.x == 0) {
    atomicAdd_system(const_cast<int*>(words) + 1, 1);
    while (words[0] == 0) __nanosleep(1000);
  }
}

enum class Beside { nothing, bias, gelu, gelu_gradient, sums };
struct Shape {
  const char* name;
  std::int64_t m, n, k;   // row-major: C[m, n] = op(A)[m, k] · op(B)[k, n]
  bool a_transposed, b_transposed, f32;
  Beside beside;
};

constexpr std::int64_t N = 8192, D = 2048, F = 8192, V = 50304;
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
constexpr int most = 8, warm_ups = 3, repeats = 12, rounds = 2;

struct Bench {
  cublasLtHandle_t handle;
  char *a, *b, *c, *aux, *workspace;
  cudaEvent_t begin, end;

  volatile int* words;   // pinned: whether to end, and how many hold
  cudaStream_t stream, other;

  void start_holding() {
    words[0] = words[1] = 0;
    hold<<<held_blocks, held_threads, held_bytes, other>>>(words);
    CHECK(cudaGetLastError());
    while (words[1] < held_blocks) {
    }
  }
  void stop_holding() {
    words[0] = 1;
    CHECK(cudaStreamSynchronize(other));
  }

  void time(const Shape& s, int multiprocessors, bool held) {
    CHECK(cudaDeviceSynchronize());
    if (held) start_holding();
    measure(s, multiprocessors, held);
    if (held) stop_holding();
  }

  void measure(const Shape& s, int multiprocessors, bool held) {
    cublasLtMatmulDesc_t product;
    CHECK(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set = [&](cublasLtMatmulDescAttributes_t what, auto value) { CHECK(cublasLtMatmulDescSetAttribute(product, what, &value, sizeof(value))); };
    set(CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    const cudaDataType_t out = s.f32 ? CUDA_R_32F : CUDA_R_16BF;
    constexpr cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB};
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[static_cast<int>(s.beside)]);
    if (s.beside == Beside::bias || s.beside == Beside::gelu || s.beside == Beside::sums) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, out);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(workspace + workspace_bytes));
    }
    if (s.beside == Beside::gelu || s.beside == Beside::gelu_gradient) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux));
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.n);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, out);
    }
    if (multiprocessors > 0) set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors);
    cublasLtMatrixLayout_t left, right, result;
    const auto layout = [](cublasLtMatrixLayout_t* l, cudaDataType_t type, bool swapped, std::int64_t rows, std::int64_t columns) {
      if (swapped) std::swap(rows, columns);
      CHECK(cublasLtMatrixLayoutCreate(l, type, columns, rows, columns));
    };
    layout(&left, CUDA_R_16BF, s.b_transposed, s.k, s.n);
    layout(&right, CUDA_R_16BF, s.a_transposed, s.m, s.k);
    layout(&result, out, false, s.m, s.n);
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof(workspace_bytes)));
    const std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof(scheme)));
    cublasLtMatmulHeuristicResult_t answers[most];
    int count = 0;
    const cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(handle, product, left, right, result, result, preference, most, answers, &count);
    if (asked != CUBLAS_STATUS_SUCCESS || count == 0) {
      std::printf("%-34s no algorithm (%s)\n", s.name, cublasLtGetStatusName(asked));
      return;
    }
    float best[most];
    std::fill(best, best + most, 1e9f);
    const float one = 1, zero = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < count; ++i) {
        const auto run = [&](int times) {
          for (int t = 0; t < times; ++t) {
            CHECK(cublasLtMatmul(handle, product, &one, b, left, a, right, &zero, c, result, c, result, &answers[i].algo, workspace, workspace_bytes, stream));
          }
        };
        run(warm_ups);
        CHECK(cudaEventRecord(begin, stream));
        run(repeats);
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        best[i] = std::min(best[i], ms / repeats);
      }
    }
    const int winner = static_cast<int>(std::min_element(best, best + count) - best);
    std::printf("%-34s %s sms %3d  first %7.1f us %4.0f TFLOP/s  best (no. %d) %7.1f us  %+5.1f %%  all", s.name, held ? "held" : "free", multiprocessors, 1e3 * best[0],
                2e-9 * static_cast<double>(s.m * s.n * s.k) / best[0], winner + 1, 1e3 * best[winner], 100 * (best[winner] / best[0] - 1));
    for (int i = 0; i < count; ++i) std::printf(" %.0f", 1e3 * best[i]);
    std::printf("\n");
    std::fflush(stdout);
  }
};

int main() {
  Bench bench{};
  CHECK(cublasLtCreate(&bench.handle));
  const std::size_t large = static_cast<std::size_t>(N) * V * 4;
  for (char** place : {&bench.a, &bench.b, &bench.c, &bench.aux}) CHECK(cudaMalloc(place, large));
  CHECK(cudaMalloc(&bench.workspace, workspace_bytes + (1 << 20)));
  for (char* place : {bench.a, bench.b, bench.c, bench.aux}) randomise<<<2048, 256>>>(reinterpret_cast<__nv_bfloat16*>(place), large / 2);
  CHECK(cudaEventCreate(&bench.begin));
  CHECK(cudaEventCreate(&bench.end));
  CHECK(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&bench.other, cudaStreamNonBlocking));
  int* words;
  CHECK(cudaMallocHost(&words, 2 * sizeof(int)));
  bench.words = words;
  CHECK(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, held_bytes));
  struct Linear {
    const char* names[4];
    std::int64_t out, in;
    bool activated, before;   // followed by GELU; after GELU
  };
  const Linear linears[] = {{{"qkv forward", "qkv input gradient", "qkv weight gradient", "qkv both gradients"}, 3 * D, D, false, false},
                            {{"projection forward", "projection input gradient", "projection weight gradient", "projection both gradients"}, D, D, false, false},
                            {{"up forward", "up input gradient", "up weight gradient", "up both gradients"}, F, D, true, false},
                            {{"down forward", "down input gradient", "down weight gradient", "down both gradients"}, D, F, false, true}};
  struct Way {
    int sms;
    bool held;
  };
  for (const auto& [sms, held] : {Way{0, false}, Way{108, false}, Way{0, true}, Way{108, true}}) {
    for (const Linear& l : linears) {
      bench.time({l.names[0], N, l.out, l.in, false, true, false, l.before || l.out == D ? Beside::nothing : Beside::bias}, sms, held);
      if (l.activated) bench.time({"up forward, gelu", N, l.out, l.in, false, true, false, Beside::gelu}, sms, held);
      bench.time({l.names[1], N, l.in, l.out, false, false, false, Beside::nothing}, sms, held);
      if (l.before) bench.time({"down input gradient, gelu'", N, l.in, l.out, false, false, false, Beside::gelu_gradient}, sms, held);
      bench.time({l.names[2], l.out, l.in, N, true, false, true, Beside::nothing}, sms, held);
      bench.time({l.names[3], l.out, l.in, N, true, false, true, Beside::sums}, sms, held);
    }
  }
  return 0;
}
