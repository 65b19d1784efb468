// cli/calibrate_benches: the ops that are measured, over memory that is made once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/kernels/embedding.hpp"
#include "engine/kernels/flash_attention.hpp"
#include "engine/simulate/calibrate.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::cli {

// A kernel at one size. Issuing it is one op.
struct KernelCase {
  std::string kind;              // as a kind of op; empty: by the op's own name
  std::function<void()> issue;
};

// The device's multiprocessors, as its kernels are told.
int multiprocessors_of(device::Device& device, device::Stream& stream);

// What of a plan so many ranks can run.
simulate::Benchmarks possible(simulate::Benchmarks plan, int ranks);

// Memory for everything that `plan` lists, filled with normal numbers (zeros would draw less power and run faster).
//
// An op of a step finds in the caches what the op before it wrote, and not its weights, or what forward kept for backward, which were used
// long ago; and it writes where nothing lies. So what an op would find just written is always the same memory here, and its other
// operands are in another of 32 places each time it is issued: by the time that one comes again, the cache holds others, but for
// those of the smallest.
class Benches {
 public:
  // REQUIRES: the device is not sealed.
  Benches(device::Device& device, device::Stream& stream, const simulate::Benchmarks& plan);
  // Draws the numbers. REQUIRES: sealed.
  void fill();

  // One op each on the stream.
  void gemm(const simulate::GemmBenchmark& benchmark);
  // A matmul of training by its op's name, apart from what the first bytes of buffer() are used for.
  void matmul(const std::string& op, program::GemmSize size);
  void pointwise(device::Lane lane, base::Bytes bytes);
  // A small matmul, the at-th of fifteen shapes, counted round.
  static constexpr std::size_t small_gemms = 15;
  void small_gemm(std::size_t at);
  // The kinds of op at a size near `bytes`; what the record counts may differ a little.
  KernelCase of_kind(const std::string& kind, base::Bytes bytes);
  // The kernels of training by name, at several sizes that move at most `most` bytes.
  std::vector<KernelCase> by_name(base::Bytes most);
  // Nominal bf16, `bytes` large: what a collective works on.
  tensor::Tensor buffer(base::Bytes bytes) const { return slabs16_[2].slice(0, {bytes / 2}); }
  // What a rank has of one, apart from it.
  tensor::Tensor part(std::int64_t elements) const { return part_.slice(0, {elements}); }
  // The same bytes, taken for half as many fp32 numbers.
  static tensor::Tensor as_f32(tensor::Tensor buffer);
  base::Bytes largest_buffer() const { return 2 * slabs16_[2].elements(); }

 private:
  // What the op before wrote, in a shape; weights or biases, which lie at that slab's end; and memory of a slab (of the other two in bf16) that was not used for long.
  tensor::Tensor just_written(base::Shape shape) const { return slabs16_[0].slice(0, shape); }
  tensor::Tensor weights(std::int64_t count) const { return slabs16_[0].slice(slabs16_[0].elements() - count, {count}); }
  tensor::Tensor view16(int slab, base::Shape shape) const { return at_place(slabs16_[slab], shape); }
  tensor::Tensor view32(int slab, base::Shape shape) const { return at_place(slabs32_[slab], shape); }
  tensor::Tensor at_place(const tensor::Tensor& slab, base::Shape shape) const;
  void next_place() { place_ = (place_ + 1) % places; }
  bool fits16(std::int64_t elements) const { return elements <= slabs16_[0].elements(); }
  bool fits32(std::int64_t elements) const { return elements <= slabs32_[0].elements(); }

  std::vector<KernelCase> by_name_here(base::Bytes most) const;
  std::vector<KernelCase> of_tokens(std::int64_t tokens, std::int64_t width) const;
  std::vector<KernelCase> of_vocabulary(std::int64_t tokens, std::int64_t vocab) const;
  std::vector<KernelCase> of_attention(std::int64_t sequences, std::int64_t heads, std::int64_t positions, std::int64_t head_dim) const;
  std::vector<KernelCase> of_fused_attention(const kernels::GroupedHeads& sizes) const;   // by tiles, and by cuDNN
  std::vector<KernelCase> of_shards(std::int64_t elements) const;
  std::vector<KernelCase> of_tables(base::Bytes most) const;

  // Tokens as text has them, of 256 a sixth the same, and their positions grouped by token: what a table's gradient is added up by.
  struct Grouped {
    std::int64_t tokens, width, vocab;
    tensor::Tensor indices;   // all four of `segments`
    std::int32_t* pinned;
    kernels::TokenSegments segments;
  };
  void group(std::int64_t tokens, std::int64_t width, std::int64_t vocab);

  device::Device& device_;
  device::Stream& stream_;
  std::vector<tensor::Tensor> slabs16_, slabs32_;   // three and four of equal size
  tensor::Tensor tokens_, part_;
  std::vector<Grouped> grouped_;
  std::map<std::int64_t, tensor::Tensor> cudnn_;   // workspaces by width of a head, where there is cuDNN
  void* pinned_ = nullptr;
  void* pinned_tokens_ = nullptr;
  base::Bytes largest_copy_ = 0;
  static constexpr std::int64_t places = 32;
  std::int64_t place_ = 0;
};

}  // namespace shardbook::cli
