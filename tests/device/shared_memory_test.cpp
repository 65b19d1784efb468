// Memory that processes share: an address means the same in all of them, and nothing is left when they end.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "engine/base/check.hpp"
#include "engine/device/host/shared_host_device.hpp"

namespace shardbook::device {
namespace {

using Address = SharedMemory::Address;

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(SharedMemory, IsZeroedAndAnAddressMeansTheSameInAnotherProcess) {
  SharedMemory own;
  auto* first = static_cast<std::int64_t*>(own.allocate(8000));
  auto* far = static_cast<std::int64_t*>(own.reserve(base::Bytes{300} << 20));   // in a later chunk
  auto* last = static_cast<std::int64_t*>(own.allocate(8));
  EXPECT_EQ(first[999], 0);
  EXPECT_EQ(far[1'000'000], 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0u);
  EXPECT_NE(own.address_of(first), 0u);
  first[7] = 70;
  far[1'000'000] = 80;
  const pid_t me = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    // As one that was not forked would: by process, descriptor and mark.
    SharedMemory view(me, own.file(), own.mark());
    const auto at = [&](const void* memory) { return reinterpret_cast<std::int64_t*>(view.at(own.address_of(memory), 8)); };
    const bool seen = at(first + 7)[0] == 70 && at(far + 1'000'000)[0] == 80 && at(first) != first;
    *at(last) = 90;
    ::_exit(seen ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*last, 90);
}

TEST(SharedMemory, GrowsWhileOthersHaveItMapped) {
  SharedMemory own;
  SharedMemory view(::getpid(), own.file(), own.mark());
  for (int round = 0; round < 5; ++round) {
    auto* memory = static_cast<char*>(own.reserve(base::Bytes{40} << 20));
    memory[(40 << 20) - 1] = static_cast<char>(round + 1);
    EXPECT_EQ(static_cast<int>(view.at(own.address_of(memory), 40 << 20)[(40 << 20) - 1]), round + 1);
  }
}

// While it lasts no file can be opened; those that are open stay so.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none_more = before_;
    none_more.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none_more);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(SharedMemory, ThatLacksAFileToBeOpenedNamesTheLimit) {
  SharedMemory own;
  const std::string error = error_of([&] {
    const NoMoreFiles limit;   // lifted when the error is looked at: clang's sanitizer needs files for that
    SharedMemory(::getpid(), own.file(), own.mark());
  });
  EXPECT_NE(error.find("Too many open files): raise the limit of open files (ulimit -n)"), std::string::npos) << error;
}

TEST(SharedMemory, OfAnotherMarkOrOfNobodyIsRefusedInOneSentence) {
  SharedMemory own, other;
  EXPECT_NE(error_of([&] { SharedMemory(::getpid(), own.file(), other.mark()); }).find("is not the memory of the rank that names it"), std::string::npos);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_NE(error_of([&] { SharedMemory(child, 5, own.mark()); }).find("No such file or directory"), std::string::npos);
}

TEST(SharedMemory, ThatIsTooMuchIsRefusedAndTheNextPieceIsGiven) {
  SharedMemory own;
  EXPECT_NE(error_of([&] { own.reserve(base::Bytes{1} << 50); }).find("in one piece"), std::string::npos);
  EXPECT_NE(error_of([&] { own.reserve(base::Bytes{1} << 48); }).find("the system gave no room"), std::string::npos);
  EXPECT_EQ(error_of([&] { own.allocate(base::Bytes{1} << 44); }).find("the system has "), 0u);
  EXPECT_LT(own.address_of(own.allocate(1000)), Address{64} << 20) << "it goes on where it was";
}

TEST(SharedMemory, GivesNoAddressOfWhatIsNotItsOwn) {
  SharedMemory own;
  int elsewhere = 0;
  EXPECT_NE(error_of([&] { (void)own.address_of(&elsewhere); }).find("other processes cannot see this memory"), std::string::npos);
  const void* mine = own.allocate(256);
  EXPECT_NE(error_of([&] { (void)own.at(own.address_of(mine), base::Bytes{65} << 20); }).find("beyond its chunk"), std::string::npos);
}

TEST(SharedHostDevice, HasAllItsMemoryWhereOthersSeeIt) {
  SharedHostDevice device({}, 0, 0);
  const Memory memory = device.allocate(100, base::DType::f32, program::MemoryKind::parameter, "weights");
  void* pinned = device.pinned(64);
  SharedMemory view(::getpid(), device.memory().file(), device.memory().mark());
  static_cast<float*>(memory.data)[99] = 5;
  std::memset(pinned, 7, 64);
  EXPECT_EQ(reinterpret_cast<float*>(view.at(device.memory().address_of(memory.data), 400))[99], 5);
  EXPECT_EQ(static_cast<int>(view.at(device.memory().address_of(pinned), 64)[63]), 7);
}

}  // namespace
}  // namespace shardbook::device
