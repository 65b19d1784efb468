// simulate/plan: what does each stream of one program do, one item after the other?
//
// A program is a list in the order of the host; the simulation wants a list for each stream. An event and its
// generation become a *slot*, counted through the step. A wait for generation 0 awaits what an earlier step
// recorded last. A read-back is a record on its stream that the host awaits.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/program.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

inline constexpr std::uint32_t none = ~0u;

enum class ItemKind : std::uint8_t { op, record, wait, wait_earlier };
struct Item {
  ItemKind kind = ItemKind::op;
  std::uint32_t command = 0;
  std::uint32_t target = 0;  // op; slot of a record or wait; event of wait_earlier
};

// Where the host waits: before it goes on behind `command`.
struct HostWait {
  std::uint32_t command = 0;
  bool earlier = false;      // target is an event of an earlier step
  std::uint32_t target = 0;  // slot or event
};

struct PlannedCollective {
  program::OpIndex op = 0;
  std::uint32_t place_in_group = 0;  // how many of the same communicator come before it in the step
};

struct Plan {
  std::vector<std::vector<Item>> streams;
  std::vector<HostWait> host_waits;
  std::uint32_t slots = 0;
  std::vector<program::StreamId> slot_stream;     // which stream records it
  std::vector<std::uint32_t> last_slot;           // by event: the last of the step, or none
  std::vector<PlannedCollective> collectives;     // in the order of their issue
  std::vector<std::uint32_t> collective_of_op;    // index into collectives, or none
  std::vector<std::uint32_t> group_collectives;   // by group: how many the step has
};

// The waits that `options` name are left out.
Plan plan_of(const program::Program& program, const program::Catalogue& catalogue, const ResolveOptions& options);

}  // namespace shardbook::simulate
