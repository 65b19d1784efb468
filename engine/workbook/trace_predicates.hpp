// workbook/trace_predicates: does a learner's own trace show what the lab is about?
//
// Each lab with a script for PyTorch (labs/NN_name/twin.py) asks a few things of a trace, in this order:
//   01, 01a  few sums are small; they run beside backward
//   01b      gradients are reduced and scattered, parameters gathered, in half the bytes
//   02, 02a  as many sums in backward as in forward; backward's run beside something
//   02b      the host bounds the step (a narrow model); 02c: it does not
//   04       a gather in forward and one in backward a block; no wait of the host; each gather of backward ahead of the
//            reduction of the block before; at most a tenth of the gathers' time open
//            04a asks the first three, 04b the last, 04c for the waits
// Before these: all ranks make the same calls. Thresholds stand in the .cpp, each with its reason. A predicate says what
// it expected and found; one that fails, also why, where and what helps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/workbook/own_trace.hpp"

namespace shardbook::workbook {

struct Predicate {
  std::string rule;                        // one word, for tests and JSON: "prefetch"
  std::string title;                       // what holds where it holds: "Gathers run beside compute"
  std::string expected, found;
  bool holds = false;
  std::string why;                         // of one that fails: what it means, what to do
  std::string place;                       // "rank 0 · step 2 · all-gather of blocks.3, 14.2 ms into it"
  std::string page;                        // what helps: "labs/04_fsdp/text.md#04a"
};

struct TraceVerdict {
  std::vector<Predicate> predicates;
  std::map<std::string, double> figures;   // by name: "gathers_open_percent"
  std::string shares;                      // of the devices' time: "compute 88 %, open communication 9 %, nothing 3 %"
  std::string untold;                      // what no trace tells
  bool passed() const;
};

// "01", "01a" ... that have predicates.
const std::vector<std::string>& traced_parts();

// Errors: nothing is asked of traces of this lab or part; the step cannot be explained.
base::Result<TraceVerdict> judge_trace(const OwnTrace& trace, const std::string& part);

}  // namespace shardbook::workbook
