// Collectives over NCCL are exact on integers, whatever stream and order; ranks are processes, a GPU each.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/comm/flight.hpp"
#include "engine/comm/nccl/known_memory.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/check.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "tests/gpu/training_rank.hpp"

namespace shardbook::comm {
namespace {

using base::DType;
using device::Event;
using device::Stream;

// One rank of a test: its device, backend and a communicator over all.
struct RankSetup {
  explicit RankSetup(world::World& world, NcclOptions options = {})
      : device(gpu_test::device_of(world)), compute(&device->create_stream("compute")), other(&device->create_stream("other", device::Priority::high)),
        ready(device->create_event("ready")), backend(make_nccl_backend(world, *device, options)) {
    device->set_watch([this] { backend->check(); });
  }
  Tensor tensor(std::int64_t elements, DType dtype = DType::f32) {
    return tensor::allocate(*device, {elements}, dtype, program::MemoryKind::activation, "test");
  }
  void write(const Tensor& to, const std::vector<float>& values) {
    device->upload(*compute, "write", values.data(), tensor::memory_of(to));
    device->synchronize();
  }
  std::vector<float> read(const Tensor& from) {
    std::vector<float> values(static_cast<std::size_t>(from.elements()));
    device->synchronize();  // what wrote it may have been on another stream
    device->download(*compute, "read", tensor::memory_of(from), values.data());
    device->synchronize();
    return values;
  }
  std::unique_ptr<device::Device> device;
  Stream* compute;
  Stream* other;
  Event ready;
  std::unique_ptr<Backend> backend;
};

mesh::Group everyone(const world::World& world, const char* axis) {
  mesh::Group group{axis, {}, world.rank(), 0};
  for (int r = 0; r < world.size(); ++r) group.ranks.push_back(r);
  return group;
}

// What rank r holds at place i: small, and different for all.
float value(int rank, std::int64_t i) { return static_cast<float>((rank + 1) * 1000 + i % 997); }
std::vector<float> values(int rank, std::int64_t elements) {
  std::vector<float> all(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) all[static_cast<std::size_t>(i)] = value(rank, i);
  return all;
}

// How calls are made, and what memory is to NCCL.
struct Way {
  const char* name;
  bool blocking_calls;
  Buffers buffers;
  int ctas_beside_nothing = 0;
};

// Asked of versions, not of a GPU.
TEST(Windows, AreRefusedToGraphsAndBehindKernelsWhereNcclsKernelsForThemDoNotWait) {
#if NCCL_VERSION_CODE >= 22800
  EXPECT_EQ(windows_problem(22803, false, false), nullptr);
  ASSERT_NE(windows_problem(22803, true, false), nullptr);
  EXPECT_NE(std::string(windows_problem(22803, true, false)).find("2.30.7"), std::string::npos);
  EXPECT_NE(windows_problem(23004, true, false), nullptr);
  ASSERT_NE(windows_problem(23004, false, true), nullptr);
  EXPECT_NE(std::string(windows_problem(22803, false, true)).find("fsdp.reduce_dtype=bf16"), std::string::npos);
  EXPECT_EQ(windows_problem(23007, false, true), nullptr);
  EXPECT_EQ(windows_problem(23007, true, false), nullptr);
  EXPECT_NE(windows_problem(22707, false, false), nullptr);
#else
  EXPECT_NE(windows_problem(22707, false, false), nullptr);
#endif
}

class Nccl : public ::testing::TestWithParam<Way> {
 protected:
  // Runs `main` on as many ranks, and passes its first cause on.
  void on_gpus(int ranks, const world::RankMain& main) {
    if (!gpu_test::has_gpus_for(ranks)) GTEST_SKIP() << gpu_test::lacks_gpus(ranks);
    const base::Status ran = gpu_test::on_gpus(ranks, main);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
  }
  NcclOptions options() const { return {.blocking_calls = GetParam().blocking_calls, .ctas_beside_nothing = GetParam().ctas_beside_nothing, .buffers = GetParam().buffers}; }
};

TEST_P(Nccl, OneRankMakesACommunicatorAndLeaves) {
  on_gpus(1, [&](world::World& world) {
    RankSetup rank(world, options());
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "world"));
    EXPECT_EQ(all->size(), 1);
    EXPECT_NE(rank.backend->version().find("NCCL 2."), std::string::npos);
    rank.device->seal();
    rank.backend->check();
  });
}

TEST_P(Nccl, EveryCollectiveIsExactOnIntegers) {
  on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, options());
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "tp"));
    const auto second = rank.backend->communicator(*rank.device, everyone(world, "dp_shard"));
    second->prepare_beside_nothing();
    const int size = world.size(), me = world.rank();
    for (const std::int64_t shard : {1, 1000, 1 << 20}) {
      const Tensor mine = rank.tensor(shard), full = rank.tensor(shard * size), sum = rank.tensor(shard * size);
      // all-reduce: sum and max
      rank.write(full, values(me, shard * size));
      all->all_reduce(*rank.compute, full, sum);
      std::vector<float> got = rank.read(sum);
      for (std::int64_t i = 0; i < shard * size; ++i) {
        float expected = 0;
        for (int r = 0; r < size; ++r) expected += value(r, i);
        ASSERT_EQ(got[i], expected) << "sum at " << i;
      }
      all->all_reduce(*rank.compute, full, sum, Reduction::max);
      got = rank.read(sum);
      for (std::int64_t i = 0; i < shard * size; ++i) ASSERT_EQ(got[i], value(size - 1, i)) << "max at " << i;
      // reduce-scatter, on the other communicator and stream
      for (const Beside beside : {Beside::kernels, Beside::nothing}) {
        rank.write(mine, std::vector<float>(static_cast<std::size_t>(shard), -1.0f));
        second->reduce_scatter(*rank.other, full, mine, beside);
        got = rank.read(mine);
        for (std::int64_t i = 0; i < shard; ++i) {
          float expected = 0;
          for (int r = 0; r < size; ++r) expected += value(r, me * shard + i);
          ASSERT_EQ(got[i], expected) << "reduce-scatter at " << i << (beside == Beside::nothing ? ", with nothing beside it" : "");
        }
      }
      // all-gather
      rank.write(mine, values(me, shard));
      second->all_gather(*rank.other, mine, full);
      got = rank.read(full);
      for (int r = 0; r < size; ++r) {
        for (std::int64_t i = 0; i < shard; ++i) ASSERT_EQ(got[r * shard + i], value(r, i)) << "of rank " << r << " at " << i;
      }
      // broadcast from the last rank
      all->broadcast(*rank.compute, mine, mine, size - 1);
      got = rank.read(mine);
      for (std::int64_t i = 0; i < shard; ++i) ASSERT_EQ(got[i], value(size - 1, i));
      // all-to-all with unequal splits: rank r sends r + 1 elements to each
      const Tensor out = rank.tensor((me + 1) * size), in = rank.tensor(size * (size + 1) / 2);
      rank.write(out, values(me, (me + 1) * size));
      std::vector<std::int64_t> send(size, me + 1), receive(size);
      std::iota(receive.begin(), receive.end(), 1);
      all->all_to_all(*rank.compute, out, in, send, receive);
      got = rank.read(in);
      std::size_t at = 0;
      for (int r = 0; r < size; ++r) {
        for (int i = 0; i <= r; ++i) ASSERT_EQ(got[at++], value(r, me * (r + 1) + i)) << "from rank " << r;
      }
      // shift: what the rank before sends, from one memory to another
      const Tensor gone = rank.tensor(shard), come = rank.tensor(shard);
      rank.write(gone, values(me, shard));
      all->shift(*rank.compute, gone, come, 1);
      got = rank.read(come);
      for (std::int64_t i = 0; i < shard; ++i) ASSERT_EQ(got[i], value((me + size - 1) % size, i)) << "shift at " << i;
      // send and receive: a pair
      if (me == 0) all->send(*rank.compute, out, 1);
      if (me == 1) {
        const Tensor from_zero = out.slice(0, {size});
        all->receive(*rank.compute, from_zero, 0);
        got = rank.read(from_zero);
        for (int i = 0; i < size; ++i) ASSERT_EQ(got[i], value(0, i));
      }
      rank.device->synchronize();
    }
    rank.device->seal();
    rank.backend->check();
  });
}

TEST_P(Nccl, WhatComesAfterACollectiveOnItsStreamSeesItsResult) {
  on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, options());
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "tp"));
    const auto second = rank.backend->communicator(*rank.device, everyone(world, "dp_shard"));
    const std::int64_t n = 1 << 22;
    const Tensor a = rank.tensor(n), b = rank.tensor(n);
    rank.device->seal();
    rank.write(a, std::vector<float>(n, 1.0f));
    // Alternating streams and communicators: each doubles what the one before left.
    for (int round = 0; round < 10; ++round) {
      all->all_reduce(*rank.compute, a, b);
      rank.device->record(*rank.compute, rank.ready);
      rank.device->wait(*rank.other, rank.ready);
      second->all_reduce(*rank.other, b, a);
      rank.device->record(*rank.other, rank.ready);
      rank.device->wait(*rank.compute, rank.ready);
    }
    float expected = 1;
    for (int i = 0; i < 20; ++i) expected *= static_cast<float>(world.size());
    for (const float got : rank.read(a)) ASSERT_EQ(got, expected);
  });
}

// Leaves a file where a scope is left, which who is ended in the middle of it does not.
struct Mark {
  std::string path;
  ~Mark() {
    if (!path.empty()) std::ofstream(path) << "left\n";
  }
};

TEST_P(Nccl, APeerThatFailsEndsACollectiveThatWaitsForIt) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  constexpr const char* variable = "SHARDBOOK_TEST_MARK";
  const bool is_parent = std::getenv(variable) == nullptr;
  const std::string path = is_parent ? base::text("nccl-test-", ::getpid(), ".mark") : std::getenv(variable);
  if (is_parent) ::setenv(variable, path.c_str(), 1);
  const base::Nanoseconds begin = world::now();
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, options());
    const world::FailureHook stop = world.on_failure([&] { rank.backend->abort(); });
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "tp"));
    const Tensor a = rank.tensor(1 << 20);
    rank.device->seal();
    if (world.rank() == 1) throw base::Failure("out of coffee");
    const Mark mark{path};
    all->all_reduce(*rank.compute, a, a);
    rank.device->synchronize();
  });
  ::unsetenv(variable);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().find("out of coffee"), std::string::npos) << ran.error();
  EXPECT_LT(world::now() - begin, 60'000'000'000);
  EXPECT_TRUE(std::filesystem::remove(path)) << "rank 0 came back from its collective: nobody had to end it";
}

// The same pieces of memory, used again and again by two communicators on two streams, in place and not.
TEST_P(Nccl, GathersAndSumsOfMemoryThatIsKnownStayExact) {
  on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, options());
    const auto tp = rank.backend->communicator(*rank.device, everyone(world, "tp"));
    const auto fsdp = rank.backend->communicator(*rank.device, everyone(world, "dp_shard"));
    fsdp->prepare_beside_nothing();
    const int size = world.size(), me = world.rank();
    const std::int64_t shard = gpu_test::one_gpu_for_all() ? 1 << 20 : 12 << 20;   // 2 of them are larger than a shared piece
    const Tensor full = rank.tensor(shard * size), small = rank.tensor(4096), apart = rank.tensor(shard);
    rank.device->seal();
    for (int round = 0; round < 3; ++round) {
      // In place: my shard's place in the whole
      const Tensor mine = full.slice(me * shard, {shard});
      rank.write(full, std::vector<float>(static_cast<std::size_t>(shard * size), -1.0f));
      rank.write(mine, values(me + round, shard));
      fsdp->all_gather(*rank.other, mine, full);
      std::vector<float> got = rank.read(full);
      for (int r = 0; r < size; ++r) {
        for (std::int64_t i = 0; i < shard; i += 997) ASSERT_EQ(got[static_cast<std::size_t>(r * shard + i)], value(r + round, i)) << "of rank " << r << " in round " << round;
      }
      fsdp->reduce_scatter(*rank.other, full, apart, round == 1 ? Beside::nothing : Beside::kernels);
      rank.device->synchronize();
      got = rank.read(apart);
      for (std::int64_t i = 0; i < shard; i += 997) ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(size) * value(me + round, i));
      rank.write(small, values(me, 4096));
      tp->all_reduce(*rank.compute, small, small);
      got = rank.read(small);
      for (std::int64_t i = 0; i < 4096; i += 13) ASSERT_EQ(got[static_cast<std::size_t>(i)], value(0, i) + value(1, i));
    }
    rank.backend->check();
  });
}

INSTANTIATE_TEST_SUITE_P(Calls, Nccl, ::testing::Values(Way{"NonBlocking", false, Buffers::plain}, Way{"Blocking", true, Buffers::plain}, Way{"Registered", true, Buffers::registered},
                                                        Way{"Windows", true, Buffers::windows}, Way{"WindowsAndWide", true, Buffers::windows, 32},
                                                        Way{"NonBlockingAndWide", false, Buffers::plain, 32}),
                         [](const auto& info) { return info.param.name; });

// What is called is in the log, and is marked as ended soon after it has; what has not run is not.
TEST_P(Nccl, EventsTellWhichCallsHaveEnded) {
  on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, options());
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "tp"));
    const Tensor a = rank.tensor(1024);
    rank.device->seal();
    FlightLog& log = *rank.backend->flight().logs().at(0);
    const auto ended_soon = [&] {
      for (int tries = 0; tries < 300; ++tries, std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
        if (log.waits_since() == 0) return true;
      }
      return false;
    };
    // More calls than the log keeps, so that events are used again
    const int calls = static_cast<int>(FlightLog::kept) + 40;
    for (int i = 0; i < (gpu_test::one_gpu_for_all() ? 40 : calls); ++i) all->all_reduce(*rank.compute, a, a);
    rank.device->synchronize();
    EXPECT_TRUE(ended_soon());
    world.barrier();

    // Rank 1 comes half a second late: until then rank 0's call has not ended, whoever looks
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    all->all_reduce(*rank.compute, a, a);
    if (world.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      const check::FlightPage page = log.page(program::host_now(), 8);
      EXPECT_EQ(page.calls.back().state, check::CallState::issued);
      EXPECT_GT(page.calls.back().waited, 200'000'000);
      EXPECT_EQ(page.calls.at(page.calls.size() - 2).state, check::CallState::ended);
    }
    rank.device->synchronize();
    EXPECT_TRUE(ended_soon());
    world.barrier();
  });
}

// Blocks of threads of the widest kernel among what the stream has captured so far.
unsigned widest_captured(cudaStream_t stream) {
  using GetParams = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
  // NCCL's kernels are those of another runtime; the driver knows them all
  static const auto get_params = reinterpret_cast<GetParams>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGraphKernelNodeGetParams_v2"));
  if (get_params == nullptr) throw base::Failure("the driver does not tell what a graph holds");
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  SHARDBOOK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph), "test");
#else
  SHARDBOOK_CUDA(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph), "test");
#endif
  std::size_t count = 0;
  SHARDBOOK_CUDA(cudaGraphGetNodes(graph, nullptr, &count), "test");
  std::vector<cudaGraphNode_t> nodes(count);
  SHARDBOOK_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count), "test");
  unsigned widest = 0;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    SHARDBOOK_CUDA(cudaGraphNodeGetType(node, &type), "test");
    CUDA_KERNEL_NODE_PARAMS params = {};
    if (type == cudaGraphNodeTypeKernel && get_params(node, &params) == CUDA_SUCCESS) widest = std::max(widest, params.gridDimX);
  }
  return widest;
}

TEST(Ctas, AreAsManyAsAskedForAndMoreBesideNothing) {
  if (!gpu_test::has_gpus_for(2)) GTEST_SKIP() << gpu_test::lacks_gpus(2);
  const base::Status ran = gpu_test::on_gpus(2, [&](world::World& world) {
    RankSetup rank(world, {.max_ctas = 2, .ctas_beside_nothing = 8, .mark_ends = false, .in_graphs = true});
    const auto all = rank.backend->communicator(*rank.device, everyone(world, "dp_shard"));
    all->prepare_beside_nothing();
    const std::int64_t shard = 1 << 22;
    const Tensor full = rank.tensor(shard * world.size()), mine = rank.tensor(shard);
    rank.device->seal();
    cudaStream_t stream = nullptr;
    rank.device->launch(*rank.compute, program::OpDesc("ask", program::OpKind::pointwise, DType::f32), &stream, +[](cudaStream_t* const&) {},
                        +[](cudaStream_t* const& to, const device::CudaQueue& queue) { *to = static_cast<cudaStream_t>(queue.stream); });
    // NCCL ends no communicator whose calls are in a graph, whatever has failed
    struct NoGraphIsLeft {
      device::Device& device;
      ~NoGraphIsLeft() {
        if (device.capturing()) (void)device.end_capture();
        device.drop_graphs();
      }
    } no_graph_is_left{*rank.device};
    all->capture_begins();
    rank.device->begin_capture(*rank.compute);
    all->reduce_scatter(*rank.compute, full, mine, Beside::kernels);
    const unsigned beside_kernels = widest_captured(stream);
    all->reduce_scatter(*rank.compute, full, mine, Beside::nothing);
    const unsigned beside_nothing = widest_captured(stream);
    rank.device->end_capture();
    all->capture_ends();
    std::printf("a reduce-scatter of 32 MiB takes %u blocks beside kernels and %u beside nothing\n", beside_kernels, beside_nothing);
    EXPECT_GE(beside_kernels, 1u);
    EXPECT_LE(beside_kernels, 2u);
    EXPECT_EQ(beside_nothing, 8u);
    world.barrier();
  });
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error());
}

}  // namespace
}  // namespace shardbook::comm
