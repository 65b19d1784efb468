// What is kept beside a run, and loading it.
#include "viewer/scene/sidecar.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/timeline/columns.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/viewer_scene/support.hpp"
#include "viewer/scene/loader.hpp"

namespace shardbook::scene {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, removed after it.
class Folder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / base::text("shardbook-scene-", ::getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) const { std::ofstream(path(name), std::ios::binary) << content; }
  fs::path folder_;
};
using SidecarFile = Folder;
using Loading = Folder;

TEST_F(SidecarFile, KeepsAllThatTheUserDid) {
  Sidecar sidecar;
  sidecar.view_start = 1234.5;
  sidecar.view_end = 99999.25;
  sidecar.choices.open = {"r0", "r3"};
  sidecar.choices.pinned = {"r0.s20"};
  sidecar.choices.hidden = {"host"};
  sidecar.choices.fold_alike = false;
  sidecar.ranges = {{{10, 20}, "the first \"gather\"\n"}};
  sidecar.annotations = {{"r0.s20", 15, "¿por qué?"}, {"", 17, "ruler"}};
  sidecar.selected = "r0.s20/117";
  ASSERT_TRUE(write_sidecar(sidecar, path("notes.json")).ok());
  const base::Result<Sidecar> back = read_sidecar(path("notes.json"));
  ASSERT_TRUE(back.ok()) << back.error();
  EXPECT_EQ(back.value(), sidecar);
}

TEST_F(SidecarFile, ThatIsNotThereIsAnEmptyOne) {
  const base::Result<Sidecar> sidecar = read_sidecar(path("notes.json"));
  ASSERT_TRUE(sidecar.ok());
  EXPECT_EQ(sidecar.value(), Sidecar{});
}

TEST_F(SidecarFile, ThatCannotBeReadIsMovedAsideAndKept) {
  for (const char* content : {"", "{", "[1]", "{\"format\": 2}", "{\"view\": 3}", "{\"ranges\": [{\"start\": \"x\"}]}", "\x01\x02\xff"}) {
    write("notes.json", content);
    const base::Result<Sidecar> sidecar = read_sidecar(path("notes.json"));
    ASSERT_FALSE(sidecar.ok()) << content;
    EXPECT_NE(sidecar.error().find("moved to"), std::string::npos) << sidecar.error();
    EXPECT_FALSE(fs::exists(path("notes.json")));
  }
  std::ifstream first(path("notes.json.unreadable-2"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(first), {}), "{") << "each is kept";
}

TEST_F(SidecarFile, WithTimesThatAreNoneOrNestedTooDeepIsMovedAside) {
  const std::pair<std::string, const char*> files[] = {
      {R"({"ranges": [{"start": 1e300, "end": 2}]})", "a time is no whole number of nanoseconds"},
      {R"({"annotations": [{"row": "", "time": 18446744073709551615}]})", "a time is no whole number of nanoseconds"},
      {R"({"format": 4294967297})", "it has format 4294967297"},
      {"{\"view\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}", "its values nest deeper than 100 levels"}};
  for (const auto& [content, why] : files) {
    write("notes.json", content);
    const base::Result<Sidecar> sidecar = read_sidecar(path("notes.json"));
    ASSERT_FALSE(sidecar.ok()) << why;
    EXPECT_NE(sidecar.error().find(why), std::string::npos) << sidecar.error();
  }
}

TEST_F(SidecarFile, InAFolderWithoutRightsIsOneSentence) {
  const base::Status written = write_sidecar({}, path("missing/notes.json"));
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().find("missing/notes.json"), std::string::npos) << written.error();
}

TEST_F(SidecarFile, StandsInTheRunOrBesideTheTrace) {
  EXPECT_EQ(sidecar_path(folder_.string()), path("notes.json"));
  EXPECT_EQ(sidecar_path(folder_.string() + "/"), path("notes.json"));
  EXPECT_EQ(sidecar_path(path("trace.json.gz")), path("trace.json.gz.notes.json"));
}

TEST_F(Loading, ReadsARunWithItsInfoOnItsOwnThread) {
  const Timeline timeline = random_run(51, 2, 50);
  for (Rank rank : {0, 1}) ASSERT_TRUE(timeline::write_rank(timeline, rank, path(base::text("rank", rank, ".json"))).ok());
  timeline::RunInfo info;
  info.lab = "02";
  ASSERT_TRUE(timeline::write_run_info(info, path("run.json")).ok());
  Loader loader({folder_.string()});
  for (int i = 0; i < 2000 && !loader.done(); ++i) ::usleep(1000);
  ASSERT_TRUE(loader.done());
  const auto scene = loader.take();
  ASSERT_TRUE(scene.ok()) << scene.error();
  EXPECT_EQ(scene.value()->ranks().size(), 2u);
  ASSERT_NE(scene.value()->info(), nullptr);
  EXPECT_EQ(scene.value()->info()->lab, "02");
  EXPECT_FLOAT_EQ(loader.progress().fraction.load(), 1.0f);
}

// What a window shows while it waits: read as often as can be, by another thread.
TEST_F(Loading, TellsHowFarItIsAndNeverLess) {
  const Timeline timeline = random_run(53, 2, 20'000);
  for (Rank rank : {0, 1}) ASSERT_TRUE(timeline::write_rank(timeline, rank, path(base::text("rank", rank, ".json"))).ok());
  ASSERT_GT(std::filesystem::file_size(path("rank0.json")), 4u << 20);
  Loader loader({folder_.string()});
  float last = 0;
  while (!loader.done()) {
    const float now = loader.progress().fraction.load();
    ASSERT_GE(now, last);
    ASSERT_LE(now, 1.0f);
    last = now;
    std::this_thread::sleep_for(std::chrono::microseconds(50));   // a processor more for the threads that load
  }
  ASSERT_TRUE(loader.take().ok());
  EXPECT_FLOAT_EQ(loader.progress().fraction.load(), 1.0f);
}

TEST_F(Loading, EndsWhileItReadsWhenItIsToStop) {
  const Timeline timeline = random_run(53, 1, 20'000);
  ASSERT_TRUE(timeline::write_rank(timeline, 0, path("rank0.json")).ok());
  Progress progress;
  progress.stop = true;
  const auto scene = load({folder_.string()}, &progress);
  ASSERT_FALSE(scene.ok());
  EXPECT_EQ(scene.error(), "reading " + path("rank0.json") + " was stopped");
  EXPECT_GT(progress.fraction.load(), 0.0f);
  EXPECT_LT(progress.fraction.load(), read_share / 2) << "after the first megabyte";
}

TEST_F(Loading, UnpacksAPackForAsLongAsItIsOpen) {
  fs::create_directories(folder_ / "run");
  const Timeline timeline = random_run(54, 2, 50);
  for (Rank rank : {0, 1}) ASSERT_TRUE(timeline::write_rank(timeline, rank, path(base::text("run/rank", rank, ".json"))).ok());
  timeline::RunInfo info;
  info.lab = "04";
  ASSERT_TRUE(timeline::write_run_info(info, path("run/run.json")).ok());
  const std::string pack = path("run" + timeline::pack_ending());
  const auto packed = timeline::write_pack(path("run"), "", pack);
  ASSERT_TRUE(packed.ok()) << packed.error();
  std::string unpacked;
  {
    const auto scene = load({pack});
    ASSERT_TRUE(scene.ok()) << scene.error();
    EXPECT_EQ(scene.value()->timeline().spans(), timeline.spans());
    EXPECT_EQ(scene.value()->name(), pack);
    ASSERT_NE(scene.value()->info(), nullptr);
    EXPECT_EQ(scene.value()->info()->lab, "04");
    ASSERT_NE(scene.value()->unpacked(), nullptr);
    unpacked = scene.value()->unpacked()->folder;
    EXPECT_TRUE(fs::exists(unpacked));
  }
  EXPECT_FALSE(fs::exists(unpacked));
  write("broken" + timeline::pack_ending(), "no pack");
  const auto broken = load({path("broken" + timeline::pack_ending())});
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().find("broken"), std::string::npos) << broken.error();
}

TEST_F(Loading, ReadsTheFormForLargeRuns) {
  const Timeline timeline = random_run(55, 2, 50);
  ASSERT_TRUE(timeline::write_columns(timeline, path("run.tlb")).ok());
  const auto scene = load({path("run.tlb")});
  ASSERT_TRUE(scene.ok()) << scene.error();
  EXPECT_EQ(scene.value()->timeline().spans(), timeline.spans());
}

TEST_F(Loading, ShowsARunWhoseRunJsonIsDamaged) {
  ASSERT_TRUE(timeline::write_rank(random_run(52, 1, 50), 0, path("rank0.json")).ok());
  write("run.json", "{ damaged");
  const auto scene = load({folder_.string()});
  ASSERT_TRUE(scene.ok()) << scene.error();
  EXPECT_EQ(scene.value()->info(), nullptr);
  ASSERT_FALSE(scene.value()->timeline().banners.empty());
  EXPECT_NE(scene.value()->timeline().banners.back().find("run.json"), std::string::npos);
}

TEST_F(Loading, RefusesWhatIsNoRunInOneSentence) {
  write("empty.json", "");
  write("binary.json", std::string(1000, '\xfe'));
  write("other.json", "{\"traceEvents\": []}");
  for (const char* name : {"empty.json", "binary.json", "other.json", "missing.json"}) {
    const auto scene = load({path(name)});
    ASSERT_FALSE(scene.ok()) << name;
    EXPECT_NE(scene.error().find(name), std::string::npos) << scene.error();
  }
  EXPECT_FALSE(load({}).ok());
  EXPECT_FALSE(load({folder_.string()}).ok()) << "a folder without rank files";
}

TEST_F(Loading, EndsWhenItIsNotWantedAnyMore) {
  ASSERT_TRUE(timeline::write_rank(random_run(53, 1, 2000), 0, path("rank0.json")).ok());
  { Loader loader({folder_.string()}); }
  SUCCEED();
}

}  // namespace
}  // namespace shardbook::scene
