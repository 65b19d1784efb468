// timeline/event: fields by key; see event.hpp.
#include "engine/timeline/event.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace shardbook::timeline {
namespace {

using IntegerField = std::int64_t EventArgs::*;
using TextField = RawString EventArgs::*;

struct Key {
  std::string_view name;
  IntegerField integer = nullptr;
  TextField text = nullptr;
};

// Sorted by length of name, so that a key is compared with the few that are as long.
constexpr std::array<Key, 39> keys{{
    {"n", &EventArgs::n},
    {"op", nullptr, &EventArgs::op},
    {"id", &EventArgs::id},
    {"Seq", &EventArgs::seq},
    {"step", &EventArgs::step},
    {"name", nullptr, &EventArgs::name},
    {"kind", nullptr, &EventArgs::kind},
    {"part", nullptr, &EventArgs::part},
    {"bytes", &EventArgs::bytes},
    {"dtype", nullptr, &EventArgs::dtype},
    {"layer", &EventArgs::layer},
    {"phase", nullptr, &EventArgs::phase},
    {"chunk", &EventArgs::chunk},
    {"flops", &EventArgs::flops},
    {"label", nullptr, &EventArgs::label},
    {"class", nullptr, &EventArgs::cls},
    {"edges", nullptr, &EventArgs::edges},
    {"value", &EventArgs::value},
    {"stream", &EventArgs::stream},
    {"device", &EventArgs::device},
    {"source", nullptr, &EventArgs::source},
    {"awaits", nullptr, &EventArgs::awaits},
    {"wait_ns", &EventArgs::wait_ns},
    {"closing", &EventArgs::closing},
    {"planned", nullptr, &EventArgs::planned},
    {"track_id", &EventArgs::track_id},
    {"correlation", &EventArgs::correlation},
    {"micro_batch", &EventArgs::micro_batch},
    {"buffer_bytes", &EventArgs::buffer_bytes},
    {"launch_bound", &EventArgs::launch_bound},
    {"planned_leads", &EventArgs::planned_leads},
    {"In msg nelems", &EventArgs::in_elements},
    {"device_end_ns", &EventArgs::device_end_ns},
    {"Out msg nelems", &EventArgs::out_elements},
    {"wait_on_stream", &EventArgs::wait_on_stream},
    {"Collective name", nullptr, &EventArgs::collective},
    {"device_start_ns", &EventArgs::device_start_ns},
    {"Process Group Name", nullptr, &EventArgs::group},
    {"Process Group Ranks", nullptr, &EventArgs::group_ranks},
}};
constexpr std::string_view wait_on_record_key = "wait_on_cuda_event_record_corr_id";

// first_of_length[n] .. first_of_length[n + 1]: the keys of n characters.
constexpr std::size_t longest_key = 20;
constexpr std::array<std::uint8_t, longest_key + 2> first_of_length = [] {
  std::array<std::uint8_t, longest_key + 2> first{};
  for (std::size_t length = 0; length < first.size(); ++length) {
    std::uint8_t i = 0;
    while (i < keys.size() && keys[i].name.size() < length) ++i;
    first[length] = i;
  }
  return first;
}();

const Key* find_key(std::string_view name) {
  if (name.empty() || name.size() > longest_key) return nullptr;
  for (std::size_t i = first_of_length[name.size()]; i < first_of_length[name.size() + 1]; ++i) {
    // First and last character tell nearly all keys apart without a call.
    const std::string_view known = keys[i].name;
    if (known.front() == name.front() && known.back() == name.back() && known == name) return &keys[i];
  }
  return nullptr;
}

// name == literal, where the length is known to the compiler.
template <std::size_t size>
bool is(std::string_view name, const char (&literal)[size]) {
  return name.size() == size - 1 && std::memcmp(name.data(), literal, size - 1) == 0;
}

// An integer, or nothing (left as it is) where another kind of value stands.
bool integer_or_skip(JsonCursor& cursor, std::int64_t& value) {
  const char next = cursor.peek();
  if (next == '-' || next == '"' || (next >= '0' && next <= '9')) {
    const std::int64_t before = cursor.offset();
    if (cursor.integer(value)) return true;
    if (cursor.at_end()) return false;
    cursor.move_to(before);
  }
  return cursor.skip_value();
}

// The text of a string; of any other value its text in the file (a list of ranks).
bool text_of(JsonCursor& cursor, std::string_view whole, RawString& value) {
  if (cursor.peek() == '"') return cursor.string(value);
  const std::int64_t first = cursor.offset();
  if (!cursor.skip_value()) return false;
  value = {whole.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(cursor.offset() - first)), false};
  return true;
}

bool parse_args(JsonCursor& cursor, EventArgs& args) {
  if (cursor.peek() != '{') return cursor.skip_value();
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  do {
    std::string_view name;
    if (!cursor.key(name)) return false;
    bool read = true;
    if (const Key* key = find_key(name)) {
      read = key->integer != nullptr ? integer_or_skip(cursor, args.*(key->integer))
                                     : text_of(cursor, cursor.text(), args.*(key->text));
    } else if (name == wait_on_record_key) {
      read = integer_or_skip(cursor, args.wait_on_record);
    } else {
      read = cursor.skip_value();
    }
    if (!read) return false;
  } while (cursor.take(','));
  return cursor.take('}');
}

}  // namespace

void merge_args(EventArgs& args, const EventArgs& from) {
  static constexpr EventArgs untouched{};
  for (const Key& key : keys) {
    if (key.integer != nullptr && from.*(key.integer) != untouched.*(key.integer)) args.*(key.integer) = from.*(key.integer);
    if (key.text != nullptr && !(from.*(key.text)).raw.empty()) args.*(key.text) = from.*(key.text);
  }
  if (from.wait_on_record != 0) args.wait_on_record = from.wait_on_record;
}

bool parse_event(JsonCursor& cursor, Event& event) {
  event = Event{};
  if (!cursor.take('{')) return false;
  if (cursor.take('}')) return true;
  do {
    std::string_view name;
    if (!cursor.key(name)) return false;
    bool read = true;
    RawString text;
    if (is(name, "ph")) {
      read = cursor.string(text);
      if (read && !text.raw.empty()) event.phase = text.raw[0];
    } else if (is(name, "cat")) {
      read = text_of(cursor, cursor.text(), event.cat);
    } else if (is(name, "name")) {
      read = text_of(cursor, cursor.text(), event.name);
    } else if (is(name, "pid")) {
      read = integer_or_skip(cursor, event.pid);
    } else if (is(name, "tid")) {
      read = integer_or_skip(cursor, event.tid);
    } else if (is(name, "ts")) {
      read = cursor.microseconds(event.ts);
    } else if (is(name, "dur")) {
      read = cursor.microseconds(event.dur);
    } else if (is(name, "args")) {
      read = parse_args(cursor, event.args);
    } else {
      read = cursor.skip_value();
    }
    if (!read) return false;
  } while (cursor.take(','));
  return cursor.take('}');
}

}  // namespace shardbook::timeline
