// kernel_bench: how fast is each kernel at the sizes of gpt-1.3b?
//
// 8192 tokens (8 sequences of 1024), D 2048, F 8192, V 50304, 16 heads of 128. Random data: a GPU that
// multiplies zeros draws less power and runs faster. Each op is issued 20 times after 3, back to back,
// over as many different places as make 512 MiB, so that the cache does not stand in for memory. Time is the whole
// run's on the GPU divided by 20; "span" is the median of what the device's own timing says of one op.
// `kernel_bench flash` times those whose names have that word; "cudnn" are attention's by cuDNN.
// GB/s counts what must be moved once; "copy" is what the memory can do.
// "on_host" is the CPU's update, in host memory, with the processors that this process may use but one, as a rank has it: with
// so many of them at once as there are ranks (taskset -c), it gives the profile's curve "host".
#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/copy.hpp"
#include "engine/device/crew.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/cuda/owners.hpp"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/dropout.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook {
namespace {

using base::Bytes;
using base::DType;
using namespace kernels;

constexpr std::int64_t N = 8192, D = 2048, F = 8192, V = 50304, B = 8, H = 16, S = 1024, K = 128;
constexpr Bytes pool_bytes = Bytes{16} << 30;
constexpr Bytes part_bytes = Bytes{1} << 30;
constexpr int warm_ups = 3, repeats = 20;

class Bench {
 public:
  explicit Bench(std::string only) : only_(std::move(only)) {
    auto made = device::make_cuda_device(0, {DType::bf16, DType::f32}, 0);
    if (!made) throw base::Failure(made.error());
    device_ = std::move(made).value();
    stream_ = &device_->create_stream("compute");
    pool_ = static_cast<char*>(device_->allocate(pool_bytes / 4, DType::f32, program::MemoryKind::workspace, "pool").data);
    tokens_ = static_cast<std::int32_t*>(device_->allocate(8 * N, DType::i32, program::MemoryKind::input, "tokens").data);
    device_->seal();
    std::printf("%s, a mark costs the stream %lld ns\n\n", device::cuda_device_name(0).c_str(),
                static_cast<long long>(device::cuda_timing(*device_).device_cost_of_op));
    randomise(pool_bytes - 2 * part_bytes);
  }

  // Whether it is to be timed.
  bool has(const std::string& name) const { return name.find(only_) != std::string::npos; }

  template <class Args>
  void launch(const Args& args, void (*host)(const Args&), void (*cuda)(const Args&, const device::CudaQueue&)) {
    device_->launch(*stream_, program::OpDesc("bench", program::OpKind::pointwise, DType::f32), args, host, cuda);
  }

  // make(place) gives the args of one issue whose tensors lie from `place` on, `footprint` bytes in all.
  // `bytes` is what must be moved, `flops` what must be computed (0: a matter of memory).
  template <class Args, class Make>
  void time(const char* name, Bytes footprint, double bytes, double flops, void (*host)(const Args&),
            void (*cuda)(const Args&, const device::CudaQueue&), Make make) {
    if (!has(name)) return;
    const Bytes stride = (footprint + 255) / 256 * 256;
    const Bytes places = std::clamp<Bytes>((Bytes{512} << 20) / stride, 1, std::min<Bytes>(repeats, (pool_bytes - 2 * part_bytes) / stride));
    const auto run = [&](int count) {
      for (int i = 0; i < count; ++i) launch(make(pool_ + (i % places) * stride), host, cuda);
    };
    randomise(places * stride);
    const double each = unmarked(run);
    device_->begin_step(step_++, true);
    run(repeats);
    const program::StepTimes& times = device_->end_step();
    std::vector<base::Nanoseconds> spans;
    for (const program::TimeSpan& span : times.ran) spans.push_back(span.end - span.start);
    std::nth_element(spans.begin(), spans.begin() + repeats / 2, spans.end());

    std::printf("%-34s %9.1f us  span %9.1f us  %8.0f GB/s", name, 1e-3 * each, 1e-3 * static_cast<double>(spans[repeats / 2]),
                bytes / each);
    if (flops > 0) std::printf("  %7.0f TFLOP/s", 1e-3 * flops / each);
    std::printf("\n");
    std::fflush(stdout);
  }

  // Fills the pool's first bytes with random bf16 numbers; read as f32 they are finite too.
  void randomise(Bytes bytes) {
    char* const scratch = pool_ + pool_bytes - 2 * part_bytes;
    const std::int64_t count = part_bytes / 4;
    for (Bytes at = 0; at < bytes; at += part_bytes / 2) {
      launch(InitNormalArgs{scratch, 1, static_cast<std::uint32_t>(at >> 20), 0, 0, count, count, 0, count, 0, 1, DType::f32},
             &host::init_normal, &cuda::init_normal);
      launch(CastArgs{scratch, pool_ + at, count, DType::bf16}, &host::cast, &cuda::cast);
    }
    device_->synchronize();
  }

  char* pool() { return pool_; }
  std::int32_t* tokens() { return tokens_; }
  device::Device& device() { return *device_; }
  device::Stream& stream() { return *stream_; }

 private:
  // Nanoseconds of one of `repeats` back to back, between two marks: the least of three runs.
  template <class Run>
  double unmarked(Run run) {
    struct Mark {
      cudaEvent_t event;
    };
    const auto mark = [&](cudaEvent_t event) {
      device_->launch(*stream_, program::OpDesc("mark", program::OpKind::pointwise, DType::f32), Mark{event}, +[](const Mark&) {},
                      +[](const Mark& m, const device::CudaQueue& queue) {
                        SHARDBOOK_CUDA(cudaEventRecord(m.event, static_cast<cudaStream_t>(queue.stream)), "mark");
                      });
    };
    const auto begin = device::cuda::make_timed_event("bench"), end = device::cuda::make_timed_event("bench");
    double best = 1e18;
    for (int i = 0; i < 3; ++i) {
      run(warm_ups);
      mark(begin.get());
      run(repeats);
      mark(end.get());
      device_->synchronize();
      float milliseconds = 0;
      SHARDBOOK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "bench");
      best = std::min(best, 1e6 * static_cast<double>(milliseconds) / repeats);
    }
    return best;
  }

  std::string only_;
  std::unique_ptr<device::Device> device_;
  device::Stream* stream_ = nullptr;
  char* pool_ = nullptr;
  std::int32_t* tokens_ = nullptr;
  std::int64_t step_ = 0;
};

GemmArgs product(char* place, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool at, bool bt, bool bias,
                 float beta, DType c_dtype) {
  GemmArgs g{};
  g.a = place;
  g.b = place + batch * m * k * 2;
  g.c = place + batch * (m * k + k * n) * 2;
  g.bias_n = bias ? place : nullptr;
  g.m = m; g.n = n; g.k = k;
  g.lda = at ? m : k; g.ldb = bt ? k : n; g.ldc = n;
  g.batch = batch; g.stride_a = m * k; g.stride_b = k * n; g.stride_c = m * n;
  g.a_transposed = at; g.b_transposed = bt;
  g.alpha = 1; g.beta = beta; g.dtype = DType::bf16; g.c_dtype = c_dtype;
  return g;
}

void products(Bench& bench) {
  const auto time = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool at, bool bt,
                        bool bias, float beta, DType c) {
    const Bytes bytes = batch * ((m * k + k * n) * 2 + m * n * base::size_of(c));
    bench.time<GemmArgs>(name, bytes, static_cast<double>(bytes), 2.0 * m * n * k * batch, &host::gemm, &cuda::gemm,
                         [=](char* place) { return product(place, m, n, k, batch, at, bt, bias, beta, c); });
  };
  struct Linear {
    const char* name;
    std::int64_t out, in;
  };
  for (const Linear& l : {Linear{"qkv", 3 * D, D}, {"proj", D, D}, {"fc1", F, D}, {"fc2", D, F}, {"head", V, D}}) {
    time((std::string(l.name) + " forward, bias").c_str(), N, l.out, l.in, 1, false, true, true, 0, DType::bf16);
    time((std::string(l.name) + " input gradient").c_str(), N, l.in, l.out, 1, false, false, false, 0, DType::bf16);
    time((std::string(l.name) + " weight gradient f32").c_str(), l.out, l.in, N, 1, true, false, false, 0, DType::f32);
  }
  time("scores q kT", S, S, K, B * H, false, true, false, 0, DType::bf16);
  time("context p v", S, K, S, B * H, false, false, false, 0, DType::bf16);
  time("context gradient pT dy", S, K, S, B * H, true, false, false, 0, DType::bf16);
}

// The matmuls on both sides of GELU, with it and without: 4 times as wide within.
void around_gelu(Bench& bench, std::int64_t tokens, std::int64_t width) {
  const std::int64_t wide = 4 * width;
  const std::string of = " " + std::to_string(tokens) + " x " + std::to_string(width);
  for (const Beside beside : {Beside::nothing, Beside::gelu, Beside::gelu_slope}) {
    for (const bool forward : {true, false}) {
      if (beside == (forward ? Beside::gelu_slope : Beside::gelu)) continue;
      const bool fused = beside != Beside::nothing;
      const std::string name = (forward ? "up forward, bias" : "down input gradient") + std::string(!fused ? "" : forward ? ", gelu" : ", gelu slope") + of;
      const Bytes bytes = (tokens * width + wide * width + (fused ? 2 : 1) * tokens * wide) * 2;
      bench.time<GemmArgs>(name.c_str(), bytes, static_cast<double>(bytes), 2.0 * tokens * wide * width, &host::gemm, &cuda::gemm, [=](char* place) {
        GemmArgs g = product(place, tokens, wide, width, 1, false, forward, forward, 0, DType::bf16);
        g.beside = beside;
        g.other = fused ? static_cast<char*>(g.c) + tokens * wide * 2 : nullptr;
        return g;
      });
    }
  }
}

// The workspace of cuDNN's kernels lies in the pool's second half, behind what is measured.
template <class Section>
void cudnn_attention(Bench& bench, const FlashAttentionSizes& s, double product, const std::string& name, float* stats, Section section) {
  const std::string forward_name = "cudnn forward" + name, backward_name = "cudnn backward" + name;
  if ((!bench.has(forward_name) && !bench.has(backward_name)) || !cudnn_problem().empty()) return;
  const Bytes out = s.sequences * s.positions * s.heads * s.head_dim * 2, rows = s.sequences * s.positions * s.row_stride * 2;
  const std::int64_t at_once = cudnn_sequences_at_once({s.sequences, s.heads, s.key_value_heads, s.positions, s.head_dim});
  const std::int64_t needs = cuda::cudnn_attention_needs(s, at_once);
  char* const workspace = bench.pool() + pool_bytes / 2;
  SHARDBOOK_CHECK(needs <= 4 * part_bytes, "the bench has no room for a workspace of ", needs, " bytes");
  const float scale = 0.088f;
  const auto forward = [=](char* p) { return FlashAttentionForwardArgs{section(p, 0), section(p, 1), section(p, 2), p + rows, stats, s, scale, DType::bf16}; };
  bench.time<CudnnAttentionForwardArgs>(forward_name.c_str(), rows + out, static_cast<double>(rows + out), 2 * product,
      nullptr, &cuda::cudnn_attention_forward, [=](char* p) { return CudnnAttentionForwardArgs{forward(p), workspace, needs}; });
  bench.time<CudnnAttentionBackwardArgs>(backward_name.c_str(), 2 * (rows + out), static_cast<double>(2 * (rows + out)), 5 * product,
      nullptr, &cuda::cudnn_attention_backward, [=](char* p) {
        char* const dqkv = p + rows + 2 * out;
        const FlashAttentionBackwardArgs of{section(p, 0), section(p, 1), section(p, 2), p + rows, p + rows + out, stats, stats + (1 << 22),
                                            section(dqkv, 0), section(dqkv, 1), section(dqkv, 2), s, scale, DType::bf16};
        return CudnnAttentionBackwardArgs{of, workspace, needs, at_once}; });
}

// What a block has between its matmuls, for so many tokens of this width: 8192 of 2048 are gpt-1.3b's 8 sequences, 65 536 of
// 768 gpt-124m's 64, 8192 of 4096 llama-8b's 2 of 4096.
void between_matmuls(Bench& bench, std::int64_t tokens, std::int64_t width) {
  const std::int64_t wide = 4 * width;
  const Bytes act = tokens * width * 2, wide_act = 4 * act;
  const std::string of = " " + std::to_string(tokens) + " x " + std::to_string(width), of_wide = " " + std::to_string(tokens) + " x " + std::to_string(wide);
  float* const mean = reinterpret_cast<float*>(bench.pool() + pool_bytes - (Bytes{1} << 28));
  float* const rstd = mean + tokens;
  float* const dweight = rstd + tokens;
  float* const scratch = dweight + 4 * wide;
  char* const weights = bench.pool() + pool_bytes - (Bytes{1} << 29);
  const auto time = [&]<class Args>(const std::string& name, int tensors, Bytes of_each, void (*host)(const Args&),
                                    void (*cuda)(const Args&, const device::CudaQueue&), auto make) {
    bench.time<Args>(name.c_str(), tensors * of_each, static_cast<double>(tensors * of_each), 0, host, cuda, make);
  };
  time("copy" + of, 2, act, &device::host::copy, &device::cuda::copy, [=](char* p) { return device::CopyArgs{p, p + act, act}; });
  time("layer_norm_forward" + of, 2, act, &host::layer_norm_forward, &cuda::layer_norm_forward,
       [=](char* p) { return LayerNormForwardArgs{p, weights, weights, p + act, mean, rstd, tokens, width, 1e-5f, DType::bf16}; });
  time("layer_norm_input_gradient" + of, 4, act, &host::layer_norm_input_gradient, &cuda::layer_norm_input_gradient, [=](char* p) {
    return LayerNormInputGradientArgs{p, p + act, weights, mean, rstd, p + 2 * act, p + 3 * act, tokens, width, DType::bf16}; });
  time("layer_norm_weight_gradient" + of, 2, act, &host::layer_norm_weight_gradient, &cuda::layer_norm_weight_gradient, [=](char* p) {
    return LayerNormWeightGradientArgs{p, p + act, mean, rstd, dweight, dweight + width, scratch, tokens, width, true, DType::bf16}; });
  time("rms_norm_forward" + of, 2, act, &host::rms_norm_forward, &cuda::rms_norm_forward,
       [=](char* p) { return RmsNormForwardArgs{p, weights, p + act, rstd, tokens, width, 1e-5f, DType::bf16}; });
  time("rms_norm_input_gradient" + of, 4, act, &host::rms_norm_input_gradient, &cuda::rms_norm_input_gradient, [=](char* p) {
    return RmsNormInputGradientArgs{p, p + act, weights, rstd, p + 2 * act, p + 3 * act, tokens, width, DType::bf16}; });
  time("rms_norm_weight_gradient" + of, 2, act, &host::rms_norm_weight_gradient, &cuda::rms_norm_weight_gradient,
       [=](char* p) { return RmsNormWeightGradientArgs{p, p + act, rstd, dweight, scratch, tokens, width, true, DType::bf16}; });
  time("bias_gradient" + of, 1, act, &host::bias_gradient, &cuda::bias_gradient,
       [=](char* p) { return BiasGradientArgs{p, dweight, scratch, tokens, width, true, DType::bf16}; });
  time("bias_gradient" + of_wide, 1, wide_act, &host::bias_gradient, &cuda::bias_gradient,
       [=](char* p) { return BiasGradientArgs{p, dweight, scratch, tokens, wide, true, DType::bf16}; });
  time("add_bias_residual" + of, 3, act, &host::add_bias_residual, &cuda::add_bias_residual,
       [=](char* p) { return AddBiasResidualArgs{p, p + act, weights, p + 2 * act, tokens, width, DType::bf16}; });
  time("gelu_forward" + of_wide, 2, wide_act, &host::gelu_forward, &cuda::gelu_forward,
       [=](char* p) { return GeluForwardArgs{p, p + wide_act, tokens * wide, DType::bf16}; });
  time("gelu_backward" + of_wide, 3, wide_act, &host::gelu_backward, &cuda::gelu_backward,
       [=](char* p) { return GeluBackwardArgs{p, p + wide_act, p + 2 * wide_act, tokens * wide, DType::bf16}; });
  time("swiglu_forward" + of_wide, 3, wide_act, &host::swiglu_forward, &cuda::swiglu_forward,
       [=](char* p) { return SwiGluForwardArgs{p, p + 2 * wide_act, tokens, wide, DType::bf16}; });
  time("swiglu_backward" + of_wide, 5, wide_act, &host::swiglu_backward, &cuda::swiglu_backward,
       [=](char* p) { return SwiGluBackwardArgs{p, p + 2 * wide_act, p + 3 * wide_act, tokens, wide, DType::bf16}; });
  // q and k of a projection's rows, in place: what is read is written again.
  const std::int64_t heads = 2 * width / K, positions = 4 * S;
  bench.time<RotateArgs>(("rotate" + of).c_str(), 3 * act, 4.0 * static_cast<double>(act), 0, &host::rotate, &cuda::rotate,
      [=](char* p) { return RotateArgs{p, tokens / positions, positions, heads, K, 3 * width, 500000.0f, false, DType::bf16}; });
}

void layers(Bench& bench) {
  constexpr Bytes act = N * D * 2;
  float* const stats = reinterpret_cast<float*>(bench.pool() + pool_bytes - (Bytes{1} << 28));
  char* const weights = bench.pool() + pool_bytes - (Bytes{1} << 29);
  bench.time<device::CopyArgs>("copy of 256 MiB (the yardstick)", Bytes{512} << 20, 2.0 * (Bytes{256} << 20), 0, &device::host::copy,
                               &device::cuda::copy, [](char* p) { return device::CopyArgs{p, p + (Bytes{256} << 20), Bytes{256} << 20}; });
  const DropoutMask mask = dropout_mask(0.0625, 1, 0);
  bench.time<BiasDropoutResidualArgs>("bias_dropout_residual", 3 * act, 3.0 * act, 0, &host::bias_dropout_residual, &cuda::bias_dropout_residual,
      [&](char* p) { return BiasDropoutResidualArgs{p, p + act, weights, p + 2 * act, N, D, mask, DType::bf16}; });
  bench.time<DropoutArgs>("dropout", 2 * act, 2.0 * act, 0, &host::dropout, &cuda::dropout,
      [&](char* p) { return DropoutArgs{p, p + act, N * D, mask, DType::bf16}; });
  bench.time<SplitHeadsArgs>("split_heads qkv", 6 * act, 6.0 * act, 0, &host::split_heads, &cuda::split_heads,
      [](char* p) { return SplitHeadsArgs{p, p + 3 * act, 3, B, H, S, K, 3 * H * K, false, DType::bf16}; });
  bench.time<SplitHeadsArgs>("merge heads", 2 * act, 2.0 * act, 0, &host::split_heads, &cuda::split_heads,
      [](char* p) { return SplitHeadsArgs{p, p + act, 1, B, H, S, K, H * K, true, DType::bf16}; });
  // Flash attention reads the projection's rows as they are; flops are those of the pairs that the mask leaves.
  for (const std::int64_t head_dim : {64, 128}) {
    const std::int64_t heads = D / head_dim;
    const FlashAttentionSizes sizes{B, heads, heads, S, head_dim, 3 * D};
    const FlashAttentionSizes grouped{B / 4, 2 * heads, heads / 2, 4 * S, head_dim, 3 * D};  // Llama's proportions
    const auto shape = [&](std::int64_t sequences, std::int64_t longer) {
      return FlashAttentionSizes{sequences, longer * heads, longer * heads, longer * S, head_dim, 3 * longer * D};
    };
    const FlashAttentionSizes small{8 * B, 12, 12, S, 64, 3 * 12 * 64};   // gpt-124m's
    std::vector<FlashAttentionSizes> shapes{shape(1, 1), shape(4, 1), sizes, shape(2, 2), grouped};
    if (head_dim == 64) shapes.push_back(small);
    for (const FlashAttentionSizes& s : shapes) {
      const double product = 2.0 * static_cast<double>(s.sequences * s.heads * s.positions * (s.positions + 1) / 2 * s.head_dim);
      const Bytes out = s.sequences * s.positions * s.heads * s.head_dim * 2, rows = s.sequences * s.positions * s.row_stride * 2;
      const std::string name = " B " + std::to_string(s.sequences) + " S " + std::to_string(s.positions) + " H " + std::to_string(s.heads) + "/" + std::to_string(s.key_value_heads) +
                               " K " + std::to_string(s.head_dim);
      const float scale = 0.088f;
      const auto section = [s](char* rows, int which) {
        return rows + (which == 0 ? 0 : s.heads + (which - 1) * s.key_value_heads) * s.head_dim * 2;
      };
      const std::int64_t squares = s.heads * s.positions * s.positions;
      const DropoutMask tenth = dropout_mask(0.1, 1, 0, squares, squares);
      for (const DropoutMask& dropped : {no_dropout, tenth}) {
        const std::string of = dropped.threshold == 0 ? "flash " : "flash dropout ";
        bench.time<FlashAttentionForwardArgs>((of + "forward" + name).c_str(), rows + out, static_cast<double>(rows + out), 2 * product,
            &host::flash_attention_forward, &cuda::flash_attention_forward, [=](char* p) {
              return FlashAttentionForwardArgs{section(p, 0), section(p, 1), section(p, 2), p + rows, stats, s, scale, DType::bf16, dropped}; });
        bench.time<FlashAttentionBackwardArgs>((of + "backward" + name).c_str(), 2 * (rows + out), static_cast<double>(2 * (rows + out)), 5 * product,
            &host::flash_attention_backward, &cuda::flash_attention_backward, [=](char* p) {
              char* const dqkv = p + rows + 2 * out;
              return FlashAttentionBackwardArgs{section(p, 0), section(p, 1), section(p, 2), p + rows, p + rows + out, stats, stats + (1 << 22),
                                                section(dqkv, 0), section(dqkv, 1), section(dqkv, 2), s, scale, DType::bf16, dropped}; });
      }
      cudnn_attention(bench, s, product, name, stats, section);
    }
  }
  // Half of the scores lie after the diagonal and are not read.
  constexpr Bytes scores = B * H * S * S * 2;
  bench.time<CausalSoftmaxForwardArgs>("causal_softmax_forward", scores, 1.5 * scores, 0, &host::causal_softmax_forward,
      &cuda::causal_softmax_forward, [](char* p) { return CausalSoftmaxForwardArgs{p, p, B * H, S, 0.088f, DType::bf16}; });
  bench.time<CausalSoftmaxBackwardArgs>("causal_softmax_backward", 2 * scores, 2.0 * scores, 0, &host::causal_softmax_backward,
      &cuda::causal_softmax_backward, [](char* p) { return CausalSoftmaxBackwardArgs{p, p + scores, p + scores, B * H, S, 0.088f, DType::bf16}; });
}

// In three steps and in one, of `rows` tokens.
void losses(Bench& bench, std::int64_t rows, const std::string& of, float* stats) {
  const Bytes logits = rows * V * 2;
  const double bytes = static_cast<double>(logits);
  const float scale = 1.0f / static_cast<float>(rows);
  const std::int32_t* const targets = bench.tokens();
  bench.time<CrossEntropyMaxArgs>(("cross_entropy_max" + of).c_str(), logits, bytes, 0, &host::cross_entropy_max, &cuda::cross_entropy_max,
      [=](char* p) { return CrossEntropyMaxArgs{p, stats, rows, V, DType::bf16}; });
  bench.time<CrossEntropySumsArgs>(("cross_entropy_sums" + of).c_str(), logits, bytes, 0, &host::cross_entropy_sums, &cuda::cross_entropy_sums,
      [=](char* p) { return CrossEntropySumsArgs{p, stats, targets, stats + rows, rows, V, 0, DType::bf16}; });
  bench.time<CrossEntropyGradientArgs>(("cross_entropy_gradient" + of).c_str(), logits, 2 * bytes, 0, &host::cross_entropy_gradient,
      &cuda::cross_entropy_gradient, [=](char* p) {
        return CrossEntropyGradientArgs{p, stats, stats + rows, targets, stats + 3 * rows, rows, V, 0, scale, DType::bf16}; });
  bench.time<CrossEntropyArgs>(("cross_entropy in one" + of).c_str(), logits, 2 * bytes, 0, &host::cross_entropy, &cuda::cross_entropy,
      [=](char* p) { return CrossEntropyArgs{p, targets, stats + 3 * rows, rows, V, scale, DType::bf16}; });
}

void ends(Bench& bench) {
  constexpr Bytes act = N * D * 2;
  std::int32_t* const tokens = bench.tokens();
  std::vector<std::int32_t> drawn(8 * N);
  // Tokens and targets; then order, segment tokens, segment begins and their number, all different tokens.
  for (std::int64_t i = 0; i < N; ++i) {
    drawn[i] = drawn[N + i] = static_cast<std::int32_t>(i * 6);
    drawn[2 * N + i] = drawn[4 * N + i] = static_cast<std::int32_t>(i);
    drawn[3 * N + i] = static_cast<std::int32_t>(i * 6);
  }
  drawn[5 * N] = drawn[6 * N] = static_cast<std::int32_t>(N);
  bench.device().upload(bench.stream(), "tokens", drawn.data(), {tokens, {}, static_cast<Bytes>(drawn.size()) * 4});
  bench.device().synchronize();
  float* const stats = reinterpret_cast<float*>(bench.pool() + pool_bytes - (Bytes{1} << 28));
  bench.time<EmbeddingForwardArgs>("embedding_forward", V * D * 2 + act, 2.0 * act, 0, &host::embedding_forward, &cuda::embedding_forward,
      [=](char* p) { return EmbeddingForwardArgs{tokens, p, p + V * D * 2, N, D, 0, V, DType::bf16}; });
  bench.time<EmbeddingBackwardArgs>("embedding_backward, written whole", V * D * 4 + act, V * D * 4.0 + 3.0 * act, 0, &host::embedding_backward,
      &cuda::embedding_backward, [=](char* p) {
        return EmbeddingBackwardArgs{p + V * D * 4, tokens + 2 * N, tokens + 3 * N, tokens + 4 * N, tokens + 6 * N, p, N, D, 0, V, false, DType::bf16}; });
  bench.time<PositionForwardArgs>("position_forward", act + S * D * 2, 2.0 * act, 0, &host::position_forward, &cuda::position_forward,
      [](char* p) { return PositionForwardArgs{p + act, p, B * S, S, D, DType::bf16, 0}; });
  bench.time<PositionBackwardArgs>("position_backward", act + S * D * 4, act + S * D * 8.0, 0, &host::position_backward, &cuda::position_backward,
      [](char* p) { return PositionBackwardArgs{p, p + act, B * S, S, D, true, DType::bf16, 0}; });
  losses(bench, N, "", stats);
  losses(bench, 8 * N, ", 65536 tokens", stats);
  // A block's shard over 8 ranks, and a whole embedding's.
  for (const std::int64_t n : {12 * D * D / 8, V * D}) {
    bench.time<SumOfSquaresArgs>(n == V * D ? "sum_of_squares, embedding" : "sum_of_squares, block/8", n * 4, n * 4.0, 0,
        &host::sum_of_squares, &cuda::sum_of_squares,
        [=](char* p) { return SumOfSquaresArgs{p, stats, stats + 64, 0, n, 0, n, true, DType::f32}; });
    bench.time<AdamWArgs>(n == V * D ? "adam_w, embedding" : "adam_w, block/8", n * 18, n * 30.0, 0, &host::adam_w, &cuda::adam_w, [=](char* p) {
      return AdamWArgs{p, p + n * 4, p + n * 8, p + n * 12, p + n * 16, stats, 0, n, n, 1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 10, DType::bf16}; });
  }
  bench.time<AccumulateArgs>("accumulate, embedding", V * D * 8, V * D * 12.0, 0, &host::accumulate, &cuda::accumulate,
      [](char* p) { return AccumulateArgs{p, p + V * D * 4, V * D, DType::f32}; });
  bench.time<CastArgs>("cast, embedding", V * D * 6, V * D * 6.0, 0, &host::cast, &cuda::cast,
      [](char* p) { return CastArgs{p, p + V * D * 4, V * D, DType::bf16}; });
  bench.time<WidenArgs>("widen, embedding", V * D * 6, V * D * 6.0, 0, &host::widen, &cuda::widen,
      [](char* p) { return WidenArgs{p + V * D * 4, p, V * D, false, DType::bf16}; });
  bench.time<FillArgs>("fill, embedding", V * D * 4, V * D * 4.0, 0, &host::fill, &cuda::fill,
      [](char* p) { return FillArgs{p, V * D, 0.5f, DType::f32}; });
}

// The CPU's own clock: the least of five, after one that touches the memory.
void on_host(const std::string& only) {
  if (std::string("adam_w_on_host").find(only) == std::string::npos) return;
  device::Crew crew(std::max(1, device::processors_here() - 1));
  const std::int64_t most = std::int64_t{1} << 26;
  std::vector<float> memory(static_cast<std::size_t>(most * 18 / 4 + 1));
  char* const p = reinterpret_cast<char*>(memory.data());
  const auto factor = reinterpret_cast<float*>(p + most * 18);
  *factor = 1;
  for (std::int64_t i = 0; i < 4 * most; ++i) reinterpret_cast<float*>(p)[i] = 1e-3f * static_cast<float>(1 + i % 1000);
  for (std::int64_t n = 1 << 11; n <= most; n *= 8) {
    const AdamWArgs args{p, p + most * 4, p + most * 8, p + most * 12, p + most * 16, factor, 0, n, n, 1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 10, DType::bf16};
    base::Nanoseconds best = std::numeric_limits<base::Nanoseconds>::max();
    for (int turn = 0; turn < 6; ++turn) {
      const base::Nanoseconds begin = program::host_now();
      host::adam_w_on_host({args, DType::f32}, &crew);
      if (turn > 0) best = std::min(best, program::host_now() - begin);
    }
    const double bytes = static_cast<double>(n) * 30;
    std::printf("adam_w_on_host, %d threads: %11.0f bytes %12lld ns  %6.1f GB/s\n", crew.threads(), bytes, static_cast<long long>(best), bytes / static_cast<double>(best));
  }
}

}  // namespace
}  // namespace shardbook

int main(int count, char** words) {
  try {
    shardbook::on_host(count > 1 ? words[1] : "");
    if (count > 1 && std::string(words[1]) == "on_host") return 0;
    shardbook::Bench bench(count > 1 ? words[1] : "");
    for (const auto& [tokens, width] : {std::pair{8192, 2048}, std::pair{65536, 768}, std::pair{8192, 4096}}) {
      shardbook::between_matmuls(bench, tokens, width);
      shardbook::around_gelu(bench, tokens, width);
    }
    shardbook::layers(bench);
    shardbook::products(bench);
    shardbook::ends(bench);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "kernel_bench: %s\n", problem.what());
    return 1;
  }
  return 0;
}
