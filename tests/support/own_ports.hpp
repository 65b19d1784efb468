// tests/support: ports that no test beside this one uses.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "engine/base/check.hpp"

namespace shardbook::tests {

// A run looks for its rank 0 at up to 16 ports in a row. Were they such as the system hands out (a listener's "any port",
// the near end of every connection), a test could meet another test's server there, or lose its first port between
// the asking and the listening. These lie below them and below those hashed from a run's name (world/launchers).
class OwnPorts {
 public:
  static constexpr int lowest = 4096, highest = 11999;
  static constexpr int at_once = 32;   // what one run looks through, and room behind it
  static constexpr int in_block = 4 * at_once + 1;

  OwnPorts() {
    const int blocks = (highest + 1 - lowest) / in_block;
    for (int tried = 0; tried < blocks && claim_ < 0; ++tried) {
      first_ = lowest + (static_cast<int>(::getpid()) + tried) % blocks * in_block;
      claim_ = bound(first_ + in_block - 1, false);   // not listened at: held for as long as this lives
      if (claim_ >= 0 && !all_free()) {
        ::close(claim_);
        claim_ = -1;
      }
    }
    SHARDBOOK_CHECK(claim_ >= 0, "no ", in_block, " ports in a row are free between ", lowest, " and ", highest);
  }
  OwnPorts(const OwnPorts&) = delete;
  OwnPorts& operator=(const OwnPorts&) = delete;
  ~OwnPorts() { ::close(claim_); }

  // The first of 32 that no run of this process used lately.
  int next() { return first_ + at_once * (asked_++ % 4); }

 private:
  static int bound(int port, bool behind_a_closed_one) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int reuse = behind_a_closed_one ? 1 : 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_ANY);
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) return fd;
    ::close(fd);
    return -1;
  }

  // Nobody listens at any of them.
  bool all_free() const {
    for (int port = first_; port < first_ + in_block - 1; ++port) {
      const int fd = bound(port, true);
      if (fd < 0) return false;
      ::close(fd);
    }
    return true;
  }

  int first_ = 0, claim_ = -1;
  std::atomic<int> asked_{0};
};

// The first of 32 ports that are this process's own; it is the process that holds them.
inline int own_port() {
  static OwnPorts ports;
  return ports.next();
}

}  // namespace shardbook::tests
