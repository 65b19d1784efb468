#include "engine/world/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace shardbook::world {

void Output::add(const std::string& text) {
  waiting_ += text;
  write_what_fits();
}

void Output::write_what_fits() {
  std::size_t at = 0;
  while (at < waiting_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    // A pipe or a terminal that says it is ready takes so much at least
    const ssize_t count = write(fd_, waiting_.data() + at, std::min<std::size_t>(waiting_.size() - at, PIPE_BUF));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return waiting_.clear();
    at += static_cast<std::size_t>(count);
  }
  waiting_.erase(0, at);
}

}  // namespace shardbook::world
