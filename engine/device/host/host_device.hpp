// device/host: the CPU as a device, with real queues.
//
// What is issued waits in its stream's FIFO queue. When the host has to wait (host_wait, synchronize),
// it runs queue heads itself: an op runs, an event completes, a wait holds its stream until the event
// it names has been recorded *that often*. A collective whose peers have not come holds its stream and
// nothing else. So every legal order of a GPU's streams is a legal order here, and a seed picks one at
// random: a missing wait then gives wrong numbers instead of luck.
//
// One thread: the rank's own. Ops are timed on the host's clock as they run.
//
// A graph is a list of what was issued, with its arguments as they were; a replay puts it into the queues again. It saves
// little, but whatever a step takes from its arguments and should take from memory is wrong at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/device/host/arena.hpp"
#include "engine/device/host/touched.hpp"

namespace shardbook::device {

class HostDevice : public Device {
 public:
  // `drain_seed` 0 runs each stream as far as it goes, in turn; any other seed draws the next stream at
  // random before each command.
  HostDevice(Storage storage, base::Rank rank, std::uint64_t drain_seed);
  ~HostDevice() override;

  void* pinned(base::Bytes bytes) override;
  void synchronize() override;
  bool captures() const override { return true; }
  void drop_graphs() override { graphs_.clear(); }
  GraphInfo info(Graph graph) const override { return {graphs_[static_cast<std::size_t>(graph.id)].size(), 0}; }

  // Called when no queue can go on before a peer has: should return when something may have changed.
  // Without it a stuck queue is a check failure.
  void set_await_peers(std::function<void()> await_peers) { await_peers_ = std::move(await_peers); }

 protected:
  void* allocate_storage(base::Bytes bytes) override;
  void stream_created(program::StreamId id, Priority priority) override;
  void event_created(program::EventId id) override;
  void run(program::StreamId stream, const Body& body, program::OpIndex op) override;
  void run_record(program::StreamId stream, program::EventId event) override;
  void run_wait(program::StreamId stream, program::EventId event) override;
  void run_host_wait(program::EventId event) override;
  void capture_begins(program::StreamId) override { captured_.clear(); }
  Graph capture_ends() override;
  void run_graph(Graph graph) override;
  void step_begins(bool timed) override;
  void step_ends(bool timed, program::StepTimes& times) override;

 private:
  enum class ItemKind : std::uint8_t { body, record, wait };
  struct Item {
    ItemKind kind;
    program::EventId event;
    std::uint64_t generation;
    program::OpIndex op;
    base::Nanoseconds longer;
    bool (*host)(const void*);
    Touched touched;
    alignas(16) std::byte arguments[Body::max_bytes];
  };
  // A ring whose size is a power of two; it grows only when a step is longer than any before.
  struct Queue {
    std::vector<Item> ring;
    std::uint64_t head = 0, tail = 0;
    bool empty() const { return head == tail; }
    Item& front() { return ring[head & (ring.size() - 1)]; }
    Item& push();
  };
  struct EventState {
    std::uint64_t issued = 0, completed = 0;
  };

  // What the op that run() is given has declared.
  Touched touched() const;
  // Puts it into its stream's queue, or into the graph that is captured.
  void issue(program::StreamId stream, const Item& item);
  void enqueue(program::StreamId stream, const Item& item);
  // Runs one item of the queue if it can go on.
  bool advance(Queue& queue);
  // Runs queue heads until `done` says so.
  template <class Done>
  void drain(Done done);
  [[noreturn]] void stuck() const;

  std::vector<Queue> queues_;
  std::vector<EventState> events_;
  HostArena arena_;
  std::vector<std::pair<program::StreamId, Item>> captured_;
  std::vector<std::vector<std::pair<program::StreamId, Item>>> graphs_;
  std::vector<program::TimeSpan> ran_;
  std::uint64_t drain_state_;
  std::function<void()> await_peers_;
};

}  // namespace shardbook::device
