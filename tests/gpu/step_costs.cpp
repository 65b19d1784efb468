// What does a step cost the host, and what does tracing add to it? One rank of a model, its steps in turns in several ways:
//   recorded   each op, event and wait written down, as those of traced steps are
//   issued     one by one, and not written down, as untraced steps are
//   graph      by one launch (host.graph)
//   launch     the same of a rank whose tokens nobody writes: what is left is the launch
//   plain, traced   as training issues untraced and traced steps
// On a GPU, or where there is none on no device: then it is the host's own work, without CUDA's calls, and a graph is none.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/launch/speed.hpp"
#include "tests/gpu/cost_bench.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::cost {
namespace {

using tests::TestTokens;
constexpr int warm = 6;

// What a line of words asks for: "gpt-124m 8 6 20".
struct Asked {
  Asked(int count, char** words, int turns_else, int steps_else) : turns(count > 2 ? std::atoi(words[2]) : turns_else), steps(count > 3 ? std::atoi(words[3]) : steps_else) {
    if (count > 0) model = words[0];
    config::RunConfig open;
    ask(open, "model", model);
    for (const auto& [option, value] : {std::pair{"tp", "1"}, std::pair{"fsdp", "1"}, std::pair{"device", "meta"}}) ask(open, option, value);
    if (count > 1) ask(open, "sequences", words[1]);
    base::Result<config::RunConfig> valid = config::validate(open, 1);
    if (!valid) throw base::Failure(valid.error());
    config = std::move(valid).value();
    large = config::parameter_count(config.model) >= 1'000'000'000;
  }
  static void ask(config::RunConfig& config, const char* option, const std::string& value) {
    if (base::Status status = config::ask(config, option, {value}); !status) throw base::Failure(status.error());
  }
  std::string model = "grammar-tutor";
  int turns, steps;
  bool large = false;   // three of them may not fit
  config::RunConfig config;
};

class Way {
 public:
  Way(config::RunConfig config, const data::TokenSource* tokens, bool recorded, bool graph) : config_(std::move(config)) {
    config_.switches["host.graph"] = graph ? "on" : "off";
    if (device::cuda_device_count() > 0) device_ = std::move(device::make_cuda_device(0, {base::DType::bf16, base::DType::f32}, 0)).value();
    else device_ = std::make_unique<device::MetaDevice>(0);
    if (!recorded) device_->keep_timed_programs_alone();
    trainer_ = std::make_unique<train::Trainer>(config_, *device_, *backend_, tests::mesh_of(config_), 0, tokens);
    run(warm);
    calls_us.clear();
    steps_us.clear();
  }
  // As in training: a step is issued, then the one before is awaited. The first steps of a turn find an idle device.
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
  // As in training: each stands alone, and takes from its first call to the end of its last op.
  void run_traced(int count) {
    for (int at = 0; at < count; ++at, ++step_) {
      const base::Nanoseconds begin = program::host_now();
      const program::StepTimes& times = trainer_->issue(step_, true);
      const base::Nanoseconds read = program::host_now();
      ops = times.ran.size();
      if (at > 0) {
        traced_us.push_back(static_cast<double>(launch::took_alone(times)) / 1e3);
        with_reading_us.push_back(static_cast<double>(read - begin) / 1e3);
        base::Nanoseconds last = times.window.start;
        for (const program::TimeSpan& call : times.issued) last = std::max(last, call.end);
        issued_us.push_back(static_cast<double>(last - times.issued.front().start) / 1e3);
      }
      trainer_->await(step_);
    }
  }
  std::vector<double> calls_us, steps_us, traced_us, with_reading_us, issued_us;
  std::size_t ops = 0;
  const device::Device& device() const { return *device_; }
  device::GraphInfo graph() const { return trainer_->graph(); }

 private:
  config::RunConfig config_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<comm::Backend> backend_ = comm::make_meta_backend();   // alone, nobody is called
  std::unique_ptr<train::Trainer> trainer_;
  std::int64_t step_ = 0;
};

}  // namespace

void of_steps(int count, char** words) {
  const Asked asked(count, words, 10, 30);
  const TestTokens tokens(asked.config.model.vocab, asked.config.model.sequence);
  const char* names[] = {"recorded", "issued", "graph", "launch"};
  std::vector<std::unique_ptr<Way>> ways;
  for (int at = asked.large ? 1 : 0; at < (asked.large ? 3 : 4); ++at) ways.push_back(std::make_unique<Way>(asked.config, at < 3 ? &tokens : nullptr, at == 0, at >= 2));
  for (int turn = 0; turn < asked.turns; ++turn) {
    for (const auto& way : ways) way->run(asked.steps);
  }
  for (std::size_t at = 0; at < ways.size(); ++at) {
    const Way& way = *ways[at];
    std::printf("%s %s, %d sequences, %-8s  %8.1f us to issue a step, %8.1f us a step (medians of %zu)\n", device::name_of(way.device().kind()), asked.model.c_str(), asked.config.sequences,
                names[at + (asked.large ? 1 : 0)], median(way.calls_us), median(way.steps_us), way.calls_us.size());
  }
  std::printf("graph: %zu nodes, made in %.2f ms\n", ways.back()->graph().nodes, static_cast<double>(ways.back()->graph().made_in) / 1e6);
}

// All turns pooled: a GPU at its limit of power changes its pace by more than what is looked for.
void of_tracing(int count, char** words) {
  const Asked asked(count, words, 5, 8);
  if (device::cuda_device_count() == 0) throw base::Failure("trace needs a GPU: elsewhere no marks are set");
  const TestTokens tokens(asked.config.model.vocab, asked.config.model.sequence);
  Way way(asked.config, &tokens, false, false);
  for (int turn = 0; turn < asked.turns; ++turn) {
    way.run(asked.steps);
    way.run_traced(asked.steps);
  }
  const device::CudaTiming timing = device::cuda_timing(way.device());
  const double plain = median(way.steps_us), traced = median(way.traced_us);
  std::printf("%s, %d sequences, %zu ops, %zu without marks: plain %.1f us, traced %.1f us, %+.2f %% (medians of %zu and %zu); the host issues for %.1f us and has read all after %.1f us; a mark costs the host "
              "%lld ns and the stream %lld ns, a kernel begins %lld ns behind its mark\n",
              asked.model.c_str(), asked.config.sequences, way.ops, timing.ops_without_marks, plain, traced, 100 * (traced / plain - 1), way.steps_us.size(), way.traced_us.size(), median(way.issued_us),
              median(way.with_reading_us), static_cast<long long>(timing.host_cost_of_op), static_cast<long long>(timing.device_cost_of_op), static_cast<long long>(timing.lead_of_op));
}

// By how much is an op's period shorter in a graph than on a stream whose host is far ahead? Periods are differences of runs that
// differ by so many ops alone.
void of_gaps() {
  if (device::cuda_device_count() == 0) throw base::Failure("gap needs a GPU");
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
}

}  // namespace shardbook::cost
