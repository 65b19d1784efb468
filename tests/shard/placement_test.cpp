// What follows from placements, each rule against its definition: ranks are simulated, numbers are integers, sums exact.
#include "engine/shard/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "engine/base/check.hpp"
#include "engine/shard/flat_unit.hpp"
#include "engine/shard/shard.hpp"

namespace shardbook::shard {
namespace {

using Numbers = std::vector<double>;

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  int between(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }
  Numbers numbers(std::int64_t size) {
    Numbers all(static_cast<std::size_t>(size));
    for (double& one : all) one = between(-9, 9);
    return all;
  }

 private:
  std::mt19937 random_;
};

Numbers operator+(Numbers left, const Numbers& right) {
  for (std::size_t at = 0; at < left.size(); ++at) left[at] += right[at];
  return left;
}

// So many random summands of it.
std::vector<Numbers> summands_of(const Numbers& whole, int ranks, Random& random) {
  std::vector<Numbers> all{whole};
  for (int rank = 1; rank < ranks; ++rank) {
    all.push_back(random.numbers(static_cast<std::int64_t>(whole.size())));
    for (std::size_t at = 0; at < whole.size(); ++at) all[0][at] -= all.back()[at];
  }
  return all;
}

Numbers part(const Numbers& whole, int ranks, int rank) {
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(whole.size()) / ranks;
  return {whole.begin() + rank * size, whole.begin() + (rank + 1) * size};
}

// The definitions: what ranks hold when they hold `whole` so.
std::vector<Numbers> hold(Held held, const Numbers& whole, int ranks, Random& random) {
  if (held == Held::summand) return summands_of(whole, ranks, random);
  std::vector<Numbers> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(held == Held::same ? whole : part(whole, ranks, rank));
  return all;
}

// The definitions: what a collective makes of what ranks hold.
std::vector<Numbers> carried_out(Move move, const std::vector<Numbers>& held) {
  const int ranks = static_cast<int>(held.size());
  const Numbers sum = std::accumulate(held.begin() + 1, held.end(), held[0], [](const Numbers& left, const Numbers& right) { return left + right; });
  Numbers together;
  for (const Numbers& one : held) together.insert(together.end(), one.begin(), one.end());
  std::vector<Numbers> after;
  for (int rank = 0; rank < ranks; ++rank) {
    switch (move) {
      case Move::nothing: after.push_back(held[static_cast<std::size_t>(rank)]); break;
      case Move::slice: after.push_back(part(held[static_cast<std::size_t>(rank)], ranks, rank)); break;
      case Move::all_gather: after.push_back(together); break;
      case Move::reduce_scatter: after.push_back(part(sum, ranks, rank)); break;
      case Move::all_reduce: after.push_back(sum); break;
    }
  }
  return after;
}

TEST(Placement, FindsTheCollectiveThatLeadsFromWhatIsHeldToWhatShallBe) {
  Random random(1);
  for (int trial = 0; trial < 50; ++trial) {
    const int ranks = random.between(2, 5);
    const Numbers whole = random.numbers(ranks * random.between(1, 4));
    for (Held from : {Held::same, Held::part, Held::summand}) {
      for (Held to : {Held::same, Held::part}) {
        EXPECT_EQ(carried_out(move_between(from, to), hold(from, whole, ranks, random)), hold(to, whole, ranks, random))
            << name_of(from) << " to " << name_of(to) << " by " << name_of(move_between(from, to));
      }
    }
  }
  EXPECT_THROW(move_between(Held::same, Held::summand), base::Failure);
}

TEST(Placement, NamesTheCollectivesOfReplicasAndOfWhatIsShardedAndNoneOfWhatIsCut) {
  EXPECT_EQ(before_use(sharded_over("dp_shard")), Move::all_gather);
  EXPECT_EQ(after_backward(sharded_over("dp_shard")), Move::reduce_scatter);
  EXPECT_EQ(before_use(summed_over("dp_replicate")), Move::nothing);
  EXPECT_EQ(after_backward(summed_over("dp_replicate")), Move::all_reduce);
  for (const Along& one : {cut_over("tp"), alike_over("tp")}) {
    EXPECT_EQ(before_use(one), Move::nothing);
    EXPECT_EQ(after_backward(one), Move::nothing);
  }
}

// ---- A rank's part of a small model, in a mesh of tp × fsdp × dp ranks -----------------------------

struct Mesh {
  int tp = 1, fsdp = 1, dp = 1;
  bool sequence = false;   // tp ranks see other rows outside of what is cut
  int ranks() const { return tp * fsdp * dp; }
};

struct Global {
  base::Shape shape;
  int dim;   // cut over tp; -1: alike
  bool decay;
  TensorShard at(const Mesh& mesh, int tp_index) const { return dim < 0 ? replicated("", shape) : cut_along("", shape, dim, mesh.tp, tp_index); }
  Placement placement(const Mesh& mesh) const {
    Placement all;
    if (mesh.tp > 1) all.push_back(dim >= 0 ? cut_over("tp") : mesh.sequence ? summed_over("tp") : alike_over("tp"));
    if (mesh.fsdp > 1) all.push_back(sharded_over("dp_shard"));
    if (mesh.dp > 1) all.push_back(summed_over("dp_replicate"));
    return all;
  }
};

struct Rank {
  int tp, fsdp, dp;
  std::vector<TensorShard> shards;     // of each parameter
  std::unique_ptr<FlatUnit> unit;
  Numbers gradient;                    // of the whole unit, as backward leaves it; then of this rank's shard
  int along(std::string_view axis) const { return axis == "tp" ? tp : axis == "dp_shard" ? fsdp : dp; }
  Place place(const std::vector<std::string_view>& axes) const {
    Place place;
    for (std::string_view axis : axes) place.push_back({axis, along(axis)});
    return place;
  }
  // Calls with (parameter, its global element, flat index) for what lies in an interval of the unit.
  template <class Body>
  void each(Interval flat, const Body& body) const {
    for (const Piece& piece : unit->pieces(flat)) {
      const std::size_t parameter = std::stoul(unit->parameters()[static_cast<std::size_t>(piece.parameter)].name);
      for (std::int64_t e = piece.elements.begin; e < piece.elements.end; ++e) {
        body(parameter, static_cast<std::size_t>(shards[parameter].global_element(e)), static_cast<std::size_t>(piece.flat.begin + e - piece.elements.begin));
      }
    }
  }
};

struct World {
  Mesh mesh;
  std::vector<Global> globals;
  std::vector<Placement> placements;
  std::vector<Rank> ranks;
  std::vector<Numbers> gradient;   // by parameter: of one rank that holds everything and sees all tokens

  // Those that differ from `me` along the axis alone, in order.
  std::vector<Rank*> group(const Rank& me, std::string_view axis) {
    std::vector<Rank*> group;
    for (Rank& other : ranks) {
      const bool same = (axis == "tp" || other.tp == me.tp) && (axis == "dp_shard" || other.fsdp == me.fsdp) && (axis == "dp_replicate" || other.dp == me.dp);
      if (same) group.push_back(&other);
    }
    return group;
  }
};

World random_world(Random& random) {
  World world;
  world.mesh = {random.between(1, 4), random.between(1, 3), random.between(1, 3), random.between(0, 1) == 1};
  const Mesh& mesh = world.mesh;
  for (int parameter = random.between(1, 6); parameter > 0; --parameter) {
    // Sizes divide by tp, so that units of tp ranks have one layout, and what is alike lies at one place in all of them
    world.globals.push_back({{mesh.tp * random.between(1, 4), mesh.tp * random.between(1, 4)}, random.between(-1, 1), random.between(0, 1) == 1});
    world.placements.push_back(world.globals.back().placement(mesh));
    EXPECT_EQ(problem_of(world.placements.back()), "");
  }
  for (int at = 0; at < mesh.ranks(); ++at) {
    Rank& rank = world.ranks.emplace_back();
    rank.tp = at % mesh.tp;
    rank.fsdp = at / mesh.tp % mesh.fsdp;
    rank.dp = at / mesh.tp / mesh.fsdp;
    std::vector<FlatParameter> parameters;
    for (std::size_t i = 0; i < world.globals.size(); ++i) {
      rank.shards.push_back(world.globals[i].at(mesh, rank.tp));
      parameters.push_back({std::to_string(i), rank.shards.back().local_shape(), world.placements[i], world.globals[i].decay});
    }
    rank.unit = std::make_unique<FlatUnit>("u", parameters, mesh.fsdp);
    rank.gradient.assign(static_cast<std::size_t>(rank.unit->padded()), 0);
  }
  return world;
}

// Backward: ranks that see other tokens have summands of what one would have that sees all. Under sequence parallelism tp
// ranks see other rows of what is not cut; else they see the same, and have the same.
void backward(World& world, Random& random) {
  const Mesh& mesh = world.mesh;
  for (std::size_t i = 0; i < world.globals.size(); ++i) {
    world.gradient.push_back(random.numbers(world.globals[i].shape.elements()));
    const bool by_rows = mesh.sequence && world.globals[i].dim < 0;
    const std::vector<Numbers> of_rank = summands_of(world.gradient.back(), mesh.fsdp * mesh.dp * (by_rows ? mesh.tp : 1), random);
    for (Rank& rank : world.ranks) {
      const int data = rank.dp * mesh.fsdp + rank.fsdp;
      const Numbers& mine = of_rank[static_cast<std::size_t>(by_rows ? data * mesh.tp + rank.tp : data)];
      rank.each({0, rank.unit->padded()}, [&](std::size_t parameter, std::size_t global, std::size_t flat) {
        if (parameter == i) rank.gradient[flat] = mine[global];
      });
    }
  }
}

// What the placements ask for: over each axis in their order, its summands are summed; once of shards, all that is left.
void reduce(World& world) {
  bool sharded = false;
  for (std::string_view axis : summed_axes(world.placements)) {
    std::vector<Numbers> after;
    for (Rank& me : world.ranks) {
      Numbers sum = me.gradient;
      for (const Interval& run : sharded ? std::vector<Interval>{{0, static_cast<std::int64_t>(sum.size())}} : me.unit->summands_over(axis)) {
        for (std::size_t at = static_cast<std::size_t>(run.begin); at < static_cast<std::size_t>(run.end); ++at) {
          sum[at] = 0;
          for (const Rank* other : world.group(me, axis)) sum[at] += other->gradient[at];
        }
      }
      const Interval mine = me.unit->shard(me.fsdp);
      const bool scatters = after_backward(along(world.placements[0], axis)) == Move::reduce_scatter;
      after.push_back(scatters ? Numbers(sum.begin() + mine.begin, sum.begin() + mine.end) : sum);
    }
    for (std::size_t rank = 0; rank < after.size(); ++rank) world.ranks[rank].gradient = after[rank];
    sharded = sharded || after_backward(along(world.placements[0], axis)) == Move::reduce_scatter;
  }
}

TEST(Placement, SumsEveryGradientOnceOverTheRanksThatHoldSummandsOfIt) {
  Random random(2);
  for (int trial = 0; trial < 100; ++trial) {
    World world = random_world(random);
    backward(world, random);
    reduce(world);
    for (const Rank& rank : world.ranks) {
      const Interval mine = rank.unit->shard(rank.fsdp);
      ASSERT_EQ(rank.gradient.size(), static_cast<std::size_t>(mine.size()));
      rank.each(mine, [&](std::size_t parameter, std::size_t global, std::size_t flat) {
        ASSERT_EQ(rank.gradient[flat - static_cast<std::size_t>(mine.begin)], world.gradient[parameter][global]) << "trial " << trial;
      });
    }
  }
}

TEST(Placement, GivesEachRankTheNormOfTheUnshardedGradient) {
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    World world = random_world(random);
    backward(world, random);
    reduce(world);
    double expected = 0;
    for (const Numbers& whole : world.gradient) expected += std::inner_product(whole.begin(), whole.end(), whole.begin(), 0.0);

    // Each squares what it counts; then a plain sum over each axis over which parts are kept
    const std::vector<std::string_view> axes = parted_axes(world.placements);
    Numbers squares;
    for (const Rank& rank : world.ranks) {
      const Interval mine = rank.unit->shard(rank.fsdp);
      double sum = 0;
      for (const Interval& counted : rank.unit->counted(rank.place(axes))) {
        const Interval both = intersect(counted, mine);
        for (std::int64_t at = both.begin; at < both.end; ++at) sum += std::pow(rank.gradient[static_cast<std::size_t>(at - mine.begin)], 2);
      }
      squares.push_back(sum);
    }
    for (std::string_view axis : axes) {
      const Numbers before = squares;
      for (std::size_t me = 0; me < squares.size(); ++me) {
        squares[me] = 0;
        for (const Rank* other : world.group(world.ranks[me], axis)) squares[me] += before[static_cast<std::size_t>(other - world.ranks.data())];
      }
    }
    ASSERT_EQ(squares, Numbers(squares.size(), expected)) << "trial " << trial;
    ASSERT_EQ(std::count(axes.begin(), axes.end(), "dp_replicate"), 0) << "replicas have all squares";
  }
}

TEST(Placement, LetsOneRankOfAllSpeakForEachElement) {
  Random random(4);
  for (int trial = 0; trial < 100; ++trial) {
    const World world = random_world(random);
    const std::vector<std::string_view> axes{"tp", "dp_shard", "dp_replicate"};
    std::vector<Numbers> spoken;
    for (const Global& global : world.globals) spoken.emplace_back(static_cast<std::size_t>(global.shape.elements()), 0);
    for (const Rank& rank : world.ranks) {
      rank.each(rank.unit->shard(rank.fsdp), [&](std::size_t parameter, std::size_t global, std::size_t) {
        if (counts(world.placements[parameter], rank.place(axes))) ++spoken[parameter][global];
      });
    }
    for (const Numbers& times : spoken) ASSERT_EQ(times, Numbers(times.size(), 1));
  }
}

TEST(Placement, SumsFromTheInsideOutAlsoWhereSomeParametersNameFewerAxes) {
  using Axes = std::vector<std::string_view>;
  const Placement of_norm{summed_over("tp"), sharded_over("dp_shard"), summed_over("dp_replicate")};
  const Placement of_weight{cut_over("tp"), sharded_over("dp_shard"), summed_over("dp_replicate")};
  const Placement of_expert{cut_over("ep"), summed_over("dp_replicate")};
  EXPECT_EQ(summed_axes({of_weight}), (Axes{"dp_shard", "dp_replicate"}));
  EXPECT_EQ(summed_axes({of_weight, of_norm}), (Axes{"tp", "dp_shard", "dp_replicate"}));
  EXPECT_EQ(axes_of({of_expert, of_norm}), (Axes{"ep", "tp", "dp_shard", "dp_replicate"}));
  EXPECT_EQ(axes_of({{sharded_over("dp_shard")}, of_norm}), (Axes{"tp", "dp_shard", "dp_replicate"}));
  EXPECT_EQ(parted_axes({of_norm}), (Axes{"dp_shard"}));
  EXPECT_EQ(parted_axes({of_norm, of_weight}), (Axes{"tp", "dp_shard"}));
  EXPECT_TRUE(parted_axes({{}, {alike_over("tp")}}).empty());
}

TEST(Placement, RefusesWhatNoRankCouldComputeWith) {
  const auto refused = [](Held value, Held gradient, Held kept) { return problem_of({{"tp", value, gradient, kept}}); };
  for (const Along& one : {alike_over("tp"), cut_over("tp"), summed_over("tp"), sharded_over("tp"), Along{"tp", Held::same, Held::same, Held::part}}) {
    EXPECT_EQ(problem_of({one}), "");
  }
  EXPECT_EQ(refused(Held::summand, Held::same, Held::same), "over tp: only a gradient can be a summand");
  EXPECT_EQ(refused(Held::same, Held::same, Held::summand), "over tp: only a gradient can be a summand");
  EXPECT_EQ(refused(Held::part, Held::summand, Held::part), "over tp: who computes with a part has the gradient of that part");
  EXPECT_EQ(refused(Held::part, Held::part, Held::same), "over tp: who computes with a part keeps that part");
  EXPECT_EQ(refused(Held::same, Held::part, Held::part), "over tp: who computes with the whole has a gradient of the whole, or a summand of it");
  EXPECT_EQ(problem_of({cut_over("tp"), alike_over("tp")}), "over tp: said twice");
}

TEST(Placement, HasAWordForEachOfTheFourThatOccur) {
  EXPECT_STREQ(name_of(alike_over("tp")), "alike");
  EXPECT_STREQ(name_of(cut_over("tp")), "cut");
  EXPECT_STREQ(name_of(summed_over("dp_replicate")), "summed");
  EXPECT_STREQ(name_of(sharded_over("dp_shard")), "sharded");
  EXPECT_STREQ(name_of(Along{"dp_shard", Held::same, Held::same, Held::part}), "sliced");
}

TEST(Placement, SaysInWordsWhatHappensOverAnAxis) {
  EXPECT_EQ(words_of(cut_over("tp")), "each rank has a part, and the gradient of it");
  EXPECT_EQ(words_of(alike_over("tp")), "alike in use, and so is the gradient");
  EXPECT_EQ(words_of(summed_over("tp")), "alike in use; each has a summand of the gradient (all-reduce)");
  EXPECT_EQ(words_of(sharded_over("dp_shard")), "alike in use (all-gather); each has a summand of the gradient (reduce-scatter); each keeps a part");
}

}  // namespace
}  // namespace shardbook::shard
