// Graphs of a device's calls: an edge that says what others say goes, and no more; copies within one keep every byte.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <cuda_runtime_api.h>

#include "engine/device/cuda/graph_edges.hpp"
#include "engine/device/cuda/owners.hpp"
#include "engine/device/cuda/step_graphs.hpp"
#include "tests/gpu/cuda_device.hpp"

namespace shardbook::gpu_test {
namespace {

using After = std::vector<std::vector<std::size_t>>;   // by node: those that it is put behind, each with a lower number

struct Built {
  device::cuda::OwnedGraph graph;
  std::vector<cudaGraphNode_t> nodes;
};

Built built(const After& after) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  Built all{device::cuda::OwnedGraph(graph), {}};
  for (const std::vector<std::size_t>& before : after) {
    std::vector<cudaGraphNode_t> from;
    for (std::size_t node : before) from.push_back(all.nodes[node]);
    EXPECT_EQ(cudaGraphAddEmptyNode(&all.nodes.emplace_back(), graph, from.data(), from.size()), cudaSuccess);
  }
  return all;
}

After left_of(const Built& all) {
  After after(all.nodes.size());
  for (std::size_t node = 0; node < all.nodes.size(); ++node) {
    std::size_t count = 0;
#if CUDART_VERSION >= 13000
    EXPECT_EQ(cudaGraphNodeGetDependencies(all.nodes[node], nullptr, nullptr, &count), cudaSuccess);
    std::vector<cudaGraphNode_t> before(count);
    EXPECT_EQ(cudaGraphNodeGetDependencies(all.nodes[node], before.data(), nullptr, &count), cudaSuccess);
#else
    EXPECT_EQ(cudaGraphNodeGetDependencies(all.nodes[node], nullptr, &count), cudaSuccess);
    std::vector<cudaGraphNode_t> before(count);
    EXPECT_EQ(cudaGraphNodeGetDependencies(all.nodes[node], before.data(), &count), cudaSuccess);
#endif
    for (cudaGraphNode_t one : before) after[node].push_back(static_cast<std::size_t>(std::find(all.nodes.begin(), all.nodes.end(), one) - all.nodes.begin()));
    std::sort(after[node].begin(), after[node].end());
  }
  return after;
}

// All that is before each node, at first or second hand.
std::vector<std::set<std::size_t>> before_of(const After& after) {
  std::vector<std::set<std::size_t>> before(after.size());
  for (std::size_t node = 0; node < after.size(); ++node) {
    for (std::size_t one : after[node]) {
      before[node].insert(one);
      before[node].insert(before[one].begin(), before[one].end());
    }
  }
  return before;
}

class GraphEdges : public OneGpu {
 protected:
  void SetUp() override {
    OneGpu::SetUp();
    if (!IsSkipped() && CUDART_VERSION < 12030) GTEST_SKIP() << "CUDA before 12.3 does not say of which kind an edge is";
  }
};

// A kernel, a sum that waits for it, the next kernel, which waits for the sum, the next sum, which its stream puts behind the first.
TEST_F(GraphEdges, ThatOthersImplyGo) {
  const Built all = built({{}, {0}, {0, 1}, {1, 2}, {0, 2, 3}});
  EXPECT_EQ(device::cuda::drop_implied_edges(all.graph.get(), "a test"), 4u);
  EXPECT_EQ(left_of(all), (After{{}, {0}, {1}, {2}, {3}}));
}

TEST_F(GraphEdges, OfTwoWaysThatMeetStay) {
  const After after = {{}, {0}, {0}, {1, 2}};
  const Built all = built(after);
  EXPECT_EQ(device::cuda::drop_implied_edges(all.graph.get(), "a test"), 0u);
  EXPECT_EQ(left_of(all), after);
}

TEST_F(GraphEdges, OfAnyGraphOrderWhatTheyOrderedAndNoneIsLeftOver) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    After after(90);
    for (std::size_t node = 1; node < after.size(); ++node) {
      std::set<std::size_t> before;
      const std::size_t reach = trial % 2 == 0 ? node : std::min<std::size_t>(node, 6);   // of any, or of the last few
      for (int edge = 0; edge < trial % 5 + 1; ++edge) before.insert(node - 1 - random() % reach);
      after[node].assign(before.begin(), before.end());
    }
    const Built all = built(after);
    const std::size_t dropped = device::cuda::drop_implied_edges(all.graph.get(), "a test");
    const After left = left_of(all);
    EXPECT_EQ(before_of(left), before_of(after)) << trial;
    std::size_t fewer = 0;
    for (std::size_t node = 0; node < after.size(); ++node) {
      fewer += after[node].size() - left[node].size();
      for (std::size_t one : left[node]) {
        for (std::size_t other : left[node]) EXPECT_FALSE(before_of(left)[other].contains(one)) << trial << ": " << one << " is before " << other << ", which is before " << node;
      }
    }
    EXPECT_EQ(fewer, dropped) << trial;
  }
}

// Up, through a kernel's hands, and down again, twice with other bytes; some by kernels, and the larger ones by a copy engine.
TEST_F(CudaDevice, CopiesInAGraphKeepEveryByte) {
  for (const std::int64_t count : {1, 3, 4, 5, 511, 2048, 16384, 16385, 40000}) {
    auto device = make();
    Stream& stream = device->create_stream("compute");
    const Memory there = device->allocate(count, DType::f32, MemoryKind::input, "there"), sum = device->allocate(count, DType::f32, MemoryKind::activation, "sum");
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    auto* const up = static_cast<float*>(device->pinned(static_cast<base::Bytes>(bytes) + 64));
    auto* const down = static_cast<float*>(device->pinned(static_cast<base::Bytes>(bytes) + 64));
    device->seal();
    device->begin_capture(stream);
    device->upload(stream, "up", up, there);
    OpDesc desc("fill", OpKind::fill, DType::f32);
    device->launch(stream, desc.writes(sum.use), kernels::FillArgs{sum.data, count, 7, DType::f32}, &kernels::host::fill, &kernels::cuda::fill);
    device->download(stream, "down", there, down);
    const device::Graph graph = device->end_capture();
    for (int turn = 0; turn < 2; ++turn) {
      std::fill_n(down, bytes / sizeof(float) + 16, -1.0f);
      for (std::int64_t at = 0; at < count; ++at) up[at] = static_cast<float>(at * 3 + turn);
      device->replay(graph);
      device->synchronize();
      for (std::int64_t at = 0; at < count; ++at) ASSERT_EQ(down[at], static_cast<float>(at * 3 + turn)) << "number " << at << " of " << count << ", turn " << turn;
      EXPECT_EQ(down[count], -1.0f) << "more than " << count << " numbers were written";
    }
    device->drop_graphs();
  }
}

}  // namespace
}  // namespace shardbook::gpu_test
