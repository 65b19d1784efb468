// timeline/rank_events: each event of a file to its track, step and edges; see rank_file.hpp.
#include <algorithm>
#include <charconv>

#include "engine/timeline/rank_file.hpp"

namespace shardbook::timeline {
namespace {

// Streams of a second device that the same process drives are numbered from here.
constexpr std::int64_t device_stride = 1'000'000;
constexpr std::string_view step_name = "ProfilerStep#";

// Times beyond these are damage: 6 years before the base, 63 after it (old traces count from 1970), 3 years long.
constexpr Nanoseconds earliest = -200'000'000'000'000'000;
constexpr Nanoseconds farthest = 2'000'000'000'000'000'000;
constexpr Nanoseconds longest = 100'000'000'000'000'000;
bool believable(Nanoseconds time) { return time >= earliest && time <= farthest; }

std::optional<EdgeKind> edge_kind(std::string_view name) {
  for (EdgeKind kind : {EdgeKind::stream, EdgeKind::event, EdgeKind::host, EdgeKind::collective,
                        EdgeKind::communicator, EdgeKind::limiter, EdgeKind::buffer}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<Class> class_named(std::string_view name) {
  for (Class cls : {Class::compute, Class::communication, Class::memory, Class::sync, Class::host, Class::annotation}) {
    if (name == name_of(cls)) return cls;
  }
  return std::nullopt;
}

// "[0, 1, 2]" -> the numbers; nothing if the list was shortened with dots, as PyTorch does.
std::vector<Rank> ranks_in(std::string_view text) {
  std::vector<Rank> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  for (std::size_t at = 0; at < text.size();) {
    Rank rank = 0;
    const auto [stopped, code] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (code == std::errc()) {
      ranks.push_back(rank);
      at = static_cast<std::size_t>(stopped - text.data());
    } else {
      ++at;
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

template <class Integer>
Integer narrowed(std::int64_t value) {
  return static_cast<Integer>(value);
}

}  // namespace

RankFile::Outcome RankFile::read_events() {
  if (!cursor_.take('[')) return Outcome::failed;
  if (cursor_.take(']')) return Outcome::done;
  do {
    if (cursor_.peek() == ']') break;          // a comma before the end: Chrome's own tools write it
    event_at_ = cursor_.offset();
    if (!parse_event(cursor_, event_)) return Outcome::failed;
    ++events_;
    take_event();
    if (bytes_ != nullptr) bytes_->read_up_to(cursor_.offset());
    stopped_ = !meter_.at(cursor_.offset(), static_cast<std::int64_t>(cursor_.text().size()));
    if (stopped_) return Outcome::failed;
  } while (cursor_.take(','));
  return cursor_.take(']') ? Outcome::done : Outcome::failed;
}

void RankFile::take_event() {
  switch (event_.phase) {
    case 'X': return take_span();
    case 'M': return take_metadata();
    case 'C':
      if (believable(event_.ts) && event_.args.value != absent) {
        builder_.add_counter(provenance_.rank, decode(event_.name, scratch_), event_.ts, event_.args.value);
      }
      return;
    case 'B': return take_begin();
    case 'E': return take_end();
    default: return;                           // flows are in the correlations; instants have no length
  }
}

// Spans in two halves: an end closes the last begin of its thread that is still open, and may add
// arguments (Chrome's trace event format, "Duration Events"). Of what is open only the place in the file is
// kept, and read again: events that never end cost 8 bytes each.
void RankFile::take_begin() {
  if (believable(event_.ts)) begun_[{event_.pid, event_.tid}].push_back(event_at_);
  else ++unreadable_;
}

void RankFile::take_end() {
  const auto open = begun_.find({event_.pid, event_.tid});
  if (open == begun_.end() || open->second.empty()) {
    ++unmatched_;
    return;
  }
  JsonCursor again(cursor_.text());
  again.move_to(open->second.back());
  open->second.pop_back();
  Event whole;
  if (!parse_event(again, whole)) return;
  whole.dur = believable(event_.ts) ? event_.ts - whole.ts : absent;
  merge_args(whole.args, event_.args);
  event_ = whole;
  take_span();
}

void RankFile::take_metadata() {
  if (event_.name.raw != "thread_name" || event_.pid == absent || event_.tid == absent) return;
  const EventArgs& args = event_.args;
  thread_names_[{event_.pid, event_.tid}] = decode(args.name, scratch_);
  if (args.track_id == absent) return;
  for (TrackKind kind : {TrackKind::stream, TrackKind::host, TrackKind::marks}) {
    if (args.kind.raw == name_of(kind)) stated_tracks_[{event_.pid, event_.tid}] = {kind, args.track_id};
  }
}

void RankFile::take_span() {
  const std::string_view cat = event_.cat.raw;
  if (cat == "Trace") return;                  // PyTorch's row for the profiler itself
  if (!believable(event_.ts) || event_.dur < 0 || event_.dur > longest) {
    ++unreadable_;
    return;
  }
  const std::uint32_t name = intern(event_.name);
  const std::string_view name_text = builder_.strings()[name];
  if (cat == "user_annotation" && name_text.starts_with(step_name)) return take_step(name_text);

  const EventArgs& args = event_.args;
  RowKind kind = row_kind(cat, name_text);
  if (ours_ && !args.cls.raw.empty()) kind.cls = class_named(args.cls.raw).value_or(kind.cls);
  NewSpan span;
  span.start = event_.ts;
  span.end = span.start + event_.dur;
  span.cls = kind.cls;
  span.label = args.label.raw.empty() ? name : intern(args.label);
  span.correlation = narrowed<std::uint32_t>(args.correlation);
  span.step = narrowed<std::int32_t>(args.step);
  span.launch_bound = args.launch_bound > 0;
  const std::uint32_t track = track_of(kind);
  if (ours_ || kind.track == TrackKind::stream) span.detail = detail_of(args, kind.cls);
  if (kind.cls == Class::communication) span.collective = collective_of(builder_.strings()[name]);
  const TimelineBuilder::SpanNumber number = builder_.add(track, span);

  if (ours_) {
    if (args.id > 0) out_.ids[args.id] = number;
    if (!args.edges.raw.empty()) take_edges(number, args.edges.raw);
  } else if (args.wait_on_record > 0) {
    out_.waits.push_back({number, args.wait_on_stream, narrowed<std::uint32_t>(args.wait_on_record)});
  }
}

void RankFile::take_step(std::string_view name) {
  const EventArgs& args = event_.args;
  if (args.closing > 0) return;                // the one step more than there are, see writer.hpp
  Step step;
  step.rank = provenance_.rank;
  const std::string_view digits = name.substr(step_name.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
  step.host_start = event_.ts;
  step.host_end = step.host_start + event_.dur;
  const bool stated = believable(args.device_start_ns) && believable(args.device_end_ns);
  step.start = stated ? args.device_start_ns : step.host_start;
  step.end = stated ? args.device_end_ns : step.host_end;
  builder_.add_step(step);
}

std::uint32_t RankFile::track_of(RowKind kind) {
  // A device row is named by its stream; a host row by its thread; a row of ours by what the file states.
  const std::int64_t pid = event_.pid == absent ? 0 : event_.pid;
  const std::int64_t tid = event_.tid == absent ? 1 : event_.tid;
  std::int64_t id = tid;
  std::int64_t name_tid = tid;
  if (const auto stated = stated_tracks_.find({pid, tid}); stated != stated_tracks_.end()) {
    kind.track = stated->second.kind;
    id = stated->second.id;
  } else if (kind.track != TrackKind::host) {
    if (event_.args.stream != absent) id = event_.args.stream;
    name_tid = id;
    if (event_.args.device != absent && first_device_ == absent) first_device_ = event_.args.device;
    // One process may drive several devices, whose streams have the same numbers.
    const std::int64_t ordinal = device_pids_.try_emplace(pid, static_cast<std::int64_t>(device_pids_.size())).first->second;
    if (ordinal > 0 && believable(id)) id += ordinal * device_stride;
  }
  const TrackKey key{kind.track, pid, id};
  const auto found = track_keys_.find(key);
  if (found != track_keys_.end()) return found->second;
  const std::uint32_t index = builder_.track(provenance_.rank, kind.track, id);
  track_keys_.emplace(key, index);
  tracks_.push_back({kind.track, pid, id, index, name_tid});
  return index;
}

// --- What a span carries --------------------------------------------------------------------------

Line RankFile::line_of(RawString text) {
  const std::string_view whole = decode(text, scratch_);
  const std::size_t colon = whole.rfind(':');
  Line line;
  if (colon == std::string_view::npos) return line;
  std::from_chars(whole.data() + colon + 1, whole.data() + whole.size(), line.line);
  line.file = builder_.intern(whole.substr(0, colon));
  return line;
}

std::uint32_t RankFile::detail_of(const EventArgs& args, Class cls) {
  Detail detail;
  if (cls == Class::memory || ours_) detail.bytes = std::max<std::int64_t>(args.bytes, 0);
  if (args.bytes == absent) detail.bytes = 0;
  if (ours_) {
    detail.op = intern(args.op);
    detail.part = intern(args.part);
    detail.phase = intern(args.phase);
    detail.micro_batch = narrowed<std::int32_t>(args.micro_batch);
    detail.chunk = narrowed<std::int32_t>(args.chunk);
    detail.layer = narrowed<std::int32_t>(args.layer);
    detail.n = narrowed<std::int32_t>(args.n);
    detail.flops = args.flops;
    if (!args.source.raw.empty()) detail.source = line_of(args.source);
    if (!args.awaits.raw.empty()) detail.awaits = line_of(args.awaits);
    if (!args.planned.raw.empty()) detail.planned = line_of(args.planned);
    detail.planned_leads = args.planned_leads == 1;
  }
  return builder_.detail(detail);
}

std::uint32_t RankFile::group_of(const EventArgs& args) {
  const std::string key = std::string(args.group.raw) + "\n" + std::string(args.group_ranks.raw);
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  const std::string name(decode(args.group, scratch_));
  const std::uint32_t group = builder_.group(name, ranks_in(args.group_ranks.raw));
  groups_.emplace(key, group);
  return group;
}

std::uint32_t RankFile::collective_of(std::string_view name) {
  const EventArgs& args = event_.args;
  Collective collective;
  collective.op = collective_op(args.collective.raw);
  if (collective.op == CollectiveOp::other) collective.op = collective_op(name);
  collective.group = group_of(args);
  collective.seq = args.seq;
  collective.dtype = intern(args.dtype);
  collective.wait_ns = args.wait_ns;
  collective.bytes = args.buffer_bytes;
  if (args.buffer_bytes == absent) {
    const std::int64_t elements = std::max(args.in_elements, args.out_elements);
    if (__builtin_mul_overflow(elements, element_bytes(args.dtype.raw), &collective.bytes)) collective.bytes = 0;
  }
  return builder_.collective(collective);
}

// "event:12 limiter:13 collective:4@3": kind, id of the span it comes from, and its rank if another.
void RankFile::take_edges(TimelineBuilder::SpanNumber to, std::string_view text) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t colon = word.find(':');
    if (colon == std::string_view::npos) continue;
    const std::optional<EdgeKind> kind = edge_kind(word.substr(0, colon));
    std::int64_t id = 0;
    Rank rank = -1;
    const char* last = word.data() + word.size();
    const auto [stopped, code] = std::from_chars(word.data() + colon + 1, last, id);
    if (stopped != last && *stopped == '@') std::from_chars(stopped + 1, last, rank);
    if (kind && code == std::errc()) out_.edges.push_back({to, *kind, rank, id});
  }
}

}  // namespace shardbook::timeline
