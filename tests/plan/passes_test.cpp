// The passes, from lists written out by hand; what a plan uses and needs, by counting in the plainest way.
#include <gtest/gtest.h>

#include "engine/plan/passes.hpp"
#include "engine/plan/uses.hpp"
#include "tests/plan/by_hand.hpp"

namespace shardbook::tests {
namespace {

// A plan in short: L load, A states (asked for), D to the device, G gather, K keep, R release, W limit (the host waits), F forward,
// C recompute, M remake, B backward, S sum over ranks, H to the host, N norm, U update, Y synchronize; unit, or layer.micro-batch; =n: in
// the shared buffer n; @n: through place n for shards.
std::string in_short(const Plan& plan) {
  std::string all;
  for (const Action& action : plan.actions) {
    if (!all.empty()) all += ' ';
    all += "LADGKRWYFCMBSHNU"[static_cast<int>(action.kind)];
    if (action.kind == Kind::load) all += std::to_string(action.micro_batch);
    else if (computes(action.kind)) all += base::text(action.layer, ".", action.micro_batch);
    else if (action.unit >= 0) all += std::to_string(action.unit);
    if (action.units > 1) all += base::text("-", action.unit + action.units - 1);
    if (action.slot >= 0) all += base::text("=", action.slot);
    if (action.shard_slot >= 0) all += base::text("@", action.shard_slot);
  }
  return all;
}

// ---- Passes ------------------------------------------------------------------------------------

TEST(OneAfterTheOther, GoesForwardAndBackwardWithEachMicroBatch) {
  EXPECT_EQ(in_short(one_after_the_other(network_of_blocks(1, true, 1))), "L0 F0.0 F1.0 F2.0 B2.0 B1.0 B0.0 N U");
  EXPECT_EQ(in_short(one_after_the_other(network_of_blocks(0, false, 2))), "L0 F0.0 F1.0 B1.0 B0.0 L1 F0.1 F1.1 B1.1 B0.1 N U");
}

TEST(RecomputeBlocks, ComputesEachBlockAgainJustBeforeItsBackward) {
  const Network network = network_of_blocks(2, true, 1);
  EXPECT_EQ(in_short(recompute_blocks(one_after_the_other(network), network)), "L0 F0.0 F1.0 F2.0 F3.0 B3.0 C2.0 B2.0 C1.0 B1.0 B0.0 N U");
}

TEST(ReduceGradients, SumsEachUnitWhenItsLastPartIsThere) {
  const Network untied = network_of_blocks(1, false, 2), tied = network_of_blocks(1, true, 2);
  EXPECT_EQ(in_short(reduce_gradients(one_after_the_other(untied), untied, Reduce::every_micro_batch)),
            "L0 F0.0 F1.0 F2.0 B2.0 S2 B1.0 S1 B0.0 S0 L1 F0.1 F1.1 F2.1 B2.1 S2 B1.1 S1 B0.1 S0 N U");
  // The head's part of a tied root is not all of it
  EXPECT_EQ(in_short(reduce_gradients(one_after_the_other(tied), tied, Reduce::every_micro_batch)),
            "L0 F0.0 F1.0 F2.0 B2.0 B1.0 S1 B0.0 S0 L1 F0.1 F1.1 F2.1 B2.1 B1.1 S1 B0.1 S0 N U");
  EXPECT_EQ(in_short(reduce_gradients(one_after_the_other(tied), tied, Reduce::last_micro_batch)),
            "L0 F0.0 F1.0 F2.0 B2.0 B1.0 B0.0 L1 F0.1 F1.1 F2.1 B2.1 B1.1 S1 B0.1 S0 N U");
}

TEST(ReduceGradients, LeavesUnitsThatAreNoSummand) {
  Network network = network_of_blocks(1, false, 1);
  network.units[1].sums = {"dp_replicate"};
  EXPECT_EQ(in_short(reduce_gradients(one_after_the_other(network), network, Reduce::every_micro_batch)), "L0 F0.0 F1.0 F2.0 B2.0 S2 B1.0 B0.0 S0 N U");
  EXPECT_EQ(in_short(reduce_gradients(one_after_the_other(network), network, Reduce::every_micro_batch, "dp_replicate")), "L0 F0.0 F1.0 F2.0 B2.0 B1.0 S1 B0.0 N U");
}

// A summand over tp is summed where it lies, before it is taken away; where nobody takes it away, once for all micro-batches.
TEST(ReduceGradients, SumsOverTpBeforeItSumsShards) {
  auto sums = [](const Network& network, Reduce when) {
    std::string all;
    const Plan plan = reduce_gradients(reduce_gradients(one_after_the_other(network), network, when), network, when, "tp");
    for (const Action& action : plan.actions) {
      if (action.kind == Kind::backward) all += base::text("B", action.layer, ".", action.micro_batch, " ");
      if (action.kind == Kind::reduce) all += base::text(action.axis, action.unit, " ");
    }
    return all;
  };
  Network network = network_of_blocks(1, false, 2, {"tp", "dp_shard"});
  network.units[0].sums = {"dp_shard"};
  EXPECT_EQ(sums(network, Reduce::every_micro_batch),
            "B2.0 tp2 dp_shard2 B1.0 tp1 dp_shard1 B0.0 dp_shard0 B2.1 tp2 dp_shard2 B1.1 tp1 dp_shard1 B0.1 dp_shard0 ");
  EXPECT_EQ(sums(network, Reduce::last_micro_batch), "B2.0 B1.0 B0.0 B2.1 tp2 dp_shard2 B1.1 tp1 dp_shard1 B0.1 dp_shard0 ");
  for (Unit& unit : network.units) unit.sums = {"tp", "dp_replicate"};
  EXPECT_EQ(sums(network, Reduce::every_micro_batch), "B2.0 B1.0 B0.0 B2.1 tp2 B1.1 tp1 B0.1 tp0 ");
}

TEST(LimitGathers, WaitsForTheOldestReleaseOnceSoManyAreInUse) {
  const Plan plan = numbered({gather(0), release(0), gather(1), release(1), gather(2), release(2), gather(3), release(3)});
  EXPECT_EQ(in_short(limit_gathers(plan, 1)), "G0 R0 W0 G1 R1 W1 G2 R2 W2 G3 R3");
  EXPECT_EQ(in_short(limit_gathers(plan, 2)), "G0 R0 G1 R1 W0 G2 R2 W1 G3 R3");
  EXPECT_EQ(in_short(limit_gathers(plan, 4)), in_short(plan));
}

TEST(RemakeBlocks, MakesAPartOfEachBlockAgainJustBeforeItsBackward) {
  const Network network = network_of_blocks(2, true, 1);
  EXPECT_EQ(in_short(remake_blocks(one_after_the_other(network), network)), "L0 F0.0 F1.0 F2.0 F3.0 B3.0 M2.0 B2.0 M1.0 B1.0 B0.0 N U");
}

TEST(SynchronizeAfterLayers, StopsTheHostAfterEach) {
  EXPECT_EQ(in_short(synchronize_after_layers(one_after_the_other(network_of_blocks(0, true, 1)))), "L0 F0.0 Y F1.0 Y B1.0 Y B0.0 Y N U");
}

TEST(Passes, KeepTheLinesOfWhatTheyCopy) {
  const Network network = network_of_blocks(2, false, 1);
  const Plan plan = limit_gathers(reduce_gradients(recompute_blocks(numbered(Changed{step_of_two_blocks()}.without(22).without(20).without(16).without(12).actions), network), network, Reduce::every_micro_batch), 1);
  int copied = 0;
  for (const Action& action : plan.actions) {
    const bool own = action.kind == Kind::recompute || action.kind == Kind::reduce || action.kind == Kind::limit;
    EXPECT_EQ(line_of(action).starts_with("my_plan.cpp:"), !own) << to_string(action) << " " << line_of(action);
    copied += !own;
  }
  EXPECT_EQ(copied, 21);
}

TEST(SendForStates, IsFirstOfAllWhereTheyLieInHostMemory) {
  Network network = network_of_blocks(0, true, 1);
  const Plan plan = one_after_the_other(network);
  EXPECT_EQ(in_short(send_for_states(plan, network)), in_short(plan));
  network.states_on_host = true;
  EXPECT_EQ(in_short(send_for_states(plan, network)), "A L0 F0.0 F1.0 B1.0 B0.0 N U");
  EXPECT_EQ(in_short(send_for_states(send_for_states(plan, network), network)), "A L0 F0.0 F1.0 B1.0 B0.0 N U");
}

// ---- Finish ------------------------------------------------------------------------------------

TEST(Finish, GivesSharedBuffersInTurn) {
  const Network network = network_of_blocks(3, true, 1);
  const Plan plan = numbered({gather(0), load(0), forward(0, 0), gather(1), forward(1, 0), release(1), gather(2), forward(2, 0), release(2), gather(3), forward(3, 0), release(3),
                              forward(4, 0), backward(4, 0), gather(3), backward(3, 0), reduce(3), release(3), gather(2), backward(2, 0), reduce(2), release(2), gather(1), backward(1, 0), release(1),
                              reduce(1), backward(0, 0), reduce(0), norm(), update()});
  EXPECT_EQ(in_short(finish(plan, network, {2, 2})),
            "G0 L0 F0.0 G1=0 F1.0 R1=0 G2=1 F2.0 R2=1 G3=0 F3.0 R3=0 F4.0 B4.0 G3=1 B3.0=0 S3=0 R3=1 G2=0 B2.0=1 S2=1 R2=0 G1=1 B1.0=0 R1=1 S1=0 B0.0 S0 N U");
  // Shards in host memory pass through places, likewise; what is gathered near does not
  Network away = network_of_blocks(2, false, 1);
  for (Unit& unit : away.units) unit.on_host = true;
  EXPECT_EQ(in_short(finish(numbered({to_device(1), to_device(2), gather(1), to_device(3), gather(2), gather(3), gather(1, near_axis), backward(2, 0), reduce(2), backward(1, 0), reduce(1), to_host(2), to_host(1)}), away, {3, 2, 2, 2})),
            "D1@0 D2@1 G1=0@0 D3@0 G2=1@1 G3@0 G1=2 B2.0=0 S2=0@0 B1.0=1 S1=1@1 H2@0 H1@1");
  // The next that is free, where it is not this one's turn
  EXPECT_EQ(in_short(finish(numbered({gather(1), gather(2), release(2), gather(3), gather(2)}), network, {2, 0})), "G1=0 G2=1 R2=1 G3=1 G2");
}

// What is gathered behind the update is whole when the step begins: it takes a buffer first of all, and comes to the same one again.
TEST(Finish, BeginsAsItEnds) {
  const Network network = network_of_blocks(2, true, 1);
  const Plan plan = finish(numbered({load(0), forward(0, 0), gather(2), forward(1, 0), release(1), forward(2, 0), release(2), forward(3, 0), backward(3, 0), gather(2), backward(2, 0), release(2), reduce(2),
                                     gather(1), backward(1, 0), release(1), reduce(1), backward(0, 0), reduce(0), norm(), update(), gather(0), gather(1)}), network, {2, 2});
  EXPECT_EQ(in_short(plan), "L0 F0.0 G2=1 F1.0 R1=0 F2.0 R2=1 F3.0 B3.0 G2=0 B2.0=0 R2=0 S2=0 G1=1 B1.0=1 R1=1 S1=1 B0.0 S0 N U G0 G1=0");
  EXPECT_FALSE(problem_of(plan, network));
  EXPECT_EQ(plan.actions.back().phase, Phase::forward);
  EXPECT_EQ(plan.actions.back().micro_batch, 0);
  EXPECT_EQ(in_short({for_the_next_step(plan)}), "G0 G1=0");
  EXPECT_EQ(needs_of(plan, network).gathered, 2);
}

TEST(Finish, CountsAGatherToTheUseThatItIsFor) {
  const Network network = network_of_blocks(1, false, 2);
  const Plan plan = finish(numbered({gather(1), load(0), forward(1, 0), release(1), gather(1), backward(1, 0), gather(0), forward(0, 1), reduce(1)}), network, {1, 1});
  auto of = [&](std::size_t at) { return std::pair{plan.actions[at].phase, plan.actions[at].micro_batch}; };
  EXPECT_EQ(of(0), (std::pair{Phase::forward, 0}));
  EXPECT_EQ(of(4), (std::pair{Phase::backward, 0}));
  EXPECT_EQ(of(6), (std::pair{Phase::forward, 1}));
  EXPECT_EQ(plan.actions[8].micro_batch, 0);
  EXPECT_EQ(plan.actions[2].unit, 1);
}

// ---- Uses --------------------------------------------------------------------------------------

TEST(Uses, JoinWhatAUnitDoesInOneDirection) {
  const Network network = network_of_blocks(1, true, 2);
  const Plan plan = one_after_the_other(network);   // L0 F0 F1 F2 B2 B1 B0 | L1 F0 F1 F2 B2 B1 B0 | N U
  const Uses uses(plan, network);
  auto use = [](const Use* use) { return use == nullptr ? std::string("-") : base::text(use->unit, use->phase == Phase::forward ? "f" : "b", use->micro_batch, ":", use->first, "-", use->last); };
  std::string begin, end;
  for (std::size_t at = 0; at < plan.actions.size(); ++at) {
    begin += use(uses.beginning(at)) + " ";
    end += use(uses.ending(at)) + " ";
  }
  EXPECT_EQ(begin, "- 0f0:1-3 1f0:2-2 - 0b0:4-6 1b0:5-5 - - 0f1:8-10 1f1:9-9 - 0b1:11-13 1b1:12-12 - - - ");
  EXPECT_EQ(end, "- - 1f0:2-2 0f0:1-3 - 1b0:5-5 0b0:4-6 - - 1f1:9-9 0f1:8-10 - 1b1:12-12 0b1:11-13 - - ");
  // What comes next, within the micro-batch and beyond
  std::string ahead;
  for (const Use* next : uses.ahead(5, 2, false)) ahead += use(next) + " ";
  EXPECT_EQ(ahead, "");
  for (const Use* next : uses.ahead(5, 2, true)) ahead += use(next) + " ";
  EXPECT_EQ(ahead, "0f1:8-10 1f1:9-9 ");
  EXPECT_EQ(use(uses.next_of(1, 2)), "1b0:5-5");
  EXPECT_EQ(use(uses.next_of(1, 12)), "-");
}

// ---- Needs -------------------------------------------------------------------------------------

// The most at one time, by looking at each moment anew.
Needs by_brute_force(const Plan& plan, const Network& network) {
  Needs most;
  for (std::size_t now = 0; now < plan.actions.size(); ++now) {
    Needs here;
    for (int unit = 0; unit < static_cast<int>(network.units.size()); ++unit) {
      const Unit& of = network.units[static_cast<std::size_t>(unit)];
      const auto update = std::find_if(plan.actions.begin(), plan.actions.end(), [](const Action& action) { return action.kind == Kind::update; });
      bool whole = std::any_of(update, plan.actions.end(), [unit](const Action& action) { return action.kind == Kind::gather && action.unit == unit; }), open = false;
      for (std::size_t at = 0; at <= now; ++at) {
        const Action& action = plan.actions[at];
        if (action.kind == Kind::gather && action.unit == unit) whole = true;
        if (action.kind == Kind::release && action.unit == unit) whole = false;
        if (action.kind == Kind::backward && network.layers[static_cast<std::size_t>(action.layer)].unit == unit) open = true;
        if (action.kind == Kind::reduce && action.unit == unit && of.sums.front() == action.axis) open = false;
      }
      here.gathered_bytes += whole ? of.gathered : 0;
      here.gradient_bytes += open ? of.gradient : 0;
      here.gathered += whole && of.shares_gathered;
      here.gradient += open && of.shares_gradient;
    }
    for (int m = 0; m < network.micro_batches; ++m) {
      bool before = false, after = false;
      for (std::size_t at = 0; at < plan.actions.size(); ++at) {
        if (plan.actions[at].micro_batch != m) continue;
        before = before || (at <= now && plan.actions[at].kind == Kind::forward);
        after = after || (at >= now && plan.actions[at].kind == Kind::backward);
      }
      here.in_flight += before && after;
    }
    most.gathered = std::max(most.gathered, here.gathered);
    most.gradient = std::max(most.gradient, here.gradient);
    most.in_flight = std::max(most.in_flight, here.in_flight);
    most.gathered_bytes = std::max(most.gathered_bytes, here.gathered_bytes);
    most.gradient_bytes = std::max(most.gradient_bytes, here.gradient_bytes);
  }
  return most;
}

TEST(Needs, AreTheMostAtOneTime) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Chance chance(seed);
    const int micro_batches = 1 + chance.below(4);
    const Network network = network_of_blocks(1 + chance.below(4), chance.once_in(2), micro_batches);
    const Plan plan = LegalPlan(network, seed, {chance.once_in(3), chance.once_in(3), 1 + chance.below(micro_batches), false, chance.once_in(2)}).make();
    const Needs found = needs_of(plan, network), expected = by_brute_force(plan, network);
    EXPECT_EQ(found.gathered, expected.gathered) << seed;
    EXPECT_EQ(found.gradient, expected.gradient) << seed;
    EXPECT_EQ(found.in_flight, expected.in_flight) << seed;
    EXPECT_EQ(found.gathered_bytes, expected.gathered_bytes) << seed;
    EXPECT_EQ(found.gradient_bytes, expected.gradient_bytes) << seed;
    // Places: as many as are in flight, and no two micro-batches share one while both are
    const std::vector<int> places = places_of(plan, network);
    EXPECT_EQ(*std::max_element(places.begin(), places.end()) + 1, found.in_flight) << seed;
    std::vector<int> holder(places.size(), -1);
    std::vector<int> left(places.size(), static_cast<int>(network.layers.size()));
    for (const Action& action : plan.actions) {
      if (!computes(action.kind)) continue;
      const std::size_t m = static_cast<std::size_t>(action.micro_batch);
      int& held_by = holder[static_cast<std::size_t>(places[m])];
      if (held_by < 0) held_by = action.micro_batch;
      EXPECT_EQ(held_by, action.micro_batch) << seed;
      if (action.kind == Kind::backward && --left[m] == 0) held_by = -1;
    }
  }
}

TEST(Slots, AreWhatIsNeededAndOneGradientMore) {
  const Network network = network_of_blocks(2, false, 1);
  const Slots slots = slots_for(numbered(step_of_two_blocks()), network);
  EXPECT_EQ(slots.gathered, 1);
  EXPECT_EQ(slots.gradient, 2);
}

}  // namespace
}  // namespace shardbook::tests
