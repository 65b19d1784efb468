// tests/world: what each launcher's variables say.
#include <gtest/gtest.h>

#include <map>

#include "engine/world/processes.hpp"

namespace shardbook::world::test {

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

Launch read(const Variables& variables) {
  auto launch = from_environment(environment(variables));
  EXPECT_TRUE(launch.ok()) << launch.error();
  return launch.ok() ? launch.value() : Launch{};
}

std::string complaint(const Variables& variables) {
  auto launch = from_environment(environment(variables));
  return launch.ok() ? "accepted" : launch.error();
}

Variables with(Variables variables, const Variables& changed) {
  for (const auto& [name, value] : changed) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// As torchrun --nnodes 2 --nproc-per-node 2 sets them for rank 3.
const Variables torchrun{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"},
                         {"GROUP_RANK", "1"}, {"MASTER_ADDR", "gpu07"}, {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
// As mpirun -n 2 of Open MPI 4 sets them for rank 1.
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_NODE_RANK", "1"}, {"PMIX_NAMESPACE", "3221225473"}, {"PMIX_RANK", "1"}};
const Variables mpich{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
// As srun -N 3 -n 10 sets them for a task of the second node.
const Variables slurm{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "10"}, {"SLURM_STEP_NUM_TASKS", "10"},
                      {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}};

}  // namespace

TEST(Launchers, WithoutAnyVariableThereIsOneRank) {
  const Launch launch = read({});
  EXPECT_EQ(launch.launcher, Launcher::none);
  EXPECT_EQ(launch.place.size, 1);
}

TEST(Launchers, TorchrunNamesEverythingAndKeepsItsPort) {
  const Launch launch = read(torchrun);
  EXPECT_EQ(launch.launcher, Launcher::torchrun);
  EXPECT_EQ(launch.place.rank, 3);
  EXPECT_EQ(launch.place.size, 4);
  EXPECT_EQ(launch.place.local_rank, 1);
  EXPECT_EQ(launch.place.local_size, 2);
  EXPECT_EQ(launch.place.node, 1);
  EXPECT_EQ(launch.address, "gpu07");
  EXPECT_EQ(launch.port, 29501);
  EXPECT_EQ(launch.port_candidates, 16);
}

TEST(Launchers, RanksOfARunAgreeOnPortAndIdAndAnotherRunDoesNot) {
  const Launch first = read(torchrun);
  const Launch second = read(with(torchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"GROUP_RANK", "0"}}));
  const Launch restarted = read(with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_EQ(first.run_id, second.run_id);
  EXPECT_EQ(first.port, second.port);
  EXPECT_NE(first.run_id, restarted.run_id);
  const Launch other = read(with(open_mpi, {{"PMIX_NAMESPACE", "3221225474"}}));
  EXPECT_NE(read(open_mpi).run_id, other.run_id);
  EXPECT_NE(read(open_mpi).port, other.port);
}

TEST(Launchers, PortsStayBelowTheLastPort) {
  const Launch launch = read(with(torchrun, {{"MASTER_PORT", "65530"}}));
  EXPECT_LT(launch.port + launch.port_candidates - 1, 65530);
  const Launch hashed = read(open_mpi);
  EXPECT_GE(hashed.port, 12000);
  EXPECT_LT(hashed.port + hashed.port_candidates, 32768);
}

TEST(Launchers, AnOwnPortIsTheOnlyCandidate) {
  const Launch launch = read(with(torchrun, {{"SHARDBOOK_PORT", "4000"}}));
  EXPECT_EQ(launch.port, 4000);
  EXPECT_EQ(launch.port_candidates, 1);
}

TEST(Launchers, MpirunOnOneHostServesOnLoopback) {
  const Launch launch = read(open_mpi);
  EXPECT_EQ(launch.launcher, Launcher::open_mpi);
  EXPECT_EQ(launch.place.rank, 1);
  EXPECT_EQ(launch.place.node, 0);
  EXPECT_EQ(launch.address, "127.0.0.1");
  EXPECT_EQ(read(mpich).launcher, Launcher::mpich);
  EXPECT_EQ(read(mpich).place.local_size, 2);
}

TEST(Launchers, MpirunOverNodesNeedsTheHostOfRankZero) {
  const Variables over_nodes = with(open_mpi, {{"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(complaint(over_nodes),
            "the variables of Open MPI do not fit together: it runs on more than one node, but nothing names the host "
            "of rank 0: set MASTER_ADDR on all ranks (known by OMPI_COMM_WORLD_RANK; unset that to run alone)");
  const Launch launch = read(with(over_nodes, {{"MASTER_ADDR", "gpu07"}}));
  EXPECT_EQ(launch.address, "gpu07");
  EXPECT_EQ(launch.place.node, -1) << "only the meeting of the ranks can tell the node";
}

TEST(Launchers, SlurmTellsTheFirstHostAndTheTasksOfEachNode) {
  const Launch launch = read(slurm);
  EXPECT_EQ(launch.launcher, Launcher::slurm);
  EXPECT_EQ(launch.place.rank, 5);
  EXPECT_EQ(launch.place.size, 10);
  EXPECT_EQ(launch.place.local_rank, 1);
  EXPECT_EQ(launch.place.local_size, 4);
  EXPECT_EQ(launch.place.node, 1);
  EXPECT_EQ(launch.address, "gpu07");
  const Launch last = read(with(slurm, {{"SLURM_PROCID", "9"}, {"SLURM_NODEID", "2"}}));
  EXPECT_EQ(last.place.local_size, 2);
}

TEST(Launchers, ABatchScriptWithoutSrunIsOneRank) {
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"},
                  {"SLURM_JOB_ID", "4711"}, {"SLURM_NODELIST", "gpu07"}})
                .launcher,
            Launcher::none);
}

TEST(Launchers, TheInnerLauncherWins) {
  EXPECT_EQ(read(with(slurm, torchrun)).launcher, Launcher::torchrun);
  EXPECT_EQ(read(with(slurm, open_mpi)).launcher, Launcher::open_mpi);
  EXPECT_EQ(read(with(slurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "10"}})).launcher, Launcher::slurm) << "srun --mpi=pmi2";
  EXPECT_EQ(read(with(slurm, mpich)).launcher, Launcher::mpich) << "mpiexec starts its proxies through srun";
}

TEST(Launchers, AnIncompleteSetIsOneSentence) {
  EXPECT_EQ(complaint(without(torchrun, "WORLD_SIZE")),
            "the variables of torchrun do not fit together: it lacks WORLD_SIZE (known by RANK; unset that to run alone)");
  EXPECT_EQ(complaint(without(torchrun, "RANK")),
            "the variables of torchrun do not fit together: it lacks RANK (known by WORLD_SIZE; unset that to run alone)");
  EXPECT_NE(complaint(without(open_mpi, "OMPI_COMM_WORLD_SIZE")).find("lacks OMPI_COMM_WORLD_SIZE"), std::string::npos);
  EXPECT_NE(complaint(without(mpich, "MPI_LOCALRANKID")).find("lacks MPI_LOCALRANKID"), std::string::npos);
  EXPECT_NE(complaint(without(slurm, "SLURM_NODEID")).find("lacks SLURM_NODEID"), std::string::npos);
  EXPECT_NE(complaint({{"SHARDBOOK_RANK", "0"}}).find("lacks SHARDBOOK_WORLD_SIZE"), std::string::npos);
}

TEST(Launchers, AContradictorySetIsOneSentence) {
  EXPECT_EQ(complaint(with(torchrun, {{"RANK", "4"}})),
            "the variables of torchrun do not fit together: it gives rank 4 among 4 ranks (known by RANK; unset that "
            "to run alone)");
  EXPECT_NE(complaint(with(torchrun, {{"RANK", "three"}})).find("gives RANK='three'"), std::string::npos);
  EXPECT_NE(complaint(with(torchrun, {{"RANK", "-1"}})).find("gives RANK='-1'"), std::string::npos);
  EXPECT_NE(complaint(with(torchrun, {{"LOCAL_RANK", "2"}})).find("local rank 2 among 2"), std::string::npos);
  EXPECT_NE(complaint(with(torchrun, {{"LOCAL_WORLD_SIZE", "8"}})).find("8 local ranks, but only 4"), std::string::npos);
  EXPECT_NE(complaint(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "4(x"}})).find("how many of its tasks"), std::string::npos);
  EXPECT_NE(complaint(with(torchrun, {{"SHARDBOOK_PORT", "70000"}})).find("port 70000, above 65535"), std::string::npos);
}

TEST(Launchers, FirstHostReadsSlurmsCompressedLists) {
  EXPECT_EQ(first_host("gpu07"), "gpu07");
  EXPECT_EQ(first_host("gpu[07-09,12],login1"), "gpu07");
  EXPECT_EQ(first_host("login1,gpu[07-09]"), "login1");
  EXPECT_EQ(first_host("r[1-2]n[3-4]"), "r1n3");
  EXPECT_EQ(first_host("gpu[7"), "");
  EXPECT_EQ(first_host("gpu[]"), "");
  EXPECT_EQ(first_host(""), "");
}

TEST(Launchers, TimeOutsAreSecondsAboveZero) {
  const auto options = process_options(environment({{"SHARDBOOK_CONNECT_TIMEOUT_S", "1.5"}}));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().connect_timeout.count(), 1500);
  for (const char* bad : {"", "0", "-1", "soon", "5 s", "nan", "1e99"}) {
    const auto refused = process_options(environment({{"SHARDBOOK_HEARTBEAT_TIMEOUT_S", bad}}));
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.error().find("SHARDBOOK_HEARTBEAT_TIMEOUT_S"), std::string::npos);
  }
}

}  // namespace shardbook::world::test
