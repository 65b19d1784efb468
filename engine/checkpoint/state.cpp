#include "engine/checkpoint/state.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/checkpoint/boxes.hpp"
#include "engine/kernels/initialize.hpp"

namespace shardbook::checkpoint {

using base::Done;
using base::Status;
using optimizer::ShardState;

const std::vector<State::Kept>& State::kinds() {
  static const std::vector<Kept> all{{&ShardState::master, ""}, {&ShardState::first_moment, ".first_moment"}, {&ShardState::second_moment, ".second_moment"}};
  return all;
}

State::State(device::Device& device, device::Stream& compute, std::vector<ShardState>& shards, std::vector<model::Parameter*> parameters,
             const shard::Place& place, const Use& use)
    : device_(device), compute_(compute), stream_(use.saves ? device.create_stream("checkpoint") : compute), shards_(shards),
      parameters_(std::move(parameters)), place_(place), use_(use) {
  base::Bytes bytes = 0;
  for (const ShardState& shard : shards_) {
    const auto pieces = shard.layout->pieces(shard.flat);
    writes_.push_back(std::any_of(pieces.begin(), pieces.end(), [&](const shard::Piece& piece) {
      return shard::counts(shard.layout->parameters()[static_cast<std::size_t>(piece.parameter)].placement, place_);
    }));
    begins_.push_back(bytes);
    if (writes_.back() || use.restores) bytes += static_cast<base::Bytes>(kinds().size()) * shard.master.storage_bytes();
  }
  copies_ = static_cast<std::byte*>(device.pinned(std::max<base::Bytes>(bytes, 1)));   // a replica may write nothing
  if (!use.saves) return;
  updated_ = device.create_event("checkpoint.updated");
  taken_ = device.create_event("checkpoint.taken");
}

std::byte* State::copy_of(std::size_t shard, std::size_t kind) const {
  return copies_ + begins_[shard] + static_cast<base::Bytes>(kind) * shards_[shard].master.storage_bytes();
}

//@ checkpoint.take: Copy what the last step has left to host memory, beside the next step's forward and backward.
void State::take() {
  if (use_.on_host) {
    device_.synchronize();
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      if (!writes_[shard]) continue;
      for (std::size_t kind = 0; kind < kinds().size(); ++kind) {
        const tensor::Tensor& from = tensor_of(shard, kind);
        std::memcpy(copy_of(shard, kind), from.data, static_cast<std::size_t>(from.storage_bytes()));
      }
    }
    return;
  }
  device_.record(compute_, updated_);
  device_.wait(stream_, updated_);
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    if (!writes_[shard]) continue;
    for (std::size_t kind = 0; kind < kinds().size(); ++kind) {
      device_.download(stream_, "download_state", tensor::memory_of(tensor_of(shard, kind)), copy_of(shard, kind));
    }
  }
  device_.record(stream_, taken_);
}

void State::await(device::Lane lane) {
  if (!use_.on_host) device_.wait(lane, taken_, program::WaitReason::buffer_reuse);
}
//@end

void State::await_taken() {
  if (!use_.on_host) device_.host_wait(taken_);
}

//@ checkpoint.parts: What a rank keeps, as boxes of global tensors: neither units nor padding are seen any more.
std::vector<Part> State::parts(bool counted_alone) const {
  std::map<std::string_view, const model::Parameter*> by_name;
  for (const model::Parameter* parameter : parameters_) by_name[parameter->name] = parameter;
  std::vector<Part> parts;
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    const ShardState& state = shards_[shard];
    const base::Bytes size = base::size_of(state.master.storage);
    for (const shard::Piece& piece : state.layout->pieces(state.flat)) {
      const shard::FlatParameter& known = state.layout->parameters()[static_cast<std::size_t>(piece.parameter)];
      if (counted_alone && !shard::counts(known.placement, place_)) continue;
      const model::Parameter& parameter = *by_name.at(known.name);
      for (std::size_t kind = 0; kind < kinds().size(); ++kind) {
        std::byte* numbers = copy_of(shard, kind) + (piece.flat.begin - state.flat.begin) * size;
        // The parameter's boxes lie end to end; the piece is a run over some of them
        std::int64_t begin = 0;
        for (const shard::Box& box : parameter.boxes) {
          const shard::Interval here = shard::intersect({begin, begin + box.elements()}, piece.elements);
          for (const shard::Box& one : boxes_of(box, here.relative_to(here.empty() ? 0 : begin))) {
            parts.push_back({parameter.name + kinds()[kind].ending, state.master.storage, parameter.global_shape, one, numbers});
            numbers += one.elements() * size;
          }
          begin += box.elements();
        }
      }
    }
  }
  return parts;
}
//@end

Status State::restore(const Manifest& manifest, const std::string& folder) {
  std::vector<std::string> names;
  for (const model::Parameter* parameter : parameters_) {
    for (const Kept& kind : kinds()) names.push_back(parameter->name + kind.ending);
  }
  if (Status known = expect_tensors(names, manifest, folder); !known) return known;
  DataReader reader(folder, manifest);
  if (Status loaded = load(parts(false), manifest, reader); !loaded) return loaded;

  // Gaps and padding of the copies are zeros, as those of the states are
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    for (std::size_t kind = 0; kind < kinds().size(); ++kind) {
      const tensor::Tensor& to = tensor_of(shard, kind);
      if (use_.on_host) std::memcpy(to.data, copy_of(shard, kind), static_cast<std::size_t>(to.storage_bytes()));
      else device_.upload(compute_, "upload_state", copy_of(shard, kind), tensor::memory_of(to));
    }
    if (shards_[shard].parameter.exists()) kernels::cast(compute_, shards_[shard].master, shards_[shard].parameter);
  }
  device_.synchronize();
  return Done{};
}

}  // namespace shardbook::checkpoint
