// Plans that are right one by one, and wrong together: some rank would wait for ever in a collective.
#include <gtest/gtest.h>

#include "tests/plan/by_hand.hpp"

namespace shardbook::tests {
namespace {

// Four ranks, of which the third has a plan of its own.
std::string said(const std::vector<Action>& actions, const std::vector<Action>& of_third, const Network& network = network_of_blocks(2, false, 1)) {
  const Plan plan = finish(numbered(actions), network, {2, 2});
  const Plan other = finish(numbered(of_third), network, {2, 2});
  EXPECT_FALSE(problem_of(other, network)) << problem_of(other, network)->sentence;
  const auto problem = problem_of({plan, plan, other, plan}, std::vector<Network>(4, network));
  if (!problem) return "nothing";
  EXPECT_EQ(problem->rank, 2);
  return problem->sentence;
}

TEST(Ranks, AgreeHere) {
  EXPECT_EQ(said(right.actions, right.actions), "nothing");
  EXPECT_FALSE(problem_of(std::vector<Plan>{}, {}));
}

TEST(Ranks, MayFreeAndWaitAtOtherPlaces) {
  EXPECT_EQ(said(right.actions, right.without(6).with(9, release(1)).with(10, limit(1)).actions), "nothing");
}

TEST(Ranks, DisagreeOnAGather) {
  EXPECT_EQ(said(right.actions, right.swapped(0, 1).actions), "ranks wait for each other for ever: as collective 0 rank 0 calls the gather of embedding (action 0, my_plan.cpp:0) where rank 2 calls the gather of head (action 0, my_plan.cpp:0)");
}

TEST(Ranks, DisagreeOnWhetherToGatherOrReduce) {
  EXPECT_EQ(said(right.actions, right.swapped(12, 13).actions), "ranks wait for each other for ever: as collective 4 rank 0 calls the reduction of head over dp_shard (action 12, my_plan.cpp:12) where rank 2 calls the gather of blocks.1 (action 12, my_plan.cpp:12)");
}

TEST(Ranks, DisagreeOnAnAxis) {
  const Network network = network_of_blocks(2, false, 1, {"dp_shard", "dp_replicate"});
  std::vector<Action> actions, other;
  for (const Action& action : right.actions) {
    actions.push_back(action);
    other.push_back(action);
    if (action.kind == Kind::norm) {
      other.pop_back();
      for (int unit : {3, 2, 1, 0}) other.push_back(reduce(unit, "dp_replicate"));
      other.push_back(action);
    }
    if (action.kind == Kind::reduce) actions.push_back(reduce(action.unit, "dp_replicate"));
  }
  EXPECT_EQ(said(actions, other, network), "ranks wait for each other for ever: as collective 5 rank 0 calls the reduction of head over dp_replicate (action 13, my_plan.cpp:13) where rank 2 calls the gather of blocks.1 (action 13, my_plan.cpp:13)");
}

TEST(Ranks, DisagreeOnABucket) {
  Network network = network_of_blocks(2, false, 1, {"dp_replicate"}, true);
  for (Unit& unit : network.units) unit.sharded = unit.shares_gradient = false;
  auto with_buckets = [](const std::vector<Action>& buckets) {
    std::vector<Action> actions = {load(0)};
    for (int layer : {0, 1, 2, 3}) actions.push_back(forward(layer, 0));
    for (int layer : {3, 2, 1, 0}) actions.push_back(backward(layer, 0));
    actions.insert(actions.end(), buckets.begin(), buckets.end());
    actions.insert(actions.end(), {norm(), update()});
    return actions;
  };
  EXPECT_EQ(said(with_buckets({reduce_bucket(1, 3, "dp_replicate"), reduce(0, "dp_replicate")}),
                 with_buckets({reduce_bucket(1, 2, "dp_replicate"), reduce(3, "dp_replicate"), reduce(0, "dp_replicate")}), network), "ranks wait for each other for ever: as collective 0 rank 0 calls the reduction of blocks.0 and 2 more over dp_replicate (action 9, my_plan.cpp:9) where rank 2 calls the reduction of blocks.0 and 1 more over dp_replicate (action 9, my_plan.cpp:9)");
}

TEST(Ranks, DisagreeOnHowOften) {
  // One keeps blocks.1 from forward to backward; the others gather it twice
  EXPECT_EQ(said(right.actions, right.without(13).without(9).actions), "ranks wait for each other for ever: as collective 5 rank 0 calls the gather of blocks.1 (action 13, my_plan.cpp:13) where rank 2 calls the reduction of blocks.1 over dp_shard (action 14, my_plan.cpp:14)");
  // One has done what the others go on with
  const Changed another = right.with(23, gather(1)).with(24, release(1));
  EXPECT_EQ(said(another.actions, right.actions), "ranks wait for each other for ever: as collective 10 rank 0 calls the gather of blocks.0 (action 23, my_plan.cpp:23) where rank 2 calls no more");
  EXPECT_EQ(said(right.actions, another.actions), "ranks wait for each other for ever: as collective 10 rank 0 calls no more where rank 2 calls the gather of blocks.0 (action 23, my_plan.cpp:23)");
}

TEST(Ranks, AreEachRightFirst) {
  const Network network = network_of_blocks(2, false, 1);
  const Plan plan = finish(numbered(right.actions), network, {1, 1}), wrong = finish(numbered(right.without(4).actions), network, {1, 1});
  const auto problem = problem_of({plan, wrong}, {network, network});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->rank, 1);
  EXPECT_EQ(problem->action, 4u);
  EXPECT_EQ(problem->sentence, "rank 1, action 4 (my_plan.cpp:4): forward blocks.0 of micro-batch 0 needs blocks.0, which nothing has gathered");
}

}  // namespace
}  // namespace shardbook::tests
