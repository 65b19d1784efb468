// What checks lab 04b. Not needed to solve it.
//
// gpt-1.3b over eight ranks, in sequences of 256 tokens, so that the batch can grow in small steps. Gathers are hidden from
// the first batch on at which a tenth of their time or less lies open.
#include <cmath>
#include <cstdio>
#include <map>

#include "labs/04_fsdp/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab04 {

namespace {

using base::text;
using program::OpKind;
using program::Phase;

constexpr const char* page = "04_fsdp#04b";
constexpr double within = 0.15, open_enough = 0.10;
constexpr int sequence = 256, any_block = 12;

struct Batch {
  Block block{};          // ns, of a whole batch where it says per token
  double open = 0;        // of the gathers' time, the share beside which no compute runs
};

Batch batch_of(int tokens) {
  const labs::Issued issued(labs::config_of({{"device", "meta"}, {"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequence", std::to_string(sequence)}, {"sequences", std::to_string(8 * tokens / sequence)}, {"micro-batches", "1"}}), {});
  const labs::Clock clock(issued);
  simulate::Change alone;
  alone.scale = {.host = 0, .contention = 0};
  const labs::Timing timing = clock.timing(), device = clock.timing(alone);
  const std::vector<program::Op>& ops = issued.program().ops;
  Batch batch;
  double open = 0, all = 0;
  for (program::OpIndex op = 0; op < ops.size(); ++op) {
    const program::OpKey& key = ops[op].key;
    const OpKind kind = ops[op].desc.kind;
    const bool first = key.layer == 0 && key.phase == Phase::forward;   // nothing to hide behind
    if (kind == OpKind::all_gather && key.layer >= 0 && !first) {
      open += static_cast<double>(timing.exposed_of[op]);
      all += static_cast<double>(timing.took[op]);
    }
    if (key.layer != any_block) continue;
    const double took = static_cast<double>(device.took[op]);
    if (kind == OpKind::all_gather && key.phase == Phase::forward) batch.block.gather = took;
    else if (kind == OpKind::reduce_scatter) batch.block.reduce = took;
    else if (kind != OpKind::all_gather) (key.phase == Phase::forward ? batch.block.forward_per_token : batch.block.backward_per_token) += took / tokens;
  }
  batch.open = open / all;
  return batch;
}

std::string backward_stream(const Block& block) {
  return text("; the fsdp stream runs ", static_cast<int>(std::lround((block.gather + block.reduce) / 1e3)), " µs of work for each block in backward");
}

void judge(const labs::Request&, labs::Verdict& verdict) {
  // Collectives alone, of a batch that leaves them alone; compute of one that fills the GPU
  const Batch small = batch_of(1024), large = batch_of(4096);
  const Block block{small.block.gather, small.block.reduce, large.block.forward_per_token, large.block.backward_per_token};
  const double given = tokens_to_hide(block);
  verdict.figure("gather_us", block.gather / 1e3);
  verdict.figure("reduce_us", block.reduce / 1e3);
  verdict.figure("gather_and_reduce_us", (block.gather + block.reduce) / 1e3);
  verdict.figure("forward_us_1024", block.forward_per_token * 1024 / 1e3);
  verdict.figure("backward_us_1024", block.backward_per_token * 1024 / 1e3);
  verdict.figure("predicted_tokens", given);
  verdict.figure("open_percent_1024", 100 * small.open);
  verdict.figure("open_percent_4096", 100 * large.open);

  int found = 2048;
  double before = 1, at = 0;
  for (; found < 4096; found += sequence) {
    at = batch_of(found).open;
    if (at <= open_enough) break;
    before = at;
  }
  verdict.figure("found_tokens", found);
  verdict.figure("open_percent_before", 100 * before);
  verdict.figure("open_percent_at", 100 * at);
  if (std::abs(given - found) <= within * found) {
    // A number that was copied knows nothing of the block
    const Block faster{block.gather, block.reduce, block.forward_per_token / 2, block.backward_per_token / 2};
    const double twice = tokens_to_hide(faster);
    if (std::abs(twice - 2 * given) > 0.01 * given) {
      char copied[160];
      std::snprintf(copied, sizeof copied, "of a GPU that computes twice as fast you predict %.0f tokens, and %.0f of this one: it needs twice as many; compute them from what the block costs", twice, given);
      verdict.fail({"copied", copied, -1, -1, "backward", "all_gather", {}, page});
      return;
    }
    // Where forward has more time, backward is as tight as before
    const Block slower_forward{block.gather, block.reduce, 2 * block.forward_per_token, block.backward_per_token};
    const double lent = tokens_to_hide(slower_forward);
    if (std::abs(lent - given) > 0.01 * given) {
      char moved[200];
      std::snprintf(moved, sizeof moved, "where a block's forward takes twice as long you predict %.0f tokens, and %.0f where it does not", lent, given);
      verdict.fail({"prediction", text(moved, ": forward has time to spare, and cannot lend it to backward", backward_stream(block)), -1, -1, "backward", "all_gather", {}, page});
    }
    return;
  }

  const auto close = [given](double other) { return std::abs(given - other) < 0.05 * other; };
  char shown[128];
  std::snprintf(shown, sizeof shown, "you predict %.0f tokens a GPU, and %.0f %% of the gathers lie open at %d, %.0f %% at %d", given, 100 * before, found - sequence, 100 * at, found);
  const std::string both = backward_stream(block);
  std::string why = "compare what the fsdp stream has to run with what compute has, for one block, in each phase";
  if (close(block.gather / block.forward_per_token)) why = "that is where gathers hide in forward; in backward each has a reduction in its queue" + both;
  if (close(block.gather / block.backward_per_token)) why = "that is where a gather alone fits into backward; the block's reduction stands in the same queue" + both;
  if (close((block.gather + block.reduce) / block.forward_per_token)) why = "the reduction runs in backward, where compute takes twice as long as in forward" + both;
  verdict.fail({"prediction", text("in backward ", shown, ": ", why), -1, -1, "backward", "all_gather", {}, page});
}

}  // namespace
}  // namespace shardbook::lab04

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab04::judge); }
