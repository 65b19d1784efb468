// Of all ops the first that wrote a number which is not finite is found, whatever came of it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/device/host/host_device.hpp"
#include "tests/device/plain.hpp"

namespace shardbook::device {
namespace {

struct SetArgs {
  float* at;
  float value;
};
void set(const SetArgs& args) { *args.at = args.value; }

class Finite : public testing::Test {
 protected:
  Finite() : memory_(device_.allocate(8, base::DType::f32, program::MemoryKind::activation, "x")), stream_(device_.create_stream("compute")), other_(device_.create_stream("other")) {
    device_.check_finite();
    device_.seal();
  }
  void write(Stream& stream, std::int64_t element, float value) {
    program::OpDesc desc("set", program::OpKind::pointwise, base::DType::f32);
    desc.writes({memory_.use.buffer, element * 4, element * 4 + 4});
    device_.launch(stream, desc, SetArgs{static_cast<float*>(memory_.data) + element, value}, &set, static_cast<void (*)(const SetArgs&, const CudaQueue&)>(nullptr));
  }
  std::optional<Ticket> step_of(std::int64_t step, std::initializer_list<float> values) {
    device_.begin_step(step, false);
    std::int64_t element = 0;
    for (const float value : values) write(element % 2 == 0 ? stream_ : other_, element, value), ++element;
    device_.end_step();
    device_.synchronize();
    return device_.first_not_finite(step);
  }

  HostDevice device_{plain, 0, 3};
  Memory memory_;
  Stream& stream_;
  Stream& other_;
};

constexpr float infinite = std::numeric_limits<float>::infinity();

TEST_F(Finite, TheFirstOpThatWritesNoNumberIsFoundOverStreams) {
  EXPECT_FALSE(step_of(0, {1, 2, std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()}));
  const auto found = step_of(1, {1, 2, infinite, std::nanf("")});
  ASSERT_TRUE(found);
  EXPECT_EQ(device_.recorder().programs().back()->ops[found->op].desc.name, std::string("set"));
  EXPECT_EQ(found->op, 4u) << "each op is followed by the one that looks at what it wrote";
  EXPECT_TRUE(found->written);
  // What comes later is not the first.
  EXPECT_FALSE(step_of(2, {std::nanf("")}));
}

TEST_F(Finite, TicketsComeInTheOrderOfIssue) {
  const Ticket read{3, 7, false}, written{3, 7, true}, next{3, 8, false}, later{4, 0, false};
  EXPECT_LT(read.number(), written.number());
  EXPECT_LT(written.number(), next.number());
  EXPECT_LT(next.number(), later.number());
  const Ticket back = Ticket::of(next.number());
  EXPECT_EQ(back.step, 3);
  EXPECT_EQ(back.op, 8u);
  EXPECT_FALSE(back.written);
  EXPECT_LT(later.number(), no_ticket);
}

TEST(FiniteForms, EachStoredTypeIsLookedThrough) {
  const std::uint16_t bf16[] = {0x3f80, 0x7f7f, 0x7f80};   // one, the largest, infinite
  const double f64[] = {1, 1e300, std::nan("")};
  std::uint64_t least = no_ticket;
  host::check_finite({bf16, 2, base::DType::bf16, 5, &least});
  host::check_finite({f64, 2, base::DType::f64, 5, &least});
  EXPECT_EQ(least, no_ticket);
  host::check_finite({bf16, 3, base::DType::bf16, 5, &least});
  EXPECT_EQ(least, 5u);
  host::check_finite({f64, 3, base::DType::f64, 4, &least});
  EXPECT_EQ(least, 4u);
  host::check_finite({f64, 3, base::DType::f64, 9, &least});
  EXPECT_EQ(least, 4u) << "what is there stays where it is less";
}

}  // namespace
}  // namespace shardbook::device
