// A step of two units under FSDP, as small as it can be and still have every kind of command.
#pragma once

#include "engine/program/recorder.hpp"

namespace shardbook::program {

struct SmallStep {
  explicit SmallStep(Recorder& recorder) : recorder(recorder) {
    compute = recorder.add_stream("compute");
    gather = recorder.add_stream("fsdp");
    gathered = recorder.add_event("gathered");
    freed = recorder.add_event("freed");
    shard = recorder.add_buffer({"shard", MemoryKind::parameter, 1024});
    whole = recorder.add_buffer({"whole", MemoryKind::gathered, 2048});
    group = recorder.add_group({"dp_shard", {0, 1}});
  }

  // Issues the step: gather, use, gather again into the same memory, use, and a host wait.
  void issue(bool wait_before_reuse = true, base::Bytes bytes = 2048) {
    for (int layer = 0; layer < 2; ++layer) {
      Scope scope(recorder, Phase::forward, layer, 0);
      if (layer == 1 && wait_before_reuse) {
        recorder.wait_event(gather, freed, WaitReason::buffer_reuse, {"schedule.cpp", 20});
      }
      recorder.op(gather,
                  OpDesc("all_gather", OpKind::all_gather, base::DType::bf16)
                      .reads({shard, 0, bytes / 2})
                      .writes({whole, 0, bytes})
                      .collective_of({group, recorder.next_sequence(group), bytes, -1}),
                  {"schedule.cpp", 10});
      recorder.issued();
      recorder.record_event(gather, gathered, {"schedule.cpp", 11});
      recorder.wait_event(compute, gathered, WaitReason::data, {"schedule.cpp", 12});
      recorder.op(compute,
                  OpDesc("gemm", OpKind::gemm, base::DType::bf16).size({4, 8, 16, 1}).reads({whole, 0, bytes}),
                  {"linear.cpp", 5});
      recorder.record_event(compute, freed, {"schedule.cpp", 13});
    }
    recorder.host_wait(freed, {"step.cpp", 1});
  }

  StepTimes& step(std::int64_t number, bool wait_before_reuse = true, base::Bytes bytes = 2048) {
    recorder.begin_step(number);
    issue(wait_before_reuse, bytes);
    return recorder.end_step();
  }

  Recorder& recorder;
  StreamId compute, gather;
  EventId gathered, freed;
  BufferId shard, whole;
  GroupId group;
};

}  // namespace shardbook::program
