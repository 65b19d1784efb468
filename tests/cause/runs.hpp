// Runs with a planted problem: made on meta, with altered options, profiles or records.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/cause/recorded.hpp"
#include "engine/cause/study.hpp"
#include "engine/cause/why.hpp"
#include "engine/launch/launch.hpp"
#include "engine/simulate/profile.hpp"
#include "engine/timeline/reader.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::cause {

using Options = tests::Asked;

struct PlantedRun {
  Timeline timeline;
  Recorded recorded;
};

// A run on meta that stays in memory.
inline PlantedRun run_of(const Options& options) {
  const config::RunConfig config = tests::config_of(tests::with({{"device", "meta"}}, options));
  launch::LaunchOptions in_memory;
  in_memory.write_run = false;
  base::Result<launch::Outcome> outcome = launch::run(config, in_memory);
  EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error());
  PlantedRun run;
  run.timeline = std::move(outcome.value().timeline);
  run.recorded.records = std::move(outcome.value().records);
  run.recorded.info = std::move(outcome.value().info);
  return run;
}

inline const std::string captured = std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/";
inline const std::string measured = std::string(SHARDBOOK_SOURCE_DIR) + "/tests/data/cause/measured/";

// A pack of a run that was measured.
inline PlantedRun captured_run(const std::string& name, const std::string& folder = captured) {
  PlantedRun run;
  base::Result<Timeline> timeline = timeline::read(folder + name + ".tar.gz");
  base::Result<Recorded> recorded = read_recorded({folder + name + ".tar.gz"});
  EXPECT_TRUE(timeline.ok() && recorded.ok()) << name;
  run.timeline = std::move(timeline).value();
  run.recorded = std::move(recorded).value();
  return run;
}

inline double step_of(const PlantedRun& run) { return run.recorded.info->results["step_ns"].get<double>(); }

inline Why why_or_fail(const PlantedRun& run, const WhyOptions& options = {}) {
  base::Result<Why> why = why_of(run.timeline, run.recorded, options);
  EXPECT_TRUE(why.ok()) << (why.ok() ? "" : why.error());
  return why.ok() ? std::move(why).value() : Why{};
}

// The h200x8 profile with something altered, as a file that goes with the test. The alterations are made in the tables
// themselves, not by simulate::Scale.
class Altered {
 public:
  explicit Altered(const std::function<void(simulate::Profile&)>& alter) {
    simulate::Profile profile = simulate::find_profile("h200x8").value();
    alter(profile);
    static int number = 0;
    path_ = (std::filesystem::temp_directory_path() / base::text("shardbook-profile-", ::getpid(), "-", number++, ".json")).string();
    const base::Status saved = simulate::save_profile(profile, path_);
    EXPECT_TRUE(saved.ok()) << (saved.ok() ? "" : saved.error());
  }
  ~Altered() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Altered(const Altered&) = delete;
  Altered& operator=(const Altered&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void host_costs(simulate::Profile& profile, double factor) {
  simulate::HostCosts& host = profile.host;
  for (double* ns : {&host.kernel_ns, &host.gemm_ns, &host.copy_ns, &host.collective_ns, &host.record_ns, &host.wait_ns, &host.host_wait_ns, &host.step_ns}) {
    *ns *= factor;
  }
}

// Each curve's smallest time, and what it has beyond that. No point falls under 1 ns.
inline void collectives(simulate::Profile& profile, double alpha, double beta) {
  for (auto& [kind, by_ranks] : profile.collectives) {
    for (auto& [ranks, curve] : by_ranks) {
      const double smallest = curve.front().ns;
      for (simulate::CurvePoint& point : curve) point.ns = std::max(1.0, alpha * smallest + beta * (point.ns - smallest));
    }
  }
}

inline const Share& share_of(const Why& why, Regime regime) {
  for (const Share& share : why.shares) {
    if (share.regime == regime) return share;
  }
  ADD_FAILURE() << "no share of " << name_of(regime);
  return why.shares.front();
}

// The first cause whose words hold `part`.
inline const Cause* cause_of(const Why& why, const std::string& part) {
  for (const Cause& cause : why.causes) {
    if (cause.what.find(part) != std::string::npos) return &cause;
  }
  return nullptr;
}

}  // namespace shardbook::cause
