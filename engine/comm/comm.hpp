// comm: how do ranks exchange bytes?
//
// A Communicator is this rank's place in one group. Its calls are ops on a lane like any other: they are
// recorded, return at once, and run in stream order when every rank of the group has issued them.
// Names and meanings are NCCL's (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/colls.html).
//
// Invariants
//   - Every rank of the group issues the same collectives of this communicator in the same order; the
//     order is hashed and compared over ranks (program::collective_order_hash).
//   - A group of one issues nothing: where in and out differ, a copy.
//   - Reductions are sums or maxima; a sum's order is fixed per backend, and all ranks get the same bits.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/device/device.hpp"
#include "engine/mesh/mesh.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::comm {

using device::Lane;
using tensor::Tensor;

class Flight;      // comm/flight.hpp
class FlightLog;   // comm/flight_log.hpp

enum class Reduction : std::uint8_t { sum, max };

// What the memory that collectives read and write is to who carries them out: memory like any other; known beforehand, so that
// peers may reach into it; or known as a window that all ranks have at one place, so that copy engines can gather it.
enum class Buffers : std::uint8_t { plain, registered, windows };

// What a call has beside it on its device. Beside nothing it may take the multiprocessors that kernels would have; a hint,
// which changes no number.
enum class Beside : std::uint8_t { kernels, nothing };

class Communicator {
 public:
  Communicator(mesh::Group group, program::GroupId id);
  virtual ~Communicator();

  int size() const { return static_cast<int>(group_.ranks.size()); }
  int index() const { return group_.index_of_me; }  // of this rank in the group
  // How many calls keep splits, for they have not run yet.
  std::size_t splits_kept() const { return splits_.size(); }
  const mesh::Group& group() const { return group_; }

  // Set-up: some of its calls will have nothing beside them. Collective; all ranks of the world call it alike, before seal().
  virtual void prepare_beside_nothing() {}

  // Keeps its calls there from now on; before the first one.
  void keep_log(FlightLog& log) { log_ = &log; }

  // An ideal network, for labs: from the second step on a call is an op that moves nothing, in its place in the stream.
  // The first step's are real, so that what is computed with later are numbers of a real run's kind. They are wrong.
  void move_nothing() { moves_ = false; }

  // Graphs (Device::begin_capture). Its calls from capture_begins() to capture_ends() go into one, which has a number from then on.
  // launches() comes before each launch, the first one included, and launched() after it: what the graph holds has been called.
  // REQUIRES of launches(): what the graph was launched for before has ended.
  void capture_begins();
  int capture_ends();
  void launches(int graph, std::int64_t step);
  void launched(int graph);

  // out = Σ (or max) over ranks of in. Same shape on all ranks; out may be in.
  void all_reduce(Lane lane, const Tensor& in, const Tensor& out, Reduction reduction = Reduction::sum);
  // full = the shards of all ranks, in group order. full has size() times as many elements; shard may be
  // its own place in full.
  void all_gather(Lane lane, const Tensor& shard, const Tensor& full);
  // shard = this rank's part of Σ over ranks of full. shard may be its own place in full.
  void reduce_scatter(Lane lane, const Tensor& full, const Tensor& shard, Beside beside = Beside::kernels);
  // out = in of the rank with index `root`.
  void broadcast(Lane lane, const Tensor& in, const Tensor& out, int root);
  // Splits by destination and source, front to back: send[i] elements of `in` go to rank i, receive[i] come from it to `out`.
  // `in` and `out` hold that much, or more.
  void all_to_all(Lane lane, const Tensor& in, const Tensor& out, const std::vector<std::int64_t>& send_elements,
                  const std::vector<std::int64_t>& receive_elements);
  // A step round a ring: out = in of the rank `by` places before this one in the group, whose first comes behind its last;
  // so `in` goes to the rank `by` places on. Both at once, and all ranks of the group call it alike, so none waits for a
  // partner that waits for it. `in` and `out` do not overlap. NCCL's ncclSend and ncclRecv in one group, MPI's MPI_Sendrecv.
  void shift(Lane lane, const Tensor& in, const Tensor& out, int by);
  // A pair: the partner issues the other. `peer` is an index in the group.
  void send(Lane lane, const Tensor& in, int peer);
  void receive(Lane lane, const Tensor& out, int peer);

 protected:
  struct Call {
    program::OpKind kind;
    Reduction reduction = Reduction::sum;
    const void* in = nullptr;
    void* out = nullptr;
    std::int64_t elements = 0;  // as NCCL counts: of `in` for all_reduce, broadcast, send, shift; of the shard else
    base::DType dtype = base::DType::f32;  // storage
    int peer = -1;              // of shift: by
    std::uint64_t ticket = 0;  // counts this communicator's calls over the whole run
    // Of all_to_all: size() entries each, owned by the communicator until the call has run.
    const std::int64_t* send_elements = nullptr;
    const std::int64_t* receive_elements = nullptr;
    Beside beside = Beside::kernels;
  };
  // Runs one described call on the device.
  virtual void issue(Lane lane, const program::OpDesc& desc, const Call& call) = 0;
  // The call of this ticket has run, or needs what it points to no more: its splits go. On the rank's own thread.
  void ran(std::uint64_t ticket);
  // Null where nobody keeps one.
  FlightLog* log() { return log_; }
  bool capturing() const { return capturing_; }
  // A launch calls `count` captured calls, as tickets from `ticket` on; of all that were ever captured, those from `first` on.
  virtual void launch_calls(std::uint64_t ticket, std::size_t first, std::size_t count) { (void)ticket, (void)first, (void)count; }

 private:
  void communicate(Lane lane, const program::OpDesc& desc, Call call);
  program::OpDesc describe(const char* name, program::OpKind kind, Lane lane, const Tensor& in, const Tensor& out,
                           base::Bytes bytes, int peer);

  mesh::Group group_;
  program::GroupId id_;
  std::uint64_t tickets_ = 0;
  bool moves_ = true;
  struct InGraph;   // what a graph holds of this communicator's
  bool capturing_ = false;
  std::uint64_t captured_from_ = 0;     // ticket
  std::size_t captured_ = 0;
  std::vector<InGraph> graphs_;
  FlightLog* log_ = nullptr;
  struct Splits {
    std::vector<std::int64_t> send, receive;
  };
  std::map<std::uint64_t, Splits> splits_;   // of all_to_all calls that have not run, by ticket
};

// Makes this rank's communicators. Collective: every rank makes those it belongs to, in one order.
class Backend {
 public:
  Backend();
  virtual ~Backend();
  virtual std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) = 0;
  // The same; a group of one needs no backend.
  std::unique_ptr<Communicator> communicator_or_alone(device::Device& device, const mesh::Group& group);
  // Whether its calls may be in a graph (Device::begin_capture), and be issued again with that.
  virtual bool captures() const { return false; }
  // Throws base::Failure if a collective has failed asynchronously; cheap enough for each step's end.
  virtual void check() {}
  // What this rank's communicators have called.
  virtual Flight& flight() { return *flight_; }
  // Ends what is under way, so that a rank whose peer died can leave.
  virtual void abort() {}
  virtual std::string version() const = 0;  // "NCCL 2.28.3", "loopback"

 private:
  std::unique_ptr<Flight> flight_;
};

}  // namespace shardbook::comm
