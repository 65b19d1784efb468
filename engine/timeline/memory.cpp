// timeline/memory: from the byte ranges of a record to levels over time; see memory.hpp.
#include "engine/timeline/memory.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "engine/program/host_memory.hpp"

namespace shardbook::timeline {
namespace {

using program::MemoryKind;
using program::OpIndex;

constexpr std::size_t kinds = static_cast<std::size_t>(MemoryKind::input) + 1;

bool always_live(MemoryKind kind) { return kind == MemoryKind::parameter || kind == MemoryKind::optimizer; }

// What one op does to a range of a buffer.
struct Access {
  Bytes begin, end;
  OpIndex op;
  bool reads, writes;
};

// Bytes that all accesses of a buffer treat alike, and those accesses, in order of issue, one an op.
struct Segment {
  Bytes bytes = 0;
  std::vector<Access> accesses;
};

std::vector<Segment> segments_of(const std::vector<Access>& accesses) {
  std::vector<Bytes> borders;
  for (const Access& access : accesses) {
    borders.push_back(access.begin);
    borders.push_back(access.end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Segment> segments(borders.empty() ? 0 : borders.size() - 1);
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].bytes = borders[i + 1] - borders[i];
  for (const Access& access : accesses) {
    auto at = static_cast<std::size_t>(std::lower_bound(borders.begin(), borders.end(), access.begin) - borders.begin());
    for (; at < segments.size() && borders[at] < access.end; ++at) {
      std::vector<Access>& known = segments[at].accesses;
      if (known.empty() || known.back().op != access.op) {
        known.push_back(access);
      } else {
        known.back().reads |= access.reads;
        known.back().writes |= access.writes;
      }
    }
  }
  return segments;
}

constexpr Nanoseconds for_good = std::numeric_limits<Nanoseconds>::max();

// Changes of one level; at the end their sums are the counter.
class Level {
 public:
  void live(Nanoseconds from, Nanoseconds until, Bytes bytes) {
    if (until <= from) return;
    changes_[from] += bytes;
    if (until != for_good) changes_[until] -= bytes;
  }
  void rise(Nanoseconds at, Bytes bytes) { changes_[at] += bytes; }
  void add_to(TimelineBuilder& builder, Rank rank, const std::string& name) const {
    Bytes level = 0;
    bool first = true;
    for (const auto& [time, change] : changes_) {
      level += change;
      if (change != 0 || first) builder.add_counter(rank, name, time, level);
      first = false;
    }
  }

 private:
  std::map<Nanoseconds, Bytes> changes_;
};

// The accesses of a step's ops that ran, buffer by buffer.
std::map<program::BufferId, std::vector<Access>> accesses_of(const ProgramStep& step) {
  std::map<program::BufferId, std::vector<Access>> accesses;
  for (OpIndex op = 0; op < step.program->ops.size(); ++op) {
    if (step.times->ran[op].start > step.times->ran[op].end) continue;
    const program::OpDesc& desc = step.program->ops[op].desc;
    for (int i = 0; i < desc.uses.size(); ++i) {
      const program::BufferUse& use = desc.uses[i];
      const bool writes = (desc.written_mask >> i & 1) != 0;
      if (use.buffer != program::no_buffer && use.begin < use.end) accesses[use.buffer].push_back({use.begin, use.end, op, !writes, writes});
    }
  }
  return accesses;
}

// A value in one segment: from when until when, and the op that wrote it.
struct Life {
  Nanoseconds from, until, overwritten;
  OpIndex writer;                            // no_op: it is from before the step
  bool carried_on;                           // into the next step
  Bytes bytes;
};

// Adds the lives of one segment within a step.
void find_lives(const Segment& segment, const program::StepTimes& times, Nanoseconds start, std::vector<Life>& lives) {
  const bool carried = segment.accesses.front().reads;
  if (carried) {
    const Nanoseconds first = std::min(start, times.ran[segment.accesses.front().op].start);
    lives.push_back({first, first, for_good, program::no_op, false, segment.bytes});
  }
  for (const Access& access : segment.accesses) {
    const program::TimeSpan ran = times.ran[access.op];
    if (access.writes && !access.reads) {
      if (&access != &segment.accesses.front()) lives.back().overwritten = ran.start;
      lives.push_back({ran.start, ran.end, for_good, access.op, false, segment.bytes});
    }
    lives.back().until = std::max(lives.back().until, ran.end);
  }
  lives.back().carried_on = carried;
}

// The values of one buffer in a step: the bytes that one op wrote live as long as any of them.
void add_buffer(const std::vector<Access>& accesses, const program::StepTimes& times, Nanoseconds start, Nanoseconds next_start,
                Level& level) {
  std::vector<Life> lives;
  for (const Segment& segment : segments_of(accesses)) {
    if (!segment.accesses.empty()) find_lives(segment, times, start, lives);
  }
  std::map<OpIndex, Nanoseconds> last_read;
  for (const Life& life : lives) {
    Nanoseconds& last = last_read.try_emplace(life.writer, life.until).first->second;
    last = std::max(last, life.until);
  }
  for (const Life& life : lives) {
    Nanoseconds until = life.until;
    if (life.writer != program::no_op) until = std::max(until, std::min(last_read[life.writer], life.overwritten));
    if (life.carried_on) until = std::max(until, next_start);
    level.live(life.from, until, life.bytes);
  }
}

}  // namespace

void add_memory(TimelineBuilder& builder, Rank rank, const program::Catalogue& catalogue, const std::vector<ProgramStep>& steps,
                const std::vector<StepBounds>& bounds) {
  if (steps.empty()) return;
  std::array<Level, kinds> levels;
  std::array<bool, kinds> known{};

  // What is live all the time; of the rest a point at the begin, so that each counter covers all steps.
  for (const program::BufferInfo& buffer : catalogue.buffers) {
    if (program::in_host_memory(buffer)) continue;
    const auto kind = static_cast<std::size_t>(buffer.kind);
    known[kind] = true;
    levels[kind].rise(bounds[0].start, always_live(buffer.kind) ? buffer.bytes : 0);
  }

  // What each step makes live.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Nanoseconds next_start = i + 1 < steps.size() ? bounds[i + 1].start : for_good;
    for (const auto& [buffer, accesses] : accesses_of(steps[i])) {
      const MemoryKind kind = catalogue.buffers[buffer].kind;
      if (always_live(kind) || program::in_host_memory(catalogue.buffers[buffer])) continue;
      add_buffer(accesses, *steps[i].times, bounds[i].start, next_start, levels[static_cast<std::size_t>(kind)]);
    }
  }
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (known[kind]) levels[kind].add_to(builder, rank, std::string(memory_counter_prefix) + name_of(static_cast<MemoryKind>(kind)));
  }
}

}  // namespace shardbook::timeline
