#include "engine/kernels/gemm.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/blas.hpp"
#include "engine/kernels/host/references.hpp"
#include "engine/kernels/matmul_plans.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

namespace {

// Checks an epilogue, which is `may_be` or nothing, of a product with this result, and puts it into the arguments.
void put(const Epilogue& epilogue, Beside may_be, const char* op, const Tensor& result, GemmArgs& args) {
  if (epilogue.what == Beside::nothing) return;
  SHARDBOOK_CHECK(epilogue.what == may_be, op, ": its epilogue may be ", may_be == Beside::gelu ? "gelu" : "gelu_slope");
  expect_shape(op, "the epilogue's tensor", epilogue.other, result.shape);
  expect_same_type(op, "the epilogue's tensor", epilogue.other, result);
  args.beside = epilogue.what, args.other = epilogue.other.data;
}

}  // namespace

void linear_forward(Lane lane, const Tensor& x_NI, const Tensor& weight_OI, const Tensor& bias_O,
                    const Tensor& y_NO, const Epilogue& epilogue) {
  const char* const op = epilogue.what == Beside::gelu ? "linear_forward_gelu" : "linear_forward";
  expect_matrix(op, "x_NI", x_NI);
  expect_matrix(op, "weight_OI", weight_OI);
  const std::int64_t tokens = x_NI.shape[0], inputs = x_NI.shape[1], outputs = weight_OI.shape[0];
  expect_shape(op, "weight_OI", weight_OI, {outputs, inputs});
  expect_shape(op, "y_NO", y_NO, {tokens, outputs});
  expect_same_type(op, "weight_OI", weight_OI, x_NI);

  OpDesc desc(op, OpKind::gemm, x_NI.nominal);
  desc.size({tokens, outputs, inputs, 1}).reads(x_NI.use()).reads(weight_OI.use()).writes(y_NO.use());
  GemmArgs args{};
  if (bias_O.exists()) {
    expect_elements(op, "bias_O", bias_O, outputs);
    expect_same_type(op, "bias_O", bias_O, x_NI);
    desc.reads(bias_O.use());
    args.bias_n = bias_O.data;
  }
  put(epilogue, Beside::gelu, op, y_NO, args);
  if (epilogue.what != Beside::nothing) desc.writes(epilogue.other.use());
  args.a = x_NI.data, args.b = weight_OI.data, args.c = y_NO.data;
  args.m = tokens, args.n = outputs, args.k = inputs;
  args.lda = inputs, args.ldb = inputs, args.ldc = outputs;
  args.batch = 1;
  args.b_transposed = true;
  args.alpha = 1;
  args.dtype = x_NI.storage, args.c_dtype = y_NO.storage;
  note_matmul(args, bias_O.exists());
  lane.device().launch(lane, desc, args, &host::gemm, &cuda::gemm);
}

void linear_input_gradient(Lane lane, const Tensor& dy_NO, const Tensor& weight_OI, const Tensor& dx_NI, const Epilogue& epilogue) {
  const char* const op = epilogue.what == Beside::gelu_slope ? "linear_input_gradient_gelu" : "linear_input_gradient";
  expect_matrix(op, "dy_NO", dy_NO);
  expect_matrix(op, "weight_OI", weight_OI);
  const std::int64_t tokens = dy_NO.shape[0], outputs = dy_NO.shape[1], inputs = weight_OI.shape[1];
  expect_shape(op, "weight_OI", weight_OI, {outputs, inputs});
  expect_shape(op, "dx_NI", dx_NI, {tokens, inputs});
  expect_same_type(op, "weight_OI", weight_OI, dy_NO);

  OpDesc desc(op, OpKind::gemm, dy_NO.nominal);
  desc.size({tokens, inputs, outputs, 1}).reads(dy_NO.use()).reads(weight_OI.use()).writes(dx_NI.use());
  GemmArgs args{};
  put(epilogue, Beside::gelu_slope, op, dx_NI, args);
  if (epilogue.what != Beside::nothing) desc.reads(epilogue.other.use());
  args.a = dy_NO.data, args.b = weight_OI.data, args.c = dx_NI.data;
  args.m = tokens, args.n = inputs, args.k = outputs;
  args.lda = outputs, args.ldb = inputs, args.ldc = inputs;
  args.batch = 1;
  args.alpha = 1;
  args.dtype = dy_NO.storage, args.c_dtype = dx_NI.storage;
  note_matmul(args, false);
  lane.device().launch(lane, desc, args, &host::gemm, &cuda::gemm);
}

void linear_weight_gradient(Lane lane, const Tensor& dy_NO, const Tensor& x_NI, const Tensor& dweight_OI,
                            bool accumulate) {
  static constexpr const char* op = "linear_weight_gradient";
  expect_matrix(op, "dy_NO", dy_NO);
  expect_matrix(op, "x_NI", x_NI);
  const std::int64_t tokens = dy_NO.shape[0], outputs = dy_NO.shape[1], inputs = x_NI.shape[1];
  expect_shape(op, "x_NI", x_NI, {tokens, inputs});
  expect_shape(op, "dweight_OI", dweight_OI, {outputs, inputs});
  expect_same_type(op, "x_NI", x_NI, dy_NO);
  expect_nominal(op, "dweight_OI", dweight_OI, base::DType::f32);

  OpDesc desc(op, OpKind::gemm, dy_NO.nominal);
  desc.size({outputs, inputs, tokens, 1}).reads(dy_NO.use()).reads(x_NI.use());
  if (accumulate) desc.updates(dweight_OI.use());
  else desc.writes(dweight_OI.use());
  GemmArgs args{};
  args.a = dy_NO.data, args.b = x_NI.data, args.c = dweight_OI.data;
  args.m = outputs, args.n = inputs, args.k = tokens;
  args.lda = outputs, args.ldb = inputs, args.ldc = inputs;
  args.batch = 1;
  args.a_transposed = true;
  args.alpha = 1, args.beta = accumulate ? 1 : 0;
  args.dtype = dy_NO.storage, args.c_dtype = dweight_OI.storage;
  note_matmul(args, false);
  lane.device().launch(lane, desc, args, &host::gemm, &cuda::gemm);
}

void batched_gemm(Lane lane, const char* name, const Tensor& a, bool a_transposed, const Tensor& b, bool b_transposed,
                  const Tensor& c) {
  // The last two dims are the matrices; what stands before them is the batch, the same in all three.
  const int dims = c.shape.dims();
  SHARDBOOK_CHECK(dims >= 2 && a.shape.dims() == dims && b.shape.dims() == dims, name, ": matrices of ",
                  base::to_string(a.shape), ", ", base::to_string(b.shape), " and ", base::to_string(c.shape));
  std::int64_t batch = 1;
  for (int dim = 0; dim + 2 < dims; ++dim) {
    SHARDBOOK_CHECK(a.shape[dim] == c.shape[dim] && b.shape[dim] == c.shape[dim], name, ": batches of ",
                    base::to_string(a.shape), ", ", base::to_string(b.shape), " and ", base::to_string(c.shape));
    batch *= c.shape[dim];
  }
  const std::int64_t a_rows = a.shape[dims - 2], a_columns = a.shape[dims - 1];
  const std::int64_t b_rows = b.shape[dims - 2], b_columns = b.shape[dims - 1];
  const std::int64_t m = c.shape[dims - 2], n = c.shape[dims - 1], k = a_transposed ? a_rows : a_columns;
  SHARDBOOK_CHECK_EQ(a_transposed ? a_columns : a_rows, m, name, ": rows of op(A) and of C");
  SHARDBOOK_CHECK_EQ(b_transposed ? b_rows : b_columns, n, name, ": columns of op(B) and of C");
  SHARDBOOK_CHECK_EQ(b_transposed ? b_columns : b_rows, k, name, ": rows of op(B) and columns of op(A)");
  expect_same_type(name, "B", b, a);

  OpDesc desc(name, OpKind::gemm, a.nominal);
  desc.size({m, n, k, batch}).reads(a.use()).reads(b.use()).writes(c.use());
  GemmArgs args{};
  args.a = a.data, args.b = b.data, args.c = c.data;
  args.m = m, args.n = n, args.k = k;
  args.lda = a_columns, args.ldb = b_columns, args.ldc = n;
  args.batch = batch;
  args.stride_a = a_rows * a_columns, args.stride_b = b_rows * b_columns, args.stride_c = m * n;
  args.a_transposed = a_transposed, args.b_transposed = b_transposed;
  args.alpha = 1;
  args.dtype = a.storage, args.c_dtype = c.storage;
  note_matmul(args, false);
  lane.device().launch(lane, desc, args, &host::gemm, &cuda::gemm);
}

const char* gemm_twin() { return host::blas_name(); }

base::Status make_room_for_gemms(int threads) { return host::blas_make_room(threads); }

}  // namespace shardbook::kernels
