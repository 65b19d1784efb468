// timeline/edges: each way once; see edges.hpp.
#include "engine/timeline/edges.hpp"

#include <map>

namespace shardbook::timeline {

Edges::Edges(const std::vector<Edge>& edges) {
  stored_.reserve(edges.size());
  std::map<Way, std::uint32_t> numbers;
  for (const Edge& edge : edges) {
    const auto [found, is_new] = numbers.try_emplace(Way{edge.from.track, edge.to.track, edge.kind}, static_cast<std::uint32_t>(ways_.size()));
    if (is_new) ways_.push_back(found->first);
    stored_.push_back({found->second, edge.from.index, edge.to.index});
  }
  ways_.shrink_to_fit();
}

}  // namespace shardbook::timeline
