// model/spec: which piece stands where.
//
// A ModelSpec is a handful of functions that make pieces. The model asks them while it is built and never
// looks behind them. dense_spec() is a model on one rank; tensor_parallel::parallel_spec() returns one
// whose linears, embedding and loss are cut over a group. Llama's norms, rotary positions and SwiGLU are other
// functions in the same places, and so is attention by tiles.
#pragma once

#include "engine/model/pieces.hpp"

namespace shardbook::model {

// Sizes of a decoder, whole: no rank's part of them.
struct Sizes {
  int layers = 0;
  std::int64_t width = 0;         // D
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;      // K
  std::int64_t ffn_width = 0;     // F
  std::int64_t vocabulary = 0;    // V
  std::int64_t positions = 0;     // S, rows of the position table
  bool tied = true;
  float norm_epsilon = 1e-5f;
  bool biases = true;             // of the blocks' linears
};

// What a linear is for, so that a layout can tell how to cut it.
enum class LinearRole : std::uint8_t { qkv, projection, up, down, head };
const char* name_of(LinearRole role);

struct LinearConfig {
  std::string name;       // "blocks.3.attention.qkv"
  LinearRole role = LinearRole::up;
  std::int64_t inputs = 0;
  // Output rows, section by section; each is cut on its own (q, k, v lie one after the other).
  std::vector<std::int64_t> sections;
  bool bias = true;
  bool late_bias = false;  // the caller adds it
  float deviation = 0.02f;
  Parameter* tied_weight = nullptr;  // use this weight instead of an own one
};

struct AttentionConfig {
  std::int64_t heads = 0;            // of the whole layer
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::string name = {};             // "blocks.3.attention": what is drawn in it is drawn by this
  // The heads are part `part` of `parts` of the layer's: what is drawn by head is drawn by its place in the layer.
  int parts = 1;
  int part = 0;
};

struct ModelSpec {
  std::function<std::unique_ptr<Norm>(const std::string& name, std::int64_t width, float epsilon)> norm;
  std::function<std::unique_ptr<Linear>(const LinearConfig&)> linear;
  std::function<std::unique_ptr<Attention>(const AttentionConfig&)> attention;
  std::function<std::unique_ptr<Activation>()> activation;
  std::function<std::unique_ptr<ResidualAdd>(const std::string& name)> residual;
  std::function<std::unique_ptr<Dropout>(const std::string& name)> embedded;   // after embedding and positions
  std::function<std::unique_ptr<Positions>(const std::string& name, std::int64_t positions, std::int64_t width)> positions;
  std::function<std::unique_ptr<TokenEmbedding>(const std::string& name, std::int64_t vocabulary, std::int64_t width)> embedding;
  std::function<std::unique_ptr<Loss>(std::int64_t vocabulary)> loss;
  TokenCut cut = {};   // which rows the pieces between the linears see
};

// GPT-2's pieces on one rank: LayerNorm, dense linears, causal softmax attention, GELU, learnt positions.
ModelSpec dense_spec();
// The same with attention that keeps no probabilities and makes them again in backward.
ModelSpec with_recomputed_attention(ModelSpec spec);
// The same with attention that never has them as a whole.
ModelSpec with_flash_attention(ModelSpec spec);
// The same of cuDNN's kernels; nothing can be dropped in it.
ModelSpec with_cudnn_attention(ModelSpec spec);
// The same with a loss that is one kernel. Of a vocabulary that is whole: what cuts it puts a piece of its own here.
ModelSpec with_loss_in_one(ModelSpec spec);
// The same with GELU done by the matmuls on both sides of it.
ModelSpec with_gelu_in_matmuls(ModelSpec spec);
// The same with Llama's pieces: norms by RMS, SwiGLU, and positions as rotations of q and k with base `theta`. Heads of
// k and v, and linears without biases, are Sizes.
ModelSpec with_llama_pieces(ModelSpec spec, float theta);

}  // namespace shardbook::model
