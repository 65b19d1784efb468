// timeline/links: from a device span to the host call that launched it, and back.
//
// Kineto pairs the two by an equal correlation id, unique in a rank. The table is made once, in
// time and memory linear in the host rows of that rank.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

class Links {
 public:
  Links(const Timeline& timeline, Rank rank);

  // The runtime or driver call that launched this span; not valid() if the trace has none.
  SpanRef launch_of(SpanRef device_span) const;
  // The device span (or sync row) that this call launched; not valid() if none.
  SpanRef launched_by(SpanRef host_span) const;

 private:
  const Timeline* timeline_;
  std::unordered_map<std::uint32_t, SpanRef> host_;
  std::unordered_map<std::uint32_t, SpanRef> device_;
};

}  // namespace shardbook::timeline
