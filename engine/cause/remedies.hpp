// cause/remedies: what can a user type that would change it?
//
// Options of `train` and `run`, with values made from those of the run at hand. Of a trace without a configuration,
// what PyTorch and Megatron call it.
#pragma once

#include <string>

#include "engine/cause/why.hpp"
#include "engine/program/program.hpp"

namespace shardbook::cause {

class Remedies {
 public:
  explicit Remedies(const Recorded& recorded) : recorded_(recorded) {}

  // To begin these collectives earlier. May be empty.
  std::string earlier(program::OpKind kind, const std::string& axis) const;
  // Whether that is what beginning one place earlier was resolved as.
  bool is_one_place_earlier(const std::string& remedy) const;
  // Does something of the shards lie in host memory?
  bool offloads() const;
  // Are gradients summed after each micro-batch where once a step would do?
  bool is_summed_each(program::OpKind kind, const std::string& axis) const;
  // To have fewer of them, smaller or fewer bytes, or more to hide them behind.
  std::string less_of(program::OpKind kind, const std::string& axis, Regime regime) const;
  std::string fewer_calls() const;
  std::string fewer_calls_of(const std::string& axis) const;
  // For what stands at the ends of a step, and for what runs together. May be empty.
  std::string of_ends(const std::string& axis) const;
  std::string of_contention() const;
  // Whether gradients of replicas are summed after backward only, as the run was asked to.
  bool sums_await_backward() const;
  // Whether a bucket of gradients could be smaller than it is.
  bool has_smaller_bucket() const { return bucket() > 1; }
  // To have gradients of replicas summed while backward runs.
  std::string sums_in_backward() const;

 private:
  // "--sequences 64"
  std::string more_sequences() const;
  std::string another_cut() const;
  std::string in_pieces(program::OpKind kind, Regime regime) const;
  bool could_be_graph() const;
  int bucket() const;
  int near() const;

  const Recorded& recorded_;
};

// "all-gather", "reduce-scatter"
std::string noun_of(program::OpKind kind);

}  // namespace shardbook::cause
