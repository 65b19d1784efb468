// tests/world: what ranks say of themselves, and whether they say the same; over TCP and as threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "engine/world/inquiry.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/threads.hpp"
#include "engine/world/wire.hpp"
#include "tests/support/run_id.hpp"

namespace shardbook::world::test {

namespace {

using namespace std::chrono_literals;

// Ranks as threads, with connections of their own or without; what each came to.
std::vector<std::string> run_all(bool connected, int size, const RankMain& main) {
  std::vector<std::string> said(static_cast<std::size_t>(size));
  if (!connected) {
    const auto status = run_threads(size, main);
    for (std::string& one : said) one = status.ok() ? "" : status.error();
    return said;
  }
  auto listener = listen_on(0, 1);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      Launch launch;
      launch.launcher = Launcher::torchrun;
      launch.place = Place{rank, size, rank, size, 0};
      launch.port = listener.value().port;
      launch.run_id = tests::own_run_id();
      launch.secret = "the tests' own secret";
      if (rank == 0) launch.listen_fd = listener.value().fd;
      const auto status = run_process(launch, main);
      if (!status.ok()) said[static_cast<std::size_t>(rank)] = status.error();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return said;
}

class Accounts : public testing::TestWithParam<bool> {};

TEST_P(Accounts, OfAllRanksComeToWhoeverAsksAtWhateverTheyDo) {
  const auto said = run_all(GetParam(), 3, [](World& world) {
    world.set_account([&world] { return base::text("I am ", world.rank()); });
    world.barrier();
    // Rank 2 waits in a call, the others ask, on a thread that is not the rank's.
    if (world.rank() < 2) {
      std::thread([&world] {
        const std::vector<Account> all = world.ask_all(5s);
        ASSERT_EQ(all.size(), 3u);
        for (int rank = 0; rank < 3; ++rank) {
          const Account& one = all[static_cast<std::size_t>(rank)];
          EXPECT_EQ(one.absent, "");
          EXPECT_EQ(one.said, base::text("I am ", rank));
          EXPECT_EQ(one.name.find(base::text("rank ", rank)), 0u) << one.name;
        }
      }).join();
    }
    world.barrier();
    world.set_account({});
  });
  for (const std::string& one : said) EXPECT_EQ(one, "");
}

TEST_P(Accounts, OfARankThatHasSaidNothingAreEmpty) {
  const auto said = run_all(GetParam(), 2, [](World& world) {
    if (world.rank() == 0) world.set_account([] { return std::string("here"); });
    world.barrier();
    const std::vector<Account> all = world.ask_all(5s);
    EXPECT_EQ(all[0].said, "here");
    EXPECT_EQ(all[1].said, "");
    world.barrier();
    world.set_account({});
  });
  for (const std::string& one : said) EXPECT_EQ(one, "");
}

TEST_P(Accounts, OfAFailedRunAreItsCause) {
  const auto said = run_all(GetParam(), 2, [](World& world) {
    if (world.rank() == 1) throw base::Failure("out of coffee");
    while (!world.failed()) std::this_thread::sleep_for(1ms);
    (void)world.ask_all(5s);
    ADD_FAILURE() << "it should have thrown";
  });
  for (const std::string& one : said) EXPECT_NE(one.find("out of coffee"), std::string::npos) << one;
}

TEST_P(Accounts, ClaimsThatDifferAreADisputeForAllAndTheRunGoesOn) {
  const auto said = run_all(GetParam(), 3, [](World& world) {
    // Ranks 0 and 1 belong together by 7, all by 8.
    for (int step = 0; step < 50; ++step) {
      std::vector<Claim> claims{{8, 3, static_cast<std::uint64_t>(step)}};
      if (world.rank() < 2) claims.push_back({7, 2, step == 30 && world.rank() == 1 ? 1u : 0u});
      world.claim(step, claims);
      if (step != 20) continue;
      world.barrier();
      EXPECT_FALSE(world.dispute().has_value());
      world.barrier();   // who goes on sooner soon disputes
    }
    world.barrier();
    for (int tries = 0; tries < 2000 && !world.dispute(); ++tries) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(world.dispute().has_value());
    EXPECT_EQ(world.dispute()->step, 30);
    EXPECT_EQ(world.dispute()->what, 7u);
    EXPECT_EQ(world.dispute()->one, 0);
    EXPECT_EQ(world.dispute()->other, 1);
    world.barrier();
  });
  for (const std::string& one : said) EXPECT_EQ(one, "");
}

INSTANTIATE_TEST_SUITE_P(Of, Accounts, testing::Bool(), [](const auto& one) { return one.param ? "Processes" : "Threads"; });

TEST(Claims, ThatAreAlikeAreForgotten) {
  Claims claims;
  for (std::int64_t step = 0; step < 1000; ++step) {
    for (int rank = 0; rank < 4; ++rank) EXPECT_FALSE(claims.add(rank, step, {1, 4, 5}).has_value());
    EXPECT_EQ(claims.open(), 0u);
  }
  EXPECT_FALSE(claims.add(0, 1000, {1, 1, 5}).has_value());
  EXPECT_EQ(claims.open(), 0u) << "who is alone agrees with all";
}

TEST(Claims, ThatNobodyElseMakesDoNotPileUp) {
  Claims claims;
  for (std::int64_t step = 0; step < 100'000; ++step) (void)claims.add(0, step, {1, 2, 5});
  EXPECT_LE(claims.open(), std::size_t{1} << 14);
}

TEST(Claims, AreDisputedOnceAndByTheRanksThatDiffer) {
  Claims claims;
  EXPECT_FALSE(claims.add(3, 0, {1, 3, 5}).has_value());
  EXPECT_FALSE(claims.add(2, 0, {1, 3, 5}).has_value());
  const auto dispute = claims.add(1, 0, {1, 3, 6});
  ASSERT_TRUE(dispute.has_value());
  EXPECT_EQ(dispute->one, 1);
  EXPECT_EQ(dispute->other, 3);
  EXPECT_FALSE(claims.add(0, 1, {1, 2, 6}).has_value());
  EXPECT_FALSE(claims.add(1, 1, {1, 2, 7}).has_value());
}

TEST(Inquiry, GivesUpThoseThatDoNotAnswer) {
  Inquiry patient;
  EXPECT_TRUE(patient.ask(2, 3, 1h));
  patient.answer(2, "x");
  EXPECT_TRUE(patient.over({false, false, true}));
  EXPECT_FALSE(patient.over({true, false, true}));

  Inquiry inquiry;
  EXPECT_TRUE(inquiry.ask(2, 3, 0ms));
  EXPECT_FALSE(inquiry.ask(1, 3, 1h)) << "it gets the answers of the one under way";
  inquiry.answer(2, "x");
  EXPECT_TRUE(inquiry.over({true, true, true}));
  const auto [askers, said] = inquiry.take();
  EXPECT_EQ(askers, (std::vector<base::Rank>{2, 1}));
  EXPECT_FALSE(said[0].has_value());
  EXPECT_EQ(said[2], "x");
  EXPECT_FALSE(inquiry.under_way());
}

}  // namespace

}  // namespace shardbook::world::test
