// kernels/matmul_plans: which of cuBLASLt's algorithms multiplies?
//
// cuBLASLt has many kernels for a product and a heuristic that puts the likely ones first. The first is not always the
// fastest (experiments/speed, "algorithms"). Measuring in a run would make what is chosen, and so the last bits of sums, a
// matter of chance. So they are measured once (`shardbook tune`) and kept in a file; a run that is given the file multiplies as
// it says, each time alike.
//
// Sources: cuBLAS documentation, cublasLtMatmulAlgo_t (64 bytes that may be stored, and used with the same version of the
// library); NVIDIA/Megatron-LM and PyTorch leave it to the heuristic, unless PyTorch's TunableOp is asked for
// (PYTORCH_TUNABLEOP_ENABLED, docs: torch.cuda.tunable), which keeps a file as well.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <string>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/kernels/arguments.hpp"

namespace shardbook::kernels {

// All of a product that the choice depends on; no addresses, which are multiples of 16 bytes wherever a plan is used.
struct MatmulForm {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  bool a_transposed = false, b_transposed = false;
  bool bias = false;    // one is added
  bool adds = false;    // C = product + C
  DType dtype = DType::bf16, c_dtype = DType::bf16;
  Beside beside = Beside::nothing;
  auto operator<=>(const MatmulForm&) const = default;
};
MatmulForm form_of(const GemmArgs& args, bool bias);
std::string to_string(const MatmulForm& form);   // "65536 x 3072 x 768 bf16, B transposed, bias, gelu"

using MatmulAlgorithm = std::array<std::uint64_t, 8>;   // cublasLtMatmulAlgo_t

struct MatmulPlan {
  MatmulForm form;
  MatmulAlgorithm algorithm = {};
  double first_ns = 0, ns = 0;   // a product by the heuristic's first, and by this one
};

// The products that `issue` asks for on this thread, on whatever device: each form once, in the order of its first, and how often.
struct AskedMatmul {
  MatmulForm form;
  int times = 0;
};
std::vector<AskedMatmul> matmuls_of(const std::function<void()>& issue);

// From here on GPUs of this process multiply products of these forms so. Once a process, before any of its threads multiplies:
// what a thread has multiplied before stays as it was.
void use_matmul_plans(const std::vector<MatmulPlan>& plans);
const MatmulAlgorithm* planned_algorithm(const MatmulForm& form);   // null: the heuristic's first

// Bytes of all that a product of this form reads and writes, each tensor at a multiple of 256.
base::Bytes memory_of(const MatmulForm& form);
// Multiplies what lies in `memory` by each algorithm that cuBLASLt names, then by its first and the three that seem fastest, each for
// so long that the GPU's clock settles, three times; what is not faster than the first by 1 % is the first. Waits for the GPU, some
// 5 seconds. REQUIRES: a device on a GPU, memory_of(form)
// bytes of finite numbers.
MatmulPlan measure_matmul(device::Device& device, device::Stream& stream, const MatmulForm& form, void* memory);

// cuBLASLt's version, as it counts them. Throws base::Failure where there is none.
std::int64_t matmul_library();

// What measure_matmul issues (cuda/gemm.cu).
struct MeasureMatmulArgs {
  GemmArgs gemm;
  MatmulPlan* plan;
};

// Called by what issues a product.
void note_matmul(const GemmArgs& args, bool bias);

}  // namespace shardbook::kernels
