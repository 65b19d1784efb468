#include "engine/checkpoint/folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace shardbook::checkpoint {

namespace fs = std::filesystem;
using base::Done;
using base::Error;
using base::Status;
using base::text;

namespace {

constexpr std::string_view step_mark = "step-", hidden_mark = ".step-";

std::string name_of_step(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return name;
}

// The manifest of a checkpoint whose files are all there.
base::Result<Manifest> whole(const std::string& path) {
  base::Result<Manifest> manifest = read_file((fs::path(path) / manifest_name).string());
  if (!manifest) return manifest;
  DataReader files(path, manifest.value());
  for (int file = 0; file < static_cast<int>(manifest.value().files.size()); ++file) {
    if (Status there = files.expect(file); !there) return there.as_error();
  }
  return manifest;
}

Error cannot(const char* what, const std::string& path) { return Error{text("cannot ", what, " ", path, ": ", std::strerror(errno))}; }

Status remove_hidden(const std::string& path) {
  std::error_code failure;
  fs::remove_all(path, failure);
  if (failure) return Error{text("cannot remove ", path, ": ", failure.message())};
  return Done{};
}

}  // namespace

std::string path_of_step(const std::string& folder, std::int64_t step) { return (fs::path(folder) / name_of_step(step)).string(); }

std::string hidden_path_of_step(const std::string& folder, std::int64_t step, const std::string& token) {
  return (fs::path(folder) / text(".", name_of_step(step), ".", token)).string();
}

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(step_mark)) continue;
    std::int64_t step = 0;
    const char* last = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + step_mark.size(), last, step);
    if (error == std::errc{} && at == last && step >= 0 && name == name_of_step(step)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

base::Result<Found> find(const std::string& place) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) return Error{text("there is no folder ", place, ": name a checkpoint, or the folder that --checkpoint named")};
  if (fs::exists(fs::path(place) / manifest_name, ignored)) {
    base::Result<Manifest> manifest = whole(place);
    if (!manifest) return manifest.as_error();
    return Found{place, std::move(manifest).value(), {}};
  }
  std::vector<std::string> passed_over;
  for (const std::int64_t step : steps_in(place)) {
    const std::string path = path_of_step(place, step);
    base::Result<Manifest> manifest = whole(path);
    if (manifest && manifest.value().step == step) return Found{path, std::move(manifest).value(), passed_over};
    passed_over.push_back(manifest ? text("the manifest in ", path, " is of step ", manifest.value().step) : manifest.error());
  }
  if (!passed_over.empty()) return Error{text("no checkpoint in ", place, " is whole; the newest: ", passed_over.front())};
  return Error{text("there is no checkpoint in ", place, ": name the folder that --checkpoint named")};
}

base::Result<Claim> Claim::take(const std::string& folder, const std::string& token) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return Error{text("cannot make the folder ", folder, " for checkpoints: ", failure.message(), "; name another with --checkpoint")};
  const std::string path = (fs::path(folder) / ".writer").string();
  Claim claim;
  claim.lock_ = File(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!claim.lock_.is_open()) return Error{text(cannot("write", path).message, "; name another folder with --checkpoint")};
  if (::flock(claim.lock_.number(), LOCK_EX | LOCK_NB) != 0) {
    return Error{text("another run writes checkpoints to ", folder, ": name another folder with --checkpoint")};
  }
  const bool emptied = ::ftruncate(claim.lock_.number(), 0) == 0;
  const Status written = emptied ? write_all(claim.lock_, token.data(), token.size(), path) : Status(cannot("write", path));
  if (!written) return Error{text(written.error(), "; free space there, or name another folder with --checkpoint")};
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (!entry->path().filename().string().starts_with(hidden_mark)) continue;
    if (Status removed = remove_hidden(entry->path().string()); !removed) return removed.as_error();
  }
  return claim;
}

Status expect_claimed(const std::string& folder, const std::string& token, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    std::ifstream file(fs::path(folder) / ".writer", std::ios::binary);
    std::string found(token.size() + 1, '\0');
    file.read(found.data(), static_cast<std::streamsize>(found.size()));
    found.resize(static_cast<std::size_t>(file.gcount()));
    if (found == token) return Done{};
    if (std::chrono::steady_clock::now() >= until) return Error{text("the folder ", folder, " is not the one that rank 0 writes to: name one with --checkpoint that all nodes see")};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

//@ checkpoint.publish: What is whole and on the disk gets its name, in one act.
Status publish(const std::string& folder, const std::string& hidden, std::int64_t step, const std::string& token) {
  if (Status synced = sync_folder(hidden); !synced) return synced;
  const std::string path = path_of_step(folder, step), replaced = hidden_path_of_step(folder, step, token + ".replaced");
  // What is there already is none that anyone could go on from: a run begins only where there is no later one
  const bool replaces = std::rename(path.c_str(), replaced.c_str()) == 0;
  if (!replaces && errno != ENOENT) return cannot("rename", path);
  if (std::rename(hidden.c_str(), path.c_str()) != 0) return cannot("rename", hidden);
  if (Status synced = sync_folder(folder); !synced) return synced;
  if (replaces) static_cast<void>(remove_hidden(replaced));   // what stays of it goes when the folder is claimed again
  return Done{};
}
//@end

Status remove_older(const std::string& folder, std::int64_t newest, int keep, const std::string& token) {
  int kept = 1;
  for (const std::int64_t step : steps_in(folder)) {
    if (keep == 0 || step >= newest) continue;
    const std::string path = path_of_step(folder, step);
    if (kept < keep) {
      kept += whole(path) ? 1 : 0;
      continue;
    }
    const std::string hidden = hidden_path_of_step(folder, step, token + ".removed");
    if (std::rename(path.c_str(), hidden.c_str()) != 0) return cannot("rename", path);
    if (Status removed = remove_hidden(hidden); !removed) return removed;
  }
  return Done{};
}

}  // namespace shardbook::checkpoint
