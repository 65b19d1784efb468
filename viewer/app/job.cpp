#include "viewer/app/job.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace shardbook::app {

namespace {

constexpr std::size_t most_output = 256 << 10;
constexpr std::chrono::seconds patience{2};   // between asking a child to stop and ending it

[[noreturn]] void become(const std::string& program, const std::string& folder, const std::vector<std::string>& words, char* const* variables, int output) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  // Signals that the viewer takes for itself are the child's own again
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(folder.c_str()) != 0) ::_exit(127);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execve(program.c_str(), arguments.data(), variables);
  const std::string sentence = std::string("cannot start ") + program + ": " + std::strerror(errno) + "\n";
  if (::write(2, sentence.data(), sentence.size()) < 0) ::_exit(126);
  ::_exit(127);
}

}  // namespace

Job::~Job() {
  if (!running()) return;
  ::kill(-child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {}
  ::close(output_);
}

base::Status Job::start(const std::string& root, const std::vector<std::string>& words, int columns) {
  if (running()) return base::Error{base::text("`", command_, "` still runs: wait for it, or cancel it")};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::Error{base::text("no pipe can be had: ", std::strerror(errno))};
  command_ = "./shardbook";
  for (const std::string& word : words) command_ += " " + word;
  const std::string program = root + "/shardbook";
  said_.clear();
  code_ = 0;
  cancelled_ = false;
  began_ = Clock::now();
  std::string width = base::text("SHARDBOOK_COLUMNS=", columns);
  std::vector<char*> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    if (columns == 0 || std::strncmp(*one, "SHARDBOOK_COLUMNS=", 18) != 0) variables.push_back(*one);
  }
  if (columns > 0) variables.push_back(width.data());
  variables.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) become(program, root, words, variables.data(), ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return base::Error{base::text("no process can be had for `", command_, "`: ", std::strerror(errno))};
  }
  ::setpgid(child, child);   // here as well, so that a cancel at once finds the group
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  child_ = child;
  output_ = ends[0];
  return base::Done{};
}

void Job::take_output() {
  char some[16384];
  // A child that floods gets a bounded part of each frame
  for (int turn = 0; turn < 16; ++turn) {
    const ssize_t got = ::read(output_, some, sizeof some);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said_.append(some, static_cast<std::size_t>(got));
  }
  if (said_.size() > most_output) said_.erase(0, said_.size() - most_output);
}

bool Job::poll() {
  if (!running()) return false;
  take_output();
  int state = 0;
  const pid_t ended = ::waitpid(child_, &state, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) {
    if (cancelled_ && Clock::now() - cancelled_at_ > patience) ::kill(-child_, SIGKILL);
    return false;
  }
  take_output();
  ::kill(-child_, SIGKILL);   // whatever it has left behind
  ::close(output_);
  child_ = -1;
  output_ = -1;
  ended_ = Clock::now();
  code_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return true;
}

void Job::cancel() {
  if (!running() || cancelled_) return;
  cancelled_ = true;
  cancelled_at_ = Clock::now();
  ::kill(-child_, SIGINT);
}

double Job::seconds() const {
  if (command_.empty()) return 0;
  return std::chrono::duration<double>((running() ? Clock::now() : ended_) - began_).count();
}

std::string plain_output(const std::string& said) {
  std::string out;
  std::size_t line = 0;
  for (std::size_t at = 0; at < said.size(); ++at) {
    const char c = said[at];
    if (c == '\r') {
      if (at + 1 < said.size() && said[at + 1] == '\n') continue;
      out.resize(line);
    } else if (c == '\x1b') {
      // ESC [ … letter
      if (at + 1 < said.size() && said[at + 1] == '[') {
        at += 2;
        while (at < said.size() && (said[at] < '@' || said[at] > '~')) ++at;
      }
    } else if (c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 32) {
      out += c;
      if (c == '\n') line = out.size();
    }
  }
  return out;
}

std::string run_named_in(const std::string& said) {
  const std::size_t middle = said.rfind("/runs/");
  if (middle == std::string::npos) return "";
  const std::size_t begin = said.rfind("experiments/", middle);
  if (begin == std::string::npos || said.find_first_of(" \n\t", begin) < middle) return "";
  const std::size_t end = said.find_first_of(" \n\t,;)'\"", middle);
  std::string folder = said.substr(begin, end == std::string::npos ? std::string::npos : end - begin);
  while (!folder.empty() && (folder.back() == '.' || folder.back() == '/')) folder.pop_back();
  return folder.size() > middle - begin + 6 ? folder : "";
}

std::vector<std::string> own_words(const std::string& command) {
  if (command.find_first_of("|&;<>$`\\\"'(){}*?\n") != std::string::npos) return {};
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.size() < 2 || words.front() != "./shardbook") return {};
  words.erase(words.begin());
  static constexpr const char* verbs[] = {"next", "check", "hint", "card", "solution", "list", "read", "run", "train", "metrics", "why", "whatif", "diff",
                                          "plan", "verify", "switches", "notes", "show", "reset"};
  return std::find(std::begin(verbs), std::end(verbs), words.front()) == std::end(verbs) ? std::vector<std::string>{} : words;
}

}  // namespace shardbook::app
