// timeline/writer: rows in Kineto's form; see writer.hpp. Files appear whole or not at all: output.hpp.
#include "engine/timeline/writer.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/timeline/columns.hpp"
#include "engine/timeline/kineto.hpp"
#include "engine/timeline/links.hpp"
#include "engine/timeline/output.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::timeline {
namespace {

// The process that holds a rank's device rows is numbered like the rank; its host rows follow far
// behind, so that files of several ranks can be opened together.
constexpr std::int64_t host_pid_offset = 100'000;

struct SpanHash {
  std::size_t operator()(SpanRef span) const { return std::size_t{span.track} << 32 | span.index; }
};

class RankWriter {
 public:
  RankWriter(const Timeline& timeline, Rank rank, const std::string& run, Output& out)
      : timeline_(timeline), rank_(rank), run_(run), provenance_(*timeline.provenance(rank)), links_(timeline, rank), out_(out) {}

  void write() {
    number_tracks();
    number_sources();
    write_top();
    write_metadata();
    write_steps();
    for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
      if (timeline_.tracks[t].rank != rank_) continue;
      for (std::uint32_t i = 0; i < timeline_.tracks[t].size(); ++i) write_span(SpanRef{t, i});
    }
    write_counters();
    out_ << "\n]}\n";
  }

 private:
  std::int64_t pid(TrackKind kind) const { return kind == TrackKind::host ? host_pid_offset + rank_ : rank_; }

  // The tid of each track: its own number for the first lane of a stream or thread; further lanes and marks
  // get free ones, as does what has no number above 0. thread_name says which track each tid is.
  void number_tracks() {
    tids_.resize(timeline_.tracks.size());
    std::set<std::pair<std::int64_t, std::int64_t>> used;
    std::int64_t next = 1'000'000;
    for (const bool plain_ones : {true, false}) {
      for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
        const Track& track = timeline_.tracks[t];
        if (track.rank != rank_) continue;
        const bool plain = track.id > 0 && track.lane == 0 && track.kind != TrackKind::marks;
        if (plain != plain_ones) continue;
        tids_[t] = track.id;
        if (!plain) {
          while (used.contains({pid(track.kind), next})) ++next;
          tids_[t] = next;
        }
        used.insert({pid(track.kind), tids_[t]});
      }
    }
    steps_tid_ = next;
    while (used.contains({pid(TrackKind::host), steps_tid_})) ++steps_tid_;
  }

  // Spans that edges come from get a number in their file, in the order of the spans.
  void number_sources() {
    std::map<SpanRef, std::int64_t> sources;
    for (const Edge& edge : timeline_.edges) sources[edge.from] = 0;
    std::map<Rank, std::int64_t> last;
    for (auto& [span, number] : sources) number = ++last[timeline_.rank(span)];
    numbers_.insert(sources.begin(), sources.end());
    for (std::uint32_t i = 0; i < timeline_.edges.size(); ++i) {
      const Edge& edge = timeline_.edges[i];
      if (timeline_.rank(edge.to) == rank_) incoming_.emplace(edge.to, i);
    }
  }

  void write_top() {
    out_ << "{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\"rank\": " << rank_
         << ", \"world_size\": " << provenance_.world_size << ", \"backend\": \"nccl\"},\n"
         << "\"shardbook\": {\"clock\": \"" << name_of(provenance_.clock) << "\", \"profile\": ";
    out_.quoted(provenance_.profile) << ", \"device\": ";
    out_.quoted(provenance_.device) << ", \"clock_error_ns\": " << provenance_.clock_error_ns;
    if (!run_.empty()) (out_ << ", \"run\": ").quoted(run_);
    out_ << "},\n"
                                    << "\"deviceProperties\": [{\"id\": " << rank_ << ", \"name\": ";
    out_.quoted(provenance_.device) << "}],\n\"displayTimeUnit\": \"ns\",\n\"baseTimeNanoseconds\": "
                                    << timeline_.base_ns << ",\n\"traceEvents\": [\n";
  }

  // {"ph":"M", ...}: names of processes and threads.
  void metadata(std::string_view name, TrackKind kind, std::int64_t tid, std::string_view text,
                const std::string& more = "") {
    out_ << separator_ << "{\"ph\":\"M\",\"name\":\"" << name << "\",\"pid\":" << pid(kind) << ",\"tid\":" << tid
         << ",\"ts\":0,\"args\":{\"name\":";
    out_.quoted(text) << more << "}}";
    separator_ = ",\n";
  }
  void sort_index(std::string_view name, TrackKind kind, std::int64_t tid, std::int64_t index) {
    out_ << separator_ << "{\"ph\":\"M\",\"name\":\"" << name << "\",\"pid\":" << pid(kind) << ",\"tid\":" << tid
         << ",\"ts\":0,\"args\":{\"sort_index\":" << index << "}}";
  }

  void write_metadata() {
    const std::string process = base::text("rank ", rank_, " · ", clock_text(provenance_));
    metadata("process_name", TrackKind::stream, 1, process);
    sort_index("process_sort_index", TrackKind::stream, 1, 2 * rank_ + 1);
    metadata("process_name", TrackKind::host, 1, process + ", host");
    sort_index("process_sort_index", TrackKind::host, 1, 2 * rank_);
    std::int64_t index = 0;
    for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
      const Track& track = timeline_.tracks[t];
      if (track.rank != rank_) continue;
      metadata("thread_name", track.kind, tids_[t], track.name,
               base::text(",\"track_id\":", track.id, ",\"kind\":\"", name_of(track.kind), "\""));
      sort_index("thread_sort_index", track.kind, tids_[t], ++index);
    }
  }

  // One row a step, and a closing one, which HTA leaves out instead of a real one.
  void write_steps() {
    steps_tid_ = steps_tid();
    const Step* last = nullptr;
    for (const Step& step : timeline_.steps) {
      if (step.rank != rank_) continue;
      write_step(step.number, step.host_start, step.host_end);
      out_ << ",\"args\":{\"device_start_ns\":" << step.start << ",\"device_end_ns\":" << step.end << "}}";
      last = &step;
    }
    if (last == nullptr) return;
    const Nanoseconds after = std::max(last->end, last->host_end);
    write_step(last->number + 1, after, after + 1000);
    out_ << ",\"args\":{\"closing\":1}}";
  }
  // The thread that launches, so that a step holds its launches; a row of its own where that would not nest.
  std::int64_t steps_tid() const {
    for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
      const Track& track = timeline_.tracks[t];
      if (track.rank != rank_ || track.kind != TrackKind::host) continue;
      for (const Step& step : timeline_.steps) {
        if (step.rank != rank_) continue;
        for (std::size_t i = 0; i < track.size(); ++i) {
          const bool apart = track.end[i] <= step.host_start || track.start[i] >= step.host_end;
          const bool within = track.start[i] >= step.host_start && track.end[i] <= step.host_end;
          if (!apart && !within) return steps_tid_;
        }
      }
      return tids_[t];
    }
    return steps_tid_;
  }
  void write_step(std::int64_t number, Nanoseconds start, Nanoseconds end) {
    out_ << separator_ << "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" << number
         << "\",\"pid\":" << pid(TrackKind::host) << ",\"tid\":" << steps_tid_ << ",\"ts\":";
    out_.microseconds(start) << ",\"dur\":";
    out_.microseconds(end - start);
  }

  void write_span(SpanRef span) {
    const Track& track = timeline_.tracks[span.track];
    const Class cls = timeline_.cls(span);
    const std::string name = kineto_name(timeline_, span);
    const std::uint32_t correlation = timeline_.correlation(span);
    const std::string_view cat = category(track.kind, cls, name, correlation);
    out_ << separator_ << "{\"ph\":\"X\",\"cat\":\"" << cat << "\",\"name\":";
    out_.quoted(name) << ",\"pid\":" << pid(track.kind) << ",\"tid\":" << tids_[span.track] << ",\"ts\":";
    out_.microseconds(timeline_.start(span)) << ",\"dur\":";
    out_.microseconds(timeline_.end(span) - timeline_.start(span)) << ",\"args\":{";
    argument_separator_ = "";
    // Without a stream on annotations, as Kineto has it: HTA takes what has one for work.
    if (track.kind != TrackKind::host && cls != Class::annotation && cls != Class::host) {
      integer("stream", track.id);
      integer("device", rank_);
      integer("context", 1);
    }
    if (correlation != 0) {
      integer("correlation", correlation);
      integer("External id", correlation);
    }
    if (is_device_work(cls)) text("clock", name_of(provenance_.clock));
    if (timeline_.has_collective(span)) write_collective(timeline_.collective(span));
    write_detail(timeline_.detail(span));
    if (timeline_.step(span) >= 0) integer("step", timeline_.step(span));
    if (timeline_.launch_bound(span)) integer("launch_bound", 1);
    if (timeline_.label(span) != name) text("label", timeline_.label(span));
    const RowKind read_as = row_kind(cat, name);
    if (read_as.cls != cls) text("class", name_of(cls));
    write_edges(span, cls);
    out_ << "}}";
    write_flow(span, track, correlation);
  }

  void write_collective(const Collective& c) {
    const Group& group = timeline_.groups[c.group];
    const std::string_view dtype = timeline_.strings[c.dtype];
    text("Collective name", name_of(c.op));
    // Elements that go in and come out, as PyTorch counts them; the buffer's bytes stand beside it.
    const std::int64_t ranks = std::max<std::int64_t>(1, static_cast<std::int64_t>(group.ranks.size()));
    if (const Bytes element = element_bytes(dtype); element > 0) {
      const std::int64_t all = c.bytes / element;
      integer("In msg nelems", c.op == CollectiveOp::all_gather ? all / ranks : all);
      integer("Out msg nelems", c.op == CollectiveOp::reduce_scatter ? all / ranks : all);
    }
    integer("Group size", ranks);
    if (!dtype.empty()) text("dtype", dtype);
    if (const std::string_view name = timeline_.strings[group.name]; !name.empty()) text("Process Group Name", name);
    if (!group.ranks.empty()) {
      out_ << ",\"Process Group Ranks\":\"[";
      for (std::size_t i = 0; i < group.ranks.size(); ++i) out_ << (i > 0 ? ", " : "") << group.ranks[i];
      out_ << "]\"";
    }
    if (c.seq >= 0) integer("Seq", c.seq);
    integer("buffer_bytes", c.bytes);
    if (c.wait_ns >= 0) integer("wait_ns", c.wait_ns);
  }

  void write_detail(const Detail& d) {
    if (d.op != 0) text("op", timeline_.strings[d.op]);
    if (d.part != 0) text("part", timeline_.strings[d.part]);
    if (d.phase != 0) text("phase", timeline_.strings[d.phase]);
    if (d.micro_batch >= 0) integer("micro_batch", d.micro_batch);
    if (d.chunk >= 0) integer("chunk", d.chunk);
    if (d.layer >= 0) integer("layer", d.layer);
    if (d.n >= 0) integer("n", d.n);
    if (d.source.known()) text("source", line_text(timeline_, d.source));
    if (d.awaits.known()) text("awaits", line_text(timeline_, d.awaits));
    if (d.planned.known()) text("planned", line_text(timeline_, d.planned));
    if (d.planned_leads != 0) integer("planned_leads", d.planned_leads);
    if (d.flops != 0) integer("flops", d.flops);
    if (d.bytes != 0) integer("bytes", d.bytes);
  }

  void write_edges(SpanRef span, Class cls) {
    if (const auto number = numbers_.find(span); number != numbers_.end()) integer("id", number->second);
    const auto [first, last] = incoming_.equal_range(span);
    if (first == last) return;
    std::vector<std::uint32_t> edges;
    for (auto entry = first; entry != last; ++entry) edges.push_back(entry->second);
    std::sort(edges.begin(), edges.end());
    std::string words;
    for (std::uint32_t i : edges) {
      const Edge& edge = timeline_.edges[i];
      const Rank from_rank = timeline_.rank(edge.from);
      words += base::text(words.empty() ? "" : " ", name_of(edge.kind), ":", numbers_.at(edge.from),
                          from_rank == rank_ ? "" : base::text("@", from_rank));
      // The fields by which HTA finds what a stream waited for.
      const Track& from = timeline_.tracks[edge.from.track];
      if (cls == Class::sync && edge.kind == EdgeKind::event) {
        if (from.kind == TrackKind::host) integer("wait_on_cuda_event_record_corr_id", timeline_.correlation(edge.from));
        if (from.kind == TrackKind::stream) integer("wait_on_stream", from.id);
      }
    }
    text("edges", words);
  }

  // The arrow from a launch call to what it launched.
  void write_flow(SpanRef span, const Track& track, std::uint32_t correlation) {
    if (correlation == 0) return;
    const bool is_call = track.kind == TrackKind::host;
    if (is_call ? !links_.launched_by(span).valid() : !links_.launch_of(span).valid()) return;
    out_ << separator_ << "{\"ph\":\"" << (is_call ? "s" : "f") << "\",\"id\":" << correlation
         << ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":" << pid(track.kind) << ",\"tid\":" << tids_[span.track] << ",\"ts\":";
    out_.microseconds(timeline_.start(span)) << (is_call ? "}" : ",\"bp\":\"e\"}");
  }

  void write_counters() {
    for (const Counter& counter : timeline_.counters) {
      if (counter.rank != rank_) continue;
      for (std::size_t i = 0; i < counter.time.size(); ++i) {
        out_ << separator_ << "{\"ph\":\"C\",\"name\":";
        out_.quoted(counter.name) << ",\"pid\":" << pid(TrackKind::stream) << ",\"tid\":1,\"ts\":";
        out_.microseconds(counter.time[i]) << ",\"args\":{\"value\":" << counter.value[i] << "}}";
      }
    }
  }

  void integer(std::string_view key, std::int64_t value) {
    out_ << argument_separator_ << "\"" << key << "\":" << value;
    argument_separator_ = ",";
  }
  void text(std::string_view key, std::string_view value) {
    out_ << argument_separator_ << "\"" << key << "\":";
    out_.quoted(value);
    argument_separator_ = ",";
  }

  const Timeline& timeline_;
  Rank rank_;
  const std::string& run_;
  const Provenance& provenance_;
  Links links_;
  Output& out_;
  std::unordered_map<SpanRef, std::int64_t, SpanHash> numbers_;
  std::unordered_multimap<SpanRef, std::uint32_t, SpanHash> incoming_;
  std::string_view separator_ = "";
  std::string_view argument_separator_ = "";
  std::int64_t steps_tid_ = 0;
  std::vector<std::int64_t> tids_;                  // per track
};

}  // namespace

std::string kineto_name(const Timeline& timeline, SpanRef span) {
  if (timeline.tracks[span.track].kind != TrackKind::stream) return std::string(timeline.label(span));
  const CollectiveOp op = timeline.has_collective(span) ? timeline.collective(span).op : CollectiveOp::other;
  return safe_name(timeline.label(span), timeline.cls(span), op);
}

base::Status write_rank(const Timeline& timeline, Rank rank, const std::string& path, const std::string& run) {
  SHARDBOOK_CHECK(timeline.provenance(rank) != nullptr, "the timeline has no rank ", rank);
  Output out(path);
  RankWriter(timeline, rank, run, out).write();
  return out.commit();
}

base::Status write_run(const Timeline& timeline, const RunInfo& info, const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return base::Error{base::text("cannot make the folder ", folder, ": ", failure.message())};
  for (const Provenance& provenance : timeline.ranks) {
    base::Status written =
        write_rank(timeline, provenance.rank, base::text(folder, "/rank", provenance.rank, ".json"), info.id);
    if (!written) return written;
  }
  // After the rank files, for it must not be older; one of an earlier run in this folder goes.
  const std::string columns = folder + "/" + columns_name;
  if (keeps_columns(timeline.spans())) {
    base::Status written = write_columns(timeline, columns);
    if (!written) return written;
  } else {
    std::filesystem::remove(columns, failure);
  }
  return write_run_info(info, folder + "/run.json");
}

}  // namespace shardbook::timeline
