// cause/without: what would the step gain without something? Private to causes*.cpp.
#pragma once

#include <optional>
#include <vector>

#include "engine/cause/causes.hpp"
#include "engine/cause/remedies.hpp"
#include "engine/cause/study.hpp"

namespace shardbook::cause {

// A cause is named from this part of the step on.
inline constexpr double worth_naming = 0.005;

inline bool is(const program::Op& op, program::OpClass op_class) { return program::class_of(op.desc.kind) == op_class; }

class Without {
 public:
  explicit Without(const Study& study) : study_(study) {}
  const Study& study() const { return study_; }
  // What the step would gain; 0 where that cannot be resolved.
  Nanoseconds gain(const simulate::Change& change) const;
  // The same with that cost at nothing.
  Nanoseconds gain_of(double simulate::Scale::*factor) const;
  bool is_worth(Nanoseconds ns) const { return static_cast<double>(ns) >= worth_naming * static_cast<double>(study_.step_ns()); }

 private:
  const Study& study_;
};

// `found` has what each regime costs. Whatever they gain: what the host takes to issue a step; its waits, a late rank, copies
// and contention.
Cause cause_of_host(const Without& without, const Remedies& remedies, const Findings& found);
// What the CPU works itself, among the ops of a stream; none where it does not.
std::optional<Cause> cause_of_cpu(const Without& without);
std::vector<Cause> causes_of_machines(const Without& without, const Remedies& remedies, const Findings& found);

}  // namespace shardbook::cause
