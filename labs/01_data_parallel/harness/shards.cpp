// What checks lab 01b. Not needed to solve it.
//
// The end of a step of gpt-124m over eight ranks and what follows, as four ops: forward_and_backward reads all parameters
// and writes all gradients, the learner's first function, an update of this rank's shard, the learner's second. On four
// host ranks the ops have numbers, which are compared with the same steps on one.
#include <cmath>
#include <cstdio>
#include <memory>

#include "engine/check/races.hpp"
#include "engine/comm/loopback/loopback.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/config/config.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/simulate/replay.hpp"
#include "engine/world/threads.hpp"
#include "labs/01_data_parallel/lab.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab01 {

namespace {

using base::text;
using labs::line;
using labs::ms;
using program::MemoryKind;
using program::Op;
using program::OpDesc;
using program::OpKind;

constexpr const char* page = "01_data_parallel#01b";
constexpr int ranks = 8, host_ranks = 4, host_steps = 3;
constexpr std::int64_t host_elements = 1024;
constexpr double most_step = 1.02;

struct Work {
  const float* in;
  float* out;
  std::int64_t elements, first;
  int rank;
};
void no_gpu(const Work&, const device::CudaQueue&) {}

// A gradient that depends on the parameter, the rank and the place.
float gradient_of(float parameter, std::int64_t at, int rank) { return 0.125f * parameter + static_cast<float>((at * 7 + rank * 3) % 11) - 5; }
float updated(float parameter, float gradient) { return parameter - 0.25f * gradient; }

void host_backward(const Work& work) {
  for (std::int64_t at = 0; at < work.elements; ++at) work.out[at] = gradient_of(work.in[at], at, work.rank);
}
void host_update(const Work& work) {
  for (std::int64_t at = 0; at < work.elements; ++at) work.out[at] = updated(work.out[at], work.in[at]);
}

// One rank: what it owns, and a step.
class Rank {
 public:
  Rank(device::Device& device, comm::Backend& backend, int rank, int size, std::int64_t elements)
      : device_(device), rank_(rank), compute_(device.create_stream("compute")), comm_(device.create_stream("comm", device::Priority::high)) {
    mesh::Group group{"dp_replicate", {}, rank, 0};
    for (int other = 0; other < size; ++other) group.ranks.push_back(other);
    group_ = backend.communicator(device, group);
    gradients_ = tensor::allocate(device, {elements}, base::DType::f32, MemoryKind::gradient, "s.gradients");
    parameters_ = tensor::allocate(device, {elements}, base::DType::bf16, MemoryKind::parameter, "s.parameters");
    const std::int64_t each = elements / size;
    sharded_ = std::make_unique<Sharded>(Sharded{device, compute_, comm_, *group_, gradients_, gradients_.slice(rank * each, {each}), parameters_, parameters_.slice(rank * each, {each}),
                                                 device.create_event("s.produced"), device.create_event("s.arrived")});
    device.seal();
  }
  void step(int number) {
    device_.begin_step(number, false);
    const Sharded& s = *sharded_;
    launch("forward_and_backward", program::Phase::backward, parameters_, gradients_, host_backward, false);
    {
      const program::Scope scope(device_.recorder(), program::Phase::reduce);
      backward_is_over(*sharded_);
    }
    launch("update", program::Phase::update, s.gradient_shard, s.parameter_shard, host_update, true);
    const program::Scope scope(device_.recorder(), program::Phase::update);
    after_update(*sharded_);
    device_.end_step();
  }
  const Tensor& parameters() const { return parameters_; }

 private:
  void launch(const char* name, program::Phase phase, const Tensor& in, const Tensor& out, void (*host)(const Work&), bool in_place) {
    const program::Scope scope(device_.recorder(), phase);
    // The update also moves the master and both moments, f32 each: read and written
    const base::Bytes more = in_place ? 24 * in.elements() : 0;
    OpDesc desc(name, OpKind::pointwise, base::DType::f32);
    desc.reads(in.use(), in.nominal_bytes() + more).writes(out.use());
    if (in_place) desc.reads(out.use(), 0);
    device_.launch(device::Lane(compute_), desc, Work{static_cast<const float*>(in.data), static_cast<float*>(out.data), in.elements(), 0, rank_}, host, &no_gpu);
  }

  device::Device& device_;
  int rank_;
  device::Stream& compute_;
  device::Stream& comm_;
  std::unique_ptr<comm::Communicator> group_;
  Tensor gradients_, parameters_;
  std::unique_ptr<Sharded> sharded_;
};

// The largest error of any parameter after some steps on host ranks, or what stopped them.
struct Tried {
  std::string error;
  double worst = 0;
};
Tried try_on_host(std::uint64_t drain_seed) {
  std::vector<float> right(host_elements, 0);
  for (int step = 0; step < host_steps; ++step) {
    for (std::int64_t at = 0; at < host_elements; ++at) {
      float sum = 0;
      for (int rank = 0; rank < host_ranks; ++rank) sum += gradient_of(right[static_cast<std::size_t>(at)], at, rank);
      right[static_cast<std::size_t>(at)] = updated(right[static_cast<std::size_t>(at)], sum);
    }
  }
  Tried tried;
  comm::LoopbackHub hub;
  std::vector<std::unique_ptr<device::HostDevice>> devices(host_ranks);
  const base::Status ran = world::run_threads(host_ranks, [&](world::World& world) {
    auto& device = devices[static_cast<std::size_t>(world.rank())];
    device = std::make_unique<device::HostDevice>(device::Storage{}, world.rank(), drain_seed);
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, *device);
    device->set_watch([&world] { world.throw_if_failed(); });
    Rank rank(*device, *backend, world.rank(), host_ranks, host_elements);
    for (int step = 0; step < host_steps; ++step) rank.step(step);
    device->synchronize();
    if (world.rank() != 0) return;
    for (std::int64_t at = 0; at < host_elements; ++at) tried.worst = std::max(tried.worst, static_cast<double>(std::abs(static_cast<const float*>(rank.parameters().data)[at] - right[static_cast<std::size_t>(at)])));
  });
  if (!ran) tried.error = ran.error();
  return tried;
}

labs::Finding about(const char* rule, const Op& op, std::string message) { return {rule, std::move(message), 0, -1, program::name_of(op.key.phase), op.desc.name, op.where, page}; }

std::string kind_text(const Op& op) { return op.desc.kind == OpKind::all_gather ? "all-gather" : op.desc.kind == OpKind::reduce_scatter ? "reduce-scatter" : op.desc.kind == OpKind::all_reduce ? "all-reduce" : op.desc.name; }

bool touches(const program::Catalogue& catalogue, const Op& op, std::string_view buffer) {
  for (int use = 0; use < op.desc.uses.size(); ++use) {
    if (catalogue.buffers[op.desc.uses[use].buffer].name == buffer) return true;
  }
  return false;
}

// Are the calls those that are needed, in the right places?
bool calls_are_right(const program::Program& step, double step_ns, labs::Verdict& verdict) {
  const Op *sum = nullptr, *gather = nullptr;
  bool update_was = false;
  for (const Op& op : step.ops) {
    update_was = update_was || std::string_view(op.desc.name) == "update";
    if (op.desc.kind == OpKind::all_gather && !update_was) {
      verdict.fail(about("order", op, text("rank 0: the all-gather (", line(op.where), ") gathers s.parameter_shard before the update has written it; gather in after_update")));
      return false;
    }
    if (op.desc.kind == OpKind::all_gather) gather = &op;
    if (op.desc.kind == OpKind::reduce_scatter || op.desc.kind == OpKind::all_reduce) sum = sum == nullptr ? &op : sum;
  }
  if (sum == nullptr) {
    verdict.fail({"sums", text("rank 0, reduce: no collective sums the gradients, so each GPU updates its eighth by what it saw alone; s.group.reduce_scatter"), 0, -1, "reduce", "reduce_scatter", {}, page});
    return false;
  }
  if (gather == nullptr) {
    verdict.fail({"gather", text("rank 0, update: no all-gather follows the update, so ", ranks - 1, " of ", ranks, " parts of s.parameters stay as they were, and the next forward reads them; s.group.all_gather in after_update"), 0, -1, "update", "all_gather", sum->where, page});
    return false;
  }
  if (sum->desc.kind == OpKind::all_reduce) {
    verdict.fail(about("bytes", *sum, text("rank 0, reduce: the all-reduce (", line(sum->where), ") leaves the whole sum on every GPU, and only an eighth of it is read: it moves twice the bytes of a reduce-scatter, in a step of ", ms(step_ns))));
    return false;
  }
  return true;
}

bool orders(const program::Catalogue& catalogue, const program::Program& step, const std::string& numbers, labs::Verdict& verdict) {
  for (const check::Race& race : check::races(catalogue, {&step, &step})) {
    if (race.follows) continue;
    const Op& first = step.ops[race.first.op];
    const Op& second = step.ops[race.second.op];
    const bool sum_is_second = program::class_of(second.desc.kind) == program::OpClass::communication;
    const Op& call = sum_is_second ? second : first;
    const bool of_gradients = catalogue.buffers[race.buffer].name == "s.gradients";
    const char* shard = of_gradients ? "s.gradient_shard" : "s.parameter_shard";
    const std::string what = sum_is_second ? text("the ", kind_text(call), " (", line(call.where), ") may read ", call.desc.kind == OpKind::all_gather ? shard : "s.gradients", " while ", first.desc.name, " on compute still writes it; record s.produced on s.compute, and let s.comm wait for it")
                                           : text(second.desc.name, race.second.step > race.first.step ? " of the next step" : "", " may ", race.second_writes ? "write " : "read ", of_gradients ? shard : "s.parameters", " while the ", kind_text(call), " (", line(call.where), ") still ", race.first_writes ? "writes" : "reads", " it; s.compute must wait for s.arrived");
    verdict.fail(about("race", call, text("rank 0, ", program::name_of(call.key.phase), ": ", what, "; ", numbers)));
    return false;
  }
  return true;
}

void judge(const labs::Request&, labs::Verdict& verdict) {
  config::RunConfig config;
  (void)config::ask(config, "model", {"gpt-124m"});
  const std::int64_t grain = ranks * 128, elements = (config::parameter_count(config.model) + grain - 1) / grain * grain;
  std::vector<std::unique_ptr<device::MetaDevice>> devices;
  std::vector<std::unique_ptr<comm::Backend>> backends;
  std::vector<std::unique_ptr<Rank>> all;
  std::vector<simulate::RankProgram> programs;
  for (int rank = 0; rank < ranks; ++rank) {
    devices.push_back(std::make_unique<device::MetaDevice>(rank));
    backends.push_back(comm::make_meta_backend());
    all.push_back(std::make_unique<Rank>(*devices.back(), *backends.back(), rank, ranks, elements));
    try {
      all.back()->step(0);
    } catch (const base::Failure& failure) {
      // Sizes that do not fit are found when the call is issued; its own words are of the engine's line
      if (std::string_view(failure.what()).find("shard.elements()") == std::string_view::npos) throw;
      return verdict.fail({"sizes", "a call has its whole tensor and its shard the other way round: reduce_scatter(stream, whole, shard) sums the first into the second, all_gather(stream, shard, whole) joins the first in the second", -1, -1, "", "", {}, page});
    }
    programs.push_back({rank, &devices.back()->recorder().catalogue(), devices.back()->recorder().programs()[0].get()});
  }
  const program::Program& step = *programs[0].program;
  const simulate::CostModel model(simulate::find_profile("h200x8").value());
  const base::Result<simulate::Resolved> resolved = simulate::resolve(programs, model, 3);
  if (!resolved) return verdict.fail({"hang", text("the eight ranks do not come to an end: ", resolved.error()), 0, -1, "", "", {}, page});
  const double step_ns = static_cast<double>(resolved.value().step_ns);

  // What the two calls take alone, by the profile
  const auto& curves = model.profile().collectives;
  const double reduce = simulate::at(curves.at(OpKind::reduce_scatter).at(ranks), 4 * elements), gather = simulate::at(curves.at(OpKind::all_gather).at(ranks), 2 * elements);
  const double sum_all = simulate::at(curves.at(OpKind::all_reduce).at(ranks), 4 * elements);
  verdict.figure("step_ms", step_ns / 1e6);
  verdict.figure("reduce_scatter_ms", reduce / 1e6);
  verdict.figure("all_gather_ms", gather / 1e6);
  verdict.figure("all_reduce_ms", sum_all / 1e6);
  verdict.figure("reduce_scatter_and_all_gather_ms", (reduce + gather) / 1e6);
  verdict.figure("saved_ms", (sum_all - reduce - gather) / 1e6);
  if (!calls_are_right(step, step_ns, verdict)) return;

  std::string numbers = "the numbers came out right, by luck";
  bool right = true;
  for (std::uint64_t drain : {0, 3, 7}) {
    const Tried tried = try_on_host(drain);
    if (tried.error.empty() && tried.worst < 1e-2) continue;
    char shown[96];
    std::snprintf(shown, sizeof shown, "after %d steps on four ranks a parameter is %.3g off", host_steps, tried.worst);
    numbers = tried.error.empty() ? text(shown, ", drain seed ", drain) : tried.error;
    right = false;
    break;
  }
  if (!orders(*programs[0].catalogue, step, numbers, verdict)) return;
  if (!right) {
    for (const Op& op : step.ops) {
      const bool gathers = op.desc.kind == OpKind::all_gather;
      if ((!gathers && op.desc.kind != OpKind::reduce_scatter) || touches(*programs[0].catalogue, op, gathers ? "s.parameters" : "s.gradients")) continue;
      return verdict.fail(about("tensor", op, text("rank 0, ", program::name_of(op.key.phase), ": the ", kind_text(op), " (", line(op.where), ") is of other tensors than ", gathers ? "s.parameter_shard and s.parameters, which the next forward reads" : "s.gradients and s.gradient_shard, which the update reads", "; ", numbers)));
    }
    return verdict.fail({"numbers", text("rank 0: ", numbers, "; is each of the two calls made once, of the whole tensor?"), 0, -1, "", "", {}, page});
  }

  double kernels = 0;
  for (program::OpIndex op = 0; op < step.ops.size(); ++op) {
    if (program::class_of(step.ops[op].desc.kind) != program::OpClass::compute) continue;
    const program::TimeSpan& ran = resolved.value().ranks[0].steps.back().ran[op];
    kernels += static_cast<double>(ran.end - ran.start);
  }
  verdict.figure("kernels_ms", kernels / 1e6);
  const double best = kernels + reduce + gather;
  if (step_ns > most_step * best + 20e3) verdict.fail({"step", text("rank 0: the end of the step takes ", ms(step_ns), ", and one reduce-scatter and one all-gather beside nothing give ", ms(best), ": each byte of gradient once, and parameters in bf16"), 0, -1, "", "", {}, page});
}

}  // namespace
}  // namespace shardbook::lab01

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab01::judge); }
