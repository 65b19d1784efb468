// What a process may still take is the least that the host and each of its control groups have.
#include "engine/device/host/memory_left.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/small_run.hpp"

namespace shardbook::device {
namespace {

namespace fs = std::filesystem;

class MemoryLeft : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) {
    const fs::path whole = folder_.path() / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << content;
  }
  std::uint64_t left() { return memory_left(folder_ / "proc", folder_ / "groups"); }

  static constexpr std::uint64_t mib = 1 << 20;
  tests::Folder folder_;
};

TEST_F(MemoryLeft, IsWhatTheHostHasWhereNoGroupHasALimit) {
  EXPECT_EQ(left(), std::numeric_limits<std::uint64_t>::max()) << "nothing is known";
  put("proc/meminfo", "MemTotal:       65536 kB\nMemFree:        1 kB\nMemAvailable:   20480 kB\nBuffers: 3 kB\n");
  EXPECT_EQ(left(), 20 * mib);
  put("proc/self/cgroup", "0::/\n");
  put("groups/memory.max", "max\n");
  EXPECT_EQ(left(), 20 * mib);
}

TEST_F(MemoryLeft, IsWhatItsGroupLeavesAndThoseThatThisIsIn) {
  put("proc/meminfo", "MemAvailable:   20480 kB\n");
  put("proc/self/cgroup", "4:memory:/elsewhere\n0::/batch/job\n");
  put("groups/batch/job/memory.max", "16777216\n");
  put("groups/batch/job/memory.current", "10485760\n");
  EXPECT_EQ(left(), 6 * mib);
  put("groups/batch/job/memory.stat", "anon 4194304\nfile 6291456\ninactive_file 2097152\n");
  EXPECT_EQ(left(), 8 * mib) << "pages of files go when others need the memory";
  put("groups/batch/memory.max", "12582912\n");
  put("groups/batch/memory.current", "11534336\n");
  EXPECT_EQ(left(), 1 * mib) << "the jobs of the batch together";
  put("groups/memory.max", "1048576\n");
  put("groups/memory.current", "2097152\n");
  EXPECT_EQ(left(), 0u) << "a limit may be lowered below what is taken";
}

}  // namespace
}  // namespace shardbook::device
