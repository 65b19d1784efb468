// One rank's plan, walked action by action; the first thing that does not hold is said.
#include "engine/plan/verify.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/check.hpp"

namespace shardbook::plan {

using base::text;

namespace {

// A plan written by hand may name anything.
std::string names_what_there_is(const Action& action, const Network& network) {
  const int layers = static_cast<int>(network.layers.size()), units = static_cast<int>(network.units.size());
  const bool of_layer = computes(action.kind);
  const bool of_micro_batch = of_layer || action.kind == Kind::load;
  const bool of_unit = (moves(action.kind) && action.kind != Kind::states) || action.kind == Kind::keep || action.kind == Kind::release || action.kind == Kind::limit;
  if (of_layer && (action.layer < 0 || action.layer >= layers)) return text(name_of(action.kind), " names layer ", action.layer, ", and there are layers 0 to ", layers - 1);
  if (of_unit && action.unit >= 0 && action.units < 1) return text(name_of(action.kind), " names ", action.units, " units from unit ", action.unit, " on; it takes at least one");
  if (of_unit && (action.unit < 0 || action.unit + action.units > units)) return text(name_of(action.kind), " names unit ", action.unit + action.units - 1, ", and there are units 0 to ", units - 1);
  if (of_micro_batch && (action.micro_batch < 0 || action.micro_batch >= network.micro_batches)) {
    return text(name_of(action.kind), " names micro-batch ", action.micro_batch, ", and there are micro-batches 0 to ", network.micro_batches - 1);
  }
  return {};
}

std::string place_of(int rank, std::size_t at, const Action& action) { return text("rank ", rank, ", action ", at, " (", line_of(action), "): "); }

bool has(const Plan& plan, Kind kind) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [kind](const Action& action) { return action.kind == kind; });
}

class Walk {
 public:
  Walk(const Plan& plan, const Network& network)
      : plan_(plan), network_(network), units_(network.units.size()),
        recomputes_(has(plan, Kind::recompute)), remakes_(has(plan, Kind::remake)) {
    begins_as_it_ends();
  }

  std::optional<Problem> run(int rank) {
    for (at_ = 0; at_ < plan_.actions.size(); ++at_) {
      const Action& action = plan_.actions[at_];
      std::string sentence = names_what_there_is(action, network_);
      if (sentence.empty()) sentence = step(action);
      if (!sentence.empty()) return Problem{rank, at_, place_of(rank, at_, action) + sentence};
    }
    const std::string sentence = end();
    if (!sentence.empty()) return Problem{rank, at_, text("rank ", rank, ", at the end of the step: ", sentence)};
    return std::nullopt;
  }

 private:
  struct OfUnit {
    int gathered = -1, released = -1;   // the actions that did so last
    bool kept = false;                  // a part of it stayed
    bool whole = false;
    int slot = -1;                      // where it is whole
    int brought = -1;                   // the action that brought its shard from host memory, until it is gathered
    int shard_slot = -1;                // where that shard is
    int stays = -1;                     // the reduction whose sum has not gone to host memory yet
    int sum_slot = -1;                  // where that sum is
    int freed = 0;                      // releases that no limit has awaited
    int closed = -1;                    // the action after which nothing may be added to its gradient
    std::set<int> open;                 // micro-batches in the gradient that is not reduced yet
    int gradient_slot = -1;             // where that gradient is
    std::vector<std::string> to_sum;    // axes over which it is yet to be summed, in order
    std::map<std::string, int> summed;  // by axis: the action that summed it last
  };
  struct OfLayer {
    bool forward = false, backward = false;
  };

  // What is gathered behind the update is whole already when a step begins, in the same place.
  void begins_as_it_ends() {
    const auto update = std::find_if(plan_.actions.begin(), plan_.actions.end(), [](const Action& action) { return action.kind == Kind::update; });
    for (auto action = update; action != plan_.actions.end(); ++action) {
      if (action->kind != Kind::gather || !names_what_there_is(*action, network_).empty()) continue;
      OfUnit& now = state(action->unit);
      now.whole = true;
      now.slot = action->slot;
      now.gathered = static_cast<int>(action - plan_.actions.begin());
    }
  }

  const Unit& unit(int number) const { return network_.units[static_cast<std::size_t>(number)]; }
  OfUnit& state(int number) { return units_[static_cast<std::size_t>(number)]; }
  const std::string& layer_name(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].name; }
  bool is_block(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].is_block(); }
  int unit_of(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].unit; }
  OfLayer& of(int layer, int m) { return layers_[{layer, m}]; }
  // "action 4 (engine/fsdp/schedule.cpp:31)"
  std::string at(int action) const {
    const bool in_step_before = static_cast<std::size_t>(action) > at_;
    return text("action ", action, " (", line_of(plan_.actions[static_cast<std::size_t>(action)]), ")", in_step_before ? " of the step before" : "");
  }

  std::string step(const Action& action) {
    if (updated_ && action.kind != Kind::update && action.kind != Kind::gather) return text(to_string(action), " comes after the update, which ends the step: only gathers for the next one may");
    switch (action.kind) {
      case Kind::load: return loaded_.insert(action.micro_batch).second ? "" : text("the tokens of micro-batch ", action.micro_batch, " are loaded twice");
      case Kind::states: return states();
      case Kind::to_device: return to_device(action);
      case Kind::gather: return gather(action);
      case Kind::keep: return keep(action);
      case Kind::release: return release(action);
      case Kind::limit: return limit(action);
      case Kind::synchronize: return {};
      case Kind::forward: return forward(action);
      case Kind::recompute:
      case Kind::remake: return again(action);
      case Kind::backward: return backward(action);
      case Kind::reduce: return reduce(action);
      case Kind::to_host: return to_host(action);
      case Kind::norm: return norm();
      case Kind::update: return update();
    }
    return {};
  }

  // ---- Parameters ------------------------------------------------------------------------------

  std::string needs_whole(const Action& action) {
    const int number = unit_of(action.layer);
    const OfUnit& now = state(number);
    if (!unit(number).sharded || now.whole) return {};
    const std::string what = text(name_of(action.kind), " ", layer_name(action.layer), " of micro-batch ", action.micro_batch, " needs ", unit(number).name);
    if (now.released >= 0) return text(what, ", which ", at(now.released), " released and none has gathered since");
    return text(what, ", which nothing has gathered");
  }

  std::string gather(const Action& action) {
    OfUnit& now = state(action.unit);
    if (!unit(action.unit).sharded) return text(unit(action.unit).name, " is gathered, and it is not sharded: this rank has all of it anyway");
    if (now.whole) return text(unit(action.unit).name, " is gathered although it is whole since ", at(now.gathered));
    const bool near = std::string_view(action.axis) == near_axis;
    if (!near && *action.axis != 0) return text(unit(action.unit).name, " is gathered over ", action.axis, "; it can be over all ranks that shard it, which has no name here, or over ", near_axis);
    if (near && !now.kept) return text(unit(action.unit).name, " is gathered over ", near_axis, ", and nothing of it was kept there");
    if (unit(action.unit).shares_gathered) {
      const std::vector<std::string> others = holders([this](int number) { return state(number).whole && unit(number).shares_gathered; });
      if (action.slot < 0 && others.empty()) return text("there is no buffer in which ", unit(action.unit).name, " could be whole");
      if (action.slot < 0) return text("no buffer is free for ", unit(action.unit).name, ": ", joined(others), others.size() == 1 ? " is" : " are", " still whole");
      for (std::size_t number = 0; number < units_.size(); ++number) {
        if (!units_[number].whole || units_[number].slot != action.slot) continue;
        return text(unit(action.unit).name, " is gathered into buffer ", action.slot, ", where ", network_.units[number].name, " is still whole since ", at(units_[number].gathered));
      }
    }
    if (unit(action.unit).on_host && !near) {
      if (now.brought < 0) return text(unit(action.unit).name, " is gathered, and its shard lies in host memory: nothing has brought it to the device");
      now.brought = -1;
    }
    now.whole = true;
    now.slot = action.slot;
    now.gathered = static_cast<int>(at_);
    return {};
  }

  std::string states() {
    if (!network_.states_on_host) return "states are sent for, and they lie on the device anyway";
    if (sent_ >= 0) return text("states are sent for twice: ", at(sent_), " did so already");
    sent_ = static_cast<int>(at_);
    return {};
  }

  std::string to_device(const Action& action) {
    OfUnit& now = state(action.unit);
    const std::string what = text("the shard of ", unit(action.unit).name);
    if (!unit(action.unit).on_host) return text(what, " is brought to the device, where it lies anyway");
    if (now.brought >= 0) return text(what, " is brought to the device twice: ", at(now.brought), " did so already, and nothing has gathered it since");
    if (std::string problem = place_for(what, action, &OfUnit::brought, &OfUnit::shard_slot, "gathered"); !problem.empty()) return problem;
    now.brought = static_cast<int>(at_);
    now.shard_slot = action.shard_slot;
    return {};
  }

  // A place for a shard on its way, where no other one is that has yet to go on.
  std::string place_for(const std::string& what, const Action& action, int OfUnit::*since, int OfUnit::*slot, const char* how) {
    const std::vector<std::string> others = holders([this, since](int number) { return state(number).*since >= 0; });
    if (action.shard_slot < 0) return text("no place is free for ", what, ": ", others.empty() ? "there is none" : text(others.size() == 1 ? "that of " : "those of ", joined(others), others.size() == 1 ? " is" : " are", " not ", how, " yet"));
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (units_[number].*since < 0 || units_[number].*slot != action.shard_slot) continue;
      return text(what, " goes to place ", action.shard_slot, ", where that of ", network_.units[number].name, " is not ", how, " yet");
    }
    return {};
  }

  std::string keep(const Action& action) {
    OfUnit& now = state(action.unit);
    if (unit(action.unit).kept == 0) return text("a part of ", unit(action.unit).name, " is kept, and no memory is set aside for it");
    if (!now.whole) return text("a part of ", unit(action.unit).name, " is kept, and it is not whole then");
    now.kept = true;
    return {};
  }

  std::string release(const Action& action) {
    OfUnit& now = state(action.unit);
    if (!now.whole) {
      if (now.released >= 0) return text(unit(action.unit).name, " is released twice: ", at(now.released), " did so already");
      return text(unit(action.unit).name, " is released, and nothing has gathered it");
    }
    if (unit(action.unit).resident) return text(unit(action.unit).name, " is released, and it has memory of its own, in which it stays whole until the update");
    now.whole = false;
    now.slot = -1;
    now.released = static_cast<int>(at_);
    ++now.freed;
    return {};
  }

  std::string limit(const Action& action) {
    OfUnit& now = state(action.unit);
    if (now.freed == 0) return text("the host waits for a release of ", unit(action.unit).name, ", and there is none that it has not waited for");
    --now.freed;
    return {};
  }

  // The names of all units of which something is true.
  template <typename Is>
  std::vector<std::string> holders(Is is) const {
    std::vector<std::string> names;
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (is(static_cast<int>(number))) names.push_back(network_.units[number].name);
    }
    return names;
  }

  // "a", "a and b", "a, b and c"
  static std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (std::size_t at = 0; at < names.size(); ++at) all += (at == 0 ? "" : at + 1 == names.size() ? " and " : ", ") + names[at];
    return all;
  }

  // ---- Layers ----------------------------------------------------------------------------------

  std::string forward(const Action& action) {
    const int m = action.micro_batch;
    if (std::string problem = needs_whole(action); !problem.empty()) return problem;
    if (action.layer == 0 && !loaded_.contains(m)) return text("the tokens of micro-batch ", m, " are not loaded");
    if (action.layer > 0 && !of(action.layer - 1, m).forward) {
      return text("forward ", layer_name(action.layer), " of micro-batch ", m, " has no input: ", layer_name(action.layer - 1), " has not run");
    }
    if (of(action.layer, m).forward) return text(layer_name(action.layer), " goes forward for micro-batch ", m, " twice");
    of(action.layer, m).forward = true;
    if (is_block(action.layer)) kept_ = {action.layer, m};
    return {};
  }

  // All of a block, or a part.
  std::string again(const Action& action) {
    const int m = action.micro_batch;
    const std::string how = action.kind == Kind::remake ? " is made again" : " is computed again";
    if (std::string problem = needs_whole(action); !problem.empty()) return problem;
    if (!is_block(action.layer)) return text(layer_name(action.layer), how, ", and only blocks are: it keeps all that its backward needs");
    if (!of(action.layer, m).forward) return text(layer_name(action.layer), how, " for micro-batch ", m, ", which never went forward");
    if (of(action.layer, m).backward) return text(layer_name(action.layer), how, " for micro-batch ", m, ", which has gone backward already");
    if (action.kind == Kind::remake && recomputes_) return text(layer_name(action.layer), how, " for micro-batch ", m, " from what this plan does not keep: where a plan recomputes, blocks keep their inputs only");
    kept_ = {action.layer, m};
    return {};
  }

  std::string backward(const Action& action) {
    const int m = action.micro_batch, layer = action.layer;
    if (std::string problem = needs_whole(action); !problem.empty()) return problem;
    if (!of(layer, m).forward) return text(layer_name(layer), " goes backward for micro-batch ", m, ", which never went forward");
    if (of(layer, m).backward) return text(layer_name(layer), " goes backward for micro-batch ", m, " twice");
    if (layer + 1 < static_cast<int>(network_.layers.size())) {
      if (!of(layer + 1, m).forward) return text(layer_name(layer), " goes backward for micro-batch ", m, " before its forward has ended");
      if (!of(layer + 1, m).backward) return text("backward ", layer_name(layer), " of micro-batch ", m, " has no gradient to begin with: ", layer_name(layer + 1), " has not gone backward");
      // One gradient goes from layer to layer, in one buffer.
      if (last_backward_ != std::pair{layer + 1, m}) return text("backward ", layer_name(layer), " of micro-batch ", m, " does not follow that of ", layer_name(layer + 1), ": another has overwritten the gradient between them");
    }
    if ((recomputes_ || remakes_) && is_block(layer) && kept_ != std::pair{layer, m}) {
      return text(layer_name(layer), " goes backward for micro-batch ", m, " without having been ", recomputes_ ? "computed" : "made", " again: where a plan ", recomputes_ ? "recomputes, blocks keep their inputs only" : "remakes, blocks keep no outputs of norms and activations", ", and ", layer_name(kept_.first), " has overwritten the rest");
    }
    const int number = unit_of(layer);
    OfUnit& now = state(number);
    if (now.closed >= 0) return text("the gradient of ", unit(number).name, " was summed in place by ", at(now.closed), ": what backward ", layer_name(layer), " of micro-batch ", m, " adds now would be lost, or counted once a rank");
    if (std::string problem = opens_gradient(action); !problem.empty()) return problem;
    of(layer, m).backward = true;
    last_backward_ = {layer, m};
    now.open.insert(m);
    now.to_sum = unit(number).sums;
    return {};
  }

  // A place for what a backward adds, where nothing else is and from where it will be summed.
  std::string opens_gradient(const Action& action) {
    const int number = unit_of(action.layer);
    OfUnit& now = state(number);
    const std::string what = text("the gradient of ", unit(number).name);
    if (!unit(number).shares_gradient || !now.open.empty()) return {};
    const std::vector<std::string> others = holders([this](int other) { return !units_[static_cast<std::size_t>(other)].open.empty() && unit(other).shares_gradient; });
    if (action.slot < 0 && others.empty()) return text("there is no buffer for ", what);
    if (action.slot < 0) return text("no buffer is free for ", what, ": ", others.size() == 1 ? "that of " : "those of ", joined(others), others.size() == 1 ? " is" : " are", " not reduced yet");
    for (std::size_t other = 0; other < units_.size(); ++other) {
      if (units_[other].open.empty() || !network_.units[other].shares_gradient || units_[other].gradient_slot != action.slot) continue;
      return text(what, " goes into buffer ", action.slot, ", where that of ", network_.units[other].name, " is not reduced yet");
    }
    now.gradient_slot = action.slot;
    return {};
  }

  // ---- Gradients -------------------------------------------------------------------------------

  std::string reduce(const Action& action) {
    if (action.units > 1 && !sums_in_place(action.axis)) {
      return text("units ", unit(action.unit).name, " to ", unit(action.unit + action.units - 1).name, " are summed over ", action.axis, " as one bucket, and each has shards of its own: sum them one by one");
    }
    for (int number = action.unit; number < action.unit + action.units; ++number) {
      if (std::string problem = reduce(action, number); !problem.empty()) return problem;
    }
    return {};
  }

  std::string reduce(const Action& action, int number) {
    OfUnit& now = state(number);
    const std::vector<std::string>& sums = unit(number).sums;
    if (std::find(sums.begin(), sums.end(), action.axis) == sums.end()) {
      const std::string what = text("the gradient of ", unit(number).name, " is summed over ", *action.axis == 0 ? "no axis" : action.axis);
      if (sums.empty()) return text(what, ", and this rank has made all of it: there is nothing to sum");
      return text(what, "; the ranks that hold other parts of it are those of ", joined(sums));
    }
    if (std::find(now.to_sum.begin(), now.to_sum.end(), action.axis) == now.to_sum.end()) {
      const auto before = now.summed.find(action.axis);
      if (before != now.summed.end()) return text("the gradient of ", unit(number).name, " is summed over ", action.axis, " twice: ", at(before->second), " did so already");
      return text("the gradient of ", unit(number).name, " is summed over ", action.axis, " before any backward has made it");
    }
    if (now.to_sum.front() != action.axis) return text("the gradient of ", unit(number).name, " is summed over ", action.axis, " before ", now.to_sum.front());
    for (std::size_t layer = 0; layer < network_.layers.size(); ++layer) {
      if (network_.layers[layer].unit != number) continue;
      for (int m : now.open) {
        if (of(static_cast<int>(layer), m).backward) continue;
        return text("the gradient of ", unit(number).name, " is reduced before ", network_.layers[layer].name, " has added its part for micro-batch ", m, ": the other ranks would never see it");
      }
    }
    now.to_sum.erase(now.to_sum.begin());
    if (empties(unit(number), action.axis)) {
      if (unit(number).on_host) {
        const std::string what = text("the sum of ", unit(number).name, "'s gradient");
        if (now.stays >= 0) return text(what, " that ", at(now.stays), " made has not gone to host memory: the next one would take its place");
        if (std::string problem = place_for(what, action, &OfUnit::stays, &OfUnit::sum_slot, "in host memory"); !problem.empty()) return problem;
        now.stays = static_cast<int>(at_);
        now.sum_slot = action.shard_slot;
      }
      now.open.clear();
    }
    // Shards are added up over micro-batches; what is summed over replicas is the end of it. So is what is summed over tp,
    // until it is taken out of its buffer
    now.closed = sums_in_place(action.axis) ? static_cast<int>(at_) : -1;
    now.summed[action.axis] = static_cast<int>(at_);
    return {};
  }

  std::string to_host(const Action& action) {
    OfUnit& now = state(action.unit);
    const std::string what = text("the gradient of ", unit(action.unit).name, " goes to host memory");
    if (!unit(action.unit).on_host) return text(what, ", and its shard stays on the device");
    if (now.stays < 0) return text(what, now.summed.empty() ? " before it is summed over the ranks" : " twice: nothing has been summed since it did");
    now.stays = -1;
    return {};
  }

  std::string norm() {
    if (normed_) return "there is a second norm, and the first has summed loss and squares over the ranks already";
    for (int m = 0; m < network_.micro_batches; ++m) {
      for (int layer = 0; layer < static_cast<int>(network_.layers.size()); ++layer) {
        if (!of(layer, m).backward) return text("the norm comes before ", layer_name(layer), " has gone backward for micro-batch ", m);
      }
    }
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (!units_[number].to_sum.empty()) return text("the norm comes before the gradient of ", network_.units[number].name, " is summed over ", units_[number].to_sum.front());
      if (units_[number].stays >= 0) return text("the norm comes before the gradient of ", network_.units[number].name, " has gone to host memory, where it is added up");
    }
    normed_ = true;
    return {};
  }

  std::string update() {
    if (updated_) return "there is a second update";
    if (!normed_) return "the update comes before the norm, by which gradients are clipped";
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (!units_[number].whole || network_.units[number].resident) continue;
      return text(network_.units[number].name, " is still whole: ", at(units_[number].gathered), " gathered it and nothing released it");
    }
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (units_[number].brought >= 0) return text("the shard of ", network_.units[number].name, " that ", at(units_[number].brought), " brought to the device is not gathered");
    }
    if (network_.states_on_host && sent_ < 0) return "the update needs masters and moments, which lie in host memory, and nothing has sent for them";
    updated_ = true;
    // What is whole, or kept in parts, is so with numbers of before
    for (OfUnit& now : units_) {
      now.whole = now.kept = false;
      now.slot = -1;
    }
    return {};
  }

  std::string end() const { return updated_ ? "" : "there is no update"; }

  const Plan& plan_;
  const Network& network_;
  std::size_t at_ = 0;
  bool normed_ = false, updated_ = false;
  int sent_ = -1;                                   // the action that sent for states
  std::vector<OfUnit> units_;
  bool recomputes_ = false;                         // blocks keep their inputs only
  bool remakes_ = false;                            // blocks keep what took a matmul, or attention
  std::pair<int, int> kept_{-1, -1};                // the block and micro-batch whose backward could run then
  std::map<std::pair<int, int>, OfLayer> layers_;   // by layer and micro-batch
  std::pair<int, int> last_backward_{-1, -1};
  std::set<int> loaded_;
};

}  // namespace

std::optional<Problem> misnamed(const Plan& plan, const Network& network, int rank) {
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    const std::string sentence = names_what_there_is(plan.actions[at], network);
    if (!sentence.empty()) return Problem{rank, at, place_of(rank, at, plan.actions[at]) + sentence};
  }
  return std::nullopt;
}

std::optional<Problem> problem_of(const Plan& plan, const Network& network, int rank) { return Walk(plan, network).run(rank); }

}  // namespace shardbook::plan
