// The set-up half of ShardedParameters: layouts, what a plan must know of them, memory, first values.
#include <algorithm>
#include <mutex>
#include <set>

#include "engine/fsdp/parameters.hpp"
#include "engine/tensor/lot.hpp"

namespace shardbook::fsdp {

using program::MemoryKind;

namespace {

// Whether gradients of ends, which have buffers of their own, are never whole at once in a finished plan.
bool take_turns(const plan::Plan& plan, const std::vector<plan::Unit>& units) {
  int whole = -1;
  for (const plan::Action& action : plan.actions) {
    if (action.kind != plan::Kind::backward && action.kind != plan::Kind::reduce) continue;
    const plan::Unit& unit = units[static_cast<std::size_t>(action.unit)];
    if (unit.shares_gradient) continue;
    if (action.kind == plan::Kind::reduce) {
      if (whole == action.unit && plan::empties(unit, action.axis)) whole = -1;
      continue;
    }
    if (whole >= 0 && whole != action.unit) return false;
    whole = action.unit;
  }
  return true;
}

// A part's name is a literal, for programs outlive their rank; this one stays as long.
const char* part_of(const model::Unit& unit) {
  if (unit.blocks == 1) return "fsdp_unit";
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(base::text("fsdp_unit ", unit.layer, "-", unit.layer + unit.blocks - 1)).first->c_str();
}

}  // namespace

ShardedParameters::ShardedParameters(model::Model& model, device::Device& device, device::Stream& compute,
                                     device::Stream& stream, comm::Communicator& group, const StoreConfig& config, comm::Communicator* near, const HostStreams& host)
    : device_(device), compute_(compute), stream_(stream), group_(group), near_(near), config_(config),
      updated_(device.create_event("fsdp.updated")) {
  // Units of blocks use each other's memory in turn; embedding and head, needed at both ends, have their own.
  std::set<std::int64_t> sizes;
  std::size_t states = 0;
  for (model::Unit* unit : model.units()) {
    ShardedUnit& sharded = units_.emplace_back();
    sharded.unit = unit;
    lay_out(sharded, group_.size(), config_.each_parameter && !alone(), states, placement_over_data());
    states += sharded.flats.size();
    sharded.of_block = unit->alike;
    sharded.part = part_of(*unit);
    sharded.resident = !sharded.of_block || !config_.reshard || alone();
    if (sharded.of_block) sizes.insert(sharded.unit->blocks);
    if (!by_unit()) continue;
    sharded.updated = device.create_event(unit->name + ".fsdp.updated");
    sharded.sum_there = device.create_event(unit->name + ".gradient.summed");
  }
  number_shards();
  if (!alone()) group_.prepare_beside_nothing();
  if (on_host()) host_ = std::make_unique<HostShards>(device, host, shards_);
  // Where all are alike, the gaps between parameters hold zeros because no user of the memory writes there
  if (sizes.size() < 2 || gradient_in_place()) return;
  for (ShardedUnit& unit : units_) {
    if (unit.of_block) unit.gaps = gaps_of(unit);
  }
}

// Where each sum is waited for, units come as backward leaves them.
void ShardedParameters::number_shards() {
  for (std::size_t number = 0; number < units_.size(); ++number) {
    for (const Flat& flat : units_[number].flats) {
      unit_of_shard_.push_back(static_cast<int>(number));
      order_of_sums_.push_back(flat.state);
    }
  }
  if (!by_unit()) return;
  std::reverse(order_of_sums_.begin(), order_of_sums_.end());
}

// Each rank sees other tokens, so each has a summand. Alone with several micro-batches, "reduce" adds them up: an axis of
// one rank.
shard::Placement ShardedParameters::placement_over_data() const {
  shard::Placement data;
  if (!gradient_in_place()) data.push_back(shard::sharded_over("dp_shard"));
  if (config_.replicas > 1) data.push_back(shard::summed_over("dp_replicate"));
  return data;
}

std::vector<plan::Unit> ShardedParameters::units() const {
  std::vector<plan::Unit> all;
  for (const ShardedUnit& unit : units_) {
    plan::Unit known;
    known.name = unit.unit->name;
    known.sharded = !alone();
    known.resident = unit.resident;
    known.on_host = on_host();
    known.shares_gathered = !unit.resident;
    known.shares_gradient = unit.of_block && !gradient_in_place();
    known.gathered = unit.padded() * base::size_of(config_.parameter);
    known.gradient = unit.padded() * base::size_of(base::DType::f32);
    for (std::string_view axis : shard::summed_axes(unit.placements())) known.sums.emplace_back(axis);
    if (near_ != nullptr && !unit.resident) known.kept = known.gathered / near_->size();
    all.push_back(std::move(known));
  }
  return all;
}

void ShardedParameters::set_up(const plan::Plan& plan, const plan::Slots& slots, std::uint64_t seed) {
  allocate_shards(seed);
  // Is any unit reduced more than once a step? And which reductions have blocks beside them?
  const std::vector<plan::Unit> known = units();
  std::vector<int> reductions(known.size());
  int so_far = 0;
  for (const plan::Action& action : plan.actions) {
    if (plan::computes(action.kind) && units_[static_cast<std::size_t>(action.unit)].of_block) beside_blocks_ = so_far;
    if (action.kind != plan::Kind::reduce) continue;
    const auto unit = static_cast<std::size_t>(action.unit);
    if (!plan::empties(known[unit], action.axis)) continue;
    ++reductions[unit];
    ++so_far;
  }
  for (std::size_t unit = 0; unit < units_.size(); ++unit) units_[unit].once = reductions[unit] == 1;
  carried_ = plan::for_the_next_step(plan);
  for (const plan::Action& action : carried_) unit(action.unit).carried = true;
  std::int64_t largest_shard = 0;
  for (const ShardedUnit& unit : units_) {
    for (const Flat& flat : unit.flats) largest_shard = std::max(largest_shard, flat.layout->shard_elements());
  }
  const bool several = std::any_of(reductions.begin(), reductions.end(), [](int count) { return count > 1; });
  // What lies in host memory is added up there
  if (rounds() || (several && !gradient_in_place() && !on_host())) {
    staging_ = tensor::allocate(device_, {largest_shard}, rounds() ? config_.reduce : base::DType::f32, MemoryKind::gradient, "fsdp.gradient_staging");
  }
  // One is enough: what writes it and what reads it is on one stream
  if (rounds()) rounded_ = tensor::allocate(device_, {largest_shard * group_.size()}, config_.reduce, MemoryKind::gradient, "fsdp.gradient_rounded");
  make_slots(slots, config_.lends && !alone() && take_turns(plan, known));
  if (on_host()) host_->set_up(slots, units_, config_.parameter, several);
}

void ShardedParameters::allocate_shards(std::uint64_t seed) {
  // Gradients that are summed over replicas lie end to end, so that a bucket of units is one tensor
  if (config_.replicas > 1) {
    std::int64_t all = 0;
    for (const ShardedUnit& unit : units_) all += unit.shard_elements();
    gradients_ = tensor::allocate(device_, {all}, base::DType::f32, MemoryKind::gradient, "gradients");
  }
  // Each rank keeps its shard of every unit
  std::int64_t begin = 0;
  for (const ShardedUnit& unit : units_) {
    for (const Flat& flat : unit.flats) {
      const base::Shape shape{flat.layout->shard_elements()};
      const std::string& name = flat.layout->name();
      optimizer::ShardState& state = shards_.emplace_back();
      state.layout = flat.layout.get();
      state.flat = flat.layout->shard(group_.index());
      // A kernel that draws into host memory writes through the bus: once, at set-up
      const auto make = [&](optimizer::OnHost from, base::DType nominal, MemoryKind kind, const char* what) {
        return config_.on_host >= from ? optimizer::on_host(device_, shape[0], nominal, kind, name + what) : tensor::allocate(device_, shape, nominal, kind, name + what);
      };
      using optimizer::OnHost;
      state.on_host = config_.on_host;
      state.master = make(OnHost::states, base::DType::f32, MemoryKind::optimizer, ".master");
      if (!lends(unit)) state.gradient = config_.replicas > 1 ? gradients_.slice(begin, shape) : make(OnHost::everything, base::DType::f32, MemoryKind::gradient, ".gradient_shard");
      if (keeps_copy()) state.parameter = make(OnHost::everything, config_.parameter, MemoryKind::parameter, ".parameter_shard");
      if (on_host()) state.updated = device_.create_event(name + ".updated");
      initialize(compute_, unit, state, seed);
      begin += shape[0];
    }
  }
}

std::vector<base::Bytes> ShardedParameters::wants_lots() const {
  std::vector<base::Bytes> wanted;
  for (const ShardedUnit& unit : units_) {
    if (lends(unit)) wanted.push_back(unit.shard_elements() * base::size_of(base::DType::f32));
  }
  return wanted;
}

//@ fsdp.lend: The shard of a block's gradient is made where that lay which its backward has just read.
void ShardedParameters::lend(const std::vector<Tensor>& lots) {
  std::size_t next = 0;
  for (const ShardedUnit& unit : units_) {
    if (!lends(unit)) continue;
    const Tensor shard = tensor::seen_as(device_, lots[next++], base::DType::f32);
    for (const Flat& flat : unit.flats) shards_[flat.state].gradient = flat.part_in(shard, group_.size());
  }
}
//@end

GatherSlot ShardedParameters::make_gather_slot(std::int64_t elements, const std::string& name) {
  GatherSlot slot;
  slot.full = tensor::allocate(device_, {elements}, config_.parameter, MemoryKind::gathered, name);
  slot.gathered = device_.create_event(name + ".gathered");
  slot.released = device_.create_event(name + ".released");
  return slot;
}

GradientSlot ShardedParameters::make_gradient_slot(std::int64_t elements, const std::string& name) {
  GradientSlot slot;
  slot.full = tensor::allocate(device_, {elements}, base::DType::f32, MemoryKind::gradient, name);
  slot.complete = device_.create_event(name + ".complete");
  slot.reduced = device_.create_event(name + ".reduced");
  return slot;
}

//@ fsdp.slots: As many shared slots as the plan needs; what is resident, and what is no block, has its own.
void ShardedParameters::make_slots(const plan::Slots& slots, bool ends_in_turn) {
  // Shared slots: blocks use them in turn
  std::int64_t largest = 0;
  for (const ShardedUnit& unit : units_) {
    if (unit.of_block) largest = std::max(largest, unit.padded());
  }
  for (int slot = 0; slot < slots.gathered; ++slot) gather_slots_.push_back(make_gather_slot(largest, "fsdp.gathered." + std::to_string(slot)));
  for (int slot = 0; slot < slots.gradient; ++slot) gradient_slots_.push_back(make_gradient_slot(largest, "fsdp.gradient." + std::to_string(slot)));

  // Own slots; or one for both ends
  std::shared_ptr<GradientSlot> in_turn;
  std::int64_t largest_end = 0;
  for (const ShardedUnit& unit : units_) {
    if (!unit.of_block) largest_end = std::max(largest_end, unit.padded());
  }
  if (ends_in_turn) in_turn = std::make_shared<GradientSlot>(make_gradient_slot(largest_end, "ends.gradient"));
  for (ShardedUnit& unit : units_) {
    const optimizer::ShardState& state = shards_[unit.flats.front().state];   // of a rank alone, the only one
    if (alone()) {
      unit.own_slot = std::make_unique<GatherSlot>();
      unit.own_slot->full = state.parameter;
    } else if (unit.resident) {
      unit.own_slot = std::make_unique<GatherSlot>(make_gather_slot(unit.padded(), unit.unit->name + ".gathered"));
    }
    if (near_ != nullptr && !unit.resident) {
      unit.kept = tensor::allocate(device_, {unit.padded() / near_->size()}, config_.parameter, MemoryKind::gathered, unit.unit->name + ".kept");
      unit.kept_there = device_.create_event(unit.unit->name + ".kept");
    }
    if (gradient_in_place()) {
      unit.own_gradient_slot = std::make_shared<GradientSlot>();
      unit.own_gradient_slot->full = state.gradient;
      if (config_.replicas > 1) unit.own_gradient_slot->complete = device_.create_event(unit.unit->name + ".gradient.complete");
    } else if (!unit.of_block && ends_in_turn) {
      unit.own_gradient_slot = in_turn;
      unit.gaps = gaps_of(unit);   // where the other has numbers
    } else if (!unit.of_block) {
      unit.own_gradient_slot = std::make_shared<GradientSlot>(make_gradient_slot(unit.padded(), unit.unit->name + ".gradient"));
    }
  }
}
//@end

}  // namespace shardbook::fsdp
