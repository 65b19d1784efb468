#include "engine/cli/calibrate_benches.hpp"

#include <algorithm>
#include <span>

#include "engine/data/sort_by_token.hpp"
#include "engine/kernels/activation.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/cross_entropy.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/dropout.hpp"
#include "engine/kernels/embedding.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/kernels/layer_norm.hpp"
#include "engine/kernels/optimizer.hpp"
#include "engine/kernels/reduce.hpp"
#include "engine/kernels/residual.hpp"

namespace shardbook::cli {

using base::Bytes;
using base::DType;
using base::Shape;
using device::Lane;
using tensor::Tensor;

namespace {

constexpr std::int64_t most_tokens = std::int64_t{1} << 19;
constexpr std::int64_t table_width = 1024;
// The largest attention that is measured: tokens of one width, in wider and in narrower heads, of which there are more.
constexpr std::int64_t widths_of_heads[] = {128, 64, 32};
kernels::GroupedHeads most_heads(std::int64_t width = widths_of_heads[0]) { return {16, 2048 / width, 2048 / width, 1024, width}; }

}  // namespace

int multiprocessors_of(device::Device& device, device::Stream& stream) {
  struct Asked {
    int* answer;
  };
  int answer = 1;
  const program::OpDesc desc("multiprocessors", program::OpKind::pointwise, DType::f32);
  device.launch(stream, desc, Asked{&answer}, +[](const Asked&) {},
                +[](const Asked& asked, const device::CudaQueue& queue) { *asked.answer = queue.multiprocessors; });
  device.synchronize();
  return answer;
}

simulate::Benchmarks possible(simulate::Benchmarks plan, int ranks) {
  const auto odd = [&](const auto& benchmark) { return benchmark.ranks > ranks || ranks % benchmark.ranks != 0; };
  std::erase_if(plan.collectives, odd);
  std::erase_if(plan.overlaps, odd);
  std::erase_if(plan.rooms, odd);
  // What no input of a step comes near is not copied: host memory of that size would have to be pinned.
  std::erase_if(plan.kernels, [](const simulate::KernelBenchmark& kernel) {
    return kernel.kernel == program::name_of(program::OpKind::copy) && kernel.bytes > Bytes{64} * 1024 * 1024;
  });
  return plan;
}

Benches::Benches(device::Device& device, device::Stream& stream, const simulate::Benchmarks& plan) : device_(device), stream_(stream) {
  std::int64_t elements16 = 1024, elements32 = 1024;
  for (const simulate::GemmBenchmark& gemm : plan.gemms) {
    const program::GemmSize size = gemm.size;
    std::int64_t& elements = gemm.dtype == DType::bf16 ? elements16 : elements32;
    elements = std::max({elements, size.batch * size.m * size.k, size.batch * size.n * size.k, size.batch * size.m * size.n});
  }
  for (const simulate::KernelBenchmark& kernel : plan.kernels) {
    elements16 = std::max(elements16, kernel.bytes / 2);
    elements32 = std::max(elements32, kernel.bytes / 16);
    if (kernel.kernel == "copy") largest_copy_ = std::max(largest_copy_, kernel.bytes);
  }
  for (const simulate::CollectiveBenchmark& collective : plan.collectives) elements16 = std::max(elements16, collective.bytes / 2);
  for (const simulate::RoomBenchmark& room : plan.rooms) {
    elements16 = std::max({elements16, room.size.m * room.size.k, room.size.n * room.size.k, room.bytes / 2 + 2 * room.size.m * room.size.n});
    elements32 = std::max(elements32, room.size.m * room.size.n);
  }
  for (const simulate::OverlapBenchmark& overlap : plan.overlaps) {
    elements16 = std::max({elements16, overlap.bytes / 2, overlap.compute_bytes / 4, overlap.size.m * overlap.size.k,
                           overlap.size.n * overlap.size.k, overlap.size.m * overlap.size.n});
  }
  for (const char* name : {"calibrate.a", "calibrate.b", "calibrate.c"}) {
    slabs16_.push_back(tensor::allocate(device, {elements16}, DType::bf16, program::MemoryKind::workspace, name));
  }
  for (const char* name : {"calibrate.d", "calibrate.e", "calibrate.f", "calibrate.g"}) {
    slabs32_.push_back(tensor::allocate(device, {elements32}, DType::f32, program::MemoryKind::workspace, name));
  }
  part_ = tensor::allocate(device, {elements16 / 2}, DType::bf16, program::MemoryKind::workspace, "calibrate.part");   // of two ranks or more
  tokens_ = tensor::allocate(device, {most_tokens}, DType::i32, program::MemoryKind::input, "calibrate.tokens");
  if (device.kind() == device::Kind::cuda && kernels::cudnn_problem().empty()) {
    for (std::int64_t width : widths_of_heads) cudnn_.emplace(width, kernels::set_up_cudnn_attention(device, most_heads(width), base::text("calibrate.cudnn.", width)));
  }
  pinned_tokens_ = device.pinned(tokens_.storage_bytes());
  group(2048, 128, 256);
  group(8192, 1024, 50304);
  pinned_ = device.pinned(std::max<Bytes>(largest_copy_, 4096) * 2);   // the host stores two bytes in four
}

void Benches::group(std::int64_t tokens, std::int64_t width, std::int64_t vocab) {
  if (!fits16(tokens * width) || !fits32(vocab * width)) return;
  const std::int64_t most_segments = std::min(tokens, vocab), begins = tokens + most_segments;
  Grouped& all = grouped_.emplace_back();
  all.tokens = tokens, all.width = width, all.vocab = vocab;
  all.indices = tensor::allocate(device_, {begins + vocab + 2}, DType::i32, program::MemoryKind::input, base::text("calibrate.grouped.", vocab));
  all.pinned = static_cast<std::int32_t*>(device_.pinned(all.indices.storage_bytes()));
  all.segments = {all.indices.slice(0, {tokens}), all.indices.slice(tokens, {most_segments}), all.indices.slice(begins, {most_segments + 1}), all.indices.slice(begins + vocab + 1, {1})};
  std::vector<std::int32_t> drawn;
  std::uint32_t state = 1;
  for (std::int64_t at = 0; at < tokens; ++at) {
    state = state * 1664525u + 1013904223u;
    const double u = static_cast<double>(state >> 8) / (1 << 24);
    drawn.push_back(static_cast<std::int32_t>(u * u * u * static_cast<double>(vocab)));
  }
  const auto part = [&](std::int64_t from, std::int64_t count) { return std::span(all.pinned + from, static_cast<std::size_t>(count)); };
  all.pinned[begins + vocab + 1] = data::sort_by_token(drawn, 0, static_cast<int>(vocab), part(0, tokens), part(tokens, most_segments), part(begins, vocab + 1));
}

void Benches::fill() {
  for (std::size_t slab = 0; slab < slabs32_.size(); ++slab) {
    kernels::init_normal(stream_, slabs32_[slab], {}, 7, static_cast<std::uint32_t>(slab), 0, 1);
  }
  const std::int64_t piece = std::min(slabs32_[0].elements(), slabs16_[0].elements());
  for (const Tensor& slab : slabs16_) {
    for (std::int64_t at = 0; at < slab.elements(); at += piece) {
      const std::int64_t count = std::min(piece, slab.elements() - at);
      kernels::cast(stream_, slabs32_[0].slice(0, {count}), slab.slice(at, {count}));
    }
  }
  // Rows of a table that fits, in no order.
  const std::int64_t rows = std::max<std::int64_t>(1, slabs16_[1].elements() / table_width);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < most_tokens; ++i) {
    state = state * 1664525u + 1013904223u;
    static_cast<std::int32_t*>(pinned_tokens_)[i] = static_cast<std::int32_t>((state >> 8) % std::min<std::int64_t>(rows, 50304));
  }
  device_.upload(stream_, "tokens", pinned_tokens_, tensor::memory_of(tokens_));
  for (const Grouped& all : grouped_) device_.upload(stream_, "tokens", all.pinned, tensor::memory_of(all.indices));
  device_.synchronize();
}

// A place begins where a tensor of its own might: memory comes in pieces of 256 bytes.
Tensor Benches::at_place(const Tensor& slab, Shape shape) const {
  constexpr std::int64_t piece = 128;
  const std::int64_t step = (shape.elements() + piece - 1) / piece * piece;
  return slab.slice(place_ % std::max<std::int64_t>(1, slab.elements() / step) * step, shape);
}

Tensor Benches::as_f32(Tensor buffer) {
  buffer.shape = {buffer.elements() / 2};
  buffer.offset /= 2;
  buffer.nominal = buffer.storage = DType::f32;
  return buffer;
}

void Benches::gemm(const simulate::GemmBenchmark& benchmark) {
  next_place();
  const program::GemmSize size = benchmark.size;
  const bool is16 = benchmark.dtype == DType::bf16;
  const auto first = [&](Shape shape) { return is16 ? just_written(shape) : slabs32_[0].slice(0, shape); };
  const auto view = [&](int slab, Shape shape) { return is16 ? view16(slab, shape) : view32(slab, shape); };
  if (size.batch == 1) {
    kernels::linear_forward(stream_, first({size.m, size.k}), view(1, {size.n, size.k}), Tensor{}, view(2, {size.m, size.n}));
  } else {
    kernels::batched_gemm(stream_, "gemm", first({size.batch, size.m, size.k}), false, view(1, {size.batch, size.n, size.k}), true,
                          view(2, {size.batch, size.m, size.n}));
  }
}

void Benches::matmul(const std::string& op, program::GemmSize size) {
  const auto [m, n, k, batch] = size;
  const bool forward = op.starts_with("linear_forward"), with_gelu = op.ends_with("_gelu");
  const Tensor made = slabs16_[2].slice(slabs16_[2].elements() - m * n, {m, n}), other = slabs16_[2].slice(slabs16_[2].elements() - 2 * m * n, {m, n});
  const kernels::Epilogue epilogue = with_gelu ? kernels::Epilogue{forward ? kernels::Beside::gelu : kernels::Beside::gelu_slope, other} : kernels::Epilogue{};
  if (forward) {
    kernels::linear_forward(stream_, just_written({m, k}), view16(1, {n, k}), Tensor{}, made, epilogue);
  } else if (op.starts_with("linear_input_gradient")) {
    kernels::linear_input_gradient(stream_, just_written({m, k}), view16(1, {k, n}), made, epilogue);
  } else {
    SHARDBOOK_CHECK_EQ(op, "linear_weight_gradient", "a matmul by name");
    kernels::linear_weight_gradient(stream_, just_written({k, m}), view16(1, {k, n}), slabs32_[0].slice(0, {m, n}), false);
  }
}

void Benches::small_gemm(std::size_t at) {
  gemm({{64 + 64 * static_cast<std::int64_t>(at % 5), 128, 64 * static_cast<std::int64_t>(1 + at % 3), 1}, DType::bf16, 0});
}

void Benches::pointwise(Lane lane, Bytes bytes) {
  next_place();
  const std::int64_t elements = std::max<std::int64_t>(1, bytes / 4);   // read and written
  kernels::gelu_forward(lane, just_written({elements}), view16(1, {elements}));
}

KernelCase Benches::of_kind(const std::string& kind, Bytes bytes) {
  // Rows of the width of a model, shorter ones where the whole is small.
  const std::int64_t width = std::clamp<std::int64_t>(bytes / 4, 16, 2048);
  const std::int64_t rows = std::max<std::int64_t>(1, bytes / (4 * width));
  if (kind == "pointwise") return {kind, [=, this] { pointwise(stream_, bytes); }};
  if (kind == "fill") return {kind, [=, this] { next_place(), kernels::fill(stream_, view16(1, {bytes / 2}), 1); }};
  if (kind == "copy") {
    return {kind, [=, this] { next_place(), device_.upload(stream_, "upload", pinned_, tensor::memory_of(view16(1, {bytes / 2}))); }};
  }
  if (kind == "lookup") {
    const std::int64_t columns = std::min(width, table_width);
    const std::int64_t count = std::min(most_tokens, std::max<std::int64_t>(1, bytes / (4 * columns)));
    const std::int64_t table_rows = std::min<std::int64_t>(50304, std::max<std::int64_t>(1, slabs16_[1].elements() / table_width));
    return {kind, [=, this] {
      next_place();
      kernels::embedding_forward(stream_, tokens_.slice(0, {count}), view16(1, {table_rows, columns}), 0, view16(2, {count, columns}));
    }};
  }
  SHARDBOOK_CHECK(kind == "reduction", "no micro-benchmark stands for kernels of kind ", kind);
  return {kind, [=, this] {
    next_place();
    kernels::layer_norm_forward(stream_, just_written({rows, width}), weights(width), weights(width), 1e-5f,
                                view16(1, {rows, width}), view32(0, {rows}), view32(1, {rows}));
  }};
}

std::vector<KernelCase> Benches::of_tokens(std::int64_t tokens, std::int64_t width) const {
  const std::int64_t scratch = std::max(kernels::layer_norm_weight_gradient_scratch(tokens, width), kernels::bias_gradient_scratch(tokens, width));
  if (!fits16(tokens * width) || !fits32(scratch) || !fits32(tokens)) return {};
  // Forward reads x and backward dy just when it was written
  const Tensor written = just_written({tokens, width}), x = view16(1, {tokens, width}), y = view16(2, {tokens, width});
  const Tensor weight = weights(width), mean = view32(0, {tokens}), rstd = view32(1, {tokens});
  const Tensor dweight = view32(2, {width}), dbias = dweight, partial = view32(3, {scratch});
  device::Stream& s = stream_;
  return {
      {"", [=, &s] { kernels::layer_norm_forward(s, written, weight, weight, 1e-5f, y, mean, rstd); }},
      {"", [=, &s] { kernels::layer_norm_input_gradient(s, written, x, weight, mean, rstd, y, y); }},
      {"", [=, &s] { kernels::layer_norm_weight_gradient(s, written, x, mean, rstd, dweight, dbias, partial, false); }},
      {"", [=, &s] { kernels::gelu_forward(s, written, y); }},
      {"", [=, &s] { kernels::gelu_backward(s, x, written, y); }},
      {"", [=, &s] { kernels::add_bias_residual(s, written, x, weight, y); }},
      {"", [=, &s] { kernels::bias_gradient(s, written, dbias, partial, false); }},
  };
}

std::vector<KernelCase> Benches::of_vocabulary(std::int64_t tokens, std::int64_t vocab) const {
  if (!fits16(tokens * vocab) || !fits32(2 * tokens)) return {};
  const Tensor logit = just_written({tokens, vocab}), row_max = view32(0, {tokens}), sums = view32(1, {2, tokens});
  const Tensor loss = view32(2, {tokens}), target = tokens_.slice(0, {tokens}), total = view32(3, {1});
  device::Stream& s = stream_;
  return {
      {"", [=, &s] { kernels::cross_entropy_max(s, logit, row_max); }},
      {"", [=, &s] { kernels::cross_entropy_sums(s, logit, row_max, target, 0, sums); }},
      {"", [=, &s] { kernels::cross_entropy_gradient(s, logit, row_max, sums, target, 0, 1e-4f, loss); }},
      {"", [=, &s] { kernels::cross_entropy(s, logit, target, 1e-4f, loss); }},
      {"", [=, &s] { kernels::sum(s, loss, 1, total, false); }},
  };
}

std::vector<KernelCase> Benches::of_attention(std::int64_t sequences, std::int64_t heads, std::int64_t positions,
                                              std::int64_t head_dim) const {
  const kernels::HeadSizes sizes{3, sequences, heads, positions, head_dim};
  if (!fits16(sequences * heads * positions * positions) || !fits16(sizes.elements())) return {};
  const Shape square{sequences, heads, positions, positions};
  const Tensor score = just_written(square), dp = score, p = view16(1, square), dscore = view16(2, square);
  const Tensor tokens = just_written({sizes.elements()}), split = view16(1, {sizes.elements()});
  device::Stream& s = stream_;
  return {
      {"", [=, &s] { kernels::split_heads(s, sizes, tokens, split); }},
      {"", [=, &s] { kernels::merge_heads(s, sizes, tokens, split); }},
      {"", [=, &s] { kernels::causal_softmax_forward(s, score, 0.1f, p); }},
      {"", [=, &s] { kernels::causal_softmax_backward(s, p, dp, 0.1f, dscore); }},
  };
}

std::vector<KernelCase> Benches::of_fused_attention(const kernels::GroupedHeads& sizes) const {
  const std::int64_t statistics = sizes.tokens() * sizes.heads, width = sizes.query_width();
  if (!fits16(sizes.tokens() * (sizes.width() + width)) || !fits32(statistics)) return {};
  const Shape rows{sizes.tokens(), sizes.width()}, row{sizes.tokens(), width};
  const Tensor kept = view16(1, {sizes.tokens() * (sizes.width() + width)});   // by forward: qkv, and behind it out
  const Tensor qkv = kept.slice(0, rows), out = kept.slice(sizes.tokens() * sizes.width(), row), dqkv = view16(2, rows);
  const Tensor written = just_written(rows), dout = just_written(row);
  const Tensor logsumexp = view32(0, {statistics}), delta = view32(1, {statistics});
  const std::int64_t square = sizes.heads * sizes.positions * sizes.positions;
  const kernels::DropoutMask tenth = kernels::dropout_mask(0.1, 1, 0, square, square);
  const float scale = 0.1f;
  device::Stream& s = stream_;
  std::vector<KernelCase> cases;
  for (const kernels::DropoutMask& mask : {kernels::no_dropout, tenth}) {
    cases.push_back({"", [=, &s] { kernels::flash_attention_forward(s, sizes, scale, written, out, logsumexp, mask); }});
    cases.push_back({"", [=, &s] { kernels::flash_attention_backward(s, sizes, scale, qkv, out, dout, logsumexp, delta, dqkv, mask); }});
  }
  if (const auto known = cudnn_.find(sizes.head_dim); known != cudnn_.end()) {
    const Tensor workspace = known->second;
    cases.push_back({"", [=, &s] { kernels::cudnn_attention_forward(s, sizes, scale, written, out, logsumexp, workspace); }});
    cases.push_back({"", [=, &s] { kernels::cudnn_attention_backward(s, sizes, scale, qkv, out, dout, logsumexp, delta, dqkv, workspace); }});
  }
  return cases;
}

std::vector<KernelCase> Benches::of_tables(Bytes most) const {
  std::vector<KernelCase> cases;
  for (const Grouped& all : grouped_) {
    if (4 * all.vocab * all.width > most) continue;
    const Tensor dx = just_written({all.tokens, all.width}), dweight = view32(2, {all.vocab, all.width});
    device::Stream& s = stream_;
    cases.push_back({"", [=, &s, segments = all.segments] { kernels::embedding_backward(s, dx, segments, 0, dweight, false); }});
  }
  return cases;
}

std::vector<KernelCase> Benches::of_shards(std::int64_t elements) const {
  if (!fits32(elements) || !fits16(elements)) return {};
  const Tensor gradient = view32(0, {elements}), master = view32(1, {elements}), first = view32(2, {elements}), second = view32(3, {elements});
  const Tensor parameter = view16(1, {elements}), scratch = view32(3, {kernels::sum_of_squares_scratch()}), total = view32(2, {1});
  const kernels::AdamWStep step{1e-6f, 0.9f, 0.95f, 1e-8f, 0.1f, 10};
  device::Stream& s = stream_;
  std::vector<KernelCase> cases = {
      // The factor may be any number: it lies among the moments that are moved.
      {"", [=, &s] { kernels::adam_w(s, step, gradient, total, 0, elements, master, first, second, parameter); }},
      {"", [=, &s] { kernels::accumulate(s, gradient, master); }},
      {"", [=, &s] { kernels::cast(s, master, parameter); }},
      {"", [=, &s] { kernels::widen(s, parameter, master, false); }},
  };
  if (fits32(kernels::sum_of_squares_scratch())) {
    cases.push_back({"", [=, &s] { kernels::sum_of_squares(s, gradient, 0, 0, elements, total, scratch, false); }});
  }
  return cases;
}

std::vector<KernelCase> Benches::by_name(Bytes most) {
  std::vector<KernelCase> cases;
  std::vector<std::vector<std::function<void()>>> at_each_place;
  for (place_ = 0; place_ < places; ++place_) {
    std::vector<KernelCase> here = by_name_here(most);
    if (place_ == 0) cases = here, at_each_place.resize(here.size());
    for (std::size_t i = 0; i < here.size(); ++i) at_each_place[i].push_back(std::move(here[i].issue));
  }
  place_ = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].issue = [issues = std::move(at_each_place[i]), at = std::size_t{0}]() mutable { issues[at++ % issues.size()](); };
  }
  return cases;
}

std::vector<KernelCase> Benches::by_name_here(Bytes most) const {
  std::vector<KernelCase> cases;
  const auto add = [&](std::vector<KernelCase> more) { cases.insert(cases.end(), more.begin(), more.end()); };
  // The least of each as a small model has it: as many tokens, in narrow rows
  struct Rows {
    std::int64_t tokens, width;
  };
  for (const auto& [tokens, width] : {Rows{2048, 128}, Rows{1024, 2048}, Rows{4096, 2048}, Rows{16384, 2048}, Rows{32768, 2048}}) {
    if (tokens * width * 2 * 3 <= most) add(of_tokens(tokens, width));
  }
  for (const auto& [tokens, vocab] : {Rows{2048, 256}, Rows{128, 50304}, Rows{1024, 50304}, Rows{4096, 50304}, Rows{8192, 50304}}) {
    if (tokens * vocab * 2 <= most) add(of_vocabulary(tokens, vocab));
  }
  add(of_tables(most));
  for (std::int64_t sequences : {std::int64_t{1}, std::int64_t{4}, most_heads().sequences}) {
    const auto [B, H, G, S, K] = most_heads();
    if (sequences * H * S * S * 2 > most) continue;
    add(of_attention(sequences, H, S, K));
    for (std::int64_t width : widths_of_heads) {
      kernels::GroupedHeads heads = most_heads(width);
      heads.sequences = sequences;
      add(of_fused_attention(heads));
    }
  }
  // Of short sequences, as a small model has them, where attention takes little longer than its launches; not in the mix of calls,
  // which has no attention.
  const bool with_attention = most_heads().heads * most_heads().positions * most_heads().positions * 2 <= most;
  for (std::int64_t heads : {2, 8}) {
    if (!with_attention) continue;
    constexpr std::int64_t sequences = 16, positions = 128;
    add(of_attention(sequences, heads, positions, 32));
    for (std::int64_t width : widths_of_heads) add(of_fused_attention({sequences, heads, heads, positions, width}));
  }
  for (std::int64_t elements = 1 << 16; elements <= 1 << 26; elements *= 8) {
    if (elements * 16 <= most) add(of_shards(elements));
  }
  return cases;
}

}  // namespace shardbook::cli
