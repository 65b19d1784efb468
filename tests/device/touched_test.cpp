// Under the thread sanitizer the device tells what an op has declared to touch, so that a race with another thread is found, though
// the op's own code is not instrumented.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <thread>

#include "engine/device/host/host_device.hpp"
#include "tests/device/plain.hpp"

namespace shardbook::device {
namespace {

struct Nothing {};

// An op that says it touches `memory`, and does nothing. Ends the process: with 66 where the sanitizer has found a race.
[[noreturn]] void run_beside_a_thread_that_writes(base::DType dtype, bool reads_only, bool in_order) {
  HostDevice device(plain, 0, 0);
  Stream& stream = device.create_stream("compute");
  const Memory memory = device.allocate(64, dtype, program::MemoryKind::activation, "memory");
  device.seal();
  program::OpDesc desc("touch", program::OpKind::pointwise, base::DType::f32);
  if (reads_only) desc.reads(memory.use);
  else desc.writes(memory.use);
  device.launch(stream, desc, Nothing{}, +[](const Nothing&) {}, static_cast<void (*)(const Nothing&, const CudaQueue&)>(nullptr));
  std::thread other([&] { static_cast<std::int32_t*>(memory.data)[63] = 1; });
  if (in_order) other.join();
  device.synchronize();
  if (!in_order) other.join();
  std::exit(0);
}

TEST(TouchedDeathTest, ARaceOfAnOpWithAnotherThreadIsFound) {
  if (!tells_what_is_touched) GTEST_SKIP() << "only under the thread sanitizer";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const base::DType dtype : {base::DType::f32, base::DType::i32}) {
    for (const bool reads_only : {true, false}) {
      EXPECT_EXIT(run_beside_a_thread_that_writes(dtype, reads_only, false), testing::ExitedWithCode(66), "data race");
      EXPECT_EXIT(run_beside_a_thread_that_writes(dtype, reads_only, true), testing::ExitedWithCode(0), "");
    }
  }
}

}  // namespace
}  // namespace shardbook::device
