// world/rendezvous: how does a rank find the control server of its run?
//
// Idea: rank 0 listens on the first free port among the candidates that all ranks computed alike
// (launchers.hpp); the others knock at each of them in turn and say hello, and a server that serves
// another run sends them on. Each proves to the other that it knows the run's secret (secret.hpp) before anything else
// that it says counts. So two runs on one host, or a stranger on a port, disturb nobody.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::world {

// What the server said when it welcomed us.
struct Welcome {
  std::unique_ptr<Channel> channel;
  std::string server;        // "rank 0 (pid 4711 on gpu07)"
  bool same_clock = false;   // it reads the same steady clock as we do
  pid_t server_pid = 0;      // where we can name its process by it, else 0
  std::vector<Frame> early;  // what it sent right behind
};

// Rank 0: the listening socket, on the port that spawn_processes bound or the first free candidate.
base::Result<Listener> open_server(const Launch& launch);

// Any rank: a connection to the run's server. An error after connect_timeout (and two seconds, for
// rank 0's own sentence names who is missing), on a refusal, or when a signal asks to stop.
base::Result<Welcome> find_server(const Launch& launch, const ProcessOptions& options);

// "rank 3 (pid 4711 on gpu07)"
std::string describe_rank(base::Rank rank, std::int64_t pid, const std::string& host);

}  // namespace shardbook::world
