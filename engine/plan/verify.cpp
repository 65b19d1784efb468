// One rank's plan, walked action by action; the first thing that does not hold is said.
#include "engine/plan/verify.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "engine/base/check.hpp"

namespace shardbook::plan {

using base::text;

namespace {

// A plan written by hand may name anything.
std::string names_what_there_is(const Action& action, const Network& network) {
  const int layers = static_cast<int>(network.layers.size()), units = static_cast<int>(network.units.size());
  const bool of_layer = computes(action.kind);
  const bool of_micro_batch = of_layer || action.kind == Kind::load;
  const bool of_unit = communicates(action.kind) || action.kind == Kind::release || action.kind == Kind::limit;
  if (of_layer && (action.layer < 0 || action.layer >= layers)) return text(name_of(action.kind), " names layer ", action.layer, ", and there are layers 0 to ", layers - 1);
  if (of_unit && (action.unit < 0 || action.units < 1 || action.unit + action.units > units)) return text(name_of(action.kind), " names unit ", action.unit + action.units - 1, ", and there are units 0 to ", units - 1);
  if (of_micro_batch && (action.micro_batch < 0 || action.micro_batch >= network.micro_batches)) {
    return text(name_of(action.kind), " names micro-batch ", action.micro_batch, ", and there are micro-batches 0 to ", network.micro_batches - 1);
  }
  return {};
}

std::string place_of(int rank, std::size_t at, const Action& action) { return text("rank ", rank, ", action ", at, " (", line_of(action), "): "); }

class Walk {
 public:
  Walk(const Plan& plan, const Network& network)
      : plan_(plan), network_(network), units_(network.units.size()) {}

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
    bool whole = false;
    int freed = 0;                      // releases that no limit has awaited
    int closed = -1;                    // the action after which nothing may be added to its gradient
    std::set<int> open;                 // micro-batches in the gradient that is not reduced yet
    std::vector<std::string> to_sum;    // axes over which it is yet to be summed, in order
  };
  struct OfLayer {
    bool forward = false, kept = false, backward = false;
  };

  const Unit& unit(int number) const { return network_.units[static_cast<std::size_t>(number)]; }
  OfUnit& state(int number) { return units_[static_cast<std::size_t>(number)]; }
  const std::string& layer_name(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].name; }
  int unit_of(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].unit; }
  OfLayer& of(int layer, int m) { return layers_[{layer, m}]; }
  std::string at(int action) const { return text("action ", action, " (", line_of(plan_.actions[static_cast<std::size_t>(action)]), ")"); }

  std::string step(const Action& action) {
    if (updated_ && action.kind != Kind::update) return text("it comes after the update, which ends the step");
    switch (action.kind) {
      case Kind::load: return loaded_.insert(action.micro_batch).second ? "" : text("the tokens of micro-batch ", action.micro_batch, " are loaded twice");
      case Kind::gather: return gather(action);
      case Kind::release: return release(action);
      case Kind::limit: return limit(action);
      case Kind::synchronize: return {};
      case Kind::forward: return forward(action);
      case Kind::recompute: return recompute(action);
      case Kind::backward: return backward(action);
      case Kind::reduce: return reduce(action);
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
    if (!unit(action.unit).sharded) return text(unit(action.unit).name, " is gathered, and every rank has all of it anyway");
    if (now.whole) return text(unit(action.unit).name, " is gathered although it is whole since ", at(now.gathered));
    if (unit(action.unit).shares_gathered && action.slot < 0) return text("no buffer is free for ", unit(action.unit).name, ": ", whole_now(), " still whole");
    now.whole = true;
    now.gathered = static_cast<int>(at_);
    return {};
  }

  std::string release(const Action& action) {
    OfUnit& now = state(action.unit);
    if (!now.whole) {
      if (now.released >= 0) return text(unit(action.unit).name, " is released twice: ", at(now.released), " did so already");
      return text(unit(action.unit).name, " is released, and it is not whole");
    }
    if (unit(action.unit).resident) return text(unit(action.unit).name, " stays whole until the update, and is released");
    now.whole = false;
    now.released = static_cast<int>(at_);
    ++now.freed;
    return {};
  }

  std::string limit(const Action& action) {
    OfUnit& now = state(action.unit);
    if (now.freed == 0) return text("the host waits for the release of ", unit(action.unit).name, ", which nothing has released");
    --now.freed;
    return {};
  }

  std::string whole_now() const {
    std::string names;
    int count = 0;
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (!units_[number].whole || !network_.units[number].shares_gathered) continue;
      names += (names.empty() ? "" : " and ") + network_.units[number].name;
      ++count;
    }
    return count == 0 ? "there is none, so that nothing can be" : names + (count == 1 ? " is" : " are");
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
    of(action.layer, m).forward = of(action.layer, m).kept = true;
    return {};
  }

  std::string recompute(const Action& action) {
    const int m = action.micro_batch;
    if (std::string problem = needs_whole(action); !problem.empty()) return problem;
    if (!of(action.layer, m).forward) return text(layer_name(action.layer), " is computed again for micro-batch ", m, ", which never went forward");
    if (of(action.layer, m).backward) return text(layer_name(action.layer), " is computed again for micro-batch ", m, ", which has gone backward already");
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
    const int number = unit_of(layer);
    OfUnit& now = state(number);
    if (unit(number).shares_gradient && action.slot < 0) return text("no buffer is free for the gradient of ", unit(number).name, ": others are not reduced yet");
    if (now.closed >= 0) return text("the gradient of ", unit(number).name, " was summed in place by ", at(now.closed), ": what backward ", layer_name(layer), " of micro-batch ", m, " adds now would be lost, or counted once a rank");
    of(layer, m).backward = true;
    last_backward_ = {layer, m};
    now.open.insert(m);
    now.to_sum = unit(number).sums;
    normed_ = false;
    return {};
  }

  // ---- Gradients -------------------------------------------------------------------------------

  std::string reduce(const Action& action) {
    for (int number = action.unit; number < action.unit + action.units; ++number) {
      if (std::string problem = reduce(action, number); !problem.empty()) return problem;
    }
    return {};
  }

  std::string reduce(const Action& action, int number) {
    OfUnit& now = state(number);
    const std::vector<std::string>& sums = unit(number).sums;
    if (std::find(sums.begin(), sums.end(), action.axis) == sums.end()) {
      return text("the gradient of ", unit(number).name, " is summed over ", action.axis, ", over which it is no summand: it would be counted once a rank");
    }
    if (now.to_sum.empty() || std::find(now.to_sum.begin(), now.to_sum.end(), action.axis) == now.to_sum.end()) {
      return text("there is no gradient of ", unit(number).name, " to sum over ", action.axis, now.to_sum.empty() ? "" : " yet");
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
    now.open.clear();
    // Shards are added up over micro-batches; what is summed over replicas is the end of it.
    if (std::string_view(action.axis) != "dp_shard") now.closed = static_cast<int>(at_);
    return {};
  }

  std::string norm() {
    for (int m = 0; m < network_.micro_batches; ++m) {
      for (int layer = 0; layer < static_cast<int>(network_.layers.size()); ++layer) {
        if (!of(layer, m).backward) return text("the norm comes before ", layer_name(layer), " has gone backward for micro-batch ", m);
      }
    }
    for (std::size_t number = 0; number < units_.size(); ++number) {
      if (!units_[number].to_sum.empty()) return text("the norm comes before the gradient of ", network_.units[number].name, " is summed over ", units_[number].to_sum.front());
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
    updated_ = true;
    return {};
  }

  std::string end() const { return updated_ ? "" : "there is no update"; }

  const Plan& plan_;
  const Network& network_;
  std::size_t at_ = 0;
  bool normed_ = false, updated_ = false;
  std::vector<OfUnit> units_;
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
