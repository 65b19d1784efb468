// Tests of which apart.txt says that one thread does all of it, and which the thread sanitizer therefore leaves out: where tests run
// as shipped they fail if they begin a thread, or a process that might.
//
// What begins threads, in whichever library, calls pthread_create; of two of that name a program's own is called.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace shardbook::tests {
namespace {

std::atomic<int> begun = 0;

class OneThread final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = begun; }
  void OnTestEnd(const testing::TestInfo& test) override {
    const char* names = std::getenv("SHARDBOOK_ONE_THREAD");   // ":Suite.Test:Suite.Test:"
    if (names == nullptr || begun == before_) return;
    const std::string name = std::string(":") + test.test_suite_name() + "." + test.name() + ":";
    if (std::string(names).find(name) == std::string::npos) return;
    ADD_FAILURE() << "begins a thread or a process: the thread sanitizer may find something here, so its line in apart.txt has to go";
  }
  int before_ = 0;
};

[[maybe_unused]] const bool listens = [] {
  pthread_atfork([] { ++begun; }, nullptr, nullptr);
  testing::UnitTest::GetInstance()->listeners().Append(new OneThread);
  return true;
}();

// Where a library's pthread_create were called in place of the one below, nothing above would ever fail.
TEST(OneThread, SeesAThreadAndAProcessBegin) {
  int before = begun;
  std::thread([] {}).join();
  EXPECT_EQ(begun, before + 1);
  before = begun;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  EXPECT_EQ(begun, before + 1);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace shardbook::tests

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  ++shardbook::tests::begun;
  return create(thread, attributes, body, argument);
}
