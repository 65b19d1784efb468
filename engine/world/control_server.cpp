// world/control_server: gather, serve, watch, and see out.
#include "engine/world/control_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include "engine/world/process_state.hpp"
#include "engine/world/rendezvous.hpp"
#include "engine/world/secret.hpp"

namespace shardbook::world {

namespace {

using namespace std::chrono_literals;

constexpr auto poll_interval = 50ms;
// How long a report of failure waits for the death that it may be the echo of.
constexpr auto report_grace = 200ms;
// A gap between two rounds of the server longer than this is its own, not the ranks' silence.
constexpr auto own_gap = 1s;
// A connection that has not said who it is by then is a stranger's.
constexpr auto hello_deadline = 5s;
// So many strangers are listened to at once, besides one for each rank.
constexpr std::ptrdiff_t most_strangers = 64;
constexpr int most_accepted_at_once = 256;
// How long the ranks that have all left are given to close their side.
constexpr auto farewell = 2s;

std::string seconds(std::chrono::steady_clock::duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return base::text(tenths / 10, ".", tenths % 10, " s");
}

// "rank 3", "ranks 3, 5-7"
std::string name_ranks(const std::vector<base::Rank>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += base::text(first > 0 ? ", " : "", ranks[first]);
    if (last > first) out += base::text("-", ranks[last]);
    first = last + 1;
  }
  return out;
}

}  // namespace

ControlServer::ControlServer(Listener listener, const Launch& launch, const ProcessOptions& options)
    : listener_(listener), launch_(launch), options_(options), by_rank_(launch.place.size, nullptr),
      thread_([this] { serve(); }) {}

ControlServer::~ControlServer() {
  thread_.join();
  close(listener_.fd);
}

void ControlServer::serve() {
  while (!finished()) {
    try {
      serve_round();
    } catch (const std::exception& failure) {
      fail(base::text("rank 0 (pid ", getpid(), " on ", host_, "): its control server failed: ", failure.what()));
    }
  }
}

void ControlServer::serve_round() {
  wait_for_events();
  accept_peers();
  for (std::size_t at = 0; at < peers_.size(); ++at) {
    Peer& peer = *peers_[at];
    peer.channel.flush();
    const std::uint64_t heard_before = peer.channel.bytes_received();
    for (const Frame& frame : peer.channel.receive()) handle(peer, frame);
    if (peer.channel.bytes_received() > heard_before) peer.last_heard = Clock::now();
    if (peer.channel.closed()) handle_closed(peer);
  }
  std::erase_if(peers_, [](const auto& peer) { return peer->channel.closed() && !peer->hello; });
  check_times();
}

void ControlServer::wait_for_events() {
  // Without descriptors for more connections the listener would wake this thread at once, again and again.
  std::vector<pollfd> waits;
  if (Clock::now() >= no_accept_until_) waits.push_back({listener_.fd, POLLIN, 0});
  for (const auto& peer : peers_) {
    if (peer->channel.closed()) continue;
    const short events = peer->channel.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    waits.push_back({peer->channel.fd(), events, 0});
  }
  poll(waits.data(), waits.size(), static_cast<int>(poll_interval.count()));
}

void ControlServer::accept_peers() {
  if (Clock::now() < no_accept_until_) return;
  for (int accepted = 0; accepted < most_accepted_at_once; ++accepted) {
    pollfd wait{listener_.fd, POLLIN, 0};
    if (poll(&wait, 1, 0) != 1) return;
    const int fd = accept4(listener_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        no_accept_until_ = Clock::now() + 100ms;
        forget_stranger();
      }
      return;
    }
    peers_.push_back(std::make_unique<Peer>(fd));
    peers_.back()->last_heard = Clock::now();
    const auto strangers = std::count_if(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->hello; });
    if (strangers > most_strangers + launch_.place.size) forget_stranger();
  }
}

void ControlServer::forget_stranger() {
  const auto oldest = std::find_if(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer->hello; });
  if (oldest != peers_.end()) peers_.erase(oldest);
}

void ControlServer::handle(Peer& peer, const Frame& frame) {
  if (peer.channel.closed()) return;
  if (!peer.hello) {
    if (frame.kind == Kind::hello && !peer.said) return challenge(peer, frame.payload);
    if (frame.kind == Kind::proof && peer.said) return admit(peer, frame.payload);
    return peer.channel.shut();
  }
  switch (frame.kind) {
    case Kind::call: return join_call(peer, frame.payload);
    case Kind::ping: return peer.channel.send(Kind::pong, Writer().integer(now()).bytes());
    case Kind::stop_request: return propose_stop();
    case Kind::stop_promise:
      peer.promised_step = Reader(frame.payload).integer();
      return decide_stop();
    case Kind::goodbye:
      peer.left = true;
      ++left_;
      last_left_time_ = Clock::now();
      check_departures();
      decide_stop();
      if (left_ == launch_.place.size) send_all(Kind::all_left);
      return;
    case Kind::ask: {
      const std::chrono::milliseconds patience(std::clamp<std::int64_t>(Reader(frame.payload).integer(), 1, 60'000));
      if (inquiry_.ask(peer.hello->rank, launch_.place.size, patience)) send_all(Kind::asked);
      return;
    }
    case Kind::account: return inquiry_.answer(peer.hello->rank, Reader(frame.payload).string());
    case Kind::claim: return take_claims(peer, frame.payload);
    case Kind::failure:
      peer.reported = true;
      if (!report_) {
        report_ = base::text(describe(peer), ": ", Reader(frame.payload).string());
        report_time_ = Clock::now();
      }
      return;
    default: return;
  }
}

// --- Gathering -----------------------------------------------------------------------------------

void ControlServer::challenge(Peer& peer, const std::string& payload) {
  const std::optional<Hello> hello = decode_hello(payload);
  if (!hello) return peer.channel.shut();
  if (hello->run_id != launch_.run_id) {
    peer.channel.send(Kind::refusal, Writer().string("another run is served here").bytes());
    return peer.channel.shut();
  }
  peer.said = hello;
  const std::string random = random_bytes32();
  peer.expected_proof = proof_of_rank(launch_.secret, payload, random);
  peer.channel.send(Kind::challenge, Writer().string(random).string(proof_of_server(launch_.secret, payload, random)).bytes());
}

void ControlServer::admit(Peer& peer, const std::string& proof) {
  if (!equal_secretly(proof, peer.expected_proof)) return peer.channel.shut();
  // A rank of this run; the only one of its number?
  const Hello hello = *peer.said;
  const auto refuse = [&](const std::string& why) {
    peer.channel.send(Kind::refusal, Writer().string(why).bytes());
    peer.channel.shut();
  };
  const int size = launch_.place.size;
  if (hello.size != size || hello.rank < 0 || hello.rank >= size) {
    return refuse(base::text("it says rank ", hello.rank, " of ", hello.size, ", but the run of rank 0 has ", size, " ranks"));
  }
  if (by_rank_[hello.rank] != nullptr) {
    return refuse(base::text(describe(*by_rank_[hello.rank]), " is here already; if two runs share this "
                             "host, give each its own SHARDBOOK_PORT"));
  }

  // Welcome it; late ranks of a failed run hear of the failure at once.
  peer.hello = hello;
  peer.channel.allow_long_frames();
  by_rank_[hello.rank] = &peer;
  const bool same_clock = hello.clock_id == clock_id_;
  peer.channel.send(Kind::welcome, Writer().integer(getpid()).string(host_).integer(same_clock).integer(hello.pid_space == pid_space_).bytes());
  if (cause_) peer.channel.send(Kind::failed, Writer().string(*cause_).bytes());
  if (++arrived_ == size) all_here();
}

void ControlServer::all_here() {
  // Nodes, where a launcher does not name them: hosts in the order of their lowest rank.
  const bool named = std::all_of(by_rank_.begin(), by_rank_.end(),
                                 [](const Peer* peer) { return peer->hello->node >= 0; });
  std::map<std::string, int> node_of_host;
  for (Peer* peer : by_rank_) {
    if (!named) {
      const int next = static_cast<int>(node_of_host.size());
      peer->hello->node = node_of_host.try_emplace(peer->hello->host, next).first->second;
    }
  }

  // No two ranks may take the same GPU.
  std::map<std::pair<int, int>, const Peer*> taken;
  for (const Peer* peer : by_rank_) {
    const auto [other, is_free] = taken.try_emplace({peer->hello->node, peer->hello->local_rank}, peer);
    if (!is_free) {
      return fail(base::text(describe(*other->second), " and ", describe(*peer), " both say local rank ",
                             peer->hello->local_rank, " of node ", peer->hello->node));
    }
  }
  for (Peer* peer : by_rank_) {
    peer->channel.send(Kind::all_here, Writer().integer(peer->hello->node).bytes());
  }
}

std::string ControlServer::missing_ranks() const {
  std::vector<base::Rank> missing;
  for (int rank = 0; rank < launch_.place.size; ++rank) {
    if (by_rank_[rank] == nullptr) missing.push_back(rank);
  }
  return name_ranks(missing);
}

// --- Serving -------------------------------------------------------------------------------------

void ControlServer::join_call(Peer& peer, const std::string& payload) {
  Reader reader(payload);
  const auto call = static_cast<World::Call>(reader.integer());
  const auto root = static_cast<base::Rank>(reader.integer());
  const std::string name = World::name_of(call, root);
  std::string contribution = reader.string();
  if (!reader.ended() || call > World::Call::gather || root < 0 || root >= launch_.place.size) {
    return fail(base::text(describe(peer), " sent a call that there is not; do all ranks run the same build?"));
  }
  if (in_call_ == 0) {
    call_name_ = name;
    first_caller_ = peer.hello->rank;
  }
  if (name != call_name_ || peer.in_call) {
    return fail(base::text(describe(peer), " called ", name, " while rank ", first_caller_, " waits in ",
                           call_name_, "; all ranks must make the same calls in the same order"));
  }
  peer.contribution = std::move(contribution);
  peer.in_call = true;
  ++in_call_;
  check_departures();
  if (in_call_ < launch_.place.size) return;

  // The last has come: answer all.
  std::vector<std::string> contributions;
  for (Peer* rank : by_rank_) {
    contributions.push_back(std::move(rank->contribution));
    rank->contribution.clear();
    rank->in_call = false;
  }
  in_call_ = 0;
  const auto result = World::take_result(call, root, std::move(contributions));
  Writer writer;
  std::size_t bytes = 8;
  for (const std::string& one : result) bytes += 8 + one.size();
  writer.reserve(bytes).integer(static_cast<std::int64_t>(result.size()));
  for (const std::string& one : result) writer.string(one);
  if (call != World::Call::gather) return send_all(Kind::result, writer.bytes());
  // Only rank 0 gets what was gathered; the others hear that it is there.
  for (Peer* rank : by_rank_) {
    rank->channel.send(Kind::result, rank->hello->rank == 0 ? std::string_view(writer.bytes()) : Writer().integer(0).bytes());
  }
}

void ControlServer::check_departures() {
  if (in_call_ == 0 || left_ == 0) return;
  for (const Peer* peer : by_rank_) {
    if (peer != nullptr && peer->left) {
      return fail(base::text(describe(*peer), " returned while rank ", first_caller_, " waits in ", call_name_));
    }
  }
}

void ControlServer::propose_stop() {
  if (stop_proposed_) return;
  stop_proposed_ = true;
  send_all(Kind::stop_proposal);
}

void ControlServer::decide_stop() {
  if (!stop_proposed_ || stop_decided_) return;
  std::int64_t foremost = -1;
  for (const Peer* peer : by_rank_) {
    if (peer == nullptr || (!peer->promised_step && !peer->left)) return;
    if (peer->promised_step) foremost = std::max(foremost, *peer->promised_step);
  }
  stop_decided_ = true;
  send_all(Kind::stop_decision, Writer().integer(foremost).bytes());
}

void ControlServer::take_claims(const Peer& peer, const std::string& payload) {
  Reader reader(payload);
  const std::int64_t step = reader.integer();
  const std::size_t count = reader.count(3 * 8);
  for (std::size_t at = 0; at < count; ++at) {
    Claim claim;
    claim.what = static_cast<std::uint64_t>(reader.integer());
    claim.of = static_cast<int>(std::clamp<std::int64_t>(reader.integer(), 1, launch_.place.size));
    claim.value = static_cast<std::uint64_t>(reader.integer());
    const std::optional<Dispute> dispute = claims_.add(peer.hello->rank, step, claim);
    if (!dispute) continue;
    send_all(Kind::dispute, Writer().integer(dispute->step).integer(static_cast<std::int64_t>(dispute->what)).integer(dispute->one).integer(dispute->other).bytes());
  }
}

// Those that are stopped or have left will not answer.
void ControlServer::check_inquiry() {
  if (!inquiry_.under_way()) return;
  std::vector<std::string> absent(by_rank_.size());
  std::vector<bool> expected(by_rank_.size(), true);
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    const Peer* peer = by_rank_[rank];
    if (peer == nullptr || peer->channel.closed()) absent[rank] = "is not there";
    else if (peer->left) absent[rank] = "has returned";
    else if (is_stopped(*peer)) absent[rank] = "is stopped";
    expected[rank] = absent[rank].empty();
  }
  if (!inquiry_.over(expected)) return;
  const auto [askers, said] = inquiry_.take();
  Writer writer;
  writer.integer(static_cast<std::int64_t>(said.size()));
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    const std::string name = by_rank_[rank] == nullptr ? base::text("rank ", rank) : describe(*by_rank_[rank]);
    const std::string why = said[rank] ? "" : absent[rank].empty() ? "does not answer" : absent[rank];
    writer.string(name).string(why).string(said[rank].value_or(""));
  }
  for (const base::Rank asker : askers) by_rank_[static_cast<std::size_t>(asker)]->channel.send(Kind::accounts, writer.bytes());
}

void ControlServer::send_all(Kind kind, std::string_view payload) {
  for (const auto& peer : peers_) {
    if (peer->hello && !peer->channel.closed()) peer->channel.send(kind, payload);
  }
}

// --- Watching ------------------------------------------------------------------------------------

void ControlServer::handle_closed(Peer& peer) {
  if (!peer.hello || peer.left || peer.reported || cause_) return;
  peer.left = true;
  fail(base::text(describe(peer), " ", silent_end, " (killed?)"));
}

void ControlServer::check_times() {
  // Time in which this thread did not run (the process was stopped) is nobody's silence.
  const auto time = Clock::now();
  if (time - last_round_ > own_gap) {
    for (const auto& peer : peers_) peer->last_heard += time - last_round_;
  }
  last_round_ = time;

  if (time - last_beat_ > options_.heartbeat_timeout / 4) {
    last_beat_ = time;
    send_all(Kind::beat);
  }
  if (cause_) return end_stopped();
  check_inquiry();
  if (report_ && time - report_time_ > report_grace) return fail(*report_);
  if (arrived_ < launch_.place.size && time - start_ > options_.connect_timeout) {
    return fail(base::text(missing_ranks(), " of ", launch_.place.size, " did not arrive at ", host_, ":",
                           listener_.port, " within ", seconds(options_.connect_timeout),
                           ": were all ranks started, and do they reach this host?"));
  }
  for (const auto& peer : peers_) {
    if (peer->channel.closed()) continue;
    const auto silence = time - peer->last_heard;
    if (!peer->hello) {
      if (time - peer->came > hello_deadline) peer->channel.shut();
    } else if (!peer->left && silence > options_.heartbeat_timeout) {
      return fail(base::text(describe(*peer), " has been silent for ", seconds(silence),
                             " (stopped, or its host is down?)"));
    }
  }
}

void ControlServer::fail(const std::string& cause) {
  if (cause_) return;
  cause_ = cause;
  cause_time_ = Clock::now();
  send_all(Kind::failed, Writer().string(cause).bytes());
  end_stopped();
}

bool ControlServer::finished() const {
  // One that is stopped will not close its side.
  const bool all_closed = std::all_of(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return !peer->hello || peer->channel.closed() || (cause_ && is_stopped(*peer));
  });
  if (cause_) {
    const bool all_told = arrived_ > 0 && all_closed;
    return all_told || Clock::now() - cause_time_ > options_.patience_after_failure + 500ms;
  }
  return left_ == launch_.place.size && (all_closed || Clock::now() - last_left_time_ > farewell);
}

bool ControlServer::is_stopped(const Peer& peer) const {
  return peer.hello->pid_space == pid_space_ && state_of_process(static_cast<pid_t>(peer.hello->pid)) == ProcessState::stopped;
}

// What it recorded is read when it is gone, and a launcher that is not ours may wait for it for ever. Our own kills it.
void ControlServer::end_stopped() const {
  if (launch_.launcher == Launcher::shardbook) return;
  for (const auto& peer : peers_) {
    if (peer->hello && !peer->channel.closed() && is_stopped(*peer)) ::kill(static_cast<pid_t>(peer->hello->pid), SIGKILL);
  }
}

std::string ControlServer::describe(const Peer& peer) {
  return describe_rank(peer.hello->rank, peer.hello->pid, peer.hello->host);
}

}  // namespace shardbook::world
