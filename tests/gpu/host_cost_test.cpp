// What does a step cost the host? One rank of a model, its steps issued in turns in three ways:
//   recorded   each op, event and wait written down, as those of traced steps are
//   issued     one by one, and not written down, as untraced steps are
//   graph      by one launch (host.graph)
//   launch     the same of a rank whose tokens nobody writes: what is left is the launch
// On a GPU, or where there is none on no device: then it is the host's own work, without CUDA's calls, and a graph is none.
//
// SHARDBOOK_HOST_COST="MODEL SEQUENCES TURNS STEPS_A_TURN" asks for another model than the tutor. The first way is left out of models
// from 1 B parameters on: three of them may not fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/kernels/initialize.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

constexpr int warm = 6;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Way {
 public:
  Way(config::RunConfig config, const data::TokenSource* tokens, bool recorded, bool graph) : config_(std::move(config)) {
    config_.switches["host.graph"] = graph ? "on" : "off";
    if (device::cuda_device_count() > 0) device_ = std::move(device::make_cuda_device(0, {base::DType::bf16, base::DType::f32}, 0)).value();
    else device_ = std::make_unique<device::MetaDevice>(0);
    if (!recorded) device_->keep_timed_programs_alone();
    trainer_ = std::make_unique<train::Trainer>(config_, *device_, *backend_, mesh_of(config_), 0, tokens);
    run(warm);
    calls_us.clear();
    steps_us.clear();
  }
  // As in training: a step is issued, then the one before is awaited.
  void run(int count) {
    base::Nanoseconds before = 0;
    for (int at = 0; at < count; ++at, ++step_) {
      const base::Nanoseconds begin = program::host_now();
      trainer_->issue(step_, false);
      const base::Nanoseconds end = program::host_now();
      if (at > 0) trainer_->await(step_ - 1);
      const base::Nanoseconds done = program::host_now();
      if (at > 2) {
        calls_us.push_back(static_cast<double>(end - begin) / 1e3);
        steps_us.push_back(static_cast<double>(done - before) / 1e3);
      }
      before = done;
    }
    trainer_->await(step_ - 1);
  }
  std::vector<double> calls_us, steps_us;
  const char* device() const { return device::name_of(device_->kind()); }
  device::GraphInfo graph() const { return trainer_->graph(); }

 private:
  config::RunConfig config_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::Backend> backend_ = comm::make_meta_backend();   // alone, nobody is called
  std::unique_ptr<train::Trainer> trainer_;
  std::int64_t step_ = 0;
};

TEST(HostCost, OfAStepIsLessWhereItIsNotWrittenDownAndLeastAsAGraph) {
  std::string model = "grammar-tutor", sequences;
  int turns = 10, steps_a_turn = 30;
  if (const char* asked = std::getenv("SHARDBOOK_HOST_COST")) std::istringstream(asked) >> model >> sequences >> turns >> steps_a_turn;
  config::RunConfig config;
  ASSERT_TRUE(config::ask(config, "model", {model}));
  for (const auto& [option, value] : {std::pair{"tp", "1"}, std::pair{"fsdp", "1"}, std::pair{"device", "meta"}}) ASSERT_TRUE(config::ask(config, option, {value}));
  if (!sequences.empty()) {
    ASSERT_TRUE(config::ask(config, "sequences", {sequences}));
  }
  const base::Result<config::RunConfig> valid = config::validate(config, 1);
  ASSERT_TRUE(valid) << valid.error();
  const TestTokens tokens(valid.value().model.vocab, valid.value().model.sequence);
  const bool large = config::parameter_count(valid.value().model) >= 1'000'000'000;
  const char* names[] = {"recorded", "issued", "graph", "launch"};
  std::vector<std::unique_ptr<Way>> ways;
  for (int at = large ? 1 : 0; at < (large ? 3 : 4); ++at) ways.push_back(std::make_unique<Way>(valid.value(), at < 3 ? &tokens : nullptr, at == 0, at >= 2));
  for (int turn = 0; turn < turns; ++turn) {
    for (const auto& way : ways) way->run(steps_a_turn);
  }
  std::vector<double> calls_us;
  for (std::size_t at = 0; at < ways.size(); ++at) {
    const Way& way = *ways[at];
    calls_us.push_back(median(way.calls_us));
    std::printf("%s %s, %d sequences, %-8s  %8.1f us to issue a step, %8.1f us a step (medians of %zu)\n", way.device(), model.c_str(), valid.value().sequences, names[at + (large ? 1 : 0)],
                calls_us.back(), median(way.steps_us), way.calls_us.size());
  }
  std::printf("graph: %zu nodes, made in %.2f ms\n", ways.back()->graph().nodes, static_cast<double>(ways.back()->graph().made_in) / 1e6);
  if (model != "grammar-tutor") return;   // a larger one's host waits for room in the GPU's queue
  EXPECT_LT(calls_us[1], calls_us[0]);
  if (device::cuda_device_count() > 0) {
    EXPECT_LT(calls_us[2], calls_us[1]);
  }
}

// By how much is an op's period shorter in a graph than on a stream whose host is far ahead? Periods are differences of runs that
// differ by so many ops alone. (h200x8's graph_gap_ns.)
TEST(GraphGap, IsShorterThanAStreams) {
  if (device::cuda_device_count() == 0) GTEST_SKIP() << "needs 1 GPU, and there is none";
  const std::unique_ptr<device::Device> device = std::move(device::make_cuda_device(0, {base::DType::bf16, base::DType::f32}, 0)).value();
  device::Stream& stream = device->create_stream("compute");
  constexpr std::int64_t many = std::int64_t{1} << 28, few = 4096;   // the first takes a quarter of a millisecond
  const tensor::Tensor large = tensor::allocate(*device, {many}, base::DType::f32, program::MemoryKind::activation, "large");
  const tensor::Tensor small = tensor::allocate(*device, {few}, base::DType::f32, program::MemoryKind::activation, "small");
  device->seal();
  const auto issue = [&](int ops) {
    for (int op = 0; op < ops; ++op) kernels::fill(stream, small, static_cast<float>(op));
  };
  const auto took_ns = [&](auto run) {
    device->synchronize();
    const base::Nanoseconds begin = program::host_now();
    run();
    device->synchronize();
    return static_cast<double>(program::host_now() - begin);
  };
  constexpr int ops = 400, times = 9, replays = 10;
  const auto behind_a_long_one = [&](int count) {
    return took_ns([&] {
      for (int op = 0; op < 24; ++op) kernels::fill(stream, large, 0);   // the host is ahead of all that follows
      issue(count);
    });
  };
  device->begin_capture(stream);
  issue(ops);
  const device::Graph graph = device->end_capture();
  const auto launches = [&](int count) {
    return took_ns([&] {
      for (int launch = 0; launch < count; ++launch) device->replay(graph);
    });
  };
  std::vector<double> on_stream, in_graph;
  for (int time = 0; time < times; ++time) {
    on_stream.push_back((behind_a_long_one(2 * ops) - behind_a_long_one(ops)) / ops);
    in_graph.push_back((launches(2 * replays) - launches(replays)) / (replays * ops));
  }
  std::printf("an op's period: %.0f ns on a stream, %.0f ns in a graph (medians of %d)\n", median(on_stream), median(in_graph), times);
  EXPECT_LT(median(in_graph), median(on_stream));
}

}  // namespace
}  // namespace shardbook::tests
