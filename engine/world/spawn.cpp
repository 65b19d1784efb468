// world/spawn: vfork, exec, forward, wait.
#include "engine/world/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "engine/world/output.hpp"
#include "engine/world/process_state.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/secret.hpp"
#include "engine/world/wire.hpp"

extern char** environ;

namespace shardbook::world {

namespace {

using Clock = std::chrono::steady_clock;

// One rank as its parent sees it.
struct Child {
  pid_t pid = -1;
  int output = -1;  // read end of its stdout (rank 0) or -1
  int error = -1;   // read end of its stderr
  std::string line;  // the begun line of its stderr
  bool running = true;
  bool killed_by_us = false;
  std::optional<Clock::time_point> stopped_since;
  bool stopped_too_long = false;   // and killed for it
  int status = 0;
};

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw base::Failure(base::text("no pipe can be made (", std::strerror(errno), "): raise the limit of open files (ulimit -n)"));
  return {ends[0], ends[1]};
}

// "rank 3 (pid 4711) was killed by signal 9 (Killed)"
std::string how_it_ended(int rank, const Child& child) {
  const std::string who = base::text("rank ", rank, " (pid ", child.pid, ") ");
  if (child.stopped_too_long) return who + "was stopped, and killed when it did not go on";
  if (!WIFSIGNALED(child.status)) return who + base::text("ended with exit code ", WEXITSTATUS(child.status));
  return who + base::text("was killed by signal ", WTERMSIG(child.status), " (", strsignal(WTERMSIG(child.status)), ")");
}

// --- Signals -------------------------------------------------------------------------------------

int signal_pipe_write = -1;

void note_signal(int signal) {
  const int saved = errno;
  const unsigned char byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const ssize_t count = write(signal_pipe_write, &byte, 1);
  errno = saved;
}

// The parent's signals that ask for an end, and an output that nobody reads, become bytes in a pipe while it lives.
constexpr std::array<int, 4> watched_signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

class SignalPipe {
 public:
  SignalPipe() : pipe_(make_pipe()) {
    fcntl(pipe_.read_end, F_SETFL, O_NONBLOCK);
    signal_pipe_write = pipe_.write_end;
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    for (std::size_t at = 0; at < watched_signals.size(); ++at) sigaction(watched_signals[at], &action, &former_[at]);
  }
  ~SignalPipe() {
    for (std::size_t at = 0; at < watched_signals.size(); ++at) sigaction(watched_signals[at], &former_[at], nullptr);
    close(pipe_.read_end);
    close(pipe_.write_end);
  }
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  int fd() const { return pipe_.read_end; }

 private:
  Pipe pipe_;
  std::array<struct sigaction, watched_signals.size()> former_{};
};

// --- Children ------------------------------------------------------------------------------------

// Everything that a child needs, made before vfork: between vfork and exec only calls that are safe
// in a signal handler are made, and nothing of the parent's is written.
struct Plan {
  std::vector<std::string> arguments;
  std::vector<std::string> variables;
  std::vector<char*> argv;
  std::vector<char*> envp;
};

Plan make_plan(const std::string& program, const std::vector<std::string>& args,
               const std::vector<std::pair<std::string, std::string>>& set) {
  Plan plan;
  plan.arguments.push_back(program);
  plan.arguments.insert(plan.arguments.end(), args.begin(), args.end());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    const std::string name = entry.substr(0, entry.find('='));
    bool replaced = false;
    for (const auto& [other, value] : set) replaced = replaced || other == name;
    if (!replaced) plan.variables.push_back(entry);
  }
  for (const auto& [name, value] : set) plan.variables.push_back(name + "=" + value);
  for (std::string& argument : plan.arguments) plan.argv.push_back(argument.data());
  for (std::string& variable : plan.variables) plan.envp.push_back(variable.data());
  plan.argv.push_back(nullptr);
  plan.envp.push_back(nullptr);
  return plan;
}

// Never returns. An own process group keeps the terminal's Ctrl-C away, so that it comes once, from
// the parent; and a child does not outlive a parent that was killed.
[[noreturn]] void become_child(const Plan& plan, pid_t parent, int output, int error,
                               std::initializer_list<int> inherited) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(output < 0 ? nothing : output, 1);
  dup2(error, 2);
  for (const int fd : inherited) {
    if (fd >= 0) fcntl(fd, F_SETFD, 0);
  }
  execvpe(plan.argv[0], plan.argv.data(), plan.envp.data());
  _exit(127);
}

// Not fork, whose handlers end the threads of OpenBLAS: those that ask for memory in vain never end.
pid_t start_child(const Plan& plan, int output, int error, std::initializer_list<int> inherited) {
  const pid_t parent = getpid();
  const pid_t child = vfork();
  if (child == 0) become_child(plan, parent, output, error, inherited);
  return child;
}

// The children, and what runs between them and us.
class Family {
 public:
  Family(const SpawnOptions& options) : options_(options), report_(make_pipe()), output_(options.output_fd), error_(options.error_fd) {}
  ~Family() {
    for (Child& child : children_) {
      if (child.running) kill(child.pid, SIGKILL);
      if (child.running) waitpid(child.pid, nullptr, 0);
      if (child.output >= 0) close(child.output);
      if (child.error >= 0) close(child.error);
    }
    close(report_.read_end);
    if (report_.write_end >= 0) close(report_.write_end);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void start(const std::string& program, const std::vector<std::string>& args, int size, Listener listener);
  SpawnOutcome wait();

 private:
  void forward();
  void drain();
  // Whether one had come.
  bool pass_on_signals();
  void reap();
  void kill_stragglers();
  bool any_running() const;
  SpawnOutcome outcome();

  const SpawnOptions& options_;
  Pipe report_;
  Output output_, error_;
  SignalPipe signals_;
  std::vector<Child> children_;
  std::string report_text_;
  std::vector<std::string> bad_ends_;
  int first_bad_code_ = 0;
  std::optional<Clock::time_point> first_bad_end_;
  std::optional<Clock::time_point> interrupted_;
  std::array<bool, watched_signals.size()> passed_on_{};
  bool held_ = false;      // rank 0 holds all that is needed
  bool stopped_ = false;   // a rank ended with the code of one that was asked to
};

void Family::start(const std::string& program, const std::vector<std::string>& args, int size, Listener listener) {
  const std::vector<int> nodes = options_.node_sizes.empty() ? std::vector<int>{size} : options_.node_sizes;
  const std::string run_id = hex_of(random_bytes32()).substr(0, 16), secret = hex_of(random_bytes32());
  int rank = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (int local_rank = 0; local_rank < nodes[node]; ++local_rank, ++rank) {
      auto set = options_.environment;
      const auto add = [&set](const char* name, auto value) { set.emplace_back(name, base::text(value)); };
      add("SHARDBOOK_RANK", rank);
      add("SHARDBOOK_WORLD_SIZE", size);
      add("SHARDBOOK_LOCAL_RANK", local_rank);
      add("SHARDBOOK_LOCAL_WORLD_SIZE", nodes[node]);
      add("SHARDBOOK_NODE", node);
      add("SHARDBOOK_RUN_ID", run_id);
      add("SHARDBOOK_SECRET", secret);
      add("SHARDBOOK_ADDRESS", "127.0.0.1");
      add("SHARDBOOK_PORT", listener.port);
      add("SHARDBOOK_REPORT_FD", report_.write_end);
      if (rank == 0) add("SHARDBOOK_LISTEN_FD", listener.fd);
      if (nodes.size() > 1) add("NCCL_HOSTID", base::text(run_id, "-node", node));
      if (!options_.visible_devices.empty()) add("CUDA_VISIBLE_DEVICES", options_.visible_devices[node]);
      const Plan plan = make_plan(program, args, set);

      Pipe output = rank == 0 ? make_pipe() : Pipe{};
      Pipe error = make_pipe();
      const pid_t pid = start_child(plan, output.write_end, error.write_end, {report_.write_end, rank == 0 ? listener.fd : -1});
      if (pid < 0) throw base::Failure(base::text("no process can be made (", std::strerror(errno), "): raise the limit of processes (ulimit -u) or of memory"));
      if (output.write_end >= 0) close(output.write_end);
      close(error.write_end);
      children_.push_back(Child{pid, output.read_end, error.read_end});
    }
  }
  close(report_.write_end);
  report_.write_end = -1;
}

// Reads what is there from one pipe; false at its end.
bool read_some(int& fd, std::string& into) {
  char chunk[65536];
  const ssize_t count = read(fd, chunk, sizeof chunk);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) {
    close(fd);
    fd = -1;
    return false;
  }
  into.append(chunk, static_cast<std::size_t>(count));
  return true;
}

void Family::forward() {
  // Whatever has come, and signals; short, so that ends of children are seen soon. Who has much to say waits for who reads it,
  // but not with its end.
  const bool ends = interrupted_ || first_bad_end_;
  const auto unless = [](bool out, int fd) { return out ? -1 : fd; };
  std::vector<pollfd> waits{{signals_.fd(), POLLIN, 0}, {report_.read_end, POLLIN, 0}};
  for (const Child& child : children_) {
    waits.push_back({unless(output_.is_full() && !ends, child.output), POLLIN, 0});
    waits.push_back({unless(error_.is_full() && !ends, child.error), POLLIN, 0});
  }
  for (const Output* out : {&output_, &error_}) waits.push_back({unless(!out->waits(), out->fd()), POLLOUT, 0});
  poll(waits.data(), waits.size(), 50);
  output_.write_what_fits();
  error_.write_what_fits();
  if (waits[1].revents != 0) read_some(report_.read_end, report_text_);
  if (const std::size_t at = report_text_.find(hold_line); at != std::string::npos) {
    held_ = true;
    report_text_.erase(at, hold_line.size());
  }
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    if (waits[2 + 2 * rank].revents != 0) {
      std::string text;
      read_some(child.output, text);
      output_.add(text);
    }
    if (waits[3 + 2 * rank].revents == 0) continue;
    const bool open = read_some(child.error, child.line);
    if (!open && !child.line.empty() && rank > 0) child.line += '\n';
    const std::size_t whole = rank == 0 ? child.line.size() : child.line.rfind('\n') + 1;
    const std::string prefix = rank == 0 ? "" : base::text("[rank ", rank, "] ");
    std::string text;
    for (std::size_t at = 0; at < whole;) {
      const std::size_t end = rank == 0 ? whole : child.line.find('\n', at) + 1;
      text += prefix + child.line.substr(at, end - at);
      at = end;
    }
    child.line.erase(0, whole);
    error_.add(text);
  }
}

bool Family::pass_on_signals() {
  unsigned char signal = 0;
  bool came = false;
  while (read(signals_.fd(), &signal, 1) == 1) {
    came = true;
    // The first of each kind is a request; a later one, a second after, is the end of patience.
    bool& passed = passed_on_[static_cast<std::size_t>(std::find(watched_signals.begin(), watched_signals.end(), signal) - watched_signals.begin())];
    // Every line that nobody reads is another SIGPIPE: it asks once.
    const bool impatient = signal != SIGPIPE && interrupted_ && Clock::now() - *interrupted_ > std::chrono::seconds(1);
    if (!interrupted_) interrupted_ = Clock::now();
    if (passed && !impatient) continue;
    passed = true;
    for (Child& child : children_) {
      if (!child.running) continue;
      child.killed_by_us = child.killed_by_us || impatient;
      kill(child.pid, impatient ? SIGKILL : signal == SIGPIPE ? SIGTERM : signal);
    }
  }
  return came;
}

void Family::reap() {
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    const bool too_long = child.stopped_since && options_.longest_stop.count() > 0 && Clock::now() - *child.stopped_since > options_.longest_stop;
    if (child.running && too_long && !child.stopped_too_long) child.stopped_too_long = kill(child.pid, SIGKILL) == 0;
    if (!child.running || waitpid(child.pid, &child.status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid) continue;
    if (WIFSTOPPED(child.status)) child.stopped_since = Clock::now();
    if (WIFCONTINUED(child.status)) child.stopped_since.reset();
    if (WIFSTOPPED(child.status) || WIFCONTINUED(child.status)) continue;
    child.running = false;
    if (child.status == 0 || child.killed_by_us) continue;
    if (options_.stopped_code != 0 && WIFEXITED(child.status) && WEXITSTATUS(child.status) == options_.stopped_code) {
      stopped_ = true;
      continue;
    }
    const bool by_signal = WIFSIGNALED(child.status);
    const int code = by_signal ? 128 + WTERMSIG(child.status) : WEXITSTATUS(child.status);
    bad_ends_.insert(by_signal ? bad_ends_.begin() : bad_ends_.end(), how_it_ended(static_cast<int>(rank), child));
    if (first_bad_code_ == 0 || (code > 128 && first_bad_code_ < 128)) first_bad_code_ = code;
    if (!first_bad_end_) first_bad_end_ = Clock::now();
  }
}

void Family::kill_stragglers() {
  if (!first_bad_end_) return;
  const bool over = Clock::now() - *first_bad_end_ >= options_.grace;
  for (Child& child : children_) {
    if (!child.running || child.killed_by_us || (held_ && &child == &children_[0])) continue;
    // One that is stopped hears of nothing, however long it is given.
    if (!over && state_of_process(child.pid) != ProcessState::stopped) continue;
    child.killed_by_us = true;
    kill(child.pid, SIGKILL);
  }
}

bool Family::any_running() const {
  for (const Child& child : children_) {
    if (child.running) return true;
  }
  return false;
}

SpawnOutcome Family::wait() {
  while (any_running()) {
    forward();
    pass_on_signals();
    reap();
    kill_stragglers();
  }
  drain();
  return outcome();
}

// What the pipes still hold (a grandchild may keep one open: not waited for), and what its reader has not taken: that is given
// time for ever, but of a run that was asked to stop a few seconds, or until it is asked once more.
void Family::drain() {
  const auto any_open = [this] { return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.output >= 0 || child.error >= 0; }); };
  const auto begun = Clock::now();
  auto until = begun + std::chrono::milliseconds(200);
  while (true) {
    const auto now = Clock::now();
    const bool waits = output_.waits() || error_.waits();
    if (waits) until = now + std::chrono::milliseconds(200);
    if (waits ? pass_on_signals() || (interrupted_ && now - begun > std::chrono::seconds(3)) : !any_open() || now >= until) break;
    forward();
  }
  if (report_.read_end >= 0) forward();
}

SpawnOutcome Family::outcome() {
  SpawnOutcome result;
  bool killed = false;
  for (const Child& child : children_) killed = killed || child.killed_by_us;
  result.exit_code = first_bad_code_ != 0 ? first_bad_code_ : killed ? 130 : stopped_ ? options_.stopped_code : 0;
  result.first_cause = report_text_.substr(0, report_text_.find('\n'));
  if (bad_ends_.empty()) return result;

  // The ranks know the cause best, but only the parent knows how one that said nothing ended.
  std::string end = first_bad_code_ > 128 || result.first_cause.empty() ? bad_ends_.front() : "";
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    const bool is_cause = result.first_cause.starts_with(base::text("rank ", rank, " (pid ", children_[rank].pid, " "));
    if (is_cause && !children_[rank].killed_by_us && result.first_cause.find(silent_end) != std::string::npos) end = how_it_ended(static_cast<int>(rank), children_[rank]);
  }
  if (!end.empty()) result.first_cause += (result.first_cause.empty() ? "" : "; ") + end;
  return result;
}

}  // namespace

base::Result<SpawnOutcome> spawn_processes(const std::string& program, const std::vector<std::string>& args,
                                           int size, const SpawnOptions& options) {
  if (size < 1) return base::Error{base::text("cannot start ", size, " ranks; at least 1 is needed")};
  const auto& nodes = options.node_sizes;
  const int in_nodes = std::accumulate(nodes.begin(), nodes.end(), 0);
  if (!nodes.empty() && in_nodes != size) {
    return base::Error{base::text("the nodes hold ", in_nodes, " ranks together, but ", size, " are asked for")};
  }
  const std::size_t node_count = nodes.empty() ? 1 : nodes.size();
  if (!options.visible_devices.empty() && options.visible_devices.size() != node_count) {
    return base::Error{base::text("devices are named for ", options.visible_devices.size(), " nodes, but there are ", node_count)};
  }
  if (access(program.c_str(), X_OK) != 0) {
    return base::Error{base::text("cannot run ", program, ": ", std::strerror(errno))};
  }
  auto listener = listen_on(0, 1);
  if (!listener.ok()) return listener.as_error();
  const int listening = listener.value().fd;
  try {
    Family family(options);
    family.start(program, args, size, listener.value());
    close(listening);
    return family.wait();
  } catch (const std::exception& failure) {
    close(listening);
    return base::Error{base::text("cannot start ", size, " ranks: ", failure.what())};
  }
}

std::string own_program() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  SHARDBOOK_CHECK(length > 0, "/proc/self/exe cannot be read: ", std::strerror(errno));
  path.resize(static_cast<std::size_t>(length));
  return path;
}

}  // namespace shardbook::world
