#include "engine/cli/notes_sources.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <set>

#include "engine/base/sha256.hpp"
#include "engine/book/project.hpp"
#include "engine/reading/check.hpp"
#include "engine/reading/places.hpp"
#include "engine/timeline/output.hpp"

extern char** environ;

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;

namespace {

// What a program printed, or nothing where it failed or is not there. Its words on the error stream are dropped.
std::optional<std::string> output_of(const std::vector<std::string>& words) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  std::string output;
  char bytes[1 << 14];
  for (ssize_t count = 0; failed == 0 && (count = ::read(pipe_ends[0], bytes, sizeof bytes)) > 0;) output.append(bytes, static_cast<std::size_t>(count));
  ::close(pipe_ends[0]);
  if (failed != 0) return std::nullopt;
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return output;
}

// git, whatever the clone's owner and configuration say about hooks or pagers.
std::optional<std::string> git(const std::string& clone, const std::vector<std::string>& words) {
  std::vector<std::string> all{"git", "-c", "safe.directory=*", "-C", clone, "--no-pager"};
  all.insert(all.end(), words.begin(), words.end());
  return output_of(all);
}

bool is_commit_of(const std::string& clone, const std::string& commit) { return git(clone, {"cat-file", "-e", commit + "^{commit}"}).has_value(); }

std::optional<std::string> from_clone(const std::string& clone, const std::string& commit, const std::string& path) {
  if (std::optional<std::string> shown = git(clone, {"show", text(commit, ":", path)})) return shown;
  std::error_code ignored;
  if (!fs::is_regular_file(fs::path(clone) / path, ignored)) return std::nullopt;
  base::Result<std::string> bytes = book::read_text((fs::path(clone) / path).string());
  return bytes ? std::optional(bytes.value()) : std::nullopt;
}

std::optional<std::string> from_network(const std::string& repository, const std::string& commit, const std::string& path) {
  const std::string url = text("https://raw.githubusercontent.com/", repository, "/", commit, "/", path);
  if (std::optional<std::string> bytes = output_of({"curl", "--fail", "--silent", "--location", "--connect-timeout", "10", "--max-time", "60", url})) return bytes;
  return output_of({"wget", "--quiet", "--timeout=20", "--tries=1", "--output-document=-", url});
}

base::Status keep(const std::string& place, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(fs::path(place).parent_path(), error);
  if (error) return base::Error{text(fs::path(place).parent_path().string(), " cannot be made: ", error.message())};
  timeline::Output file(place);
  file << bytes;
  return file.commit();
}

bool is_right(const std::string& bytes, const reading::FileFacts& file) { return base::hex_of(base::sha256(bytes)) == file.sha256; }

}  // namespace

Fetched fetch_sources(const reading::Facts& facts, const std::string& folder, const std::vector<std::string>& clones, Console& console) {
  Fetched fetched;
  bool is_reachable = true;   // until the network was asked in vain
  for (const reading::Project& project : facts.projects) {
    console.out << project.repository << " at " << project.commit << "\n";
    for (const reading::FileFacts& file : project.files) {
      const std::string place = reading::Sources(folder, facts).place_of(project.repository, project.commit, file.path);
      std::error_code ignored;
      base::Result<std::string> present = fs::exists(place, ignored) ? book::read_text(place) : base::Result<std::string>(base::Error{""});
      if (present && is_right(present.value(), file)) {
        ++fetched.here;
        continue;
      }
      std::string from, problem;
      std::optional<std::string> bytes;
      for (const std::string& clone : clones) {
        std::optional<std::string> candidate = from_clone(clone, project.commit, file.path);
        if (!candidate) continue;
        if (is_right(*candidate, file)) bytes = candidate, from = clone;
        else problem = text(file.path, ": ", clone, " has another version of it (its sha256 is not the table's): fetch commit ", project.commit.substr(0, 8), " there");
        if (bytes) break;
      }
      if (!bytes && is_reachable) {
        std::optional<std::string> candidate = from_network(project.repository, project.commit, file.path);
        if (candidate && is_right(*candidate, file)) bytes = candidate, from = "GitHub";
        else if (candidate) problem = text(file.path, ": what GitHub sent is not this file (its sha256 is not the table's)");
        else is_reachable = false;
      }
      if (!bytes) {
        // Where nothing at all could be reached, one sentence says it for all files.
        ++fetched.missing;
        if (!problem.empty()) fetched.failed.push_back(problem);
        continue;
      }
      if (base::Status kept = keep(place, *bytes); !kept) {
        ++fetched.missing;
        fetched.failed.push_back(kept.error());
        continue;
      }
      ++fetched.fetched;
      console.out << "  " << file.path << "  (" << from << ")\n" << std::flush;
    }
  }
  if (fetched.missing > 0 && fetched.failed.empty()) {
    fetched.failed.push_back(clones.empty() ? "the files could not be had from GitHub (no network, or neither curl nor wget)"
                                            : base::text("the other ", fetched.missing, fetched.missing == 1 ? " file is" : " files are", " in none of the folders that were named, and could not be had from GitHub"));
  }
  return fetched;
}

void take_cited(const std::string& notes_folder, const std::vector<std::string>& clones, reading::Sources& sources) {
  if (clones.empty()) return;
  for (const reading::Asked& asked : reading::asked_notes()) {
    const std::string commit = reading::commit_of(notes_folder, asked);
    base::Result<std::string> bytes = book::read_text((fs::path(notes_folder) / asked.file).string());
    if (commit.empty() || !bytes) continue;
    base::Result<reading::Words> words = reading::words_of(bytes.value());
    if (!words) continue;
    std::string clone;
    for (const std::string& one : clones) {
      if (is_commit_of(one, commit)) clone = one;
    }
    const reading::Project* project = sources.facts().project(asked.repository);
    const bool is_pinned = project != nullptr && project->commit == commit;
    if (clone.empty()) {
      // A clone of the other project says nothing of this one.
      const std::string folder_of_it = asked.repository.starts_with("NVIDIA") ? "megatron/core" : "torch/distributed";
      for (const std::string& one : clones) {
        std::error_code ignored;
        if (!is_pinned && fs::exists(fs::path(one) / folder_of_it, ignored)) sources.mark_missing(commit, text("commit ", commit.substr(0, 8), " is not in ", one, ": fetch it there, or name the commit that is checked out (`git -C ", one, " rev-parse HEAD`)"));
      }
      continue;
    }
    const reading::Note note = reading::parse_note(asked.file, words.value().lines);
    std::set<std::string> paths;
    for (const reading::Choice& choice : note.choices) {
      for (const reading::Citation& citation : choice.citations) paths.insert(reading::whole_path(sources, asked.repository, commit, citation.path));
    }
    for (const std::string& path : paths) {
      if (path.starts_with("engine/")) continue;
      if (std::optional<std::string> content = git(clone, {"show", text(commit, ":", path)})) {
        if (base::Status kept = keep(sources.place_of(asked.repository, commit, path), *content); !kept) sources.mark_missing(text(commit, ":", path), kept.error());
      } else {
        sources.mark_missing(text(commit, ":", path), text(path, " does not exist at commit ", commit.substr(0, 8)));
      }
    }
  }
}

}  // namespace shardbook::cli
