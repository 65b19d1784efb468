// timeline/timeline: names of the kinds, and sizes; see timeline.hpp.
#include "engine/timeline/timeline.hpp"

#include "engine/base/check.hpp"

namespace shardbook::timeline {

const char* name_of(Class cls) {
  switch (cls) {
    case Class::compute: return "compute";
    case Class::communication: return "communication";
    case Class::memory: return "memory";
    case Class::sync: return "sync";
    case Class::host: return "host";
    case Class::annotation: return "annotation";
  }
  return "?";
}

const char* name_of(Clock clock) {
  switch (clock) {
    case Clock::measured: return "measured";
    case Clock::modelled: return "modelled";
    case Clock::wall: return "wall";
    case Clock::unknown: return "unknown";
  }
  return "?";
}

const char* name_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::stream: return "stream";
    case EdgeKind::event: return "event";
    case EdgeKind::host: return "host";
    case EdgeKind::collective: return "collective";
    case EdgeKind::communicator: return "communicator";
    case EdgeKind::limiter: return "limiter";
    case EdgeKind::buffer: return "buffer";
  }
  return "?";
}

const char* name_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::other: return "other";
    case CollectiveOp::all_reduce: return "all_reduce";
    case CollectiveOp::all_gather: return "all_gather";
    case CollectiveOp::reduce_scatter: return "reduce_scatter";
    case CollectiveOp::all_to_all: return "all_to_all";
    case CollectiveOp::broadcast: return "broadcast";
    case CollectiveOp::reduce: return "reduce";
    case CollectiveOp::send: return "send";
    case CollectiveOp::recv: return "recv";
    case CollectiveOp::barrier: return "barrier";
    case CollectiveOp::shift: return "shift";
  }
  return "?";
}

std::string clock_text(const Provenance& provenance) {
  const std::string on = provenance.device.empty() ? "" : " on " + provenance.device;
  switch (provenance.clock) {
    case Clock::measured: return "measured" + on;
    case Clock::modelled: return "MODELLED " + provenance.profile;
    case Clock::wall: return "wall clock" + on;
    case Clock::unknown: return "clock not stated";
  }
  return "?";
}

Timeline::Timeline() : details(1), collectives(1), groups(1) {}

std::size_t Timeline::spans() const {
  std::size_t sum = 0;
  for (const Track& track : tracks) sum += track.size();
  return sum;
}

namespace {
template <class T>
std::size_t heap(const std::vector<T>& column) {
  return column.capacity() * sizeof(T);
}
}  // namespace

std::size_t Timeline::memory() const {
  std::size_t sum = strings.memory() + heap(tracks) + heap(details) + heap(collectives) + edges.memory() + heap(steps);
  for (const Track& track : tracks) {
    sum += heap(track.start) + heap(track.end) + heap(track.label) + heap(track.correlation) + heap(track.detail) +
           heap(track.collective) + heap(track.step) + heap(track.cls) + heap(track.flags);
  }
  for (const Group& group : groups) sum += sizeof(Group) + heap(group.ranks);
  for (const Counter& counter : counters) sum += heap(counter.time) + heap(counter.value);
  return sum;
}

const Provenance* Timeline::provenance(Rank rank) const {
  for (const Provenance& entry : ranks) {
    if (entry.rank == rank) return &entry;
  }
  return nullptr;
}

std::string line_text(const Timeline& timeline, Line line) {
  if (!line.known()) return "";
  return base::text(timeline.strings[line.file], ":", line.line);
}

}  // namespace shardbook::timeline
