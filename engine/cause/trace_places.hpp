// cause/trace_places: where did a foreign trace's kernels come from, in the words of whoever wrote the program?
//
// PyTorch's profiler, asked for stacks, writes a row for each Python function beside the calls that it made. The innermost
// that is the user's own, and not of a library, is the place: "train.py(82): is_finite". Backward runs on a thread of its
// own, without the user's functions; there the autograd node's name leads back to the forward op it belongs to, and that
// op's place is taken where most calls of that op were made (an inference: two places that call the same op are told apart
// by nothing). Without stacks the innermost annotation is the place: "FSDP::pre_backward (blocks.5)".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/timeline/links.hpp"

namespace shardbook::cause {

class TracePlaces {
 public:
  // The timeline must outlive this. O(rows · log rows), once.
  explicit TracePlaces(const timeline::Timeline& timeline);

  // Of a device span, by the call that launched it; of a host row, its own. "" where the trace says nothing.
  std::string of(timeline::SpanRef span) const;

 private:
  // Rows of one thread by start; an entry encloses what comes after it until its end.
  struct Row {
    base::Nanoseconds start, end;
    std::string name;
  };
  struct Thread {
    std::vector<Row> functions, annotations, nodes;
  };
  using ThreadKey = std::pair<base::Rank, std::int64_t>;
  static const Row* innermost(const std::vector<Row>& rows, base::Nanoseconds start, base::Nanoseconds end);

  const timeline::Timeline& timeline_;
  std::map<base::Rank, timeline::Links> links_;
  std::map<ThreadKey, Thread> threads_;
  std::map<base::Rank, std::map<std::string, std::string>> of_op_;   // a forward op's plain name: where most of it is called
};

}  // namespace shardbook::cause
