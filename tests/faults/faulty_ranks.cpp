// Ranks that step through collectives under watch, one of which goes wrong: what experiments/faults times.
//
//   faulty_ranks DEVICE FAULT TIMEOUT_S [COLLECTIVE]
//
// DEVICE is cuda (a GPU a rank), cuda-shared (all on one GPU; gpu_ranks.hpp says how) or host. A step is an all-gather, a
// reduce-scatter, and the collective in which the fault is: all_reduce if none is named (where reduce_scatter is, the one before
// it is an all-reduce); of send, rank 0 sends and rank 1 receives. After 20 good steps rank 1 makes the fault and says so on
// stderr, as "FAULT" and the clock CLOCK_MONOTONIC in seconds; all go on for 20 steps more, if they can. The first cause comes
// on stdout behind "CAUSE". Exit code 0 where no rank failed.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "engine/comm/loopback/processes.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/comm/watch.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/host/shared_host_device.hpp"
#include "engine/device/host_function.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/spawn.hpp"
#include "tests/gpu/one_gpu.hpp"

namespace shardbook::tests {
namespace {

using base::DType;
using program::MemoryKind;
using program::OpKind;
using program::Phase;
using program::Scope;

constexpr int good_steps = 20, steps = 40, odd = 1;

struct Asked {
  bool on_gpus, shared;
  std::string fault;
  double timeout_s;
  OpKind collective;
  bool is(const char* name) const { return fault == name; }
};

struct Rank {
  world::World& world;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<comm::Backend> backend;
};

Rank equip(world::World& world, const Asked& asked) {
  if (!asked.on_gpus) {
    auto device = std::make_unique<device::SharedHostDevice>(device::Storage{DType::f32, DType::f32}, world.rank(), 0);
    auto backend = comm::make_process_backend(world, *device, {});
    return {world, std::move(device), std::move(backend)};
  }
  if (asked.shared) gpu_test::share_one_gpu(world.rank());
  auto device = device::make_cuda_device(asked.shared ? 0 : world.local_rank(), {DType::bf16, DType::f32}, world.rank());
  if (!device) throw base::Failure(device.error());
  auto backend = comm::make_nccl_backend(world, *device.value());
  return {world, std::move(device).value(), std::move(backend)};
}

void say_fault() { std::fprintf(stderr, "FAULT %.6f\n", 1e-9 * static_cast<double>(program::host_now())); }

void sleep_unless_failed(world::World& world, double seconds) {
  const base::Nanoseconds end = program::host_now() + static_cast<base::Nanoseconds>(1e9 * seconds);
  while (program::host_now() < end && !world.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  world.throw_if_failed();
}

// The stream goes on when the run has failed: until then all that is issued behind this waits, and its host does not.
void hold_up(device::Stream& stream, world::World& world) {
  struct Held {
    world::World* world;
  };
  const device::Lane lane(stream);
  lane.device().launch(lane, program::OpDesc("fault", program::OpKind::fill, DType::f32), Held{&world},
                       +[](const Held& held) { sleep_unless_failed(*held.world, 30); },
                       +[](const Held& held, const device::CudaQueue& queue) {
                         device::cuda::call_on_host([world = held.world] {
                           for (int i = 0; i < 6000 && !world->failed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                         }, queue);
                       });
}

// A group, and memory for any call of it.
struct Desk {
  comm::Communicator& group;
  device::Stream& stream;
  tensor::Tensor part, whole, other_whole, integers, all_integers;

  void call(OpKind kind, std::int64_t elements, DType type) const {
    const tensor::Tensor one = (type == DType::f32 ? part : integers).slice(0, {elements});
    const tensor::Tensor all = (type == DType::f32 ? whole : all_integers).slice(0, {elements * group.size()});
    const std::vector<std::int64_t> each(static_cast<std::size_t>(group.size()), elements);
    switch (kind) {
      case OpKind::all_reduce: return group.all_reduce(stream, one, one);
      case OpKind::all_gather: return group.all_gather(stream, one, all);
      case OpKind::reduce_scatter: return group.reduce_scatter(stream, all, one);
      case OpKind::broadcast: return group.broadcast(stream, one, one, 0);
      case OpKind::all_to_all: return group.all_to_all(stream, all, type == DType::f32 ? other_whole : all_integers, each, each);
      default:
        if (group.index() == 0) group.send(stream, one, 1);
        if (group.index() == 1) group.receive(stream, one, 0);
    }
  }
};

void train(world::World& world, const Asked& asked) {
  const Rank rank = equip(world, asked);
  const world::FailureHook stop = world.on_failure([&] { rank.backend->abort(); });
  device::Device& device = *rank.device;
  device.set_watch([&world] { world.throw_if_failed(); });
  mesh::Group everyone{"dp_shard", {}, world.rank(), 0};
  for (int r = 0; r < world.size(); ++r) everyone.ranks.push_back(r);
  const comm::Watch watch(world, rank.backend->flight(), std::chrono::milliseconds(static_cast<int>(1000 * asked.timeout_s)));
  const auto group = rank.backend->communicator(device, everyone);
  device::Stream& stream = device.create_stream("comm");
  const std::int64_t shard = 1 << 18;
  const auto make = [&](std::int64_t elements, DType type, const char* name) { return tensor::allocate(device, {elements}, type, MemoryKind::workspace, name); };
  const Desk desk{*group, stream, make(shard, DType::f32, "part"), make(shard * world.size(), DType::f32, "whole"), make(shard * world.size(), DType::f32, "other_whole"),
                  make(shard, DType::i32, "integers"), make(shard * world.size(), DType::i32, "all_integers")};
  const OpKind before = asked.collective == OpKind::reduce_scatter ? OpKind::all_reduce : OpKind::reduce_scatter;
  device.seal();
  world.barrier();

  for (int step = 0; step < steps; ++step) {
    const bool now = step == good_steps && world.rank() == odd;
    device.begin_step(step, false);
    {
      const Scope forward(device.recorder(), Phase::forward, 0);
      desk.call(OpKind::all_gather, shard, DType::f32);
    }
    if (now) {
      say_fault();
      if (asked.is("killed")) ::raise(SIGKILL);
      if (asked.is("stopped")) ::raise(SIGSTOP);
      if (asked.is("slow")) sleep_unless_failed(world, 0.6 * asked.timeout_s);
    }
    const auto first = [&] {
      const Scope reduction(device.recorder(), Phase::reduce, 0);
      desk.call(before, shard, DType::f32);
    };
    const auto second = [&] {
      const Scope update(device.recorder(), Phase::update);
      if (now && asked.is("missing")) {
        device.synchronize();   // what it has called ends
        sleep_unless_failed(world, 30);
      }
      if (now && asked.is("left_out")) return;
      desk.call(asked.collective, now && asked.is("size") ? shard / 2 : shard, now && asked.is("dtype") ? DType::i32 : DType::f32);
    };
    if (now && asked.is("behind")) hold_up(stream, world);
    if (now && asked.is("swapped")) second(), first();
    else first(), second();
    device.end_step();
    rank.backend->flight().step_issued(step);
    device.synchronize();
  }
  comm::compare_flights(world, rank.backend->flight());
}

// The exit code.
int start(int argc, char** argv) {
  if (argc < 4) {
    return std::fprintf(stderr, "faulty_ranks cuda|cuda-shared|host none|killed|stopped|missing|left_out|size|dtype|swapped|behind|slow TIMEOUT_S "
                                "[all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|send]\n"), 2;
  }
  const std::string named = argc > 4 ? argv[4] : "all_reduce";
  Asked asked{std::strncmp(argv[1], "cuda", 4) == 0, std::strcmp(argv[1], "cuda-shared") == 0, argv[2], std::atof(argv[3]), OpKind::fill};
  for (OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast, OpKind::all_to_all, OpKind::send}) {
    if (named == program::name_of(kind)) asked.collective = kind;
  }
  if (asked.collective == OpKind::fill) return std::fprintf(stderr, "faulty_ranks knows no collective %s\n", named.c_str()), 2;
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return std::fprintf(stderr, "%s\n", launch.error().c_str()), 2;
  if (launch.value().launcher == world::Launcher::shardbook) {
    const base::Status ran = world::run_process(launch.value(), [&](world::World& world) { train(world, asked); });
    std::fflush(stdout);
    std::_Exit(ran.ok() ? 0 : 1);
  }
  const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), {argv[1], argv[2], argv[3], named}, 2);
  if (!ended) return std::fprintf(stderr, "%s\n", ended.error().c_str()), 2;
  if (!ended.value().first_cause.empty()) std::printf("CAUSE %s\n", ended.value().first_cause.c_str());
  return ended.value().exit_code;
}

}  // namespace
}  // namespace shardbook::tests

int main(int argc, char** argv) { return shardbook::tests::start(argc, argv); }
