// cli/bench_suite: which runs say how fast the engine is, and how fast could they be?
//
// The shapes are those that PyTorch, Megatron-LM and llm.c are compared with: two sizes of GPT-2's blocks, its small
// form, Llama 3's 8 billion, and a model so small that its step is the host's. One cut over all GPUs each.
//
// The floor of a step is what its own work would take with nothing lost: the flops of its matmuls at the rate that large
// ones sustain, and the bytes of all else that computes at the memory's rate, both measured (simulate/profile). There is no
// communication in it, and no host.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/program/program.hpp"
#include "engine/simulate/profile.hpp"

namespace shardbook::cli {

struct BenchShape {
  enum class Cut { fsdp, tp };
  const char* name;      // "gpt-1.3b-fsdp"
  const char* model;     // of train --model
  Cut cut;               // over all GPUs
  int sequences;         // a step: of each GPU (fsdp), or of all together (tp)
  const char* data;      // of train --data
  const char* fastest;   // more options of train, blanks between them: what is fastest of what all GPUs have
  const char* linked;    // KEY=VALUE of --set: what is faster still between GPUs that read each other's memory, with NCCL 2.28
  const char* lean;      // the same: what makes it hold less memory (of the large ones no more than FSDP2), for a few percent of a step
  int steps;             // of one run: enough for the clock of a GPU at its limit of power to settle

  // Of all GPUs in one step.
  int global_sequences(int gpus) const { return cut == Cut::fsdp ? sequences * gpus : sequences; }
};

const std::vector<BenchShape>& bench_suite();
// Those that are named, in the suite's order; all without names. A name may be the beginning of several: "gpt-1.3b".
// Errors: a name that none begins with.
base::Result<std::vector<BenchShape>> shapes_named(const std::vector<std::string>& names);

// The options of `train` for a shape on so many GPUs, but for device, steps and folder. `set`: KEY=VALUE of --set, in place
// of what is fastest where they say the same. `cudnn`: attention by tiles is cuDNN's.
std::vector<std::string> words_of(const BenchShape& shape, int gpus, const std::vector<std::string>& set, bool cudnn = false);

// A shape's `linked` or `lean` choices, without those whose keys `set` has, too.
std::vector<std::string> linked_choices(const BenchShape& shape, const std::vector<std::string>& set);
std::vector<std::string> lean_choices(const BenchShape& shape, const std::vector<std::string>& set);

// Of these choices those that a run without a device has, too: what needs a GPU (nccl.max_ctas) changes no program, and the model
// does not know it; nor windows, unless its profile has them.
std::vector<std::string> set_without_gpus(std::vector<std::string> set, const simulate::Profile& profile);

struct Floor {
  double matmul_ns = 0;   // flops of matmuls and fused attention
  double memory_ns = 0;   // bytes of all other kernels, copies and fills
  double ns() const { return matmul_ns + memory_ns; }
};
// Of one rank's step. 0 where the profile does not know the rate. Copies to and from host memory are left out.
Floor floor_of(const program::Program& step, const simulate::Profile& profile);

}  // namespace shardbook::cli
