// What must hold for any bytes on a control connection: used by the fuzz target, and by fuzz_corpus_test.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/flight.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::comm::fuzz {

using tests::require;

// What a rank says of itself: read whole or not at all, and judged beside a rank of good health and another like it.
inline void check_account(std::string_view bytes) {
  const std::optional<check::FlightAccount> read = read_account(bytes);
  const std::string said(bytes);
  const std::string healthy = Flight().account(3);
  for (const std::vector<world::Account>& all : {std::vector<world::Account>{{"rank 0", "", said}},
                                                 {{"rank 0", "", said}, {"rank 1", "", healthy}, {"rank 2", "is stopped", ""}},
                                                 {{"rank 0", "", said}, {"rank 1", "", said}}}) {
    const check::Verdict verdict = judge(all);
    require((verdict.blame == check::Blame::nobody) == verdict.sentence.empty(), "who is to blame is named in a sentence");
    require(read || verdict.blame == check::Blame::absent, "who says what no rank says is to blame");
  }
}

// Bytes that come through a socket: as of a stranger, whose first frame alone is read, and of a rank.
inline void check_frames(std::string_view bytes) {
  for (const bool known : {false, true}) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets can be made");
    world::Channel channel(ends[0]);
    if (known) channel.allow_long_frames();
    std::size_t written = 0, read = 0;
    for (int rounds = 0; rounds < 64 && !channel.closed(); ++rounds) {
      const ssize_t now = ::write(ends[1], bytes.data() + written, bytes.size() - written);
      if (now > 0) written += static_cast<std::size_t>(now);
      if (written == bytes.size()) ::shutdown(ends[1], SHUT_WR);
      for (const world::Frame& frame : channel.receive()) {
        read += frame.payload.size();
        require(known || frame.payload.size() <= world::Channel::longest_hello, "a stranger says little");
        if (const std::optional<world::Hello> hello = world::decode_hello(frame.payload)) {
          require(world::decode_hello(world::encode(*hello)).has_value(), "a hello can be said again");
        }
        if (frame.kind == world::Kind::account) check_account(world::Reader(frame.payload).string());
      }
    }
    require(read <= bytes.size(), "no frame has more than came");
    ::close(ends[1]);
  }
}

// The first byte says which.
inline void check_control(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes[0] == 'a') check_account(bytes.substr(1));
  else check_frames(bytes.substr(1));
}

}  // namespace shardbook::comm::fuzz
