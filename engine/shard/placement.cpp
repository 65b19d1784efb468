#include "engine/shard/placement.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace shardbook::shard {

const char* name_of(Held held) {
  static constexpr const char* names[] = {"same", "part", "summand"};
  return names[static_cast<int>(held)];
}

const char* name_of(Move move) {
  static constexpr const char* names[] = {"nothing", "slice", "all-gather", "reduce-scatter", "all-reduce"};
  return names[static_cast<int>(move)];
}

Along along(const Placement& placement, std::string_view axis) {
  const auto found = std::find_if(placement.begin(), placement.end(), [&](const Along& one) { return one.axis == axis; });
  return found == placement.end() ? alike_over(axis) : *found;
}

bool equal(const Placement& one, const Placement& other) {
  const std::vector<std::string_view> axes = axes_of({one, other});
  return std::all_of(axes.begin(), axes.end(), [&](std::string_view axis) { return along(one, axis) == along(other, axis); });
}

Placement joined(Placement inner, const Placement& outer) {
  inner.insert(inner.end(), outer.begin(), outer.end());
  return inner;
}

std::string problem_of(const Placement& placement) {
  for (std::size_t at = 0; at < placement.size(); ++at) {
    const Along& one = placement[at];
    const std::string over = base::text("over ", one.axis, ": ");
    for (std::size_t before = 0; before < at; ++before) {
      if (placement[before].axis == one.axis) return over + "said twice";
    }
    // A rank that computed with a summand would compute something else
    if (one.value == Held::summand || one.kept == Held::summand) return over + "only a gradient can be a summand";
    if (one.value == Held::part && one.gradient != Held::part) return over + "who computes with a part has the gradient of that part";
    if (one.value == Held::part && one.kept != Held::part) return over + "who computes with a part keeps that part";
    if (one.value == Held::same && one.gradient == Held::part) return over + "who computes with the whole has a gradient of the whole, or a summand of it";
  }
  return {};
}

//@ shard.move: Which collective leads from what ranks hold to what they shall hold.
Move move_between(Held from, Held to) {
  SHARDBOOK_CHECK(to != Held::summand, "nothing makes summands of what is ", name_of(from));
  if (from == to) return Move::nothing;
  if (from == Held::summand) return to == Held::same ? Move::all_reduce : Move::reduce_scatter;
  return from == Held::part ? Move::all_gather : Move::slice;
}
//@end

const char* name_of(const Along& one) {
  if (one == alike_over(one.axis)) return "alike";
  if (one == cut_over(one.axis)) return "cut";
  if (one == summed_over(one.axis)) return "summed";
  return one == sharded_over(one.axis) ? "sharded" : "sliced";
}

std::string words_of(const Along& one) {
  if (one.value == Held::part) return "each rank has a part, and the gradient of it";
  std::string words = "alike in use";
  if (before_use(one) != Move::nothing) words += base::text(" (", name_of(before_use(one)), ")");
  words += one.gradient == Held::same ? ", and so is the gradient" : base::text("; each has a summand of the gradient (", name_of(after_backward(one)), ")");
  if (one.kept == Held::part) words += "; each keeps a part";
  return words;
}

std::vector<std::string_view> axes_of(const std::vector<Placement>& placements) {
  std::vector<std::string_view> axes;
  for (const Placement& placement : placements) {
    // Each stands before those that its placement names after it
    for (auto one = placement.rbegin(); one != placement.rend(); ++one) {
      if (std::find(axes.begin(), axes.end(), one->axis) != axes.end()) continue;
      const auto next = one == placement.rbegin() ? axes.end() : std::find(axes.begin(), axes.end(), std::prev(one)->axis);
      axes.insert(next, one->axis);
    }
  }
  return axes;
}

namespace {

template <class Is>
std::vector<std::string_view> axes_where(const std::vector<Placement>& placements, const Is& is) {
  std::vector<std::string_view> axes = axes_of(placements);
  std::erase_if(axes, [&](std::string_view axis) {
    return std::none_of(placements.begin(), placements.end(), [&](const Placement& placement) { return is(along(placement, axis)); });
  });
  return axes;
}

}  // namespace

std::vector<std::string_view> summed_axes(const std::vector<Placement>& placements) {
  return axes_where(placements, [](const Along& one) { return one.gradient == Held::summand; });
}

std::vector<std::string_view> parted_axes(const std::vector<Placement>& placements) {
  return axes_where(placements, [](const Along& one) { return one.kept == Held::part; });
}

//@ shard.counts: Of ranks that keep the same, the first one counts.
bool counts(const Placement& placement, const Place& place) {
  return std::all_of(place.begin(), place.end(), [&](const Coordinate& on) { return on.index == 0 || along(placement, on.axis).kept != Held::same; });
}
//@end

}  // namespace shardbook::shard
