// scene/loader: reading on a thread of its own; see loader.hpp.
#include "viewer/scene/loader.hpp"

#include <stdlib.h>

#include <filesystem>

#include "engine/base/check.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::scene {

namespace fs = std::filesystem;

namespace {

// run.json of the run that these paths belong to; null if there is none, a banner if it cannot be read.
std::shared_ptr<const timeline::RunInfo> info_of(const std::vector<std::string>& paths, std::vector<std::string>& banners) {
  std::error_code error;
  const fs::path first(paths.front());
  const fs::path folder = fs::is_directory(first, error) ? first : first.parent_path();
  for (const std::string& path : paths) {
    if (path != paths.front() && fs::path(path).parent_path() != folder) return nullptr;
  }
  const std::string path = (folder / "run.json").string();
  if (!fs::exists(path, error)) return nullptr;
  base::Result<timeline::RunInfo> info = timeline::read_run_info(path);
  if (info.ok()) return std::make_shared<const timeline::RunInfo>(std::move(info).value());
  banners.push_back(info.error() + "; the timeline is shown without its config and sources");
  return nullptr;
}

// The share of a part of the work, told as a share of [from, to]; false when the loading is to stop.
timeline::Heard heard_by(Progress* progress, float from, float to) {
  if (progress == nullptr) return {};
  return [=](double share) {
    progress->fraction.store(from + (to - from) * static_cast<float>(share), std::memory_order_relaxed);
    return !progress->stop.load(std::memory_order_relaxed);
  };
}

// A pack below the folder for temporary files, under a name that no other loader has.
base::Result<std::shared_ptr<const Unpacked>> unpack(const std::string& pack, const timeline::Heard& heard) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) return base::Error{base::text("no folder for temporary files, to unpack ", pack, ": set TMPDIR")};
  const auto out = std::make_shared<Unpacked>();
  out->folder = (temporary / "shardbook-XXXXXX").string();
  if (::mkdtemp(out->folder.data()) == nullptr) {
    out->folder.clear();
    return base::Error{base::text("cannot write to the folder ", temporary.string(), ", to unpack ", pack, ": set TMPDIR to another")};
  }
  base::Result<timeline::OpenedPack> opened = timeline::open_pack(pack, out->folder, heard);
  if (!opened.ok()) return opened.as_error();
  out->root = opened.value().root;
  out->run = opened.value().run;
  return std::shared_ptr<const Unpacked>(out);
}

}  // namespace

Unpacked::~Unpacked() {
  std::error_code error;
  if (!folder.empty()) fs::remove_all(folder, error);
}

base::Result<std::shared_ptr<const Scene>> load(const std::vector<std::string>& paths, Progress* progress) {
  if (paths.empty()) return base::Error{"no run was named: name a run's folder, a trace or a pack"};
  std::error_code ignored;
  std::shared_ptr<const Unpacked> unpacked;
  std::vector<std::string> files = paths;
  if (paths.size() == 1 && timeline::is_pack_name(paths.front()) && !fs::is_directory(paths.front(), ignored)) {
    if (progress != nullptr) progress->stage.store("unpacking", std::memory_order_relaxed);
    base::Result<std::shared_ptr<const Unpacked>> opened = unpack(paths.front(), heard_by(progress, 0, unpacked_share));
    if (!opened.ok()) return opened.as_error();
    unpacked = std::move(opened).value();
    files = {unpacked->run};
  }
  if (progress != nullptr) progress->stage.store("reading", std::memory_order_relaxed);
  base::Result<Timeline> read = timeline::read(files, heard_by(progress, unpacked ? unpacked_share : 0, read_share));
  if (!read.ok()) return read.as_error();
  Timeline timeline = std::move(read).value();
  if (timeline.ranks.empty() || timeline.spans() == 0) return base::Error{base::text(paths.front(), " holds no spans: there is nothing to show")};
  std::shared_ptr<const timeline::RunInfo> info = info_of(files, timeline.banners);
  const std::string name = paths.size() == 1 ? paths.front() : base::text(paths.front(), " and ", paths.size() - 1, " more");
  if (progress != nullptr && progress->stop.load()) return base::Error{"loading was stopped"};
  std::shared_ptr<const Scene> scene = Scene::make(std::move(timeline), std::move(info), name, progress, std::move(unpacked));
  if (progress != nullptr && progress->stop.load()) return base::Error{"loading was stopped"};
  return scene;
}

Loader::Loader(std::vector<std::string> paths) : paths_(std::move(paths)) {
  thread_ = std::thread([this] {
    try {
      result_ = load(paths_, &progress_);
    } catch (const std::exception& problem) {
      // A trace larger than memory, or a defect: the window stays, and says so.
      result_ = base::Error{base::text("loading ", paths_.empty() ? "" : paths_.front(), " failed: ", problem.what())};
    }
    done_.store(true, std::memory_order_release);
  });
}

Loader::~Loader() {
  progress_.stop.store(true);
  if (thread_.joinable()) thread_.join();
}

base::Result<std::shared_ptr<const Scene>> Loader::take() {
  SHARDBOOK_CHECK(done() && result_.has_value(), "a loader's result is taken once, when it is done");
  base::Result<std::shared_ptr<const Scene>> result = std::move(*result_);
  result_.reset();
  return result;
}

}  // namespace shardbook::scene
