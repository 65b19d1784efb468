// timeline/rank_file: from the top of the file to tracks, steps and edges; see rank_file.hpp.
#include "engine/timeline/rank_file.hpp"

#include <algorithm>
#include <charconv>


namespace shardbook::timeline {
namespace {

// Streams of a second device that the same process drives are numbered from here.
constexpr std::int64_t device_stride = 1'000'000;
constexpr std::string_view step_name = "ProfilerStep#";

// The digits after "rank" in a file's name: "fsdp_rank12.json" -> 12.
std::optional<Rank> rank_in_name(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  std::size_t at = file.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  at += 4;
  if (at < file.size() && (file[at] == '_' || file[at] == '-')) ++at;
  Rank rank = 0;
  const auto [stopped, code] = std::from_chars(file.data() + at, file.data() + file.size(), rank);
  return code == std::errc() ? std::optional<Rank>(rank) : std::nullopt;
}

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

// Visits the keys of an object; `visit(key)` takes the value.
template <class Visit>
static bool for_each_key(JsonCursor& cursor, Visit visit) {
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  do {
    std::string_view key;
    if (!cursor.key(key) || !visit(key)) return false;
  } while (cursor.take(','));
  return cursor.take('}');
}

// --- The top of the file -------------------------------------------------------------------------

base::Status RankFile::read() {
  if (cursor_.text().empty()) return base::Error{base::text(name_, " is empty: a trace has at least one event")};
  const char first = cursor_.peek();
  if (first != '{' && first != '[') {
    return base::Error{base::text(name_, ": byte ", cursor_.offset(),
                                  " does not begin JSON; expected a Chrome or Kineto trace")};
  }
  Outcome outcome = Outcome::done;
  if (first == '[') {
    events_at_ = cursor_.offset();
  } else {
    outcome = read_top();
  }
  const bool malformed = outcome == Outcome::failed && !cursor_.at_end();
  if (malformed) return finish(outcome);
  if (!events_at_) {
    return base::Error{outcome == Outcome::failed
                           ? base::text(name_, " ends at byte ", cursor_.offset(), ", before its first event")
                           : base::text(name_, ": no \"traceEvents\" up to byte ", cursor_.offset(),
                                        "; it is JSON, but no Chrome or Kineto trace")};
  }
  base::Error error;
  if (!settle_rank(&error)) return error;
  // Events that were passed over, or that stand alone, are read now.
  if (*events_at_ >= 0) {
    if (outcome == Outcome::failed) cut_off_ = true;
    cursor_.move_to(*events_at_);
    outcome = read_events();
  }
  return finish(outcome);
}

RankFile::Outcome RankFile::read_top() {
  bool failed_in_events = false;
  const bool whole = for_each_key(cursor_, [&](std::string_view key) {
    if (key == "distributedInfo") return read_distributed_info();
    if (key == "deviceProperties") return read_devices();
    if (key == "shardbook") return read_ours();
    if (key == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      if (!cursor_.integer(base)) return false;
      base_ns_ = base;
      return true;
    }
    if (key == "traceEvents" && cursor_.peek() == '[') {
      events_at_ = cursor_.offset();
      const bool ready = provenance_.rank >= 0 && base_ns_;
      if (!ready) return cursor_.skip_value();
      base::Error ignored;
      if (!settle_rank(&ignored)) return cursor_.skip_value();   // read() settles again and reports
      events_at_ = -1;                                           // read in place
      failed_in_events = read_events() == Outcome::failed;
      return !failed_in_events;
    }
    return cursor_.skip_value();
  });
  return whole ? Outcome::done : Outcome::failed;
}

bool RankFile::read_distributed_info() {
  if (cursor_.peek() != '{') return cursor_.skip_value();
  return for_each_key(cursor_, [&](std::string_view key) {
    std::int64_t value = 0;
    if (key == "rank" || key == "world_size") {
      if (!cursor_.integer(value)) return false;
      if (key == "rank") provenance_.rank = narrowed<Rank>(value);
      else provenance_.world_size = narrowed<int>(value);
      return true;
    }
    return cursor_.skip_value();
  });
}

bool RankFile::read_devices() {
  if (cursor_.peek() != '[') return cursor_.skip_value();
  if (!cursor_.take('[')) return false;
  if (cursor_.take(']')) return true;
  do {
    std::int64_t id = 0;
    std::string device;
    if (cursor_.peek() != '{') return cursor_.skip_value() && cursor_.take(']');
    const bool read = for_each_key(cursor_, [&](std::string_view key) {
      if (key == "id") return cursor_.integer(id);
      RawString text;
      if (key == "name" && cursor_.peek() == '"') {
        if (!cursor_.string(text)) return false;
        device = decode(text, scratch_);
        return true;
      }
      return cursor_.skip_value();
    });
    if (!read) return false;
    devices_[id] = device;
  } while (cursor_.take(','));
  return cursor_.take(']');
}

bool RankFile::read_ours() {
  ours_ = true;
  if (cursor_.peek() != '{') return cursor_.skip_value();
  return for_each_key(cursor_, [&](std::string_view key) {
    RawString text;
    if (key == "clock_error_ns") return cursor_.integer(provenance_.clock_error_ns);
    if (key != "clock" && key != "profile" && key != "device") return cursor_.skip_value();
    if (!cursor_.string(text)) return false;
    const std::string value(decode(text, scratch_));
    if (key == "profile") provenance_.profile = value;
    if (key == "device") provenance_.device = value;
    if (key == "clock") {
      for (Clock clock : {Clock::measured, Clock::modelled, Clock::wall}) {
        if (value == name_of(clock)) provenance_.clock = clock;
      }
    }
    return true;
  });
}

bool RankFile::settle_rank(base::Error* error) {
  // The file's own word, else its name, else the first number that is free.
  if (provenance_.rank < 0) {
    if (const std::optional<Rank> named = rank_in_name(name_)) {
      provenance_.rank = *named;
    } else {
      provenance_.rank = 0;
      while (std::count(state_.ranks.begin(), state_.ranks.end(), provenance_.rank) > 0) ++provenance_.rank;
    }
  }
  if (std::count(state_.ranks.begin(), state_.ranks.end(), provenance_.rank) > 0) {
    error->message = base::text(name_, " says that it is rank ", provenance_.rank,
                                ", which another file already is; give one file a rank");
    return false;
  }
  const std::int64_t base = base_ns_.value_or(0);
  if (!state_.base_ns) {
    state_.base_ns = base;
    builder_.set_base_ns(base);
  }
  shift_ns_ = base - *state_.base_ns;
  return true;
}

base::Status RankFile::finish(Outcome outcome) {
  if (outcome == Outcome::failed) {
    if (!cursor_.at_end()) {
      return base::Error{base::text(name_, ": malformed JSON at byte ", cursor_.offset(),
                                    events_ > 0 ? base::text(", in event ", events_ + 1) : "")};
    }
    if (events_ == 0) {
      return base::Error{base::text(name_, " ends at byte ", cursor_.offset(), ", before its first whole event")};
    }
  }
  if (outcome == Outcome::failed || cut_off_) {
    builder_.add_banner(base::text(name_, " is cut off at byte ", cursor_.offset(), ": shown up to its last whole event (",
                                   events_, " events)"));
  }
  if (halves_ > 0) {
    builder_.add_banner(base::text(name_, ": ", halves_, " begin and end events (ph B, E) were passed over; only complete spans (ph X) are read"));
  }
  if (unreadable_ > 0) {
    builder_.add_banner(base::text(name_, ": ", unreadable_, " events without a time or with a negative duration were passed over"));
  }

  // Names of tracks, whose metadata may come after their spans.
  for (const LocalTrack& track : tracks_) {
    const auto found = thread_names_.find({track.pid, track.name_tid});
    std::string name = found != thread_names_.end() ? found->second : "";
    while (!name.empty() && name.back() == ' ') name.pop_back();
    if (name.empty()) {
      name = base::text(track.kind == TrackKind::host ? "thread " : "stream ", track.id,
                        track.kind == TrackKind::marks ? " marks" : "");
    }
    builder_.track(provenance_.rank, track.kind, track.id, name);
  }

  // Where the times come from. Kineto's device rows are CUPTI's, so a trace that has some is measured.
  provenance_.foreign = !ours_;
  if (!ours_) {
    if (first_device_ != absent) provenance_.clock = Clock::measured;
    const auto device = devices_.find(first_device_);
    if (device != devices_.end()) provenance_.device = device->second;
    state_.foreign.push_back(provenance_.rank);
  }
  provenance_.path = name_;
  state_.ranks.push_back(provenance_.rank);
  builder_.add_rank(provenance_);
  return base::Done{};
}

// --- The events ------------------------------------------------------------------------------------

RankFile::Outcome RankFile::read_events() {
  if (!cursor_.take('[')) return Outcome::failed;
  if (cursor_.take(']')) return Outcome::done;
  do {
    if (cursor_.peek() == ']') break;          // a comma before the end: Chrome's own tools write it
    if (!parse_event(cursor_, event_)) return Outcome::failed;
    ++events_;
    take_event();
  } while (cursor_.take(','));
  return cursor_.take(']') ? Outcome::done : Outcome::failed;
}

void RankFile::take_event() {
  switch (event_.phase) {
    case 'X': return take_span();
    case 'M': return take_metadata();
    case 'C':
      if (event_.ts != absent && event_.args.value != absent) {
        builder_.add_counter(provenance_.rank, decode(event_.name, scratch_), event_.ts + shift_ns_, event_.args.value);
      }
      return;
    case 'B':
    case 'E': ++halves_; return;
    default: return;                           // flows are in the correlations; instants have no length
  }
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
  if (event_.ts == absent || event_.dur < 0) {
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
  span.start = event_.ts + shift_ns_;
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
    if (args.id > 0) state_.ids[id_key(provenance_.rank, args.id)] = number;
    if (!args.edges.raw.empty()) take_edges(number, args.edges.raw);
  } else if (args.wait_on_record > 0) {
    state_.waits.push_back({number, args.wait_on_stream, narrowed<std::uint32_t>(args.wait_on_record)});
  }
}

void RankFile::take_step(std::string_view name) {
  const EventArgs& args = event_.args;
  if (args.closing > 0) return;                // the one step more than there are, see writer.hpp
  Step step;
  step.rank = provenance_.rank;
  const std::string_view digits = name.substr(step_name.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
  step.host_start = event_.ts + shift_ns_;
  step.host_end = step.host_start + event_.dur;
  const bool stated = args.device_start_ns != absent && args.device_end_ns != absent;
  step.start = stated ? args.device_start_ns + shift_ns_ : step.host_start;
  step.end = stated ? args.device_end_ns + shift_ns_ : step.host_end;
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
    auto device = std::find(device_pids_.begin(), device_pids_.end(), pid);
    if (device == device_pids_.end()) device = device_pids_.insert(device, pid);
    id += (device - device_pids_.begin()) * device_stride;
  }
  for (const LocalTrack& track : tracks_) {
    if (track.id == id && track.kind == kind.track && track.pid == pid) return track.index;
  }
  const std::uint32_t index = builder_.track(provenance_.rank, kind.track, id);
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
  collective.bytes = args.buffer_bytes != absent
                         ? args.buffer_bytes
                         : std::max(args.in_elements, args.out_elements) * element_bytes(args.dtype.raw);
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
    Rank rank = provenance_.rank;
    const char* last = word.data() + word.size();
    const auto [stopped, code] = std::from_chars(word.data() + colon + 1, last, id);
    if (stopped != last && *stopped == '@') std::from_chars(stopped + 1, last, rank);
    if (kind && code == std::errc()) state_.edges.push_back({to, *kind, id_key(rank, id)});
  }
}

}  // namespace shardbook::timeline
