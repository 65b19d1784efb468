#include "engine/checkpoint/boxes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/base/check.hpp"

namespace shardbook::checkpoint {

using shard::Box;
using shard::Interval;

namespace {

Interval& along(Box& box, int dim) { return box.along[static_cast<std::size_t>(dim)]; }

// `run` counts elements of what lies below the index that `prefix` has fixed in the dims before `dim`.
void add_boxes(const Box& whole, int dim, Interval run, Box prefix, std::vector<Box>& boxes) {
  const std::int64_t begin = whole[dim].begin;
  if (dim + 1 == whole.dims) {
    along(prefix, dim) = {begin + run.begin, begin + run.end};
    boxes.push_back(prefix);
    return;
  }
  std::int64_t row = 1;
  for (int inner = dim + 1; inner < whole.dims; ++inner) row *= whole[inner].size();
  std::int64_t first = run.begin / row;
  const std::int64_t last = run.end / row, head = run.begin % row, tail = run.end % row;
  const auto add_part_of_row = [&](std::int64_t index, Interval part) {
    Box one = prefix;
    along(one, dim) = {begin + index, begin + index + 1};
    add_boxes(whole, dim + 1, part, one, boxes);
  };
  // The end of a row, whole rows, the beginning of another
  if (head != 0 && first == last) return add_part_of_row(first, {head, tail});
  if (head != 0) add_part_of_row(first++, {head, row});
  if (first < last) {
    along(prefix, dim) = {begin + first, begin + last};
    boxes.push_back(prefix);
  }
  if (tail != 0) add_part_of_row(last, {0, tail});
}

std::string element_text(const std::array<std::int64_t, base::Shape::max_dims>& at, int dims) {
  std::string text = "[";
  for (int dim = 0; dim < dims; ++dim) text += (dim == 0 ? "" : ", ") + std::to_string(at[static_cast<std::size_t>(dim)]);
  return text + "]";
}

// The first element of what both hold; REQUIRES: that is something.
std::string both_hold(const Box& a, const Box& b) {
  std::array<std::int64_t, base::Shape::max_dims> at{};
  for (int dim = 0; dim < a.dims; ++dim) at[static_cast<std::size_t>(dim)] = std::max(a[dim].begin, b[dim].begin);
  return base::text("two boxes, ", text_of(a), " and ", text_of(b), ", both hold element ", element_text(at, a.dims));
}

bool overlap(const Box& a, const Box& b) {
  for (int dim = 0; dim < a.dims; ++dim) {
    if (a[dim].begin >= b[dim].end || b[dim].begin >= a[dim].end) return false;
  }
  return true;
}

// Boxes by where they begin along the outermost dim; beside each stand those that have not ended by then.
class Sweep {
 public:
  explicit Sweep(const std::vector<Box>& boxes) : boxes_(boxes), by_begin_(boxes.size()) {
    std::iota(by_begin_.begin(), by_begin_.end(), std::size_t{0});
    std::sort(by_begin_.begin(), by_begin_.end(), [&](std::size_t a, std::size_t b) { return boxes[a][0].begin < boxes[b][0].begin; });
  }

  std::string first_overlap() {
    for (std::size_t number : by_begin_) {
      const Box& box = boxes_[number];
      while (!by_end_.empty() && by_end_.begin()->first <= box[0].begin) {
        if (box.dims >= 2) leave(by_end_.begin()->second);
        by_end_.erase(by_end_.begin());
      }
      if (box.dims == 1 && !by_end_.empty()) return both_hold(boxes_[by_end_.begin()->second], box);
      if (box.dims >= 2) {
        if (const Box* other = enter(number)) return both_hold(*other, box);
      }
      by_end_.emplace(box[0].end, number);
    }
    return "";
  }

 private:
  // Of two dims those side by side are disjoint along the second, so its neighbours alone can touch a box. Of more dims
  // those that begin alike along the second may differ in a third: each that is there is asked.
  const Box* enter(std::size_t number) {
    const Box& box = boxes_[number];
    if (box.dims == 2) {
      const auto next = here_.lower_bound(box[1].begin);
      if (next != here_.end() && overlap(boxes_[next->second], box)) return &boxes_[next->second];
      if (next != here_.begin() && overlap(boxes_[std::prev(next)->second], box)) return &boxes_[std::prev(next)->second];
    } else {
      for (const auto& [begin, other] : here_) {
        if (overlap(boxes_[other], box)) return &boxes_[other];
      }
    }
    here_.emplace(box[1].begin, number);
    return nullptr;
  }

  void leave(std::size_t number) {
    const auto [first, last] = here_.equal_range(boxes_[number][1].begin);
    here_.erase(std::find_if(first, last, [&](const auto& one) { return one.second == number; }));
  }

  const std::vector<Box>& boxes_;
  std::vector<std::size_t> by_begin_;
  std::multimap<std::int64_t, std::size_t> by_end_;   // where each box that is here ends along dim 0
  std::multimap<std::int64_t, std::size_t> here_;     // where it begins along dim 1
};

}  // namespace

//@ checkpoint.boxes: A run of elements is the end of a row, whole rows, and the beginning of another.
std::vector<Box> boxes_of(const Box& box, Interval run) {
  SHARDBOOK_CHECK(0 <= run.begin && run.begin <= run.end && run.end <= box.elements(), "elements [", run.begin, ", ", run.end, ") of ", text_of(box));
  std::vector<Box> boxes;
  if (run.empty()) return boxes;
  if (box.dims == 0) return {box};
  add_boxes(box, 0, run, box, boxes);
  return boxes;
}
//@end

std::string problem_of_cover(const base::Shape& shape, const std::vector<Box>& boxes) {
  std::int64_t held = 0;
  for (const Box& box : boxes) {
    held += box.elements();
    if (held > shape.elements()) break;
  }
  if (shape.dims() > 0) {
    if (const std::string overlap = Sweep(boxes).first_overlap(); !overlap.empty()) return overlap;
  }
  if (held > shape.elements()) return base::text("its boxes hold more than its ", shape.elements(), " elements");
  if (held < shape.elements()) return base::text("its boxes hold ", held, " of its ", shape.elements(), " elements");
  return "";
}

std::string text_of(const Box& box) {
  std::string text = "[";
  for (int dim = 0; dim < box.dims; ++dim) text += base::text(dim == 0 ? "" : ", ", box[dim].begin, ":", box[dim].end);
  return text + "]";
}

std::vector<Run> common_runs(const Box& from, const Box& to) {
  SHARDBOOK_CHECK_EQ(from.dims, to.dims, "dims of two boxes");
  if (from.dims == 0) return {{0, 0, 1}};
  if (!overlap(from, to)) return {};
  const Box both = shard::intersect(from, to);
  // Inner dims of which both boxes hold the same extent are one run
  int dim = both.dims - 1;
  std::int64_t elements = both[dim].size();
  for (; dim > 0 && both[dim] == from[dim] && both[dim] == to[dim]; --dim) elements *= both[dim - 1].size();

  std::vector<Run> runs;
  std::array<std::int64_t, base::Shape::max_dims> at{};
  for (int inner = 0; inner < both.dims; ++inner) at[static_cast<std::size_t>(inner)] = both[inner].begin;
  const auto offset_in = [&](const Box& box) {
    std::int64_t offset = 0;
    for (int inner = 0; inner < box.dims; ++inner) offset = offset * box[inner].size() + at[static_cast<std::size_t>(inner)] - box[inner].begin;
    return offset;
  };
  while (true) {
    runs.push_back({offset_in(from), offset_in(to), elements});
    int outer = dim - 1;
    for (; outer >= 0; --outer) {
      std::int64_t& index = at[static_cast<std::size_t>(outer)];
      if (++index < both[outer].end) break;
      index = both[outer].begin;
    }
    if (outer < 0) return runs;
  }
}

base::Shape shape_of(const std::vector<std::int64_t>& sizes) {
  switch (sizes.size()) {
    case 0: return {};
    case 1: return {sizes[0]};
    case 2: return {sizes[0], sizes[1]};
    case 3: return {sizes[0], sizes[1], sizes[2]};
    default: SHARDBOOK_CHECK_EQ(sizes.size(), 4u, "dims of a shape"); return {sizes[0], sizes[1], sizes[2], sizes[3]};
  }
}

}  // namespace shardbook::checkpoint
