// workbook/trace_predicates: what each lab asks; see trace_predicates.hpp.
#include "engine/workbook/trace_predicates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "engine/cause/recorded.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;
using timeline::CollectiveOp;

namespace {

// A sum of less is mostly its start: lab 00's line over two GPUs needs about this for half of its bandwidth.
constexpr Bytes small_bytes = 1 << 20;
// DDP's first bucket is small on purpose, and a step may sum its loss and a norm.
constexpr std::size_t small_sums_allowed = 4;
// Lab 01's own: the last bucket never hides.
constexpr double sums_open_allowed = 0.75;
// A sum of an input gradient fits beside its weight gradient where the model is wide; a quarter allows for the edges.
constexpr double input_gradient_sums_open_allowed = 0.25;
// Lab 04's own rule of when gathers hide.
constexpr double gathers_open_allowed = 0.10;
// The first unit's gather and the first block's have nothing beside them.
constexpr std::size_t gathers_that_open_a_step = 2;
// FSDP2 keeps the root whole after forward, and one may keep the last block.
constexpr std::size_t units_kept_allowed = 2;

std::string percent(double share) { return text(std::lround(100 * share), " %"); }
double share_of(Nanoseconds part, Nanoseconds whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }
std::string counted(std::size_t count, const std::string& noun) { return text(count, " ", noun, count == 1 ? "" : "s"); }

std::string size_text(Bytes bytes) {
  char out[32];
  const double size = static_cast<double>(bytes);
  if (bytes == 0) return "nothing";
  if (size >= 1e9) std::snprintf(out, sizeof out, "%.1f GB", size / 1e9);
  else std::snprintf(out, sizeof out, "%.0f MB", size / 1e6);
  return out;
}

bool is(const Call& call, CollectiveOp op) { return call.op == op; }
using Which = std::function<bool(const Call&)>;
std::vector<const Call*> calls_of(const RankStep& rank, const Which& which) {
  std::vector<const Call*> all;
  for (const Call& call : rank.calls) {
    if (which(call)) all.push_back(&call);
  }
  return all;
}
std::vector<const Call*> calls_of(const RankStep& rank, CollectiveOp op) {
  return calls_of(rank, [op](const Call& call) { return call.op == op; });
}

// Some calls of all ranks and steps: how long they moved data, how much of it lay open, and the longest of these.
struct Open {
  Nanoseconds moved = 0, exposed = 0, late = 0;     // late: of exposed, where the host had issued it too late
  const Call* worst = nullptr;
  const RankStep* rank = nullptr;
  const TracedStep* step = nullptr;

  void add(const TracedStep& of_step, const RankStep& of_rank, const Call& call) {
    moved += call.moved.length();
    exposed += call.exposed;
    if (call.host_late) late += call.exposed;
    if (worst != nullptr && call.exposed <= worst->exposed) return;
    worst = &call;
    rank = &of_rank;
    step = &of_step;
  }
  double share() const { return share_of(exposed, moved); }
  bool for_the_host() const { return 2 * late > exposed; }
};
constexpr const char* host_is_late = "The host is late: the GPUs do most of these as soon as they are issued, so their order changes nothing. A larger batch or model, or fewer calls (torch.compile).";

class Judge {
 public:
  Judge(const OwnTrace& trace, const cause::Why& why) : trace_(trace), why_(why), last_(trace.steps.back()), first_rank_(last_.ranks.front()) {}

  TraceVerdict verdict;

  // Each returns whether what comes after it can be asked at all.
  bool same_calls() {
    Predicate& one = add("same_calls", "All ranks make the same calls", "one order", "");
    one.page = "notes/words.md";
    for (const TracedStep& step : trace_.steps) {
      if (step.disagreement.empty() || !one.found.empty()) continue;
      one.found = "in step " + text(step.number) + " they differ: " + step.disagreement;
      one.why = "Ranks that call differently hang or sum what does not belong together.";
    }
    one.holds = one.found.empty();
    if (one.holds) one.found = text(first_rank_.calls.size(), " a step");
    return one.holds;
  }

  // ---- Lab 01 -------------------------------------------------------------------------------------

  bool few_small_sums() {
    Predicate& one = add("small_sums", "Sums are large", text("at most ", small_sums_allowed, " of less than 1 MiB a step"), "01a");
    const std::vector<const Call*> sums = calls_of(first_rank_, CollectiveOp::all_reduce);
    const std::vector<const Call*> small = calls_of(first_rank_, [](const Call& call) { return is(call, CollectiveOp::all_reduce) && call.bytes < small_bytes; });
    one.found = sums.empty() ? "no sum" : text(small.size(), " of ", sums.size(), " are of less than 1 MiB");
    one.holds = !sums.empty() && small.size() <= small_sums_allowed;
    verdict.figures["sums"] = static_cast<double>(sums.size());
    verdict.figures["small_sums"] = static_cast<double>(small.size());
    if (sums.empty()) {
      one.why = "No all-reduce stands in a step. Gradients that are reduced and scattered are part b's: check 01b.";
    } else if (!one.holds) {
      one.why = "Each costs its start, whatever it moves. Put gradients end to end and sum them in buckets, as DDP does.";
      one.place = place(last_, first_rank_, *small.front());
    }
    return !sums.empty();
  }

  void sums_beside_backward() {
    Open open;
    each_rank([&](const TracedStep& step, const RankStep& rank) {
      for (const Call* call : calls_of(rank, CollectiveOp::all_reduce)) open.add(step, rank, *call);
    });
    Predicate& one = add_open("open_sums", "Sums run beside backward", open, sums_open_allowed, "01a");
    if (open.worst == nullptr || one.holds) return;
    const Nanoseconds behind = open.worst->began - backward_end(*open.rank);
    if (open.for_the_host()) one.why = host_is_late;
    else if (behind >= 0 && !open.worst->backward) one.why = "It was issued when backward was over. A bucket's gradients are complete long before: sum it then, on a stream of its own.";
    else one.why = "The sums are issued in backward and take longer than what is left of it: a larger batch, or smaller buckets at the end.";
  }

  void sharded_by_hand() {
    const auto bytes_of = [&](CollectiveOp op) {
      Bytes sum = 0;
      for (const Call* call : calls_of(first_rank_, op)) sum += call->bytes;
      return sum;
    };
    const Bytes summed = bytes_of(CollectiveOp::all_reduce), reduced = bytes_of(CollectiveOp::reduce_scatter), gathered = bytes_of(CollectiveOp::all_gather);
    Predicate& scattered = add("scattered", "Each rank gets the sum of its part", "a reduce-scatter, and no all-reduce of gradients", "01b");
    scattered.found = text(size_text(reduced), " reduced and scattered, ", size_text(summed), " all-reduced");
    scattered.holds = reduced > 0 && summed <= reduced / 100;
    if (!scattered.holds) scattered.why = "Every GPU gets the sum of everything, and updates all of it. reduce_scatter_tensor gives each its part, for half the bytes.";
    Predicate& halved = add("gathered", "Parameters are gathered in bf16", "about half of the gradients' bytes", "01b");
    halved.found = reduced == 0 ? text(size_text(gathered), " gathered") : text(percent(static_cast<double>(gathered) / static_cast<double>(reduced)), ": ", size_text(gathered), " for ", size_text(reduced));
    halved.holds = reduced > 0 && gathered >= reduced * 2 / 5 && gathered <= reduced * 3 / 5;
    if (!halved.holds) halved.why = gathered == 0 ? "Nobody learns what the others have updated." : "Compute reads the parameters in bf16, so that is what has to travel; the f32 copy stays with its owner.";
  }

  // ---- Lab 02 -------------------------------------------------------------------------------------

  // The sums of one size that a step has most of: those of the activations.
  Bytes usual_bytes() const {
    std::map<Bytes, int> count;
    for (const Call* call : calls_of(first_rank_, CollectiveOp::all_reduce)) ++count[call->bytes];
    const auto most = std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == count.end() ? 0 : most->first;
  }

  bool sums_both_ways() {
    const Bytes bytes = usual_bytes();
    std::size_t forward = 0, backward = 0;
    const Call* some = nullptr;
    for (const Call* call : calls_of(first_rank_, CollectiveOp::all_reduce)) {
      if (call->bytes != bytes) continue;
      (call->backward ? backward : forward)++;
      some = call;
    }
    Predicate& one = add("both_ways", "Backward has as many sums as forward", text(forward, " in backward"), "02a");
    one.found = text(forward, " in forward, ", backward, " in backward");
    one.holds = forward > 0 && forward == backward;
    verdict.figures["sums_forward"] = static_cast<double>(forward);
    verdict.figures["sums_backward"] = static_cast<double>(backward);
    if (one.holds) return true;
    if (forward == 0) one.expected = "some in forward";
    one.why = forward == 0 ? "No linear with cut inputs is summed: what it gives is a rank's summand."
              : backward < forward ? "The input gradient of a linear with cut outputs is each rank's summand: without its sum the loss looks right and the gradients are not."
                                   : "Backward sums what is whole already: the gradient of a sum needs none.";
    if (some != nullptr) one.place = place(last_, first_rank_, *some);
    one.page = "notes/03_tensor_parallel.md#conjugates";
    return backward > 0;
  }

  void backward_sums_hide() {
    const Bytes bytes = usual_bytes();
    Open open;
    std::size_t sums = 0, overtaken = 0;
    each_rank([&](const TracedStep& step, const RankStep& rank) {
      for (const Call* call : calls_of(rank, CollectiveOp::all_reduce)) {
        if (call->bytes != bytes || !call->backward) continue;
        open.add(step, rank, *call);
        ++sums;
        overtaken += std::any_of(rank.kernels.begin(), rank.kernels.end(), [&](const Kernel& kernel) { return kernel.issued > call->issued && kernel.time.start < call->began; });
      }
    });
    Predicate& one = add_open("open_input_gradients", "Backward's sums run beside the weight gradients", open, input_gradient_sums_open_allowed, "02a");
    one.page = "notes/03_tensor_parallel.md#behind";
    verdict.figures["overtaken_sums"] = static_cast<double>(overtaken);
    if (one.holds || sums == 0) return;
    if (open.for_the_host()) one.why = host_is_late;
    else if (2 * overtaken >= sums) one.why = text(overtaken, " of ", sums, " were issued before the weight gradient and began after it: that had the whole GPU first. CUDA_DEVICE_MAX_CONNECTIONS=1 keeps the order of issue.");
    else one.why = "Each is awaited before the weight gradient, which does not need it: all_reduce(dx, async_op=True), then the weight gradient, then wait().";
  }

  void bound_by_host(bool expected) {
    Nanoseconds host = 0;
    for (const cause::Share& share : why_.shares) host += share.regime == cause::Regime::host ? share.path_ns : 0;
    const std::string page = expected ? "02b" : "02c";
    Predicate& one = add("regime", expected ? "The host bounds the step" : "The GPUs bound the step, and not the host", expected ? "host-bound" : "not host-bound", page);
    const bool host_bound = why_.regime == cause::Regime::host;
    one.found = text(cause::adjective_of(why_.regime), ", the host has ", percent(share_of(host, why_.step_ns)), " of the path");
    one.holds = host_bound == expected;
    verdict.figures["host_percent"] = 100 * share_of(host, why_.step_ns);
    if (!one.holds) {
      one.why = expected ? "This model is wide enough that the GPUs have more to do than the host has to issue: part c's. Part b's is --width 128."
                         : "The GPUs wait for calls: a wider model, a larger batch, or torch.compile(mode=\"reduce-overhead\").";
    }
  }

  // ---- Lab 04 -------------------------------------------------------------------------------------

  bool gathered_twice() {
    const std::size_t reductions = calls_of(first_rank_, CollectiveOp::reduce_scatter).size();
    const std::vector<const Call*> gathers = calls_of(first_rank_, CollectiveOp::all_gather);
    const std::size_t backward = count_backward(gathers), forward = gathers.size() - backward;
    Predicate& one = add("gathers", "Each block is gathered for forward, and again for backward", "", "04a");
    const std::size_t least = reductions > units_kept_allowed ? reductions - units_kept_allowed : 1;
    one.expected = reductions < 3 ? "a unit a block" : text(reductions, " in forward and ", least, " to ", reductions, " in backward for ", counted(reductions, "reduction"));
    one.found = text(forward, " in forward, ", backward, " in backward, ", counted(reductions, "reduction"), " a step");
    one.holds = reductions >= 3 && forward == reductions && backward >= least && backward <= reductions;
    verdict.figures["gathers_forward"] = static_cast<double>(forward);
    verdict.figures["gathers_backward"] = static_cast<double>(backward);
    verdict.figures["reductions"] = static_cast<double>(reductions);
    if (one.holds) return true;
    if (reductions < 3) one.why = "The model is one unit or none, so nothing can be gathered while something else computes: fully_shard each block, then the model.";
    else if (backward < least) one.why = "Blocks stay whole after forward, so the model has to fit in one GPU: reshard_after_forward=True frees each.";
    else one.why = "A unit is gathered more often than it is used: each micro-batch gathers anew, and so does what is computed again.";
    one.page = "notes/04_fsdp.md#memory";
    return false;
  }

  void no_wait_of_the_host() {
    // The rank and step with most
    const RankStep* rank_of = &first_rank_;
    const TracedStep* step_of = &last_;
    each_rank([&](const TracedStep& step, const RankStep& rank) {
      if (rank.waits.size() <= rank_of->waits.size()) return;
      rank_of = &rank;
      step_of = &step;
    });
    const std::vector<HostWait>& waits = rank_of->waits;
    Predicate& one = add("host_waits", "The host runs ahead", "no wait for the device between the first call of a step and the last", "04c");
    one.holds = waits.empty();
    one.found = one.holds ? "it waits for nothing" : counted(waits.size(), "wait") + text(" in step ", step_of->number, " of rank ", rank_of->rank);
    verdict.figures["host_waits"] = static_cast<double>(waits.size());
    if (one.holds) return;

    // What they held back: the first gather that was issued after each
    Nanoseconds held = 0;
    std::size_t gathers = 0;
    const std::vector<Call>& calls = rank_of->calls;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      const Call* next = nullptr;
      for (const Call& call : calls) {
        const bool behind = is(call, CollectiveOp::all_gather) && call.issued >= waits[i].time.end && (i + 1 == waits.size() || call.issued < waits[i + 1].time.start);
        if (behind && (next == nullptr || call.issued < next->issued)) next = &call;
      }
      if (next == nullptr) continue;
      held += next->exposed;
      ++gathers;
    }
    one.why = text("What is issued behind a wait begins when the device has nothing left to do: ", counted(gathers, "gather"), ", open for ", metrics::duration_text(held), " of that step. ",
                   "torch.cuda.set_sync_debug_mode(\"warn\") names the line.");
    const HostWait& longest = *std::max_element(waits.begin(), waits.end(), [](const HostWait& a, const HostWait& b) { return a.time.length() < b.time.length(); });
    one.place = text(where(*step_of, *rank_of), " · ", std::string(trace_.timeline.label(longest.span)), longest.inside.empty() ? "" : " in " + longest.inside, ", for ", metrics::duration_text(longest.time.length()));
  }

  void gathered_ahead_in_backward() {
    std::size_t wanted = 0, ahead = 0;
    Nanoseconds open = 0;
    const Call* first_behind = nullptr;
    const RankStep* rank_of = nullptr;
    const TracedStep* step_of = nullptr;
    each_rank([&](const TracedStep& step, const RankStep& rank) {
      const std::vector<const Call*> reductions = calls_of(rank, CollectiveOp::reduce_scatter);
      const std::vector<const Call*> gathers = calls_of(rank, [](const Call& call) { return is(call, CollectiveOp::all_gather) && call.backward; });
      // Blocks are reduced last to first, then the root. Those that stay whole are the last ones.
      const std::size_t blocks = reductions.empty() ? 0 : reductions.size() - 1, whole = blocks > gathers.size() ? blocks - gathers.size() : 0;
      for (std::size_t j = 0; j < gathers.size(); ++j) {
        if (j + whole == 0 || j + whole - 1 >= reductions.size()) continue;
        ++wanted;
        if (gathers[j]->began < reductions[j + whole - 1]->began) {
          ++ahead;
          continue;
        }
        open += gathers[j]->exposed;
        if (first_behind != nullptr) continue;
        first_behind = gathers[j];
        rank_of = &rank;
        step_of = &step;
      }
    });
    const std::size_t times = trace_.steps.size() * last_.ranks.size();
    Predicate& one = add("prefetch", "Backward gathers each block ahead of the reduction of the block before", text(wanted / times, " a step"), "04a");
    one.found = text(ahead / times, " of ", wanted / times, " a step");
    one.holds = wanted > 0 && ahead == wanted;
    verdict.figures["gathers_ahead"] = static_cast<double>(ahead) / static_cast<double>(times);
    if (one.holds) return;
    one.page = "notes/04_fsdp.md#issued";
    one.why = text("Calls of one group run in the order of issue, so each of these gathers stands behind a reduction that it does not need; they lie open for ", metrics::duration_text(open / static_cast<Nanoseconds>(times)),
                   " a step. FSDP2 gathers ahead unless told not to; FSDP1: BackwardPrefetch.BACKWARD_PRE.");
    one.place = place(*step_of, *rank_of, *first_behind);
  }

  void gathers_hide() {
    Open open;
    each_rank([&](const TracedStep& step, const RankStep& rank) {
      const std::vector<const Call*> gathers = calls_of(rank, CollectiveOp::all_gather);
      for (std::size_t i = gathers_that_open_a_step; i < gathers.size(); ++i) open.add(step, rank, *gathers[i]);
    });
    Predicate& one = add_open("open_gathers", "Gathers run beside compute", open, gathers_open_allowed, "04b");
    if (open.worst == nullptr) one.why = "No gather but those that open a step.";
    if (one.holds || open.worst == nullptr) return;
    // Before this one failed, a reason may have been found
    const auto failed = [&](const std::string& rule) {
      return std::any_of(verdict.predicates.begin(), verdict.predicates.end(), [&](const Predicate& other) { return other.rule == rule && !other.holds; });
    };
    one.why = failed("host_waits") ? "The host's waits are why: see above." : failed("prefetch") ? "Their place in the queue is why: see above."
              : open.for_the_host() ? host_is_late
              : "Too little compute stands beside a gather, where its order is right (04a): more tokens a GPU, or some blocks kept whole.";
    one.page = "notes/04_fsdp.md#hides";
  }

 private:
  Predicate& add(const std::string& rule, const std::string& title, const std::string& expected, const std::string& part) {
    static const std::map<std::string, std::string> folders = {{"01", "01_data_parallel"}, {"02", "02_tensor_parallel"}, {"04", "04_fsdp"}};
    const auto folder = folders.find(part.substr(0, 2));
    verdict.predicates.push_back({rule, title, expected, "", false, "", "", folder == folders.end() ? "" : "labs/" + folder->second + "/text.md#" + part});
    return verdict.predicates.back();
  }

  Predicate& add_open(const std::string& rule, const std::string& title, const Open& open, double allowed, const std::string& part) {
    Predicate& one = add(rule, title, text("at most ", percent(allowed), " of their time open"), part);
    one.holds = open.worst != nullptr && open.share() <= allowed;
    const auto times = static_cast<Nanoseconds>(trace_.steps.size() * last_.ranks.size());
    one.found = open.worst == nullptr ? "none" : text(percent(open.share()), " open, ", metrics::duration_text(open.exposed / times), " of ", metrics::duration_text(open.moved / times), " a step");
    verdict.figures[rule + "_percent"] = 100 * open.share();
    if (!one.holds && open.worst != nullptr) one.place = place(*open.step, *open.rank, *open.worst);
    return one;
  }

  void each_rank(const std::function<void(const TracedStep&, const RankStep&)>& visit) const {
    for (const TracedStep& step : trace_.steps) {
      for (const RankStep& rank : step.ranks) visit(step, rank);
    }
  }
  static std::size_t count_backward(const std::vector<const Call*>& calls) {
    return static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), [](const Call* call) { return call->backward; }));
  }
  static Nanoseconds backward_end(const RankStep& rank) {
    Nanoseconds end = rank.window.start;
    for (const Kernel& kernel : rank.kernels) {
      if (kernel.backward) end = std::max(end, kernel.time.end);
    }
    return end;
  }
  static std::string where(const TracedStep& step, const RankStep& rank) { return text("rank ", rank.rank, " · step ", step.number); }
  std::string place(const TracedStep& step, const RankStep& rank, const Call& call) const {
    return text(where(step, rank), " · ", metrics::kind_name(trace_.timeline, call.span), call.unit.empty() ? "" : " of " + call.unit, ", ", metrics::duration_text(call.began - rank.window.start), " into it");
  }

  const OwnTrace& trace_;
  const cause::Why& why_;
  const TracedStep& last_;
  const RankStep& first_rank_;             // of the last step
};

}  // namespace

bool TraceVerdict::passed() const {
  return std::all_of(predicates.begin(), predicates.end(), [](const Predicate& one) { return one.holds; });
}

const std::vector<std::string>& traced_parts() {
  static const std::vector<std::string> all = {"01", "01a", "01b", "02", "02a", "02b", "02c", "04", "04a", "04b", "04c"};
  return all;
}

base::Result<TraceVerdict> judge_trace(const OwnTrace& trace, const std::string& part) {
  const std::vector<std::string>& parts = traced_parts();
  if (std::find(parts.begin(), parts.end(), part) == parts.end()) return Error{text("nothing is asked of traces of ", part, ": labs 01, 02 and 04 and their parts have a script for PyTorch")};
  const base::Result<cause::Why> why = cause::why_of(trace.timeline, {});
  if (!why) return why.as_error();
  Judge judge(trace, why.value());
  const auto asks = [&part](std::initializer_list<const char*> of) { return std::any_of(of.begin(), of.end(), [&](const char* one) { return part == one; }); };
  if (judge.same_calls()) {
    if (asks({"01", "01a"}) && judge.few_small_sums()) judge.sums_beside_backward();
    if (asks({"01b"})) judge.sharded_by_hand();
    if (asks({"02", "02a"}) && judge.sums_both_ways()) judge.backward_sums_hide();
    if (asks({"02b", "02c"})) judge.bound_by_host(part == "02b");
    const bool ordered = asks({"04", "04a"}) && judge.gathered_twice();
    if (asks({"04", "04a", "04c"})) judge.no_wait_of_the_host();
    if (ordered) judge.gathered_ahead_in_backward();
    if (asks({"04b"}) || (asks({"04"}) && ordered)) judge.gathers_hide();
  }
  judge.verdict.shares = shares_text(trace);
  judge.verdict.untold = "A trace does not tell whether a wait is missing: compare losses and gradients for that.";
  return std::move(judge.verdict);
}

}  // namespace shardbook::workbook
