#include "engine/shard/shard.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"

namespace shardbook::shard {

Interval intersect(Interval a, Interval b) {
  const Interval both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.empty() ? Interval{} : both;
}

Interval part_of(std::int64_t extent, int parts, int index) {
  SHARDBOOK_CHECK(extent >= 0 && parts >= 1, "extent ", extent, " in ", parts, " parts");
  SHARDBOOK_CHECK(0 <= index && index < parts, "part ", index, " of ", parts);
  const std::int64_t least = extent / parts;
  const std::int64_t longer = extent % parts;
  const std::int64_t begin = index * least + std::min<std::int64_t>(index, longer);
  return {begin, begin + least + (index < longer ? 1 : 0)};
}

std::vector<Interval> cut(std::int64_t extent, int parts) {
  std::vector<Interval> result;
  for (int index = 0; index < parts; ++index) result.push_back(part_of(extent, parts, index));
  return result;
}

namespace {

base::Shape shape_of(const std::array<std::int64_t, base::Shape::max_dims>& sizes, int dims) {
  switch (dims) {
    case 0: return {};
    case 1: return {sizes[0]};
    case 2: return {sizes[0], sizes[1]};
    case 3: return {sizes[0], sizes[1], sizes[2]};
    default: return {sizes[0], sizes[1], sizes[2], sizes[3]};
  }
}

}  // namespace

base::Shape Box::shape() const {
  std::array<std::int64_t, base::Shape::max_dims> sizes{};
  for (std::size_t dim = 0; dim < static_cast<std::size_t>(dims); ++dim) sizes[dim] = along[dim].size();
  return shape_of(sizes, dims);
}

bool Box::operator==(const Box& other) const {
  return dims == other.dims && std::equal(along.begin(), along.begin() + dims, other.along.begin());
}

Box whole(const base::Shape& global) {
  Box box;
  box.dims = global.dims();
  for (int dim = 0; dim < box.dims; ++dim) box.along[static_cast<std::size_t>(dim)] = {0, global[dim]};
  return box;
}

Box slice(const base::Shape& global, int dim, Interval part) {
  SHARDBOOK_CHECK(0 <= dim && dim < global.dims(), "dim ", dim, " of ", base::to_string(global));
  SHARDBOOK_CHECK(0 <= part.begin && part.begin <= part.end && part.end <= global[dim], "[", part.begin, ", ",
                  part.end, ") of dim ", dim, " of ", base::to_string(global));
  Box box = whole(global);
  box.along[static_cast<std::size_t>(dim)] = part;
  return box;
}

Box intersect(const Box& a, const Box& b) {
  SHARDBOOK_CHECK_EQ(a.dims, b.dims, "dims of two boxes");
  Box both;
  both.dims = a.dims;
  for (std::size_t dim = 0; dim < static_cast<std::size_t>(a.dims); ++dim) {
    both.along[dim] = intersect(a.along[dim], b.along[dim]);
  }
  return both;
}

std::int64_t TensorShard::global_element(std::int64_t local_element) const {
  SHARDBOOK_CHECK(0 <= local_element && local_element < local_elements(), "element ", local_element, " of ", name,
                  ", of which ", local_elements(), " are here");
  // Take the local coordinates off from the innermost dim on, and weigh them with the global strides.
  std::int64_t global = 0;
  std::int64_t stride = 1;
  for (int dim = box.dims - 1; dim >= 0; --dim) {
    const Interval mine = box[dim];
    global += (mine.begin + local_element % mine.size()) * stride;
    local_element /= mine.size();
    stride *= global_shape[dim];
  }
  return global;
}

TensorShard replicated(std::string name, const base::Shape& global) {
  return {std::move(name), global, whole(global)};
}

TensorShard cut_along(std::string name, const base::Shape& global, int dim, int parts, int index) {
  SHARDBOOK_CHECK(0 <= dim && dim < global.dims(), "dim ", dim, " of ", name, " ", base::to_string(global));
  return {std::move(name), global, slice(global, dim, part_of(global[dim], parts, index))};
}

}  // namespace shardbook::shard
