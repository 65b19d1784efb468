// world/wire: what do the control connections carry, and how?
//
// Idea: frames of a four-byte length, one byte of kind and a payload of integers and strings, over
// non-blocking TCP sockets. A Channel buffers both directions, so that a slow peer stops nobody.
//
// Invariant: nothing read from the wire is trusted: lengths are bounded before memory is taken, and
// a payload that ends early makes the Reader bad, never reads beyond it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/types.hpp"

namespace shardbook::world {

enum class Kind : std::uint8_t {
  // From a rank to the server.
  hello, proof, call, failure, goodbye, ping, stop_request, stop_promise, ask, account, claim,
  // From the server to a rank.
  challenge, welcome, refusal, all_here, result, failed, pong, stop_proposal, stop_decision, all_left, asked, accounts, dispute,
  // Both ways.
  beat
};

// What a rank says of itself first.
struct Hello {
  std::string run_id;
  base::Rank rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
  std::int64_t pid = 0;
  std::string host;
  std::string random;    // 32 bytes, which the server's proof must answer
  std::string clock_id;  // equal for processes that read the same steady clock
  std::string pid_space; // equal where a pid names the same process
};

// Appends integers (8 bytes, little end first), numbers (their 64 bits, so that what is not finite arrives too) and
// strings (length, bytes).
class Writer {
 public:
  Writer& integer(std::int64_t value);
  Writer& number(double value) { return integer(std::bit_cast<std::int64_t>(value)); }
  Writer& string(std::string_view value);
  // Room for so many bytes in all.
  Writer& reserve(std::size_t bytes);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a Writer wrote. After a read past the end good() is false and values are 0 or "".
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::int64_t integer();
  double number() { return std::bit_cast<double>(integer()); }
  std::string string();
  // How many things follow, each of at least `bytes_each` bytes: 0, and not good, where there is no room for them.
  std::size_t count(std::size_t bytes_each = 8);
  bool good() const { return good_; }
  // Good, and nothing is left.
  bool ended() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string encode(const Hello& hello);
std::optional<Hello> decode_hello(std::string_view payload);

struct Frame {
  Kind kind;
  std::string payload;
};

// One connected socket. Not thread-safe; owns the descriptor.
class Channel {
 public:
  explicit Channel(int fd);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return fd_; }
  // Queues a frame and writes as much as the socket takes now.
  void send(Kind kind, std::string_view payload = {});
  // Writes more of what is queued.
  void flush();
  bool wants_to_write() const { return written_ < outgoing_.size(); }
  // Reads what has arrived, at most so much at a time that no peer keeps its reader from the others, and returns the
  // whole frames of it.
  std::vector<Frame> receive();
  // How many bytes came so far: more than before is a sign of life, even if no frame is whole yet.
  std::uint64_t bytes_received() const { return bytes_received_; }
  // The peer has closed, or the connection broke, or it sent what no peer of ours sends.
  bool closed() const { return closed_; }
  // Ends the connection.
  void shut();
  // The peer is known: until then a frame longer than a hello closes the channel.
  void allow_long_frames() { longest_frame_ = longest_message; }

  static constexpr std::size_t longest_hello = 4096;
  static constexpr std::size_t longest_message = std::size_t{128} << 20;

 private:
  int fd_;
  bool closed_ = false;
  std::size_t longest_frame_ = longest_hello;
  std::string outgoing_;
  std::size_t written_ = 0;
  std::string incoming_;
  std::uint64_t bytes_received_ = 0;
};

// A listening socket on the first free port of port .. port + candidates - 1 (port 0: any), on the
// loopback interface, on that of `address`, or on all ("0.0.0.0"). The error says which ports were taken.
struct Listener {
  int fd = -1;
  int port = 0;
  std::string address = "127.0.0.1";   // where this process reaches it
};
base::Result<Listener> listen_on(int port, int candidates, const std::string& address = "127.0.0.1");
// The interface of this host that `name` leads other hosts to: its address, or "0.0.0.0" where that cannot be told
// (a name that means the loopback here, an address that is no interface's).
std::string interface_of(const std::string& name);

// A connected, non-blocking socket, or why not, after at most `timeout_ms`.
base::Result<int> connect_to(const std::string& address, int port, int timeout_ms);

std::string host_name();
// The kernel and time namespace whose steady clock this process reads.
std::string clock_id();
std::string pid_space();

}  // namespace shardbook::world
