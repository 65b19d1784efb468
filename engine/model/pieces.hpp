// model/pieces: what a block is made of, as contracts.
//
// A block knows that it has a norm, a projection, an attention; it does not know which. Each piece is one
// of these contracts, made by a function in the spec (spec.hpp), so that tensor parallelism, a lab or a
// switch swaps a piece and leaves the block alone. This is the idea of Megatron's ModuleSpec
// (NVIDIA/Megatron-LM @d98e8a64, megatron/core/transformer/spec_utils.py).
//
// Every piece has an explicit forward and backward. Backward is in two parts, the gradient of the input
// (which the layer below waits for) and of the weights (which nobody does until the update), so that a
// schedule may put other work between them. What backward needs from forward is in Kept, which the
// caller owns, one for each micro-batch in flight.
//
// All calls issue to ctx.compute and return at once, all ranks of a tp group call alike. Activations are
// nominal bf16 (or f32 when the run is), parameter gradients f32. Shapes: see tensor/tensor.hpp.
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/kernels/embedding.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/model/parameter.hpp"
#include "engine/tensor/lot.hpp"

namespace shardbook::model {

// How many tokens a rank has in one micro-batch.
struct BatchShape {
  std::int64_t sequences = 0;  // B
  std::int64_t positions = 0;  // S
  std::int64_t tokens() const { return sequences * positions; }  // N
};

// Which of a micro-batch's N tokens have their rows here between the linears, in norms, residuals and positions: all of
// them, or one of `parts` runs (sequence parallelism). Between qkv and projection, up and down, all N are here.
struct TokenCut {
  int parts = 1;
  int part = 0;
};

// By what random numbers are drawn beside place and element: nothing that changes as they are drawn, so who draws again,
// or draws a part, draws the same (dropout.hpp).
struct Draw {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_sequence = 0;  // of the global batch: where this micro-batch's sequences begin in it
  const std::uint64_t* step_key = nullptr;  // in memory of the device, what seed and step come to there; null: these tell it
};

using kernels::Epilogue;

// What every piece is handed: where to issue, and how large a micro-batch is.
struct Context {
  device::Device& device;
  device::Stream& compute;
  BatchShape batch;
  base::DType activation;  // nominal
  Tensor scratch;          // f32, for reductions in two stages; one op at a time uses it
  TokenCut cut = {};
  Draw draw = {};          // of the step and micro-batch that is being computed
  tensor::Lot* lot = nullptr;   // set-up: where activations lie side by side; null: each has memory of its own
  // The tokens whose rows are here between the linears. In shapes there are R of them.
  shard::Interval rows() const { return shard::part_of(batch.tokens(), cut.parts, cut.part); }
};

// A context, and the line of whoever calls a piece with it. What a piece exchanges with other ranks is known by that line,
// the layer's, and not by that of the helper that all exchanges go through. A Context becomes one where it is handed over.
struct Call : Context {
  Call(const Context& context, std::source_location where = std::source_location::current())  // NOLINT: implicit by design
      : Context(context), caller{where.file_name(), where.line()} {}
  program::SourceLine caller;
};

// What a forward leaves for its backward. Each piece says how many tensors and which.
struct Kept {
  std::vector<Tensor> tensors;
};

// Makes a tensor that lives as long as the model, at set-up; of a lot that only counts, none that exists.
Tensor allocate_activation(Context& ctx, base::Shape shape, const std::string& name);
Tensor allocate_statistic(Context& ctx, base::Shape shape, const std::string& name);  // f32

// y_NO = x_NI Wᵀ (+ b). W is [O, I], as in PyTorch. On the side that is not cut over ranks, a linear of a model whose
// tokens are cut takes, or gives, the rows that are here: [R, I] or [R, O].
//
// An epilogue is the work of the piece behind (forward) or before (input gradient) that the matmul does with its result
// (kernels/gemm.hpp). A linear that still sums that result over ranks refuses any, for GELU of a summand is no summand of GELU.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual std::int64_t inputs() const = 0;   // I and O as cut on this rank
  virtual std::int64_t outputs() const = 0;
  // Sets aside what it needs while it runs. Set-up only.
  virtual void allocate(Context&) {}
  virtual void forward(Call ctx, const Tensor& x_NI, const Tensor& y_NO, const Epilogue& epilogue = {}) = 0;
  // Backward will come to this linear next: one that is handed some rows of x only starts to bring all of them together.
  virtual void begin_backward(Call, const Tensor& /*x_NI*/) {}
  // Starts dx = dy W. A parallel linear may still be summing it over ranks when this returns; compute may
  // use dx after await_input_gradient.
  virtual void input_gradient(Call ctx, const Tensor& dy_NO, const Tensor& dx_NI, const Epilogue& epilogue = {}) = 0;
  virtual void await_input_gradient(Context&) {}
  // dW = dyᵀ x, db = Σ dy. Comes next to its input_gradient, with no other linear between them.
  virtual void weight_gradient(Call ctx, const Tensor& x_NI, const Tensor& dy_NO) = 0;
  // A bias that forward has left to the caller (who adds it with the residual), or null. A row-parallel
  // linear must: added before the sum over ranks it would count once a rank.
  virtual Parameter* late_bias() { return nullptr; }
  virtual std::vector<Parameter*> parameters() = 0;
};

// y = norm(x), token by token.
class Norm {
 public:
  virtual ~Norm() = default;
  virtual Kept keep(Context& ctx, const std::string& name) = 0;
  virtual void forward(Context& ctx, const Tensor& x_ND, const Tensor& y_ND, Kept& kept) = 0;
  // dx = gradient through the norm + residual_gradient (the path round it; may be absent).
  virtual void input_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, const Tensor& residual_gradient_ND,
                              const Tensor& dx_ND, Kept& kept) = 0;
  virtual void weight_gradient(Context& ctx, const Tensor& dy_ND, const Tensor& x_ND, Kept& kept) = 0;
  virtual std::vector<Parameter*> parameters() = 0;
};

// Attention between the projections: qkv in, heads' outputs side by side out. No parameters.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual Kept keep(Context& ctx, const std::string& name) = 0;
  virtual void allocate_workspace(Context& ctx) = 0;  // shared by all layers: called on one of them
  virtual void share_workspace(const Attention& other) = 0;
  // Where the projection shall put qkv_NE: into `kept` where backward reads it as it came, else into the workspace
  // that all layers share.
  virtual Tensor qkv_NE(const Kept&, const Tensor& workspace_NE) const { return workspace_NE; }
  // qkv_NE: E = sum of the projection's sections on this rank; it may be changed. out_NI: heads · head_dim.
  virtual void forward(Context& ctx, const Tensor& qkv_NE, const Tensor& out_NI, Kept& kept) = 0;
  // out_NI is what forward wrote. dqkv_NE is none of forward's tensors.
  virtual void backward(Context& ctx, const Tensor& dout_NI, const Tensor& out_NI, const Tensor& dqkv_NE, Kept& kept) = 0;
};

// What attention does with its probabilities: out = p · v, each head by itself.
class WeightedValues {
 public:
  virtual ~WeightedValues() = default;
  // `square_BHSS` is free to use.
  virtual void forward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& square_BHSS, const Tensor& out_BHSK) = 0;
  virtual void backward(Context& ctx, const Tensor& p_BHSS, const Tensor& v_BHSK, const Tensor& dout_BHSK, const Tensor& dp_BHSS,
                        const Tensor& dv_BHSK) = 0;
};

// How a branch joins the residual path: out = residual + branch + bias (which its linear may have left; else Tensor{}).
// In the middle some may be dropped. Megatron calls it bias-dropout-add. Rows are those that are here between the linears.
class ResidualAdd {
 public:
  virtual ~ResidualAdd() = default;
  virtual void forward(Context& ctx, const Tensor& residual_RD, const Tensor& branch_RD, const Tensor& bias_D, const Tensor& out_RD) = 0;
  // Where the gradient of the branch is: dout itself, or `into`, which is free to use.
  virtual Tensor backward(Context& ctx, const Tensor& dout_RD, const Tensor& into_RD) = 0;
};

// Drops some of what stands there, in place, or nothing.
class Dropout {
 public:
  virtual ~Dropout() = default;
  virtual void forward(Context& ctx, const Tensor& x_RD) = 0;
  virtual void backward(Context& ctx, const Tensor& dx_RD) = 0;
};

// Between the MLP's linears. `sections` is how many widths F the up projection makes (1: GELU, 2: SwiGLU).
class Activation {
 public:
  virtual ~Activation() = default;
  virtual int sections() const = 0;
  // What the matmuls on both sides are to do for it: that of up in forward, that of down in its input gradient.
  virtual Epilogue in_up(const Tensor& /*out_NF*/) const { return {}; }
  virtual Epilogue in_down(const Tensor& /*up_NE*/) const { return {}; }
  // What is left to do behind them.
  virtual void forward(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) = 0;
  // Where the gradient of up is: `into_NE`, or dout_NF itself.
  virtual Tensor backward(Context& ctx, const Tensor& up_NE, const Tensor& dout_NF, const Tensor& into_NE) = 0;
  virtual bool in_place() const { return false; }   // it is dout_NF itself
  // out_NF once more, with no matmul before it.
  virtual void remake(Context& ctx, const Tensor& up_NE, const Tensor& out_NF) { forward(ctx, up_NE, out_NF); }
};

// What a batch is, on the device: i32. The segments are of the vocabulary rows that this rank's
// embedding holds.
struct Batch {
  Tensor token_N, target_N;
  kernels::TokenSegments segments;
};

// Tells tokens where they stand, before the first block: x_ND += something of the position. Rotary positions are told
// in attention instead; then nothing stands here.
class Positions {
 public:
  virtual ~Positions() = default;
  virtual void forward(Context& ctx, const Tensor& x_ND) = 0;
  virtual void weight_gradient(Context& ctx, const Tensor& dx_ND) = 0;
  virtual std::vector<Parameter*> parameters() = 0;
};

// x_ND = rows of the table. Positions are added apart (Positions).
class TokenEmbedding {
 public:
  virtual ~TokenEmbedding() = default;
  // Rows of the vocabulary that are here: what sort_by_token is asked for.
  virtual shard::Interval vocabulary() const = 0;
  virtual void forward(Call ctx, const Batch& batch, const Tensor& x_ND) = 0;
  virtual void weight_gradient(Call ctx, const Batch& batch, const Tensor& dx_ND) = 0;
  virtual Parameter* weight() = 0;
};

// Cross entropy, summed over tokens and divided by the global number of them (so that every later sum
// over micro-batches and ranks is a plain sum).
class Loss {
 public:
  virtual ~Loss() = default;
  virtual void allocate(Context& ctx, std::int64_t tokens) = 0;   // that are handed over at once, at most
  // logit_NV ← d loss / d logit, in place. loss[0] (+)= Σ over these tokens · scale: all of a micro-batch's, or some of them.
  virtual void forward_backward(Call ctx, const Tensor& logit_NV, const Batch& batch, float scale,
                                const Tensor& loss, bool accumulate) = 0;
};

}  // namespace shardbook::model
