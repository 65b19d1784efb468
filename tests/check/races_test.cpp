// Which orders count, and which bytes: small programs by hand.
#include <gtest/gtest.h>

#include "tests/check/issued.hpp"

namespace shardbook::tests {
namespace {

using check::Race;

TEST(Races, AreThreeHazardsAndTwoReadersAreNone) {
  Issued read_after_write;
  read_after_write.op(a, {writes(0)});
  read_after_write.op(b, {reads(0)});
  ASSERT_EQ(read_after_write.races().size(), 1u);
  EXPECT_TRUE(read_after_write.races()[0].first_writes);
  EXPECT_FALSE(read_after_write.races()[0].second_writes);

  Issued write_after_read;
  write_after_read.op(a, {reads(0)});
  write_after_read.op(b, {writes(0)});
  ASSERT_EQ(write_after_read.races().size(), 1u);
  EXPECT_FALSE(write_after_read.races()[0].first_writes);
  EXPECT_TRUE(write_after_read.races()[0].second_writes);

  Issued write_after_write;
  write_after_write.op(a, {writes(0)});
  write_after_write.op(b, {writes(0)});
  EXPECT_EQ(write_after_write.races().size(), 1u);

  Issued two_readers;
  two_readers.op(a, {reads(0)});
  two_readers.op(b, {reads(0)});
  EXPECT_TRUE(two_readers.races().empty());
}

TEST(Races, AreOfBytesNotOfBuffers) {
  Issued apart;
  apart.op(a, {writes(0, 0, 4)});
  apart.op(b, {writes(0, 4, 8)});
  apart.op(b, {writes(1, 0, 4)});
  EXPECT_TRUE(apart.races().empty());

  Issued overlapping;
  overlapping.op(a, {writes(0, 0, 5)});
  overlapping.op(b, {writes(0, 3, 8)});
  ASSERT_EQ(overlapping.races().size(), 1u);
  EXPECT_EQ(overlapping.races()[0].begin, 3);
  EXPECT_EQ(overlapping.races()[0].end, 5);
}

TEST(Order, IsThatOfAStreamAndOfAnAwaitedEvent) {
  Issued issued;
  issued.op(a, {writes(0)});
  issued.op(a, {reads(0)});
  issued.record(a, 0);
  issued.wait(b, 0);
  issued.op(b, {writes(0)});
  EXPECT_TRUE(issued.races().empty());
}

TEST(Order, DoesNotCoverWhatIsIssuedAfterTheRecordOrBeforeTheWait) {
  Issued late;
  late.record(a, 0);
  late.op(a, {writes(0)});
  late.wait(b, 0);
  late.op(b, {reads(0)});
  EXPECT_EQ(late.races().size(), 1u);

  Issued early;
  early.op(a, {writes(0)});
  early.record(a, 0);
  early.op(b, {reads(0)});
  early.wait(b, 0);
  EXPECT_EQ(early.races().size(), 1u);
}

TEST(Order, IsRelayedByAStreamThatRanNothingInBetween) {
  Issued relayed;
  relayed.op(a, {writes(0)});
  relayed.record(a, 0);
  relayed.wait(b, 0);
  relayed.record(b, 1);
  relayed.wait(c, 1);
  relayed.op(c, {reads(0)});
  EXPECT_TRUE(relayed.races().empty());

  Issued broken;
  broken.op(a, {writes(0)});
  broken.record(a, 0);
  broken.record(b, 1);  // before b waits
  broken.wait(b, 0);
  broken.wait(c, 1);
  broken.op(c, {reads(0)});
  EXPECT_EQ(broken.races().size(), 1u);
}

TEST(Order, OfAnEventIsThatOfItsLastRecordBeforeTheWait) {
  Issued again;
  again.record(a, 0);
  again.op(a, {writes(0)});
  again.record(a, 0);
  again.wait(b, 0);
  again.op(b, {reads(0)});
  EXPECT_TRUE(again.races().empty());

  Issued later;
  later.wait(b, 0);  // for nothing: a records it afterwards
  later.op(a, {writes(0)});
  later.record(a, 0);
  later.op(b, {reads(0)});
  EXPECT_EQ(later.races().size(), 1u);
}

TEST(Order, OfAHostThatWaitedHoldsForEveryStreamAndForRecords) {
  Issued waited;
  waited.op(a, {writes(0)});
  waited.record(a, 0);
  waited.host_wait(0);
  waited.op(b, {reads(0)});
  waited.record(c, 1);
  waited.wait(b, 1);
  waited.op(c, {writes(1)});
  EXPECT_TRUE(waited.races().empty());

  Issued read_back;
  read_back.op(a, {writes(0)});
  read_back.read_back(a);
  read_back.op(b, {reads(0)});
  read_back.op(c, {reads(0)});
  EXPECT_TRUE(read_back.races().empty());

  Issued of_another;
  of_another.op(a, {writes(0)});
  of_another.read_back(b);
  of_another.op(c, {reads(0)});
  EXPECT_EQ(of_another.races().size(), 1u);
}

TEST(Steps, ThatFollowEachOtherRaceWhereOneAloneDoesNot) {
  // Gather into buffer 0, use it: nothing tells the next gather that it has been used.
  Issued step;
  step.op(a, {writes(0)}, "gather");
  step.record(a, 0);
  step.wait(b, 0);
  step.op(b, {reads(0)}, "use");
  EXPECT_TRUE(step.races(1).empty());
  const std::vector<Race> races = step.races(2);
  ASSERT_EQ(races.size(), 1u);
  EXPECT_EQ(races[0].first, (check::Place{0, 1}));
  EXPECT_EQ(races[0].second, (check::Place{1, 0}));
  EXPECT_NE(step.said(races[0], 2).find("of the step before"), std::string::npos) << step.said(races[0], 2);
}

TEST(Steps, MayWaitForWhatTheStepBeforeRecorded) {
  Issued step;
  step.wait(a, 1);
  step.op(a, {writes(0)}, "gather");
  step.record(a, 0);
  step.wait(b, 0);
  step.op(b, {reads(0)}, "use");
  step.record(b, 1);
  EXPECT_TRUE(step.races(3).empty());
}

TEST(Steps, ToCheckAreTwoOfAKindInARowAndTheLastOneTwice) {
  const program::Program first, second;
  const program::Program *p = &first, *q = &second;
  EXPECT_EQ(check::steps_to_check({}), (check::Steps{}));
  EXPECT_EQ(check::steps_to_check({p}), (check::Steps{p, p}));
  EXPECT_EQ(check::steps_to_check({p, p, p, p}), (check::Steps{p, p}));
  EXPECT_EQ(check::steps_to_check({p, q}), (check::Steps{p, q, q}));
  EXPECT_EQ(check::steps_to_check({p, p, p, q, p}), (check::Steps{p, p, q, p, p}));
}

TEST(Races, ThatOneWaitWouldOrderFollowTheFirst) {
  Issued issued;
  issued.op(a, {writes(0)});
  issued.op(a, {writes(1)});
  issued.op(b, {reads(1)});             // must wait for the second op
  issued.op(b, {reads(0)});             // which covers the first
  issued.op(b, {reads(1), writes(2)});
  issued.record(b, 0);
  issued.wait(c, 0);
  issued.op(c, {reads(0)});             // relayed, were the wait there
  const std::vector<Race> races = issued.races();
  ASSERT_EQ(races.size(), 4u);
  EXPECT_FALSE(races[0].follows);
  for (std::size_t at = 1; at < races.size(); ++at) EXPECT_TRUE(races[at].follows) << at;
}

TEST(Sentence, NamesBothOpsTheBufferTheWaitAndAnEventThatCouldBeAwaited) {
  Issued issued;
  issued.op(a, {writes(1, 2, 6)}, "gather");   // line 1
  issued.record(a, 3);                         // line 2
  issued.op(b, {reads(1, 4, 8)}, "use");       // line 3
  EXPECT_EQ(issued.said(issued.races().at(0)),
            "b reads buffer1 (bytes 4 to 6) in use (forward; test.cpp:3) while a may still be writing it in gather (forward; test.cpp:1): "
            "b must wait for an event that a records after that, as event3 (test.cpp:2)");

  Issued unrecorded;
  unrecorded.op(a, {reads(0)}, "use");
  unrecorded.op(b, {writes(0)}, "gather");
  EXPECT_EQ(unrecorded.said(unrecorded.races().at(0)),
            "b overwrites buffer0 (bytes 0 to 8) in gather (forward; test.cpp:2) while a may still be reading it in use (forward; test.cpp:1): "
            "b must wait for an event that a records after that");
}

}  // namespace
}  // namespace shardbook::tests
