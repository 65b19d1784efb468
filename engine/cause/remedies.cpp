#include "engine/cause/remedies.hpp"

#include <algorithm>
#include <cstdlib>

#include "engine/cause/recorded.hpp"

namespace shardbook::cause {

using base::text;
using program::OpKind;

namespace {

// All ranks that shard, or those near that keep a unit between them.
bool of_shards(std::string_view axis) { return axis == "dp_shard" || axis == "dp_shard_near"; }

constexpr const char* gathers_in_backward = "--set fsdp.backward_prefetch=pre";
constexpr const char* leave_group = "--set fsdp.reshard_group=0 ";

}  // namespace

std::string noun_of(OpKind kind) {
  std::string noun = program::name_of(kind);
  std::replace(noun.begin(), noun.end(), '_', '-');
  return noun;
}

std::string Remedies::more_sequences() const {
  // In as many micro-batches: left open, their number would grow instead of their size
  const int sequences = recorded_.number("sequences", 0);
  return sequences > 0 ? text("--sequences ", 2 * sequences, " --micro-batches ", recorded_.number("micro-batches", 1)) : "a larger batch";
}

// Where linears wait for all rows: what lets some rows cross while others are multiplied. Of small ones it would only make more.
// Where rows are not cut yet, to cut them costs as much as pieces then give, or more (experiments/switches, speed).
std::string Remedies::in_pieces(OpKind kind, Regime regime) const {
  const auto is = [&](const char* key, const char* value) { return recorded_.switch_value(key) == value; };
  if (regime != Regime::bandwidth || !is("tensor_parallel.overlap", "none")) return "";
  return is("tensor_parallel.sequence", "cut") && (kind == OpKind::all_gather || kind == OpKind::reduce_scatter) ? "--set tensor_parallel.overlap=pieces" : "";
}

// The same ranks, cut by half as much tensor parallelism.
std::string Remedies::another_cut() const {
  const int tp = recorded_.number("tp", 0), fsdp = recorded_.number("fsdp", 0);
  return tp > 1 && fsdp > 0 ? text("--tp ", tp / 2, " --fsdp ", fsdp * 2) : "";
}

std::string Remedies::earlier(OpKind kind, const std::string& axis) const {
  const int prefetch = recorded_.number("prefetch", -1);
  const bool gathers = kind == OpKind::all_gather && of_shards(axis);
  // One block ahead is of no use to a backward that gathers none ahead.
  if (gathers && recorded_.switch_value("fsdp.backward_prefetch") == "none") return gathers_in_backward;
  if (gathers && prefetch >= 0) return text("--prefetch ", prefetch + 1);
  return "issuing each one place earlier";
}

bool Remedies::is_one_place_earlier(const std::string& remedy) const {
  return remedy.starts_with("--prefetch") || remedy == gathers_in_backward;
}

bool Remedies::offloads() const {
  const std::string value = recorded_.switch_value("fsdp.offload");
  return value == "optimizer" || value == "parameters";
}

bool Remedies::is_summed_each(OpKind kind, const std::string& axis) const {
  return kind == OpKind::reduce_scatter && of_shards(axis) && recorded_.number("micro-batches", 1) > 1 && recorded_.switch_value("accumulate.reduce") != "last";
}

std::string Remedies::less_of(OpKind kind, const std::string& axis, Regime regime) const {
  const std::string other = another_cut();
  if (axis == "tp") {
    const std::string smaller = other.empty() ? "a smaller tensor-parallel group" : other, pieces = in_pieces(kind, regime);
    return pieces.empty() ? smaller : text(smaller, " or ", pieces);
  }
  if (!of_shards(axis)) return regime == Regime::latency ? "fewer, larger ones" : "";
  if (is_summed_each(kind, axis)) return "--set accumulate.reduce=last (once a step, more memory)";
  std::string remedy = more_sequences() + " (more to hide behind)";
  if (kind == OpKind::all_gather && recorded_.option("reshard") == "true") remedy += text(" or ", near() > 0 ? leave_group : "", "--reshard false (half the gathers, more memory)");
  return remedy;
}

std::string Remedies::of_ends(const std::string& axis) const {
  if (!of_shards(axis) || recorded_.number("fsdp", 1) <= 1 || recorded_.switch_value("fsdp.update") == "by_unit") return "";
  return "--set fsdp.update=by_unit (the norm's squares run beside the last sum, and the next step's first gathers beside the update)";
}

// Copy engines are the GPU's, and only of gathers.
std::string Remedies::of_contention() const {
  const bool gathers = recorded_.number("fsdp", 1) > 1 && recorded_.option("device") == "cuda";
  return gathers && recorded_.switch_value("nccl.buffers") != "windows" ? "--set nccl.buffers=windows (gathers by copy engines, which take no multiprocessors; train with it, and compare)" : "";
}

bool Remedies::sums_await_backward() const {
  if (!recorded_.info || !recorded_.info->switches.is_object()) return false;
  const auto asked = recorded_.info->switches.find("data_parallel.reduce");
  return asked != recorded_.info->switches.end() && asked->is_string() && *asked != "bucketed";
}

// In MiB; 0 where it is not recorded.
int Remedies::bucket() const { return std::atoi(recorded_.switch_value("data_parallel.bucket_mib").c_str()); }

// Ranks that keep a unit between them; 0 where that are all that shard, or it is not recorded.
int Remedies::near() const { return std::atoi(recorded_.switch_value("fsdp.reshard_group").c_str()); }

std::string Remedies::sums_in_backward() const {
  if (sums_await_backward()) return "--set data_parallel.reduce=bucketed";
  constexpr int usual = 25;   // the default of PyTorch, and of this engine
  return text("--set data_parallel.bucket_mib=", bucket() > usual ? usual : 1);
}

// What the switch excludes, it is not advised beside.
bool Remedies::could_be_graph() const {
  const auto is = [&](const char* key, const char* value) { return recorded_.switch_value(key) == value; };
  return is("host.graph", "off") && is("host.synchronize", "never") && is("fsdp.limit_all_gathers", "0") && !offloads() && recorded_.option("check-finite") != "true";
}

std::string Remedies::fewer_calls() const {
  const int micro_batches = recorded_.number("micro-batches", 1);
  std::string remedy = more_sequences() + " (more work a call)";
  if (micro_batches > 1) remedy += " or --micro-batches 1 (fewer calls)";
  if (could_be_graph()) remedy += " or --set host.graph=on (one call a step that is not traced)";
  return remedy;
}

std::string Remedies::fewer_calls_of(const std::string& axis) const {
  const int tp = recorded_.number("tp", 1), fsdp = recorded_.number("fsdp", 1);
  if (axis == "tp" && tp > 1) return text("--tp 1 --fsdp ", fsdp);   // however many cut a layer, they issue as many
  if (!of_shards(axis) || fsdp <= 1) return "";
  // Half the ranks may no longer be cut into runs of as many
  const bool is_cut = near() == 0 || (fsdp / 2 > near() && fsdp / 2 % near() == 0);
  return text(is_cut ? "" : leave_group, "--fsdp ", fsdp / 2, " --tp ", tp);
}

}  // namespace shardbook::cause
