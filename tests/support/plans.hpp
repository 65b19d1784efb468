// Networks and plans for tests: small ones by hand, and legal ones drawn by chance.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/plan/plan.hpp"

namespace shardbook::tests {

// A series of numbers that looks random, from a seed.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  // One of 0 … count − 1.
  int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }
  // True once in so many.
  bool once_in(int count) { return below(count) == 0; }
  // Above `low`, below `high`: often close to one of them.
  double between(double low, double high) {
    const double part = (static_cast<double>(next() >> 11) + 0.5) / 9007199254740992.0;
    const int kind = below(4);
    const double share = kind == 0 ? part * 1e-3 : kind == 1 ? 1 - part * 1e-3 : part;
    return low + share * (high - low);
  }

 private:
  std::uint64_t state_;
};

// Embedding, blocks, head, as the trainer lists them: a tied root is unit 0 of the first and the last layer. Embedding
// and head stay whole and have memory of their own. `axes`: over which every gradient is a summand.
inline plan::Network network_of_blocks(int blocks, bool tied, int micro_batches, std::vector<std::string> axes = {"dp_shard"}, bool resident = false) {
  plan::Network network{{}, {}, micro_batches};
  auto unit = [&](const std::string& name, bool of_block) {
    plan::Unit known;
    known.name = name;
    known.resident = !of_block || resident;
    known.shares_gathered = !known.resident;
    known.shares_gradient = of_block;
    known.gathered = 100 + static_cast<base::Bytes>(network.units.size());
    known.gradient = 2 * known.gathered;
    known.sums = axes;
    network.units.push_back(known);
  };
  unit(tied ? "root" : "embedding", false);
  network.layers.push_back({"embedding", 0});
  for (int block = 0; block < blocks; ++block) {
    unit("blocks." + std::to_string(block), true);
    network.layers.push_back({"blocks." + std::to_string(block), block + 1, block});
  }
  if (!tied) unit("head", false);
  network.layers.push_back({"head", tied ? 0 : blocks + 1});
  return network;
}

// What a legal plan may do beside being in order.
struct Liberties {
  bool recompute = false;
  bool accumulate = false;   // sum some units' gradients over ranks after several micro-batches, so other roundings
  int in_flight = 1;         // micro-batches between forward and backward
  bool remake = false;       // a part of what recompute makes; that one leaves nothing to it
  bool next_step = false;    // gather some units behind the update, for the next step
};

// A legal plan drawn by chance: micro-batches go forward and backward in turn, but overlap; each gather, release,
// reduction and limit stands anywhere between what must come before it and what must come after. Not finished.
// Written from the rules alone: nothing of engine/plan's passes is used.
class LegalPlan {
 public:
  LegalPlan(const plan::Network& network, std::uint64_t seed, const Liberties& liberties)
      : network_(network), chance_(seed), liberties_(liberties) {}

  plan::Plan make() {
    compute();
    for (int unit = 0; unit < static_cast<int>(network_.units.size()); ++unit) {
      if (network_.units[static_cast<std::size_t>(unit)].sharded) gathers(unit);
      if (!network_.units[static_cast<std::size_t>(unit)].sums.empty()) reductions(unit);
    }
    if (network_.states_on_host) placed_.push_back({chance_.between(-1, norm_ + 1), plan::states()});
    std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) { return a.at < b.at; });
    plan::Plan plan;
    for (const Placed& placed : placed_) plan.add(placed.action);
    return plan;
  }

 private:
  struct Placed {
    double at;
    plan::Action action;
  };

  int unit_of(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].unit; }
  bool is_block(int layer) const { return network_.layers[static_cast<std::size_t>(layer)].is_block(); }
  void put(const plan::Action& action) { placed_.push_back({static_cast<double>(placed_.size()), action}); }

  // Actions of layers, at the places 0, 1, 2, …; then norm and update
  void compute() {
    const int layers = static_cast<int>(network_.layers.size()), all = network_.micro_batches;
    std::vector<int> done(static_cast<std::size_t>(all), -1);   // of each micro-batch: the layer that went forward last
    int loaded = 0, back_of = 0, back_at = layers - 1;
    while (back_of < all) {
      // Which micro-batches may take one layer forward: those in flight, none ahead of the one before it
      std::vector<int> may;
      for (int m = back_of; m < std::min(all, back_of + liberties_.in_flight); ++m) {
        const int ahead = m == 0 ? layers : done[static_cast<std::size_t>(m) - 1];
        if (done[static_cast<std::size_t>(m)] + 1 < layers && (done[static_cast<std::size_t>(m)] + 1 < layers - 1 || ahead >= layers - 1)) may.push_back(m);
      }
      if (chance_.once_in(16)) put(plan::synchronize());
      const bool may_go_back = done[static_cast<std::size_t>(back_of)] == layers - 1;
      if (!may.empty() && (!may_go_back || chance_.once_in(2))) {
        const int m = may[static_cast<std::size_t>(chance_.below(static_cast<int>(may.size())))];
        while (loaded <= m || (loaded < all && chance_.once_in(4))) put(plan::load(loaded++));
        put(plan::forward(++done[static_cast<std::size_t>(m)], m));
        if (is_block(done[static_cast<std::size_t>(m)])) kept_ = {done[static_cast<std::size_t>(m)], m};
        continue;
      }
      // Blocks that keep their inputs only, or a part, are computed again, but for one that still holds what it computed last
      const bool still_kept = kept_ == std::pair{back_at, back_of} && chance_.once_in(2);
      const bool again = liberties_.recompute || liberties_.remake;
      if (again && is_block(back_at) && !still_kept) put(liberties_.recompute ? plan::recompute(back_at, back_of) : plan::remake(back_at, back_of));
      put(plan::backward(back_at, back_of));
      if (again && is_block(back_at)) kept_ = {back_at, back_of};
      if (back_at-- == 0) {
        back_at = layers - 1;
        ++back_of;
      }
    }
    norm_ = static_cast<double>(placed_.size());
    put(plan::norm());
    put(plan::update());
  }

  // Where a unit's parameters are needed, of the actions that compute.
  std::vector<double> uses_of(int unit) const {
    std::vector<double> at;
    for (const Placed& placed : placed_) {
      if (plan::computes(placed.action.kind) && unit_of(placed.action.layer) == unit) at.push_back(placed.at);
    }
    return at;
  }

  void gathers(int unit) {
    const std::vector<double> uses = uses_of(unit);
    double whole = chance_.between(-1, uses.front()), from_all = -1;   // gathered last, and over all
    // Where its shard lies in host memory, it comes before
    const auto over_all = [&](double at) {
      if (network_.units[static_cast<std::size_t>(unit)].on_host) placed_.push_back({chance_.between(from_all, at), plan::to_device(unit)});
      placed_.push_back({at, plan::gather(unit)});
      from_all = at;
    };
    if (liberties_.next_step && !network_.units[static_cast<std::size_t>(unit)].on_host && chance_.once_in(2)) {
      whole = -1;
      placed_.push_back({chance_.between(norm_ + 1, norm_ + 2), plan::gather(unit)});
    } else {
      over_all(whole);
    }
    if (network_.units[static_cast<std::size_t>(unit)].resident) return;
    const bool keeps = network_.units[static_cast<std::size_t>(unit)].kept > 0;
    bool kept = false;
    // Between any two uses it may be freed and gathered anew: where a part of it was kept, or over all
    for (std::size_t use = 0; use + 1 < uses.size(); ++use) {
      if (chance_.once_in(3)) continue;
      const double freed = chance_.between(uses[use], uses[use + 1]);
      if (keeps && chance_.once_in(2)) {
        placed_.push_back({chance_.between(whole, freed), plan::keep(unit)});
        kept = true;
      }
      release(unit, freed);
      whole = chance_.between(freed, uses[use + 1]);
      if (kept && chance_.once_in(2)) placed_.push_back({whole, plan::gather(unit, plan::near_axis)});
      else over_all(whole);
    }
    release(unit, chance_.between(uses.back(), norm_ + 1));
  }

  void release(int unit, double at) {
    placed_.push_back({at, plan::release(unit)});
    if (chance_.once_in(6)) placed_.push_back({chance_.between(at, norm_ + 1), plan::limit(unit)});
  }

  void reductions(int unit) {
    // The last backward of each micro-batch, and the first of the next
    std::map<int, std::pair<double, double>> backwards;
    for (const Placed& placed : placed_) {
      if (placed.action.kind != plan::Kind::backward || unit_of(placed.action.layer) != unit) continue;
      backwards.try_emplace(placed.action.micro_batch, placed.at, placed.at).first->second.second = placed.at;
    }
    const std::vector<std::string>& sums = network_.units[static_cast<std::size_t>(unit)].sums;
    // The sum over shards takes a gradient out of its buffer, so that and what comes before it may be done after each
    // micro-batch; what is summed in place is summed once, after the last
    const auto taken_out = std::find(sums.begin(), sums.end(), "dp_shard");
    const auto each_time = taken_out == sums.end() ? sums.begin() : std::next(taken_out);
    for (auto of = backwards.begin(); of != backwards.end(); ++of) {
      const bool is_last = std::next(of) == backwards.end();
      if (each_time == sums.begin() && !is_last) continue;
      if (liberties_.accumulate && !is_last && chance_.once_in(2)) continue;
      double last = of->second.second;
      for (auto axis = sums.begin(); axis != (is_last ? sums.end() : each_time); ++axis) {
        const double until = is_last ? norm_ : std::next(of)->second.first;
        last = chance_.between(last, until);
        placed_.push_back({last, plan::reduce(unit, literal(*axis))});
        const plan::Unit& known = network_.units[static_cast<std::size_t>(unit)];
        if (known.on_host && plan::empties(known, *axis)) placed_.push_back({chance_.between(last, until), plan::to_host(unit)});
      }
    }
  }

  static const char* literal(const std::string& axis) { return axis == "tp" ? "tp" : axis == "dp_shard" ? "dp_shard" : "dp_replicate"; }

  const plan::Network& network_;
  Chance chance_;
  Liberties liberties_;
  std::vector<Placed> placed_;
  std::pair<int, int> kept_{-1, -1};
  double norm_ = 0;
};

}  // namespace shardbook::tests
