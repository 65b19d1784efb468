// Wrong plans of one rank, and what the verifier says of each: where, what, and as far as it knows, since when.
#include <gtest/gtest.h>

#include "tests/plan/by_hand.hpp"

namespace shardbook::tests {
namespace {

std::string said(const std::vector<Action>& actions, const Network& network = network_of_blocks(2, false, 1), const Slots& slots = {1, 1}) {
  const Plan plan = numbered(actions);
  auto problem = misnamed(plan, network);
  if (!problem) problem = problem_of(finish(plan, network, slots), network);
  return problem ? problem->sentence : "nothing";
}
std::string said(const Changed& changed) { return said(changed.actions); }

TEST(AWrongPlan, IsNotThisOne) { EXPECT_EQ(said(right), "nothing"); }

// ---- Parameters --------------------------------------------------------------------------------

TEST(AWrongPlan, UsesAUnitThatNothingHasGathered) {
  EXPECT_EQ(said(right.without(4)), "rank 0, action 4 (my_plan.cpp:4): forward blocks.0 of micro-batch 0 needs blocks.0, which nothing has gathered");
}

TEST(AWrongPlan, UsesAUnitAfterItsRelease) {
  EXPECT_EQ(said(right.without(13)), "rank 0, action 13 (my_plan.cpp:13): backward blocks.1 of micro-batch 0 needs blocks.1, which action 9 (my_plan.cpp:9) released and none has gathered since");
}

TEST(AWrongPlan, UsesAUnitBeforeItsGather) {
  EXPECT_EQ(said(right.swapped(7, 8)), "rank 0, action 7 (my_plan.cpp:7): forward blocks.1 of micro-batch 0 needs blocks.1, which nothing has gathered");
}

TEST(AWrongPlan, GathersAUnitTwice) {
  EXPECT_EQ(said(right.with(5, gather(1))), "rank 0, action 5 (my_plan.cpp:5): blocks.0 is gathered although it is whole since action 4 (my_plan.cpp:4)");
}

TEST(AWrongPlan, GathersWhatIsNotSharded) {
  Network network = network_of_blocks(2, false, 1);
  network.units[1].sharded = false;
  EXPECT_EQ(said(right.actions, network), "rank 0, action 4 (my_plan.cpp:4): blocks.0 is gathered, and it is not sharded: this rank has all of it anyway");
}

TEST(AWrongPlan, FreesAUnitTwice) {
  EXPECT_EQ(said(right.with(7, release(1))), "rank 0, action 7 (my_plan.cpp:7): blocks.0 is released twice: action 6 (my_plan.cpp:6) did so already");
}

TEST(AWrongPlan, FreesAUnitThatWasNeverWhole) {
  EXPECT_EQ(said(right.with(4, release(2))), "rank 0, action 4 (my_plan.cpp:4): blocks.1 is released, and nothing has gathered it");
}

TEST(AWrongPlan, FreesAUnitThatStaysWhole) {
  EXPECT_EQ(said(right.with(4, release(0))), "rank 0, action 4 (my_plan.cpp:4): embedding is released, and it has memory of its own, in which it stays whole until the update");
}

TEST(AWrongPlan, NeverFreesAUnit) {
  EXPECT_EQ(said(right.without(19)), "rank 0, action 23 (my_plan.cpp:23): blocks.0 is still whole: action 17 (my_plan.cpp:17) gathered it and nothing released it");
}

TEST(AWrongPlan, GathersNearWhatNobodyKeptThere) {
  Network network = network_of_blocks(2, false, 1);
  for (int block : {1, 2}) network.units[static_cast<std::size_t>(block)].kept = 2048;
  // Kept before its release, a block may be gathered near, or as before
  const Changed kept = right.with(6, keep(1));
  EXPECT_EQ(said(kept.actions, network), "nothing");
  Changed near = kept;
  near.actions[18] = gather(1, near_axis);
  EXPECT_EQ(said(near.actions, network), "nothing");
  // Never kept, not whole when it is kept, nowhere to be kept, or elsewhere
  EXPECT_EQ(said(near.without(6).actions, network), "rank 0, action 17 (my_plan.cpp:17): blocks.0 is gathered over dp_shard_near, and nothing of it was kept there");
  EXPECT_EQ(said(near.swapped(6, 7).actions, network), "rank 0, action 7 (my_plan.cpp:7): a part of blocks.0 is kept, and it is not whole then");
  EXPECT_EQ(said(kept), "rank 0, action 6 (my_plan.cpp:6): a part of blocks.0 is kept, and no memory is set aside for it");
  near.actions[18] = gather(1, "tp");
  EXPECT_EQ(said(near.actions, network), "rank 0, action 18 (my_plan.cpp:18): blocks.0 is gathered over tp; it can be over all ranks that shard it, which has no name here, or over dp_shard_near");
}

TEST(AWrongPlan, HasTooFewBuffers) {
  EXPECT_EQ(said(right.with(4, gather(2))), "rank 0, action 5 (my_plan.cpp:5): no buffer is free for blocks.0: blocks.1 is still whole");
  EXPECT_EQ(said(right.actions, network_of_blocks(2, false, 1), {0, 1}), "rank 0, action 4 (my_plan.cpp:4): there is no buffer in which blocks.0 could be whole");
}

TEST(AWrongPlan, HasTwoUnitsInOneBuffer) {
  const Network network = network_of_blocks(2, false, 1);
  Plan plan = finish(numbered(right.without(7).with(4, gather(2)).actions), network, {2, 1});
  ASSERT_FALSE(problem_of(plan, network));
  plan.actions[5].slot = plan.actions[4].slot;
  EXPECT_EQ(problem_of(plan, network)->sentence, "rank 0, action 5 (my_plan.cpp:5): blocks.0 is gathered into buffer 0, where blocks.1 is still whole since action 4 (my_plan.cpp:4)");
}

TEST(AWrongPlan, WaitsForAReleaseThatIsNotThere) {
  EXPECT_EQ(said(right.with(4, limit(1))), "rank 0, action 4 (my_plan.cpp:4): the host waits for a release of blocks.0, and there is none that it has not waited for");
  EXPECT_EQ(said(right.with(7, limit(1)).with(7, limit(1))), "rank 0, action 8 (my_plan.cpp:8): the host waits for a release of blocks.0, and there is none that it has not waited for");
}

// ---- Host memory -------------------------------------------------------------------------------

// The same step with shards in host memory: each gather has its shard brought before it, each sum goes behind its reduction.
struct Away {
  Network network = network_of_blocks(2, false, 1);
  std::vector<Action> actions;
  Away() {
    for (Unit& unit : network.units) unit.on_host = true;
    for (const Action& action : step_of_two_blocks()) {
      if (action.kind == Kind::gather) actions.push_back(to_device(action.unit));
      actions.push_back(action);
      if (action.kind == Kind::reduce) actions.push_back(to_host(action.unit));
    }
  }
  std::string said(const Changed& changed) const { return tests::said(changed.actions, network, {1, 1, 1, 1}); }
  Changed right() const { return {actions}; }
};

TEST(AWrongPlan, IsNotThisOneWithShardsInHostMemory) {
  const Away away;
  EXPECT_EQ(away.said(away.right()), "nothing");
}

TEST(AWrongPlan, GathersAShardThatIsNotThere) {
  const Away away;
  EXPECT_EQ(away.said(away.right().without(6)), "rank 0, action 6 (my_plan.cpp:6): blocks.0 is gathered, and its shard lies in host memory: nothing has brought it to the device");
  // What was brought for forward has been gathered from, and its place is another's
  EXPECT_EQ(away.said(away.right().without(24)), "rank 0, action 24 (my_plan.cpp:24): blocks.0 is gathered, and its shard lies in host memory: nothing has brought it to the device");
  EXPECT_EQ(away.said(away.right().swapped(6, 7)), "rank 0, action 6 (my_plan.cpp:6): blocks.0 is gathered, and its shard lies in host memory: nothing has brought it to the device");
}

TEST(AWrongPlan, BringsAShardTwiceOrForNothing) {
  const Away away;
  EXPECT_EQ(away.said(away.right().with(7, to_device(1))), "rank 0, action 7 (my_plan.cpp:7): the shard of blocks.0 is brought to the device twice: action 6 (my_plan.cpp:6) did so already, and nothing has gathered it since");
  EXPECT_EQ(away.said(away.right().with(34, to_device(1))), "rank 0, action 35 (my_plan.cpp:35): the shard of blocks.0 that action 34 (my_plan.cpp:34) brought to the device is not gathered");
  EXPECT_EQ(said(right.with(4, to_device(1))), "rank 0, action 4 (my_plan.cpp:4): the shard of blocks.0 is brought to the device, where it lies anyway");
}

TEST(AWrongPlan, HasNoPlaceForAShard) {
  const Away away;
  EXPECT_EQ(away.said(away.right().with(6, to_device(2))), "rank 0, action 7 (my_plan.cpp:7): no place is free for the shard of blocks.0: that of blocks.1 is not gathered yet");
  EXPECT_EQ(tests::said(away.actions, away.network, {1, 1, 0, 1}), "rank 0, action 0 (my_plan.cpp:0): no place is free for the shard of embedding: there is none");
  EXPECT_EQ(tests::said(away.actions, away.network, {1, 1, 1, 0}), "rank 0, action 16 (my_plan.cpp:16): no place is free for the sum of head's gradient: there is none");
  Plan plan = finish(numbered(away.right().with(6, to_device(2)).actions), away.network, {1, 1, 2, 1});
  plan.actions[7].shard_slot = 0;
  EXPECT_EQ(problem_of(plan, away.network)->sentence, "rank 0, action 7 (my_plan.cpp:7): the shard of blocks.0 goes to place 0, where that of blocks.1 is not gathered yet");
}

TEST(AWrongPlan, LeavesASumOnTheDevice) {
  const Away away;
  EXPECT_EQ(tests::said(away.right().without(17).actions, away.network, {1, 1, 1, 2}), "rank 0, action 32 (my_plan.cpp:32): the norm comes before the gradient of head has gone to host memory, where it is added up");
  EXPECT_EQ(away.said(away.right().without(17)), "rank 0, action 21 (my_plan.cpp:21): no place is free for the sum of blocks.1's gradient: that of head is not in host memory yet");
}

TEST(AWrongPlan, TakesWhatIsNoSum) {
  const Away away;
  EXPECT_EQ(away.said(away.right().swapped(16, 17)), "rank 0, action 16 (my_plan.cpp:16): the gradient of head goes to host memory before it is summed over the ranks");
  EXPECT_EQ(away.said(away.right().with(18, to_host(3))), "rank 0, action 18 (my_plan.cpp:18): the gradient of head goes to host memory twice: nothing has been summed since it did");
  EXPECT_EQ(said(right.with(13, to_host(3))), "rank 0, action 13 (my_plan.cpp:13): the gradient of head goes to host memory, and its shard stays on the device");
}

// Two micro-batches: the sum of the first has to be gone before the second's is made, with a place free or not.
TEST(AWrongPlan, SumsOverASumThatHasNotGone) {
  Network network = network_of_blocks(0, true, 2);
  network.units[0].on_host = true;
  const std::vector<Action> actions{to_device(0), gather(0), load(0), forward(0, 0), forward(1, 0), backward(1, 0), backward(0, 0), reduce(0), to_host(0),
                                    load(1), forward(0, 1), forward(1, 1), backward(1, 1), backward(0, 1), reduce(0), to_host(0), norm(), update()};
  EXPECT_EQ(said(actions, network, {0, 0, 1, 1}), "nothing");
  EXPECT_EQ(said(Changed{actions}.without(8).actions, network, {0, 0, 1, 2}), "rank 0, action 13 (my_plan.cpp:13): the sum of root's gradient that action 7 (my_plan.cpp:7) made has not gone to host memory: the next one would take its place");
}

TEST(AWrongPlan, SendsForStatesTwiceOrNeverOrForNothing) {
  Network network = network_of_blocks(2, false, 1);
  EXPECT_EQ(said(right.with(0, states()).actions, network), "rank 0, action 0 (my_plan.cpp:0): states are sent for, and they lie on the device anyway");
  network.states_on_host = true;
  EXPECT_EQ(said(right.actions, network), "rank 0, action 24 (my_plan.cpp:24): the update needs masters and moments, which lie in host memory, and nothing has sent for them");
  EXPECT_EQ(said(right.with(0, states()).actions, network), "nothing");
  EXPECT_EQ(said(right.with(0, states()).with(5, states()).actions, network), "rank 0, action 5 (my_plan.cpp:5): states are sent for twice: action 0 (my_plan.cpp:0) did so already");
}

// ---- Layers ------------------------------------------------------------------------------------

TEST(AWrongPlan, LacksALoad) {
  EXPECT_EQ(said(right.without(2)), "rank 0, action 2 (my_plan.cpp:2): the tokens of micro-batch 0 are not loaded");
}

TEST(AWrongPlan, LoadsTwice) {
  EXPECT_EQ(said(right.with(3, load(0))), "rank 0, action 3 (my_plan.cpp:3): the tokens of micro-batch 0 are loaded twice");
}

TEST(AWrongPlan, LeavesOutALayer) {
  EXPECT_EQ(said(right.without(5)), "rank 0, action 7 (my_plan.cpp:7): forward blocks.1 of micro-batch 0 has no input: blocks.0 has not run");
}

TEST(AWrongPlan, GoesForwardTwice) {
  EXPECT_EQ(said(right.with(6, forward(1, 0))), "rank 0, action 6 (my_plan.cpp:6): blocks.0 goes forward for micro-batch 0 twice");
}

TEST(AWrongPlan, GoesBackwardBeforeForward) {
  EXPECT_EQ(said(right.swapped(10, 11)), "rank 0, action 10 (my_plan.cpp:10): head goes backward for micro-batch 0, which never went forward");
}

TEST(AWrongPlan, GoesBackwardTwice) {
  EXPECT_EQ(said(right.with(15, backward(2, 0))), "rank 0, action 15 (my_plan.cpp:15): blocks.1 goes backward for micro-batch 0 twice");
}

TEST(AWrongPlan, GoesBackwardOutOfOrder) {
  EXPECT_EQ(said(right.swapped(14, 21)), "rank 0, action 14 (my_plan.cpp:14): backward embedding of micro-batch 0 has no gradient to begin with: blocks.0 has not gone backward");
}

TEST(AWrongPlan, BeginsBackwardInTheMiddleOfForward) {
  EXPECT_EQ(said(right.with(6, backward(1, 0))), "rank 0, action 6 (my_plan.cpp:6): blocks.0 goes backward for micro-batch 0 before its forward has ended");
}

TEST(AWrongPlan, LetsTwoMicroBatchesShareTheGradientBetweenLayers) {
  const Network network = network_of_blocks(1, false, 2, {"dp_shard"}, true);
  std::vector<Action> actions = {gather(0), gather(1), gather(2)};
  for (int m : {0, 1}) {
    actions.push_back(load(m));
    for (int layer : {0, 1, 2}) actions.push_back(forward(layer, m));
  }
  for (int layer : {2, 1, 0}) {
    for (int m : {0, 1}) actions.push_back(backward(layer, m));
    actions.push_back(reduce(layer));
  }
  actions.insert(actions.end(), {norm(), update()});
  EXPECT_EQ(said(actions, network), "rank 0, action 14 (my_plan.cpp:14): backward blocks.0 of micro-batch 0 does not follow that of head: another has overwritten the gradient between them");
}

TEST(AWrongPlan, ComputesAgainWhatIsNoBlock) {
  EXPECT_EQ(said(right.with(11, recompute(3, 0))), "rank 0, action 11 (my_plan.cpp:11): head is computed again, and only blocks are: it keeps all that its backward needs");
}

TEST(AWrongPlan, ComputesAgainTooEarlyOrTooLate) {
  EXPECT_EQ(said(right.with(5, recompute(1, 0))), "rank 0, action 5 (my_plan.cpp:5): blocks.0 is computed again for micro-batch 0, which never went forward");
  EXPECT_EQ(said(right.with(15, recompute(2, 0))), "rank 0, action 15 (my_plan.cpp:15): blocks.1 is computed again for micro-batch 0, which has gone backward already");
}

TEST(AWrongPlan, ComputesOneBlockAgainAndNotTheOther) {
  EXPECT_EQ(said(right.with(14, recompute(2, 0))), "rank 0, action 19 (my_plan.cpp:19): blocks.0 goes backward for micro-batch 0 without having been computed again: where a plan recomputes, blocks keep their inputs only, and blocks.1 has overwritten the rest");
}

TEST(AWrongPlan, MakesAgainTooEarlyOrOneBlockAndNotTheOther) {
  EXPECT_EQ(said(right.with(11, remake(3, 0))), "rank 0, action 11 (my_plan.cpp:11): head is made again, and only blocks are: it keeps all that its backward needs");
  EXPECT_EQ(said(right.with(5, remake(1, 0))), "rank 0, action 5 (my_plan.cpp:5): blocks.0 is made again for micro-batch 0, which never went forward");
  EXPECT_EQ(said(right.with(15, remake(2, 0))), "rank 0, action 15 (my_plan.cpp:15): blocks.1 is made again for micro-batch 0, which has gone backward already");
  EXPECT_EQ(said(right.with(14, remake(2, 0))), "rank 0, action 19 (my_plan.cpp:19): blocks.0 goes backward for micro-batch 0 without having been made again: where a plan remakes, blocks keep no outputs of norms and activations, and blocks.1 has overwritten the rest");
}

TEST(AWrongPlan, MakesAgainAPartOfWhatItDoesNotKeep) {
  EXPECT_EQ(said(Changed{right.with(14, recompute(2, 0))}.with(15, remake(2, 0))),
            "rank 0, action 15 (my_plan.cpp:15): blocks.1 is made again for micro-batch 0 from what this plan does not keep: where a plan recomputes, blocks keep their inputs only");
}

// ---- Gradients ---------------------------------------------------------------------------------

TEST(AWrongPlan, ReducesBeforeTheLastWeightGradient) {
  EXPECT_EQ(said(std::vector<Action>{gather(0), load(0), forward(0, 0), gather(1), forward(1, 0), release(1), forward(2, 0), backward(2, 0), reduce(0)},
                 network_of_blocks(1, true, 1)), "rank 0, action 8 (my_plan.cpp:8): the gradient of root is reduced before embedding has added its part for micro-batch 0: the other ranks would never see it");
}

TEST(AWrongPlan, ReducesBeforeBackward) {
  EXPECT_EQ(said(right.swapped(14, 16)), "rank 0, action 14 (my_plan.cpp:14): the gradient of blocks.1 is summed over dp_shard before any backward has made it");
}

TEST(AWrongPlan, ReducesTwice) {
  EXPECT_EQ(said(right.with(17, reduce(2))), "rank 0, action 17 (my_plan.cpp:17): the gradient of blocks.1 is summed over dp_shard twice: action 16 (my_plan.cpp:16) did so already");
}

TEST(AWrongPlan, DoesNotReduce) {
  EXPECT_EQ(said(right.without(22)), "rank 0, action 22 (my_plan.cpp:22): the norm comes before the gradient of embedding is summed over dp_shard");
}

TEST(AWrongPlan, ReducesTooLateForTheBuffers) {
  EXPECT_EQ(said(right.without(16).with(20, reduce(2))), "rank 0, action 17 (my_plan.cpp:17): no buffer is free for the gradient of blocks.0: that of blocks.1 is not reduced yet");
}

TEST(AWrongPlan, HasTwoGradientsInOneBuffer) {
  const Network network = network_of_blocks(2, false, 1);
  Plan plan = finish(numbered(right.without(16).with(20, reduce(2)).actions), network, {1, 2});
  ASSERT_FALSE(problem_of(plan, network));
  plan.actions[17].slot = plan.actions[14].slot;
  EXPECT_EQ(problem_of(plan, network)->sentence, "rank 0, action 17 (my_plan.cpp:17): the gradient of blocks.0 goes into buffer 0, where that of blocks.1 is not reduced yet");
}

TEST(AWrongPlan, ReducesOverTheWrongAxis) {
  EXPECT_EQ(said(right.without(12).with(12, reduce(3, "tp"))), "rank 0, action 12 (my_plan.cpp:12): the gradient of head is summed over tp; the ranks that hold other parts of it are those of dp_shard");
  EXPECT_EQ(said(right.without(12).with(12, reduce(3, ""))), "rank 0, action 12 (my_plan.cpp:12): the gradient of head is summed over no axis; the ranks that hold other parts of it are those of dp_shard");
  Network alone = network_of_blocks(2, false, 1);
  alone.units[3].sums.clear();
  EXPECT_EQ(said(right.actions, alone), "rank 0, action 12 (my_plan.cpp:12): the gradient of head is summed over dp_shard, and this rank has made all of it: there is nothing to sum");
}

TEST(AWrongPlan, SumsOverReplicasBeforeShards) {
  const Network network = network_of_blocks(2, false, 1, {"dp_shard", "dp_replicate"});
  EXPECT_EQ(said(right.with(12, reduce(3, "dp_replicate")).actions, network), "rank 0, action 12 (my_plan.cpp:12): the gradient of head is summed over dp_replicate before dp_shard");
  EXPECT_EQ(said(right.actions, network), "rank 0, action 23 (my_plan.cpp:23): the norm comes before the gradient of embedding is summed over dp_replicate");
}

TEST(AWrongPlan, AddsToWhatIsSummedInPlace) {
  Network network = network_of_blocks(1, false, 2, {"dp_replicate"}, true);
  for (Unit& unit : network.units) unit.sharded = unit.shares_gradient = false;
  std::vector<Action> actions;
  for (int m : {0, 1}) {
    actions.push_back(load(m));
    for (int layer : {0, 1, 2}) actions.push_back(forward(layer, m));
    for (int layer : {2, 1, 0}) actions.insert(actions.end(), {backward(layer, m), reduce(layer, "dp_replicate")});
  }
  EXPECT_EQ(said(actions, network), "rank 0, action 14 (my_plan.cpp:14): the gradient of head was summed in place by action 5 (my_plan.cpp:5): what backward head of micro-batch 1 adds now would be lost, or counted once a rank");
}

// Over tp a part of the gradient is summed where it lies: the buffer stays taken, and closed, until the shards are summed.
TEST(AWrongPlan, SumsOverTpTooLateOrTooEarlyOrNever) {
  Network network = network_of_blocks(2, false, 1, {"tp", "dp_shard"});
  for (int unit : {0, 2, 3}) network.units[static_cast<std::size_t>(unit)].sums = {"dp_shard"};
  EXPECT_EQ(said(right.actions, network), "rank 0, action 20 (my_plan.cpp:20): the gradient of blocks.0 is summed over dp_shard before tp");
  EXPECT_EQ(said(right.with(20, reduce(1, "tp")).actions, network), "nothing");
  EXPECT_EQ(said(right.with(18, reduce(1, "tp")).actions, network), "rank 0, action 18 (my_plan.cpp:18): the gradient of blocks.0 is summed over tp before any backward has made it");
  EXPECT_EQ(said(right.with(20, reduce(2, "tp")).actions, network), "rank 0, action 20 (my_plan.cpp:20): the gradient of blocks.1 is summed over tp; the ranks that hold other parts of it are those of dp_shard");
  // blocks.1 is summed over tp, and its shards are not: its buffer is not free
  network.units[2].sums = {"tp", "dp_shard"};
  EXPECT_EQ(said(right.without(16).with(16, reduce(2, "tp")).with(20, reduce(1, "tp")).actions, network),
            "rank 0, action 18 (my_plan.cpp:18): no buffer is free for the gradient of blocks.0: that of blocks.1 is not reduced yet");
}

TEST(AWrongPlan, AddsToWhatIsSummedOverTp) {
  Network network = network_of_blocks(1, false, 2, {"tp", "dp_shard"}, true);
  for (Unit& unit : network.units) unit.sharded = unit.shares_gradient = false;
  std::vector<Action> each, once;
  for (int m : {0, 1}) {
    for (std::vector<Action>* actions : {&each, &once}) {
      actions->push_back(load(m));
      for (int layer : {0, 1, 2}) actions->push_back(forward(layer, m));
    }
    for (int layer : {2, 1, 0}) {
      each.insert(each.end(), {backward(layer, m), reduce(layer, "tp"), reduce(layer)});
      once.insert(once.end(), {backward(layer, m), reduce(layer, "tp")});
    }
  }
  each.insert(each.end(), {norm(), update()});
  EXPECT_EQ(said(each, network), "nothing");
  EXPECT_EQ(said(once, network), "rank 0, action 14 (my_plan.cpp:14): the gradient of head was summed in place by action 5 (my_plan.cpp:5): what backward head of micro-batch 1 adds now would be lost, or counted once a rank");
}

TEST(AWrongPlan, SumsABucketOfShards) {
  EXPECT_EQ(said(right.without(22).without(20).with(21, reduce_bucket(0, 2, "dp_shard"))), "rank 0, action 21 (my_plan.cpp:21): units embedding to blocks.0 are summed over dp_shard as one bucket, and each has shards of its own: sum them one by one");
}

// ---- The end -----------------------------------------------------------------------------------

TEST(AWrongPlan, TakesTheNormBeforeBackward) {
  EXPECT_EQ(said(right.without(23).with(21, norm())), "rank 0, action 21 (my_plan.cpp:21): the norm comes before embedding has gone backward for micro-batch 0");
}

TEST(AWrongPlan, TakesTheNormTwice) {
  EXPECT_EQ(said(right.with(24, norm())), "rank 0, action 24 (my_plan.cpp:24): there is a second norm, and the first has summed loss and squares over the ranks already");
}

TEST(AWrongPlan, UpdatesBeforeTheNorm) {
  EXPECT_EQ(said(right.swapped(23, 24)), "rank 0, action 23 (my_plan.cpp:23): the update comes before the norm, by which gradients are clipped");
}

TEST(AWrongPlan, UpdatesTwice) {
  EXPECT_EQ(said(right.with(25, update())), "rank 0, action 25 (my_plan.cpp:25): there is a second update");
}

TEST(AWrongPlan, NeverUpdates) {
  EXPECT_EQ(said(right.without(24)), "rank 0, at the end of the step: there is no update");
  EXPECT_EQ(said(std::vector<Action>{}), "rank 0, at the end of the step: there is no update");
}

TEST(AWrongPlan, GoesOnAfterTheUpdate) {
  EXPECT_EQ(said(right.with(25, release(1))), "rank 0, action 25 (my_plan.cpp:25): release unit 1 comes after the update, which ends the step: only gathers for the next one may");
}

// The same step, whose embedding and first block are gathered behind the update of the one before.
TEST(AWrongPlan, GathersForTheNextStepWhatThatGathersItself) {
  const Changed carried = right.without(4).without(0).with(23, gather(0)).with(24, gather(1));
  EXPECT_EQ(said(carried), "nothing");
  EXPECT_EQ(said(right.with(25, gather(1))), "rank 0, action 4 (my_plan.cpp:4): blocks.0 is gathered although it is whole since action 25 (my_plan.cpp:25) of the step before");
  EXPECT_EQ(said(carried.with(25, gather(1))), "rank 0, action 25 (my_plan.cpp:25): blocks.0 is gathered although it is whole since action 24 (my_plan.cpp:24)");
  EXPECT_EQ(said(carried.without(24)), "rank 0, action 3 (my_plan.cpp:3): forward blocks.0 of micro-batch 0 needs blocks.0, which nothing has gathered");
  // In another buffer than that in which the step begins
  const Network network = network_of_blocks(2, false, 1);
  EXPECT_EQ(said(carried.with(2, gather(2)).actions), "rank 0, action 2 (my_plan.cpp:2): no buffer is free for blocks.1: blocks.0 is still whole");
  // What is near was kept before the update
  Network near = network;
  for (int block : {1, 2}) near.units[static_cast<std::size_t>(block)].kept = 2048;
  Changed kept = carried.with(4, keep(1));
  EXPECT_EQ(said(kept.actions, near), "nothing");
  kept.actions[25] = gather(1, near_axis);
  EXPECT_EQ(said(kept.actions, near), "rank 0, action 25 (my_plan.cpp:25): blocks.0 is gathered over dp_shard_near, and nothing of it was kept there");
}

// ---- Names -------------------------------------------------------------------------------------

TEST(AWrongPlan, NamesWhatIsNotThere) {
  EXPECT_EQ(said(right.with(11, forward(4, 0))), "rank 0, action 11 (my_plan.cpp:11): forward names layer 4, and there are layers 0 to 3");
  EXPECT_EQ(said(right.with(11, backward(-1, 0))), "rank 0, action 11 (my_plan.cpp:11): backward names layer -1, and there are layers 0 to 3");
  EXPECT_EQ(said(right.with(11, gather(4))), "rank 0, action 11 (my_plan.cpp:11): gather names unit 4, and there are units 0 to 3");
  EXPECT_EQ(said(right.with(11, reduce(-1))), "rank 0, action 11 (my_plan.cpp:11): reduce names unit -1, and there are units 0 to 3");
  EXPECT_EQ(said(right.with(12, reduce_bucket(2, 3, "dp_shard"))), "rank 0, action 12 (my_plan.cpp:12): reduce names unit 4, and there are units 0 to 3");
  EXPECT_EQ(said(right.with(12, reduce_bucket(2, 0, "dp_shard"))), "rank 0, action 12 (my_plan.cpp:12): reduce names 0 units from unit 2 on; it takes at least one");
  EXPECT_EQ(said(right.with(3, load(1))), "rank 0, action 3 (my_plan.cpp:3): load names micro-batch 1, and there are micro-batches 0 to 0");
  EXPECT_EQ(said(right.with(3, forward(0, 7))), "rank 0, action 3 (my_plan.cpp:3): forward names micro-batch 7, and there are micro-batches 0 to 0");
}

}  // namespace
}  // namespace shardbook::tests
