// simulate/carry: a measured step, issued otherwise.
//
// An op that stood in the measured step keeps its time: the k-th of its key and size there is the k-th here. One that did
// not, but is of the kind and size of measured ones, takes what the one in the middle of those took (what is computed
// again, a gather in another place). What is of no measured kind and size is the profile's. Calls likewise.
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/simulate/replay.hpp"

namespace shardbook::simulate {

using base::Nanoseconds;
using program::Op;
using program::OpKind;
using program::Program;

namespace {

// What an op is, wherever it stands.
using Sort = std::tuple<std::string, program::OpKind, base::DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, base::Bytes, base::Bytes, base::Bytes, std::string>;
Sort sort_of(const Op& op, const program::Catalogue& catalogue) {
  const program::OpDesc& desc = op.desc;
  const std::string axis = desc.collective.group == program::no_group ? "" : catalogue.groups[desc.collective.group].axis;
  // Of attention older records do not say; its bytes tell sizes apart as well
  const program::GemmSize size = desc.kind == OpKind::attention ? program::GemmSize{} : desc.gemm;
  return {desc.name, desc.kind, desc.dtype, size.m, size.n, size.k, size.batch, desc.bytes_read, desc.bytes_written, desc.collective.bytes, axis};
}

// What it is, and for whom.
using Same = std::tuple<Sort, program::Phase, int, int, int, std::string>;
Same same_of(const Op& op, const program::Catalogue& catalogue) {
  return {sort_of(op, catalogue), op.key.phase, op.key.micro_batch, op.key.chunk, op.key.layer, op.key.part};
}

struct Took {
  Nanoseconds op_ns = 0, issue_ns = 0;
};

// The one in the middle, of an even count the upper.
Nanoseconds upper_middle_of(std::vector<Nanoseconds> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

int call_of(const program::Command& command, const Program& program) {
  if (command.kind != program::CommandKind::op) return static_cast<int>(command.kind);
  return 16 + static_cast<int>(program.ops[command.op].desc.kind);
}

// One rank's measured times, to be looked up.
class Measured {
 public:
  explicit Measured(const RankSteps& rank) {
    const Program& program = *rank.steps.back().program;
    const Costs& costs = *rank.steps.back().costs;
    for (std::size_t at = 0; at < program.commands.size(); ++at) {
      const program::Command& command = program.commands[at];
      calls_[call_of(command, program)].push_back(costs.issue_ns[at]);
      if (command.kind != program::CommandKind::op) continue;
      const Op& op = program.ops[command.op];
      same_[same_of(op, *rank.catalogue)].push_back({costs.op_ns[command.op], costs.issue_ns[at]});
      sorts_[sort_of(op, *rank.catalogue)].push_back(costs.op_ns[command.op]);
    }
  }
  const Took* next_same(const Op& op, const program::Catalogue& catalogue) {
    const Same key = same_of(op, catalogue);
    const auto found = same_.find(key);
    if (found == same_.end()) return nullptr;
    const std::size_t at = taken_[key]++;
    return at < found->second.size() ? &found->second[at] : nullptr;
  }
  // Less than 0: no op of the sort was measured.
  Nanoseconds of_sort(const Op& op, const program::Catalogue& catalogue) const {
    const auto found = sorts_.find(sort_of(op, catalogue));
    return found == sorts_.end() ? -1 : upper_middle_of(found->second);
  }
  Nanoseconds of_call(const program::Command& command, const Program& program) const {
    const auto found = calls_.find(call_of(command, program));
    return found == calls_.end() ? -1 : upper_middle_of(found->second);
  }
  Nanoseconds of_record() const { return of_calls(static_cast<int>(program::CommandKind::record_event)); }
  // Launching a kernel of the engine's own
  Nanoseconds of_kernel() const { return of_calls(16 + static_cast<int>(OpKind::pointwise)); }

 private:
  std::map<Same, std::vector<Took>> same_;
  std::map<Same, std::size_t> taken_;
  std::map<Sort, std::vector<Nanoseconds>> sorts_;
  Nanoseconds of_calls(int which) const {
    const auto found = calls_.find(which);
    return found == calls_.end() ? 0 : upper_middle_of(found->second);
  }
  std::map<int, std::vector<Nanoseconds>> calls_;
};

base::Result<std::shared_ptr<Costs>> carried(const RankProgram& rank, const Costs& before, Measured measured, const Costs* modelled,
                                             bool transfers_known, Kept& kept) {
  const Program& program = *rank.program;
  auto costs = std::make_shared<Costs>();
  costs->op_ns.resize(program.ops.size());
  costs->shared_part.assign(program.ops.size(), 0);
  if (modelled != nullptr) {
    costs->shared_part = modelled->shared_part;
    costs->fixed_ns = modelled->fixed_ns;
    costs->beside = modelled->beside;
    costs->fills = modelled->fills;
    costs->lets_in = modelled->lets_in;
    costs->copied = modelled->copied;
  }
  costs->step_ns = before.step_ns;
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const program::Command& command = program.commands[at];
    const Nanoseconds usual = measured.of_call(command, program);
    Nanoseconds issue_ns = usual >= 0 ? usual : modelled != nullptr ? modelled->issue_ns[at] : 0;
    if (command.kind == program::CommandKind::op) {
      const Op& op = program.ops[command.op];
      const bool known = transfers_known || program::class_of(op.desc.kind) != program::OpClass::communication;
      const Took* same = known ? measured.next_same(op, *rank.catalogue) : nullptr;
      const Nanoseconds alike = known ? measured.of_sort(op, *rank.catalogue) : -1;
      if (same == nullptr && alike < 0 && modelled == nullptr) {
        return base::Error{base::text("no op like ", op.desc.name, " (", op.where.file, ":", op.where.line, ") was measured, and there is no profile of this machine")};
      }
      costs->op_ns[command.op] = same != nullptr ? same->op_ns : alike >= 0 ? alike : modelled->op_ns[command.op];
      if (same != nullptr) issue_ns = same->issue_ns;
      ++(same != nullptr ? kept.measured : alike >= 0 ? kept.alike : kept.modelled);
    }
    costs->issue_ns.push_back(issue_ns);
  }
  return costs;
}

}  // namespace

base::Result<Replay> Replay::issued_otherwise(const std::vector<RankProgram>& ranks, const CostModel* model, const Conditions& measured_under,
                                              const Conditions& conditions, Kept& kept) const {
  SHARDBOOK_CHECK(measured_, "what is modelled needs no carrying over");
  Conditions back = measured_under;   // what the measured times hold already
  back.ideal_network = false;
  back.call_ns = -back.call_ns;
  back.kernel_ns = -back.kernel_ns;
  Replay replay;
  replay.measured_ = true;
  replay.machine_ = machine_;
  replay.speed_ = speed_;
  for (const RankProgram& rank : ranks) {
    const auto before = std::find_if(steps_.begin(), steps_.end(), [&](const RankSteps& one) { return one.rank == rank.rank; });
    if (before == steps_.end()) return base::Error{base::text("rank ", rank.rank, " was not measured")};
    const std::shared_ptr<const Costs> modelled = model != nullptr ? model->costs(*rank.program, *rank.catalogue) : nullptr;
    const Measured measured(*before);
    base::Result<std::shared_ptr<Costs>> costs = carried(rank, *before->steps.back().costs, measured, modelled.get(), !measured_under.ideal_network, kept);
    if (!costs) return costs.as_error();
    if (model != nullptr) costs.value()->power = model->powers(*rank.program, *rank.catalogue);
    const bool was_slow = measured_under.kernel_ns > 0 && measured_under.slow_rank == rank.rank;   // each launch was two
    const SmallCosts small{static_cast<double>(measured.of_record()), static_cast<double>(measured.of_kernel()) / (was_slow ? 2 : 1), static_cast<double>(costs.value()->gap_ns)};
    put_under(back, *costs.value(), *rank.program, rank.rank, small);
    put_under(conditions, *costs.value(), *rank.program, rank.rank, small);
    if (conditions.as_graph) {
      const Profile known = model != nullptr ? model->profile() : Profile{};
      issue_as_graph(*costs.value(), *rank.program, known.host, known.device);
    }
    RankSteps& added = replay.steps_.emplace_back();
    added.rank = rank.rank;
    added.catalogue = rank.catalogue;
    added.steps.push_back({rank.program, costs.value()});
    added.start_ns = before->start_ns;
  }
  const base::Result<Replayed> resolved = replay.resolve();
  if (!resolved) return resolved.as_error();
  replay.step_ns_ = resolved.value().step_ns();
  return replay;
}

}  // namespace shardbook::simulate
