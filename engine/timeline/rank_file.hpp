// timeline/rank_file: the events of one file go to a builder of its own.
//
// What one file needs while it is read: its rank, its base, the tracks and names it has used. A file
// knows nothing of the others, so that several are read at once; reader.cpp joins them. The order of
// keys at the top of the file doesn't matter: where traceEvents comes before the rank or the base,
// it is passed over first and read at the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/timeline/builder.hpp"
#include "engine/timeline/event.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/foreign.hpp"
#include "engine/timeline/kineto.hpp"
#include "engine/timeline/progress.hpp"

namespace shardbook::timeline {

// What one file leaves: its spans under rank `rank`, or under rank 0 where neither the file nor its
// name says one (`rank` is -1 then). Times are relative to base_ns. Numbers are the builder's.
struct FileEvents {
  TimelineBuilder builder;
  Rank rank = -1;
  std::int64_t base_ns = 0;
  bool foreign = false;                                             // the trace is not ours
  std::string run;                                                  // the id that its run wrote into each file; ""
  std::unordered_map<std::int64_t, TimelineBuilder::SpanNumber> ids;    // id in the file -> span
  struct StatedEdge {
    TimelineBuilder::SpanNumber to;
    EdgeKind kind;
    Rank from_rank;                                                 // -1 = the file's own
    std::int64_t from_id;
  };
  std::vector<StatedEdge> edges;
  std::vector<ForeignWait> waits;                                   // of traces that are not ours
};

class RankFile {
 public:
  // `bytes` may be null; else its pages are let go behind the events that were read. `meter` hears how far it is.
  RankFile(FileEvents& out, std::string_view text, std::string name, bool cut_off, FileBytes* bytes, FileMeter meter = {})
      : out_(out), builder_(out.builder), cursor_(text), name_(std::move(name)), cut_off_(cut_off), bytes_(bytes), meter_(meter) {}

  base::Status read();

 private:
  enum class Outcome { done, failed };
  Outcome read_top();
  Outcome read_events();
  bool read_distributed_info();
  bool read_devices();
  bool read_ours();
  void settle_rank();
  base::Status finish(Outcome outcome);

  void take_event();
  void take_begin();
  void take_end();
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

  FileEvents& out_;
  TimelineBuilder& builder_;
  JsonCursor cursor_;
  std::string name_;
  bool cut_off_;
  FileBytes* bytes_;
  FileMeter meter_;
  bool stopped_ = false;                                   // by who heard

  Event event_;
  std::string scratch_;
  Provenance provenance_{.rank = -1};
  bool ours_ = false, settled_ = false;
  std::optional<std::int64_t> base_ns_;
  std::optional<std::int64_t> events_at_;                  // offset of traceEvents' value
  std::map<std::int64_t, std::string> devices_;            // deviceProperties: id -> name
  std::int64_t first_device_ = absent;
  std::map<std::int64_t, std::int64_t> device_pids_;       // -> in order of appearance
  struct LocalTrack {
    TrackKind kind;
    std::int64_t pid, id;
    std::uint32_t index;
    std::int64_t name_tid;                                 // the tid whose thread_name it bears
  };
  std::vector<LocalTrack> tracks_;
  struct TrackKey {
    TrackKind kind;
    std::int64_t pid, id;
    friend bool operator==(const TrackKey&, const TrackKey&) = default;
  };
  struct HashOfKey {
    std::size_t operator()(const TrackKey& key) const {
      constexpr std::uint64_t odd = 0x9e3779b97f4a7c15ull;
      const std::uint64_t mixed = (static_cast<std::uint64_t>(key.pid) * odd ^ static_cast<std::uint64_t>(key.id)) * odd + static_cast<std::uint64_t>(key.kind);
      return mixed ^ mixed >> 32;
    }
  };
  std::unordered_map<TrackKey, std::uint32_t, HashOfKey> track_keys_;   // -> LocalTrack::index
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> thread_names_;      // (pid, tid)
  struct StatedTrack {
    TrackKind kind;
    std::int64_t id;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, StatedTrack> stated_tracks_;   // in files of ours
  std::map<std::string, std::uint32_t, std::less<>> groups_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> begun_;   // (pid, tid): offsets of open ph B
  std::int64_t event_at_ = 0;                              // offset of the event being taken
  std::int64_t events_ = 0, unreadable_ = 0, unmatched_ = 0;
};

}  // namespace shardbook::timeline
