// tests/world: what is written is read, however the socket cuts it, and what is damaged is not.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::world::test {

namespace {

// Both ends of a connection.
std::array<int, 2> connection() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return ends;
}

// The bytes that a channel sends for these frames.
std::string sent_as(const std::vector<std::string>& payloads) {
  const std::array<int, 2> ends = connection();
  Channel out(ends[0]);
  for (const std::string& payload : payloads) out.send(Kind::call, payload);
  std::string bytes(4096, '\0');
  bytes.resize(static_cast<std::size_t>(::read(ends[1], bytes.data(), bytes.size())));
  ::close(ends[1]);
  return bytes;
}

}  // namespace

// A frame that comes alone is moved to who asked, one that comes with others is copied: the same frames.
TEST(Wire, FramesComeOutAsTheyWentInWhereverTheSocketCutsThem) {
  std::vector<std::string> payloads;
  for (std::size_t n = 0; n < 12; ++n) payloads.emplace_back(n * 7 % 31, static_cast<char>('a' + n));
  const std::string bytes = sent_as(payloads);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const std::array<int, 2> ends = connection();
    Channel in(ends[0]);
    std::vector<std::string> came;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const std::string_view part = std::string_view(bytes).substr(at, piece);
      ASSERT_EQ(::write(ends[1], part.data(), part.size()), static_cast<ssize_t>(part.size()));
      for (const Frame& frame : in.receive()) {
        EXPECT_EQ(frame.kind, Kind::call);
        came.push_back(frame.payload);
      }
    }
    EXPECT_EQ(came, payloads) << "in pieces of " << piece;
    EXPECT_FALSE(in.closed());
    ::close(ends[1]);
  }
}

TEST(Wire, AReaderNeverReadsBeyondTheEnd) {
  const std::string whole = Writer().integer(-5).string("abc").bytes();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    Reader reader(std::string_view(whole).substr(0, length));
    const std::int64_t number = reader.integer();
    const std::string text = reader.string();
    EXPECT_EQ(reader.good(), length == whole.size());
    if (length == whole.size()) {
      EXPECT_EQ(base::text(number, text), "-5abc");
    }
  }
  const std::string negative_length = Writer().integer(-1).bytes();
  Reader negative(negative_length);
  EXPECT_EQ(negative.string(), "");
  EXPECT_FALSE(negative.good());
}

TEST(Wire, CountsBeyondTheMessageAreRefusedBeforeMemoryIsTaken) {
  for (const std::int64_t count : {std::int64_t{1} << 60, std::int64_t{-1}, std::int64_t{3}}) {
    const std::string bytes = Writer().integer(count).integer(0).integer(0).bytes();
    Reader reader(bytes);
    EXPECT_EQ(reader.count(), 0u) << count;
    EXPECT_FALSE(reader.good()) << count;
  }
  const std::string two = Writer().integer(2).integer(7).integer(8).bytes();
  Reader reader(two);
  EXPECT_EQ(reader.count(), 2u);
  EXPECT_TRUE(reader.good());
}

TEST(Wire, NumbersThatAreNotFiniteArriveAsTheyAre) {
  const std::string bytes = Writer().number(NAN).number(INFINITY).number(-0.0).number(0.1).bytes();
  Reader reader(bytes);
  EXPECT_TRUE(std::isnan(reader.number()));
  EXPECT_EQ(reader.number(), INFINITY);
  EXPECT_TRUE(std::signbit(reader.number()));
  EXPECT_EQ(reader.number(), 0.1);
  EXPECT_TRUE(reader.ended());
}

}  // namespace shardbook::world::test
