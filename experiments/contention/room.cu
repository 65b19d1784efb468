// What does a matmul lose beside a collective, and what if it leaves room? And when does a collective get its room?
//
//   nvcc -O2 -std=c++17 -arch=sm_90 -o room experiments/contention/room.cu -lcublasLt && ./room room.json
//   CUDA_DEVICE_MAX_CONNECTIONS=1 ./room race.json race
//
// One GPU. In the place of the collective stands a kernel that holds as many multiprocessors as NCCL's (16 to 32 blocks of
// 544 threads with 84 KiB of shared memory, on a stream of high priority) and copies memory. Matmuls are those of a block,
// through cuBLASLt as engine/kernels/cuda/gemm.cu asks for them; "left" is how many multiprocessors they leave
// (CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = all - left).
//
// "room": each matmul alone, and beside a stand-in that runs all the while. Times are between two events round it, us. Each
// as cuBLASLt's heuristic has it, and as the first of its answers whose blocks stand alone: others come in clusters of two or
// more, that need neighbouring multiprocessors. And beside a stand-in that only holds its multiprocessors and moves nothing.
// "race": input gradient, then a sum over ranks of it (the stand-in, of a fixed number of bytes), and at once the weight
// gradient, as in the backward of a column-parallel linear. How long after the input gradient does the sum's last block
// begin, when has it ended, and when both?
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define CHECK(call) check((call) == 0, #call)
static void check(bool good, const char* call) {
  if (good) return;
  std::fprintf(stderr, "%s failed: %s\n", call, cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

constexpr int most_blocks = 64, threads = 544, shared_bytes = 84 << 10;
constexpr std::size_t stand_in_bytes = std::size_t{256} << 20, workspace_bytes = std::size_t{32} << 20;

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void fill(__nv_bfloat16* to, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t bits = i * 0x9E3779B97F4A7C15ull;
    bits ^= bits >> 31;
    bits *= 0xBF58476D1CE4E5B9ull;
    to[i] = __float2bfloat16(static_cast<float>(static_cast<int>(bits >> 40 & 0xFFFF) - 32768) * 3e-5f);
  }
}

__global__ void stamp(unsigned long long* at) { *at = now(); }
__global__ void idle(unsigned long long ns) {
  const unsigned long long end = now() + ns;
  while (now() < end) {
  }
}

// Copies pieces of its block's part, over and over: for so many ns, or so many bytes a block.
__global__ void stand_in(const uint4* from, uint4* to, unsigned long long for_ns, std::size_t bytes_a_block, bool moves, unsigned long long* began, unsigned long long* ended) {
  extern __shared__ char held[];
  if (threadIdx.x == 0) began[blockIdx.x] = now(), held[0] = 0;
  const unsigned long long end = now() + for_ns;
  const std::size_t part = stand_in_bytes / sizeof(uint4) / gridDim.x, begin = part * blockIdx.x;
  constexpr std::size_t a_turn = 8 * threads;
  const std::size_t turns = bytes_a_block / sizeof(uint4) / a_turn;
  for (std::size_t turn = 0; for_ns > 0 ? now() < end : turn < turns; ++turn) {
    if (!moves) continue;
    const std::size_t at = begin + turn * a_turn % (part - a_turn) + threadIdx.x;
    uint4 piece[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) piece[i] = from[at + i * threads];
#pragma unroll
    for (int i = 0; i < 8; ++i) to[at + i * threads] = piece[i];
  }
  if (threadIdx.x == 0) ended[blockIdx.x] = now();
}

struct Shape {
  const char* name;
  std::int64_t m, n, k;
  bool a_transposed, b_transposed, bias, f32;
};

static std::vector<Shape> block_of(std::int64_t N, std::int64_t D, std::int64_t F, std::int64_t tp) {
  struct Linear {
    const char* names[3];
    std::int64_t out, in;
  };
  const std::vector<Linear> linears = {{{"qkv forward", "qkv input gradient", "qkv weight gradient"}, 3 * D / tp, D},
                                       {{"projection forward", "projection input gradient", "projection weight gradient"}, D, D / tp},
                                       {{"up forward", "up input gradient", "up weight gradient"}, F / tp, D},
                                       {{"down forward", "down input gradient", "down weight gradient"}, D, F / tp}};
  std::vector<Shape> shapes;
  for (const Linear& l : linears) {
    shapes.push_back({l.names[0], N, l.out, l.in, false, true, l.out != D, false});
    shapes.push_back({l.names[1], N, l.in, l.out, false, false, false, false});
    shapes.push_back({l.names[2], l.out, l.in, N, true, false, false, true});
  }
  return shapes;
}

struct Matmul {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t left, right, result;
  cublasLtMatmulAlgo_t algorithm;
  std::int32_t tile = 0, stages = 0;
  std::uint16_t cluster = 0;
  bool exists = false;
};

struct Gpu {
  cudaDeviceProp properties;
  cublasLtHandle_t blas;
  cudaStream_t compute, high, normal;
  cudaEvent_t begin, end, produced, begun, all;
  char *a, *b, *c, *workspace, *from, *to;
  unsigned long long *times, *host_times;   // most_blocks began, most_blocks ended, one stamp before and one behind
};

// `alone`: blocks that stand alone; there may be no such algorithm.
static Matmul plan(const Gpu& gpu, const Shape& s, int left, bool alone = false) {
  Matmul made = {};
  CHECK(cublasLtMatmulDescInit(&made.product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& value) { CHECK(cublasLtMatmulDescSetAttribute(&made.product, what, &value, sizeof(value))); };
  // Row-major: the transpose in column-major, operands swapped
  set(CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (s.bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(gpu.workspace));
  }
  if (left > 0) set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(gpu.properties.multiProcessorCount - left));
  const auto matrix = [](cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
    CHECK(cublasLtMatrixLayoutInit(&layout, type, columns, rows, columns));
  };
  matrix(made.left, CUDA_R_16BF, s.b_transposed ? s.n : s.k, s.b_transposed ? s.k : s.n);
  matrix(made.right, CUDA_R_16BF, s.a_transposed ? s.k : s.m, s.a_transposed ? s.m : s.k);
  matrix(made.result, s.f32 ? CUDA_R_32F : CUDA_R_16BF, s.m, s.n);
  cublasLtMatmulPreferenceOpaque_t preference;
  CHECK(cublasLtMatmulPreferenceInit(&preference));
  const std::uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof(workspace_bytes)));
  CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof(sums)));
  constexpr int asked = 64;
  std::vector<cublasLtMatmulHeuristicResult_t> all(asked);
  int answers = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(gpu.blas, &made.product, &made.left, &made.right, &made.result, &made.result, &preference, alone ? asked : 1, all.data(), &answers));
  check(alone || answers == 1, s.name);
  for (int answer = 0; answer < answers && !made.exists; ++answer) {
    made.algorithm = all[answer].algo;
    const auto read = [&made](cublasLtMatmulAlgoConfigAttributes_t what, auto& value) {
      std::size_t written = 0;
      (void)cublasLtMatmulAlgoConfigGetAttribute(&made.algorithm, what, &value, sizeof(value), &written);
    };
    read(CUBLASLT_ALGO_CONFIG_TILE_ID, made.tile);
    read(CUBLASLT_ALGO_CONFIG_STAGES_ID, made.stages);
    read(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, made.cluster);
    made.exists = !alone || made.cluster == CUBLASLT_CLUSTER_SHAPE_1x1x1;
  }
  return made;
}

static void issue(const Gpu& gpu, Matmul made) {
  const float one = 1, zero = 0;
  CHECK(cublasLtMatmul(gpu.blas, &made.product, &one, gpu.b, &made.left, gpu.a, &made.right, &zero, gpu.c, &made.result, gpu.c, &made.result, &made.algorithm, gpu.workspace, workspace_bytes, gpu.compute));
}

static void issue_stand_in(const Gpu& gpu, cudaStream_t stream, int blocks, unsigned long long for_ns, std::size_t bytes_a_block, bool tells_start = false, bool moves = true) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = threads, config.dynamicSmemBytes = shared_bytes, config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
  attribute.val.launchCompletionEvent.event = gpu.begun;
  if (tells_start) config.attrs = &attribute, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, stand_in, reinterpret_cast<const uint4*>(gpu.from), reinterpret_cast<uint4*>(gpu.to), for_ns, bytes_a_block, moves, gpu.times, gpu.times + most_blocks));
}

struct Spread {
  double least, median, most;
};
static Spread spread_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return {all.front(), all[all.size() / 2], all.back()};
}

// us of a matmul beside a stand-in of so many blocks (0: alone) that began before it and ends behind it.
static Spread time_of(const Gpu& gpu, const Matmul& made, int blocks, double about_us, int turns, bool moves = true) {
  std::vector<double> times;
  for (int turn = -2; turn < turns; ++turn) {
    if (blocks > 0) issue_stand_in(gpu, gpu.high, blocks, static_cast<unsigned long long>(3e3 * about_us) + 150'000, 0, false, moves);
    idle<<<1, 1, 0, gpu.compute>>>(60'000);
    CHECK(cudaEventRecord(gpu.begin, gpu.compute));
    issue(gpu, made);
    CHECK(cudaEventRecord(gpu.end, gpu.compute));
    CHECK(cudaDeviceSynchronize());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, gpu.begin, gpu.end));
    if (turn >= 0) times.push_back(1e3 * ms);
  }
  return spread_of(times);
}

constexpr int lefts[] = {0, 16, 24, 32};

// One matmul, planned in one way for each count, in every company.
static void one(const Gpu& gpu, const Shape& s, bool stands_alone, double alone_us, std::FILE* json) {
  std::vector<Matmul> plans;
  for (int left : lefts) plans.push_back(plan(gpu, s, left, stands_alone));
  const char* comma = "";
  std::printf("  %-28s", stands_alone ? "    blocks that stand alone" : s.name);
  for (const bool moves : {true, false}) {
    for (int blocks : lefts) {   // 0: alone
      if (blocks == 32 || (!moves && blocks == 0)) continue;
      std::printf(" |");
      for (int i = 0; i < 4; ++i) {
        if (!plans[i].exists) continue;
        const Spread found = time_of(gpu, plans[i], blocks, alone_us, 9, moves);
        std::printf(" %.2f", found.median / alone_us);
        std::fprintf(json, "%s{\"beside\": %d, \"moves\": %s, \"left\": %d, \"cluster\": %d, \"tile\": %d, \"median\": %.2f, \"least\": %.2f, \"most\": %.2f}", comma, blocks, moves ? "true" : "false", lefts[i],
                     plans[i].cluster, plans[i].tile, found.median, found.least, found.most);
        comma = ", ";
      }
    }
  }
  std::printf("  clusters %d %d %d %d\n", plans[0].cluster, plans[1].cluster, plans[2].cluster, plans[3].cluster);
}

static void room(const Gpu& gpu, std::FILE* json) {
  struct Config {
    const char* name;
    std::int64_t N, D, F, tp;
  };
  const char* comma = "";
  for (const Config& config : {Config{"gpt-1.3b, 8 sequences", 8192, 2048, 8192, 1}, {"gpt-1.3b, 2 sequences", 2048, 2048, 8192, 1},
                               {"gpt-1.3b, tp 2, 8 sequences", 8192, 2048, 8192, 2}, {"gpt-6.9b, 2 sequences", 4096, 4096, 16384, 1}}) {
    std::printf("%s (times its time alone, as the heuristic has it)\n  %-28s | alone, leaving 0 16 24 32 | beside 16, leaving 0 16 24 32 | beside 24 | beside 16 that move nothing | 24 that move nothing\n", config.name, "");
    for (const Shape& s : block_of(config.N, config.D, config.F, config.tp)) {
      const double alone_us = time_of(gpu, plan(gpu, s, 0), 0, 0, 15).median;
      std::fprintf(json, "%s\n  {\"config\": \"%s\", \"matmul\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"alone_us\": %.2f", comma, config.name, s.name, static_cast<long long>(s.m), static_cast<long long>(s.n),
                   static_cast<long long>(s.k), alone_us);
      comma = ",";
      std::printf("  %.1f us\n", alone_us);
      for (const bool stands_alone : {false, true}) {
        std::fprintf(json, ", \"%s\": [", stands_alone ? "standing_alone" : "heuristic");
        one(gpu, s, stands_alone, alone_us, json);
        std::fprintf(json, "]");
      }
      std::fprintf(json, "}");
    }
  }
}

// Which way the sum gets its room.
struct Way {
  const char* name;
  bool high;          // the sum's stream has high priority
  int left;           // by the weight gradient
  bool stands_alone;  // ... whose blocks need no neighbours
  bool turn_first;    // the weight gradient waits until the sum's stream has come to the sum
  bool start_first;   // ... until all of the sum's blocks have begun
  bool behind;        // ... until it has ended
};

static void race(const Gpu& gpu, std::FILE* json) {
  const std::vector<Way> ways = {{"as it is: high priority", true, 0, false, false, false, false},
                                 {"normal priority", false, 0, false, false, false, false},
                                 {"leaving 16", true, 16, false, false, false, false},
                                 {"leaving 24", true, 24, false, false, false, false},
                                 {"leaving 32", true, 32, false, false, false, false},
                                 {"blocks that stand alone", true, 0, true, false, false, false},
                                 {"these, leaving 16", true, 16, true, false, false, false},
                                 {"these, leaving 24", true, 24, true, false, false, false},
                                 {"its turn first", true, 0, false, true, false, false},
                                 {"its start first", true, 0, false, false, true, false},
                                 {"its start first, leaving 24", true, 24, false, false, true, false},
                                 {"its end first (awaited)", true, 0, false, false, false, true}};
  struct Config {
    const char* name;
    std::int64_t N, D, F;
    int linear;
  };
  const char* comma = "";
  for (const Config& config : {Config{"gpt-1.3b tp 2, 8 sequences: up", 8192, 2048, 8192, 2}, {"gpt-1.3b tp 2, 8 sequences: qkv", 8192, 2048, 8192, 0}, {"gpt-6.9b tp 2, 2 sequences: up", 4096, 4096, 16384, 2}}) {
    const std::vector<Shape> shapes = block_of(config.N, config.D, config.F, 2);
    const Matmul input = plan(gpu, shapes[3 * config.linear + 1], 0);
    const std::size_t bytes = static_cast<std::size_t>(config.N * config.D * 2);
    std::printf("%s (medians, us after the input gradient; in brackets the most)\n", config.name);
    for (int blocks : {16, 24}) {
      const std::size_t a_block = 2 * bytes / blocks;   // an all-reduce over two reads and writes about twice the buffer
      for (const Way& way : ways) {
        const Matmul weight = plan(gpu, shapes[3 * config.linear + 2], way.left, way.stands_alone);
        if (!weight.exists) continue;
        std::vector<double> starts, ends, both;
        for (int turn = -2; turn < 25; ++turn) {
          const cudaStream_t sum = way.high ? gpu.high : gpu.normal;
          idle<<<1, 1, 0, gpu.compute>>>(60'000);
          issue(gpu, input);
          stamp<<<1, 1, 0, gpu.compute>>>(gpu.times + 2 * most_blocks);
          CHECK(cudaEventRecord(gpu.produced, gpu.compute));
          CHECK(cudaStreamWaitEvent(sum, gpu.produced, 0));
          if (way.turn_first) CHECK(cudaEventRecord(gpu.begun, sum));
          issue_stand_in(gpu, sum, blocks, 0, a_block, way.start_first);
          if (way.behind) CHECK(cudaEventRecord(gpu.begun, sum));
          if (way.turn_first || way.start_first || way.behind) CHECK(cudaStreamWaitEvent(gpu.compute, gpu.begun, 0));
          issue(gpu, weight);
          CHECK(cudaEventRecord(gpu.all, sum));
          stamp<<<1, 1, 0, gpu.compute>>>(gpu.times + 2 * most_blocks + 1);
          CHECK(cudaStreamWaitEvent(gpu.compute, gpu.all, 0));
          CHECK(cudaDeviceSynchronize());
          CHECK(cudaMemcpy(gpu.host_times, gpu.times, (2 * most_blocks + 2) * sizeof(*gpu.times), cudaMemcpyDeviceToHost));
          if (turn < 0) continue;
          const unsigned long long* t = gpu.host_times;
          const unsigned long long from = t[2 * most_blocks], last_began = *std::max_element(t, t + blocks), ended = *std::max_element(t + most_blocks, t + most_blocks + blocks);
          starts.push_back(1e-3 * static_cast<double>(last_began - from));
          ends.push_back(1e-3 * static_cast<double>(ended - from));
          both.push_back(1e-3 * static_cast<double>(std::max(ended, t[2 * most_blocks + 1]) - from));
        }
        const Spread start = spread_of(starts), end = spread_of(ends), all = spread_of(both);
        std::printf("  %2d blocks, %-30s all of the sum has begun after %7.1f (%7.1f), it has ended after %7.1f, both after %7.1f (%7.1f)\n", blocks, way.name, start.median, start.most, end.median, all.median, all.most);
        std::fprintf(json, "%s\n  {\"config\": \"%s\", \"blocks\": %d, \"way\": \"%s\", \"begun_us\": [%.2f, %.2f, %.2f], \"ended_us\": [%.2f, %.2f, %.2f], \"both_us\": [%.2f, %.2f, %.2f]}", comma, config.name,
                     blocks, way.name, start.least, start.median, start.most, end.least, end.median, end.most, all.least, all.median, all.most);
        comma = ",";
      }
    }
  }
}

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "say where the figures go: room FILE.json [room|race]\n");
    return 2;
  }
  const std::string only = count > 2 ? words[2] : "";
  Gpu gpu = {};
  CHECK(cudaGetDeviceProperties(&gpu.properties, 0));
  CHECK(cublasLtCreate(&gpu.blas));
  int lowest = 0, highest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  CHECK(cudaStreamCreateWithPriority(&gpu.compute, cudaStreamNonBlocking, lowest));
  CHECK(cudaStreamCreateWithPriority(&gpu.normal, cudaStreamNonBlocking, lowest));
  CHECK(cudaStreamCreateWithPriority(&gpu.high, cudaStreamNonBlocking, highest));
  CHECK(cudaEventCreate(&gpu.begin));
  CHECK(cudaEventCreate(&gpu.end));
  for (cudaEvent_t* event : {&gpu.produced, &gpu.begun, &gpu.all}) CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  constexpr std::size_t operand = std::size_t{256} << 20;
  for (char** place : {&gpu.a, &gpu.b, &gpu.c}) CHECK(cudaMalloc(place, 2 * operand));
  for (char** place : {&gpu.from, &gpu.to}) CHECK(cudaMalloc(place, stand_in_bytes));
  CHECK(cudaMalloc(&gpu.workspace, workspace_bytes));
  CHECK(cudaMemset(gpu.workspace, 0, workspace_bytes));
  CHECK(cudaMalloc(&gpu.times, 1024 * sizeof(*gpu.times)));
  CHECK(cudaMallocHost(&gpu.host_times, 1024 * sizeof(*gpu.times)));
  CHECK(cudaFuncSetAttribute(stand_in, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  for (char* place : {gpu.a, gpu.b}) fill<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(place), operand);
  CHECK(cudaDeviceSynchronize());

  int driver = 0, runtime = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  std::FILE* json = std::fopen(words[1], "w");
  check(json != nullptr, words[1]);
  const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  std::fprintf(json, "{\"gpu\": \"%s\", \"multiprocessors\": %d, \"driver\": %d, \"runtime\": %d, \"cublasLt\": %zu, \"connections\": \"%s\"", gpu.properties.name, gpu.properties.multiProcessorCount,
               driver, runtime, cublasLtGetVersion(), connections == nullptr ? "default" : connections);
  std::printf("%s, %d multiprocessors, CUDA %d, cuBLASLt %zu, CUDA_DEVICE_MAX_CONNECTIONS %s\n", gpu.properties.name, gpu.properties.multiProcessorCount, runtime, cublasLtGetVersion(), connections == nullptr ? "default" : connections);
  if (only != "race") {
    std::fprintf(json, ",\n \"room\": [");
    room(gpu, json);
    std::fprintf(json, "]");
  }
  if (only != "room") {
    std::fprintf(json, ",\n \"race\": [");
    race(gpu, json);
    std::fprintf(json, "]");
  }
  std::fprintf(json, "}\n");
  return std::fclose(json) == 0 ? 0 : 1;
}
