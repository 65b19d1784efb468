// model/activation: GELU (Hendrycks and Gimpel 2016) in GPT-2's tanh form, and SwiGLU (Shazeer 2020) as in Llama.
//
// GELU is two kernels, which read what a matmul has just written; or it is done by the matmuls themselves, with numbers
// that they have not yet stored (GeluInLinears). Source: karpathy/llm.c @f1e2ace6, llmc/matmul.cuh
// (matmul_forward_cublaslt, matmul_backward), where it is the choice gelu_fusion, off unless asked for.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class Gelu final : public Activation {
 public:
  int sections() const override { return 1; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  void backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& dup_NE) override;
};

// GELU in the matmul of the up projection, and its gradient in that of the down projection's input. They keep what is
// before GELU, as Gelu does; the gradient needs no place of its own.
class GeluInLinears final : public Activation {
 public:
  int sections() const override { return 1; }
  bool in_linears() const override { return true; }
  kernels::Epilogue in_forward(const Tensor& out_NF) const override { return {kernels::Beside::gelu, out_NF}; }
  kernels::Epilogue in_backward(const Tensor& up_NE) const override { return {kernels::Beside::gelu_gradient, up_NE}; }
  void forward(Context&, const Tensor&, const Tensor&) override {}
  void backward(Context&, const Tensor&, const Tensor&, const Tensor&) override {}
};

// The up projection makes gate and up, F each, and tensor parallel cuts each of them.
class SwiGlu final : public Activation {
 public:
  int sections() const override { return 2; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  void backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& dup_NE) override;
};

}  // namespace shardbook::model
