// Planted problems: each is named with its regime and its cause, and what it is said to cost is within 15 % of what
// happens when it is really taken out: by another run with other options, by a profile altered in its tables, or by the
// record as it was before the problem was put in.
#include <algorithm>

#include "engine/cause/text.hpp"
#include "tests/cause/runs.hpp"

namespace shardbook::cause {
namespace {

constexpr double within = 0.15;

void expect_near(double said_ns, double really_ns, const char* what) {
  EXPECT_GT(really_ns, 0) << what;
  EXPECT_NEAR(said_ns, really_ns, within * really_ns) << what << ": said " << said_ns / 1e6 << " ms, really " << really_ns / 1e6;
}

// The leading cause is what `headline` says.
void expect_leads(const Why& why, Regime regime, const std::string& part) {
  EXPECT_EQ(why.regime, regime) << headline(why);
  EXPECT_TRUE(why.has_problem) << headline(why);
  EXPECT_NE(headline(why).find(part), std::string::npos) << headline(why);
  EXPECT_NE(headline(why).find(adjective_of(regime)), std::string::npos) << headline(why);
}

struct Late {
  const char* name;
  Options options;
};

class Gathers : public ::testing::TestWithParam<Late> {};

// 1 to 3: no prefetch, really taken out by prefetching.
TEST_P(Gathers, ThatBeginTooLateAreNamedWithWhatPrefetchingGives) {
  Options late = GetParam().options, mended = late;
  late.emplace_back("prefetch", "0");
  mended.emplace_back("prefetch", "1");
  const PlantedRun run = run_of(late);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "all-gathers wait that nothing hides");
  EXPECT_NE(headline(why).find("--prefetch 1 would give"), std::string::npos) << headline(why);
  EXPECT_NE(why.causes.front().line.find("engine/fsdp/"), std::string::npos);
  EXPECT_EQ(why.causes.front().because, "none is issued before what needs it");
  expect_near(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(mended)), "prefetch 1");
}

INSTANTIATE_TEST_SUITE_P(Planted, Gathers,
                         ::testing::Values(Late{"eight", {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}}},
                                           Late{"four", {{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "16"}}},
                                           Late{"two", {{"model", "gpt-124m"}, {"fsdp", "2"}, {"sequences", "4"}}}),
                         [](const auto& info) { return info.param.name; });

// 4: the host, really taken out by a profile whose host costs nothing.
TEST(Planted, AHostThatIsLateIsNamed) {
  const Altered free_host([](simulate::Profile& profile) { host_costs(profile, 0); });
  const PlantedRun run = run_of({{"tp", "2"}}), mended = run_of({{"tp", "2"}, {"profile", free_host.path()}});
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::host, "the host takes");
  const Cause* cause = cause_of(why, "the host takes");
  ASSERT_NE(cause, nullptr);
  expect_near(static_cast<double>(cause->gain_ns), step_of(run) - step_of(mended), "free host");
  EXPECT_NEAR(step_of(run), 1.319e6, 1e3);
  EXPECT_NEAR(static_cast<double>(cause->gain_ns) / step_of(run), 0.23, 0.01);
  EXPECT_EQ(share_of(why, Regime::bandwidth).gain_ns, 0) << "with collectives of 1 ns the step is the same";
}

// 5: what issuing the sums costs, really taken out by another cut.
TEST(Planted, SumsThatCostTheHostMoreThanTheyTakeAreNamed) {
  const PlantedRun run = run_of({{"tp", "2"}}), mended = run_of({{"tp", "1"}});
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "all-reduces of tp costs the host");
  ASSERT_NE(cause, nullptr) << headline(why);
  EXPECT_EQ(cause->regime, Regime::host);
  EXPECT_NE(cause->line.find("engine/model/block.cpp"), std::string::npos) << "the layer that asks, not the helper that all sums go through: " << cause->line;
  EXPECT_FALSE(cause->also.empty()) << "a block has more than one sum";
  for (const std::string& line : cause->also) {
    EXPECT_TRUE(line.starts_with("engine/model/") && line != cause->line) << line;
  }
  expect_near(static_cast<double>(cause->gain_ns), step_of(run) - step_of(mended), "tp 1");
}

// 6: latency, where the host is free.
TEST(Planted, LatencyIsNamedWhereTheHostIsFree) {
  const Altered free_host([](simulate::Profile& profile) { host_costs(profile, 0); });
  const Altered no_latency([](simulate::Profile& profile) {
    host_costs(profile, 0);
    collectives(profile, 0, 1);
  });
  const PlantedRun run = run_of({{"tp", "4"}, {"profile", free_host.path()}}), mended = run_of({{"tp", "4"}, {"profile", no_latency.path()}});
  EXPECT_NEAR(step_of(run), 1.091e6, 1e3);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::latency, "all-reduces of tp");
  expect_near(static_cast<double>(*share_of(why, Regime::latency).gain_ns), step_of(run) - step_of(mended), "alpha 0");
}

// 7: bandwidth.
TEST(Planted, BandwidthIsNamedWhereLittleComputesBesideIt) {
  const Altered free_bytes([](simulate::Profile& profile) { collectives(profile, 1, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "8"}};
  Options mended = options;
  mended.emplace_back("profile", free_bytes.path());
  const PlantedRun run = run_of(options);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "take longer than compute covers");
  expect_near(static_cast<double>(*share_of(why, Regime::bandwidth).gain_ns), step_of(run) - step_of(run_of(mended)), "beta 0");
}

// 8: a slow link.
TEST(Planted, ALinkThatIsFourTimesAsSlowIsNamed) {
  const Altered slow([](simulate::Profile& profile) { collectives(profile, 1, 4); });
  const Altered none([](simulate::Profile& profile) { collectives(profile, 1, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "16"}};
  Options planted = options, mended = options;
  planted.emplace_back("profile", slow.path());
  mended.emplace_back("profile", none.path());
  const PlantedRun run = run_of(planted);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "longer than compute covers");
  expect_near(static_cast<double>(*share_of(why, Regime::bandwidth).gain_ns), step_of(run) - step_of(run_of(mended)), "no bytes");
}

// 9: sums between kernels, really taken out by collectives that cost nothing.
TEST(Planted, SumsBetweenKernelsAreNamed) {
  const Altered none([](simulate::Profile& profile) { collectives(profile, 0, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"tp", "8"}};
  Options mended = options;
  mended.emplace_back("profile", none.path());
  const PlantedRun run = run_of(options);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "all-reduces of tp stand between kernels");
  expect_near(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(mended)), "free sums");
}

// --- Problems put into records ------------------------------------------------------------------------

// How long this op takes on this rank, beside what it would.
using OfOp = std::function<double(base::Rank, program::OpIndex)>;

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
  for (std::size_t rank = 0; rank < run.recorded.records.size(); ++rank) {
    program::Record& record = run.recorded.records[rank];
    program::StepTimes times = resolved.value().ranks[rank].steps.back();
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
  measured_with(run, slow);
  measured_with(mended, {});
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
  EXPECT_NE(first_of("64").find("the host waits for the device"), std::string::npos) << first_of("64");
  EXPECT_NE(first_of("32").find("to issue"), std::string::npos) << first_of("32");
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
        copy.desc.use_count = 2;   // of buffers that the record does not know
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

// --- No problem -----------------------------------------------------------------------------------------

TEST(Planted, ARunWithoutAProblemSaysSo) {
  for (const Options& options : {Options{{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}},
                                 Options{{"model", "gpt-124m"}, {"sequences", "16"}}}) {
    const Why why = why_or_fail(run_of(options));
    EXPECT_EQ(why.regime, Regime::compute) << headline(why);
    EXPECT_FALSE(why.has_problem) << headline(why);
    EXPECT_NE(headline(why).find("has no problem"), std::string::npos) << headline(why);
  }
}

TEST(Planted, SumsOfEachMicroBatchNameTheSumOnceAStep) {
  const auto step_with = [](const char* reduce) {
    return run_of({{"model", "gpt-124m"}, {"fsdp", "8"}, {"sequences", "32"}, {"micro-batches", "4"}, {"set", std::string("accumulate.reduce=") + reduce}});
  };
  const PlantedRun each = step_with("each"), last = step_with("last");
  EXPECT_NE(headline(why_or_fail(each)).find("52 reduce-scatters of dp_shard take longer than compute covers"), std::string::npos) << headline(why_or_fail(each));
  EXPECT_NE(headline(why_or_fail(each)).find("what acts on it, and need not give that: --set accumulate.reduce=last"), std::string::npos) << headline(why_or_fail(each));
  EXPECT_LT(step_of(last), 0.9 * step_of(each));
  EXPECT_EQ(headline(why_or_fail(last)).find("accumulate.reduce"), std::string::npos) << headline(why_or_fail(last));
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

// Where compute covers most of what a busy stream has to do, each slows the other: less to do on the stream is a shorter step.
TEST(Planted, AStreamWithoutRestIsNamedWhereItsCollectivesAreCovered) {
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}};
  const Why why = why_or_fail(run_of(options));
  expect_leads(why, Regime::bandwidth, "49 all-gathers of dp_shard take as long as what hides them");
  EXPECT_NE(headline(why).find("because their stream is busy for 88 % of the step"), std::string::npos) << headline(why);
  EXPECT_NE(headline(why).find("--reshard false"), std::string::npos) << headline(why);
  // Four times the tokens: the stream rests, and nothing of it is named
  const Why large = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}}));
  EXPECT_FALSE(large.has_problem) << headline(large);
  EXPECT_EQ(cause_of(large, "take as long as what hides"), nullptr) << headline(large);
}

TEST(Planted, GradientSumsThatAwaitTheEndOfBackwardByChoiceLeadAndNameTheChoice) {
  for (const char* how : {"naive", "flat"}) {
    const Why why = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", std::string("data_parallel.reduce=") + how}}));
    EXPECT_TRUE(why.has_problem) << headline(why);
    EXPECT_NE(headline(why).find("only when backward is over"), std::string::npos) << headline(why);
    EXPECT_NE(headline(why).find("--set data_parallel.reduce=bucketed"), std::string::npos) << headline(why);
  }
  // One bucket that is as large as the model comes to the same
  const Why large = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", "data_parallel.bucket_mib=4096"}}));
  EXPECT_TRUE(large.has_problem) << headline(large);
  EXPECT_NE(headline(large).find("1 all-reduce of dp_replicate begins only when backward is over"), std::string::npos) << headline(large);
  EXPECT_NE(headline(large).find("one bucket holds all gradients"), std::string::npos) << headline(large);
  EXPECT_NE(headline(large).find("--set data_parallel.bucket_mib=25"), std::string::npos) << headline(large);
  // Without the choice, the effect is gone
  const Why why = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}}));
  EXPECT_EQ(cause_of(why, "only when backward is over"), nullptr) << headline(why);
}

// Smaller buckets than one a unit there are not, and a run that has them already is not told to.
TEST(Planted, NoRunIsToldToSetWhatItHas) {
  const Options small = {{"model", "grammar-tutor"}, {"layers", "1"}, {"width", "512"}, {"heads", "8"}, {"vocab", "2048"},
                         {"fsdp", "2"}, {"dp", "4"}, {"sequences", "512"}, {"micro-batches", "1"}};
  for (const char* mib : {"1", "2", "4096"}) {
    Options options = small;
    options.emplace_back("set", std::string("data_parallel.bucket_mib=") + mib);
    const Why why = why_or_fail(run_of(options));
    for (const Cause& cause : why.causes) EXPECT_NE(cause.remedy, std::string("--set data_parallel.bucket_mib=") + mib) << cause.what;
    if (std::string(mib) == "1") {
      EXPECT_EQ(to_text(why, 9).find("one bucket holds all"), std::string::npos) << to_text(why, 9);
    }
  }
}

TEST(Planted, WhatNothingCanHideIsNamedSoAndDoesNotLead) {
  const Why why = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}}));
  const Cause* edge = cause_of(why, "before the first kernel");
  ASSERT_NE(edge, nullptr);
  EXPECT_FALSE(edge->avoidable);
  bool seen = false;
  for (const Cause& cause : why.causes) {
    EXPECT_FALSE(seen && cause.avoidable) << "what can be changed comes first";
    seen = seen || !cause.avoidable;
  }
  EXPECT_NE(to_text(why, 9).find("nothing can change it"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::cause
