// scene/loader: open what the user named, without making them wait.
//
// A Loader reads on a thread of its own: a run folder, one or several rank files (.json, .json.gz), a
// pack, a .tlb. The window stays alive meanwhile and shows how far it is; a failure is one sentence.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/result.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

// At once, on this thread.
base::Result<std::shared_ptr<const Scene>> load(const std::vector<std::string>& paths, Progress* progress = nullptr);

class Loader {
 public:
  explicit Loader(std::vector<std::string> paths);
  ~Loader();                                  // stops and joins
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }
  const Progress& progress() const { return progress_; }
  bool done() const { return done_.load(std::memory_order_acquire); }
  // REQUIRES: done(). Once.
  base::Result<std::shared_ptr<const Scene>> take();

 private:
  std::vector<std::string> paths_;
  Progress progress_;
  std::atomic<bool> done_{false};
  std::optional<base::Result<std::shared_ptr<const Scene>>> result_;
  std::thread thread_;
};

}  // namespace shardbook::scene
