// timeline/rank_file: the events of one file go to a builder.
//
// What one file needs while it is read: its rank, its base, the tracks and names it has used. The
// order of keys at the top of the file doesn't matter: where traceEvents comes before the rank or
// the base, it is passed over first and read at the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/timeline/builder.hpp"
#include "engine/timeline/event.hpp"
#include "engine/timeline/foreign.hpp"
#include "engine/timeline/kineto.hpp"

namespace shardbook::timeline {

// What all files of one timeline share while they are read.
struct ReadState {
  TimelineBuilder builder;
  std::optional<std::int64_t> base_ns;                              // of the first file
  std::vector<Rank> ranks;                                          // read so far
  std::unordered_map<std::uint64_t, TimelineBuilder::SpanNumber> ids;   // (rank, id in its file) -> span
  struct StatedEdge {
    TimelineBuilder::SpanNumber to;
    EdgeKind kind;
    std::uint64_t from;                                             // a key of ids
  };
  std::vector<StatedEdge> edges;
  std::vector<ForeignWait> waits;                                   // of traces that are not ours
  std::vector<Rank> foreign;                                        // ranks whose trace is not ours
};

constexpr std::uint64_t id_key(Rank rank, std::int64_t id) {
  return static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(id);
}

class RankFile {
 public:
  RankFile(ReadState& state, std::string_view bytes, std::string name, bool cut_off)
      : state_(state), builder_(state.builder), cursor_(bytes), name_(std::move(name)), cut_off_(cut_off) {}

  base::Status read();

 private:
  enum class Outcome { done, failed };
  Outcome read_top();
  Outcome read_events();
  bool read_distributed_info();
  bool read_devices();
  bool read_ours();
  bool settle_rank(base::Error* error);
  base::Status finish(Outcome outcome);

  void take_event();
  void take_span();
  void take_metadata();
  void take_step(std::string_view name);
  std::uint32_t track_of(RowKind kind);
  std::uint32_t detail_of(const EventArgs& args, Class cls);
  std::uint32_t collective_of(std::string_view name);
  std::uint32_t group_of(const EventArgs& args);
  void take_edges(TimelineBuilder::SpanNumber to, std::string_view text);
  Line line_of(RawString text);
  std::uint32_t intern(RawString text) { return text.raw.empty() ? 0 : builder_.intern(decode(text, scratch_)); }

  ReadState& state_;
  TimelineBuilder& builder_;
  JsonCursor cursor_;
  std::string name_;
  bool cut_off_;

  Event event_;
  std::string scratch_;
  Provenance provenance_{.rank = -1};
  bool ours_ = false;
  std::optional<std::int64_t> base_ns_;
  std::int64_t shift_ns_ = 0;
  std::optional<std::int64_t> events_at_;                  // offset of traceEvents' value
  std::map<std::int64_t, std::string> devices_;            // deviceProperties: id -> name
  std::int64_t first_device_ = absent;
  std::vector<std::int64_t> device_pids_;                  // in order of appearance
  struct LocalTrack {
    TrackKind kind;
    std::int64_t pid, id;
    std::uint32_t index;
    std::int64_t name_tid;                                 // the tid whose thread_name it bears
  };
  std::vector<LocalTrack> tracks_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> thread_names_;      // (pid, tid)
  struct StatedTrack {
    TrackKind kind;
    std::int64_t id;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, StatedTrack> stated_tracks_;   // in files of ours
  std::map<std::string, std::uint32_t, std::less<>> groups_;
  std::int64_t events_ = 0, unreadable_ = 0, halves_ = 0;
};

}  // namespace shardbook::timeline
