#include "engine/kernels/cudnn_attention.hpp"

#include <algorithm>

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/fused_attention.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

namespace {

constexpr base::Bytes square_at_most = base::Bytes{1} << 30;

constexpr std::int64_t up_to(std::int64_t number, std::int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }

// Of one sequence, in bf16.
base::Bytes square_of(const GroupedHeads& heads) { return 2 * heads.heads * up_to(heads.positions, 64) * up_to(heads.positions, 128); }

void expect_workspace(const char* op, const Tensor& workspace, const GroupedHeads& heads) {
  expect_nominal(op, "workspace", workspace, base::DType::i32);
  expect_at_least(op, "workspace", workspace, cudnn_workspace_bytes(heads) / 4);
}

// The reference is attention by tiles.
void forward_on_host(const CudnnAttentionForwardArgs& args) { host::flash_attention_forward(args.of); }
void backward_on_host(const CudnnAttentionBackwardArgs& args) { host::flash_attention_backward(args.of); }

}  // namespace

std::string cudnn_problem() { return cuda::cudnn_problem(); }
std::string cudnn_version() { return cuda::cudnn_version(); }

bool cudnn_attention_on_cuda(base::DType activation, std::int64_t head_dim) { return flash_attention_on_cuda(activation, head_dim); }

std::int64_t cudnn_sequences_at_once(const GroupedHeads& heads) {
  std::int64_t at_once = heads.sequences;
  while (at_once > 1 && (heads.sequences % at_once != 0 || at_once * square_of(heads) > square_at_most)) --at_once;
  return at_once;
}

base::Bytes cudnn_workspace_bytes(const GroupedHeads& heads) {
  const std::int64_t at_once = cudnn_sequences_at_once(heads);
  const bool shared = heads.heads != heads.key_value_heads;
  return at_once * square_of(heads) + (shared ? 2 * 2 * at_once * heads.positions * heads.query_width() : 0) + 256;
}

Tensor set_up_cudnn_attention(device::Device& device, const GroupedHeads& heads, const std::string& name) {
  base::Bytes bytes = cudnn_workspace_bytes(heads);
  if (device.kind() == device::Kind::cuda) bytes = std::max(bytes, cuda::cudnn_attention_needs(sizes_of(heads), cudnn_sequences_at_once(heads)));
  // Its bytes are no numbers of ours
  return tensor::allocate(device, {(bytes + 3) / 4}, base::DType::i32, program::MemoryKind::activation, name);
}

void cudnn_attention_forward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                             const Tensor& logsumexp_BHS, const Tensor& workspace) {
  const char* const op = "cudnn_attention_forward";
  const FusedForward of{heads, scale, qkv_NE, out_NI, logsumexp_BHS};
  expect_workspace(op, workspace, heads);
  const CudnnAttentionForwardArgs args{of.args(op), workspace.data, workspace.nominal_bytes()};
  lane.device().launch(lane, of.desc(op).writes(workspace.slice(0, {64}).use()), args, &forward_on_host, &cuda::cudnn_attention_forward);
}

void cudnn_attention_backward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                              const Tensor& dout_NI, const Tensor& logsumexp_BHS, const Tensor& delta_BHS,
                              const Tensor& dqkv_NE, const Tensor& workspace) {
  const char* const op = "cudnn_attention_backward";
  const FusedBackward of{heads, scale, qkv_NE, out_NI, dout_NI, logsumexp_BHS, delta_BHS, dqkv_NE};
  expect_workspace(op, workspace, heads);
  const CudnnAttentionBackwardArgs args{of.args(op), workspace.data, workspace.nominal_bytes(), cudnn_sequences_at_once(heads)};
  lane.device().launch(lane, of.desc(op).writes(workspace.use()), args, &backward_on_host, &cuda::cudnn_attention_backward);
}

}  // namespace shardbook::kernels
