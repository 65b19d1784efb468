// What checks lab 02a. Not needed to solve it.
//
// The learner's five functions stand in the place of tensor_parallel's linears, in gpt-124m over two ranks (on no device)
// and in the tutor (with numbers). Judged in order: does the host wait; are the sums where they must be, and nowhere else;
// may anything be read too early, over two steps; are the numbers the engine's under three drain seeds; is the step as short.
#include <cmath>
#include <cstdio>
#include <memory>

#include "engine/tensor_parallel/linear.hpp"
#include "labs/02_tensor_parallel/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab02 {

namespace {

model::LinearWeights& weights_of(const Cut& cut) { return *static_cast<model::LinearWeights*>(cut.weights); }

}  // namespace

void Cut::forward(const Tensor& x, const Tensor& y, Where where) { weights_of(*this).forward(device::Lane(compute, where), x, y); }
void Cut::input_gradient(const Tensor& dy, const Tensor& dx, Where where) { weights_of(*this).input_gradient(device::Lane(compute, where), dy, dx); }

namespace {

using base::text;
using labs::Issued;
using labs::line;
using labs::ms;
using labs::Numbers;
using model::Context;
using model::LinearConfig;
using program::Command;
using program::CommandKind;
using program::Op;
using program::OpIndex;
using program::Phase;

constexpr const char* page = "02_tensor_parallel#02a";
constexpr double most_step = 1.015;   // of the engine's own

bool cuts_inputs(model::LinearRole role) { return role == model::LinearRole::projection || role == model::LinearRole::down; }

// A linear whose sums are the learner's.
class ByHand final : public model::Linear {
 public:
  ByHand(device::Device& device, tensor_parallel::TensorParallelGroup group, const LinearConfig& config)
      : device_(device), group_(group), config_(config), row_(cuts_inputs(config.role)),
        weights_(config, tensor_parallel::linear_cut(group, row_ ? model::LinearCut::Dim::inputs : model::LinearCut::Dim::outputs)),
        produced_(device.create_event(config.name + ".produced")), summed_(device.create_event(config.name + ".summed")) {}
  std::int64_t inputs() const override { return weights_.inputs(); }
  std::int64_t outputs() const override { return weights_.outputs(); }
  void forward(model::Call ctx, const Tensor& x, const Tensor& y, const model::Epilogue& epilogue) override {
    model::refuse(epilogue);
    call(ctx, row_ ? row_forward : column_forward, x, y);
  }
  void input_gradient(model::Call ctx, const Tensor& dy, const Tensor& dx, const model::Epilogue& epilogue) override {
    model::refuse(epilogue);
    call(ctx, row_ ? row_input_gradient : column_input_gradient, dy, dx);
  }
  void await_input_gradient(Context& ctx) override {
    if (row_) return;
    Cut cut = cut_of(ctx);
    column_await(cut);
  }
  void weight_gradient(model::Call ctx, const Tensor& x, const Tensor& dy) override { weights_.weight_gradient(ctx.compute, x, dy, ctx.scratch); }
  model::Parameter* late_bias() override { return weights_.late_bias() ? weights_.bias() : nullptr; }
  std::vector<model::Parameter*> parameters() override { return weights_.parameters(); }

 private:
  Cut cut_of(Context& ctx) { return {device_, ctx.compute, group_.stream, group_.communicator, produced_, summed_, &weights_}; }
  void call(Context& ctx, void (*of)(Cut&, const Tensor&, const Tensor&), const Tensor& in, const Tensor& out) {
    program::Part part(device_.recorder(), model::name_of(config_.role));
    Cut cut = cut_of(ctx);
    of(cut, in, out);
  }

  device::Device& device_;
  tensor_parallel::TensorParallelGroup group_;
  LinearConfig config_;
  bool row_;
  model::LinearWeights weights_;
  device::Event produced_, summed_;
};

labs::Written learners() {
  labs::Written written;
  written.instead.pieces = [](const model::ModelSpec& parallel, device::Device& device, tensor_parallel::TensorParallelGroup group) {
    model::ModelSpec spec = parallel;
    spec.linear = [&device, group](const LinearConfig& config) { return std::make_unique<ByHand>(device, group, config); };
    return spec;
  };
  return written;
}

labs::Options large() { return {{"device", "meta"}, {"model", "gpt-124m"}, {"tp", "2"}, {"sequences", "8"}}; }

std::string place_of(const Op& op) {
  return text("rank 0, ", op.key.layer >= 0 ? text("layer ", op.key.layer) : std::string("head"), ", ", program::name_of(op.key.phase));
}

labs::Finding about(const char* rule, const Op& op, std::string message, program::SourceLine where) {
  return {rule, std::move(message), 0, op.key.layer, program::name_of(op.key.phase), op.desc.name, where, page};
}

std::string numbers_text(const labs::Tried& tried) {
  if (tried.right) return "on the tutor the numbers came out right, by luck";
  if (!tried.found.error.empty()) return tried.found.error;
  char shown[128];
  const double loss = tried.found.losses[0], right_loss = tried.expected.losses[0], norm = tried.found.norms[0], right_norm = tried.expected.norms[0];
  if (std::abs(loss - right_loss) > 1e-5 * right_loss) std::snprintf(shown, sizeof shown, "on the tutor, first loss %.5f for %.5f", loss, right_loss);
  else if (std::abs(norm - right_norm) > 1e-5 * right_norm) std::snprintf(shown, sizeof shown, "on the tutor, norm %.4g for %.4g, though the first loss is right", norm, right_norm);
  else std::snprintf(shown, sizeof shown, "on the tutor, second loss %.5f for %.5f, though the first step is right", tried.found.losses[1], tried.expected.losses[1]);
  return text(shown, tried.seed == 0 ? "" : text(" (drain seed ", tried.seed, ")"));
}

// The sums of one linear in one phase: how many must there be?
struct Linear {
  OpIndex matmul = 0;
  std::vector<OpIndex> sums;
  bool needs_sum = false;
};
bool is_row(std::string_view part) { return part == "projection" || part == "down"; }

// All linears in both directions, in the order of issue.
std::vector<Linear> linears_of(const Issued& issued) {
  std::vector<Linear> all;
  const std::vector<Op>& ops = issued.program().ops;
  for (OpIndex op = 0; op < ops.size(); ++op) {
    if (!labs::is_learners(ops[op].where)) continue;
    const bool is_sum = program::class_of(ops[op].desc.kind) == program::OpClass::communication;
    if (is_sum && !all.empty()) all.back().sums.push_back(op);
    if (ops[op].desc.kind == program::OpKind::gemm) all.push_back({op, {}, is_row(ops[op].key.part) == (ops[op].key.phase == Phase::forward)});
  }
  return all;
}

bool sums_are_right(const Issued& issued, const labs::Tried& tried, labs::Verdict& verdict) {
  const std::vector<Op>& ops = issued.program().ops;
  for (const Linear& linear : linears_of(issued)) {
    const Op& matmul = ops[linear.matmul];
    const bool forward = matmul.key.phase == Phase::forward;
    const std::string part = matmul.key.part;
    if (linear.needs_sum && linear.sums.empty()) {
      const std::string what = forward ? text(part, "'s y (", line(matmul.where), ") is a summand, and what follows needs the sum") : text("dx of ", part, " (", line(matmul.where), ") is this rank's summand only");
      verdict.fail(about("sums", matmul, text(place_of(matmul), ": ", what, ": ", numbers_text(tried)), matmul.where));
      return false;
    }
    const std::size_t wanted = linear.needs_sum ? 1 : 0;
    if (linear.sums.size() <= wanted) continue;
    const Op& sum = ops[linear.sums[wanted]];
    const std::string what = linear.needs_sum ? text(part, " is summed more than once") : forward ? text(part, "'s y is cut: the all-reduce (", line(sum.where), ") adds up other columns of it") : text(part, " sums gradients that are whole already (", line(sum.where), ")");
    verdict.fail(about("sums", sum, text(place_of(sum), ": ", what, ": ", numbers_text(tried)), sum.where));
    return false;
  }
  return true;
}

bool orders(const Issued& issued, const labs::Tried& tried, labs::Verdict& verdict) {
  const std::vector<check::Race> races = issued.races();
  if (races.empty()) return true;
  const check::Race& race = races.front();
  const Op& first = issued.op_of(race.first);
  const Op& second = issued.op_of(race.second);
  const bool sum_is_second = program::class_of(second.desc.kind) == program::OpClass::communication;
  const Op& sum = sum_is_second ? second : first;
  const Op& other = sum_is_second ? first : second;
  const std::string what = sum_is_second ? text("the all-reduce of ", sum.key.part, " (", line(sum.where), ") may read what ", other.desc.name, " on compute still writes; record c.produced on compute, and let c.tp wait for it")
                                         : text(other.desc.name, " may ", race.second_writes ? "write" : "read", " what the all-reduce of ", sum.key.part, " (", line(sum.where), ") still writes; compute must wait for c.summed");
  verdict.fail(about("race", sum, text(place_of(sum), ": ", what, "; ", numbers_text(tried)), sum.where));
  return false;
}

// A wait of compute's, by the learner's line, that stands between a sum of backward and the weight gradient beside it.
const Command* awaited_at_once(const Issued& issued) {
  const std::vector<Op>& ops = issued.program().ops;
  bool begun = false;
  for (const Command& command : issued.program().commands) {
    if (command.kind == CommandKind::op) {
      const Op& op = ops[command.op];
      begun = op.key.phase == Phase::backward && labs::is_learners(op.where) && program::class_of(op.desc.kind) == program::OpClass::communication;
    }
    const bool waits = command.kind == CommandKind::wait_event && labs::is_learners(command.where) && issued.catalogue().streams[command.stream].name == "compute";
    if (begun && waits) return &command;
  }
  return nullptr;
}

double sums_of_block(const Issued& issued, int block) {
  double sums = 0;
  for (OpIndex op : issued.collectives()) sums += issued.program().ops[op].key.layer == block;
  return sums;
}

void judge(const labs::Request& request, labs::Verdict& verdict) {
  const config::RunConfig config = labs::config_of(large());
  labs::Options at_once = large();
  at_once.push_back({"set", "tensor_parallel.input_gradient_sum=awaited"});
  const Issued issued(config, learners()), own(config, {}), awaited(labs::config_of(at_once), {});
  const labs::Timing timing = labs::Clock(issued).timing();
  const labs::Timing solution = labs::Clock(own).timing();
  const labs::Tried tried = labs::tried_on_host(labs::config_of({{"device", "host"}, {"tp", "2"}, {"sequences", "4"}, {"seed", std::to_string(request.seed)}}), learners());
  verdict.figure("step_ms", static_cast<double>(timing.step_ns) / 1e6);
  verdict.figure("solution_step_ms", static_cast<double>(solution.step_ns) / 1e6);
  verdict.figure("awaited_step_ms", static_cast<double>(labs::Clock(awaited).step_ns()) / 1e6);
  verdict.figure("sums_a_block", sums_of_block(own, 0));
  verdict.figure("exposed_ms", static_cast<double>(timing.exposed_ns) / 1e6);
  verdict.figure("loss", tried.found.losses.empty() ? 0 : tried.found.losses[0]);
  verdict.figure("norm", tried.found.norms.empty() ? 0 : tried.found.norms[0]);
  if (const auto waits = issued.host_waits(); !waits.empty()) {
    return verdict.fail({"host", text("rank 0: the host waits (", line(waits.front()), ") and issues nothing meanwhile; let a stream wait for the event instead: c.device.wait"), 0, -1, "", "host_wait", waits.front(), page});
  }
  if (!sums_are_right(issued, tried, verdict) || !orders(issued, tried, verdict)) return;
  if (!tried.right) return verdict.fail({"numbers", text("rank 0: ", numbers_text(tried), "; the sums are in their places, so look at what is summed"), 0, -1, "", "", {}, page});
  if (static_cast<double>(timing.step_ns) <= most_step * static_cast<double>(solution.step_ns)) return;
  const Command* wait = awaited_at_once(issued);
  char more[32];
  std::snprintf(more, sizeof more, "%+.1f %%", 100 * (static_cast<double>(timing.step_ns) / static_cast<double>(solution.step_ns) - 1));
  const std::string price = text("the step takes ", ms(static_cast<double>(timing.step_ns)), " for ", ms(static_cast<double>(solution.step_ns)), " (", more, ")");
  if (wait == nullptr) return verdict.fail({"step", text("rank 0, backward: ", price, ": let each sum of dx begin as soon as dx is there, on c.tp, beside the weight gradient"), 0, -1, "backward", "all_reduce", {}, page});
  verdict.fail({"exposed", text("rank 0, backward: compute awaits (", line(wait->where), ") the sum of dx before its weight gradient, which needs no sum and could hide it: ", price, "; wait in column_await"), 0, -1, "backward", "all_reduce", wait->where, page});
}

}  // namespace
}  // namespace shardbook::lab02

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab02::judge); }
