// world/wire: frames, channels and sockets.
#include "engine/world/wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace shardbook::world {

namespace {

// Sent first of all in a hello, so that a stranger's bytes are known for what they are.
constexpr std::string_view protocol_name = "shardbook-world-3";
constexpr std::size_t head_bytes = 5;

void make_ready(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

}  // namespace

Writer& Writer::integer(std::int64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * byte)));
  }
  return *this;
}

Writer& Writer::string(std::string_view value) {
  integer(static_cast<std::int64_t>(value.size()));
  bytes_ += value;
  return *this;
}

Writer& Writer::reserve(std::size_t bytes) {
  bytes_.reserve(bytes);
  return *this;
}

std::int64_t Reader::integer() {
  if (rest_.size() < 8) {
    good_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (int byte = 0; byte < 8; ++byte) {
    value |= std::uint64_t{static_cast<unsigned char>(rest_[byte])} << (8 * byte);
  }
  rest_.remove_prefix(8);
  return static_cast<std::int64_t>(value);
}

std::size_t Reader::count(std::size_t bytes_each) {
  const std::int64_t things = integer();
  if (good_ && things >= 0 && static_cast<std::uint64_t>(things) <= rest_.size() / bytes_each) return static_cast<std::size_t>(things);
  good_ = false;
  return 0;
}

std::string Reader::string() {
  const std::int64_t length = integer();
  if (!good_ || length < 0 || static_cast<std::uint64_t>(length) > rest_.size()) {
    good_ = false;
    return {};
  }
  std::string value(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return value;
}

std::string encode(const Hello& hello) {
  Writer writer;
  writer.string(protocol_name).string(hello.run_id).integer(hello.rank).integer(hello.size);
  writer.integer(hello.local_rank).integer(hello.local_size).integer(hello.node);
  writer.integer(hello.pid).string(hello.host).string(hello.random).string(hello.clock_id).string(hello.pid_space);
  return writer.bytes();
}

std::optional<Hello> decode_hello(std::string_view payload) {
  Reader reader(payload);
  if (reader.string() != protocol_name) return std::nullopt;
  Hello hello;
  hello.run_id = reader.string();
  hello.rank = static_cast<base::Rank>(reader.integer());
  hello.size = static_cast<int>(reader.integer());
  hello.local_rank = static_cast<int>(reader.integer());
  hello.local_size = static_cast<int>(reader.integer());
  hello.node = static_cast<int>(reader.integer());
  hello.pid = reader.integer();
  hello.host = reader.string();
  hello.random = reader.string();
  hello.clock_id = reader.string();
  hello.pid_space = reader.string();
  if (!reader.ended() || hello.random.size() != 32) return std::nullopt;
  return hello;
}

Channel::Channel(int fd) : fd_(fd) { make_ready(fd); }

Channel::~Channel() { close(fd_); }

void Channel::send(Kind kind, std::string_view payload) {
  const std::uint32_t length = static_cast<std::uint32_t>(payload.size());
  SHARDBOOK_CHECK(payload.size() <= longest_message, "a control message of ", payload.size(),
                  " bytes; the world carries small messages only");
  for (int byte = 0; byte < 4; ++byte) outgoing_.push_back(static_cast<char>(length >> (8 * byte)));
  outgoing_.push_back(static_cast<char>(kind));
  outgoing_ += payload;
  flush();
}

void Channel::shut() {
  closed_ = true;
  ::shutdown(fd_, SHUT_RDWR);
}

void Channel::flush() {
  while (!closed_ && written_ < outgoing_.size()) {
    const ssize_t count = ::send(fd_, outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL);
    if (count > 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      // What the peer sent before it closed may still wait to be read: receive() finds the end.
      break;
    }
  }
  outgoing_.clear();
  written_ = 0;
}

std::vector<Frame> Channel::receive() {
  // The bytes that have arrived; what is more waits in the kernel, where it stops the sender.
  char chunk[65536];
  const std::size_t most_at_once = std::min<std::size_t>(2 * longest_frame_, std::size_t{8} << 20);
  for (std::size_t read = 0; !closed_ && read < most_at_once;) {
    const ssize_t count = recv(fd_, chunk, std::min(sizeof chunk, most_at_once - read), 0);
    if (count > 0) {
      read += static_cast<std::size_t>(count);
      incoming_.append(chunk, static_cast<std::size_t>(count));
      bytes_received_ += static_cast<std::uint64_t>(count);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      closed_ = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      break;
    }
  }

  // The whole frames among them.
  std::vector<Frame> frames;
  std::size_t at = 0, wanted = 0;
  while (incoming_.size() - at >= head_bytes) {
    std::uint32_t length = 0;
    for (int byte = 0; byte < 4; ++byte) {
      length |= std::uint32_t{static_cast<unsigned char>(incoming_[at + byte])} << (8 * byte);
    }
    const auto kind = static_cast<Kind>(incoming_[at + 4]);
    if (length > longest_frame_ || kind > Kind::beat) {
      closed_ = true;
      break;
    }
    if (incoming_.size() - at - head_bytes < length) {
      wanted = head_bytes + length;
      break;
    }
    if (at == 0 && incoming_.size() == head_bytes + length) {   // a long one, most of the time: it is moved
      incoming_.erase(0, head_bytes);
      frames.push_back({kind, std::exchange(incoming_, {})});
      break;
    }
    frames.push_back({kind, incoming_.substr(at + head_bytes, length)});
    at += head_bytes + length;
  }
  incoming_.erase(0, at);
  if (wanted > 0) incoming_.reserve(wanted);   // at once, rather than by doubling
  return frames;
}

base::Result<Listener> listen_on(int port, int candidates, const std::string& address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1) return base::Error{address + " is no address to listen on"};
  int last_error = 0;
  for (int candidate = port; candidate < port + candidates; ++candidate) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return base::Error{base::text("no socket for the control server: ", std::strerror(errno))};
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    where.sin_port = htons(static_cast<std::uint16_t>(candidate));
    sockaddr_in got{};
    socklen_t length = sizeof got;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 && listen(fd, 1024) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&got), &length) == 0) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
      return Listener{fd, ntohs(got.sin_port), address == "0.0.0.0" ? "127.0.0.1" : address};
    }
    last_error = errno;
    close(fd);
  }
  const std::string ports = candidates == 1 ? base::text("port ", port)
                                            : base::text("ports ", port, " to ", port + candidates - 1);
  return base::Error{base::text("the control server of rank 0 cannot listen on ", ports, " (",
                                std::strerror(last_error), "); set SHARDBOOK_PORT to a free port on all ranks")};
}

std::string interface_of(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string any = "0.0.0.0";
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return any;
  sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  freeaddrinfo(found);
  // Debian gives a host's own name 127.0.1.1, and other hosts another address.
  if (ntohl(address.sin_addr.s_addr) >> 24 == 127) return any;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_port = 0;
  const bool is_ours = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  char text[INET_ADDRSTRLEN] = "";
  return is_ours && inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr ? text : any;
}

base::Result<int> connect_to(const std::string& address, int port, int timeout_ms) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    return base::Error{base::text("the name ", address, " does not resolve (", gai_strerror(code), ")")};
  }

  // A non-blocking connect, awaited for a bounded time.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    freeaddrinfo(found);
    return base::Error{base::text("no socket: ", std::strerror(errno))};
  }
  make_ready(fd);
  int error = 0;
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) error = errno;
  freeaddrinfo(found);
  if (error == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (poll(&wait, 1, timeout_ms) == 1) {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    } else {
      error = ETIMEDOUT;
    }
  }
  if (error == 0) return fd;
  close(fd);
  return base::Error{std::strerror(error)};
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

namespace {

// This boot of this kernel, and which of its spaces of that kind we are in; "" where nobody can tell. Kernels older than
// 5.6 have no spaces of time, and so one clock.
std::string space_of(const char* kind, bool may_lack) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "";
  const bool is_known = readlink(base::text("/proc/self/ns/", kind).c_str(), space, sizeof space - 1) > 0;
  return boot.empty() || (!is_known && !may_lack) ? "" : base::text(boot, "/", is_known ? space : "");
}

// Without it, no two processes are taken to share anything.
std::string or_own(const std::string& space) { return space.empty() ? base::text(host_name(), "/", getpid()) : space; }

}  // namespace

// Asked once: later, too few files may be had for it.
std::string clock_id() {
  static const std::string id = or_own(space_of("time", true));
  return id;
}

std::string pid_space() {
  static const std::string id = or_own(space_of("pid", false));
  return id;
}

}  // namespace shardbook::world
