#include "tests/launch/faulty_rank.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <iterator>
#include <sstream>

#include "engine/launch/launch.hpp"

namespace shardbook::launch::test {

namespace {

using program::OpClass;
using program::OpKind;
using program::Phase;

enum class What { killed, stopped, throws, exits, memory };

struct Fault {
  base::Rank rank = -1;
  std::int64_t step = 0;
  std::string where, what;
};

constexpr const char* names[] = {"killed", "stopped", "throws", "exits", "memory"};
What what_of(const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  SHARDBOOK_CHECK(found != std::end(names), "there is no fault '", name, "'");
  return static_cast<What>(found - std::begin(names));
}

void go_wrong(const What& what) {
  switch (what) {
    case What::killed: ::raise(SIGKILL); break;
    case What::stopped: ::raise(SIGSTOP); break;
    case What::throws: throw base::Failure("the planted fault");
    case What::exits: ::_exit(0);
    case What::memory: throw std::bad_alloc();
  }
}

// For who times what comes of it.
void say_fault() {
  if (std::getenv("SHARDBOOK_TEST_SAY_FAULT") != nullptr) std::fprintf(stderr, "FAULT %.6f\n", 1e-9 * static_cast<double>(program::host_now()));
}

bool is_there(const std::string& where, Phase phase, const program::OpDesc& desc) {
  if (where == "reduction") return desc.kind == OpKind::reduce_scatter;
  if (program::class_of(desc.kind) != OpClass::compute) return false;
  if (where == "forward") return phase == Phase::forward;
  if (where == "backward") return phase == Phase::backward;
  return phase == Phase::update;
}

}  // namespace

int train_rank_of_test(const std::string& config_file) {
  config::RunConfig asked;
  if (const base::Status read = config::read_file(asked, config_file); !read) return std::fprintf(stderr, "%s\n", read.error().c_str()), 2;
  // Of a run that no parent made the folder of
  if (const char* out = std::getenv(out_variable)) asked.out = out;
  const base::Result<config::RunConfig> config = config::validate(asked, asked.device == config::DeviceKind::cuda ? gpus_available() : 0);
  if (!config) return std::fprintf(stderr, "%s\n", config.error().c_str()), 2;

  Fault fault;
  if (const char* said = std::getenv(fault_variable)) std::istringstream(said) >> fault.rank >> fault.step >> fault.where >> fault.what;
  bool done = false;
  LaunchOptions options;
  options.with_device = [&](device::Device& device) {
    if (device.recorder().rank() != fault.rank) return;
    if (fault.where == "setup") return go_wrong(what_of(fault.what));
    // Issued before the op, it goes wrong when the device runs it: what was issued earlier has run, nothing later has.
    device.set_before_op([&](device::Lane lane, const program::OpDesc& desc) {
      const bool now = !done && lane.recorder().step() == fault.step && is_there(fault.where, lane.recorder().key().phase, desc);
      if (!now) return;
      done = true;
      say_fault();
      // A GPU runs no such thing: there it goes wrong as it is issued.
      lane.device().launch(lane, program::OpDesc("fault", OpKind::fill, base::DType::f32), what_of(fault.what), &go_wrong,
                           +[](const What& what, const device::CudaQueue&) { go_wrong(what); });
    });
  };
  const base::Result<Outcome> outcome = run(config.value(), options);
  if (outcome) return outcome.value().stopped_early ? stopped_rank_code : 0;
  // Without a parent nobody else says it.
  if (std::getenv("SHARDBOOK_REPORT_FD") == nullptr) std::fprintf(stderr, "%s\n", outcome.error().c_str());
  return 1;
}

}  // namespace shardbook::launch::test
