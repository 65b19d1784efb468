// timeline/rank_file: the top of a file, and its end; see rank_file.hpp. Its events: rank_events.cpp.
#include "engine/timeline/rank_file.hpp"

#include <algorithm>
#include <charconv>

namespace shardbook::timeline {
namespace {

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
  settle_rank();
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
      constexpr std::int64_t year_2042 = 2'300'000'000'000'000'000;
      if (!cursor_.integer(base) || base < 0 || base > year_2042) return false;
      base_ns_ = base;
      return true;
    }
    if (key == "traceEvents" && cursor_.peek() == '[') {
      events_at_ = cursor_.offset();
      const bool ready = provenance_.rank >= 0 && base_ns_;
      if (!ready) return cursor_.skip_value();
      settle_rank();
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
      // Said again after the events, a rank comes too late: they have one.
      if (key == "world_size") provenance_.world_size = static_cast<int>(value);
      else if (!settled_) provenance_.rank = static_cast<Rank>(value);
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
    if (key != "clock" && key != "profile" && key != "device" && key != "run") return cursor_.skip_value();
    if (!cursor_.string(text)) return false;
    const std::string value(decode(text, scratch_));
    if (key == "run") out_.run = value;
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

void RankFile::settle_rank() {
  if (settled_) return;
  settled_ = true;
  // The file's own word, else its name; else reader.cpp gives it a number that is free.
  if (provenance_.rank < 0) provenance_.rank = rank_in_name(name_).value_or(-1);
  out_.rank = provenance_.rank;
  provenance_.rank = std::max(provenance_.rank, 0);
  out_.base_ns = base_ns_.value_or(0);
}

base::Status RankFile::finish(Outcome outcome) {
  if (stopped_) return base::Error{base::text("reading ", name_, " was stopped")};
  if (outcome == Outcome::failed) {
    if (!cursor_.at_end()) {
      return base::Error{base::text(name_, cursor_.too_large() ? ": a number that is larger than any time or size at byte " : ": malformed JSON at byte ", cursor_.offset(),
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
  for (const auto& [thread, events] : begun_) unmatched_ += static_cast<std::int64_t>(events.size());
  if (unmatched_ > 0) {
    builder_.add_banner(base::text(name_, ": ", unmatched_, " begin or end events (ph B, E) without their other half were passed over"));
  }
  if (unreadable_ > 0) {
    builder_.add_banner(base::text(name_, ": ", unreadable_, " events without a time, or with an impossible one, were passed over"));
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
  }
  out_.foreign = !ours_;
  provenance_.path = name_;
  builder_.add_rank(provenance_);
  return base::Done{};
}

}  // namespace shardbook::timeline
