// model/activation: GELU (Hendrycks and Gimpel 2016) in GPT-2's tanh form, and SwiGLU (Shazeer 2020) as in Llama.
//
// A GELU apart reads all that `up` has just written, and writes as much again. The matmul of `up` has those numbers in
// registers and can do it there; so can that of `down` in backward, which makes GELU's dout.
// Sources: cuBLASLt's epilogues CUBLASLT_EPILOGUE_GELU_AUX_BIAS and _DGELU; karpathy/llm.c @f1e2ace6, llmc/matmul.cuh, 112-246
// (matmul_cublaslt: GELU in the matmul as one of its choices).
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class Gelu final : public Activation {
 public:
  int sections() const override { return 1; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  Tensor backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& into_NE) override;
};

// The same by the matmuls on both sides: nothing is left to do, unless `out` was not kept.
class GeluInMatmuls final : public Activation {
 public:
  int sections() const override { return 1; }
  Epilogue in_up(const Tensor& out_NF) const override { return {kernels::Beside::gelu, out_NF}; }
  Epilogue in_down(const Tensor& up_NE) const override { return {kernels::Beside::gelu_slope, up_NE}; }
  void forward(Context&, const Tensor&, const Tensor&) override {}
  Tensor backward(Context&, const Tensor& /*up_NE*/, const Tensor& dout_NF, const Tensor& /*into_NE*/) override { return dout_NF; }
  bool in_place() const override { return true; }
  void remake(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override { gelu_.forward(ctx, up_NE, out_NF); }

 private:
  Gelu gelu_;
};

// The up projection makes gate and up, F each, and tensor parallel cuts each of them.
class SwiGlu final : public Activation {
 public:
  int sections() const override { return 2; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  Tensor backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& into_NE) override;
};

}  // namespace shardbook::model
