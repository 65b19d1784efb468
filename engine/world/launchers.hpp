// world/launchers: which launcher started this process, and as which rank?
//
// Idea: the launchers agree on nothing but environment variables. Each one's set is read whole or
// refused in one sentence; nothing is guessed from half a set. The first launcher of this list
// whose own variables are present wins, because the inner one is started by the outer:
//   shardbook  SHARDBOOK_RANK _WORLD_SIZE _LOCAL_RANK _LOCAL_WORLD_SIZE _NODE _RUN_ID (spawn.hpp)
//   torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT
//   Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE (_NODE_RANK is the local rank again)
//   Slurm      SLURM_PROCID SLURM_STEP_NUM_TASKS|SLURM_NTASKS SLURM_LOCALID SLURM_NODEID ...
//              (only inside a step: an sbatch script by itself is one plain process)
//   MPICH      PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS (Intel MPI, MVAPICH alike)
//   none       one rank
// Slurm and MPICH variables together are Slurm's if they agree, else MPICH's (mpiexec starts its
// proxies through srun).
//
// Port of the control server. SHARDBOOK_PORT, if set, is the one port. Else there is a range of 16
// candidates that every rank computes alike: MASTER_PORT + 1 .. + 16 where MASTER_PORT is set (the
// port itself belongs to torchrun's store; 16 below it near 65535), else 16 ports in 12000 .. 31999, below the ephemeral
// ports, by a hash of the job's id. Rank 0 takes the first free one; the others knock at each until
// a server answers with the same run id. Address: SHARDBOOK_ADDRESS, else MASTER_ADDR, else
// 127.0.0.1 if all ranks are local, else the first host of Slurm's step node list. Rank 0 listens there only, or on all
// interfaces where that name leads others elsewhere than itself. SHARDBOOK_SECRET: see secret.hpp.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/base/result.hpp"
#include "engine/world/world.hpp"

namespace shardbook::world {

enum class Launcher { none, shardbook, torchrun, open_mpi, mpich, slurm };
const char* name_of(Launcher launcher);

struct Launch {
  Launcher launcher = Launcher::none;
  Place place;                        // node is -1 where only the meeting of all ranks can tell
  std::string address = "127.0.0.1";  // where rank 0 serves
  int port = 0;                       // the first candidate
  int port_candidates = 1;
  std::string run_id;                 // equal on all ranks of a run, different between runs
  std::string secret;                 // what its ranks prove themselves with; "": the user's own (secret.hpp)
  int listen_fd = -1;                 // rank 0, started by spawn_processes: the port, already bound
};

// The value of a variable, or nothing. Tests pass their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// Who am I? Errors name the launcher, the variable and its value.
base::Result<Launch> from_environment(const Environment& environment);

// The first host of a Slurm node list: "gpu[07-09,12]" is gpu07; "" if it cannot be read.
std::string first_host(const std::string& slurm_node_list);

}  // namespace shardbook::world
