// model/activation: GELU (Hendrycks and Gimpel 2016), in GPT-2's tanh form.
#pragma once

#include "engine/model/spec.hpp"

namespace shardbook::model {

class Gelu final : public Activation {
 public:
  int sections() const override { return 1; }
  void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) override;
  void backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& dup_NE) override;
};

}  // namespace shardbook::model
