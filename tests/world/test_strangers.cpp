// tests/world: what a stranger can do to a run, which is nothing; and how ranks know each other.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/world/processes.hpp"
#include "engine/world/rendezvous.hpp"
#include "engine/world/secret.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/own_ports.hpp"
#include "tests/support/run_id.hpp"
#include "tests/world/roles.hpp"

namespace shardbook::world::test {

namespace {

using namespace std::chrono_literals;

const std::string secret = "what only ranks know";

Launch secret_launch_of(base::Rank rank, int size, int port) {
  Launch launch;
  launch.launcher = Launcher::shardbook;
  launch.place = Place{rank, size, rank, size, 0};
  launch.port = port;
  launch.port_candidates = 16;
  launch.run_id = tests::own_run_id();
  launch.secret = secret;
  return launch;
}

// Whoever comes before rank 0 listens is refused, and comes again.
auto connect_soon(int port) {
  Stopwatch watch;
  auto fd = connect_to("127.0.0.1", port, 2000);
  while (!fd.ok() && watch.seconds() < 10) {
    std::this_thread::sleep_for(5ms);
    fd = connect_to("127.0.0.1", port, 2000);
  }
  return fd;
}

// Rank 0 of two waits for rank 1 while `stranger` does what it does; then rank 1 comes. What both said, "" for well.
std::vector<std::string> run_while(const std::function<void(int port)>& stranger) {
  const int port = tests::own_port();
  std::vector<std::string> said(2);
  const auto rank = [&](int number) {
    const auto status = run_process(secret_launch_of(number, 2, port), [](World& world) {
      for (const std::string& other : world.all_gather("present")) EXPECT_EQ(other, "present");
    });
    said[number] = status.ok() ? "" : status.error();
  };
  std::thread first([&] { rank(0); });
  stranger(port);
  std::thread second([&] { rank(1); });
  first.join();
  second.join();
  return said;
}

const std::vector<std::string> both_well(2);

std::unique_ptr<Channel> call(int port) {
  auto fd = connect_soon(port);
  EXPECT_TRUE(fd.ok());
  return std::make_unique<Channel>(fd.value());
}

// The next frame, or nothing where the other side has closed.
std::optional<Frame> next(Channel& channel) {
  for (int tries = 0; tries < 100 && !channel.closed(); ++tries) {
    pollfd wait{channel.fd(), POLLIN, 0};
    poll(&wait, 1, 100);
    for (Frame& frame : channel.receive()) return frame;
  }
  return std::nullopt;
}

std::string hello_of_rank_one() {
  return encode(Hello{tests::own_run_id(), 1, 2, 1, 2, 0, 666, "evil", random_bytes32(), "clock"});
}

}  // namespace

TEST(Strangers, WithoutTheSecretTakeNoRanksPlace) {
  EXPECT_EQ(run_while([](int port) {
    const auto channel = call(port);
    const std::string hello = hello_of_rank_one();
    channel->send(Kind::hello, hello);
    const auto challenge = next(*channel);
    ASSERT_TRUE(challenge);
    EXPECT_EQ(challenge->kind, Kind::challenge);
    const std::string random = Reader(challenge->payload).string();
    channel->send(Kind::proof, proof_of_rank("what strangers guess", hello, random));
    EXPECT_FALSE(next(*channel)) << "neither a welcome nor a word";
  }), both_well);
}

TEST(Strangers, CannotRepeatTheServersProofAsTheirOwn) {
  EXPECT_EQ(run_while([](int port) {
    const auto channel = call(port);
    channel->send(Kind::hello, hello_of_rank_one());
    const auto challenge = next(*channel);
    ASSERT_TRUE(challenge);
    Reader reader(challenge->payload);
    (void)reader.string();
    channel->send(Kind::proof, reader.string());
    EXPECT_FALSE(next(*channel));
  }), both_well);
}

TEST(Strangers, ThatSkipTheHelloOrRepeatItAreHungUpOn) {
  EXPECT_EQ(run_while([](int port) {
    for (const Kind kind : {Kind::call, Kind::failure, Kind::stop_request, Kind::goodbye, Kind::proof, Kind::beat}) {
      const auto channel = call(port);
      channel->send(kind, Writer().string("x").bytes());
      EXPECT_FALSE(next(*channel)) << static_cast<int>(kind);
    }
    const auto twice = call(port);
    twice->send(Kind::hello, hello_of_rank_one());
    ASSERT_TRUE(next(*twice));
    twice->send(Kind::hello, hello_of_rank_one());
    EXPECT_FALSE(next(*twice));
  }), both_well);
}

TEST(Strangers, ThatFloodAreHungUpOnAtTheirFirstWord) {
  EXPECT_EQ(run_while([](int port) {
    auto fd = connect_soon(port);
    ASSERT_TRUE(fd.ok());
    const std::string empty_hellos(std::size_t{5} << 16, '\0');
    std::size_t sent = 0;
    Stopwatch watch;
    while (watch.seconds() < 20) {
      const ssize_t count = ::send(fd.value(), empty_hellos.data(), empty_hellos.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) break;
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
    EXPECT_LT(watch.seconds(), 10);
    EXPECT_LT(sent, std::size_t{32} << 20) << "what sockets hold, and no more";
    close(fd.value());
  }), both_well);
}

TEST(Strangers, ThatWaitInNumbersGiveWayToTheRanks) {
  std::vector<int> idle;
  EXPECT_EQ(run_while([&](int port) {
    for (int i = 0; i < 200; ++i) {
      auto fd = connect_soon(port);
      ASSERT_TRUE(fd.ok());
      idle.push_back(fd.value());
    }
    const auto count_open = [&] {
      int open = 0;
      for (const int fd : idle) {
        char byte;
        open += recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN ? 1 : 0;
      }
      return open;
    };
    Stopwatch watch;
    int open = count_open();
    for (; open > 66 + 1 && watch.seconds() < 10; open = count_open()) std::this_thread::sleep_for(20ms);
    EXPECT_LE(open, 66 + 1);
    EXPECT_GT(open, 0);
  }), both_well);
  for (const int fd : idle) close(fd);
}

TEST(Strangers, ThatAnswerForAServerAreFoundOutAndPassedBy) {
  // Each sits on the first port of the run: one refuses, one welcomes, one proves nothing, one sends a frame without end.
  const std::string no_proof = Writer().string(std::string(32, 'x')).string(std::string(32, 'y')).bytes();
  const std::string welcome = Writer().integer(1).string("evil").integer(0).bytes();
  for (const auto& [kind, payload] : {std::pair{Kind::refusal, Writer().string("go home").bytes()}, {Kind::welcome, welcome},
                                      {Kind::challenge, no_proof}, {Kind::result, Writer().integer(std::int64_t{1} << 60).bytes()}}) {
    const int port = tests::own_port();
    auto listener = listen_on(port, 1);
    ASSERT_TRUE(listener.ok());
    std::atomic<bool> over{false};
    std::thread stranger([&, kind = kind, payload = payload] {
      while (!over) {
        pollfd wait{listener.value().fd, POLLIN, 0};
        if (poll(&wait, 1, 50) != 1) continue;
        const int fd = accept(listener.value().fd, nullptr, nullptr);
        if (fd < 0) continue;
        Channel channel(fd);
        (void)next(channel);
        channel.send(kind, payload);
      }
    });
    std::vector<std::string> said(2);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto status = run_process(secret_launch_of(rank, 2, port), [](World& world) { world.barrier(); });
        said[rank] = status.ok() ? "" : status.error();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    over = true;
    stranger.join();
    close(listener.value().fd);
    EXPECT_EQ(said, both_well) << static_cast<int>(kind);
  }
}

TEST(Strangers, ARankWithAnotherSecretIsToldSo) {
  const int port = tests::own_port();
  ProcessOptions options;
  options.connect_timeout = 300ms;
  std::thread first([&] { (void)run_process(secret_launch_of(0, 2, port), [](World&) {}, options); });
  Launch other = secret_launch_of(1, 2, port);
  other.secret = "another that ranks know";
  std::this_thread::sleep_for(50ms);
  const auto status = run_process(other, [](World&) {}, options);
  first.join();
  ASSERT_FALSE(status.ok());
  // Rank 0 gives up before the other does, whose last knocks find nobody.
  EXPECT_NE(status.error().find(base::text("what listens at port ", port, " does not know this run's secret; set SHARDBOOK_SECRET")), std::string::npos) << status.error();
}

TEST(Listening, IsOnTheLoopbackUnlessAnotherAddressIsNamed) {
  const auto address_of = [](const Launch& launch) {
    auto listener = open_server(launch);
    EXPECT_TRUE(listener.ok());
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(listener.value().fd, reinterpret_cast<sockaddr*>(&bound), &length);
    close(listener.value().fd);
    return std::string(inet_ntoa(bound.sin_addr));
  };
  Launch launch = secret_launch_of(0, 2, tests::own_port());
  EXPECT_EQ(address_of(launch), "127.0.0.1");
  launch.address = "localhost";
  EXPECT_EQ(address_of(launch), "127.0.0.1");
  // No interface has an address of the documentation's (RFC 5737): others reach this host by way of something else.
  launch.address = "192.0.2.1";
  EXPECT_EQ(address_of(launch), "0.0.0.0");
}

// --- The secret ----------------------------------------------------------------------------------

TEST(Secret, HashesAsFips180AndRfc4231Say) {
  EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(hmac(std::string(20, '\x0b'), "Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_of(hmac("Jefe", "what do ya want for nothing?")), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_of(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, IsOneFileOfTheUsersForAllRanksThatLookForIt) {
  namespace fs = std::filesystem;
  std::string home = (fs::temp_directory_path() / "shardbook-home-XXXXXX").string();
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  Launch launch = secret_launch_of(0, 8, 1);
  launch.secret.clear();
  std::vector<std::string> found(8);
  std::vector<std::thread> ranks;
  for (std::string& one : found) {
    ranks.emplace_back([&] {
      const auto secret_found = shared_secret(launch, home);
      one = secret_found ? secret_found.value() : secret_found.error();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(found, std::vector<std::string>(8, found[0]));
  EXPECT_EQ(found[0].size(), 64u) << found[0];
  struct stat info {};
  ASSERT_EQ(stat((home + "/.shardbook/secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  // Over several nodes there is no other place to look; a file that others read is no secret.
  launch.place.local_size = 4;
  fs::permissions(home + "/.shardbook/secret", fs::perms::owner_read | fs::perms::others_read);
  const auto open_to_all = shared_secret(launch, home);
  ASSERT_FALSE(open_to_all.ok());
  EXPECT_NE(open_to_all.error().find("is not this user's alone"), std::string::npos) << open_to_all.error();
  EXPECT_NE(open_to_all.error().find("set SHARDBOOK_SECRET"), std::string::npos) << open_to_all.error();
  EXPECT_FALSE(shared_secret(launch, "").ok());
  launch.secret = "too short";
  EXPECT_FALSE(shared_secret(launch, home).ok());
  fs::remove_all(home);
}

// --- Messages ------------------------------------------------------------------------------------

TEST(Gather, BringsToRankZeroAloneWhatIsLongerThanAnyMessagePart) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "instrumented, tens of mebibytes take minutes; address sanitizers and the plain build send them";
#endif
  const int port = tests::own_port();
  std::vector<std::string> said(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto status = run_process(secret_launch_of(rank, 3, port), [](World& world) {
        // 0, 9 and 18 MiB, of which no piece looks like another.
        std::string mine(std::size_t{9} << 20, '\0');
        mine.resize(mine.size() * static_cast<std::size_t>(world.rank()));
        for (std::size_t at = 0; at < mine.size(); at += 4096) mine[at] = static_cast<char>(at >> 12 ^ at >> 20 ^ static_cast<std::size_t>(world.rank()));
        const auto all = world.gather(mine);
        if (world.rank() != 0) {
          EXPECT_TRUE(all.empty());
          return;
        }
        ASSERT_EQ(all.size(), 3u);
        for (std::size_t from = 0; from < 3; ++from) {
          ASSERT_EQ(all[from].size(), (std::size_t{9} << 20) * from);
          for (std::size_t at = 0; at < all[from].size(); at += 4096) ASSERT_EQ(all[from][at], static_cast<char>(at >> 12 ^ at >> 20 ^ from));
        }
      });
      said[rank] = status.ok() ? "" : status.error();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(said, std::vector<std::string>(3));
}

}  // namespace shardbook::world::test
