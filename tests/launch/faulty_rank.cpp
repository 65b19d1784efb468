#include "tests/launch/faulty_rank.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <iterator>
#include <limits>
#include <sstream>
#include <string_view>
#include <thread>

#include "engine/launch/launch.hpp"

namespace shardbook::launch::test {

namespace {

using program::OpClass;
using program::OpKind;
using program::Phase;

enum class What { killed, stopped, throws, exits, memory, slow, day_later, day_earlier, full_disk };

constexpr const char* names[] = {"killed", "stopped", "throws", "exits", "memory", "slow", "day_later", "day_earlier", "full_disk"};
What what_of(const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  SHARDBOOK_CHECK(found != std::end(names), "there is no fault '", name, "'");
  return static_cast<What>(found - std::begin(names));
}

// What an op reads becomes no number, where nothing has written it.
struct Spoil {
  float* numbers;
  std::int64_t count;
};
void spoil(const Spoil& args) { std::fill_n(args.numbers, args.count, std::numeric_limits<float>::quiet_NaN()); }

// The clock that names days, as this process is told it.
std::atomic<std::int64_t> set_by_s{0};

void set_the_clock(int days) {
  const auto before = std::chrono::system_clock::now();
  set_by_s = days * std::int64_t{86'400};
  const auto jumped = std::chrono::duration_cast<std::chrono::hours>(std::chrono::system_clock::now() - before).count();
  SHARDBOOK_CHECK(std::abs(jumped) >= 23, "the clock was to be set, and shows ", jumped, " hours more");
}

// No file of this process is written beyond its first bytes any more.
void fill_the_disk() {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void go_wrong(const What& what) {
  switch (what) {
    case What::killed: ::raise(SIGKILL); break;
    case What::stopped: ::raise(SIGSTOP); break;
    case What::throws: throw base::Failure("the planted fault");
    case What::exits: ::_exit(0);
    case What::memory: throw std::bad_alloc();
    case What::slow: return std::this_thread::sleep_for(std::chrono::seconds(1));
    case What::day_later: return set_the_clock(1);
    case What::day_earlier: return set_the_clock(-1);
    case What::full_disk: return fill_the_disk();
  }
}

// For who times what comes of it.
void say_fault() {
  if (std::getenv("SHARDBOOK_TEST_SAY_FAULT") != nullptr) std::fprintf(stderr, "FAULT %.6f\n", 1e-9 * static_cast<double>(program::host_now()));
}

bool is_there(const std::string& where, Phase phase, const program::OpDesc& desc) {
  if (std::string_view(desc.name) == "check_finite") return false;
  if (where == "reduction") return desc.kind == OpKind::reduce_scatter;
  if (program::class_of(desc.kind) != OpClass::compute) return false;
  if (where == "forward") return phase == Phase::forward;
  if (where == "backward") return phase == Phase::backward;
  if (where == "adam_w") return where == desc.name;
  return phase == Phase::update;
}

// A GPU runs no function of the host: there it goes wrong as it is issued.
template <class Args>
void issue(device::Lane lane, const Args& args, void (*form)(const Args&), void (*cuda_form)(const Args&, const device::CudaQueue&) = nullptr) {
  lane.device().launch(lane, program::OpDesc("fault", OpKind::fill, base::DType::f32), args, form, cuda_form);
}

}  // namespace

// In place of the C library's, for this program and its libraries: who reads the clock that names days is told what it was set to.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int code = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (code == 0 && clock == CLOCK_REALTIME) time->tv_sec += set_by_s;
  return code;
}
#endif

void plant(device::Device& device, const Fault& fault) {
  // What spoils is an op in the record, and all ranks have the same ops: of the others it spoils nothing.
  const bool mine = device.recorder().rank() == fault.rank;
  if (!mine && fault.what != "spoils") return;
  if (fault.where == "setup") return go_wrong(what_of(fault.what));
  // Issued before the op, it goes wrong when the device runs it: what was issued earlier has run, nothing later has.
  device.set_before_op([fault, mine, done = false](device::Lane lane, const program::OpDesc& desc) mutable {
    const bool now = !done && lane.recorder().step() == fault.step && is_there(fault.where, lane.recorder().key().phase, desc);
    if (!now) return;
    done = true;
    if (fault.what != "spoils") return say_fault(), issue(lane, what_of(fault.what), &go_wrong, +[](const What& what, const device::CudaQueue&) { go_wrong(what); });
    for (int use = 0; use < desc.uses.size(); ++use) {
      const program::BufferUse& range = desc.uses[use];
      const auto numbers = (desc.written_mask >> use & 1) == 0 ? lane.device().numbers_in(range) : std::nullopt;
      if (numbers) issue(lane, Spoil{static_cast<float*>(numbers->data), mine ? numbers->elements : 0}, &spoil);
    }
  });
}

// Goes wrong when a checkpoint is being written and one is there already. It ends with its process.
static void watch_for_saving(const std::string& folder, const std::string& what) {
  std::thread([folder, what] {
    while (true) {
      bool is_written = false, is_there = false;
      std::error_code none;
      for (std::filesystem::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
        const std::string name = entry->path().filename().string();
        is_written = is_written || name.starts_with(".step-");
        is_there = is_there || name.starts_with("step-");
      }
      if (is_written && is_there) return go_wrong(what_of(what));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }).detach();
}

// From here on this process may have so much more memory for data than its libraries took.
static void keep_to_spare_memory(const char* mebibytes) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmData:")) continue;
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = static_cast<rlim_t>(std::stoull(line.substr(7))) * 1024 + static_cast<rlim_t>(std::stoull(mebibytes)) * 1024 * 1024;
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

int train_rank_of_test(const std::string& config_file) {
  if (const char* spare = std::getenv(spare_variable)) keep_to_spare_memory(spare);
  config::RunConfig asked;
  if (const base::Status read = config::read_file(asked, config_file); !read) return std::fprintf(stderr, "%s\n", read.error().c_str()), 2;
  // Of a run that no parent made the folder of
  if (const char* out = std::getenv(out_variable)) asked.out = out;
  const base::Result<config::RunConfig> config = config::validate(asked, asked.device == config::DeviceKind::cuda ? gpus_available() : 0);
  if (!config) return std::fprintf(stderr, "%s\n", config.error().c_str()), 2;

  Fault fault;
  if (const char* said = std::getenv(fault_variable)) std::istringstream(said) >> fault.rank >> fault.step >> fault.where >> fault.what;
  if (fault.where == "saving") {
    const char* rank = std::getenv("SHARDBOOK_RANK");
    if (rank != nullptr && rank == std::to_string(fault.rank)) watch_for_saving(config.value().checkpoint, fault.what);
    fault.rank = -1;
  }
  LaunchOptions options;
  options.with_device = [&](device::Device& device) { plant(device, fault); };
  const base::Result<Outcome> outcome = run(config.value(), options);
  if (outcome) return outcome.value().stopped_early ? stopped_rank_code : 0;
  // Without a parent nobody else says it.
  if (std::getenv("SHARDBOOK_REPORT_FD") == nullptr) std::fprintf(stderr, "%s\n", outcome.error().c_str());
  return 1;
}

}  // namespace shardbook::launch::test
