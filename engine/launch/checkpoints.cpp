#include "engine/launch/checkpoints.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "engine/config/in_force.hpp"

namespace shardbook::launch {

using base::Error;
using base::text;

namespace {

// The newest whole checkpoint in the folder to save to, or −1.
std::int64_t newest_in(const std::string& folder) {
  const base::Result<checkpoint::Found> found = checkpoint::find(folder);
  return found ? found.value().manifest.step : -1;
}

bool lies_in(const std::string& checkpoint, const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::path(checkpoint).parent_path(), folder, ignored);
}

}  // namespace

base::Result<std::int64_t> check_checkpoints(const config::RunConfig& config) {
  if (config.checkpoint.empty() && config.resume.empty()) return std::int64_t{0};
  if (config.device == config::DeviceKind::meta) return Error{"a checkpoint holds numbers, and --device meta has shapes only: choose --device host, or leave --checkpoint and --resume out"};
  if (!config.checkpoint.empty() && config::only_times_count(config)) return Error{"with these switches only times count, and --checkpoint would save numbers that mean nothing: leave one of them out"};
  std::int64_t begin = 0;
  bool goes_on_there = false;
  if (!config.resume.empty()) {
    const base::Result<checkpoint::Found> found = checkpoint::find(config.resume);
    if (!found) return found.as_error();
    begin = found.value().manifest.step;
    goes_on_there = lies_in(found.value().path, config.checkpoint);
    if (begin >= config.steps) return Error{text(found.value().path, " has done ", begin, " steps, and this run is to have ", config.steps, ": ask for more with --steps")};
  }
  if (config.checkpoint.empty()) return begin;
  // Of two runs in one folder nobody could say which one the newest is of, and one would remove the other's
  if (const std::int64_t newest = newest_in(config.checkpoint); newest >= 0 && (newest > begin || !goes_on_there)) {
    return Error{text(config.checkpoint, " holds a checkpoint of step ", newest, ", and this run does not begin there but at step ", begin, goes_on_there || begin == 0 ? "" : " of another folder",
                      ": go on from it with --resume ", config.checkpoint, ", or name another folder with --checkpoint")};
  }
  return begin;
}

Checkpoints::Checkpoints(world::World& world, const config::RunConfig& config, train::Trainer& trainer) : world_(world), config_(config), trainer_(trainer) {
  if (!config.checkpoint.empty()) {
    std::string token;
    if (world.rank() == 0) {
      token = text(std::chrono::system_clock::now().time_since_epoch().count(), ".", ::getpid());
      base::Result<checkpoint::Claim> claim = checkpoint::Claim::take(config.checkpoint, token);
      if (!claim) throw base::Failure(claim.error());
      claim_ = std::move(claim).value();
    }
    token = world.broadcast(token, 0);
    if (base::Status seen = checkpoint::expect_claimed(config.checkpoint, token); !seen) throw base::Failure(seen.error());
    saver_ = std::make_unique<checkpoint::Saver>(checkpoint::SaverPlace{config.checkpoint, token, world.rank(), world.size(), config.keep_checkpoints});
  }
  if (!config.resume.empty()) restore();
}

// Rank 0 says which it is, for a newer one may be there by now.
void Checkpoints::restore() {
  std::string path;
  if (world_.rank() == 0) {
    const base::Result<checkpoint::Found> found = checkpoint::find(config_.resume);
    if (!found) throw base::Failure(found.error());
    path = found.value().path;
  }
  path = world_.broadcast(path, 0);
  const base::Result<checkpoint::Found> found = checkpoint::find(path);
  if (!found) throw base::Failure(found.error());
  if (base::Status restored = trainer_.state()->restore(found.value().manifest, path); !restored) throw base::Failure(restored.error());
  begin_ = found.value().manifest.step;
  if (begin_ >= config_.steps) throw base::Failure(text(path, " has done ", begin_, " steps already: ask for more with --steps"));
}

void Checkpoints::expect_no_failure() const {
  if (const base::Status status = saver_->status(); !status) throw base::Failure(status.error());
}

void Checkpoints::await_saver() {
  const base::Nanoseconds begun = program::host_now();
  saver_->wait([this] { world_.throw_if_failed(); });
  saves_.waited += program::host_now() - begun;
  expect_no_failure();
  if (std::exchange(counted_, true)) return;
  ++saves_.count;
  saves_.bytes = saver_->saved().bytes;
  saves_.writing += saver_->saved().took;
  saves_.left = saver_->saved().left;
}

void Checkpoints::take(std::int64_t steps) {
  await_saver();   // who may still read the copy before
  trainer_.state()->take();
  taken_ = steps;
}

void Checkpoints::write_taken() {
  await_saver();
  saver_->begin(taken_, config::to_json(config_), trainer_.state()->written());
  counted_ = false;
  saved_ = taken_;
  taken_ = -1;
}

// Loss and norm are sums over all ranks; what --check-finite finds one rank may know alone, and who saved without it would
// wait for its part.
bool Checkpoints::is_finite_everywhere(bool finite) {
  if (!config_.check_finite) return finite;
  const std::vector<std::string> all = world_.all_gather(finite ? "finite" : "not");
  return std::count(all.begin(), all.end(), "finite") == static_cast<std::ptrdiff_t>(all.size());
}

//@ launch.checkpoints: Copy when it is due; write when the copy is there and the step's loss was finite.
void Checkpoints::after_step(std::int64_t issued, std::int64_t settled, bool finite) {
  if (saver_ == nullptr) return;
  expect_no_failure();
  const bool due = config_.save_every != 0 && issued % config_.save_every == 0;
  // The next step's update awaited the copy, and has run
  if (taken_ >= 0 && (due || settled > taken_)) {
    if (settled <= taken_) trainer_.state()->await_taken();
    if (is_finite_everywhere(finite)) write_taken();
    taken_ = -1;
  }
  if (due) take(issued);
}
//@end

void Checkpoints::end(std::int64_t issued, bool finite) {
  if (saver_ == nullptr) return;
  const bool save = is_finite_everywhere(finite);
  if (save && taken_ >= 0) write_taken();
  if (save && saved_ != issued && issued > begin_) {
    take(issued);
    trainer_.state()->await_taken();
    write_taken();
  }
  await_saver();
}

}  // namespace shardbook::launch
