// world/launchers: each launcher's variables, read whole or refused.
#include "engine/world/launchers.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>

namespace shardbook::world {

namespace {

constexpr int candidates_in_range = 16;
constexpr int lowest_hashed_port = 12000;
constexpr int hashed_ports = 20000;

// One launcher's variables; the first thing that is wrong with them is kept.
class Reading {
 public:
  Reading(const Environment& environment, Launcher launcher) : environment_(environment) {
    launch_.launcher = launcher;
  }

  // The whole number in the first of `names` that is set.
  int required(std::initializer_list<const char*> names, int lowest) {
    for (const char* name : names) {
      if (const auto value = environment_(name)) return parse(name, *value, lowest);
    }
    complain(base::text("lacks ", *names.begin()));
    return lowest;
  }
  int optional(const char* name, int otherwise, int lowest) {
    const auto value = environment_(name);
    return value ? parse(name, *value, lowest) : otherwise;
  }
  std::string text_or(const char* name, const std::string& otherwise) const {
    return environment_(name).value_or(otherwise);
  }
  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  Launch& launch() { return launch_; }
  // `first` is the variable by which the launcher was known.
  base::Result<Launch> finish(const char* first);

 private:
  int parse(const char* name, const std::string& value, int lowest) {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc{} || end != value.data() + value.size() || number < lowest) {
      complain(base::text("gives ", name, "='", value, "', which is no whole number from ", lowest, " up"));
      return lowest;
    }
    return number;
  }
  void check_ranks();
  void find_server_port();

  const Environment& environment_;
  Launch launch_;
  std::string problem_;
};

void Reading::check_ranks() {
  const Place& place = launch_.place;
  if (place.rank >= place.size) {
    complain(base::text("gives rank ", place.rank, " among ", place.size, " ranks"));
  } else if (place.local_rank >= place.local_size) {
    complain(base::text("gives local rank ", place.local_rank, " among ", place.local_size, " local ranks"));
  } else if (place.local_size > place.size) {
    complain(base::text("gives ", place.local_size, " local ranks, but only ", place.size, " ranks in all"));
  } else if (place.rank < place.local_rank) {
    complain(base::text("gives local rank ", place.local_rank, " to rank ", place.rank));
  }
}

// FNV-1a, so that all ranks of a job agree and two jobs rarely do.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037u;
  for (const unsigned char letter : text) value = (value ^ letter) * 1099511628211u;
  return value;
}

void Reading::find_server_port() {
  const int own_port = optional("SHARDBOOK_PORT", 0, 1);
  const int master_port = optional("MASTER_PORT", 0, 1);
  if (own_port > 0) {
    launch_.port = own_port;
    launch_.port_candidates = 1;
  } else {
    launch_.port = master_port > 0
                       ? master_port + 1
                       : lowest_hashed_port + static_cast<int>(hash(launch_.run_id) % hashed_ports);
    launch_.port_candidates = candidates_in_range;
  }
  const int last = launch_.port + launch_.port_candidates - 1;
  if (own_port == 0 && last > 65535) launch_.port -= last - 65535 + candidates_in_range;
  if (launch_.port > 65535) complain(base::text("is asked to use port ", launch_.port, ", above 65535"));
}

base::Result<Launch> Reading::finish(const char* first) {
  Place& place = launch_.place;
  check_ranks();

  // Node: named by the user, by the launcher, or by the fact that there is only one.
  place.node = optional("SHARDBOOK_NODE", place.node, 0);
  if (place.node < 0 && place.local_size == place.size) place.node = 0;

  // Address and port of rank 0's server.
  launch_.run_id = base::text(name_of(launch_.launcher), ":", launch_.run_id, ":", place.size);
  launch_.secret = text_or("SHARDBOOK_SECRET", "");
  find_server_port();
  std::string address = text_or("SHARDBOOK_ADDRESS", "");
  if (address.empty() && place.local_size == place.size) address = "127.0.0.1";
  if (address.empty()) address = text_or("MASTER_ADDR", "");
  if (address.empty() && launch_.launcher == Launcher::slurm) {
    address = first_host(text_or("SLURM_STEP_NODELIST", text_or("SLURM_NODELIST", "")));
  }
  if (address.empty()) {
    complain("runs on more than one node, but nothing names the host of rank 0: set MASTER_ADDR on all ranks");
  }
  launch_.address = address;

  if (problem_.empty()) return launch_;
  return base::Error{base::text("the variables of ", name_of(launch_.launcher), " do not fit together: it ",
                                problem_, " (known by ", first, "; unset that to run alone)")};
}

base::Result<Launch> read_shardbook(const Environment& environment) {
  Reading reading(environment, Launcher::shardbook);
  Launch& launch = reading.launch();
  launch.place.rank = reading.required({"SHARDBOOK_RANK"}, 0);
  launch.place.size = reading.required({"SHARDBOOK_WORLD_SIZE"}, 1);
  launch.place.local_rank = reading.required({"SHARDBOOK_LOCAL_RANK"}, 0);
  launch.place.local_size = reading.required({"SHARDBOOK_LOCAL_WORLD_SIZE"}, 1);
  launch.place.node = -1;
  launch.listen_fd = reading.optional("SHARDBOOK_LISTEN_FD", -1, 3);
  launch.run_id = reading.text_or("SHARDBOOK_RUN_ID", "");
  return reading.finish("SHARDBOOK_RANK");
}

base::Result<Launch> read_torchrun(const Environment& environment) {
  Reading reading(environment, Launcher::torchrun);
  Launch& launch = reading.launch();
  launch.place.rank = reading.required({"RANK"}, 0);
  launch.place.size = reading.required({"WORLD_SIZE"}, 1);
  launch.place.local_rank = reading.required({"LOCAL_RANK"}, 0);
  launch.place.local_size = reading.required({"LOCAL_WORLD_SIZE"}, 1);
  launch.place.node = reading.optional("GROUP_RANK", -1, 0);
  // A restart by the elastic agent is a new run.
  launch.run_id = base::text(reading.text_or("TORCHELASTIC_RUN_ID", ""), "/",
                             reading.text_or("TORCHELASTIC_RESTART_COUNT", "0"), "/",
                             reading.text_or("MASTER_PORT", ""));
  return reading.finish(environment("RANK") ? "RANK" : "WORLD_SIZE");
}

base::Result<Launch> read_open_mpi(const Environment& environment) {
  Reading reading(environment, Launcher::open_mpi);
  Launch& launch = reading.launch();
  launch.place.rank = reading.required({"OMPI_COMM_WORLD_RANK"}, 0);
  launch.place.size = reading.required({"OMPI_COMM_WORLD_SIZE"}, 1);
  launch.place.local_rank = reading.required({"OMPI_COMM_WORLD_LOCAL_RANK"}, 0);
  launch.place.local_size = reading.required({"OMPI_COMM_WORLD_LOCAL_SIZE"}, 1);
  launch.place.node = -1;
  launch.run_id = reading.text_or("PMIX_NAMESPACE", reading.text_or("OMPI_MCA_ess_base_jobid", ""));
  return reading.finish("OMPI_COMM_WORLD_RANK");
}

base::Result<Launch> read_mpich(const Environment& environment) {
  Reading reading(environment, Launcher::mpich);
  Launch& launch = reading.launch();
  launch.place.rank = reading.required({"PMI_RANK"}, 0);
  launch.place.size = reading.required({"PMI_SIZE"}, 1);
  launch.place.local_rank = reading.required({"MPI_LOCALRANKID"}, 0);
  launch.place.local_size = reading.required({"MPI_LOCALNRANKS"}, 1);
  launch.place.node = -1;
  // Hydra names no job: two runs of one user on one host need a SHARDBOOK_PORT each.
  launch.run_id = base::text(reading.text_or("SLURM_JOB_ID", ""), "/", getuid());
  return reading.finish("PMI_RANK");
}

// "4(x2),3" says 4, 4 and 3 tasks on the nodes of the step.
int tasks_of_node(const std::string& tasks_per_node, int node) {
  int seen = 0;
  const char* at = tasks_per_node.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const long tasks = std::strtol(at, &end, 10);
    if (end == at) return -1;
    at = end;
    long times = 1;
    if (at[0] == '(' && at[1] == 'x') {
      times = std::strtol(at + 2, &end, 10);
      if (end == at + 2 || *end != ')') return -1;
      at = end + 1;
    }
    seen += static_cast<int>(times);
    if (node < seen) return static_cast<int>(tasks);
    if (*at == ',') ++at;
  }
  return -1;
}

base::Result<Launch> read_slurm(const Environment& environment) {
  Reading reading(environment, Launcher::slurm);
  Launch& launch = reading.launch();
  launch.place.rank = reading.required({"SLURM_PROCID"}, 0);
  launch.place.size = reading.required({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 1);
  launch.place.local_rank = reading.required({"SLURM_LOCALID"}, 0);
  launch.place.node = reading.required({"SLURM_NODEID"}, 0);

  // Ranks on this node: the step's own list, else an even share.
  const std::string per_node = reading.text_or("SLURM_STEP_TASKS_PER_NODE", reading.text_or("SLURM_TASKS_PER_NODE", ""));
  const int nodes = reading.optional("SLURM_STEP_NUM_NODES", reading.optional("SLURM_NNODES", 1, 1), 1);
  int local_size = per_node.empty() ? reading.optional("SLURM_NTASKS_PER_NODE", -1, 1)
                                    : tasks_of_node(per_node, launch.place.node);
  if (local_size < 1 && per_node.empty() && launch.place.size % nodes == 0) local_size = launch.place.size / nodes;
  if (local_size < 1) {
    reading.complain(base::text("does not say how many of its tasks run on node ", launch.place.node,
                                " (SLURM_STEP_TASKS_PER_NODE='", per_node, "')"));
    local_size = 1;
  }
  launch.place.local_size = local_size;
  launch.run_id = base::text(reading.text_or("SLURM_JOB_ID", ""), ".", reading.text_or("SLURM_STEP_ID", ""));
  return reading.finish("SLURM_PROCID");
}

}  // namespace

const char* name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::none: return "no launcher";
    case Launcher::shardbook: return "shardbook";
    case Launcher::torchrun: return "torchrun";
    case Launcher::open_mpi: return "Open MPI";
    case Launcher::mpich: return "MPICH";
    case Launcher::slurm: return "Slurm";
  }
  return "?";
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

base::Result<Launch> from_environment(const Environment& environment) {
  const auto has = [&](const char* name) { return environment(name).has_value(); };
  if (has("SHARDBOOK_RANK")) return read_shardbook(environment);
  if (has("RANK") || has("WORLD_SIZE")) return read_torchrun(environment);
  if (has("OMPI_COMM_WORLD_RANK")) return read_open_mpi(environment);

  // A step of srun; an sbatch script has SLURM_PROCID too, but no step.
  const bool slurm_step = has("SLURM_PROCID") && (has("SLURM_STEP_ID") || has("SLURM_STEP_NODELIST"));
  if (has("PMI_RANK")) {
    const bool agree = slurm_step && environment("PMI_RANK") == environment("SLURM_PROCID");
    return agree ? read_slurm(environment) : read_mpich(environment);
  }
  if (slurm_step) return read_slurm(environment);
  return Launch{};
}

}  // namespace shardbook::world
