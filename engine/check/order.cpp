#include "engine/check/order.hpp"

#include <algorithm>

namespace shardbook::check {

using program::EventId;
using program::StreamId;

void Order::join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t stream = 0; stream < other.size(); ++stream) into[stream] = std::max(into[stream], other[stream]);
}

Clock& Order::clock_of(StreamId stream) {
  if (streams_.size() <= stream) streams_.resize(std::size_t{stream} + 1);
  Stream& found = streams_[stream];
  if (found.clock.size() < streams_.size()) found.clock.resize(streams_.size(), 0);
  if (found.host_version != host_version_) {
    join(found.clock, host_);
    found.host_version = host_version_;
  }
  return found.clock;
}

Clock& Order::kept_by(EventId event) {
  if (events_.size() <= event) events_.resize(std::size_t{event} + 1);
  return events_[event];
}

Stamp Order::op(StreamId stream) { return {stream, ++clock_of(stream)[stream]}; }

void Order::record(StreamId stream, EventId event) { kept_by(event) = clock_of(stream); }

void Order::wait(StreamId stream, EventId event) { join(clock_of(stream), kept_by(event)); }

void Order::host_wait(EventId event) {
  join(host_, kept_by(event));
  ++host_version_;
}

void Order::read_back(StreamId stream) {
  join(host_, clock_of(stream));
  ++host_version_;
}

bool Order::ended(Stamp op, StreamId stream) {
  const Clock& clock = clock_of(stream);
  return op.stream < clock.size() && clock[op.stream] >= op.count;
}

}  // namespace shardbook::check
