// model/activation: GELU (Hendrycks and Gimpel 2016) in GPT-2's tanh form, and SwiGLU (Shazeer 2020) as in Llama.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class Gelu final : public Activation {
 public:
  int sections() const override { return 1; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  void backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& dup_NE) override;
};

// The up projection makes gate and up, F each, and tensor parallel cuts each of them.
class SwiGlu final : public Activation {
 public:
  int sections() const override { return 2; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  void backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& dup_NE) override;
};

}  // namespace shardbook::model
