// Whatever ends a run, and whenever: what bears a checkpoint's name is whole, and the run that goes on from it is the run
// that was never ended.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "engine/checkpoint/saver.hpp"
#include "tests/checkpoint/runs.hpp"
#include "tests/support/plans.hpp"

namespace shardbook::tests {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// In continuous integration a few, in memory; SHARDBOOK_KILLS=200 asks for more, and for a disk.
struct Kills {
  int count = 20;
  bool on_disk = false;
};
Kills kills_asked_for() {
  const char* asked = std::getenv("SHARDBOOK_KILLS");
  return asked == nullptr ? Kills{} : Kills{std::atoi(asked), true};
}

// Trains in a child until it ends, or until `after` has gone by since it began: then it is killed. True: it was.
bool killed(const config::RunConfig& config, std::chrono::microseconds after) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ready[0]);
    // Killed before, in and after its first steps: from the begin of its training on
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    const Numbers numbers = numbers_of(config);
    ::_exit(numbers.error.empty() ? 0 : 1);
  }
  ::close(ready[1]);
  if (child < 0) {   // kill() would take that for everyone
    ADD_FAILURE() << "no process can be made";
    return false;
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  // Its end of the pipe closes when it ends
  pollfd pipe{ready[0], 0, 0};
  const timespec time{after.count() / 1'000'000, after.count() % 1'000'000 * 1000};
  const bool ended = ::ppoll(&pipe, 1, &time, nullptr) == 1;
  ::close(ready[0]);
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (ended) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return !ended;
}

std::string half_written_in(const std::string& folder) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    if (entry->path().filename().string().starts_with(".step-")) return entry->path().string();
  }
  return "";
}

std::int64_t newest_in(const std::string& folder) {
  const base::Result<checkpoint::Found> found = checkpoint::find(folder);
  return found ? found.value().manifest.step : 0;
}

const Asked& asked_of_killed() {
  static const Asked asked{{"layers", "1"}, {"tp", "2"}, {"fsdp", "2"}, {"steps", "24"}, {"hidden-dropout", "0.1"}};
  return asked;
}

// How long a child's run takes that saves each step, so that the moments lie within: under a sanitizer it is slower than the parent's.
std::chrono::microseconds longest_run(bool on_disk) {
  const Folder folder(on_disk);
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(killed(small(with(asked_of_killed(), {{"checkpoint", folder / "saved"}, {"save-every", "1"}})), std::chrono::minutes(5)));
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

TEST(Killed, AtAnyMomentALaterRunGoesOnAsIfItHadNeverEnded) {
  const Kills wanted = kills_asked_for();
  const Numbers whole = numbers_of(small(asked_of_killed()));
  ASSERT_EQ(whole.error, "");
  const auto all = static_cast<std::int64_t>(whole.steps.size());
  const std::chrono::microseconds longest = longest_run(wanted.on_disk);

  Chance chance(2026);
  int kills = 0, gone_on = 0, half_written = 0;
  for (int trial = 0; kills < wanted.count && trial < 8 * wanted.count; ++trial) {
    const Folder folder(wanted.on_disk);
    const std::string saved = folder / "saved";
    Asked saving = with(asked_of_killed(), {{"checkpoint", saved}, {"save-every", std::to_string(1 + chance.below(3))}, {"keep-checkpoints", std::to_string(chance.below(4))}});
    // Killed; and some of those that went on are killed again
    for (const int lives = 1 + chance.below(3); lives > 0 && kills < wanted.count;) {
      if (!killed(small(saving), std::chrono::microseconds(static_cast<std::int64_t>(chance.next() % static_cast<std::uint64_t>(longest.count() * 2 / 3))))) break;
      ++kills;
      for (const std::int64_t step : checkpoint::steps_in(saved)) ASSERT_EQ(damage_of(checkpoint::path_of_step(saved, step)), "");
      half_written += half_written_in(saved).empty() ? 0 : 1;
      if (newest_in(saved) == all) break;
      if (newest_in(saved) > 0 && saving.back().first != "resume") saving.push_back({"resume", saved});
      if (chance.once_in(2)) break;
    }
    // The last life is this process', which sees the numbers
    const std::int64_t first = newest_in(saved);
    if (first == all) continue;
    gone_on += first > 0 ? 1 : 0;
    expect_goes_on(numbers_of(small(saving)), whole, first);
    EXPECT_EQ(half_written_in(saved), "") << "is left over";
    EXPECT_EQ(newest_in(saved), all);
  }
  EXPECT_EQ(kills, wanted.count);
  EXPECT_GT(gone_on, 0);
  std::printf("%d kills; %d runs went on from a checkpoint; %d times one was half written\n", kills, gone_on, half_written);
}

// No file may grow beyond so many bytes while this lives, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(FullDisks, AreSaidInASentenceAndTheEarlierCheckpointStays) {
  const Asked asked{{"fsdp", "2"}, {"steps", "12"}};
  const Numbers whole = numbers_of(small(asked));
  // Bytes that may be written: less than the data of a rank; than a part; none, not even by whom the folder is claimed
  for (const rlim_t bytes : {rlim_t{40'000}, rlim_t{100}, rlim_t{0}}) {
    const Folder folder;
    const std::string saved = folder / "saved";
    ASSERT_EQ(numbers_of(small(with(asked, {{"steps", "12"}, {"checkpoint", saved}, {"save-every", "4"}, {"keep-checkpoints", "0"}}))).error, "");
    fs::remove_all(checkpoint::path_of_step(saved, 12));
    fs::remove_all(checkpoint::path_of_step(saved, 8));
    const Asked again = with(asked, {{"checkpoint", saved}, {"resume", saved}, {"save-every", "4"}});
    std::string error;
    {
      const FullDisk disk(bytes);
      error = numbers_of(small(again)).error;
    }
    const std::string begin = bytes > 0 ? "the checkpoint of step 8 was not saved: cannot write " + saved : "cannot write " + saved;
    const std::string end = bytes > 0 ? "those before it in " + saved + " are whole: free space there" : "free space there";
    EXPECT_NE(error.find(begin), std::string::npos) << error;
    EXPECT_NE(error.find("File too large; " + end + ", or name another folder with --checkpoint"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    // Nothing of it is left but the earlier one, from which all goes on
    EXPECT_EQ(checkpoint::steps_in(saved), std::vector<std::int64_t>{4});
    for (const fs::directory_entry& entry : fs::directory_iterator(saved)) EXPECT_FALSE(entry.path().filename().string().starts_with(".step-")) << entry.path();
    EXPECT_EQ(damage_of(checkpoint::path_of_step(saved, 4)), "");
    expect_goes_on(numbers_of(small(again)), whole, 4);
  }
}

// Each of the other ranks takes the empty folder away once, as one does whose disk is full: that is no cause.
TEST(FullDisks, AreTheCauseThatIsNamedWhenOthersTakeTheFolderAway) {
  const Folder folder;
  constexpr int ranks = 4;
  std::vector<float> numbers(64);
  const std::string end = ": File too large; those before it in " + folder.path().string() + " are whole: free space there, or name another folder with --checkpoint";
  const FullDisk disk(100);
  int taken_away = 0;
  // Until some were taken away in time; where one processor does all, it may be none
  for (int step = 0; step < 200 || (taken_away == 0 && step < 1000); ++step) {
    checkpoint::Saver saver({folder.path().string(), "full", 0, ranks, 0});
    saver.begin(step, "{}", {{"weight", base::DType::f32, {64}, shard::whole({64}), reinterpret_cast<std::byte*>(numbers.data())}});
    const std::string hidden = checkpoint::hidden_path_of_step(folder.path().string(), step, "full");
    for (int others = ranks - 1; saver.under_way();) {
      if (others > 0 && ::rmdir(hidden.c_str()) == 0) --others, ++taken_away;
    }
    const base::Status saved = saver.status();
    ASSERT_FALSE(saved);
    ASSERT_TRUE(saved.error().ends_with(end)) << "step " << step << ": " << saved.error();
    ASSERT_TRUE(fs::is_empty(folder.path()));
  }
  if (std::thread::hardware_concurrency() > 1) {
    EXPECT_GT(taken_away, 0);
  }
}

// A rank that saves alone, and how that went.
base::Status saved_alone(checkpoint::Saver& saver, std::int64_t step) {
  static std::vector<float> numbers(64);
  saver.begin(step, "{}", {{"weight", base::DType::f32, {64}, shard::whole({64}), reinterpret_cast<std::byte*>(numbers.data())}});
  saver.wait([] {});
  return saver.status();
}

TEST(Saver, NamesNoCheckpointWhoseManifestWouldNotBeReadAgain) {
  const Folder folder;
  checkpoint::SaverPlace place{folder.path().string(), "large", 0, 1, 1};
  checkpoint::Saver before(place);
  ASSERT_TRUE(saved_alone(before, 1));
  place.most_manifest = 100;
  checkpoint::Saver saver(place);
  const base::Status saved = saved_alone(saver, 2);
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().find("the checkpoint of step 2 was not saved: its manifest has "), std::string::npos) << saved.error();
  EXPECT_NE(saved.error().find(" bytes, and at most 100 would be read again"), std::string::npos) << saved.error();
  EXPECT_EQ(checkpoint::steps_in(folder.path().string()), std::vector<std::int64_t>{1}) << "the one before is there still";
}

TEST(Saver, HasSavedThoughAnOlderOneCannotBeRemoved) {
  const Folder folder;
  const std::string place = folder.path().string();
  checkpoint::Saver saver({place, "stays", 0, 1, 1});
  ASSERT_TRUE(saved_alone(saver, 1));
  EXPECT_EQ(saver.saved().left, "");
  // Where the older one is to go, something lies already that no rename replaces
  const std::string in_the_way = checkpoint::hidden_path_of_step(place, 1, "stays.removed");
  fs::create_directories(fs::path(in_the_way) / "held");
  const base::Status saved = saved_alone(saver, 2);
  EXPECT_TRUE(saved) << saved.error();
  EXPECT_NE(saver.saved().left.find("cannot rename " + checkpoint::path_of_step(place, 1)), std::string::npos) << saver.saved().left;
  EXPECT_EQ(checkpoint::steps_in(place), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(checkpoint::find(place).value().manifest.step, 2);
  // Once it can go it goes, with the next
  fs::remove_all(in_the_way);
  ASSERT_TRUE(saved_alone(saver, 3));
  EXPECT_EQ(saver.saved().left, "");
  EXPECT_EQ(checkpoint::steps_in(place), std::vector<std::int64_t>{3});
}

TEST(FullDisks, OfAFileForOtherProgramsLeaveNone) {
  const Folder folder;
  ASSERT_EQ(numbers_of(small({{"steps", "1"}, {"warmup-steps", "0"}, {"checkpoint", folder / "saved"}})).error, "");
  const base::Result<checkpoint::Found> found = checkpoint::find(folder / "saved");
  ASSERT_TRUE(found);
  const base::Status written = [&] {
    const FullDisk disk(50'000);
    return checkpoint::write_safetensors(found.value().path, found.value().manifest, folder / "all.safetensors");
  }();
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().find("File too large"), std::string::npos) << written.error();
  EXPECT_FALSE(fs::exists(folder / "all.safetensors"));
  EXPECT_FALSE(fs::exists(folder / "all.safetensors.tmp"));
}

TEST(Claims, OfOneFolderAreHeldByOneRun) {
  const Folder folder;
  {
    const base::Result<checkpoint::Claim> first = checkpoint::Claim::take(folder / "saved", "first");
    ASSERT_TRUE(first);
    const Numbers second = numbers_of(small({{"checkpoint", folder / "saved"}}));
    // Who sees another folder of that name, as on another node, is told
    EXPECT_TRUE(checkpoint::expect_claimed(folder / "saved", "first"));
    const base::Status elsewhere = checkpoint::expect_claimed(folder / "saved", "firs", std::chrono::milliseconds(1));
    ASSERT_FALSE(elsewhere);
    EXPECT_NE(elsewhere.error().find("name one with --checkpoint that all nodes see"), std::string::npos);
    EXPECT_NE(second.error.find("another run writes checkpoints to " + (folder / "saved")), std::string::npos) << second.error;
  }
  EXPECT_EQ(numbers_of(small({{"checkpoint", folder / "saved"}})).error, "");
}

}  // namespace
}  // namespace shardbook::tests
