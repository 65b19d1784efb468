// Problems planted in records, and in what crosses the bus: each is named with its cause, and what it is said to cost is
// within 15 % of what the record as it was before takes.
#include <algorithm>

#include "tests/cause/planted.hpp"

namespace shardbook::cause {
namespace {

// How long this op takes on this rank, beside what it would.
using OfOp = std::function<double(base::Rank, program::OpIndex)>;

// The run as if these times had been measured.
void as_if_measured(PlantedRun& run, const std::vector<simulate::RankTimes>& ranks) {
  for (std::size_t rank = 0; rank < run.recorded.records.size(); ++rank) {
    program::Record& record = run.recorded.records[rank];
    program::StepTimes times = ranks[rank].steps.back();
    times.step = 0;
    times.program = static_cast<std::uint32_t>(record.programs.size() - 1);
    record.steps = {times};
  }
  run.recorded.info->clock = "measured";
  run.recorded.info->profile = "";
  run.recorded.info->hardware["device"] = "NVIDIA H200";
  base::Result<Study> study = study_of(run.recorded, {});
  ASSERT_TRUE(study.ok()) << study.error();
  run.timeline = study.value().timeline;
}

// With this change to a run that was measured, as a machine at its limit of power has it: who waits rests, and computes faster.
void measured_beside(PlantedRun& run, const PlantedRun& whole, const simulate::Change& change) {
  const base::Result<Study> study = study_of(whole.recorded, {});
  ASSERT_TRUE(study.ok()) << study.error();
  const base::Result<simulate::Replayed> replayed = study.value().replay.resolve(change);
  ASSERT_TRUE(replayed.ok()) << replayed.error();
  as_if_measured(run, replayed.value().ranks);
}

// The run as if its resolved times, with this change, had been measured.
void measured_with(PlantedRun& run, const simulate::Change& change, const OfOp& factor = [](base::Rank, program::OpIndex) { return 1.0; }) {
  std::vector<simulate::RankSteps> ranks;
  const simulate::CostModel model(simulate::find_profile("h200x8").value());
  for (const program::Record& record : run.recorded.records) {
    const program::Program* program = record.programs.back().get();
    simulate::Scale scale = change.scale;
    if (const auto own = change.of_rank.find(record.rank); own != change.of_rank.end()) scale = own->second;
    auto costs = std::make_shared<simulate::Costs>(*model.costs(*program, record.catalogue, scale));
    for (program::OpIndex op = 0; op < costs->op_ns.size(); ++op) {
      if (program::class_of(program->ops[op].desc.kind) == program::OpClass::compute) costs->op_ns[op] = std::llround(static_cast<double>(costs->op_ns[op]) * factor(record.rank, op));
    }
    ranks.push_back({record.rank, &record.catalogue, {{program, std::move(costs)}}});
  }
  simulate::ResolveOptions drained;
  drained.drain_each_step = true;
  const base::Result<simulate::Resolved> resolved = simulate::resolve(ranks, simulate::machine_of(model.profile()), drained);
  ASSERT_TRUE(resolved.ok()) << resolved.error();
  as_if_measured(run, resolved.value().ranks);
}

double length_of(const PlantedRun& run) {
  base::Nanoseconds begin = run.recorded.records[0].steps[0].window.start, end = begin;
  for (const program::Record& record : run.recorded.records) {
    begin = std::min(begin, record.steps[0].window.start);
    for (const program::TimeSpan& ran : record.steps[0].ran) end = std::max(end, ran.end);
  }
  return static_cast<double>(end - begin);
}

const Options four = {{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "32"}};

// 10: a rank whose kernels are slow.
TEST(Planted, ASlowRankIsNamed) {
  PlantedRun run = run_of(four), mended = run_of(four);
  simulate::Change slow;
  slow.of_rank[2].compute = 1.4;
  measured_with(mended, {});
  measured_beside(run, mended, slow);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::rank, "all wait for rank 2, whose kernels take 1.");
  expect_near(static_cast<double>(why.causes.front().gain_ns), length_of(run) - length_of(mended), "a rank like the others");
}

// A rank that is a little late is named, but nobody is sent to look for what slows it: two GPUs of one sort differ by as much.
TEST(Planted, ARankThatIsALittleSlowIsNamedAndNothingIsAdvised) {
  PlantedRun run = run_of(four);
  simulate::Change slow;
  slow.of_rank[2].compute = 1.03;
  measured_with(run, slow);
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "all wait for rank 2, whose kernels take 1.0");
  ASSERT_NE(cause, nullptr) << to_text(why, 9);
  EXPECT_FALSE(cause->avoidable);
  EXPECT_EQ(cause->remedy, "");
}

// Four ranks that are slow for some kernels each, in turn: to make one of them as fast as the others gains little, so none is
// to blame alone.
TEST(Planted, RanksThatAreLateInTurnAreNotLaidOnOne) {
  PlantedRun run = run_of(four);
  measured_with(run, {}, [](base::Rank rank, program::OpIndex op) { return (op / 64) % 4 == static_cast<program::OpIndex>(rank) ? 1.5 : 1.0; });
  const Why why = why_or_fail(run);
  EXPECT_EQ(cause_of(why, "all wait for rank"), nullptr) << to_text(why, 9);
  const Cause* cause = cause_of(why, "ranks wait for each other");
  ASSERT_NE(cause, nullptr) << to_text(why, 9);
  EXPECT_FALSE(cause->avoidable);
}

// A modelled run whose program was altered: what its step then takes goes to the results, as a run would write it.
void resolve_again(PlantedRun& run) {
  base::Result<Study> study = study_of(run.recorded, {});
  ASSERT_TRUE(study.ok()) << study.error();
  run.recorded.info->results["step_ns"] = static_cast<double>(study.value().step_ns());
}

// 11: the host waits for each gather.
TEST(Planted, AWaitOfTheHostIsNamedWithItsLine) {
  PlantedRun run = run_of(four);
  const double mended_ns = step_of(run);
  for (program::Record& record : run.recorded.records) {
    program::Program& program = *record.programs.back();
    std::vector<program::Command> commands;
    for (std::size_t at = 0; at < program.commands.size(); ++at) {
      const program::Command& command = program.commands[at];
      commands.push_back(command);
      const bool after_gather = command.kind == program::CommandKind::record_event && at > 0 &&
                                program.commands[at - 1].kind == program::CommandKind::op &&
                                program.ops[program.commands[at - 1].op].desc.kind == program::OpKind::all_gather;
      if (!after_gather) continue;
      program::Command wait = command;
      wait.kind = program::CommandKind::host_wait;
      wait.where = {"labs/planted.cpp", 7};
      commands.push_back(wait);
    }
    program.commands = commands;
  }
  resolve_again(run);
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "the host waits for the device");
  ASSERT_NE(cause, nullptr) << headline(why);
  EXPECT_EQ(cause->line, "labs/planted.cpp:7");
  expect_near(static_cast<double>(cause->gain_ns), step_of(run) - mended_ns, "no wait");
}

// All that the host is asked for together gains what one wait among it gains: then the wait is why, not the calls.
TEST(Planted, AWaitThatIsAllOfTheHostsPartLeadsAndOneThatIsLessDoesNot) {
  const auto first_of = [](const char* sequences) {
    const Why why = why_or_fail(run_of({{"tp", "1"}, {"fsdp", "1"}, {"sequences", sequences}, {"micro-batches", "1"}, {"set", "host.synchronize=layer"}}));
    return why.causes.empty() ? std::string() : why.causes.front().what;
  };
  EXPECT_NE(first_of("96").find("the host waits for the device"), std::string::npos) << first_of("96");
  EXPECT_NE(first_of("64").find("to issue"), std::string::npos) << first_of("64");
}

// A copy of so many bytes at each op of qkv: on compute, from labs/planted.cpp:9, or to host memory, from line 10, on a stream of
// its own that nothing waits for.
void copy_in_every_layer(PlantedRun& run, base::Bytes bytes, bool to_host = false) {
  for (program::Record& record : run.recorded.records) {
    program::Program& program = *record.programs.back();
    const auto other = static_cast<program::StreamId>(record.catalogue.streams.size());
    if (to_host) record.catalogue.streams.push_back({"to_host"});
    std::vector<program::Command> commands;
    for (const program::Command& command : program.commands) {
      commands.push_back(command);
      if (command.kind != program::CommandKind::op || std::string(program.ops[command.op].key.part) != "qkv") continue;
      if (program.ops[command.op].desc.kind == program::OpKind::copy) continue;   // planted before
      program::Op copy = program.ops[command.op];
      copy.desc = program::OpDesc("copy_out", program::OpKind::copy, base::DType::bf16);
      copy.desc.bytes_read = copy.desc.bytes_written = bytes;
      copy.where = {"labs/planted.cpp", to_host ? 10u : 9u};
      if (to_host) {
        copy.desc.bytes_written = 0;
        while (copy.desc.uses.size() < 2) copy.desc.uses.add({});   // of buffers that the record does not know
        copy.stream = other;
      }
      program.ops.push_back(copy);
      program::Command issue = command;
      issue.op = static_cast<program::OpIndex>(program.ops.size() - 1);
      issue.stream = copy.stream;
      commands.push_back(issue);
    }
    program.commands = commands;
  }
  resolve_again(run);
}

// 12: a copy in every layer.
TEST(Planted, CopiesAreNamed) {
  PlantedRun run = run_of(four);
  const double mended_ns = step_of(run);
  copy_in_every_layer(run, base::Bytes{1} << 30);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::memory, "copies and fills, which not everything hides");
  EXPECT_EQ(why.causes.front().line, "labs/planted.cpp:9");
  expect_near(static_cast<double>(why.causes.front().gain_ns), step_of(run) - mended_ns, "no copies");
}

// States in host memory: what the step waits for is named as that, and what it would gain is what it loses by them.
TEST(Planted, StatesThatCrossTheBusAreNamed) {
  const Options here = {{"model", "gpt-1.3b"}, {"fsdp", "2"}, {"sequences", "16"}};
  Options there = here;
  there.emplace_back("set", "fsdp.offload=optimizer");
  const PlantedRun run = run_of(there);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::memory, "copies between host memory and the device, which not everything hides");
  EXPECT_TRUE(why.causes.front().because.starts_with("optimizer states in host memory cross the bus, ")) << why.causes.front().because;
  EXPECT_TRUE(why.causes.front().line.starts_with("engine/optimizer/offload.cpp:")) << why.causes.front().line;
  EXPECT_NE(why.causes.front().remedy.find("fsdp.offload=none"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(here)), 0.01 * step_of(run));
}

// Copies that cross the bus beside compute take longer than those that nothing covers, and cost nothing: what lies open is named.
TEST(Planted, CopiesAreNamedByWhatNothingCoversAndNotByWhatTakesLongest) {
  PlantedRun run = run_of(four);
  copy_in_every_layer(run, base::Bytes{1} << 24, true);
  copy_in_every_layer(run, base::Bytes{1} << 28);
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "copies and fills");
  ASSERT_NE(cause, nullptr) << to_text(why, 9);
  EXPECT_EQ(cause->line, "labs/planted.cpp:9");
  EXPECT_EQ(cause->because, "");
  // And where there is nothing else, what crosses is named, as no states
  PlantedRun crossing = run_of(four);
  copy_in_every_layer(crossing, base::Bytes{1} << 30, true);
  const Why alone = why_or_fail(crossing);
  expect_leads(alone, Regime::memory, "copies between host memory and the device, which not everything hides");
  EXPECT_EQ(alone.causes.front().line, "labs/planted.cpp:10");
  EXPECT_TRUE(alone.causes.front().because.starts_with("they cross the bus, ")) << alone.causes.front().because;
  EXPECT_EQ(alone.causes.front().remedy, "");
}

// What has nothing to hide behind is named by its own lines: by none of those that issue the same inside the step.
TEST(Planted, EdgesAreNamedByTheLinesOfWhatLiesThere) {
  const PlantedRun run = run_of({{"model", "gpt-124m"}, {"fsdp", "8"}, {"sequences", "8"}});
  const Why why = why_or_fail(run);
  const Cause* edges = cause_of(why, "before the first kernel or after the last of backward");
  const Cause* inside = cause_of(why, "all-gathers of dp_shard");
  ASSERT_TRUE(edges != nullptr && inside != nullptr) << to_text(why, 9);
  // The first gather is planned as needed now, those inside as made ahead; there is one reduction at the end, and the norm's
  const program::Program& program = *run.recorded.records.front().programs.back();
  std::string first;
  for (const program::Command& command : program.commands) {
    const bool gathers = command.kind == program::CommandKind::op && program.ops[command.op].desc.kind == program::OpKind::all_gather;
    if (gathers && first.empty()) first = line_of(command.planned);
  }
  std::vector<std::string> lines = edges->also;
  lines.push_back(edges->line);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), first), 1) << first;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), inside->line), 0) << inside->line;
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end()) << "each once";
}

// With shards there as well the CPU updates, and that is what the step waits for; the rest of the host's cost is no part of it.
TEST(Planted, TheCpusUpdateIsNamed) {
  const Options here = {{"model", "gpt-1.3b"}, {"fsdp", "2"}, {"sequences", "16"}};
  Options there = here;
  there.emplace_back("set", "fsdp.offload=parameters");
  const PlantedRun run = run_of(there);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::host, "the CPU works for");
  EXPECT_TRUE(why.causes.front().line.starts_with("engine/optimizer/adamw.cpp:")) << why.causes.front().line;
  EXPECT_NE(why.causes.front().remedy.find("fsdp.offload=optimizer"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(here)), 0.02 * step_of(run));
  for (std::size_t at = 1; at < why.causes.size(); ++at) EXPECT_NE(why.causes[at].regime, Regime::host) << why.causes[at].what;
  ASSERT_FALSE(why.idle.empty());
  EXPECT_EQ(why.idle.front().cause, "the CPU's own work");
}

// Where compute covers them they cost all the same: what they slow. Once a step is less of that.
TEST(Planted, SumsOfEachMicroBatchAreNamedWhereComputeCoversThem) {
  PlantedRun run = run_of({{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "32"}, {"micro-batches", "4"}, {"set", "accumulate.reduce=each"}});
  measured_with(run, {});
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "reduce-scatters of dp_shard slow the kernels that hide them");
  ASSERT_NE(cause, nullptr) << to_text(why, 9);
  EXPECT_NE(cause->remedy.find("--set accumulate.reduce=last"), std::string::npos);
  EXPECT_EQ(cause_of(why, "reduce-scatters of dp_shard take longer"), nullptr);
}

}  // namespace
}  // namespace shardbook::cause
