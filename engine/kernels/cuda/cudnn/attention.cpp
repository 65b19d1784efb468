// Flops: 4·K a pair of query and key forward, 10·K backward, half of the square; bytes: q, k, v, out and their gradients once; floor: the
// flops at the rate of matmuls. What cuDNN reaches of it: notes/05_flash_attention.md. Reference: kernels/host/flash_attention.cpp.
#include "engine/kernels/cuda/cudnn/attention.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>

#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda::cudnn {

namespace {

// What the tensors of both graphs are called.
enum Id : std::int64_t { id_q = 1, id_k, id_v, id_out, id_logsumexp, id_dout, id_delta, id_dq, id_dk, id_dv, id_scale, id_minus_infinity, id_one };

// The shapes and strides of one layer's tensors.
struct Layout {
  explicit Layout(const FlashAttentionSizes& s)
      : q{s.sequences, s.heads, s.positions, s.head_dim}, k{s.sequences, s.key_value_heads, s.positions, s.head_dim},
        statistic{s.sequences, s.heads, s.positions, 1}, rows{s.positions * s.row_stride, s.head_dim, s.row_stride, 1},
        out_rows{s.positions * s.heads * s.head_dim, s.head_dim, s.heads * s.head_dim, 1} {}
  Extents q, k, statistic;
  Extents rows;       // of q, k and v in the projection's rows
  Extents out_rows;
};

Extents turned(Extents e) {
  std::swap(e[2], e[3]);
  return e;
}

// Scores of the keys that a query may not see become −∞.
Graph::Tensor causal(Graph& graph, Graph::Tensor score) {
  const Graph::Tensor row = graph.index(score, 2), column = graph.index(score, 3);
  return graph.select(score, graph.number(id_minus_infinity), graph.at_least(row, column));
}

}  // namespace

Plan attention_forward_plan(const FlashAttentionSizes& sizes, const Target& target) {
  const Layout l(sizes);
  Graph g("the forward pass of attention");
  const auto q = g.in_memory(id_q, l.q, l.rows), kT = g.in_memory(id_k, turned(l.k), turned(l.rows)), v = g.in_memory(id_v, l.k, l.rows);
  const auto out = g.in_memory(id_out, l.q, l.out_rows);
  const auto logsumexp = g.in_memory(id_logsumexp, l.statistic, dense(l.statistic), CUDNN_DATA_FLOAT);

  //@ kernels.cudnn.forward: Attention, told to cuDNN operation by operation: what lies between two of them is never in memory.
  const auto score = causal(g, g.pointwise(CUDNN_POINTWISE_MUL, g.matmul(q, kT), g.number(id_scale)));
  const auto most = g.reduce(CUDNN_REDUCE_TENSOR_MAX, score);
  const auto weight = g.pointwise(CUDNN_POINTWISE_EXP, g.pointwise(CUDNN_POINTWISE_SUB, score, most));
  const auto sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, weight);
  g.pointwise(CUDNN_POINTWISE_ADD, most, g.pointwise(CUDNN_POINTWISE_LOG, sum), logsumexp);
  const auto p = g.as(CUDNN_DATA_BFLOAT16, g.pointwise(CUDNN_POINTWISE_DIV, weight, sum));
  g.matmul(p, v, out);
  //@end
  return g.plan(target);
}

Plan attention_backward_plan(const FlashAttentionSizes& sizes, const Target& target) {
  const Layout l(sizes);
  Graph g("the backward pass of attention");
  const auto q = g.in_memory(id_q, l.q, l.rows), kT = g.in_memory(id_k, turned(l.k), turned(l.rows)), vT = g.in_memory(id_v, turned(l.k), turned(l.rows));
  const auto out = g.in_memory(id_out, l.q, l.out_rows), dout = g.in_memory(id_dout, l.q, l.out_rows);
  const auto logsumexp = g.in_memory(id_logsumexp, l.statistic, dense(l.statistic), CUDNN_DATA_FLOAT);
  const auto delta = g.in_memory(id_delta, l.statistic, dense(l.statistic), CUDNN_DATA_FLOAT);
  const auto dq = g.in_memory(id_dq, l.q, l.rows), dk = g.in_memory(id_dk, l.k, l.rows), dv = g.in_memory(id_dv, l.k, l.rows);
  const auto scale = g.number(id_scale);
  const bool shared = sizes.heads != sizes.key_value_heads;
  // What each head makes, and of those that share keys the sum
  const auto into_keys = [&](Graph::Tensor left, Graph::Tensor right, Graph::Tensor into) {
    if (!shared) return g.matmul(left, right, into);
    return g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.as(CUDNN_DATA_BFLOAT16, g.matmul(left, right)), into);
  };

  // δ = Σ dout · out
  const auto sums = g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.pointwise(CUDNN_POINTWISE_MUL, dout, out));
  g.pointwise(CUDNN_POINTWISE_MUL, sums, g.number(id_one), delta);
  // p, made again; dv = pᵀ dout
  const auto score = g.pointwise(CUDNN_POINTWISE_MUL, g.matmul(q, kT), scale);
  const auto p = g.pointwise(CUDNN_POINTWISE_EXP, causal(g, g.pointwise(CUDNN_POINTWISE_SUB, score, logsumexp)));
  into_keys(g.as(CUDNN_DATA_BFLOAT16, g.transpose(p)), dout, dv);
  // dscore = scale · p (dp − δ); dk = dscoreᵀ q
  const auto difference = g.pointwise(CUDNN_POINTWISE_SUB, g.matmul(dout, vT), delta);
  const auto dscore = g.pointwise(CUDNN_POINTWISE_MUL, g.pointwise(CUDNN_POINTWISE_MUL, difference, p), scale);
  into_keys(g.as(CUDNN_DATA_BFLOAT16, g.transpose(dscore)), q, dk);
  // dq = dscore k
  g.matmul(dscore, g.transpose(kT), dq);
  return g.plan(target);
}

namespace {

// What the calling thread has of cuDNN on its GPU. A device belongs to one thread, and so does a handle.
class Here {
 public:
  explicit Here(int gpu) : gpu_(gpu) { check(library().cudnnCreate(&handle_), "cudnnCreate", "attention"); }
  ~Here() {
    plans_.clear();
    library().cudnnDestroy(handle_);
  }
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;

  static Here& of_this_thread() {
    thread_local std::unique_ptr<Here> here;
    int gpu = 0;
    const cudaError_t code = cudaGetDevice(&gpu);
    SHARDBOOK_CHECK(code == cudaSuccess, "cuDNN's attention: cudaGetDevice failed: ", cudaGetErrorString(code));
    if (here == nullptr || here->gpu_ != gpu) here = std::make_unique<Here>(gpu);
    return *here;
  }

  // Made once a shape: that compiles kernels, for some tenths of a second.
  const Plan& forward(const FlashAttentionSizes& sizes) { return plan(sizes, &attention_forward_plan, 0); }
  const Plan& backward(const FlashAttentionSizes& sizes) { return plan(sizes, &attention_backward_plan, 1); }

  void run(const Plan& plan, const std::vector<Plan::Place>& places, void* workspace, std::int64_t bytes, const device::CudaQueue& queue) {
    SHARDBOOK_CHECK(plan.workspace_bytes() <= bytes, "cuDNN's attention needs a workspace of ", plan.workspace_bytes(), " bytes, and has ", bytes);
    check(library().cudnnSetStream(handle_, static_cast<cudaStream_t>(queue.stream)), "cudnnSetStream", "attention");
    plan.run(handle_, places, workspace);
  }

 private:
  using Key = std::array<std::int64_t, 7>;
  const Plan& plan(const FlashAttentionSizes& s, Plan (*make)(const FlashAttentionSizes&, const Target&), std::int64_t which) {
    const Key key{which, s.sequences, s.heads, s.key_value_heads, s.positions, s.head_dim, s.row_stride};
    const auto found = plans_.find(key);
    return found != plans_.end() ? found->second : plans_.emplace(key, make(s, {handle_, ""})).first->second;
  }

  int gpu_;
  cudnnHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

void* at(const void* pointer) { return const_cast<void*>(pointer); }
// Where sequence `first`'s part of a tensor begins, of which each sequence has so many bytes.
void* at(const void* pointer, std::int64_t first, std::int64_t bytes) { return static_cast<char*>(at(pointer)) + first * bytes; }

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr float one = 1.0f;

}  // namespace

}  // namespace shardbook::kernels::cuda::cudnn

namespace shardbook::kernels::cuda {

using cudnn::Here;

std::string cudnn_problem() { return cudnn::problem(); }

std::string cudnn_version() { return cudnn::problem().empty() ? cudnn::version() : ""; }

std::int64_t cudnn_attention_needs(const FlashAttentionSizes& sizes, std::int64_t sequences_at_once) {
  FlashAttentionSizes part = sizes;
  part.sequences = sequences_at_once;
  return std::max(Here::of_this_thread().forward(sizes).workspace_bytes(), Here::of_this_thread().backward(part).workspace_bytes());
}

void cudnn_attention_forward(const CudnnAttentionForwardArgs& args, const device::CudaQueue& queue) {
  using namespace cudnn;
  const FlashAttentionForwardArgs& of = args.of;
  Here& here = Here::of_this_thread();
  here.run(here.forward(of.sizes),
           {{id_q, at(of.q)}, {id_k, at(of.k)}, {id_v, at(of.v)}, {id_out, of.out_NHK}, {id_logsumexp, of.logsumexp_BHS},
            {id_scale, at(&of.scale)}, {id_minus_infinity, at(&minus_infinity)}},
           args.workspace, args.workspace_bytes, queue);
}

void cudnn_attention_backward(const CudnnAttentionBackwardArgs& args, const device::CudaQueue& queue) {
  using namespace cudnn;
  const FlashAttentionBackwardArgs& of = args.of;
  const FlashAttentionSizes& s = of.sizes;
  const std::int64_t rows = 2 * s.positions * s.row_stride, out_rows = 2 * s.positions * s.heads * s.head_dim, statistics = 4 * s.positions * s.heads;
  Here& here = Here::of_this_thread();
  FlashAttentionSizes part = s;
  part.sequences = args.sequences_at_once;
  const Plan& plan = here.backward(part);
  for (std::int64_t first = 0; first < s.sequences; first += part.sequences) {
    here.run(plan,
             {{id_q, at(of.q, first, rows)}, {id_k, at(of.k, first, rows)}, {id_v, at(of.v, first, rows)},
              {id_out, at(of.out_NHK, first, out_rows)}, {id_dout, at(of.dout_NHK, first, out_rows)},
              {id_logsumexp, at(of.logsumexp_BHS, first, statistics)}, {id_delta, at(of.delta_BHS, first, statistics)},
              {id_dq, at(of.dq, first, rows)}, {id_dk, at(of.dk, first, rows)}, {id_dv, at(of.dv, first, rows)},
              {id_scale, at(&of.scale)}, {id_minus_infinity, at(&minus_infinity)}, {id_one, at(&one)}},
             args.workspace, args.workspace_bytes, queue);
  }
}

}  // namespace shardbook::kernels::cuda
