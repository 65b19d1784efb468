// What checks lab 01a. Not needed to solve it.
//
// The learner's two functions stand in the place of data_parallel/replicas. Judged in order: is every gradient summed
// once; may anything be read before it is written, over two steps; are the numbers those of the engine under three drain
// seeds; are there few sums; are they hidden; is the step as short as with the engine's own buckets of 32 MiB.
#include <algorithm>
#include <map>

#include "engine/data_parallel/schedule.hpp"
#include "engine/plan/passes.hpp"
#include "labs/01_data_parallel/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab01 {

namespace {

using base::text;
using labs::Clock;
using labs::Finding;
using labs::Issued;
using labs::line;
using labs::ms;
using labs::Numbers;
using labs::Timing;
using program::Command;
using program::CommandKind;
using program::Op;
using program::OpIndex;
using program::Phase;

constexpr const char* page = "01_data_parallel#01a";
constexpr std::size_t most_collectives = 16;
constexpr double most_exposed = 0.75;   // of what one sum of everything exposes
constexpr double most_step = 1.05;      // of the engine's own

class ByHand final : public plan::Executor {
 public:
  explicit ByHand(const train::ReplicaGroup& of)
      : replica_{of.device, of.compute, of.stream, of.group, {}, of.store.gradients(0, static_cast<int>(of.store.shards().size()))} {
    for (const optimizer::ShardState& shard : of.store.shards()) {
      Part& part = replica_.parts.emplace_back();
      part.gradient = shard.gradient;
      for (const shard::Piece& piece : shard.layout->pieces(shard.flat)) {
        part.parameters.push_back(shard.gradient.slice(piece.flat.begin - shard.flat.begin, {piece.flat.size()}));
      }
      const std::string name = text("part.", replica_.parts.size() - 1);
      part.written = of.device.create_event(name + ".written");
      part.summed = of.device.create_event(name + ".summed");
    }
  }
  void run(const plan::Action& action) override { part_is_written(replica_, static_cast<std::size_t>(action.unit)); }
  void await(const plan::Action& action) override {
    if (action.kind == plan::Kind::norm) backward_is_over(replica_);
  }

 private:
  Replica replica_;
};

labs::Written learners() {
  labs::Written written;
  // A unit a part, each told of as soon as backward has written it
  written.plan = [](const plan::Network& network) { return data_parallel::sum_over_replicas(plan::one_after_the_other(network), network, {data_parallel::Sums::bucketed, 1}); };
  written.instead.replicas = [](const train::ReplicaGroup& of) { return std::make_unique<ByHand>(of); };
  return written;
}

// `order`: a value of the switch data_parallel.reduce.
labs::Options large(const char* order) {
  labs::Options options{{"device", "meta"}, {"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", text("data_parallel.reduce=", order)}};
  if (order == std::string_view("bucketed")) options.push_back({"set", "data_parallel.bucket_mib=32"});
  return options;
}

labs::Options small(std::uint64_t seed) {
  return {{"device", "host"}, {"dp", "2"}, {"sequences", "4"}, {"seed", std::to_string(seed)}};
}

// What the learner's file issued, and where.
struct Sums {
  std::vector<OpIndex> ops;
  std::vector<std::string> lines;   // "line 5", each once
  std::string where() const {
    std::string all;
    for (const std::string& one : lines) all += (all.empty() ? "" : ", ") + one;
    return lines.empty() ? "no line" : all;
  }
};

Sums sums_of(const Issued& issued) {
  Sums sums;
  for (OpIndex op : issued.collectives()) {
    const Op& of = issued.program().ops[op];
    if (!labs::is_learners(of.where)) continue;
    sums.ops.push_back(op);
    if (std::find(sums.lines.begin(), sums.lines.end(), line(of.where)) == sums.lines.end()) sums.lines.push_back(line(of.where));
  }
  return sums;
}

std::string part_name(std::size_t part) { return part == 0 ? "the embedding" : text("layer ", part - 1); }

// "rank 0, layer 11, backward"
std::string place_of(const Op& op) {
  return text("rank 0, ", op.key.layer >= 0 ? text("layer ", op.key.layer, ", ") : op.key.phase == Phase::backward ? "the embedding, " : "", program::name_of(op.key.phase));
}

Finding about(const char* rule, const Op& op, std::string message) {
  return {rule, std::move(message), 0, op.key.layer, program::name_of(op.key.phase), op.desc.name, op.where, page};
}

// Is each part's gradient summed once?
bool covers(const Issued& issued, const Sums& sums, labs::Verdict& verdict) {
  const auto& shards = const_cast<train::Trainer&>(issued.trainer()).shards();
  for (std::size_t part = shards.size(); part-- > 0;) {
    const program::BufferUse gradient = shards[part].gradient.use();
    base::Bytes summed = 0;
    const Op* last = nullptr;
    for (OpIndex op : sums.ops) {
      const Op& of = issued.program().ops[op];
      for (int use = 0; use < of.desc.uses.size(); ++use) {
        const program::BufferUse& touched = of.desc.uses[use];
        if ((of.desc.written_mask >> use & 1) == 0 || touched.buffer != gradient.buffer) continue;
        const base::Bytes common = std::min(touched.end, gradient.end) - std::max(touched.begin, gradient.begin);
        if (common > 0) last = &of;
        summed += std::max<base::Bytes>(common, 0);
      }
    }
    const base::Bytes all = gradient.end - gradient.begin;
    // A tensor that was cut has gaps of padding at its end, which need no sum
    if (summed < all * 99 / 100) {
      verdict.fail({"sums", text("rank 0, ", part_name(part), ", backward: ", summed == 0 ? "no all-reduce sums its gradient" : text("only ", 100 * summed / all, " % of its gradient is summed"),
                                 ", so each replica would go its own way; sum r.parts[", part, "].gradient, alone or in a bucket"),
                    0, static_cast<int>(part) - 1, "backward", "all_reduce", last == nullptr ? program::SourceLine{} : last->where, page});
      return false;
    }
    if (summed > all) {
      verdict.fail(about("sums", *last, text("rank 0, ", part_name(part), ", backward: its gradient is summed more than once (", sums.where(), "); the second sum adds up what is whole already")));
      return false;
    }
  }
  return true;
}

std::string numbers_text(const labs::Tried& tried) {
  if (tried.right) return "the numbers came out right here, by luck";
  if (!tried.found.error.empty()) return tried.found.error;
  // The first step's norm, where that is right the second step's loss
  const bool norm = std::abs(tried.found.norms[0] - tried.expected.norms[0]) > 1e-5 * tried.expected.norms[0];
  char shown[96];
  if (norm) std::snprintf(shown, sizeof shown, "norm %.4g, expected %.4g", tried.found.norms[0], tried.expected.norms[0]);
  else std::snprintf(shown, sizeof shown, "second norm %.5g, expected %.5g", tried.found.norms[1], tried.expected.norms[1]);
  return text(shown, ", drain seed ", tried.seed);
}

bool orders(const Issued& issued, const Timing& timing, const labs::Tried& tried, labs::Verdict& verdict) {
  const std::vector<check::Race> races = issued.races();
  if (races.empty()) return true;
  const check::Race& race = races.front();
  const Op& first = issued.op_of(race.first);
  const Op& second = issued.op_of(race.second);
  const bool sum_is_second = labs::is_learners(second.where);
  const Op& sum = sum_is_second ? second : first;
  const Op& other = sum_is_second ? first : second;
  if (sum_is_second) {
    verdict.fail(about("race", sum, text(place_of(sum), ": the all-reduce (", line(sum.where), ") may read gradients while ", other.desc.name, " on compute still writes them; record an event on r.compute and let the all-reduce's stream wait for it. ",
                                         ms(static_cast<double>(timing.step_ns)), " is fast because it is wrong: ", numbers_text(tried))));
  } else {
    verdict.fail(about("race", sum, text("rank 0, ", program::name_of(other.key.phase), race.second.step > race.first.step ? " of the next step" : "", ": ", other.desc.name, " may ", race.second_writes ? "overwrite" : "read", " gradients while the all-reduce (", line(sum.where), ", ", part_name(static_cast<std::size_t>(sum.key.layer + 1)),
                                         ") still writes them; let r.compute wait for the last sum in backward_is_over. ", numbers_text(tried))));
  }
  return false;
}

// What of the learner's sums lies open, and why.
void explain_exposed(const Issued& issued, const Sums& sums, const Timing& timing, const Timing& flat, labs::Verdict& verdict) {
  const std::vector<Op>& ops = issued.program().ops;
  const std::string open = text(ms(static_cast<double>(timing.exposed(sums.ops))), " exposed");
  const auto stands_on_compute = std::find_if(sums.ops.begin(), sums.ops.end(), [&](OpIndex op) { return issued.catalogue().streams[ops[op].stream].name == "compute" && ops[op].key.phase == Phase::backward; });
  if (stands_on_compute != sums.ops.end()) {
    verdict.fail(about("exposed", ops[*stands_on_compute], text(place_of(ops[*stands_on_compute]), ": ", sums.ops.size(), " all-reduces (", sums.where(), ") stand on r.compute itself, and backward behind them: ", open, "; issue them to r.comm")));
    return;
  }
  // Does compute await a sum with backward still to come?
  OpIndex last_backward = 0;
  for (OpIndex op = 0; op < ops.size(); ++op) {
    if (ops[op].key.phase == Phase::backward && program::class_of(ops[op].desc.kind) == program::OpClass::compute) last_backward = op;
  }
  const Op* begun = nullptr;
  for (const Command& command : issued.program().commands) {
    if (command.kind == CommandKind::op && command.op >= last_backward) break;
    if (command.kind == CommandKind::op && std::find(sums.ops.begin(), sums.ops.end(), command.op) != sums.ops.end()) begun = &ops[command.op];
    const bool awaits = command.kind == CommandKind::wait_event && labs::is_learners(command.where) && issued.catalogue().streams[command.stream].name == "compute";
    if (!awaits || begun == nullptr) continue;
    verdict.fail({"exposed", text(place_of(*begun), ": compute awaits (", line(command.where), ") the sum that ", line(begun->where), " has just begun, and backward stands still: ", open, "; wait once, in backward_is_over"),
                  0, begun->key.layer, "backward", begun->desc.name, command.where, page});
    return;
  }
  if (sums.ops.front() > last_backward) {
    verdict.fail(about("exposed", ops[sums.ops.front()], text("rank 0, reduce: ", sums.ops.size() == 1 ? "the all-reduce" : "all-reduces", " (", sums.where(), ") after backward's end, where nothing hides communication: ", open, "; layer 11's gradient is whole long before, in part_is_written")));
    return;
  }
  const OpIndex longest = *std::max_element(sums.ops.begin(), sums.ops.end(), [&](OpIndex a, OpIndex b) { return timing.exposed_of[a] < timing.exposed_of[b]; });
  verdict.fail(about("exposed", ops[longest], text(place_of(ops[longest]), ": ", open, ", of which ", ms(static_cast<double>(timing.exposed_of[longest])), " is the all-reduce of ", line(ops[longest].where), "; one sum of everything exposes ", ms(static_cast<double>(flat.exposed_ns)),
                                                   ", and three quarters of that are to be had: begin each sum as soon as its part is written")));
}

void judge(const labs::Request& request, labs::Verdict& verdict) {
  const Issued issued(labs::config_of(large("bucketed")), learners());
  const Sums sums = sums_of(issued);
  if (const auto waits = issued.host_waits(); !waits.empty()) {
    return verdict.fail({"host", text("rank 0: the host waits (", line(waits.front()), ") and issues nothing meanwhile; let a stream wait for the event instead: r.device.wait"), 0, -1, "", "host_wait", waits.front(), page});
  }
  if (!covers(issued, sums, verdict)) return;

  const Clock clock(issued);
  const Timing timing = clock.timing();
  const Issued own_naive(labs::config_of(large("naive")), {}), own_flat(labs::config_of(large("flat")), {}), own_buckets(labs::config_of(large("bucketed")), {});
  const Timing flat = Clock(own_flat).timing();
  const double solution = static_cast<double>(Clock(own_buckets).step_ns());
  verdict.figure("step_ms", static_cast<double>(timing.step_ns) / 1e6);
  verdict.figure("solution_step_ms", solution / 1e6);
  verdict.figure("naive_step_ms", static_cast<double>(Clock(own_naive).step_ns()) / 1e6);
  verdict.figure("flat_step_ms", static_cast<double>(flat.step_ns) / 1e6);
  verdict.figure("exposed_ms", static_cast<double>(timing.exposed_ns) / 1e6);
  verdict.figure("flat_exposed_ms", static_cast<double>(flat.exposed_ns) / 1e6);
  verdict.figure("collectives", static_cast<double>(sums.ops.size()));

  const labs::Tried tried = labs::tried_on_host(labs::config_of(small(request.seed)), learners());
  verdict.figure("norm", tried.found.norms.empty() ? 0 : tried.found.norms[0]);
  if (!orders(issued, timing, tried, verdict)) return;
  const Op& first = issued.program().ops[sums.ops.front()];
  if (!tried.right) return verdict.fail(about("numbers", first, text("rank 0: ", numbers_text(tried), "; the sums (", sums.where(), ") are not those of all replicas' gradients")));
  if (sums.ops.size() > most_collectives) {
    const double smallest = simulate::at(clock.profile().collectives.at(program::OpKind::all_reduce).at(8), 0) / 1e3;
    char each[32];
    std::snprintf(each, sizeof each, "%.1f", smallest);
    return verdict.fail(about("count", first, text("rank 0, ", program::name_of(first.key.phase), ": ", sums.ops.size(), " all-reduces (", sums.where(), "), where ", most_collectives, " are plenty: each takes ", each,
                                                   " µs however small it is, ", ms(static_cast<double>(sums.ops.size()) * smallest * 1e3), " of this step's ", ms(static_cast<double>(timing.step_ns)), "; a part's gradients lie end to end, so one sum does for all of them")));
  }
  if (static_cast<double>(timing.exposed_ns) > most_exposed * static_cast<double>(flat.exposed_ns)) return explain_exposed(issued, sums, timing, flat, verdict);
  if (static_cast<double>(timing.step_ns) > most_step * solution) {
    verdict.fail(about("step", first, text("rank 0, backward: the step takes ", ms(static_cast<double>(timing.step_ns)), " and buckets of 32 MiB give ", ms(solution), " on the same machine: fewer, larger sums pay the latency less often (r.bucket)")));
  }
}

}  // namespace
}  // namespace shardbook::lab01

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab01::judge); }
