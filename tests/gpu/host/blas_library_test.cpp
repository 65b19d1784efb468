// Opening cuBLASLt needs no GPU, so what is said where it is missing is tested on any machine with a CUDA Toolkit.
#include "engine/device/cuda/blas_library.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace shardbook::device::cuda {
namespace {

bool is_mapped(const std::string& name) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  bool found = false;
  char line[4096];
  while (std::fgets(line, sizeof line, maps) != nullptr) found = found || std::string(line).find(name) != std::string::npos;
  std::fclose(maps);
  return found;
}

// What is opened stays open, so this is looked at before any test runs.
const bool mapped_at_the_start = is_mapped("libcublasLt");

TEST(BlasLibrary, IsOpenedWhenItIsAskedForAndHasTheMajorVersionOfTheBuild) {
  EXPECT_FALSE(mapped_at_the_start) << "this program starts with it";
  const base::Result<BlasLibrary> library = open_blas_library(blas_library_names());
  if (!library.ok()) GTEST_SKIP() << "a toolkit of headers alone: " << library.error();
  EXPECT_TRUE(is_mapped("libcublasLt"));
  EXPECT_EQ(library.value().cublasLtGetVersion() / 10000, std::size_t{CUBLAS_VER_MAJOR});
  EXPECT_STREQ(library.value().cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST(BlasLibrary, IsTheFileThatTheBuildFoundWhereTheLoaderFindsNone) {
  const std::vector<std::string> names = blas_library_names();
  EXPECT_NE(names.front().find("libcublasLt.so."), std::string::npos);
  EXPECT_EQ(names.front().find('/'), std::string::npos) << "looked for where the loader looks";
  if (names.size() < 2) GTEST_SKIP() << "the build found headers alone";
  if (!std::filesystem::exists(names.back())) GTEST_SKIP() << "built on a machine that has it elsewhere: " << names.back();
  const base::Result<BlasLibrary> second = open_blas_library({"libcublasLt.so.of-nobody", names.back()});
  EXPECT_TRUE(second.ok()) << (second.ok() ? "" : second.error());
}

TEST(BlasLibrary, ThatIsMissingIsOneSentenceThatSaysWhereAndWhatToDo) {
  const base::Result<BlasLibrary> none = open_blas_library({"libcublasLt.so.of-nobody", "/nowhere/libcublasLt.so.13"});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().find("libcublasLt.so.of-nobody: cannot open"), std::string::npos) << none.error();
  EXPECT_NE(none.error().find("/nowhere/libcublasLt.so.13: cannot open"), std::string::npos) << none.error();
  EXPECT_NE(none.error().find("LD_LIBRARY_PATH"), std::string::npos) << none.error();
}

TEST(BlasLibrary, ThatIsAnotherLibraryIsNamedWithWhatItLacks) {
  const base::Result<BlasLibrary> other = open_blas_library({"libm.so.6"});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().find("(libm.so.6) has no cublasLtGetVersion"), std::string::npos) << other.error();
}

}  // namespace
}  // namespace shardbook::device::cuda
