#include "engine/workbook/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/signals.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;

namespace {

constexpr std::size_t most_heard = 64 * 1024;
constexpr int poll_ms = 20;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A path to run, as execvp would find it.
std::string found_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::vector<std::string> environment_of(const ChildOptions& options) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string variable = *one;
    const std::string name = variable.substr(0, variable.find('='));
    bool given = false;
    for (const auto& [own, value] : options.variables) given |= own == name;
    if (!given) all.push_back(variable);
  }
  for (const auto& [name, value] : options.variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Ticks of CPU that all threads of a process have used; -1 where that is not known.
long long ticks_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name in brackets may hold blanks; utime and stime are the 12th and 13th words behind it.
  std::istringstream words(line.substr(line.rfind(')') == std::string::npos ? line.size() : line.rfind(')') + 1));
  std::string word;
  long long ticks = 0;
  for (int i = 1; i <= 13; ++i) {
    if (!(words >> word)) return -1;
    if (i >= 12) ticks += std::atoll(word.c_str());
  }
  return ticks;
}

// Whether a thread of the process runs, or would if it were let: on a busy machine that is not idleness.
bool wants_to_run(pid_t process) {
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", ignored)) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && name_end + 2 < line.size() && (line[name_end + 2] == 'R' || line[name_end + 2] == 'D')) return true;
  }
  return false;
}

// Reads what is there; false at its end.
bool hear(int pipe, std::string& said) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    const std::size_t room = most_heard - std::min(most_heard, said.size());
    said.append(buffer, std::min(room, static_cast<std::size_t>(got)));
  }
}

// Between vfork and exec only calls that are safe after a fork of a program with threads; nothing of the parent's is written.
[[noreturn]] void become(const char* program, char* const* words, char* const* variables, const ChildOptions& options, int output, int complaint) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (options.memory > 0) {
    // Of data, not of address space: libraries of CUDA map half a gibibyte of code that nobody calls here, and a BLAS that gets
    // no buffer asks for ever
    const rlimit space{static_cast<rlim_t>(options.memory), static_cast<rlim_t>(options.memory)};
    ::setrlimit(RLIMIT_DATA, &space);
    // A thread's stack counts whole: eight mebibytes each would be most of it.
    const rlimit stack{2 << 20, 8 << 20};
    ::setrlimit(RLIMIT_STACK, &stack);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  if (options.folder.empty() || ::chdir(options.folder.c_str()) == 0) ::execve(program, words, variables);
  const int failure = errno;
  [[maybe_unused]] const ssize_t told = ::write(complaint, &failure, sizeof failure);
  ::_exit(127);
}

// Not fork, whose handlers end the threads of OpenBLAS: those that ask for memory in vain never end.
pid_t start(const char* program, char* const* words, char* const* variables, const ChildOptions& options, int output, int complaint) {
  const pid_t child = ::vfork();
  if (child == 0) become(program, words, variables, options, output, complaint);
  return child;
}

// Waits for the child within its limits; ends it where it passes them.
ChildEnd await(pid_t child, int output, const ChildOptions& options) {
  ChildEnd end;
  const Clock::time_point begin = Clock::now();
  Clock::time_point last_progress = begin;
  long long last_ticks = -1;
  int status = 0;
  bool open = true;
  while (true) {
    pollfd heard{output, POLLIN, 0};
    if (open) {
      if (::poll(&heard, 1, poll_ms) > 0) open = hear(output, end.said);
    } else {
      ::usleep(poll_ms * 1000);
    }
    if (::waitpid(child, &status, WNOHANG) == child) break;
    if (base::stop_signal() != 0) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    if (const long long ticks = ticks_of(child); ticks != last_ticks) {
      last_ticks = ticks;
      last_progress = Clock::now();
    }
    // Where others keep the processors busy, a child has its time while it has used less than half of it.
    const double cpu_seconds = last_ticks < 0 ? options.seconds : static_cast<double>(last_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    const bool late = since(begin) > options.seconds && (cpu_seconds >= options.seconds / 2 || since(begin) > options.patience * options.seconds);
    if (options.idle_seconds > 0 && since(last_progress) > options.idle_seconds && wants_to_run(child)) last_progress = Clock::now();
    const bool idle = options.idle_seconds > 0 && last_ticks >= 0 && since(last_progress) > options.idle_seconds;
    end.cpu_seconds = cpu_seconds;
    if (late || idle) {
      end.why = late ? ChildEnd::Why::out_of_time : ChildEnd::Why::idle;
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
  }
  // What it has started and left goes, too.
  ::kill(-child, SIGKILL);
  hear(output, end.said);
  end.seconds = since(begin);
  if (end.why == ChildEnd::Why::exited && WIFSIGNALED(status)) end.why = ChildEnd::Why::signalled;
  end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace

base::Result<ChildEnd> run_child(const std::vector<std::string>& given, const ChildOptions& options) {
  const std::string program = found_in_path(given.front());
  if (program.empty()) return Error{text("cannot start ", given.front(), ": there is no such program in PATH")};
  std::vector<std::string> words = given, variables = environment_of(options);
  const std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
  int output[2], complaint[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return Error{text("cannot start ", program, ": ", std::strerror(errno))};
  if (::pipe2(complaint, O_CLOEXEC) != 0) {
    const int failure = errno;
    ::close(output[0]);
    ::close(output[1]);
    return Error{text("cannot start ", program, ": ", std::strerror(failure))};
  }
  const pid_t child = start(program.c_str(), argv.data(), envp.data(), options, output[1], complaint[1]);
  if (child > 0) ::setpgid(child, child);
  ::close(output[1]);
  ::close(complaint[1]);
  int failure = child < 0 ? errno : 0;
  if (child > 0 && ::read(complaint[0], &failure, sizeof failure) == sizeof failure) ::waitpid(child, nullptr, 0);
  ::close(complaint[0]);
  if (failure != 0) {
    ::close(output[0]);
    return Error{text("cannot start ", program, ": ", std::strerror(failure))};
  }
  ::fcntl(output[0], F_SETFL, O_NONBLOCK);
  ChildEnd end = await(child, output[0], options);
  ::close(output[0]);
  if (base::stop_signal() != 0) return Error{text(given.front(), " was stopped, as asked")};
  return end;
}

}  // namespace shardbook::workbook
