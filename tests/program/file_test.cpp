// Does the record come back from its file as it was, and does a bad file give one clear sentence?
#include "engine/program/file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/program/small_step.hpp"

namespace shardbook::program {
namespace {

namespace fs = std::filesystem;

class RecordFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / base::text("shardbook_record_", ::getpid());
    fs::create_directories(folder_);
    path_ = (folder_ / "rank0.program").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  fs::path folder_;
  std::string path_;
};

TEST_F(RecordFile, ComesBackAsItWas) {
  Recorder recorder(3);
  SmallStep step(recorder);
  std::vector<StepTimes> steps = {step.step(4), step.step(5, false), step.step(6)};
  steps[1].ran[2] = {1'000'000, 1'000'500};
  ASSERT_TRUE(save(path_, 8, recorder, steps).ok());
  auto loaded = load(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  const Record& record = loaded.value();

  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.world_size, 8);
  ASSERT_EQ(record.programs.size(), 2u);
  for (std::size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(hash(*record.programs[at], record.catalogue), recorder.program_hashes()[at]);
    EXPECT_EQ(edges(*record.programs[at]).size(), edges(*recorder.programs()[at]).size());
  }
  ASSERT_EQ(record.steps.size(), 3u);
  for (std::size_t at = 0; at < 3; ++at) {
    EXPECT_EQ(record.steps[at].step, steps[at].step);
    EXPECT_EQ(record.steps[at].program, steps[at].program);
    EXPECT_EQ(record.steps[at].window.start, steps[at].window.start);
    EXPECT_EQ(record.steps[at].window.end, steps[at].window.end);
    ASSERT_EQ(record.steps[at].issued.size(), steps[at].issued.size());
    for (std::size_t command = 0; command < steps[at].issued.size(); ++command) {
      EXPECT_EQ(record.steps[at].issued[command].start, steps[at].issued[command].start);
      EXPECT_EQ(record.steps[at].issued[command].end, steps[at].issued[command].end);
    }
    for (std::size_t op = 0; op < steps[at].ran.size(); ++op) {
      EXPECT_EQ(record.steps[at].ran[op].start, steps[at].ran[op].start);
      EXPECT_EQ(record.steps[at].ran[op].end, steps[at].ran[op].end);
    }
  }
  EXPECT_EQ(record.catalogue.buffers[1].name, "whole");
  EXPECT_EQ(record.catalogue.buffers[1].kind, MemoryKind::gathered);
  EXPECT_EQ(record.catalogue.groups[0].ranks, (std::vector<base::Rank>{0, 1}));
  EXPECT_STREQ(record.programs[0]->ops[0].where.file, "schedule.cpp");
  EXPECT_EQ(record.programs[0]->commands.back().where.line, 1u);
}

TEST_F(RecordFile, LeavesNothingBesideItself) {
  Recorder recorder(0);
  SmallStep step(recorder);
  ASSERT_TRUE(save(path_, 1, recorder, {step.step(0)}).ok());
  ASSERT_TRUE(save(path_, 1, recorder, {}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(RecordFile, SaysThatAFolderIsMissing) {
  Recorder recorder(0);
  const base::Status status = save((folder_ / "none" / "rank0.program").string(), 1, recorder, {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("none/rank0.program"), std::string::npos) << status.error();
}

TEST_F(RecordFile, SaysThatTheDiskIsFullAndLeavesNothing) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // What is written beside is a link to a device that is always full.
  fs::create_symlink("/dev/full", path_ + ".tmp");
  Recorder recorder(0);
  SmallStep step(recorder);
  const base::Status status = save(path_, 1, recorder, {step.step(0)});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("No space left"), std::string::npos) << status.error();
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(RecordFile, RefusesWhatIsMissingForeignOldOrCutOff) {
  auto refused = [&](const std::string& because) {
    auto loaded = load(path_);
    ASSERT_FALSE(loaded.ok());
    EXPECT_NE(loaded.error().find(because), std::string::npos) << loaded.error();
    EXPECT_NE(loaded.error().find("rank0.program"), std::string::npos) << loaded.error();
  };
  refused("No such file");
  put("{\"traceEvents\": []}");
  refused("is not a record");

  Recorder recorder(0);
  SmallStep step(recorder);
  ASSERT_TRUE(save(path_, 1, recorder, {step.step(0)}).ok());
  const std::string good = content();
  put(good.substr(0, 20));
  refused("cut off in its head");
  put(good.substr(0, good.size() - 5));
  refused("should have");
  std::string other_version = good;
  other_version[8] = 99;
  put(other_version);
  refused("version 99");
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  put(flipped);
  refused("stored hash");
}

// Any byte of the content changed, with a hash that fits: a sentence or a record, never a crash.
TEST_F(RecordFile, SurvivesAnyByteWithAHashThatFits) {
  Recorder recorder(0);
  SmallStep step(recorder);
  ASSERT_TRUE(save(path_, 1, recorder, {step.step(0)}).ok());
  const std::string good = content();
  constexpr std::size_t head = 28;
  int refused = 0;
  for (std::size_t at = head; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x7f);
    std::uint64_t sum = 1469598103934665603ull;
    for (std::size_t byte = head; byte < changed.size(); ++byte) {
      sum = (sum ^ static_cast<unsigned char>(changed[byte])) * 1099511628211ull;
    }
    for (int byte = 0; byte < 8; ++byte) changed[20 + byte] = static_cast<char>(sum >> (8 * byte));
    put(changed);
    if (!load(path_).ok()) ++refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace shardbook::program
