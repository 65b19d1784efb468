#include "engine/launch/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/base/json.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/launch.hpp"
#include "engine/timeline/whole.hpp"

namespace shardbook::launch {

namespace fs = std::filesystem;

std::string utc_now(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

namespace {

std::string claim_path(const fs::path& folder) { return (folder / timeline::unfinished_name).string(); }

std::string random_id() {
  std::random_device device;
  constexpr char hex[] = "0123456789abcdef";
  std::string id;
  for (int word = 0; word < 4; ++word) {
    for (std::uint32_t bits = device(), digit = 0; digit < 8; ++digit, bits >>= 4) id += hex[bits & 15];
  }
  return id;
}

base::Error cannot_be_written(const fs::path& folder, int problem) {
  return base::Error{base::text("the run's folder ", folder.string(), " cannot be written (", std::strerror(problem),
                                "): name another with --out, or make it writable")};
}
base::Error is_taken(const fs::path& folder) {
  return base::Error{base::text("the run's folder ", folder.string(),
                                " holds something already: name a new one with --out, or remove it, so that no two runs mix")};
}

// The folder and what it stands in; `made` gets those that were not there, the innermost first. 0, or errno.
int make_folders(const fs::path& folder, std::vector<std::string>& made) {
  std::error_code problem;
  if (folder.has_parent_path() && folder.parent_path() != folder && !fs::exists(folder.parent_path(), problem)) {
    if (const int failed = make_folders(folder.parent_path(), made)) return failed;
  }
  if (::mkdir(folder.c_str(), 0777) != 0) return errno == EEXIST && fs::is_directory(folder, problem) ? 0 : errno;
  made.insert(made.begin(), folder.string());
  return 0;
}

void remove_folders(const std::vector<std::string>& made) {
  std::error_code holds_something;
  for (const std::string& folder : made) fs::remove(folder, holds_something);
}

// The locked descriptor of a new run.partial with this content; or -1, and errno.
int take(const fs::path& folder, const std::string& content) {
  const std::string path = claim_path(folder);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) return -1;
  ::flock(file, LOCK_EX | LOCK_NB);
  const ssize_t written = ::write(file, content.data(), content.size());
  if (written == static_cast<ssize_t>(content.size())) return file;
  const int problem = written < 0 ? errno : ENOSPC;
  ::close(file);
  ::unlink(path.c_str());
  errno = problem;
  return -1;
}

// "-prefetch0-sequences64": what differs from the model's defaults and changes the step, so that the folders of an
// experiment tell its runs apart.
std::string changed_options(const config::RunConfig& config) {
  static const char* const named[] = {"layers", "width", "heads", "ffn-width", "sequence", "sequences", "micro-batches", "precision", "prefetch", "reshard"};
  constexpr std::size_t longest = 60;
  config::RunConfig plain;
  if (!config::ask(plain, "model", {config.model.preset})) return "";
  const nlohmann::json given = base::parse_json(config::to_json(config)), usual = base::parse_json(config::to_json(plain));
  std::string changed;
  for (const char* name : named) {
    if (!given.contains(name) || !usual.contains(name) || given[name] == usual[name]) continue;
    const std::string value = given[name].is_string() ? given[name].get<std::string>() : base::json_text(given[name]);
    if (changed.size() + value.size() < longest) changed += base::text("-", name, value);
  }
  for (const auto& [key, value] : config.switches) {
    if (changed.size() + key.size() + value.size() < longest) changed += base::text("-", key, "=", value);
  }
  return changed;
}

// experiments/LAB/runs/TIME-LAYOUT, the n-th of its second.
fs::path own_name(const config::RunConfig& config, int n) {
  const std::string lab = config.lab.empty() ? "train" : config.lab;
  std::string name = base::text(utc_now("%Y%m%d-%H%M%S-"), config.model.preset, "-tp", config.tp, "-fsdp", config.fsdp, config.dp > 1 ? base::text("-dp", config.dp) : "", changed_options(config));
  if (n > 1) name += base::text("-", n);
  return fs::path("experiments") / lab / "runs" / name;
}

void remove_marks(const std::string& folder) {
  std::error_code ignored;
  for (const std::string& path : journals(folder)) fs::remove(path, ignored);
  fs::remove(claim_path(folder), ignored);
}

}  // namespace

base::Result<RunFolder> RunFolder::make(const config::RunConfig& config, const LaunchOptions& options) {
  RunFolder run;
  run.id_ = random_id();
  run.made_at_ = utc_now("%Y-%m-%dT%H:%M:%SZ");
  const nlohmann::json claim = {{"format", 1}, {"id", run.id_}, {"command", options.command}, {"made_at", run.made_at_},
                                {"source_root", options.source_root}, {"config", base::parse_json(config::to_json(config))}};
  const std::string content = base::json_text(claim, 1) + "\n";
  constexpr int most_tries = 100;
  for (int n = 1; n <= most_tries; ++n) {
    fs::path folder = config.out.empty() ? own_name(config, n) : fs::path(config.out).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    std::vector<std::string> made;
    std::error_code problem;
    int failed = make_folders(folder, made);
    bool taken = failed == 0 && made.empty() && !fs::is_empty(folder, problem);
    if (failed == 0 && !taken) {
      run.claim_ = take(folder, content);
      if (run.claim_ >= 0) {
        run.path_ = folder.string();
        run.made_ = std::move(made);
        return run;
      }
      taken = errno == EEXIST;
      failed = errno;
    }
    remove_folders(made);
    if (!taken) return cannot_be_written(folder, failed);
    if (!config.out.empty()) return is_taken(folder);
  }
  return base::Error{"no free name was found for the run's folder: name one with --out"};
}

base::Result<RunFolder> RunFolder::made_by_parent(const std::string& path) {
  const base::Result<Claim> claim = read_claim(path);
  if (!claim) return claim.as_error();
  RunFolder run;
  run.path_ = path;
  run.id_ = claim.value().id;
  run.made_at_ = claim.value().made_at;
  run.kept_ = true;
  return run;
}

base::Result<RunFolder> RunFolder::taken_over(const std::string& path) {
  base::Result<RunFolder> run = made_by_parent(path);
  if (!run) return run;
  const int file = ::open(claim_path(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return cannot_be_written(path, errno);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    return base::Error{base::text("the run in ", path, " has not ended: wait for it, or stop it with Ctrl-C")};
  }
  run.value().claim_ = file;
  return run;
}

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(id_, other.id_);
  std::swap(made_at_, other.made_at_);
  std::swap(made_, other.made_);
  std::swap(claim_, other.claim_);
  std::swap(kept_, other.kept_);
  return *this;
}

RunFolder::~RunFolder() {
  if (claim_ >= 0 && !kept_) {
    remove_marks(path_);
    remove_folders(made_);
  }
  if (claim_ >= 0) ::close(claim_);
}

void RunFolder::finish() {
  if (!path_.empty()) remove_marks(path_);
  kept_ = true;
}

base::Result<Claim> read_claim(const std::string& folder) {
  const std::string path = claim_path(folder);
  std::ifstream file(path, std::ios::binary);
  std::string content(std::size_t{1} << 20, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  const nlohmann::json json = base::try_parse_json(content);
  const base::Error damaged{path + " does not say which run it is of: it is damaged, or was made by another program"};
  if (!json.is_object() || !json.contains("config")) return damaged;
  Claim claim;
  for (const auto& [key, text] : {std::pair{"id", &claim.id}, std::pair{"command", &claim.command}, std::pair{"made_at", &claim.made_at},
                                  std::pair{"source_root", &claim.source_root}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) return damaged;
    *text = found->get<std::string>();
  }
  config::RunConfig asked;
  if (base::Status read = config::read_json(asked, base::json_text(json["config"], 1), path); !read) return read.as_error();
  // Whether this machine has its GPUs doesn't matter any more.
  base::Result<config::RunConfig> config = config::validate(asked, asked.tp * asked.fsdp * asked.dp);
  if (!config) return config.as_error();
  claim.config = std::move(config).value();
  return claim;
}

}  // namespace shardbook::launch
