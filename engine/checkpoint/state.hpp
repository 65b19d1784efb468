// checkpoint/state: what does this rank keep between steps, and how does it get out and in?
//
// Of each parameter its part of the master and of both moments. (The copy that is computed with is the master, rounded.)
// take() copies all of it to host memory of its own, on a stream of its own: forward and backward of the next step run
// beside that, and its update waits (await). From then on the numbers can be written by anyone at any time. Of states that
// lie in host memory anyway (fsdp.offload) the copy is made at once, by the host.
//
//   compute     | step 19 |  step 20: forward, backward  | update |
//   checkpoint            | copies of masters, moments |
//   a thread                                             | writes files …
//
// Of ranks that keep the same, the first writes it (shard::counts).
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/load.hpp"
#include "engine/device/device.hpp"
#include "engine/model/parameter.hpp"
#include "engine/optimizer/adamw.hpp"

namespace shardbook::checkpoint {

class State {
 public:
  // What it is for: to be saved, to be read, or both.
  struct Use {
    bool saves = false;      // take() will be called, so there is a stream for it
    bool restores = false;
    bool on_host = false;    // the states lie in host memory
  };
  // Set-up: host memory for what this rank writes; for all that it keeps where it restores. `shards` with their moments, and `parameters`, outlive this. `place`:
  // where the rank stands along every axis of the mesh.
  State(device::Device& device, device::Stream& compute, std::vector<optimizer::ShardState>& shards, std::vector<model::Parameter*> parameters,
        const shard::Place& place, const Use& use);

  // Issues the copies of what the last step that was issued leaves. Between steps. REQUIRES: saves; nobody reads the copy
  // before.
  void take();
  // What is issued to `lane` from here on may change the states. Before each update, whether a copy is under way or not, so
  // that steps are alike. REQUIRES: saves.
  void await(device::Lane lane);
  // The host waits until the copies are there. (They are once a later step's update has run.)
  void await_taken();
  // What this rank writes, in the memory that take() fills. REQUIRES: no device of shapes only.
  std::vector<Part> written() const { return parts(true); }

  // Reads what this rank keeps from a checkpoint, into the device. Between steps. Errors: the checkpoint is of another
  // model, or damaged. REQUIRES: restores.
  base::Status restore(const Manifest& manifest, const std::string& folder);

 private:
  // One of the three tensors of a shard.
  struct Kept {
    tensor::Tensor optimizer::ShardState::*which;
    const char* ending;   // of its tensors' names
  };
  static const std::vector<Kept>& kinds();
  std::vector<Part> parts(bool counted_alone) const;
  std::byte* copy_of(std::size_t shard, std::size_t kind) const;
  const tensor::Tensor& tensor_of(std::size_t shard, std::size_t kind) const { return shards_[shard].*kinds()[kind].which; }

  device::Device& device_;
  device::Stream& compute_;
  device::Stream& stream_;
  std::vector<optimizer::ShardState>& shards_;
  std::vector<model::Parameter*> parameters_;
  shard::Place place_;
  Use use_;
  std::vector<base::Bytes> begins_;   // by shard: where its copies lie, one kind after the other
  std::vector<char> writes_;          // by shard: some of it is this rank's to write
  std::byte* copies_ = nullptr;
  device::Event updated_;             // on compute: the step has run
  device::Event taken_;               // on stream_: the copies are there
};

}  // namespace shardbook::checkpoint
