// Mistakes planted in correct steps of the trainer: each is found, with its buffer and both of its ops; and waits that
// other waits make needless are not missed.
#include <gtest/gtest.h>

#include <functional>

#include "engine/check/words.hpp"
#include "engine/config/switches.hpp"
#include "tests/check/oracle.hpp"
#include "tests/check/recorded.hpp"

namespace shardbook::tests {
namespace {

using check::Race;
using program::Command;
using program::CommandKind;
using program::Op;

// One rank's step, in which things can be moved about.
class Step {
 public:
  explicit Step(Recorded recorded) : recorded_(std::move(recorded)) {}
  const program::Catalogue& catalogue() const { return recorded_.catalogue; }
  program::Program& program() { return recorded_.programs.at(0); }

  program::StreamId stream(const std::string& name) const {
    return static_cast<program::StreamId>(place_of(recorded_.catalogue.streams, [&](const auto& stream) { return stream.name == name; }, name));
  }
  program::EventId event(const std::string& name) const {
    return static_cast<program::EventId>(place_of(recorded_.catalogue.events, [&](const auto& event) { return event == name; }, name));
  }
  program::BufferId buffer(const std::string& name) const {
    return static_cast<program::BufferId>(place_of(recorded_.catalogue.buffers, [&](const auto& buffer) { return buffer.name == name; }, name));
  }

  // Places of commands: the n-th, from 0, of what is asked for.
  std::size_t wait(const std::string& of_stream, const std::string& for_event, int n = 0) {
    return find(n, "wait of " + of_stream + " for " + for_event, [&](const Command& command) {
      return command.kind == CommandKind::wait_event && command.stream == stream(of_stream) && command.event == event(for_event);
    });
  }
  std::size_t record(const std::string& of_event, int n = 0) {
    return find(n, "record of " + of_event, [&](const Command& command) {
      return command.kind == CommandKind::record_event && command.event == event(of_event);
    });
  }
  std::size_t op(const std::string& name, const std::string& that_uses, int n = 0) {
    return find(n, name + " on " + that_uses, [&](const Command& command) {
      if (command.kind != CommandKind::op || name != op_of(command).desc.name) return false;
      for (int use = 0; use < op_of(command).desc.uses.size(); ++use) {
        if (op_of(command).desc.uses[use].buffer == buffer(that_uses)) return true;
      }
      return false;
    });
  }
  Op& op_of(const Command& command) { return program().ops[command.op]; }
  Op& op_at(std::size_t place) { return op_of(program().commands[place]); }

  // The next, or last, op before a place on its stream.
  std::size_t op_before(std::size_t place) {
    const program::StreamId on = program().commands[place].stream;
    while (place-- > 0) {
      if (program().commands[place].kind == CommandKind::op && program().commands[place].stream == on) return place;
    }
    throw base::Failure("no op before");
  }
  std::size_t op_after(std::size_t place) {
    const program::StreamId on = program().commands[place].stream;
    while (program().commands[++place].kind != CommandKind::op || program().commands[place].stream != on) {}
    return place;
  }

  void drop(std::size_t place) { program().commands.erase(program().commands.begin() + static_cast<std::ptrdiff_t>(place)); }
  void move(std::size_t from, std::size_t to) {
    const Command moved = program().commands[from];
    drop(from);
    program().commands.insert(program().commands.begin() + static_cast<std::ptrdiff_t>(to), moved);
  }
  void move_op_to(std::size_t place, const std::string& other_stream) {
    op_at(place).stream = program().commands[place].stream = stream(other_stream);
  }

  check::Steps twice() const { return {&recorded_.programs[0], &recorded_.programs[0]}; }

 private:
  template <class List, class Is>
  std::size_t place_of(const List& list, Is is, const std::string& name) const {
    const auto found = std::find_if(list.begin(), list.end(), is);
    if (found == list.end()) throw base::Failure("there is no '" + name + "'");
    return static_cast<std::size_t>(found - list.begin());
  }
  template <class Is>
  std::size_t find(int n, const std::string& what, Is is) {
    for (std::size_t at = 0; at < program().commands.size(); ++at) {
      if (is(program().commands[at]) && n-- == 0) return at;
    }
    throw base::Failure("there is no " + what);
  }

  Recorded recorded_;
};

// A mistake, and what must be said of it.
struct Plant {
  const char* name;
  std::function<void(Step&)> plant;
  const char* buffer;
  const char *first, *first_stream;    // op and stream that may still be at it
  const char *second, *second_stream;  // that does not wait
  bool across_steps = false;
  bool reshard = true;                 // of the step that it is planted in
  const char* set = "";                // a switch of that step
};

void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

// Blocks are 0, 1, 2; the slots of gathered weights are 0 and 1, and layer l of the first forward is in slot l % 2.
const std::vector<Plant>& plants() {
  static const std::vector<Plant> all{
      // Weights that are not there yet
      {"UseOfTheRootBeforeItIsGathered", [](Step& s) { s.drop(s.wait("compute", "root.gathered.gathered")); },
       "root.gathered", "all_gather", "fsdp", "embedding_forward", "compute"},
      {"UseOfABlockBeforeItIsGathered", [](Step& s) { s.drop(s.wait("compute", "fsdp.gathered.0.gathered", 0)); },
       "fsdp.gathered.0", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      {"UseOfASlotsSecondTenantBeforeItIsGathered", [](Step& s) { s.drop(s.wait("compute", "fsdp.gathered.0.gathered", 1)); },
       "fsdp.gathered.0", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      {"BackwardBeforeTheBlockIsGatheredAgain", [](Step& s) { s.drop(s.wait("compute", "fsdp.gathered.1.gathered", 1)); },
       "fsdp.gathered.1", "all_gather", "fsdp", "linear_input_gradient", "compute"},
      {"SecondMicroBatchBeforeTheBlockIsGathered", [](Step& s) { s.drop(s.wait("compute", "fsdp.gathered.0.gathered", 3)); },
       "fsdp.gathered.0", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      {"WaitForTheGatherOneOpTooLate", [](Step& s) { const auto at = s.wait("compute", "fsdp.gathered.1.gathered", 0); s.move(at, s.op_after(at)); },
       "fsdp.gathered.1", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      {"GatherRecordedBeforeItIsIssued", [](Step& s) { const auto at = s.record("fsdp.gathered.1.gathered", 0); s.move(at, s.op_before(at)); },
       "fsdp.gathered.1", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      {"GatherNeverRecorded", [](Step& s) { s.drop(s.record("fsdp.gathered.1.gathered", 4)); },
       "fsdp.gathered.1", "all_gather", "fsdp", "linear_input_gradient", "compute"},
      {"WaitForTheOtherSlotsGather",
       [](Step& s) { s.program().commands[s.wait("compute", "fsdp.gathered.0.gathered", 1)].event = s.event("fsdp.gathered.1.gathered"); },
       "fsdp.gathered.0", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      // Slots that are still in use
      {"GatherOverWeightsInUse", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gathered.0.released", 1)); },
       "fsdp.gathered.0", "add_bias_residual", "compute", "all_gather", "fsdp"},
      {"ReleaseRecordedBeforeTheLastUse", [](Step& s) { const auto at = s.record("fsdp.gathered.0.released", 0); s.move(at, s.op_before(at)); },
       "fsdp.gathered.0", "add_bias_residual", "compute", "all_gather", "fsdp"},
      {"SecondMicroBatchGathersOverWeightsInUse", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gathered.0.released", 4)); },
       "fsdp.gathered.0", "add_bias_residual", "compute", "all_gather", "fsdp"},
      {"OneSlotTooFew",
       [](Step& s) {
         Op& gather = s.op_at(s.op("all_gather", "blocks.1.parameter_shard"));
         for (auto& use : gather.desc.uses) {
           if (use.buffer == s.buffer("fsdp.gathered.1")) use.buffer = s.buffer("fsdp.gathered.0");
         }
       },
       "fsdp.gathered.0", "all_gather", "fsdp", "layer_norm_forward", "compute"},
      // Gradients
      {"ReductionBeforeTheGradientIsWhole", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gradient.0.complete", 0)); },
       "fsdp.gradient.0", "layer_norm_weight_gradient", "compute", "reduce_scatter", "fsdp"},
      {"GradientRecordedWholeBeforeItsLastPart",
       [](Step& s) { s.move(s.record("fsdp.gradient.1.complete", 0), s.op("layer_norm_weight_gradient", "fsdp.gradient.1", 1)); },
       "fsdp.gradient.1", "layer_norm_weight_gradient", "compute", "reduce_scatter", "fsdp"},
      {"RootsReductionBeforeTheEmbeddingHasAddedItsPart", [](Step& s) { s.drop(s.wait("fsdp", "root.gradient.complete", 0)); },
       "root.gradient", "position_backward", "compute", "reduce_scatter", "fsdp"},
      {"BackwardOverAGradientThatIsBeingReduced", [](Step& s) { s.drop(s.wait("compute", "fsdp.gradient.0.reduced", 1)); },
       "fsdp.gradient.0", "reduce_scatter", "fsdp", "linear_weight_gradient", "compute", false, false},
      {"SecondMicroBatchOverTheRootsGradient", [](Step& s) { s.drop(s.wait("compute", "root.gradient.reduced", 1)); },
       "root.gradient", "reduce_scatter", "fsdp", "linear_weight_gradient", "compute", false, false},
      {"AccumulationOnComputeWithoutAWait", [](Step& s) { s.move_op_to(s.op("accumulate", "blocks.2.gradient_shard"), "compute"); },
       "fsdp.gradient_staging", "reduce_scatter", "fsdp", "accumulate", "compute"},
      {"RoundingBeforeTheGradientIsWhole", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gradient.0.complete", 0)); },
       "fsdp.gradient.0", "layer_norm_weight_gradient", "compute", "cast", "fsdp", false, true, "fsdp.reduce_dtype=bf16"},
      {"RoundingOnComputeOverWhatIsBeingReduced", [](Step& s) { s.move_op_to(s.op("cast", "fsdp.gradient_rounded", 1), "compute"); },
       "fsdp.gradient_rounded", "reduce_scatter", "fsdp", "cast", "compute", false, true, "fsdp.reduce_dtype=bf16"},
      {"WideningOnComputeWithoutAWait", [](Step& s) { s.move_op_to(s.op("widen", "blocks.2.gradient_shard"), "compute"); },
       "fsdp.gradient_staging", "reduce_scatter", "fsdp", "widen", "compute", false, true, "fsdp.reduce_dtype=bf16"},
      // The end of the step
      {"NormBeforeTheReductions",
       [](Step& s) {
         for (const char* event : {"root.gradient.reduced", "fsdp.gradient.1.reduced", "fsdp.gradient.0.reduced"}) {
           const std::size_t norm = s.op("sum_of_squares", "root.gradient_shard");
           std::size_t last = 0;
           for (std::size_t at = 0; at < norm; ++at) {
             const Command& command = s.program().commands[at];
             if (command.kind == CommandKind::wait_event && command.stream == s.stream("compute") && command.event == s.event(event)) last = at;
           }
           s.drop(last);
         }
       },
       "root.gradient_shard", "accumulate", "fsdp", "sum_of_squares", "compute"},
      {"SumOverFsdpBeforeTheSquaresAreThere", [](Step& s) { s.drop(s.wait("fsdp", "scalars.summed_locally")); },
       "scalars", "sum_of_squares", "compute", "all_reduce", "fsdp"},
      {"SumOverTpBeforeTheSumOverFsdp",
       [](Step& s) { s.drop(s.wait("compute", "scalars.summed_over_fsdp")); s.drop(s.wait("tp", "scalars.summed_over_fsdp")); },
       "scalars", "all_reduce", "fsdp", "all_reduce", "tp"},
      {"ClippingBeforeTheNormIsSummed", [](Step& s) { s.drop(s.wait("compute", "scalars.summed")); },
       "scalars", "all_reduce", "tp", "clip_factor", "compute"},
      {"LossReadWhileItIsStillClipped", [](Step& s) { s.move_op_to(s.op("download_scalars", "scalars"), "tp"); },
       "scalars", "clip_factor", "compute", "download_scalars", "tp"},
      // Across the border of two steps
      {"NextStepGathersWhatIsBeingUpdated", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.updated")); },
       "root.parameter_shard", "adam_w", "compute", "all_gather", "fsdp", true},
      {"UpdateRecordedBeforeABlocksUpdate", [](Step& s) { s.move(s.record("fsdp.updated"), s.op("adam_w", "blocks.0.parameter_shard")); },
       "blocks.0.parameter_shard", "adam_w", "compute", "all_gather", "fsdp", true},
      {"GatherBeforeItsOwnUnitsUpdate", [](Step& s) { s.drop(s.wait("fsdp", "blocks.1.fsdp.updated")); },
       "blocks.1.parameter_shard", "adam_w", "compute", "all_gather", "fsdp", true, true, "fsdp.update=by_unit"},
      {"UnitRecordedAsUpdatedBeforeItIs", [](Step& s) { s.move(s.record("root.fsdp.updated"), s.op("adam_w", "root.parameter_shard")); },
       "root.parameter_shard", "adam_w", "compute", "all_gather", "fsdp", false, true, "fsdp.update=by_unit"},
      {"SquaresBeforeTheirOwnSum",
       [](Step& s) {
         std::size_t last = s.op("sum_of_squares", "root.gradient_shard");
         while (s.program().commands[--last].kind != CommandKind::wait_event || s.program().commands[last].event != s.event("root.gradient.summed")) {}
         s.drop(last);
       },
       "root.gradient_shard", "accumulate", "fsdp", "sum_of_squares", "compute", false, true, "fsdp.update=by_unit"},
      // Sums over tp
      {"SumOfAProjectionBeforeItIsMade", [](Step& s) { s.drop(s.wait("tp", "blocks.1.attention.projection.reduce_from_region.produced")); },
       "workspace.branch", "linear_forward", "compute", "all_reduce", "tp"},
      {"UseOfAProjectionBeforeItIsSummed", [](Step& s) { s.drop(s.wait("compute", "blocks.1.mlp.down.reduce_from_region.summed")); },
       "workspace.branch", "all_reduce", "tp", "add_bias_residual", "compute"},
      {"UseOfAnInputGradientBeforeItIsSummed", [](Step& s) { s.drop(s.wait("compute", "blocks.2.mlp.up.copy_to_region.summed")); },
       "workspace.dnorm", "all_reduce", "tp", "layer_norm_weight_gradient", "compute"},
      {"InputGradientRecordedBeforeItIsMade",
       [](Step& s) { const auto at = s.record("blocks.0.attention.qkv.copy_to_region.produced", 1); s.move(at, s.op_before(at)); },
       "workspace.dnorm", "linear_input_gradient", "compute", "all_reduce", "tp"},
      {"EmbeddingUsedBeforeItIsSummed", [](Step& s) { s.drop(s.wait("compute", "embedding.token.reduce_from_region.summed")); },
       "x.0", "all_reduce", "tp", "position_forward", "compute"},
      {"LargestLogitUsedBeforeItIsReduced", [](Step& s) { s.drop(s.wait("compute", "loss.maximum.summed")); },
       "loss.row_max", "all_reduce", "tp", "cross_entropy_sums", "compute"},
      {"SumsOfTheLossReducedBeforeTheyAreMade", [](Step& s) { s.drop(s.wait("tp", "loss.sums.produced", 1)); },
       "loss.sums", "cross_entropy_sums", "compute", "all_reduce", "tp"},
      // Input
      {"BatchUploadedOnAStreamThatNobodyAwaits", [](Step& s) { s.move_op_to(s.op("upload_batch", "batch.0"), "tp"); },
       "batch.0", "upload_batch", "tp", "embedding_forward", "compute"},
  };
  return all;
}

class Planted : public testing::TestWithParam<Plant> {};

TEST_P(Planted, RaceIsFoundAndNamed) {
  const Plant& plant = GetParam();
  config::RunConfig config = two_by_two();
  config.reshard = plant.reshard;
  if (*plant.set != 0) {
    ASSERT_TRUE(config::set_switch(config, plant.set));
  }
  Step step(record_on_meta(config, 0));
  ASSERT_TRUE(check::races(step.catalogue(), step.twice()).empty()) << "before anything is planted";
  plant.plant(step);
  const std::vector<Race> races = check::races(step.catalogue(), step.twice());
  ASSERT_FALSE(races.empty());
  EXPECT_TRUE(same_races(races, oracle(step.catalogue(), step.twice()).closest));

  // The first one told is the one that was planted
  const Race& race = races.front();
  const Op& first = step.program().ops[race.first.op];
  const Op& second = step.program().ops[race.second.op];
  const std::string said = check::sentence(race, step.catalogue(), step.twice());
  EXPECT_EQ(step.catalogue().buffers[race.buffer].name, plant.buffer) << said;
  EXPECT_STREQ(first.desc.name, plant.first) << said;
  EXPECT_EQ(step.catalogue().streams[first.stream].name, plant.first_stream) << said;
  EXPECT_STREQ(second.desc.name, plant.second) << said;
  EXPECT_EQ(step.catalogue().streams[second.stream].name, plant.second_stream) << said;
  EXPECT_EQ(race.first.step != race.second.step, plant.across_steps) << said;

  // And the sentence has all of that in it
  for (const std::string& part : {std::string(plant.buffer), check::op_text(first), check::op_text(second),
                                  base::text(plant.second_stream, " must wait for an event that ", plant.first_stream, " records")}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(In, Planted, testing::ValuesIn(plants()), [](const auto& info) { return std::string(info.param.name); });

// --- Waits that are not needed ---------------------------------------------------------------------------

struct Needless {
  const char* name;
  std::function<void(Step&)> drop;
};
void PrintTo(const Needless& needless, std::ostream* out) { *out << needless.name; }

class Dropped : public testing::TestWithParam<Needless> {};

TEST_P(Dropped, WaitIsNotMissedWhereAnotherPathOrdersTheSame) {
  Step step(record_on_meta(two_by_two(), 0));
  const std::size_t before = step.program().commands.size();
  GetParam().drop(step);
  ASSERT_LT(step.program().commands.size(), before);
  EXPECT_TRUE(check::races(step.catalogue(), step.twice()).empty());
  EXPECT_TRUE(oracle(step.catalogue(), step.twice()).closest.empty());
}

const std::vector<Needless> needless{
    // compute waits for the sum over fsdp and records, with no op between, what tp waits for
    {"OfTpForTheSumOverFsdpIsRelayedByCompute", [](Step& s) { s.drop(s.wait("tp", "scalars.summed_over_fsdp")); }},
    {"OfComputeForTheSumOverFsdpIsRelayedByTp", [](Step& s) { s.drop(s.wait("compute", "scalars.summed_over_fsdp")); }},
    {"OfTpForTheSquaresIsRelayedByFsdp", [](Step& s) { s.drop(s.wait("tp", "scalars.summed_locally")); }},
    // The update of the step before comes after every use of its slots
    {"OfAStepsFirstGatherForItsSlot", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gathered.0.released", 0)); }},
    {"OfASlotsFirstGatherForItsSlot", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gathered.1.released", 0)); }},
    {"OfAMicroBatchsFirstGatherForItsSlot", [](Step& s) { s.drop(s.wait("fsdp", "fsdp.gathered.0.released", 3)); }},
    // Gathers and reductions end in the order of their stream, and compute has awaited a gather behind the reduction
    {"OfBackwardForAnEarlierReduction", [](Step& s) { s.drop(s.wait("compute", "fsdp.gradient.0.reduced", 1)); }},
    {"OfTheSecondMicroBatchForTheRootsReduction", [](Step& s) { s.drop(s.wait("compute", "root.gradient.reduced", 1)); }},
    {"OfTheNormForEarlierReductions", [](Step& s) { s.drop(s.wait("compute", "fsdp.gradient.0.reduced", 3)); }},
    {"OfTheFirstBackwardForTheRootsReduction", [](Step& s) { s.drop(s.wait("compute", "root.gradient.reduced", 0)); }},
};
INSTANTIATE_TEST_SUITE_P(Needless, Dropped, testing::ValuesIn(needless), [](const auto& info) { return std::string(info.param.name); });

// --- Every layout, every wait -----------------------------------------------------------------------------

struct Layout {
  int tp, fsdp, micro_batches, prefetch;
  bool reshard;
};
config::RunConfig config_of(const Layout& layout) {
  config::RunConfig config = small_config(layout.tp, layout.fsdp);
  config.micro_batches = layout.micro_batches;
  config.prefetch = layout.prefetch;
  config.reshard = layout.reshard;
  return config;
}

TEST(EveryLayout, IsFreeOfRacesAndItsRanksAgree) {
  for (int tp : {1, 2, 4}) {
    for (int fsdp : {1, 2, 4}) {
      for (int micro_batches : {1, 2}) {
        for (int prefetch : {0, 1, 2, 3}) {
          for (bool reshard : {true, false}) {
            const config::RunConfig config = config_of({tp, fsdp, micro_batches, prefetch, reshard});
            std::vector<Recorded> ranks;
            for (int rank = 0; rank < config.ranks; ++rank) ranks.push_back(record_on_meta(config, rank));
            ASSERT_EQ(problem_of(ranks), "") << "tp " << tp << ", fsdp " << fsdp << ", micro-batches " << micro_batches << ", prefetch " << prefetch;
          }
        }
      }
    }
  }
}

TEST(EveryWait, IsMissedExactlyWhereBruteForceMissesIt) {
  int missed = 0, needless_ones = 0;
  for (const Layout& layout : {Layout{1, 2, 1, 1, true}, Layout{2, 1, 2, 1, true}, Layout{2, 2, 2, 1, true}, Layout{2, 2, 1, 0, true}, Layout{2, 4, 1, 3, true}, Layout{1, 2, 2, 1, false}}) {
    Step whole(record_on_meta(config_of(layout), 0));
    for (std::size_t at = 0; at < whole.program().commands.size(); ++at) {
      const CommandKind kind = whole.program().commands[at].kind;
      if (kind != CommandKind::wait_event && kind != CommandKind::record_event) continue;
      Step step = whole;
      step.drop(at);
      const std::vector<Race> races = check::races(step.catalogue(), step.twice());
      ASSERT_TRUE(same_races(races, oracle(step.catalogue(), step.twice()).closest)) << "without command " << at;
      ++(races.empty() ? needless_ones : missed);
    }
  }
  EXPECT_GT(missed, 200);
  EXPECT_GT(needless_ones, 20);
}

}  // namespace
}  // namespace shardbook::tests
