// kernels/cuda/gemm: matrix products through cuBLASLt.
//
// cuBLASLt counts column-major, we row-major; a row-major matrix is its transpose in column-major. So
// C = op(A) op(B) is asked for as Cᵀ = op(B)ᵀ op(A)ᵀ: swap the operands, and nothing is copied.
//
// Which kernel runs is what was measured for that form of product (matmul_plans.hpp), else cuBLASLt's heuristic's, asked once for
// each shape and alignment. Answers are kept in a plan cache of the calling thread (a device belongs to one), which the warm-up
// steps fill, so that later steps neither search nor allocate. Scratch memory is the stream's own: two streams may multiply at once.
//
// A large matmul has all multiprocessors until it ends, and a collective that starts beside it waits. Where it is to be let
// in, fewer are asked for (CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET; program/beside.hpp says where), and a plan is one of a
// shape and a count. PyTorch does the same, of all matmuls at once: pytorch/pytorch @0040fe0d,
// aten/src/ATen/cuda/CUDABlas.cpp, _SMCarveout_EXPERIMENTAL.
//
// What a product does beside (Beside) is an epilogue of cuBLASLt. With GELU it stores two results: D is GELU's, and what
// GELU was taken of goes to its "auxiliary" place.
//
// Precision: products of bf16 are summed in f32. Products of f32 are plain f32, never TF32. With a bf16 C and
// beta 1 cuBLASLt 13.1 rounds the product to bf16 before it adds C (measured: errors of two roundings), so
// that is refused; sums over micro-batches are f32.
//
// Flops: 2·M·N·K of each product. Bytes: both operands read and C written once, where tiles are large; C read as well with beta 1.
// Floor: the flops at the fastest product's rate, 758 TFLOP/s in bf16 on an H200 (simulate/profiles/h200x8.json, by
// calibrate; 989 by its data sheet), or the bytes at the memory's, whichever takes longer. Reference: kernels/host/gemm.cpp.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "engine/device/cuda/blas_library.hpp"
#include "engine/device/cuda/owners.hpp"
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/matmul_plans.hpp"

namespace shardbook::kernels::cuda {
namespace {

void check_blas(cublasStatus_t code, const char* expression, const GemmArgs& args) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw base::Failure(base::text("gemm: ", expression, " failed: ", device::cuda::blas_library().cublasLtGetStatusName(code),
                                 ", for ", args.m, " x ", args.n, " x ", args.k, ", batch ", args.batch, ", ", base::name_of(args.dtype),
                                 " to ", base::name_of(args.c_dtype), ", strides of rows ", args.lda, ", ", args.ldb,
                                 ", ", args.ldc));
}
// A function of the library.
#define CHECK_BLAS(call) check_blas(device::cuda::blas_library().call, #call, args)

cudaDataType_t type_of(DType dtype) {
  SHARDBOOK_CHECK(dtype == DType::bf16 || dtype == DType::f32, "gemm on cuda is for bf16 and f32, not ",
                  base::name_of(dtype));
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// The largest power of two up to 256 that divides the address.
std::uint32_t alignment_of(const void* pointer) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
  return address == 0 ? 256 : static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & (~address + 1), 256));
}

// All that decides a plan.
using Key = std::array<std::int64_t, 22>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a, by words
    for (const std::int64_t word : key) hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001B3ull;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
};

Key key_of(const GemmArgs& args, const device::CudaQueue& queue) {
  return {args.m, args.n, args.k, args.lda, args.ldb, args.ldc, args.batch, args.stride_a, args.stride_b,
          args.stride_c, args.a_transposed, args.b_transposed, args.bias_n != nullptr, args.beta != 0.0f,
          static_cast<std::int64_t>(args.dtype) * 16 + static_cast<std::int64_t>(args.c_dtype),
          alignment_of(args.a) * 1024 + alignment_of(args.b), alignment_of(args.c) * 1024 + alignment_of(args.bias_n),
          static_cast<std::int64_t>(queue.blas_workspace_bytes), reinterpret_cast<std::intptr_t>(queue.blas),
          queue.blas_workspace != nullptr, queue.left_to_others,
          static_cast<std::int64_t>(args.beside) * 1024 + alignment_of(args.other)};
}

// Where cuBLASLt stores its D, and where it has its auxiliary numbers.
void* d_of(const GemmArgs& args) { return args.beside == Beside::gelu ? args.other : args.c; }
void* auxiliary_of(const GemmArgs& args) { return args.beside == Beside::gelu ? args.c : args.other; }

cublasLtEpilogue_t epilogue_of(const GemmArgs& args) {
  const bool bias = args.bias_n != nullptr;
  switch (args.beside) {
    case Beside::nothing: return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Beside::gelu: return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Beside::gelu_slope: return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Descriptions and the chosen algorithm. The opaque structs are values, so a plan owns nothing.
struct Plan {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t left, right, result;
  cublasLtMatmulAlgo_t algorithm;
};

void describe_matrix(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, bool swapped, std::int64_t rows,
                     std::int64_t columns, std::int64_t stride_of_rows, std::int64_t stride_of_batch,
                     const GemmArgs& args) {
  // Row-major [rows, columns] is column-major [columns, rows].
  if (swapped) std::swap(rows, columns);
  CHECK_BLAS(cublasLtMatrixLayoutInit_internal(&layout, sizeof(layout), type_of(dtype), static_cast<std::uint64_t>(columns),
                                               static_cast<std::uint64_t>(rows), stride_of_rows));
  if (args.batch > 1) {
    const std::int32_t batch = static_cast<std::int32_t>(args.batch);
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride_of_batch, sizeof(stride_of_batch)));
  }
}

// The algorithms that cuBLASLt thinks fastest within the stream's workspace, the likeliest first: at least one.
constexpr int most_algorithms = 32;
struct Algorithms {
  cublasLtMatmulHeuristicResult_t of[most_algorithms] = {};
  int count = 0;
};
Algorithms likely_algorithms(Plan& plan, const GemmArgs& args, const device::CudaQueue& queue, int most) {
  cublasLtMatmulPreferenceOpaque_t preference;
  CHECK_BLAS(cublasLtMatmulPreferenceInit_internal(&preference, sizeof(preference)));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, queue.blas_workspace_bytes);
  // Where a long sum is cut among blocks, its parts are added in f32, never in bf16.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  // What is measured is for every address that is a multiple of 16
  const auto alignment = [&](const void* pointer) { return most == 1 ? alignment_of(pointer) : std::min(16u, alignment_of(pointer)); };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(args.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(args.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(d_of(args)));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(d_of(args)));

  Algorithms likely;
  CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(queue.blas), &plan.product, &plan.left,
                                            &plan.right, &plan.result, &plan.result, &preference, most, likely.of,
                                            &likely.count));
  check_blas(likely.count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : likely.of[0].state, "cublasLtMatmulAlgoGetHeuristic's answer", args);
  int good = 0;
  for (int i = 0; i < likely.count; ++i) {
    if (likely.of[i].state == CUBLAS_STATUS_SUCCESS) likely.of[good++] = likely.of[i];
  }
  likely.count = good;
  return likely;
}

// The algorithm that was measured to be the fastest of this form, if one was and may be used here.
bool take_measured(Plan& plan, const GemmArgs& args, const device::CudaQueue& queue) {
  if (queue.left_to_others > 0) return false;   // planned for fewer multiprocessors than it was measured on
  for (const void* pointer : {args.a, args.b, static_cast<const void*>(args.c), args.bias_n, static_cast<const void*>(args.other)}) {
    if (alignment_of(pointer) < 16) return false;
  }
  const MatmulAlgorithm* const measured = planned_algorithm(form_of(args, args.bias_n != nullptr));
  if (measured == nullptr) return false;
  static_assert(sizeof(plan.algorithm.data) == sizeof(MatmulAlgorithm));
  std::copy(measured->begin(), measured->end(), plan.algorithm.data);
  cublasLtMatmulHeuristicResult_t answer = {};
  const cublasStatus_t code = device::cuda::blas_library().cublasLtMatmulAlgoCheck(static_cast<cublasLtHandle_t>(queue.blas), &plan.product, &plan.left, &plan.right, &plan.result,
                                                                                   &plan.result, &plan.algorithm, &answer);
  SHARDBOOK_CHECK(code == CUBLAS_STATUS_SUCCESS && answer.workspaceSize <= queue.blas_workspace_bytes, "cuBLASLt cannot multiply ", to_string(form_of(args, args.bias_n != nullptr)),
                  " as the file of --matmuls says: measure anew with ./shardbook tune");
  return true;
}

// The addresses that stand in the description itself: a plan serves many.
void point(Plan& plan, const GemmArgs& args) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* pointer) {
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(&plan.product, attribute, &pointer, sizeof(pointer)));
  };
  if (args.bias_n != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias_n);
  if (args.beside != Beside::nothing) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary_of(args));
}

// All but the algorithm.
Plan describe(const GemmArgs& args, const device::CudaQueue& queue) {
  Plan plan = {};
  CHECK_BLAS(cublasLtMatmulDescInit_internal(&plan.product, sizeof(plan.product), CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(&plan.product, attribute, &value, sizeof(value)));
  };
  const cublasOperation_t left = args.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = args.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, left);
  set(CUBLASLT_MATMUL_DESC_TRANSB, right);
  if (queue.left_to_others > 0) {
    const std::int32_t mine = std::max(1, queue.multiprocessors - queue.left_to_others);
    set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, mine);
  }
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(args));
  // cuBLASLt adds a bias along the rows of its result, which are our columns.
  if (args.bias_n != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(args.dtype));
  if (args.beside != Beside::nothing) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, args.ldc);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(args.c_dtype));
  }
  point(plan, args);
  describe_matrix(plan.left, args.dtype, args.b_transposed, args.k, args.n, args.ldb, args.stride_b, args);
  describe_matrix(plan.right, args.dtype, args.a_transposed, args.m, args.k, args.lda, args.stride_a, args);
  describe_matrix(plan.result, args.c_dtype, false, args.m, args.n, args.ldc, args.stride_c, args);
  return plan;
}

Plan make_plan(const GemmArgs& args, const device::CudaQueue& queue) {
  Plan plan = describe(args, queue);
  if (!take_measured(plan, args, queue)) plan.algorithm = likely_algorithms(plan, args, queue, 1).of[0].algo;
  return plan;
}

Plan& plan_for(const GemmArgs& args, const device::CudaQueue& queue) {
  thread_local std::unordered_map<Key, Plan, KeyHash> plans;
  const Key key = key_of(args, queue);
  const auto found = plans.find(key);
  return found != plans.end() ? found->second : plans.emplace(key, make_plan(args, queue)).first->second;
}

void multiply(Plan& plan, const GemmArgs& args, const device::CudaQueue& queue) {
  void* const d = d_of(args);
  CHECK_BLAS(cublasLtMatmul(static_cast<cublasLtHandle_t>(queue.blas), &plan.product, &args.alpha, args.b, &plan.left,
                            args.a, &plan.right, &args.beta, d, &plan.result, d, &plan.result,
                            &plan.algorithm, queue.blas_workspace, queue.blas_workspace_bytes, stream_of(queue)));
}

// Nanoseconds of one of `times` products back to back, after two.
double time_of(Plan& plan, const GemmArgs& args, const device::CudaQueue& queue, int times) {
  const auto begin = device::cuda::make_timed_event("tune"), end = device::cuda::make_timed_event("tune");
  for (int i = 0; i < 2; ++i) multiply(plan, args, queue);
  SHARDBOOK_CUDA(cudaEventRecord(begin.get(), stream_of(queue)), "tune");
  for (int i = 0; i < times; ++i) multiply(plan, args, queue);
  SHARDBOOK_CUDA(cudaEventRecord(end.get(), stream_of(queue)), "tune");
  SHARDBOOK_CUDA(cudaEventSynchronize(end.get()), "tune");
  float milliseconds = 0;
  SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "tune");
  return 1e6 * static_cast<double>(milliseconds) / times;
}

// Of three.
double median(std::array<double, 3> of) {
  std::sort(of.begin(), of.end());
  return of[1];
}

}  // namespace

std::int64_t matmul_library() { return static_cast<std::int64_t>(device::cuda::blas_library().cublasLtGetVersion()); }

void measure_matmul(const MeasureMatmulArgs& args, const device::CudaQueue& queue) {
  Plan plan = describe(args.gemm, queue);
  const Algorithms likely = likely_algorithms(plan, args.gemm, queue, most_algorithms);
  const auto time = [&](int which, double for_ns) {
    plan.algorithm = likely.of[which].algo;
    const double once = time_of(plan, args.gemm, queue, 3);
    return time_of(plan, args.gemm, queue, std::clamp(static_cast<int>(for_ns / std::max(1.0, once)), 3, 100000));
  };
  std::array<std::pair<double, int>, most_algorithms> seem;
  int tried = 0;
  for (int i = 1; i < likely.count; ++i) {
    try {
      const double seems = time(i, 5e6);
      seem[static_cast<std::size_t>(tried++)] = {seems, i};
    } catch (const base::Failure&) {
      // One that the heuristic names and the library then refuses is none to choose
    }
  }
  std::sort(seem.begin(), seem.begin() + tried);
  const int those = std::min(4, tried + 1);
  const auto which = [&](int place) { return place == 0 ? 0 : seem[static_cast<std::size_t>(place - 1)].second; };
  // A GPU at its limit of power computes as fast as that lets it, and so by the power that the last tenths of a second took. In
  // short turns all would share one clock, and the one that wastes power would not pay for it: so each alone, until it settles.
  std::array<std::array<double, 3>, 4> took = {};
  for (std::size_t turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < those; ++i) {
      time(which(i), 2.5e8);
      took[static_cast<std::size_t>(i)][turn] = time(which(i), 1.5e8);
    }
  }
  const double first = median(took[0]);
  int best = 0;
  for (int i = 1; i < those; ++i) {
    if (median(took[static_cast<std::size_t>(i)]) < median(took[static_cast<std::size_t>(best)])) best = i;
  }
  if (median(took[static_cast<std::size_t>(best)]) > 0.99 * first) best = 0;
  const cublasLtMatmulAlgo_t& chosen = likely.of[which(best)].algo;
  std::copy(std::begin(chosen.data), std::end(chosen.data), args.plan->algorithm.begin());
  args.plan->first_ns = first;
  args.plan->ns = median(took[static_cast<std::size_t>(best)]);
}

void gemm(const GemmArgs& args, const device::CudaQueue& queue) {
  if (args.m <= 0 || args.n <= 0 || args.batch <= 0) return;
  SHARDBOOK_CHECK(args.k > 0, "gemm of ", args.m, " x ", args.n, " sums over nothing");
  SHARDBOOK_CHECK(args.beta == 0.0f || (args.beta == 1.0f && args.c_dtype == DType::f32),
                  "beta of a gemm is 0, or 1 into f32, not ", args.beta, " into ", base::name_of(args.c_dtype));
  SHARDBOOK_CHECK(args.beside == Beside::nothing || (args.batch == 1 && args.beta == 0.0f && args.ldc * static_cast<std::int64_t>(base::size_of(args.c_dtype)) % 16 == 0),
                  "GELU in a gemm needs one product, nothing to add it to, and rows of a multiple of 16 bytes, not of ", args.ldc, " numbers of ", base::name_of(args.c_dtype));
  Plan& plan = plan_for(args, queue);
  point(plan, args);
  multiply(plan, args, queue);
}

}  // namespace shardbook::kernels::cuda
