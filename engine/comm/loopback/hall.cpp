#include "engine/comm/loopback/hall.hpp"

#include <algorithm>
#include <exception>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "engine/comm/flight.hpp"

namespace shardbook::comm {

namespace {

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Meetings& meetings, const mesh::Group& group, program::GroupId id)
      : Communicator(group, id), meetings_(meetings), pairs_(2 * group.ranks.size()) {}

 protected:
  void issue(Lane lane, const program::OpDesc& desc, const Call& call) override {
    struct Args {
      HostCommunicator* mine;
      std::uint64_t ticket;
      const char* file;
      const std::int64_t* send;
      const std::int64_t* receive;
      Visit visit;
    };
    Args args{this, call.ticket, lane.where.file, call.send_elements, call.receive_elements, visit_of(lane, desc, call)};
    lane.device().launch(
        lane, desc, args, +[](const Args& call) -> bool {
          if (!call.mine->meetings_.attend(call.mine->index(), call.visit, call.file, call.send, call.receive)) return false;
          if (call.mine->log() != nullptr) call.mine->log()->ended(call.ticket);
          if (call.send != nullptr) call.mine->ran(call.ticket);
          return true;
        },
        static_cast<void (*)(const Args&, const device::CudaQueue&)>(nullptr));
    if (log() != nullptr) log()->issued(call.ticket);
  }

 private:
  Visit visit_of(Lane lane, const program::OpDesc& desc, const Call& call) {
    const program::OpKey& key = lane.recorder().key();
    Visit visit;
    visit.kind = call.kind;
    visit.reduction = call.reduction;
    visit.dtype = call.dtype;
    visit.nominal = desc.dtype;
    visit.phase = key.phase;
    visit.layer = key.layer;
    visit.micro_batch = key.micro_batch;
    visit.peer = call.peer;
    visit.line = lane.where.line;
    visit.elements = visit.in_elements = visit.out_elements = call.elements;
    visit.in = reinterpret_cast<std::uint64_t>(call.in);
    visit.out = reinterpret_cast<std::uint64_t>(call.out);
    switch (call.kind) {
      case program::OpKind::all_gather: visit.out_elements *= size(); break;
      case program::OpKind::reduce_scatter: visit.in_elements *= size(); break;
      case program::OpKind::all_to_all: visit.out_elements = std::accumulate(call.receive_elements, call.receive_elements + size(), std::int64_t{0}); break;
      default: break;
    }
    visit.ticket = number_of(call)++;
    return visit;
  }

  // The number of this call among its like. Sends and receives are numbered by pair, for the other ranks know nothing of them;
  // collectives without them, for each number has a place at which all meet, and the next round waits for this one.
  std::uint64_t& number_of(const Call& call) {
    if (!program::is_pair(call.kind)) return collectives_;
    return pairs_[2 * static_cast<std::size_t>(call.peer) + (call.kind == program::OpKind::recv ? 1 : 0)];
  }

  Meetings& meetings_;
  std::uint64_t collectives_ = 0;
  std::vector<std::uint64_t> pairs_;
};

std::string seconds_text(std::chrono::nanoseconds time) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << std::chrono::duration<double>(time).count() << " s";
  return out.str();
}

class HostBackend final : public Backend {
 public:
  HostBackend(Hall& hall, device::HostDevice& device, Patience patience)
      : hall_(hall), device_(device), rank_(device.recorder().rank()), patience_(patience), exceptions_(std::uncaught_exceptions()) {
    hall_.roll().enter(rank_);
    device_.set_await_peers([this] { await_change(); });
  }
  ~HostBackend() override {
    device_.set_await_peers({});
    hall_.roll().leave(rank_, std::uncaught_exceptions() > exceptions_);
  }
  std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) override {
    const program::GroupId id = device.recorder().add_group({group.axis, group.ranks});
    Meetings& meetings = hall_.meetings(group);
    mine_.push_back({&meetings, group.index_of_me});
    auto made = std::make_unique<HostCommunicator>(meetings, group, id);
    made->keep_log(flight().add(group));
    return made;
  }
  std::string version() const override { return hall_.kind(); }

 private:
  // No queue of this rank can go on before a peer has.
  void await_change() {
    if (hall_.roll().await_change(rank_, seen_)) throw base::Failure(deadlock());
    if (patience_.timeout.count() > 0) check_patience();
  }
  std::string deadlock();
  void check_patience();

  Hall& hall_;
  device::HostDevice& device_;
  base::Rank rank_;
  Patience patience_;
  int exceptions_;
  std::uint32_t seen_ = 0;
  std::vector<std::pair<Meetings*, int>> mine_;   // with this rank's place in each
};

std::string HostBackend::deadlock() {
  std::vector<std::string> waiting;
  for (Meetings* meetings : hall_.all()) {
    for (const Meetings::Waiting& one : meetings->waiting()) {
      std::string missing;
      for (const base::Rank rank : one.missing) missing += base::text(missing.empty() ? "rank " : ", ", rank);
      waiting.push_back(base::text("rank ", one.rank, " in ", one.call, " for ", missing, " (", one.site, ")"));
    }
  }
  std::sort(waiting.begin(), waiting.end());
  std::string list;
  constexpr std::size_t most_named = 8;
  for (std::size_t i = 0; i < std::min(waiting.size(), most_named); ++i) list += (i > 0 ? "; " : "") + waiting[i];
  if (waiting.size() > most_named) list += base::text("; and ", waiting.size() - most_named, " more");
  return base::text("all ranks wait for each other, and none can go on (a deadlock): ", list,
                    ". Do all ranks issue the same collectives in one order, and does every send meet its receive?");
}

void HostBackend::check_patience() {
  // The call that this rank waits in longest
  Meetings::Waiting longest;
  for (const auto& [meetings, index] : mine_) {
    for (Meetings::Waiting& one : meetings->waiting(index)) {
      if (longest.since == 0 || one.since < longest.since) longest = std::move(one);
    }
  }
  const std::chrono::nanoseconds waited(longest.since == 0 ? 0 : program::host_now() - longest.since);
  if (waited < std::min(patience_.timeout, Patience::most_for_stopped)) return;

  // Who does not come may itself wait, and not here, for one that is stopped
  const auto stopped_beside = [&] {
    std::string stopped;
    for (base::Rank rank = 0; rank < hall_.roll().ranks(); ++rank) {
      const bool named = std::find(longest.missing.begin(), longest.missing.end(), rank) != longest.missing.end();
      if (!named && hall_.condition_of(rank) == Condition::stopped) stopped += base::text("; ", hall_.name_of(rank), " is stopped");
    }
    return stopped;
  };

  // Whose fault is it? One that cannot come, else one that does not wait itself: who waits will name whom it waits for. And
  // so will who is between two looks at what it waits for, where another is stopped: for a moment that seems not to wait.
  std::string culprits;
  const bool over = waited >= patience_.timeout, long_over = waited >= 2 * patience_.timeout;
  for (const base::Rank rank : longest.missing) {
    const Condition condition = hall_.condition_of(rank);
    if (condition == Condition::runs) {
      if (!over || (hall_.roll().waits(rank) && !long_over)) continue;
      if (waited < patience_.timeout + Patience::more_beside_stopped && !stopped_beside().empty()) continue;
    }
    if (condition == Condition::gone && waited < patience_.timeout + Patience::more_for_gone) continue;
    constexpr const char* ends[] = {", which does not come", ", which is stopped", ", which has ended"};
    culprits += base::text(culprits.empty() ? "" : " and ", hall_.name_of(rank), ends[static_cast<int>(condition)]);
  }
  if (culprits.empty()) return;
  throw base::Failure(base::text("waited ", seconds_text(waited), " in ", longest.call, " for ", culprits, " (", longest.site, "; --comm-timeout ",
                                 static_cast<double>(patience_.timeout.count()) / 1000, ")", stopped_beside()));
}

}  // namespace

std::unique_ptr<Backend> make_backend_in(Hall& hall, device::HostDevice& device, Patience patience) {
  return std::make_unique<HostBackend>(hall, device, patience);
}

}  // namespace shardbook::comm
