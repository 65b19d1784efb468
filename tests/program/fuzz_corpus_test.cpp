// What the fuzzer of records began with and what it found worth keeping still holds; see fuzz/build.sh for the fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/program/fuzz/targets.hpp"
#include "tests/program/small_step.hpp"

namespace shardbook::program {
namespace {

TEST(RecordCorpus, IsReadOrRefusedInASentence) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/program/fuzz/corpus")) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    fuzz::check_record(bytes.str());
    ++files;
  }
  EXPECT_GE(files, 10u);
}

// Else the fuzzer would never come past the hash.
TEST(RecordCorpus, AMendedRecordIsReadAsItWas) {
  Recorder recorder(1);
  SmallStep step(recorder);
  const std::string good = encode(1, 2, recorder.catalogue(), recorder.programs(), {step.step(0)});
  EXPECT_EQ(fuzz::mended(good), good);
  std::string changed = good;
  changed[20] = static_cast<char>(changed[20] ^ 1);
  EXPECT_FALSE(decode(changed, "rank0.program").ok());
  EXPECT_TRUE(decode(fuzz::mended(changed), "rank0.program").ok());
}

// Found by fuzzing: a length was compared with what was left before its own bytes were read.
TEST(RecordCorpus, ATextThatEndsBehindTheFileIsDamage) {
  std::string file(28, '\0');
  file += '\x01';                                   // one text
  file += '\x03';                                   // of three bytes, and two follow
  file += "ab";
  const auto read = decode(fuzz::mended(file), "rank0.program");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error(), "the record rank0.program is damaged: length of a text 3 is more than what follows can hold; make the run again");
}

TEST(RecordCorpus, TimesThatCannotBeAddedAreDamage) {
  Recorder recorder(0);
  SmallStep step(recorder);
  for (const bool far : {false, true}) {
    StepTimes times = step.step(0);
    times.window = {(base::Nanoseconds{1} << 61) - 1, (base::Nanoseconds{1} << 61) + (far ? 1 : 0)};
    const auto read = decode(encode(0, 1, recorder.catalogue(), recorder.programs(), {times}), "rank0.program");
    EXPECT_EQ(read.ok(), !far) << (read.ok() ? "" : read.error());
  }
}

}  // namespace
}  // namespace shardbook::program
