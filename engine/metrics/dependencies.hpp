// metrics/dependencies: what decided when a span could start?
//
// Of all that a span depends on, the one that was ready last. Used by the critical path and by the
// sentence on an exposed span, so that both name the same reason.
#pragma once

#include <map>
#include <vector>

#include "engine/metrics/partition.hpp"
#include "engine/timeline/links.hpp"

namespace shardbook::metrics {

struct Decision {
  enum class Kind : std::uint8_t {
    none,       // nothing recorded
    device,     // `from`, a device span, had to end first
    host,       // `from`, the launching call, came later than all that
  };
  Kind kind = Kind::none;
  SpanRef from;
  timeline::EdgeKind edge = timeline::EdgeKind::stream;   // of kind device
  bool inferred = false;
};

// Made once for a window; holds the device work and the host waits of each rank in it. Making it costs O(spans), so that
// who asks of many windows within one makes it of that one, and narrows it to each in turn.
class Dependencies {
 public:
  Dependencies(const Timeline& timeline, Window window);

  // From now on what does not touch this window is not known. O(1).
  // REQUIRES: it lies in the window that this was made for.
  void narrow(Window window) { known_ = window; }

  // REQUIRES: a device span of the window.
  Decision decide(SpanRef device_span) const;
  // The last wait (class sync) of this rank's host that ended by `time`; not valid() if none. Of any thread: in PyTorch the
  // thread of backward begins when that of forward has got there.
  SpanRef host_wait_before(Rank rank, Nanoseconds time) const;
  // The device span whose end released this host wait; not valid() if it did not have to wait.
  SpanRef released_by(SpanRef host_wait) const;
  // The device span of any rank that ended last by `time`.
  SpanRef last_ended(Nanoseconds time) const;
  // How many device spans ended within the window.
  std::size_t device_spans() const;

 private:
  struct OfRank {
    explicit OfRank(timeline::Links links) : links(std::move(links)) {}
    timeline::Links links;
    bool has_edges = false;                                // the trace says what streams waited for
    std::map<std::int64_t, std::vector<SpanRef>> streams;  // by start
    std::vector<SpanRef> by_end;
  };
  SpanRef last_ended_of(const OfRank& rank, Nanoseconds time) const;
  SpanRef before_on_stream(const OfRank& rank, SpanRef span) const;

  bool touches(SpanRef span) const { return timeline_.end(span) >= known_.start && timeline_.start(span) <= known_.end; }

  const Timeline& timeline_;
  Window known_;
  std::map<Rank, OfRank> ranks_;
  std::map<Rank, std::vector<SpanRef>> host_waits_;   // by end
};

}  // namespace shardbook::metrics
