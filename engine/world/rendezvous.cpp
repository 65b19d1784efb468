// world/rendezvous: knocking until the right server answers.
#include "engine/world/rendezvous.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/world/signals.hpp"

namespace shardbook::world {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// One knock at one port. Nothing: go on looking. Errors end the search.
base::Result<std::optional<Welcome>> knock(const std::string& address, int port, const Hello& hello,
                                           std::string& last_reason) {
  constexpr int timeout_ms = 2000;
  auto fd = connect_to(address, port, timeout_ms);
  if (!fd.ok()) {
    last_reason = fd.error();
    return std::optional<Welcome>{};
  }
  Welcome welcome;
  welcome.channel = std::make_unique<Channel>(fd.value());
  welcome.channel->send(Kind::hello, encode(hello));
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (Clock::now() < deadline && !welcome.channel->closed()) {
    pollfd wait{welcome.channel->fd(), POLLIN, 0};
    poll(&wait, 1, 100);
    std::vector<Frame> frames = welcome.channel->receive();
    if (frames.empty()) continue;
    Reader reader(frames[0].payload);
    if (frames[0].kind == Kind::welcome) {
      const std::int64_t pid = reader.integer();
      welcome.server = describe_rank(0, pid, reader.string());
      welcome.same_clock = reader.integer() != 0;
      welcome.channel->allow_frames_of(Channel::longest_message);
      welcome.early.assign(frames.begin() + 1, frames.end());
      return std::optional<Welcome>(std::move(welcome));
    }
    if (frames[0].kind != Kind::refusal) break;
    const bool is_final = reader.integer() == 2;
    last_reason = reader.string();
    if (is_final) return base::Error{base::text("rank 0 refused rank ", hello.rank, ": ", last_reason)};
    return std::optional<Welcome>{};
  }
  last_reason = base::text("what listens at port ", port, " is no control server");
  return std::optional<Welcome>{};
}

}  // namespace

base::Result<Welcome> find_server(const Launch& launch, const ProcessOptions& options) {
  const Place& place = launch.place;
  const Hello hello{launch.run_id, place.rank, place.size, place.local_rank, place.local_size,
                    place.node, getpid(), host_name(), clock_id()};
  // Rank 0, if it serves, names those who are missing; its sentence should come first.
  const auto deadline = Clock::now() + options.connect_timeout + 2s;
  std::string last_reason;
  do {
    for (int port = launch.port; port < launch.port + launch.port_candidates; ++port) {
      auto found = knock(launch.address, port, hello, last_reason);
      if (!found.ok()) return found.as_error();
      if (found.value()) return std::move(*found.value());
    }
    if (stop_signal() != 0) {
      return base::Error{base::text("rank ", place.rank, " was asked to stop while it looked for rank 0")};
    }
    std::this_thread::sleep_for(100ms);
  } while (Clock::now() < deadline);
  const std::string ports = launch.port_candidates == 1
                                ? base::text(":", launch.port)
                                : base::text(", ports ", launch.port, " to ", launch.port + launch.port_candidates - 1);
  return base::Error{base::text("rank ", place.rank, " found no control server of this run at ", launch.address,
                                ports, " (last: ", last_reason, "): was rank 0 started, and does its host answer?")};
}

base::Result<Listener> open_server(const Launch& launch) {
  if (launch.listen_fd >= 0) {
    fcntl(launch.listen_fd, F_SETFD, FD_CLOEXEC);
    return Listener{launch.listen_fd, launch.port};
  }
  const bool loopback_only = launch.address == "127.0.0.1" || launch.address == "localhost";
  return listen_on(launch.port, launch.port_candidates, loopback_only);
}

std::string describe_rank(base::Rank rank, std::int64_t pid, const std::string& host) {
  return base::text("rank ", rank, " (pid ", pid, " on ", host, ")");
}

}  // namespace shardbook::world
