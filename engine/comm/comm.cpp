#include "engine/comm/comm.hpp"

#include <numeric>

#include "engine/comm/flight.hpp"
#include "engine/device/copy.hpp"

namespace shardbook::comm {

struct Communicator::InGraph {
  FlightLog::Captured calls;
  std::size_t first = 0, count = 0;   // of all that were captured
  std::uint64_t captured_as = 0;      // ticket of its first call
  bool was_launched = false;
  std::uint64_t last = 0;             // ticket of its last launch
};

Communicator::Communicator(mesh::Group group, program::GroupId id) : group_(std::move(group)), id_(id) {}
Communicator::~Communicator() = default;
Backend::Backend() : flight_(std::make_unique<Flight>()) {}
Backend::~Backend() = default;

void Communicator::ran(std::uint64_t ticket) { splits_.erase(ticket); }

program::OpDesc Communicator::describe(const char* name, program::OpKind kind, Lane lane, const Tensor& in,
                                       const Tensor& out, base::Bytes bytes, int peer) {
  program::OpDesc desc(name, kind, in.exists() ? in.nominal : out.nominal);
  if (in.exists()) desc.reads(in.use());
  if (out.exists()) desc.writes(out.use());
  const std::uint32_t sequence = lane.recorder().in_step() ? lane.recorder().next_sequence(id_) : 0;
  return desc.collective_of({id_, sequence, bytes, peer});
}

namespace {

struct Nothing {};
void nothing_on_host(const Nothing&) {}
void nothing_on_cuda(const Nothing&, const device::CudaQueue&) {}

}  // namespace

void Communicator::communicate(Lane lane, const program::OpDesc& desc, Call call) {
  call.ticket = tickets_;
  if (moves_ || !lane.recorder().in_step() || lane.recorder().step() == 0) {
    ++tickets_;
    if (log_ != nullptr) log_->called(call.ticket, lane, desc, static_cast<std::uint8_t>(call.reduction), {call.send_elements, call.receive_elements});
    return issue(lane, desc, call);
  }
  lane.device().launch(lane, desc, Nothing{}, &nothing_on_host, &nothing_on_cuda);
  ran(call.ticket);
}

void Communicator::capture_begins() {
  capturing_ = true;
  captured_from_ = tickets_;
  if (log_ != nullptr) log_->capture_begins();
}

int Communicator::capture_ends() {
  capturing_ = false;
  InGraph& graph = graphs_.emplace_back();
  if (log_ != nullptr) graph.calls = log_->capture_ends();
  graph.first = captured_;
  graph.captured_as = captured_from_;
  graph.count = static_cast<std::size_t>(tickets_ - captured_from_);
  captured_ += graph.count;
  return static_cast<int>(graphs_.size()) - 1;
}

void Communicator::launches(int number, std::int64_t step) {
  InGraph& graph = graphs_[static_cast<std::size_t>(number)];
  if (graph.count == 0) return;
  std::uint64_t ticket = tickets_;
  if (graph.was_launched) {
    // What tells of the launch before is about to tell of this one
    if (log_ != nullptr) log_->ended_through(graph.last);
    if (log_ != nullptr) log_->called_again(ticket, graph.calls, step);
    tickets_ += graph.count;
  } else {
    ticket = graph.captured_as;   // they were called as they were captured
  }
  graph.was_launched = true;
  graph.last = ticket + graph.count - 1;
  launch_calls(ticket, graph.first, graph.count);
}

void Communicator::launched(int number) {
  if (log_ != nullptr && graphs_[static_cast<std::size_t>(number)].count > 0) log_->issued(tickets_ - 1);
}

namespace {

// What a collective of one rank is: nothing, or a copy.
void copy_alone(Lane lane, const Tensor& in, const Tensor& out) {
  if (in.buffer == out.buffer && in.offset == out.offset) return;
  program::OpDesc desc("copy", program::OpKind::copy, in.nominal);
  desc.reads(in.use()).writes(out.use());
  lane.device().launch(lane, desc, device::CopyArgs{in.data, out.data, in.storage_bytes()}, &device::host::copy,
                       &device::cuda::copy);
}

}  // namespace

void Communicator::all_reduce(Lane lane, const Tensor& in, const Tensor& out, Reduction reduction) {
  SHARDBOOK_CHECK_EQ(in.elements(), out.elements(), "all_reduce over ", group_.axis);
  if (size() == 1) return copy_alone(lane, in, out);
  const auto desc = describe("all_reduce", program::OpKind::all_reduce, lane, in, out, in.nominal_bytes(), -1);
  communicate(lane, desc, {program::OpKind::all_reduce, reduction, in.data, out.data, in.elements(), in.storage});
}

void Communicator::all_gather(Lane lane, const Tensor& shard, const Tensor& full) {
  SHARDBOOK_CHECK_EQ(shard.elements() * size(), full.elements(), "all_gather over ", group_.axis);
  if (size() == 1) return copy_alone(lane, shard, full);
  const auto desc = describe("all_gather", program::OpKind::all_gather, lane, shard, full, full.nominal_bytes(), -1);
  communicate(lane, desc, {program::OpKind::all_gather, Reduction::sum, shard.data, full.data, shard.elements(), shard.storage});
}

void Communicator::reduce_scatter(Lane lane, const Tensor& full, const Tensor& shard, Beside beside) {
  SHARDBOOK_CHECK_EQ(shard.elements() * size(), full.elements(), "reduce_scatter over ", group_.axis);
  if (size() == 1) return copy_alone(lane, full, shard);
  const auto desc =
      describe("reduce_scatter", program::OpKind::reduce_scatter, lane, full, shard, full.nominal_bytes(), -1);
  Call call{program::OpKind::reduce_scatter, Reduction::sum, full.data, shard.data, shard.elements(), full.storage};
  call.beside = beside;
  communicate(lane, desc, call);
}

void Communicator::broadcast(Lane lane, const Tensor& in, const Tensor& out, int root) {
  SHARDBOOK_CHECK_EQ(in.elements(), out.elements(), "broadcast over ", group_.axis);
  if (size() == 1) return copy_alone(lane, in, out);
  const auto desc = describe("broadcast", program::OpKind::broadcast, lane, in, out, in.nominal_bytes(), root);
  communicate(lane, desc, {program::OpKind::broadcast, Reduction::sum, in.data, out.data, in.elements(), in.storage, root});
}

void Communicator::all_to_all(Lane lane, const Tensor& in, const Tensor& out,
                              const std::vector<std::int64_t>& send_elements,
                              const std::vector<std::int64_t>& receive_elements) {
  SHARDBOOK_CHECK_EQ(static_cast<int>(send_elements.size()), size(), "splits of all_to_all over ", group_.axis);
  SHARDBOOK_CHECK_EQ(send_elements.size(), receive_elements.size(), "splits of all_to_all over ", group_.axis);
  const auto sum = [](const std::vector<std::int64_t>& parts) { return std::accumulate(parts.begin(), parts.end(), std::int64_t{0}); };
  SHARDBOOK_CHECK(sum(send_elements) <= in.elements() && sum(receive_elements) <= out.elements(), "all_to_all over ", group_.axis, " of ", sum(send_elements),
                  " elements out of ", in.elements(), " and of ", sum(receive_elements), " into ", out.elements());
  if (size() == 1) {
    SHARDBOOK_CHECK_EQ(send_elements[0], receive_elements[0], "all_to_all over ", group_.axis, ", alone");
    return copy_alone(lane, in.slice(0, {send_elements[0]}), out.slice(0, {send_elements[0]}));
  }
  // The splits must outlive the call, which may run much later.
  const Splits& splits = splits_.emplace(tickets_, Splits{send_elements, receive_elements}).first->second;
  const auto desc = describe("all_to_all", program::OpKind::all_to_all, lane, in, out, in.nominal_bytes(), -1);
  communicate(lane, desc, {program::OpKind::all_to_all, Reduction::sum, in.data, out.data, in.elements(), in.storage, -1, 0, splits.send.data(), splits.receive.data()});
}

void Communicator::shift(Lane lane, const Tensor& in, const Tensor& out, int by) {
  SHARDBOOK_CHECK_EQ(in.elements(), out.elements(), "shift over ", group_.axis);
  if (size() == 1) return copy_alone(lane, in, out);
  SHARDBOOK_CHECK(by > 0 && by < size(), "shift over ", group_.axis, " by ", by, " of ", size(), " places");
  const auto desc = describe("shift", program::OpKind::shift, lane, in, out, in.nominal_bytes(), by);
  communicate(lane, desc, {program::OpKind::shift, Reduction::sum, in.data, out.data, in.elements(), in.storage, by});
}

void Communicator::send(Lane lane, const Tensor& in, int peer) {
  SHARDBOOK_CHECK(peer >= 0 && peer < size() && peer != index(), "send over ", group_.axis, " to index ", peer);
  const auto desc = describe("send", program::OpKind::send, lane, in, Tensor{}, in.nominal_bytes(), peer);
  communicate(lane, desc, {program::OpKind::send, Reduction::sum, in.data, nullptr, in.elements(), in.storage, peer});
}

void Communicator::receive(Lane lane, const Tensor& out, int peer) {
  SHARDBOOK_CHECK(peer >= 0 && peer < size() && peer != index(), "receive over ", group_.axis, " from index ", peer);
  const auto desc = describe("receive", program::OpKind::recv, lane, Tensor{}, out, out.nominal_bytes(), peer);
  communicate(lane, desc, {program::OpKind::recv, Reduction::sum, nullptr, out.data, out.elements(), out.storage, peer});
}

namespace {

// A group of one: its collectives are nothing, or a copy.
class Alone final : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  void issue(Lane, const program::OpDesc& desc, const Call&) override {
    SHARDBOOK_CHECK(false, desc.name, " in a group of one: there is no peer");
  }
};

}  // namespace

std::unique_ptr<Communicator> Backend::communicator_or_alone(device::Device& device, const mesh::Group& group) {
  if (group.size() > 1) return communicator(device, group);
  return std::make_unique<Alone>(group, device.recorder().add_group({group.axis, group.ranks}));
}

}  // namespace shardbook::comm
