#include "engine/mesh/mesh.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/mesh/near.hpp"

namespace shardbook::mesh {

namespace {

// The sizes of a regular mesh as one list of groups an axis. A rank is a number in mixed radix whose
// last digit belongs to the last axis; two ranks are in one group when all other digits agree.
std::vector<AxisGroups> groups_of_sizes(const std::vector<Axis>& axes, int world) {
  std::vector<AxisGroups> result;
  int stride = world;
  for (const Axis& axis : axes) {
    stride /= axis.size;
    AxisGroups cut{axis.name, {}};
    for (base::Rank first = 0; first < world; ++first) {
      if (first / stride % axis.size != 0) continue;
      std::vector<base::Rank> group;
      for (int place = 0; place < axis.size; ++place) group.push_back(first + place * stride);
      cut.groups.push_back(std::move(group));
    }
    result.push_back(std::move(cut));
  }
  return result;
}

// What is wrong with these groups as a partition of [0, world); empty when nothing is.
std::string flaw_of(const AxisGroups& axis, int world) {
  std::vector<bool> seen(static_cast<std::size_t>(world), false);
  for (const auto& group : axis.groups) {
    if (group.empty()) return base::text("axis '", axis.name, "' has an empty group");
    for (base::Rank rank : group) {
      if (rank < 0 || rank >= world) {
        return base::text("axis '", axis.name, "' names rank ", rank, ", but ranks run from 0 to ", world - 1);
      }
      if (seen[static_cast<std::size_t>(rank)]) {
        return base::text("axis '", axis.name, "' holds rank ", rank, " twice");
      }
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    return base::text("axis '", axis.name, "' leaves out rank ", missing - seen.begin(),
                      "; put it into a group of its own if it works alone");
  }
  return "";
}

}  // namespace

Mesh::Mesh(const std::vector<Axis>& axes) {
  std::set<std::string> names;
  for (const Axis& axis : axes) {
    SHARDBOOK_CHECK(axis.size >= 1, "axis '", axis.name, "' has size ", axis.size);
    SHARDBOOK_CHECK(names.insert(axis.name).second, "two axes are named '", axis.name, "'");
    world_ *= axis.size;
  }
  for (AxisGroups& cut : groups_of_sizes(axes, world_)) add(std::move(cut));
}

Mesh Mesh::dense(const DenseSizes& sizes) {
  return Mesh({{"pp", sizes.pp},
               {"dp_replicate", sizes.dp_replicate},
               {"dp_shard", sizes.dp_shard},
               {"cp", sizes.cp},
               {"tp", sizes.tp}});
}

base::Result<Mesh> Mesh::of_groups(int world, std::vector<AxisGroups> axes) {
  if (world < 1) return base::Error{base::text("a mesh needs at least one rank, not ", world)};
  Mesh mesh;
  mesh.world_ = world;
  mesh.regular_ = false;
  for (AxisGroups& axis : axes) {
    if (mesh.has_axis(axis.name)) return base::Error{base::text("two axes are named '", axis.name, "'")};
    if (std::string flaw = flaw_of(axis, world); !flaw.empty()) return base::Error{flaw};
    mesh.add(std::move(axis));
  }
  return mesh;
}

void Mesh::add(AxisGroups axis) {
  std::sort(axis.groups.begin(), axis.groups.end(), [](const auto& left, const auto& right) {
    return *std::min_element(left.begin(), left.end()) < *std::min_element(right.begin(), right.end());
  });
  Cut cut{std::move(axis.name), std::move(axis.groups), std::vector<int>(static_cast<std::size_t>(world_)),
          std::vector<int>(static_cast<std::size_t>(world_))};
  for (std::size_t number = 0; number < cut.groups.size(); ++number) {
    for (std::size_t place = 0; place < cut.groups[number].size(); ++place) {
      const auto rank = static_cast<std::size_t>(cut.groups[number][place]);
      cut.group_of[rank] = static_cast<int>(number);
      cut.coordinate_of[rank] = static_cast<int>(place);
    }
  }
  cuts_.push_back(std::move(cut));
}

std::vector<std::string> Mesh::axes() const {
  std::vector<std::string> names;
  for (const Cut& cut : cuts_) names.push_back(cut.name);
  return names;
}

bool Mesh::has_axis(std::string_view axis) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.name == axis; });
}

const Mesh::Cut& Mesh::cut(std::string_view axis) const {
  const auto found = std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.name == axis; });
  SHARDBOOK_CHECK(found != cuts_.end(), "the mesh has no axis '", axis, "'");
  return *found;
}

int Mesh::size(std::string_view axis) const {
  std::size_t largest = 0;
  for (const auto& group : cut(axis).groups) largest = std::max(largest, group.size());
  return static_cast<int>(largest);
}

int Mesh::coordinate(base::Rank rank, std::string_view axis) const {
  SHARDBOOK_CHECK(0 <= rank && rank < world_, "rank ", rank, " in a world of ", world_);
  return cut(axis).coordinate_of[static_cast<std::size_t>(rank)];
}

std::vector<int> Mesh::coordinates(base::Rank rank) const {
  std::vector<int> result;
  for (const Cut& cut : cuts_) result.push_back(coordinate(rank, cut.name));
  return result;
}

base::Rank Mesh::rank_at(const std::vector<int>& coordinates) const {
  SHARDBOOK_CHECK(regular_, "coordinates name one rank only in a regular mesh");
  SHARDBOOK_CHECK_EQ(coordinates.size(), cuts_.size(), "coordinates and axes");
  base::Rank rank = 0;
  for (std::size_t axis = 0; axis < cuts_.size(); ++axis) {
    const int size = static_cast<int>(cuts_[axis].groups.front().size());
    SHARDBOOK_CHECK(0 <= coordinates[axis] && coordinates[axis] < size, "coordinate ", coordinates[axis],
                    " on axis '", cuts_[axis].name, "' of size ", size);
    rank = rank * size + coordinates[axis];
  }
  return rank;
}

Group Mesh::group(base::Rank me, std::string_view axis) const {
  const int place = coordinate(me, axis);
  const Cut& found = cut(axis);
  const int number = found.group_of[static_cast<std::size_t>(me)];
  return Group{found.name, found.groups[static_cast<std::size_t>(number)], place, number};
}

const std::vector<std::vector<base::Rank>>& Mesh::groups(std::string_view axis) const {
  return cut(axis).groups;
}

Group Mesh::joined_group(base::Rank me, const std::vector<std::string>& axes) const {
  SHARDBOOK_CHECK(regular_, "axes are joined only in a regular mesh");
  SHARDBOOK_CHECK(!axes.empty(), "a group needs at least one axis");
  std::vector<std::string> others = this->axes();
  Group joined;
  for (const std::string& axis : axes) {
    const auto at = std::find(others.begin(), others.end(), axis);
    SHARDBOOK_CHECK(at != others.end(), "the mesh has no axis '", axis, "', or it is named twice");
    others.erase(at);
    joined.axis += (joined.axis.empty() ? "" : "+") + axis;
  }

  // Ranks belong together when they agree on every other axis; the groups are numbered by the order
  // in which their smallest ranks appear.
  auto key_of = [&](base::Rank rank) {
    std::vector<int> key;
    for (const std::string& axis : others) key.push_back(coordinate(rank, axis));
    return key;
  };
  const std::vector<int> mine = key_of(me);
  std::set<std::vector<int>> before_mine;
  for (base::Rank rank = 0; rank < world_; ++rank) {
    std::vector<int> key = key_of(rank);
    if (key != mine) {
      if (joined.ranks.empty()) before_mine.insert(std::move(key));
      continue;
    }
    if (rank == me) joined.index_of_me = joined.size();
    joined.ranks.push_back(rank);
  }
  joined.number = static_cast<int>(before_mine.size());
  return joined;
}

Group near_group(const Group& group, int size) {
  SHARDBOOK_CHECK(size >= 1 && group.size() % size == 0, group.size(), " ranks of ", group.axis, " in runs of ", size);
  const int run = group.index_of_me / size;
  const auto first = group.ranks.begin() + run * size;
  return Group{group.axis + "_near", {first, first + size}, group.index_of_me - run * size, group.number * (group.size() / size) + run};
}

Group Mesh::world(base::Rank me) const {
  SHARDBOOK_CHECK(0 <= me && me < world_, "rank ", me, " in a world of ", world_);
  Group all{"world", {}, me, 0};
  for (base::Rank rank = 0; rank < world_; ++rank) all.ranks.push_back(rank);
  return all;
}

}  // namespace shardbook::mesh
