// lanes/marks: spans that stand out, by the row that they are on, so that a row in sight asks for its own alone.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::lanes {

class Marks {
 public:
  Marks() = default;
  // In the order given for each track: find's are by start.
  Marks& operator=(const std::vector<timeline::SpanRef>& spans) {
    clear();
    for (const timeline::SpanRef span : spans) by_track_[span.track].push_back(span.index);
    size_ = spans.size();
    return *this;
  }
  void clear() {
    by_track_.clear();
    size_ = 0;
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // Places in the track's columns; none of a row without a track (-1).
  const std::vector<std::uint32_t>& on(std::int32_t track) const {
    static const std::vector<std::uint32_t> none;
    const auto found = by_track_.find(static_cast<std::uint32_t>(track));
    return found == by_track_.end() ? none : found->second;
  }

 private:
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_track_;
  std::size_t size_ = 0;
};

}  // namespace shardbook::lanes
