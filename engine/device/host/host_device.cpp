#include "engine/device/host/host_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace shardbook::device {

HostDevice::HostDevice(Storage storage, base::Rank rank, std::uint64_t drain_seed)
    : Device(Kind::host, storage, rank), drain_state_(drain_seed == 0 ? 0 : drain_seed * 2654435761u + rank + 1) {}

HostDevice::~HostDevice() = default;

void* HostDevice::allocate_storage(base::Bytes bytes) { return arena_.allocate(bytes); }

void* HostDevice::pinned(base::Bytes bytes) { return allocate_storage(bytes); }

void HostDevice::stream_created(program::StreamId id, Priority) {
  queues_.resize(id + 1u);
  queues_[id].ring.resize(32);
}

void HostDevice::event_created(program::EventId id) { events_.resize(id + 1u); }

HostDevice::Item& HostDevice::Queue::push() {
  if (tail - head == ring.size()) {
    std::vector<Item> larger(ring.size() * 2);
    for (std::uint64_t at = head; at < tail; ++at) larger[at & (larger.size() - 1)] = ring[at & (ring.size() - 1)];
    ring.swap(larger);
  }
  return ring[tail++ & (ring.size() - 1)];
}

void HostDevice::issue(program::StreamId stream, const Item& item) {
  if (capturing()) captured_.emplace_back(stream, item);
  else enqueue(stream, item);
}

void HostDevice::enqueue(program::StreamId stream, const Item& issued) {
  Item& item = queues_[stream].push();
  item = issued;
  // As in CUDA: a wait binds to the last record issued before it; an event never recorded holds nobody.
  if (item.kind == ItemKind::record) item.generation = ++events_[item.event].issued;
  if (item.kind == ItemKind::wait) item.generation = events_[item.event].issued;
}

Touched HostDevice::touched() const {
  Touched touched;
  const program::OpDesc& op = op_desc();
  if (program::class_of(op.kind) == program::OpClass::communication) return touched;   // what it does is instrumented
  for (int use = 0; use < op.uses.size(); ++use) {
    const std::optional<Numbers> range = range_of(op.uses[use]);
    if (!range || range->data == nullptr) continue;
    touched.add(range->data, static_cast<std::size_t>(range->elements * base::size_of(range->stored)), (op.written_mask >> use & 1) != 0);
  }
  return touched;
}

void HostDevice::run(program::StreamId stream, const Body& body, program::OpIndex op) {
  Item item{};
  item.kind = ItemKind::body;
  item.op = op;
  item.longer = longer();
  item.host = body.host;
  if (tells_what_is_touched) item.touched = touched();
  std::memcpy(item.arguments, body.arguments, body.bytes);
  issue(stream, item);
}

void HostDevice::run_record(program::StreamId stream, program::EventId event) {
  Item item{};
  item.kind = ItemKind::record;
  item.event = event;
  issue(stream, item);
}

void HostDevice::run_wait(program::StreamId stream, program::EventId event) {
  Item item{};
  item.kind = ItemKind::wait;
  item.event = event;
  issue(stream, item);
}

Graph HostDevice::capture_ends() {
  graphs_.push_back(captured_);
  return {static_cast<int>(graphs_.size()) - 1};
}

void HostDevice::run_graph(Graph graph) {
  for (const auto& [stream, item] : graphs_[static_cast<std::size_t>(graph.id)]) enqueue(stream, item);
}

bool HostDevice::advance(Queue& queue) {
  Item& item = queue.front();
  switch (item.kind) {
    case ItemKind::wait:
      if (events_[item.event].completed < item.generation) return false;
      break;
    case ItemKind::record: events_[item.event].completed = std::max(events_[item.event].completed, item.generation); break;
    case ItemKind::body: {
      const base::Nanoseconds start = program::host_now();
      item.touched.tell();
      if (!item.host(item.arguments)) return false;
      if (item.longer > 0) stand_still(item.longer);
      if (item.op != program::no_op) {
        if (ran_.size() <= item.op) ran_.resize(item.op + 1u);
        ran_[item.op] = {start, program::host_now()};
      }
      break;
    }
  }
  ++queue.head;
  return true;
}

template <class Done>
void HostDevice::drain(Done done) {
  while (!done()) {
    bool advanced = false;
    if (drain_state_ == 0) {
      for (Queue& queue : queues_) {
        while (!queue.empty() && advance(queue)) advanced = true;
      }
    } else {
      // Draw a stream; if it cannot go on, try the others once, from there.
      drain_state_ = drain_state_ * 6364136223846793005ull + 1442695040888963407ull;
      const std::size_t first = (drain_state_ >> 33) % queues_.size();
      for (std::size_t offset = 0; offset < queues_.size() && !advanced; ++offset) {
        Queue& queue = queues_[(first + offset) % queues_.size()];
        if (!queue.empty()) advanced = advance(queue);
      }
    }
    if (advanced) continue;
    if (done()) return;
    watch();
    if (!await_peers_) stuck();
    await_peers_();
  }
}

void HostDevice::stuck() const {
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    const Queue& queue = queues_[stream];
    if (queue.empty()) continue;
    const Item& item = queue.ring[queue.head & (queue.ring.size() - 1)];
    const auto& catalogue = const_cast<HostDevice*>(this)->recorder().catalogue();
    SHARDBOOK_CHECK(item.kind != ItemKind::wait, "stream '", catalogue.streams[stream].name, "' waits for event '",
                    catalogue.events[item.event], "', which no queue can ever complete");
  }
  SHARDBOOK_CHECK(false, "no queue can go on, and there are no peers to wait for");
  std::abort();
}

void HostDevice::synchronize() {
  drain([this] { return std::all_of(queues_.begin(), queues_.end(), [](const Queue& queue) { return queue.empty(); }); });
}

void HostDevice::run_host_wait(program::EventId event) {
  const std::uint64_t generation = events_[event].issued;
  drain([this, event, generation] { return events_[event].completed >= generation; });
}

void HostDevice::step_begins(bool timed) {
  // A timed step starts from empty queues, so that its durations are its own.
  if (timed) synchronize();
}

void HostDevice::step_ends(bool timed, program::StepTimes& times) {
  if (!timed) return;
  synchronize();
  std::copy_n(ran_.begin(), std::min(ran_.size(), times.ran.size()), times.ran.begin());
}

}  // namespace shardbook::device
