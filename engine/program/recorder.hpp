// program/recorder: writes down what a rank issues, as it issues it.
//
// Between begin_step and end_step every op, event and wait is appended to a list whose memory is kept
// from step to step, so that a step like the one before allocates nothing. At end_step the list's hash
// is compared with the programs known so far: the same program is stored once, and only times remain.
// A step that nobody will ask for is not written down at all: no list, no clock, no hash.
// Outside of a step nothing is recorded (set-up, evaluation between steps).
//
// Not thread-safe: a recorder belongs to the one host thread of its rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/program/program.hpp"
#include "engine/program/times.hpp"

namespace shardbook::program {

// The host's clock: CLOCK_MONOTONIC, in nanoseconds.
base::Nanoseconds host_now();

class Recorder {
 public:
  explicit Recorder(base::Rank rank);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  base::Rank rank() const { return rank_; }

  // What the rank owns. Called at set-up only, in the same order on every rank of a class.
  StreamId add_stream(std::string name);
  EventId add_event(std::string name);
  BufferId add_buffer(BufferInfo info);
  GroupId add_group(GroupInfo info);  // the same axis and ranks give the same id
  const Catalogue& catalogue() const { return catalogue_; }

  // REQUIRES: not within a step. Of a step that nobody will ask for (`records` is false) nothing is written down, and none of the
  // commands below may be called; scopes and sequences work as ever.
  void begin_step(std::int64_t step, bool records = true);
  // Stores the program if it is new and returns the step's times, `issued` filled, `ran` sized and
  // unknown. The reference is good until the next end_step. The times of a step that was not recorded name no_program, and
  // hold its window alone. So a run whose every step is another grows only by what it traces.
  StepTimes& end_step();
  bool in_step() const { return in_step_; }
  // Whether what is issued now is written down.
  bool records() const { return in_step_ && records_; }
  std::int64_t step() const { return times_.step; }

  // One command each. REQUIRES: records(). `op` returns the op's index; `issued` says that the host
  // has left the call that the last command entered.
  OpIndex op(StreamId stream, const OpDesc& desc, SourceLine where);
  void record_event(StreamId stream, EventId event, SourceLine where);
  void wait_event(StreamId stream, EventId event, WaitReason reason, SourceLine where);
  void host_wait(EventId event, SourceLine where);
  void read_back(StreamId stream, SourceLine where);
  void issued() { times_.issued.back().end = host_now(); }

  // How many ops the step has so far: the next one's index.
  OpIndex ops_issued() const { return static_cast<OpIndex>(current_.ops.size()); }

  // The scope that the next op is issued in.
  const OpKey& key() const { return key_; }

  // How often the host waited for a device within the step so far: a step that does is slow.
  int host_waits() const { return host_waits_; }

  std::uint32_t next_sequence(GroupId group);

  const std::vector<std::unique_ptr<Program>>& programs() const { return programs_; }
  const std::vector<std::uint64_t>& program_hashes() const { return hashes_; }

 private:
  friend class Scope;
  friend class Part;
  friend class Planned;
  Command& append(CommandKind kind, StreamId stream, SourceLine where);

  base::Rank rank_;
  Catalogue catalogue_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::uint64_t> hashes_;

  bool in_step_ = false, records_ = false;
  Program current_;
  StepTimes times_;
  OpKey key_;
  SourceLine planned_;
  bool planned_leads_ = false;
  int host_waits_ = 0;
  std::vector<std::uint32_t> event_generations_;
  std::vector<std::uint32_t> buffer_generations_;
  std::vector<std::uint32_t> group_sequences_;
};

// Names the ops issued while it lives: Scope scope(recorder, Phase::forward, layer);
// Scopes nest; what a scope does not set is taken from the one around it.
class Scope {
 public:
  static constexpr int same = -2;
  Scope(Recorder& recorder, Phase phase, int layer = same, int micro_batch = same);
  ~Scope() { recorder_.key_ = before_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Recorder& recorder_;
  OpKey before_;
};

// Names the piece of the layer that issues while it lives: Part part(recorder, "qkv"); a literal.
class Part {
 public:
  Part(Recorder& recorder, const char* name) : recorder_(recorder), before_(recorder.key_.part) { recorder_.key_.part = name; }
  ~Part() { recorder_.key_.part = before_; }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 private:
  Recorder& recorder_;
  const char* before_;
};

// Names the line that planned what is issued while it lives, and whether that line leads.
class Planned {
 public:
  Planned(Recorder& recorder, SourceLine where, bool leads) : recorder_(recorder), before_(recorder.planned_), led_(recorder.planned_leads_) {
    recorder_.planned_ = where;
    recorder_.planned_leads_ = leads;
  }
  ~Planned() {
    recorder_.planned_ = before_;
    recorder_.planned_leads_ = led_;
  }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

 private:
  Recorder& recorder_;
  SourceLine before_;
  bool led_;
};

}  // namespace shardbook::program
