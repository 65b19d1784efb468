#include "engine/kernels/flash_attention.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/fused_attention.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

bool flash_attention_on_cuda(base::DType activation, std::int64_t head_dim) {
  return activation == base::DType::bf16 && (head_dim == 32 || head_dim == 64 || head_dim == 128);
}

void flash_attention_forward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                             const Tensor& logsumexp_BHS, const DropoutMask& mask) {
  const char* const op = mask.threshold == 0 ? "flash_attention_forward" : "flash_attention_dropout_forward";
  const FusedForward of{heads, scale, qkv_NE, out_NI, logsumexp_BHS, mask};
  lane.device().launch(lane, of.desc(op), of.args(op), &host::flash_attention_forward, &cuda::flash_attention_forward);
}

void flash_attention_backward(Lane lane, const GroupedHeads& heads, float scale, const Tensor& qkv_NE, const Tensor& out_NI,
                              const Tensor& dout_NI, const Tensor& logsumexp_BHS, const Tensor& delta_BHS,
                              const Tensor& dqkv_NE, const DropoutMask& mask) {
  const char* const op = mask.threshold == 0 ? "flash_attention_backward" : "flash_attention_dropout_backward";
  const FusedBackward of{heads, scale, qkv_NE, out_NI, dout_NI, logsumexp_BHS, delta_BHS, dqkv_NE, mask};
  lane.device().launch(lane, of.desc(op), of.args(op), &host::flash_attention_backward, &cuda::flash_attention_backward);
}

}  // namespace shardbook::kernels
