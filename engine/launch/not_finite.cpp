#include "engine/launch/not_finite.hpp"

#include <cmath>

namespace shardbook::launch {

namespace {

// "the loss of step 7 is nan, on all ranks", or "" where both of its numbers are numbers.
std::string of_sums(const train::StepResult& result) {
  const bool of_loss = !std::isfinite(result.loss);
  if (!of_loss && std::isfinite(result.gradient_norm)) return "";
  const double value = of_loss ? result.loss : result.gradient_norm;
  return base::text(of_loss ? "the loss of step " : "the gradient norm of step ", result.step, " is ", std::isnan(value) ? std::string("nan") : base::text(value), ", on all ranks");
}

// "linear_forward, op 57 of step 3 (forward of block 1, qkv; engine/model/linear.cpp:20)"
std::string name_of(const program::Op& op, program::OpIndex index, std::int64_t step) {
  const program::OpKey& key = op.key;
  return base::text(op.desc.name, ", op ", index, " of step ", step, " (", program::name_of(key.phase), key.layer >= 0 ? base::text(" of block ", key.layer) : "",
                    *key.part != 0 ? ", " : "", key.part, "; ", op.where.file, ":", op.where.line, ")");
}

}  // namespace

void NotFinite::issued(const program::StepTimes& times) { issued_[times.step % 2] = {times.step, times.program}; }

std::string NotFinite::look_at(const train::StepResult& result) {
  const std::string sums = of_sums(result);
  const std::optional<device::Ticket> found = device_.first_not_finite(result.step);
  if (!found) return sums.empty() ? "" : sums + "; a lower --lr, more --warmup-steps or a --clip may keep it finite, and --check-finite names the op";
  ticket_ = found->number();
  const Issued& issued = issued_[result.step % 2];
  SHARDBOOK_CHECK_EQ(issued.step, result.step, "the step that is looked at");
  const program::Program& program = *device_.recorder().programs().at(issued.program);
  return base::text("the first number that is not finite was ", found->written ? "written" : "brought", " by ", name_of(program.ops.at(found->op), found->op, result.step), sums.empty() ? "" : "; ", sums);
}

bool NotFinite::is_first_of_all(world::World& world) const {
  const std::vector<std::string> all = world.all_gather(std::to_string(ticket_));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::uint64_t other = std::stoull(all[rank]);
    if (other < ticket_ || (other == ticket_ && static_cast<base::Rank>(rank) < world.rank() && ticket_ != device::no_ticket)) return false;
  }
  return true;
}

}  // namespace shardbook::launch
