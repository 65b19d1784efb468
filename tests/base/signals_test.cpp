// Guards round what may be stopped: one in another, and two that do not end in the order in which they began.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "engine/base/signals.hpp"

namespace shardbook::base {
namespace {

bool is_default(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

TEST(Signals, ARequestToOneGuardIsOneToAllAndEndsWithTheLast) {
  ASSERT_TRUE(is_default(SIGINT));
  auto outer = std::make_unique<SignalGuard>(), inner = std::make_unique<SignalGuard>();
  std::raise(SIGINT);
  EXPECT_EQ(stop_signal(), SIGINT);
  inner.reset();
  EXPECT_EQ(stop_signal(), SIGINT);
  outer.reset();
  EXPECT_EQ(stop_signal(), 0);
  EXPECT_TRUE(is_default(SIGINT));
}

// As two threads' are: the first ends while the second stands.
TEST(Signals, GuardsMayEndInAnyOrder) {
  ASSERT_TRUE(is_default(SIGTERM));
  auto first = std::make_unique<SignalGuard>(), second = std::make_unique<SignalGuard>();
  first.reset();
  std::raise(SIGTERM);   // would end this test, were nobody on guard
  EXPECT_EQ(stop_signal(), SIGTERM);
  second.reset();
  EXPECT_TRUE(is_default(SIGTERM));
  const SignalGuard later;
  EXPECT_EQ(stop_signal(), 0);
}

}  // namespace
}  // namespace shardbook::base
