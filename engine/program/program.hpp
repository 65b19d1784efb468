// program: what was issued?
//
// A step of training is a list of commands that a rank's host gave to its streams: run an op, record
// an event, make a stream wait for an event, wait on the host. That list, with what each op reads and
// writes and the source line that issued it, is the *program* of the step. It holds no times: the
// same layout issues the same program on a GPU, on the host and on no device at all, which is what
// hash() lets a test say. When each op ran is kept beside it (times.hpp), by whoever can tell.
//
// Invariants
//   - ops and commands stand in issue order; an op's command names it by index.
//   - sizes are *nominal*: bytes and flops that the GPU would move and do, whatever the host stores.
//   - nothing here depends on the device, on addresses or on the rank's own number.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/types.hpp"

namespace shardbook::program {

using StreamId = std::uint16_t;
using EventId = std::uint32_t;
using BufferId = std::uint32_t;
using GroupId = std::uint16_t;
using OpIndex = std::uint32_t;

inline constexpr BufferId no_buffer = ~BufferId{0};
inline constexpr GroupId no_group = static_cast<GroupId>(~0u);
inline constexpr OpIndex no_op = ~OpIndex{0};

enum class Phase : std::uint8_t { setup, forward, backward, reduce, update };
const char* name_of(Phase phase);

// What an op is, as far as its cost is concerned.
enum class OpKind : std::uint8_t {
  gemm,        // cost by flops and size
  pointwise,   // cost by bytes, like all that follow up to fill
  reduction,
  lookup,
  copy,
  fill,
  all_reduce,  // cost by bytes and group, like all that follow up to recv, and shift
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send,
  recv,
  attention,   // fused: cost by flops
  host,        // the CPU's work, in its place among a stream's ops: cost by bytes of host memory
  shift,       // each rank sends to the one so many places on, and receives from the one so many back. Numbers of kinds stand in files: new ones come last
};
inline constexpr int op_kinds = static_cast<int>(OpKind::shift) + 1;
const char* name_of(OpKind kind);

// An op of this name (kind fill) keeps its stream for so long before it writes, so that another stream's kernel can begin. ns.
// On two H200s 2 us let NCCL's kernel in ahead of a matmul; one that ends at once did so in one of six shapes (experiments/contention,
// "moment"): twice that.
inline constexpr char pause_name[] = "pause";
inline constexpr base::Nanoseconds pause_ns = 4000;

// The class by which time is added up: communication, memory (copies and fills), compute, or what is no work of the device.
enum class OpClass : std::uint8_t { compute, communication, memory, host };
OpClass class_of(OpKind kind);
// Whether it is half of an exchange between two ranks, of which the other issues the other half.
inline bool is_pair(OpKind kind) { return kind == OpKind::send || kind == OpKind::recv; }
const char* name_of(OpClass op_class);

// Where an op was issued. `file` is a literal of the compiler: a path from the project's root.
struct SourceLine {
  const char* file = "";
  std::uint32_t line = 0;
  bool operator==(const SourceLine& other) const;
};

// Nominal bytes [begin, end) of a buffer.
struct BufferUse {
  BufferUse() = default;
  constexpr BufferUse(BufferId buffer, base::Bytes begin, base::Bytes end) : buffer(buffer), begin(begin), end(end) {}
  BufferId buffer = no_buffer;
  std::uint32_t generation = 0;  // how often the buffer had been written in this step before this op
  base::Bytes begin = 0;
  base::Bytes end = 0;
};

// What one op reads and writes, in place. Most ops name three or four of the twelve that there is room for, and an op is copied
// as it is issued, recorded and kept: places that hold nothing are neither set nor copied.
class BufferUses {
 public:
  static constexpr int most = 12;

  BufferUses() {}   // NOLINT: at_ stays as it lies
  BufferUses(const BufferUses& other) { *this = other; }
  BufferUses& operator=(const BufferUses& other) {
    size_ = other.size_;
    std::memmove(at_, other.at_, static_cast<std::size_t>(size_) * sizeof(BufferUse));
    return *this;
  }

  // REQUIRES of add: size() < most.
  void add(const BufferUse& use) { ::new (&at_[size_++]) BufferUse(use); }
  int size() const { return size_; }
  BufferUse& operator[](int i) { return at_[i]; }
  const BufferUse& operator[](int i) const { return at_[i]; }
  BufferUse* begin() { return at_; }
  BufferUse* end() { return at_ + size_; }
  const BufferUse* begin() const { return at_; }
  const BufferUse* end() const { return at_ + size_; }

 private:
  union {
    BufferUse at_[most];
  };
  int size_ = 0;
};

// C[m, n] = A[m, k] B[k, n], `batch` times. Of fused attention: the scores of its heads, k wide, the masked ones too; 0 in
// programs recorded before 2026-11-25.
struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
};

// `bytes` is the size of the whole buffer as nccl-tests counts it: what every rank ends up with for
// all-gather and all-reduce, what every rank starts with for reduce-scatter, what every rank sends for shift.
struct CollectiveUse {
  GroupId group = no_group;
  std::uint32_t sequence = 0;  // counts this group's collectives within the step
  base::Bytes bytes = 0;
  base::Rank peer = -1;  // root of a broadcast, partner of send and recv, as index in the group; of a shift, how many places on
};

// What a kernel or collective says of itself before it is issued. Built on the stack, chained:
//   OpDesc("gelu_forward", OpKind::pointwise, dtype).flops(8 * n).reads(x.use()).writes(y.use())
class OpDesc {
 public:
  // `name` must be a literal. `dtype` is nominal.
  OpDesc(const char* name, OpKind kind, base::DType dtype) : name(name), kind(kind), dtype(dtype) {}

  OpDesc& flops(std::int64_t count) { flop_count = count; return *this; }
  OpDesc& size(GemmSize size) { gemm = size; flop_count = 2 * size.m * size.n * size.k * size.batch; return *this; }
  OpDesc& scores(GemmSize size) { gemm = size; return *this; }   // of fused attention, whose flops are fewer
  OpDesc& collective_of(CollectiveUse use) { collective = use; return *this; }
  // Adds the range and its bytes; the second form counts `bytes` instead (a lookup reads a few rows).
  OpDesc& reads(BufferUse use) { return reads(use, use.end - use.begin); }
  OpDesc& reads(BufferUse use, base::Bytes bytes) { add(use, false); bytes_read += bytes; return *this; }
  OpDesc& writes(BufferUse use) { return writes(use, use.end - use.begin); }
  OpDesc& writes(BufferUse use, base::Bytes bytes) { add(use, true); bytes_written += bytes; return *this; }
  // Reads and writes in place.
  OpDesc& updates(BufferUse use) { return reads(use).writes(use); }

  const char* name;
  OpKind kind;
  base::DType dtype;
  std::int64_t flop_count = 0;
  base::Bytes bytes_read = 0;
  base::Bytes bytes_written = 0;
  GemmSize gemm;
  CollectiveUse collective;
  BufferUses uses;
  std::uint16_t written_mask = 0;  // bit i: uses[i] is written

 private:
  void add(const BufferUse& use, bool written);
};

// Which of a step's many ops this is. `n` counts the ops issued within the same scope.
struct OpKey {
  std::int16_t micro_batch = -1;
  std::int16_t chunk = 0;
  Phase phase = Phase::setup;
  std::int16_t layer = -1;  // -1: no layer (embedding, head, optimizer of the root)
  std::uint16_t n = 0;
  const char* part = "";    // which piece of the layer: "qkv", "norm_1"; a literal
};

struct Op {
  OpKey key;
  OpDesc desc;
  StreamId stream = 0;
  SourceLine where;
};

// Why a stream waits. It changes no order; it lets the reader tell a data dependency from a limit.
enum class WaitReason : std::uint8_t {
  data,          // the awaited op made what the next op reads
  buffer_reuse,  // the awaited op must be done with memory that the next op overwrites
  limiter,       // no more than so many gathers in flight
};

enum class CommandKind : std::uint8_t { op, record_event, wait_event, host_wait, read_back };
struct Command {
  CommandKind kind = CommandKind::op;
  StreamId stream = 0;
  OpIndex op = no_op;               // of op
  EventId event = 0;                // of record_event, wait_event, host_wait
  std::uint32_t generation = 0;     // how often the event had been recorded in this step, this one included
  WaitReason reason = WaitReason::data;
  SourceLine where;                 // the line that issued it
  SourceLine planned;               // the line of the plan, or of the layer, that asked for it; no file where none did
  bool planned_leads = false;       // who would change its time changes `planned`, not `where` (a gather, a reduction, a layer's sum)
};

// Memory by what it is for; the viewer's memory track is drawn from these.
enum class MemoryKind : std::uint8_t { parameter, gathered, gradient, optimizer, activation, workspace, input };
const char* name_of(MemoryKind kind);

struct BufferInfo {
  std::string name;
  MemoryKind kind = MemoryKind::workspace;
  base::Bytes bytes = 0;  // nominal
};
struct GroupInfo {
  std::string axis;  // "tp", "dp_shard", "world"
  std::vector<base::Rank> ranks;
};
struct StreamInfo {
  std::string name;  // "compute", "fsdp", "tp", "copy"
};

// What a rank owns for the whole run; programs refer to it by id.
struct Catalogue {
  std::vector<StreamInfo> streams;
  std::vector<std::string> events;
  std::vector<BufferInfo> buffers;
  std::vector<GroupInfo> groups;
};

struct Program {
  std::vector<Op> ops;
  std::vector<Command> commands;
};

// Equal for programs that issue the same ops, of the same sizes, in the same order with the same waits.
// Groups count by axis and size, not by their members; source lines count, times do not.
std::uint64_t hash(const Program& program, const Catalogue& catalogue);

// The same without source lines, without places in scopes (OpKey::n), and without what follows from the order of
// set-up: streams, events and buffers count by when they are first used. Equal for a program that has moved to other
// files and stayed what it was.
std::uint64_t structure_hash(const Program& program, const Catalogue& catalogue);

// Equal for ranks that give their communicators the same collectives in the same order. What two ranks alone call (send, recv)
// is left out, and how much a rank brings to an all_to_all: of these ranks may differ.
std::uint64_t collective_order_hash(const Program& program, const Catalogue& catalogue);

// Why op `to` could not start before op `from` had ended (or, for host, before it was issued).
enum class EdgeKind : std::uint8_t { stream, event, host, collective, communicator, limiter, buffer_reuse };
const char* name_of(EdgeKind kind);
struct Edge {
  OpIndex from = no_op;
  OpIndex to = no_op;
  EdgeKind kind = EdgeKind::stream;
  std::uint32_t record_command = ~0u;  // of event edges: the command that recorded the awaited event
};

// All edges of one rank's program, ordered by `to`: stream order, awaited events (a wait whose reason is
// limiter or buffer_reuse gives an edge of that kind), the order of each communicator, and host waits
// (every op issued after a host wait depends on what was awaited). A wait that is relayed (a stream waits and
// records another event, with no op between) gives an edge from the op that was awaited first. Collective
// edges join ranks and are found by (group, sequence), not listed here. O(ops + commands · streams).
std::vector<Edge> edges(const Program& program);

// The edges that cross the border of two steps, `program` having been issued right after `before`: `from` is
// an op of `before`, `to` one of `program`. record_command counts through: commands of `before`, then those of
// `program` (where a wait is relayed there).
std::vector<Edge> edges_across(const Program& before, const Program& program);

}  // namespace shardbook::program
