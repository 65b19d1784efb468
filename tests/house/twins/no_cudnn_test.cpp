// What stands for cuDNN in a build without it: every function of the other, each of which says what to do. Builds with cuDNN
// would not notice that it no longer compiles, or lacks one.
#include <gtest/gtest.h>

#include "engine/base/check.hpp"
#include "engine/kernels/cuda/launchers.hpp"

namespace shardbook::kernels::cuda {
namespace {

template <class Call>
std::string said_by(Call call) {
  try {
    call();
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(NoCudnn, HasEachFunctionAndSaysWhatToDo) {
  const device::CudaQueue queue{};
  EXPECT_EQ(cudnn_version(), "");
  EXPECT_NE(cudnn_problem().find("install cuDNN"), std::string::npos);
  EXPECT_EQ(said_by([&] { cudnn_attention_forward({}, queue); }), cudnn_problem());
  EXPECT_EQ(said_by([&] { cudnn_attention_backward({}, queue); }), cudnn_problem());
  EXPECT_EQ(said_by([&] { (void)cudnn_attention_needs({}, 1); }), cudnn_problem());
}

}  // namespace
}  // namespace shardbook::kernels::cuda
