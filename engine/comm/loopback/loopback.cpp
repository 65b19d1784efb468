#include "engine/comm/loopback/loopback.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <tuple>

namespace shardbook::comm {

// The calls of one group that some, but not all, ranks have come to.
class Meetings {
 public:
  // What a rank brings. The same fields as Communicator::Call, which is not visible here.
  struct Visit {
    program::OpKind kind;
    Reduction reduction;
    const void* in;
    void* out;
    std::int64_t elements;
    base::DType dtype;
    int peer;
    std::uint64_t ticket;
    const std::int64_t* send_elements;
    const std::int64_t* receive_elements;
  };

  Meetings(LoopbackHub& hub, const mesh::Group& group) : hub_(hub), axis_(group.axis), ranks_(group.ranks), size_(group.size()) {}

  // True when the call of this rank has been carried out. Asked again until then.
  bool attend(int index, const Visit& visit);
  // Of every meeting that waits: "rank 0 is in send 3 over pp, for rank 1", one a rank.
  void tell(std::vector<std::string>& waiting);

 private:
  using Key = std::tuple<int, int, std::uint64_t>;  // from, to (both -1 for a collective), ticket
  struct Meeting {
    std::vector<Visit> visits;
    std::vector<char> came;
    int arrived = 0, left = 0;
    bool done = false;
  };

  void carry_out(const Meeting& meeting) const;
  template <class T>
  void reduce(const Meeting& meeting) const;
  void move(const Meeting& meeting) const;

  LoopbackHub& hub_;
  std::string axis_;
  std::vector<base::Rank> ranks_;
  int size_;
  std::mutex mutex_;
  std::map<Key, Meeting> meetings_;
};

bool Meetings::attend(int index, const Visit& visit) {
  std::lock_guard lock(mutex_);
  // A collective is a meeting of all; a send and its receive are a meeting of two.
  Key key{-1, -1, visit.ticket};
  int expected = size_;
  if (visit.kind == program::OpKind::send) key = {index, visit.peer, visit.ticket};
  if (visit.kind == program::OpKind::recv) key = {visit.peer, index, visit.ticket};
  if (std::get<0>(key) >= 0) expected = 2;

  Meeting& meeting = meetings_[key];
  if (meeting.visits.empty()) {
    meeting.visits.resize(size_);
    meeting.came.resize(size_);
  }
  if (!meeting.came[index]) {
    meeting.came[index] = 1;
    meeting.visits[index] = visit;
    ++meeting.arrived;
  }
  // The last to arrive does the work, and tells those who wait.
  if (!meeting.done && meeting.arrived == expected) {
    carry_out(meeting);
    meeting.done = true;
    hub_.changed();
  }
  if (!meeting.done) return false;
  if (++meeting.left == expected) meetings_.erase(key);
  return true;
}

void Meetings::tell(std::vector<std::string>& waiting) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, meeting] : meetings_) {
    if (meeting.done) continue;
    for (int index = 0; index < size_; ++index) {
      if (!meeting.came[index]) continue;
      const Visit& visit = meeting.visits[index];
      std::string missing;
      for (int other = 0; other < size_; ++other) {
        const bool expected = std::get<0>(key) < 0 || other == std::get<0>(key) || other == std::get<1>(key);
        if (expected && !meeting.came[other]) missing += base::text(missing.empty() ? "for rank " : ", ", ranks_[other]);
      }
      waiting.push_back(base::text("rank ", ranks_[index], " in ", program::name_of(visit.kind), " ", visit.ticket, " over ", axis_, " ", missing));
    }
  }
}

void Meetings::carry_out(const Meeting& meeting) const {
  const auto first = std::find(meeting.came.begin(), meeting.came.end(), 1) - meeting.came.begin();
  const Visit& any = meeting.visits[first];
  for (int index = 0; index < size_; ++index) {
    const Visit& visit = meeting.visits[index];
    if (!meeting.came[index] || any.kind == program::OpKind::send || any.kind == program::OpKind::recv) continue;
    SHARDBOOK_CHECK(visit.kind == any.kind && visit.dtype == any.dtype &&
                        (visit.elements == any.elements || any.kind == program::OpKind::all_to_all),
                    "ranks disagree on collective ", any.ticket, " of a group of ", size_, ": index ", first,
                    " calls ", program::name_of(any.kind), " of ", any.elements, " elements, index ", index, " ",
                    program::name_of(visit.kind), " of ", visit.elements);
  }
  if (any.kind == program::OpKind::all_reduce || any.kind == program::OpKind::reduce_scatter) {
    switch (any.dtype) {
      case base::DType::f32: return reduce<float>(meeting);
      case base::DType::f64: return reduce<double>(meeting);
      case base::DType::i32: return reduce<std::int32_t>(meeting);
      case base::DType::bf16: break;
    }
    SHARDBOOK_CHECK(false, "the host reduces no ", base::name_of(any.dtype));
  }
  move(meeting);
}

template <class T>
void Meetings::reduce(const Meeting& meeting) const {
  // Reduce a short run of elements at a time, ranks in group order, and hand it to whoever gets it: all
  // of them, or the one whose shard it is. In and out may be the same memory.
  constexpr std::int64_t run = 1024;
  T total[run];
  const bool scatter = meeting.visits[0].kind == program::OpKind::reduce_scatter;
  const std::int64_t elements = meeting.visits[0].elements;
  for (int shard = 0; shard < (scatter ? size_ : 1); ++shard) {
    for (std::int64_t begin = 0; begin < elements; begin += run) {
      const std::int64_t count = std::min(run, elements - begin);
      for (int index = 0; index < size_; ++index) {
        const T* in = static_cast<const T*>(meeting.visits[index].in) + shard * elements + begin;
        for (std::int64_t at = 0; at < count; ++at) {
          if (index == 0) total[at] = in[at];
          else if (meeting.visits[0].reduction == Reduction::max) total[at] = std::max(total[at], in[at]);
          else total[at] += in[at];
        }
      }
      for (int index = 0; index < size_; ++index) {
        if (scatter && index != shard) continue;
        std::copy_n(total, count, static_cast<T*>(meeting.visits[index].out) + begin);
      }
    }
  }
}

void Meetings::move(const Meeting& meeting) const {
  for (int to = 0; to < size_; ++to) {
    if (!meeting.came[to]) continue;
    const Visit& receiver = meeting.visits[to];
    const std::int64_t width = base::size_of(receiver.dtype);
    auto copy = [&](const void* from, std::int64_t from_element, std::int64_t to_element, std::int64_t elements) {
      const void* source = static_cast<const std::byte*>(from) + from_element * width;
      void* target = static_cast<std::byte*>(receiver.out) + to_element * width;
      if (source != target) std::memcpy(target, source, static_cast<std::size_t>(elements * width));
    };
    switch (receiver.kind) {
      case program::OpKind::all_gather:
        for (int from = 0; from < size_; ++from) copy(meeting.visits[from].in, 0, from * receiver.elements, receiver.elements);
        break;
      case program::OpKind::broadcast: copy(meeting.visits[receiver.peer].in, 0, 0, receiver.elements); break;
      case program::OpKind::recv: copy(meeting.visits[receiver.peer].in, 0, 0, receiver.elements); break;
      case program::OpKind::all_to_all: {
        std::int64_t target = 0;
        for (int from = 0; from < size_; ++from) {
          const Visit& sender = meeting.visits[from];
          std::int64_t source = 0;
          for (int before = 0; before < to; ++before) source += sender.send_elements[before];
          SHARDBOOK_CHECK_EQ(sender.send_elements[to], receiver.receive_elements[from], "all_to_all: index ", from,
                             " sends to index ", to, " another count than that one expects");
          copy(sender.in, source, target, receiver.receive_elements[from]);
          target += receiver.receive_elements[from];
        }
        break;
      }
      default: break;
    }
  }
}

LoopbackHub::LoopbackHub() = default;
LoopbackHub::~LoopbackHub() = default;

Meetings& LoopbackHub::meetings(const mesh::Group& group) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Meetings>& found = meetings_[{group.axis, group.ranks}];
  if (!found) found = std::make_unique<Meetings>(*this, group);
  expected_.insert(group.ranks.begin(), group.ranks.end());
  return *found;
}

void LoopbackHub::enter(base::Rank rank) {
  std::lock_guard lock(mutex_);
  entered_.insert(rank);
  ++present_;
}

void LoopbackHub::leave(bool by_failure) {
  std::lock_guard lock(mutex_);
  --present_;
  // Others wait for a rank that failed: its cause is the first, and no deadlock.
  failed_ = failed_ || by_failure;
}

void LoopbackHub::changed() {
  {
    std::lock_guard lock(mutex_);
    ++version_;
    looked_ = 0;
  }
  wake_.notify_all();
}

void LoopbackHub::await_change(std::uint64_t& seen) {
  std::unique_lock lock(mutex_);
  if (version_ == seen) {
    // This rank has looked since the last meeting ended, and can do nothing. If that is so of all, it stays so.
    ++looked_;
    const bool all_came = std::includes(entered_.begin(), entered_.end(), expected_.begin(), expected_.end());
    if (looked_ == present_ && all_came && !failed_) {
      --looked_;
      lock.unlock();
      throw base::Failure(deadlock());
    }
    wake_.wait_for(lock, std::chrono::milliseconds(20), [&] { return version_ != seen; });
    if (version_ == seen) --looked_;
  }
  seen = version_;
}

std::string LoopbackHub::deadlock() {
  std::vector<Meetings*> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [group, meetings] : meetings_) all.push_back(meetings.get());
  }
  std::vector<std::string> waiting;
  for (Meetings* meetings : all) meetings->tell(waiting);
  std::sort(waiting.begin(), waiting.end());
  std::string list;
  constexpr std::size_t most_named = 8;
  for (std::size_t i = 0; i < std::min(waiting.size(), most_named); ++i) list += (i > 0 ? "; " : "") + waiting[i];
  if (waiting.size() > most_named) list += base::text("; and ", waiting.size() - most_named, " more");
  return base::text("all ranks wait for each other, and none can go on (a deadlock): ", list,
                    ". Do all ranks issue the same collectives in one order, and does every send meet its receive?");
}

namespace {

class LoopbackCommunicator final : public Communicator {
 public:
  LoopbackCommunicator(Meetings& meetings, const mesh::Group& group, program::GroupId id)
      : Communicator(group, id), meetings_(meetings), pair_tickets_(2 * group.ranks.size()) {}

 protected:
  void issue(Lane lane, const program::OpDesc& desc, const Call& call) override {
    struct Args {
      LoopbackCommunicator* mine;
      std::uint64_t ticket;
      Meetings::Visit visit;
    };
    Args args{this, call.ticket,
              {call.kind, call.reduction, call.in, call.out, call.elements, call.dtype, call.peer, call.ticket,
               call.send_elements, call.receive_elements}};
    // Sends and receives are numbered by pair: the other ranks know nothing of them.
    if (call.kind == program::OpKind::send) args.visit.ticket = pair_tickets_[2 * call.peer]++;
    if (call.kind == program::OpKind::recv) args.visit.ticket = pair_tickets_[2 * call.peer + 1]++;
    lane.device().launch(
        lane, desc, args, +[](const Args& call) -> bool {
          if (!call.mine->meetings_.attend(call.mine->index(), call.visit)) return false;
          if (call.visit.send_elements != nullptr) call.mine->ran(call.ticket);
          return true;
        },
        static_cast<void (*)(const Args&, const device::CudaQueue&)>(nullptr));
  }

 private:
  Meetings& meetings_;
  std::vector<std::uint64_t> pair_tickets_;
};

class LoopbackBackend final : public Backend {
 public:
  LoopbackBackend(LoopbackHub& hub, base::Rank rank) : hub_(hub), exceptions_(std::uncaught_exceptions()) { hub_.enter(rank); }
  ~LoopbackBackend() override { hub_.leave(std::uncaught_exceptions() > exceptions_); }
  std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) override {
    const program::GroupId id = device.recorder().add_group({group.axis, group.ranks});
    return std::make_unique<LoopbackCommunicator>(hub_.meetings(group), group, id);
  }
  std::string version() const override { return "loopback"; }

 private:
  LoopbackHub& hub_;
  int exceptions_;
};

}  // namespace

std::unique_ptr<Backend> make_loopback_backend(LoopbackHub& hub, device::Device& device) {
  auto* host = dynamic_cast<device::HostDevice*>(&device);
  SHARDBOOK_CHECK(host != nullptr, "loopback joins host devices only");
  host->set_await_peers([&hub, seen = std::uint64_t{0}]() mutable { hub.await_change(seen); });
  return std::make_unique<LoopbackBackend>(hub, device.recorder().rank());
}

}  // namespace shardbook::comm
