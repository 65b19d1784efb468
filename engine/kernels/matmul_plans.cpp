#include "engine/kernels/matmul_plans.hpp"

#include <map>

#include "engine/base/check.hpp"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels {

namespace {

std::map<MatmulForm, MatmulAlgorithm>& plans() {
  static std::map<MatmulForm, MatmulAlgorithm> all;
  return all;
}

thread_local std::vector<AskedMatmul>* listening = nullptr;

base::Bytes rounded(base::Bytes bytes) { return (bytes + 255) / 256 * 256; }

// Where each tensor lies behind the one before.
struct Places {
  base::Bytes a, b, c, bias, other, end;
};
Places places_of(const MatmulForm& form) {
  const base::Bytes of_input = base::size_of(form.dtype), of_result = base::size_of(form.c_dtype);
  const auto all = [&form](std::int64_t one, std::int64_t stride) { return one + (form.batch - 1) * stride; };
  Places at{};
  at.b = rounded(all(form.lda * (form.a_transposed ? form.k : form.m), form.stride_a) * of_input);
  at.c = at.b + rounded(all(form.ldb * (form.b_transposed ? form.n : form.k), form.stride_b) * of_input);
  const base::Bytes result = rounded(all(form.ldc * form.m, form.stride_c) * of_result);
  at.bias = at.c + result;
  at.other = at.bias + rounded(form.bias ? form.n * of_input : 0);
  at.end = at.other + (form.beside == Beside::nothing ? 0 : result);
  return at;
}

}  // namespace

MatmulForm form_of(const GemmArgs& args, bool bias) {
  MatmulForm form;
  form.m = args.m, form.n = args.n, form.k = args.k, form.lda = args.lda, form.ldb = args.ldb, form.ldc = args.ldc;
  form.batch = args.batch;
  if (args.batch > 1) form.stride_a = args.stride_a, form.stride_b = args.stride_b, form.stride_c = args.stride_c;
  form.a_transposed = args.a_transposed, form.b_transposed = args.b_transposed;
  form.bias = bias, form.adds = args.beta != 0.0f;
  form.dtype = args.dtype, form.c_dtype = args.c_dtype, form.beside = args.beside;
  return form;
}

std::string to_string(const MatmulForm& form) {
  std::string words = base::text(form.m, " x ", form.n, " x ", form.k, " ", base::name_of(form.dtype));
  if (form.c_dtype != form.dtype) words += base::text(" to ", base::name_of(form.c_dtype));
  if (form.batch > 1) words += base::text(", ", form.batch, " of them");
  if (form.a_transposed) words += ", A transposed";
  if (form.b_transposed) words += ", B transposed";
  if (form.bias) words += ", bias";
  if (form.adds) words += ", added";
  if (form.beside != Beside::nothing) words += form.beside == Beside::gelu ? ", gelu" : ", gelu slope";
  return words;
}

void note_matmul(const GemmArgs& args, bool bias) {
  if (listening == nullptr) return;
  const MatmulForm form = form_of(args, bias);
  for (AskedMatmul& asked : *listening) {
    if (asked.form == form) {
      ++asked.times;
      return;
    }
  }
  listening->push_back({form, 1});
}

std::vector<AskedMatmul> matmuls_of(const std::function<void()>& issue) {
  std::vector<AskedMatmul> asked;
  struct Listen {
    std::vector<AskedMatmul>* before;
    ~Listen() { listening = before; }
  } listen{listening};
  listening = &asked;
  issue();
  return asked;
}

void use_matmul_plans(const std::vector<MatmulPlan>& all) {
  plans().clear();
  for (const MatmulPlan& plan : all) plans()[plan.form] = plan.algorithm;
}

const MatmulAlgorithm* planned_algorithm(const MatmulForm& form) {
  const auto found = plans().find(form);
  return found == plans().end() ? nullptr : &found->second;
}

base::Bytes memory_of(const MatmulForm& form) { return places_of(form).end; }

MatmulPlan measure_matmul(device::Device& device, device::Stream& stream, const MatmulForm& form, void* memory) {
  char* const begin = static_cast<char*>(memory);
  const Places at = places_of(form);
  GemmArgs args{};
  args.a = begin, args.b = begin + at.b, args.c = begin + at.c;
  args.bias_n = form.bias ? begin + at.bias : nullptr;
  args.m = form.m, args.n = form.n, args.k = form.k, args.lda = form.lda, args.ldb = form.ldb, args.ldc = form.ldc;
  args.batch = form.batch, args.stride_a = form.stride_a, args.stride_b = form.stride_b, args.stride_c = form.stride_c;
  args.a_transposed = form.a_transposed, args.b_transposed = form.b_transposed;
  args.alpha = 1, args.beta = form.adds ? 1 : 0;
  args.dtype = form.dtype, args.c_dtype = form.c_dtype;
  args.beside = form.beside, args.other = form.beside == Beside::nothing ? nullptr : begin + at.other;
  MatmulPlan plan;
  plan.form = form;
  SHARDBOOK_CHECK(device.kind() == device::Kind::cuda, "matmuls are measured on a GPU");
  device.launch(stream, program::OpDesc("measure_matmul", program::OpKind::gemm, form.dtype), MeasureMatmulArgs{args, &plan},
                +[](const MeasureMatmulArgs&) {}, &cuda::measure_matmul);
  return plan;
}

std::int64_t matmul_library() { return cuda::matmul_library(); }

}  // namespace shardbook::kernels
