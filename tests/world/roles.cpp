// tests/world: what a rank process does, by name.
#include "tests/world/roles.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <thread>

#include "engine/base/signals.hpp"
#include "engine/world/processes.hpp"

namespace shardbook::world::test {

namespace {

using namespace std::chrono_literals;

// Every kind of call; rank 0 prints who was there.
void gather(World& world) {
  world.barrier();
  const std::string id = world.broadcast(world.rank() == 1 ? "from one" : "ignored", 1);
  SHARDBOOK_CHECK_EQ(id, "from one", "broadcast");
  std::string line = "gathered";
  const std::string mine = base::text(world.rank(), "@", world.node(), ".", world.local_rank());
  for (const std::string& other : world.all_gather(mine)) line += " " + other;
  if (world.rank() == 0) std::printf("%s\n", line.c_str());
  std::fprintf(stderr, "present\n");
}

void throw_in_last(World& world) {
  world.barrier();
  if (world.rank() == world.size() - 1) throw base::Failure("layer 7 overflowed");
  world.barrier();
}

void signal_itself(World& world, base::Rank rank, int signal) {
  world.barrier();
  if (world.rank() == rank) raise(signal);
  world.barrier();
}

// The others sleep where no failure can wake them.
void throw_while_others_are_stuck(World& world) {
  world.barrier();
  if (world.rank() == world.size() - 1) throw base::Failure("nobody hears this");
  std::this_thread::sleep_for(10min);
}

// Steps of very different lengths until told to stop; then all must have the same last step.
void step_until_stopped(World& world) {
  base::SignalGuard guard;
  world.barrier();
  if (world.rank() == 0) std::printf("stepping\n"), std::fflush(stdout);
  std::int64_t step = 0;
  while (!world.step_ended(step)) {
    std::this_thread::sleep_for(world.rank() == 0 ? 1ms : 7ms);
    if (step % 2 == 0) world.barrier();
    SHARDBOOK_CHECK(++step < 100000, "nobody stopped the run");
  }
  for (const std::string& other : world.all_gather(std::to_string(step))) {
    SHARDBOOK_CHECK_EQ(other, std::to_string(step), "last steps of two ranks");
  }
  if (world.rank() == 0) std::printf("all stopped after the same step\n");
}

// A line a step, whether anybody reads it or not; its process ends with the code of a rank that was asked to stop.
void chatter_until_stopped(World& world) {
  base::SignalGuard guard;
  world.barrier();   // a rank that has no guard yet would be ended by the first signal
  std::int64_t step = 0;
  while (!world.step_ended(step)) {
    if (world.rank() == 0) std::printf("step %lld\n", static_cast<long long>(step)), std::fflush(stdout);
    std::this_thread::sleep_for(5ms);
    SHARDBOOK_CHECK(++step < 100000, "nobody stopped the run");
  }
}

// More than pipes hold, again and again.
void flood_until_stopped(World& world) {
  base::SignalGuard guard;
  world.barrier();
  const std::string line(1 << 16, '.');
  std::int64_t step = 0;
  while (!world.step_ended(step)) {
    if (world.rank() == 0) std::printf("%s\n", line.c_str()), std::fflush(stdout);
    std::this_thread::sleep_for(1ms);
    SHARDBOOK_CHECK(++step < 1000000, "nobody stopped the run");
  }
}

// The last rank is killed while rank 0 writes for longer than the parent's patience.
void hold_while_another_dies(World& world) {
  world.barrier();
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(300ms), raise(SIGKILL);
  hold_parent();
  std::this_thread::sleep_for(1500ms);
  std::printf("all is written\n");
}

const std::map<std::string, RankMain>& roles() {
  static const std::map<std::string, RankMain> all{
      {"gather", gather},
      {"throw", throw_in_last},
      {"kill", [](World& world) { signal_itself(world, world.size() - 1, SIGKILL); }},
      {"kill_first", [](World& world) { signal_itself(world, 0, SIGKILL); }},
      {"freeze", [](World& world) { signal_itself(world, world.size() - 1, SIGSTOP); }},
      {"stuck", throw_while_others_are_stuck},
      {"steps", step_until_stopped},
      {"chatter", chatter_until_stopped},
      {"flood", flood_until_stopped},
      {"hold", hold_while_another_dies},
  };
  return all;
}

}  // namespace

int run_role(const std::string& role) {
  const auto launch = from_environment(process_environment());
  const auto options = process_options(process_environment());
  std::string problem;
  if (!launch.ok()) problem = launch.error();
  if (!options.ok()) problem = options.error();
  if (problem.empty()) {
    // This one never arrives.
    if (role == "absent" && launch.value().place.rank == 1) return 0;
    const auto found = roles().find(role == "absent" ? "gather" : role);
    const auto status = run_process(launch.value(), found->second, options.value());
    // Not before the ranks have taken leave of each other: rank 0 serves the others' connections.
    if (status.ok()) return role == "chatter" || role == "flood" ? 3 : 0;
    problem = status.error();
  }
  std::fprintf(stderr, "%s\n", problem.c_str());
  return 1;
}

}  // namespace shardbook::world::test
