// cli/calibrate: how fast is this node?
//
// Runs what simulate::plan lists through the calls that training makes (kernels, comm, device), so that what a launch
// costs the host is in it, and fills in the times. No training step is among them: a profile that was fitted to the
// runs that it is judged on would prove nothing.
//
// Matmuls, kernels and collectives are periods (stopwatch.hpp). Overlap is read from the marks of timed steps, whose
// cost is small beside ops of milliseconds. Groups of k ranks run side by side, as tensor-parallel groups do.
#pragma once

#include <functional>
#include <string>

#include "engine/comm/comm.hpp"
#include "engine/simulate/calibrate.hpp"
#include "engine/world/world.hpp"

namespace shardbook::cli {

// Fills in the times of `plan`, to which it adds the kernels that it knows by name, and what issuing costs. What this
// world cannot run (groups that do not divide it) is left out. Every rank calls it alike and gets the same result;
// `say` is called by rank 0 with what is measured next. REQUIRES: `device` is not sealed.
simulate::Benchmarks measure(world::World& world, device::Device& device, comm::Backend& backend, simulate::Benchmarks plan,
                             const std::function<void(const std::string&)>& say);

// The same of a plan's collectives and overlaps alone.
simulate::Benchmarks measure_collectives(world::World& world, device::Device& device, comm::Backend& backend, simulate::Benchmarks plan,
                                         const std::function<void(const std::string&)>& say);

}  // namespace shardbook::cli
