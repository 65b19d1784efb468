// tests/gpu: one GPU with memory to lend, and how far its numbers may lie from exact ones.
//
// Each kernel is compared with its host reference in fp64 on the same inputs (bf16 and f32 numbers are exact
// in fp64). A test derives how much the f32 arithmetic may err; the rounding of the result to its storage
// type is added here. Bounds follow Higham, "Accuracy and Stability of Numerical Algorithms", ch. 3-4: a sum
// whose additions are `depth` deep errs by at most gamma(depth) · Σ|terms|.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::gpu_test {

using base::DType;

inline constexpr double unit_f32 = 0x1p-24;
inline constexpr double unit_bf16 = 0x1p-8;
inline double unit_of(DType dtype) { return dtype == DType::bf16 ? unit_bf16 : unit_f32; }
inline double gamma(double depth) { return depth * unit_f32 / (1 - depth * unit_f32); }

// Depth of a sum over a row of up to 32 numbers a thread and 512 threads.
inline constexpr double row_depth = 32 + 9;

inline float to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7FFF + ((bits >> 16) & 1);
  bits &= 0xFFFF0000u;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline double rounded(double value, DType dtype) {
  return dtype == DType::bf16 ? to_bf16(static_cast<float>(value)) : static_cast<float>(value);
}

// GPU 0, sealed, with a gibibyte that tests use from the start again and again. With the variable
// SHARDBOOK_TEST_SEPARATE_BUFFERS each piece is an allocation of its own instead, so that compute-sanitizer
// sees an access beyond it, which within one arena it cannot.
class Gpu {
 public:
  static constexpr base::Bytes bytes = base::Bytes{1} << 30;

  static Gpu& get() {
    static Gpu gpu;
    return gpu;
  }
  device::Device& device() { return *device_; }
  device::Stream& stream() { return *stream_; }
  void* take(base::Bytes size) {
    if (separate_) {
      void* piece = nullptr;
      SHARDBOOK_CUDA(cudaMalloc(&piece, static_cast<std::size_t>(size)), "test");
      pieces_.push_back(piece);
      return piece;
    }
    used_ = (used_ + 255) / 256 * 256;
    SHARDBOOK_CHECK(used_ + size <= bytes, "a test needs more than the gibibyte");
    void* place = static_cast<char*>(memory_.data) + used_;
    used_ += size;
    return place;
  }
  void reset() {
    used_ = 0;
    for (void* piece : pieces_) SHARDBOOK_CUDA(cudaFree(piece), "test");
    pieces_.clear();
  }
  void copy_in(const void* from, void* to, base::Bytes size) {
    device_->upload(*stream_, "test", from, {to, {}, size});
    device_->synchronize();
  }
  void copy_out(const void* from, void* to, base::Bytes size) {
    device_->download(*stream_, "test", {const_cast<void*>(from), {}, size}, to);
    device_->synchronize();
  }
  template <class Args>
  void run(const Args& args, void (*host)(const Args&), void (*cuda)(const Args&, const device::CudaQueue&)) {
    device_->launch(*stream_, program::OpDesc("test", program::OpKind::pointwise, DType::f32), args, host, cuda);
    device_->synchronize();
  }

 private:
  Gpu() {
    auto made = device::make_cuda_device(0, {DType::bf16, DType::f32}, 0);
    if (!made) throw base::Failure(made.error());
    device_ = std::move(made).value();
    memory_ = device_->allocate(bytes / 4, DType::f32, program::MemoryKind::workspace, "of the tests");
    stream_ = &device_->create_stream("compute");
    device_->seal();
  }
  std::unique_ptr<device::Device> device_;
  device::Memory memory_;
  device::Stream* stream_ = nullptr;
  base::Bytes used_ = 0;
  bool separate_ = std::getenv("SHARDBOOK_TEST_SEPARATE_BUFFERS") != nullptr;
  std::vector<void*> pieces_;
};

// Numbers that the host has in fp64 and the GPU as `dtype`, the same at the start.
class Numbers {
 public:
  // `shift`: bytes by which the GPU's copy misses an alignment of 256.
  Numbers(std::vector<double> values, DType dtype, int shift = 0) : host_(std::move(values)), dtype_(dtype) {
    for (double& value : host_) value = rounded(value, dtype);
    gpu_ = static_cast<char*>(Gpu::get().take(bytes() + shift)) + shift;
    const std::vector<char> raw = encoded();
    Gpu::get().copy_in(raw.data(), gpu_, bytes());
  }
  void* at(bool on_gpu) { return on_gpu ? gpu_ : static_cast<void*>(host_.data()); }
  std::size_t size() const { return host_.size(); }
  double operator[](std::size_t i) const { return host_[i]; }
  DType dtype() const { return dtype_; }

  std::vector<double> from_gpu() const {
    std::vector<char> raw(static_cast<std::size_t>(bytes()));
    Gpu::get().copy_out(gpu_, raw.data(), bytes());
    std::vector<double> values(host_.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits = 0;
      if (dtype_ == DType::bf16) {
        std::uint16_t half;
        std::memcpy(&half, raw.data() + 2 * i, 2);
        bits = std::uint32_t{half} << 16;
      } else {
        std::memcpy(&bits, raw.data() + 4 * i, 4);
      }
      float value;
      std::memcpy(&value, &bits, 4);
      values[i] = value;
    }
    return values;
  }

 private:
  base::Bytes bytes() const { return static_cast<base::Bytes>(host_.size()) * base::size_of(dtype_); }
  std::vector<char> encoded() const {
    std::vector<char> raw(static_cast<std::size_t>(bytes()));
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const float value = static_cast<float>(host_[i]);
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      const std::uint16_t half = static_cast<std::uint16_t>(bits >> 16);
      if (dtype_ == DType::bf16) std::memcpy(raw.data() + 2 * i, &half, 2);
      else std::memcpy(raw.data() + 4 * i, &bits, 4);
    }
    return raw;
  }
  std::vector<double> host_;
  DType dtype_;
  void* gpu_ = nullptr;
};

class Integers {
 public:
  explicit Integers(std::vector<std::int32_t> values) : host_(std::move(values)) {
    const base::Bytes bytes = static_cast<base::Bytes>(host_.size()) * 4;
    gpu_ = Gpu::get().take(bytes);
    Gpu::get().copy_in(host_.data(), gpu_, bytes);
  }
  std::int32_t* at(bool on_gpu) { return on_gpu ? static_cast<std::int32_t*>(gpu_) : host_.data(); }
  std::int32_t operator[](std::size_t i) const { return host_[i]; }

 private:
  std::vector<std::int32_t> host_;
  void* gpu_ = nullptr;
};

inline std::mt19937_64& generator() {
  static std::mt19937_64 random(20261121);
  return random;
}
inline std::vector<double> normal(std::int64_t count, double deviation = 1, double mean = 0) {
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = draw(generator());
  return values;
}
// Integers of [-most, most]: exact in bf16 up to 256, and so are their sums in f32 up to 2^24.
inline std::vector<double> small_integers(std::int64_t count, int most) {
  std::uniform_int_distribution<int> draw(-most, most);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = draw(generator());
  return values;
}
inline std::vector<double> zeros(std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count)); }
// What an output holds before it is written, so that a number left out shows.
inline std::vector<double> unwritten(std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 777.0); }

// Runs the reference in fp64 and the kernel: args(on_gpu) makes the arguments of each.
template <class MakeArgs, class Args>
void run_both(MakeArgs args, void (*host)(const Args&), void (*cuda)(const Args&, const device::CudaQueue&)) {
  host(args(false));
  Gpu::get().run(args(true), host, cuda);
}

// error(i): how much the arithmetic of number i may err, before its result is stored.
template <class Error>
void expect_within(const Numbers& numbers, Error error) {
  const std::vector<double> got = numbers.from_gpu();
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double allowed = error(i);
    // The least normal number stands for what is flushed to zero.
    const double bound = allowed + unit_of(numbers.dtype()) * (std::abs(numbers[i]) + allowed) + 0x1p-126;
    const double difference = std::abs(got[i] - numbers[i]);
    if (!(difference <= bound)) {
      ADD_FAILURE() << "number " << i << " of " << got.size() << " is " << got[i] << " on the GPU and " << numbers[i]
                    << " exactly: they differ by " << difference << ", and at most " << bound << " is explained";
      return;
    }
    worst = std::max(worst, difference / bound);
  }
  // A bound that nothing comes near says little; this shows it in the test's record.
  ::testing::Test::RecordProperty("largest_share_of_bound", std::to_string(worst));
}
inline void expect_exact(const Numbers& numbers) {
  const std::vector<double> got = numbers.from_gpu();
  for (std::size_t i = 0; i < got.size(); ++i) {
    // What is below the least normal number is flushed to zero.
    const double exact = std::abs(numbers[i]) < 0x1p-126 ? 0 : numbers[i];
    if (got[i] != exact) {
      ADD_FAILURE() << "number " << i << " of " << got.size() << " is " << got[i] << " on the GPU and " << numbers[i] << " exactly";
      return;
    }
  }
}

// Skips where there is no GPU; gives each test the memory from its start.
class OneGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_device_count() < 1) GTEST_SKIP() << "needs a GPU: " << device::cuda_problem();
    Gpu::get().reset();
  }
};

inline constexpr DType both_types[] = {DType::bf16, DType::f32};

}  // namespace shardbook::gpu_test
