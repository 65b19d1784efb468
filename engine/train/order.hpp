// train/order: the plan of a config's step, put together from the passes of all rooms.
#pragma once

#include <functional>
#include <string>

#include "engine/comm/comm.hpp"
#include "engine/config/config.hpp"
#include "engine/data_parallel/schedule.hpp"
#include "engine/fsdp/parameters.hpp"
#include "engine/fsdp/schedule.hpp"
#include "engine/model/model.hpp"
#include "engine/plan/needs.hpp"
#include "engine/tensor_parallel/spec.hpp"

namespace shardbook::train {

// What the plan must know of this rank's model; `units` as whoever keeps its parameters describes them.
plan::Network network_of(const model::Model& model, std::vector<plan::Unit> units, int micro_batches);

// A machine that is better or worse than the real one.
struct LabMachine {
  bool ideal_network = false;           // communication moves nothing
  int call_us = 0;                      // each op costs the host so much more
  base::Rank slow_rank = -1;            // on this rank
  int kernel_us = 0;                    // each kernel that computes takes so much longer
  int max_ctas = 0;                     // of a GPU's multiprocessors a collective takes so many at most; 0: as NCCL chooses
  int last_ctas = 0;                    // ... and one that nothing runs beside so many at least; 0: as any other
  int sms_beside = 0;                   // ... and a matmul leaves it so many
  int connections = 0;                  // queues of the GPU that streams share (CUDA_DEVICE_MAX_CONNECTIONS); 0: as CUDA has it
  comm::Buffers buffers = comm::Buffers::plain;
};

// Mistakes on purpose (mistakes.hpp). Empty: none.
struct Mistakes {
  std::function<model::ModelSpec(const model::ModelSpec& parallel, device::Device&, tensor_parallel::TensorParallelGroup)> pieces;
  std::function<plan::Plan(const plan::Plan&, const plan::Network&)> order;
  std::vector<void (*)(model::Model&)> model;   // before it is laid out and its weights are drawn
  std::function<model::ModelSpec(const model::ModelSpec& dense)> uncut;   // pieces, before they are cut over tp
  std::function<void(model::Draw&, const plan::Action&, bool of_block)> draw;   // by what an action's masks are drawn
  std::string unawaited;                      // no stream waits for events whose name ends so
  bool own_tokens = false;                    // a loss is divided by the rank's own tokens, not by those of all
};

// What options and switches come to: numbers and pieces, each for the room that knows what to do with it.
struct Choices {
  fsdp::Schedule gathers;
  fsdp::StoreConfig store;
  data_parallel::Schedule sums;
  tensor_parallel::Pieces pieces;
  plan::Reduce reduce = plan::Reduce::every_micro_batch;
  model::UnitSize unit;          // what is gathered, freed and reduced together
  int limit = 0;                        // freed units in use before the host waits; 0: any number
  bool recompute = false;               // blocks, from their inputs
  int loss_chunks = 1;                  // runs of tokens whose logits are there at a time
  bool loss_in_one = false;             // by one kernel, where the vocabulary is whole
  bool gelu_in_matmuls = false;         // of the linears on both sides
  bool remake = false;                  // what of a block costs no matmul
  bool flash_attention = false;         // by tiles, without the square of probabilities
  bool cudnn_attention = false;         // the same by cuDNN's kernels
  bool recompute_attention = false;     // its probabilities alone, from q and k
  bool gradients_apart = false;         // weight gradients are made apart, and another kernel adds them
  bool synchronize = false;             // the host waits after each layer
  bool graph = false;                   // untraced steps are launched by one call
  LabMachine machine;
  Mistakes mistakes;
};
Choices choices_of(const config::RunConfig& config);   // seams.cpp

// The order of a step: finished, with as many shared buffers as it needs.
struct Order {
  plan::Plan plan;
  plan::Slots slots;
};
Order order_of(const Choices& choices, const plan::Network& network);

// Adds what a plan leaves out that knows nothing of host memory: when shards and states that live there come and go.
plan::Plan through_host_memory(const plan::Plan& plan, const plan::Network& network);

// The same for a plan that somebody else wrote.
Order finished(const plan::Plan& plan, const plan::Network& network);

}  // namespace shardbook::train
