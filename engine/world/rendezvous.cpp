// world/rendezvous: knocking until the right server answers.
#include "engine/world/rendezvous.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/base/signals.hpp"
#include "engine/world/secret.hpp"

namespace shardbook::world {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto knock_timeout = 2s;

// The next frame, and what came right behind it; nothing when the connection ends or the time is over.
std::vector<Frame> next_frames(Channel& channel, Clock::time_point deadline) {
  while (Clock::now() < deadline && !channel.closed()) {
    pollfd wait{channel.fd(), POLLIN, 0};
    poll(&wait, 1, 100);
    std::vector<Frame> frames = channel.receive();
    if (!frames.empty()) return frames;
  }
  return {};
}

// Why the search goes on.
struct Reasons {
  std::string last, of_a_server;   // what a control server said tells more than who did not answer at the next port, or later
  const std::string& best() const { return of_a_server.empty() ? last : of_a_server; }
};

// One knock at one port. Nothing: go on looking. Errors end the search; only a server that has proved to know the
// run's secret can bring one about.
base::Result<std::optional<Welcome>> knock(const std::string& address, int port, Hello hello, const std::string& secret,
                                           Reasons& reasons) {
  auto fd = connect_to(address, port, static_cast<int>(std::chrono::milliseconds(knock_timeout).count()));
  if (!fd.ok()) {
    reasons.last = fd.error();
    return std::optional<Welcome>{};
  }
  Welcome welcome;
  welcome.channel = std::make_unique<Channel>(fd.value());
  Channel& channel = *welcome.channel;
  const auto deadline = Clock::now() + knock_timeout;

  // Hello; is it the server of this run?
  hello.random = random_bytes32();
  const std::string said = encode(hello);
  channel.send(Kind::hello, said);
  std::vector<Frame> frames = next_frames(channel, deadline);
  if (frames.empty() || (frames[0].kind != Kind::challenge && frames[0].kind != Kind::refusal)) {
    reasons.last = base::text("what listens at port ", port, " is no control server");
    return std::optional<Welcome>{};
  }
  Reader reader(frames[0].payload);
  if (frames[0].kind == Kind::refusal) {
    reasons.of_a_server = base::text("at port ", port, ": ", reader.string());
    return std::optional<Welcome>{};
  }
  const std::string server_random = reader.string(), proof = reader.string();
  if (!reader.ended() || frames.size() > 1 || !equal_secretly(proof, proof_of_server(secret, said, server_random))) {
    reasons.of_a_server = base::text("what listens at port ", port, " does not know this run's secret; set SHARDBOOK_SECRET alike on all "
                             "ranks, where they do not share a home folder");
    return std::optional<Welcome>{};
  }

  // It is: now it learns who we are.
  channel.send(Kind::proof, proof_of_rank(secret, said, server_random));
  frames = next_frames(channel, deadline);
  if (frames.empty()) return std::optional<Welcome>{};
  reader = Reader(frames[0].payload);
  if (frames[0].kind == Kind::welcome) {
    const std::int64_t pid = reader.integer();
    welcome.server = describe_rank(0, pid, reader.string());
    welcome.same_clock = reader.integer() != 0;
    welcome.server_pid = reader.integer() != 0 ? static_cast<pid_t>(pid) : 0;
    channel.allow_long_frames();
    welcome.early.assign(frames.begin() + 1, frames.end());
    return std::optional<Welcome>(std::move(welcome));
  }
  if (frames[0].kind != Kind::refusal) return std::optional<Welcome>{};
  return base::Error{base::text("rank 0 refused rank ", hello.rank, ": ", reader.string())};
}

}  // namespace

base::Result<Welcome> find_server(const Launch& launch, const ProcessOptions& options) {
  const Place& place = launch.place;
  const Hello hello{launch.run_id, place.rank, place.size, place.local_rank, place.local_size,
                    place.node, getpid(), host_name(), "", clock_id(), pid_space()};
  // Rank 0, if it serves, names those who are missing; its sentence should come first.
  const auto deadline = Clock::now() + options.connect_timeout + 2s;
  Reasons reasons;
  do {
    for (int port = launch.port; port < launch.port + launch.port_candidates; ++port) {
      auto found = knock(launch.address, port, hello, launch.secret, reasons);
      if (!found.ok()) return found.as_error();
      if (found.value()) return std::move(*found.value());
    }
    if (base::stop_signal() != 0) {
      return base::Error{base::text("rank ", place.rank, " was asked to stop while it looked for rank 0")};
    }
    std::this_thread::sleep_for(100ms);
  } while (Clock::now() < deadline);
  const std::string ports = launch.port_candidates == 1
                                ? base::text(":", launch.port)
                                : base::text(", ports ", launch.port, " to ", launch.port + launch.port_candidates - 1);
  return base::Error{base::text("rank ", place.rank, " found no control server of this run at ", launch.address,
                                ports, " (", reasons.best(), "): was rank 0 started, and does its host answer?")};
}

base::Result<Listener> open_server(const Launch& launch) {
  if (launch.listen_fd >= 0) {
    fcntl(launch.listen_fd, F_SETFD, FD_CLOEXEC);
    return Listener{launch.listen_fd, launch.port};
  }
  const bool loopback = launch.address == "127.0.0.1" || launch.address == "localhost";
  return listen_on(launch.port, launch.port_candidates, loopback ? "127.0.0.1" : interface_of(launch.address));
}

std::string describe_rank(base::Rank rank, std::int64_t pid, const std::string& host) {
  return base::text("rank ", rank, " (pid ", pid, " on ", host, ")");
}

}  // namespace shardbook::world
