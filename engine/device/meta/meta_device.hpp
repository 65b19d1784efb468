// device/meta: no memory and no numbers; only the program is written down.
//
// Every call is accepted and nothing runs, so that a step of a model of any size, on any number of
// ranks, can be issued on a laptop and resolved against a machine's profile (simulate/). Bytes are those that a
// GPU would give.
#pragma once

#include "engine/device/device.hpp"

namespace shardbook::device {

class MetaDevice : public Device {
 public:
  explicit MetaDevice(base::Rank rank) : Device(Kind::meta, Storage{base::DType::bf16, base::DType::f32}, rank) {}
  void* pinned(base::Bytes) override { return nullptr; }
  void synchronize() override {}

 protected:
  void* allocate_storage(base::Bytes) override { return nullptr; }
  void stream_created(program::StreamId, Priority) override {}
  void event_created(program::EventId) override {}
  void run(program::StreamId, const Body&, program::OpIndex) override {}
  void run_record(program::StreamId, program::EventId) override {}
  void run_wait(program::StreamId, program::EventId) override {}
  void run_host_wait(program::EventId) override {}
  void step_begins(bool) override {}
  void step_ends(bool, program::StepTimes&) override {}
};

}  // namespace shardbook::device
