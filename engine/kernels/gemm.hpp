// kernels/gemm: how does a linear layer multiply, forward and backward?
//
// Three products make a linear layer, and they are the only places where its weight meets its input:
//   y_NO = x_NI · weight_OIᵀ + bias_O        forward
//   dx_NI = dy_NO · weight_OI                input gradient
//   dweight_OI (+)= dy_NOᵀ · x_NI            weight gradient
// The first can make gelu(y) beside y, and the second multiply dx by GELU's slope, of numbers that they have in registers
// anyway, so that no kernel reads them again (Epilogue).
// The weight is [out, in], as torch.nn.Linear has it. The input gradient and the weight gradient are
// ops of their own, because a schedule may run them at different times: the first is what the layer
// below waits for, the second is what the reduction of gradients waits for.
//
// None of these is a collective: each rank calls them on its own cut (shape suffixes: tensor/tensor.hpp).
// All check their shapes and throw base::Failure on a mismatch; all return before the product has run.
#pragma once

#include "engine/device/device.hpp"
#include "engine/base/result.hpp"
#include "engine/kernels/arguments.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// What a linear's product does beside, and with which tensor of its result's shape and type (Beside: arguments.hpp). On a
// GPU rows are multiples of 16 bytes, and cuBLASLt's tanh is an approximation: a relative error of some 2^-11, a quarter of
// bf16's last place (tests/gpu/gemm_test.cpp).
struct Epilogue {
  Beside what = Beside::nothing;
  Tensor other;
};

// y_NO = x_NI · weight_OIᵀ + bias_O. `bias_O` may be Tensor{}. y may have another type than x and weight. Epilogue: gelu.
void linear_forward(Lane lane, const Tensor& x_NI, const Tensor& weight_OI, const Tensor& bias_O, const Tensor& y_NO,
                    const Epilogue& epilogue = {});

// dx_NI = dy_NO · weight_OI. Epilogue: gelu_slope.
void linear_input_gradient(Lane lane, const Tensor& dy_NO, const Tensor& weight_OI, const Tensor& dx_NI,
                           const Epilogue& epilogue = {});

// dweight_OI = dy_NOᵀ · x_NI, added to what is there where `accumulate`. dweight is nominal f32.
void linear_weight_gradient(Lane lane, const Tensor& dy_NO, const Tensor& x_NI, const Tensor& dweight_OI,
                            bool accumulate);

// C = op(A) · op(B) for each of the leading dims of three tensors [..., rows, columns], op being the transpose
// of the last two dims where asked for. `name` is a literal: the op's name in the record.
void batched_gemm(Lane lane, const char* name, const Tensor& a, bool a_transposed, const Tensor& b, bool b_transposed,
                  const Tensor& c);

// Which library multiplies on the host: "OpenBLAS 0.3.21 (SkylakeX)" or "the reference twin (AVX-512)".
const char* gemm_twin();

// Of ranks on the host, before the first product: makes sure that so many threads may multiply at once. Errors: no memory.
base::Status make_room_for_gemms(int threads);

}  // namespace shardbook::kernels
