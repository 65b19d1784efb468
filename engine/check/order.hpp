// check/order: what has surely ended when the next op of a stream starts?
//
// A vector clock for each stream says of every stream how many of its ops have ended by then. An event keeps the
// clock of its stream as it was recorded; a wait takes over what the event kept. So a wait that is relayed (stream
// A records, B waits and records another event, C waits for that one) orders A before C, though B ran nothing in
// between. What the host awaited has ended before anything that is issued afterwards, on any stream.
//
// Events are CUDA's: a wait is for the last record that was issued before it, and one for an event that was never
// recorded is for nothing. Two ops that are ordered only by what another rank does between two collectives are
// not ordered here, nor are two collectives of one communicator on two streams: no program should lean on either.
//
// Sources: Lamport 1978, "Time, Clocks"; Flanagan & Freund 2009, "FastTrack" (an op is a pair of stream and count,
// compared with a clock in one look); pytorch/pytorch @666c810d, torch/cuda/_sanitizer.py, StreamSynchronizations (the
// same for PyTorch's streams and events).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::check {

// An op's place: the `count`-th of its stream, from 1 on, over all steps.
struct Stamp {
  program::StreamId stream = 0;
  std::uint32_t count = 0;
};

// By stream: so many of its ops have ended.
using Clock = std::vector<std::uint32_t>;

class Order {
 public:
  // Ids beyond these sizes grow them.
  Order(std::size_t streams, std::size_t events) : streams_(streams), events_(events) {}

  // Commands in the order of issue. `op` returns the op's stamp.
  Stamp op(program::StreamId stream);
  void record(program::StreamId stream, program::EventId event);
  void wait(program::StreamId stream, program::EventId event);
  void host_wait(program::EventId event);
  void read_back(program::StreamId stream);  // the host waits for all that the stream holds

  // Whether `op` has ended before the next op of `stream` starts.
  bool ended(Stamp op, program::StreamId stream);
  // From here on `stream` waits for all that is in `clock`, as if it had been told to.
  void assume(program::StreamId stream, const Clock& clock) { join(clock_of(stream), clock); }
  // What has ended once all that was issued to the stream so far has.
  const Clock& clock(program::StreamId stream) { return clock_of(stream); }

 private:
  static void join(Clock& into, const Clock& other);
  Clock& clock_of(program::StreamId stream);  // with what the host has awaited in it
  Clock& kept_by(program::EventId event);

  struct Stream {
    Clock clock;
    std::uint32_t host_version = 0;
  };
  std::vector<Stream> streams_;
  std::vector<Clock> events_;
  Clock host_;
  std::uint32_t host_version_ = 0;
};

}  // namespace shardbook::check
