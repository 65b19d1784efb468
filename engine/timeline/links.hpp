// timeline/links: from a device span to the host call that launched it, and back.
//
// Kineto pairs the two by an equal correlation id, unique in a rank. The table is made once, 12 bytes
// a row that has a correlation; a Links lives no longer than its timeline.
#pragma once

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
  // The host row of this correlation; not valid() if none.
  SpanRef call(std::uint32_t correlation) const;

  struct Entry {
    std::uint32_t correlation;
    SpanRef span;
  };

 private:
  const Timeline* timeline_;
  std::vector<Entry> host_, device_;      // ascending by correlation
};

}  // namespace shardbook::timeline
