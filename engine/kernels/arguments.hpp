// kernels/arguments: what each kernel is given, as plain pointers and sizes.
//
// One struct an op, shared by its host reference (kernels/host/) and its CUDA kernel (kernels/cuda/), so
// that the two are the same function of the same arguments. Shape suffixes as in tensor/tensor.hpp.
//
// Types. `dtype` is the storage type of activations, parameters as used (the gathered copy) and their
// gradients with respect to activations: bf16 or f32 on cuda, f32 or f64 on host. "stat" pointers
// (mean, rstd, row_max, losses, parameter gradients, masters, moments) are f32 on cuda and `dtype`
// on host, where every floating number has one type. Arithmetic is in f32 on cuda, in T on host.
// No kernel uses float atomics: each sum has one order, so a run repeats bit for bit.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels {

using base::DType;

// A sum over tokens (of a bias' or a norm's gradient) is cut into at most this many blocks of rows; of b blocks, block i has
// tokens [i · per, min(tokens, (i + 1) · per)), per = ceil(tokens / b). Each block writes its
// partial sums to `scratch`, and a second pass adds them in rising order. The host needs no scratch.
constexpr std::int64_t row_blocks(std::int64_t tokens) {
  constexpr std::int64_t most = 128, rows_at_least = 32;
  const std::int64_t blocks = (tokens + rows_at_least - 1) / rows_at_least;
  return blocks < 1 ? 1 : blocks > most ? most : blocks;
}
// Partial sums of SumOfSquaresArgs::scratch.
inline constexpr std::int64_t square_blocks = 1024;

// What a product does with each number while it has it, beside storing it (cuBLASLt calls that an epilogue):
//   gelu        other = gelu(c), of c before it is rounded; c is stored as ever, for backward
//   gelu_slope  c is multiplied by gelu′(other) before it is stored
enum class Beside : std::uint8_t { nothing, gelu, gelu_slope };

// C[m,n] = alpha · op(A)[m,k] · op(B)[k,n] + beta · C, row-major, batched by strides (elements).
// a_transposed: A is stored [k,m]; b_transposed: B is stored [n,k]. bias_n (may be null) is added to each
// row. c_dtype differs from dtype for weight gradients (f32). beta is 0, or 1 where C is
// no bf16. Products are summed in f32 on cuda. lda, ldb, ldc: elements from one stored row to the next.
// `other`, where `beside` wants one, has the rows and the type of C; then batch is 1, beta 0, ldc n.
struct GemmArgs {
  const void* a; const void* b; void* c; const void* bias_n;
  std::int64_t m, n, k, lda, ldb, ldc;
  std::int64_t batch, stride_a, stride_b, stride_c;
  bool a_transposed, b_transposed;
  float alpha, beta;
  DType dtype, c_dtype;
  Beside beside; void* other;
};

// y = (x − mean) · rstd · weight + bias, each token by itself. mean_N and rstd_N are kept for backward.
struct LayerNormForwardArgs {
  const void* x_ND; const void* weight_D; const void* bias_D;
  void* y_ND; void* mean_N; void* rstd_N;
  std::int64_t tokens, width; float epsilon; DType dtype;
};
// dx = gradient through the norm, plus residual_gradient_ND where that is not null (the path round it).
struct LayerNormInputGradientArgs {
  const void* dy_ND; const void* x_ND; const void* weight_D; const void* mean_N; const void* rstd_N;
  const void* residual_gradient_ND; void* dx_ND;
  std::int64_t tokens, width; DType dtype;
};
// dweight_D (+)= Σ_n dy·x̂, dbias_D (+)= Σ_n dy. scratch: f32 [row_blocks(tokens), 2, D].
struct LayerNormWeightGradientArgs {
  const void* dy_ND; const void* x_ND; const void* mean_N; const void* rstd_N;
  void* dweight_D; void* dbias_D; void* scratch;
  std::int64_t tokens, width; bool accumulate; DType dtype;
};

// y = x · rstd · weight with rstd = 1 / √(mean of x² + epsilon), each token by itself. rstd_N is kept for backward.
struct RmsNormForwardArgs {
  const void* x_ND; const void* weight_D; void* y_ND; void* rstd_N;
  std::int64_t tokens, width; float epsilon; DType dtype;
};
// dx = gradient through the norm, plus residual_gradient_ND where that is not null.
struct RmsNormInputGradientArgs {
  const void* dy_ND; const void* x_ND; const void* weight_D; const void* rstd_N; const void* residual_gradient_ND; void* dx_ND;
  std::int64_t tokens, width; DType dtype;
};
// dweight_D (+)= Σ_n dy·x·rstd. scratch: f32 [row_blocks(tokens), D].
struct RmsNormWeightGradientArgs {
  const void* dy_ND; const void* x_ND; const void* rstd_N; void* dweight_D; void* scratch;
  std::int64_t tokens, width; bool accumulate; DType dtype;
};

// y_NF = silu(gate) · up, rows [gate | up] of 2F numbers, silu(x) = x / (1 + e^−x).
struct SwiGluForwardArgs { const void* up_N2F; void* y_NF; std::int64_t tokens, width; DType dtype; };
// dup_N2F holds dgate and dup, likewise.
struct SwiGluBackwardArgs { const void* up_N2F; const void* dy_NF; void* dup_N2F; std::int64_t tokens, width; DType dtype; };

// In place: turns numbers i and i + K/2 of each of the first `heads` heads of a token's row by the angle s · theta^(−2i/K),
// s the token's position; by its negative where `inverse`. Rows are row_stride elements apart.
struct RotateArgs {
  void* rows; std::int64_t sequences, positions, heads, head_dim, row_stride; float theta; bool inverse; DType dtype;
};

// The tanh form of GPT-2: ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
struct GeluForwardArgs { const void* x; void* y; std::int64_t elements; DType dtype; };
struct GeluBackwardArgs { const void* x; const void* dy; void* dx; std::int64_t elements; DType dtype; };

// out = residual + x + bias_D (bias may be null). out may be residual or x.
struct AddBiasResidualArgs {
  const void* residual_ND; const void* x_ND; const void* bias_D; void* out_ND;
  std::int64_t tokens, width; DType dtype;
};
// Which elements are dropped: those whose draw by (key, element of the whole tensor) is below `threshold` (random.hpp's
// is_dropped()); the others are multiplied by `scale`. Element i of the tensor is element first + (i / run) · stride +
// i mod run of the whole one: a rank that holds some heads has runs, one that holds some rows has one.
// Where the arguments are written once for many steps (host.graph), `key` is the place alone, and `step_key` points to the key of
// the step (random.hpp's step_key()) in memory of the device.
struct DropoutMask {
  std::uint64_t key; std::uint32_t threshold; float scale; std::int64_t first, run, stride;
  const std::uint64_t* step_key = nullptr;
};
// What the key comes to, where the kernel runs.
constexpr std::uint64_t key_of(const DropoutMask& mask) { return mask.step_key == nullptr ? mask.key : mask_key(*mask.step_key, mask.key); }
constexpr DropoutMask no_dropout{0, 0, 1.0f, 0, 1, 0};
// y = x · scale, or 0 where dropped. y may be x.
struct DropoutArgs { const void* x; void* y; std::int64_t elements; DropoutMask mask; DType dtype; };
// out = residual + (x + bias_D) · scale, or residual where dropped (bias may be null). One run. out may be residual or x.
struct BiasDropoutResidualArgs {
  const void* residual_ND; const void* x_ND; const void* bias_D; void* out_ND;
  std::int64_t tokens, width; DropoutMask mask; DType dtype;
};
// dbias_O (+)= Σ_n dy_NO. scratch: f32 [row_blocks(tokens), O].
struct BiasGradientArgs {
  const void* dy_NO; void* dbias_O; void* scratch;
  std::int64_t tokens, width; bool accumulate; DType dtype;
};
// into += from, both of stat type.
struct AccumulateArgs { const void* from; void* into; std::int64_t elements; DType dtype; };
// out = Σ_p part p, in the order of parts, each of which has as many elements as out and lies behind the one before.
struct SumPartsArgs { const void* parts_P; void* out; std::int64_t elements, parts; DType dtype; };
// into (+)= from. `from` is of `dtype`, into of stat type, which holds every number of dtype.
struct WidenArgs { const void* from; void* into; std::int64_t elements; bool accumulate; DType dtype; };

// x_ND[n] = weight[token_N[n] − vocab_begin] where the token lies in [vocab_begin, vocab_end), else 0.
struct EmbeddingForwardArgs {
  const std::int32_t* token_N; const void* weight_VD; void* x_ND;
  std::int64_t tokens, width; std::int32_t vocab_begin, vocab_end; DType dtype;
};
// dweight[v] (+)= Σ over this token's positions of dx_ND, in rising position. order_N, segment_token and
// segment_begin are what data::sort_by_token made; *segments of them hold (device memory, i32).
// Without accumulate, rows of tokens that do not occur are set to 0: dweight is written whole.
struct EmbeddingBackwardArgs {
  const void* dx_ND; const std::int32_t* order_N; const std::int32_t* segment_token_N;
  const std::int32_t* segment_begin_N; const std::int32_t* segments; void* dweight_VD;
  std::int64_t tokens, width; std::int32_t vocab_begin, vocab_end; bool accumulate; DType dtype;
};
// x_ND[n] += weight_SD[(first + n) mod S].
struct PositionForwardArgs { const void* weight_SD; void* x_ND; std::int64_t rows, positions, width; DType dtype; std::int64_t first; };
// dweight_SD[s] (+)= Σ of dx_ND[n] where (first + n) mod S = s.
struct PositionBackwardArgs {
  const void* dx_ND; void* dweight_SD; std::int64_t rows, positions, width; bool accumulate; DType dtype; std::int64_t first;
};

// out_PBHSK[p, b, h, s, k] = x_NPHK[b·S + s, p, h, k]: tokens first to heads first. Tokens are row_stride elements apart.
// `inverse` copies the other way (from `heads` to `tokens_first`).
struct SplitHeadsArgs {
  void* tokens_first_NPHK; void* heads_first_PBHSK;
  std::int64_t parts, sequences, heads, positions, head_dim, row_stride; bool inverse; DType dtype;
};
// probability = softmax over keys t ≤ s of scale · score; 0 for t > s. May be in place.
struct CausalSoftmaxForwardArgs {
  const void* score_BHSS; void* probability_BHSS; std::int64_t batch_heads, positions; float scale; DType dtype;
};
// dscore = scale · p · (dp − Σ_t p·dp) for t ≤ s, else 0. dscore may be dprobability.
struct CausalSoftmaxBackwardArgs {
  const void* probability_BHSS; const void* dprobability_BHSS; void* dscore_BHSS;
  std::int64_t batch_heads, positions; float scale; DType dtype;
};

// Attention by tiles (kernels/flash_attention.hpp). q, k and v lie tokens first, one projection's rows: the row of
// token n = b·S + s begins at n·row_stride, and in it head h of q at h·K, key-value head g of k and v at g·K (each
// from its own pointer). Query head h looks at key-value head h / (heads / key_value_heads).
struct FlashAttentionSizes {
  std::int64_t sequences, heads, key_value_heads, positions, head_dim;  // B, H, G, S, K
  std::int64_t row_stride;                                              // elements: (H + 2G)·K in one fused row
};
// out_NHK[n, h] = Σ_t p_t v_t over keys t ≤ s, p = softmax(scale · q·k); logsumexp_BHS = log Σ_t e^(scale · q·k), of stat
// type. Rows of `out` are H·K apart. What `mask` drops of p, the tensor [B, H, S, S] in runs of H·S·S, does not count in
// `out`; the logsumexp is that of all.
struct FlashAttentionForwardArgs {
  const void* q; const void* k; const void* v; void* out_NHK; void* logsumexp_BHS;
  FlashAttentionSizes sizes; float scale; DType dtype; DropoutMask mask = no_dropout;
};
// p is made anew from scores and logsumexp, the row sums Σ_t p·dp as δ_BHS = Σ_k dout·out (stat type, written here).
// dq, dk and dv lie as q, k and v do, row_stride apart.
struct FlashAttentionBackwardArgs {
  const void* q; const void* k; const void* v; const void* out_NHK; const void* dout_NHK; const void* logsumexp_BHS;
  void* delta_BHS; void* dq; void* dk; void* dv;
  FlashAttentionSizes sizes; float scale; DType dtype; DropoutMask mask = no_dropout;
};

// The same by cuDNN, without a mask. `workspace` is device memory of so many bytes; backward takes `sequences_at_once` of
// them, a divisor of all, after one another. The host needs neither.
struct CudnnAttentionForwardArgs { FlashAttentionForwardArgs of; void* workspace; std::int64_t workspace_bytes; };
struct CudnnAttentionBackwardArgs { FlashAttentionBackwardArgs of; void* workspace; std::int64_t workspace_bytes, sequences_at_once; };

// Cross entropy over a vocabulary that is cut in [vocab_begin, vocab_end) a rank (V local columns).
// 1. row_max_N[n] = max over local columns.
struct CrossEntropyMaxArgs { const void* logit_NV; void* row_max_N; std::int64_t tokens, vocab; DType dtype; };
// 2. with the global row_max: sums_2N[0, n] = Σ_v exp(logit − row_max), sums_2N[1, n] = the target's
//    logit − row_max where the target is local, else 0.
struct CrossEntropySumsArgs {
  const void* logit_NV; const void* row_max_N; const std::int32_t* target_N; void* sums_2N;
  std::int64_t tokens, vocab; std::int32_t vocab_begin; DType dtype;
};
// 3. with the global sums: loss_N[n] = log(sum) − target's logit, and, in place,
//    logit_NV ← scale · (softmax − onehot(target)).
struct CrossEntropyGradientArgs {
  void* logit_NV; const void* row_max_N; const void* sums_2N; const std::int32_t* target_N; void* loss_N;
  std::int64_t tokens, vocab; std::int32_t vocab_begin; float scale; DType dtype;
};
// 1 to 3 at once of a vocabulary that is whole here: loss_N, and logit_NV in place.
struct CrossEntropyArgs {
  void* logit_NV; const std::int32_t* target_N; void* loss_N;
  std::int64_t tokens, vocab; float scale; DType dtype;
};
// total[0] (+)= scale · Σ values, in one fixed order. Values and total are of stat type.
struct SumArgs { const void* value_N; void* total; std::int64_t elements; float scale; bool accumulate; DType dtype; };

// total[0] (+)= Σ gradient², over flat elements of [counted_begin, counted_end) that lie in this shard,
// whose first element is flat index `shard_begin`. In one fixed order. scratch: f32 [square_blocks].
struct SumOfSquaresArgs {
  const void* gradient; void* total; void* scratch;
  std::int64_t shard_begin, elements, counted_begin, counted_end; bool accumulate; DType dtype;
};
// factor[0] = min(1, clip / (√total + 1e-6)), norm[0] = √total. clip = 0: factor 1.
struct ClipFactorArgs { const void* total; void* factor; void* norm; float clip; DType dtype; };

// AdamW (Loshchilov and Hutter 2019, as torch.optim.AdamW) on one shard of a flat unit; writes the new
// master and its low-precision copy. Weight decay applies to flat index < decay_end.
// What of an update depends on the step. f64, which is rounded where it is used.
struct AdamWFactors {
  double keep;             // 1 − learning rate · weight decay
  double step_size;        // learning rate / (1 − beta1^step)
  double root_correction;  // 1 / √(1 − beta2^step)
};
// `factors`, in memory of the device: what learning_rate, weight_decay and step come to, where the arguments are written once
// for many steps (host.graph). Null: these tell it.
struct AdamWArgs {
  void* master; void* first_moment; void* second_moment; const void* gradient; void* parameter;
  const void* clip_factor;
  std::int64_t shard_begin, elements, decay_end;
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  std::int64_t step;  // counts from 1, for bias correction
  DType dtype;        // of `parameter`
  const AdamWFactors* factors = nullptr;
};

// The same by the CPU, in host memory: masters, moments and gradient are of type `stat`, f32 or f64 (host); the factor is
// there, too.
struct AdamWOnHostArgs { AdamWArgs of; DType stat; };

struct FillArgs { void* to; std::int64_t elements; float value; DType dtype; };
// Stat type to `dtype` (identity on host).
struct CastArgs { const void* from; void* to; std::int64_t elements; DType dtype; };
// to[i] = mean + deviation · g(seed, parameter, index of the global element). The shard's elements are rows
// [row_begin, row_begin + rows) and columns [column_begin, column_begin + columns) of a global matrix
// of `global_columns`; only its elements [begin, begin + elements), counted row by row, are written.
// The value is random.hpp's normal_value(): integer arithmetic and a rounding to f32 that no contraction
// changes, hence equal on every device and for every storage type. Stat type.
struct InitNormalArgs {
  void* to; std::uint64_t seed; std::uint32_t parameter;
  std::int64_t row_begin, column_begin, columns, global_columns, begin, elements;
  float mean, deviation; DType dtype;
};

}  // namespace shardbook::kernels
