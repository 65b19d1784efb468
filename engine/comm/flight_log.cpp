#include "engine/comm/flight_log.hpp"

#include <algorithm>

#include "engine/program/recorder.hpp"

namespace shardbook::comm {

using check::CallState;
using program::is_pair;
using program::OpKind;

namespace {

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

// What ranks of one group call it, whoever they are.
std::uint64_t name_of_group(const std::string& axis, const std::vector<base::Rank>& ranks) {
  std::uint64_t hash = 1;
  for (const char letter : axis) hash = mixed(hash, static_cast<unsigned char>(letter));
  for (const base::Rank rank : ranks) hash = mixed(hash, static_cast<std::uint64_t>(rank));
  return hash;
}

}  // namespace

FlightLog::FlightLog(std::string axis, std::vector<base::Rank> ranks, int index_of_me)
    : axis_(std::move(axis)), ranks_(std::move(ranks)), what_(name_of_group(axis_, ranks_)), parts_now_(2 * ranks_.size()), me_(static_cast<std::size_t>(index_of_me)),
      pairs_(ranks_.size()), ring_(kept), parts_of_(parts_kept), parts_(parts_kept * 2 * ranks_.size()), claimed_steps_(claims_kept), claimed_values_(claims_kept * claimed_places()) {
  for (auto& step : claimed_steps_) step.store(-1, std::memory_order_relaxed);
}

void FlightLog::write(std::uint64_t ticket, const What& what) {
  Entry& to = entry(ticket);
  const auto set = [](auto& field, auto value) { field.store(value, std::memory_order_release); };
  to.ticket.store(no_ticket, std::memory_order_relaxed);
  set(to.number, what.number);
  set(to.small, static_cast<std::uint64_t>(what.kind) | static_cast<std::uint64_t>(what.dtype) << 8 | static_cast<std::uint64_t>(what.reduction) << 16 |
                    static_cast<std::uint64_t>(what.phase) << 24 | static_cast<std::uint64_t>(static_cast<std::uint16_t>(what.layer)) << 32 |
                    static_cast<std::uint64_t>(static_cast<std::uint16_t>(what.micro_batch)) << 48);
  set(to.graph, static_cast<std::uint64_t>(what.in_graph) << 32 | what.graph_calls);
  set(to.parts, what.parts);
  set(to.stream, static_cast<std::uint32_t>(what.stream));
  set(to.peer, what.peer);
  set(to.line, what.line);
  set(to.bytes, what.bytes);
  set(to.step, what.step);
  set(to.name, what.name);
  set(to.part, what.part);
  set(to.file, what.file);
  set(to.at, what.at);
  set(to.ticket, ticket);
}

std::optional<FlightLog::What> FlightLog::read(std::uint64_t ticket) const {
  const Entry& from = entry(ticket);
  if (from.ticket.load(std::memory_order_acquire) != ticket) return std::nullopt;
  const auto get = [](const auto& field) { return field.load(std::memory_order_acquire); };
  const std::uint64_t small = get(from.small), graph = get(from.graph);
  What what{get(from.number), static_cast<OpKind>(small & 255), static_cast<base::DType>(small >> 8 & 255), static_cast<std::uint8_t>(small >> 16),
            static_cast<program::Phase>(small >> 24 & 255), static_cast<std::int16_t>(small >> 32 & 65535), static_cast<std::int16_t>(small >> 48), get(from.peer), get(from.bytes),
            get(from.step), get(from.name), get(from.part), get(from.file), get(from.line), get(from.at), static_cast<std::uint32_t>(graph >> 32), static_cast<std::uint32_t>(graph), get(from.parts), static_cast<program::StreamId>(get(from.stream))};
  if (from.ticket.load(std::memory_order_relaxed) != ticket) return std::nullopt;
  return what;
}

void FlightLog::called(std::uint64_t ticket, const device::Lane& lane, const program::OpDesc& desc, std::uint8_t reduction, Parts parts) {
  const program::Recorder& recorder = lane.recorder();
  const program::OpKey& key = recorder.key();
  What mine{0, desc.kind, desc.dtype, reduction, key.phase, static_cast<std::int16_t>(key.layer), static_cast<std::int16_t>(key.micro_batch), desc.collective.peer,
                  desc.collective.bytes, recorder.in_step() ? recorder.step() : -1, desc.name, key.part, lane.where.file, lane.where.line, program::host_now(), 0, 0, 0, lane.stream->id()};
  if (capturing_) captured_.push_back(mine);
  if (parts.send != nullptr) {
    const std::size_t size = ranks_.size();
    for (std::size_t index = 0; index < size; ++index) {
      parts_now_[index] = parts.send[index] * base::size_of(desc.dtype);
      parts_now_[size + index] = parts.receive[index] * base::size_of(desc.dtype);
    }
    if (capturing_) captured_parts_.push_back(parts_now_);
    mine.parts = keep(parts_now_.data(), desc.dtype);
  }
  call(ticket, mine);
}

std::uint64_t FlightLog::keep(const base::Bytes* parts, base::DType dtype) {
  const std::uint64_t which = ++all_to_alls_;
  const std::size_t size = ranks_.size(), place = which % parts_kept;
  // As entries are: spoiled, written, set
  parts_of_[place].store(0, std::memory_order_relaxed);
  for (std::size_t at = 0; at < 2 * size; ++at) {
    parts_[place * 2 * size + at].store(parts[at], std::memory_order_release);
    const std::size_t peer = at % size;
    if (peer == me_ || parts[at] == 0) continue;   // a rank's own part is a copy, and of nothing nothing is sent
    std::uint64_t& hash = at < size ? pairs_[peer].sent_hash : pairs_[peer].received_hash;
    hash = mixed(hash, static_cast<std::uint64_t>(dtype) << 56 | static_cast<std::uint64_t>(parts[at]));
  }
  parts_of_[place].store(which, std::memory_order_release);
  return which;
}

bool FlightLog::read_parts(std::uint64_t which, std::vector<base::Bytes>& sends, std::vector<base::Bytes>& receives) const {
  const std::size_t size = ranks_.size(), place = which % parts_kept;
  if (which == 0 || parts_of_[place].load(std::memory_order_acquire) != which) return false;
  for (std::size_t at = 0; at < 2 * size; ++at) (at < size ? sends : receives).push_back(parts_[place * 2 * size + at].load(std::memory_order_acquire));
  if (parts_of_[place].load(std::memory_order_relaxed) == which) return true;
  sends.clear(), receives.clear();
  return false;
}

void FlightLog::call(std::uint64_t ticket, What mine) {
  SHARDBOOK_CHECK_EQ(ticket, calls_.load(std::memory_order_relaxed), "calls over ", axis_, " are numbered one by one");
  // One thread counts, so a load and a store do.
  const auto next = [](std::atomic<std::uint64_t>& count) {
    const std::uint64_t before = count.load(std::memory_order_relaxed);
    count.store(before + 1, std::memory_order_release);
    return before;
  };
  if (is_pair(mine.kind)) {
    Pair& pair = pairs_[static_cast<std::size_t>(mine.peer)];
    const bool sends = mine.kind == OpKind::send;
    mine.number = next(sends ? pair.sent : pair.received);
    std::uint64_t& hash = sends ? pair.sent_hash : pair.received_hash;
    hash = mixed(mixed(hash, 1), static_cast<std::uint64_t>(mine.dtype) << 56 | static_cast<std::uint64_t>(mine.bytes));
  } else {
    mine.number = next(collectives_);
    hash_ = mixed(hash_, static_cast<std::uint64_t>(mine.kind) << 32 | static_cast<std::uint64_t>(mine.dtype) << 16 | mine.reduction);
    // Of an all-to-all each rank sends as much as it has.
    if (mine.kind != OpKind::all_to_all) hash_ = mixed(hash_, static_cast<std::uint64_t>(mine.bytes));
    hash_ = mixed(hash_, static_cast<std::uint64_t>(mine.peer));
  }
  write(ticket, mine);
  called_at_.store(mine.at, std::memory_order_relaxed);
  calls_.store(ticket + 1, std::memory_order_release);
}

void FlightLog::capture_begins() {
  captured_.clear();
  captured_parts_.clear();
  capturing_ = true;
}

FlightLog::Captured FlightLog::capture_ends() {
  capturing_ = false;
  Captured all;
  all.calls_ = std::move(captured_);
  all.parts_ = std::move(captured_parts_);
  const auto count = static_cast<std::uint32_t>(all.calls_.size());
  const std::uint64_t calls = calls_.load(std::memory_order_relaxed);
  for (std::uint32_t at = 0; at < count; ++at) {
    What& what = all.calls_[at];
    what.in_graph = at + 1;
    what.graph_calls = count;
    // The first launch is of these entries, which did not know yet of how many
    const std::uint64_t ticket = calls - count + at;
    if (ticket < first_kept(calls)) continue;
    what.number = entry(ticket).number.load(std::memory_order_relaxed);
    what.parts = entry(ticket).parts.load(std::memory_order_relaxed);
    write(ticket, what);
  }
  return all;
}

//@ comm.flight.graph: A launch calls what the graph holds: numbered and written down as if its host had called each.
void FlightLog::called_again(std::uint64_t ticket, const Captured& captured, std::int64_t step) {
  const base::Nanoseconds now = program::host_now();
  auto parts = captured.parts_.begin();
  for (What what : captured.calls_) {
    what.step = step;
    what.at = now;
    if (what.kind == OpKind::all_to_all) what.parts = keep((parts++)->data(), what.dtype);
    call(ticket++, what);
  }
}
//@end

void FlightLog::issued(std::uint64_t ticket) { issued_.store(ticket + 1, std::memory_order_release); }

// As entries are: spoiled, written, set.
void FlightLog::step_issued(std::int64_t step) {
  const std::size_t row = static_cast<std::size_t>(step / claimed_every) % claims_kept;
  claimed_steps_[row].store(-1, std::memory_order_relaxed);
  for (std::size_t place = 0; place < claimed_places(); ++place) claimed_values_[row * claimed_places() + place].store(value_now(place), std::memory_order_release);
  claimed_steps_[row].store(step, std::memory_order_release);
}

std::uint64_t FlightLog::value_now(std::size_t place) const {
  if (place == 0) return mixed(hash_, collectives_.load(std::memory_order_relaxed));
  const std::size_t index = place - 1, size = ranks_.size();
  return index < size ? pairs_[index].sent_hash : pairs_[index - size].received_hash;
}

// Sender and receiver call what went between them the same.
world::Claim FlightLog::claim_of(std::size_t place, std::uint64_t value) const {
  const std::size_t size = ranks_.size();
  if (place == 0) return {what_, static_cast<int>(size), value};
  const bool sent = place - 1 < size;
  const std::size_t peer = sent ? place - 1 : place - 1 - size;
  return {mixed(mixed(what_, sent ? me_ : peer), sent ? peer : me_), 2, value};
}

std::vector<world::Claim> FlightLog::claims(std::int64_t step) const {
  const std::size_t row = static_cast<std::size_t>(step / claimed_every) % claims_kept;
  if (claimed_steps_[row].load(std::memory_order_acquire) != step) return {};
  std::vector<world::Claim> all;
  for (std::size_t place = 0; place < claimed_places(); ++place) {
    const std::uint64_t value = claimed_values_[row * claimed_places() + place].load(std::memory_order_acquire);
    if (place == 0 || value != 0) all.push_back(claim_of(place, value));
  }
  if (claimed_steps_[row].load(std::memory_order_relaxed) != step) return {};
  return all;
}

std::vector<world::Claim> FlightLog::claims_now() const {
  std::vector<world::Claim> all;
  for (std::size_t place = 0; place < claimed_places(); ++place) {
    const std::size_t peer = place == 0 ? me_ + 1 : (place - 1) % ranks_.size();
    if (place == 0 || peer != me_) all.push_back(claim_of(place, value_now(place)));
  }
  return all;
}

void FlightLog::mark_ended(std::uint64_t ticket) {
  std::atomic<std::uint64_t>& mark = entry(ticket).ended;
  for (std::uint64_t before = mark.load(); before < ticket + 1 && !mark.compare_exchange_weak(before, ticket + 1);) {
  }
}

void FlightLog::ended(std::uint64_t ticket) {
  const std::uint64_t calls = calls_.load(std::memory_order_acquire);
  if (ticket >= calls || ticket < first_kept(calls)) return;
  mark_ended(ticket);
  advance();
}

void FlightLog::ended_through(std::uint64_t ticket) {
  const std::uint64_t calls = calls_.load(std::memory_order_acquire);
  for (std::uint64_t at = oldest(calls); at <= ticket && at < calls; ++at) mark_ended(at);
  advance();
}

// Any number of threads at once. Marks are set and looked at in one order for all, so that of two threads which end calls
// next to each other at least one sees both.
void FlightLog::advance() {
  std::uint64_t ended = ended_.load();
  while (true) {
    const std::uint64_t kept_from = first_kept(calls_.load(std::memory_order_acquire));
    if (ended >= kept_from && !has_ended(ended)) return;
    // On failure another has come further, and `ended` is where.
    const std::uint64_t further = std::max(ended + 1, kept_from);
    if (!ended_.compare_exchange_strong(ended, further)) continue;
    ended_at_.store(program::host_now(), std::memory_order_relaxed);
    ended = further;
  }
}

FlightLog::Range FlightLog::under_way() const {
  const std::uint64_t first = oldest(calls_.load(std::memory_order_acquire));
  return {first, std::max(first, issued_.load(std::memory_order_acquire))};
}

base::Nanoseconds FlightLog::waits_since() const {
  // What is written over meanwhile is no longer the oldest; a rank that calls so much is not one that hangs.
  for (int tries = 0; tries < 4; ++tries) {
    const std::uint64_t calls = calls_.load(std::memory_order_acquire), first = oldest(calls);
    if (first >= calls) return 0;
    if (const auto waits = read(first)) return std::max(waits->at, ended_at_.load(std::memory_order_relaxed));
  }
  return 0;
}

base::Nanoseconds FlightLog::last_called() const { return called_at_.load(std::memory_order_relaxed); }

check::FlightPage FlightLog::page(base::Nanoseconds now, std::size_t most) const {
  check::FlightPage page{axis_, ranks_, 0, {}, {}};
  const std::uint64_t calls = calls_.load(std::memory_order_acquire), issued = issued_.load(std::memory_order_acquire), ended = ended_.load();
  const base::Nanoseconds ended_at = ended_at_.load(std::memory_order_relaxed);
  // A quarter of them before the oldest that has not ended
  std::uint64_t begin = calls > most ? calls - most : 0;
  begin = std::max(first_kept(calls), std::min(begin, ended > most / 4 ? ended - most / 4 : 0));
  for (std::uint64_t ticket = begin; ticket < calls && page.calls.size() < most; ++ticket) {
    const std::optional<What> one = read(ticket);
    if (!one) {   // written over meanwhile, and so is all before it
      page.calls.clear();
      continue;
    }
    const bool is_over = ticket < ended || has_ended(ticket);
    const CallState state = is_over ? CallState::ended : ticket < issued ? CallState::issued : CallState::called;
    page.calls.push_back({one->number, one->kind, one->dtype, one->reduction, one->bytes, one->peer, one->stream, one->phase, one->layer, one->micro_batch, one->step, one->name, one->part,
                          one->file, one->line, state, is_over ? 0 : now - std::max(one->at, ended_at), one->in_graph, one->graph_calls, {}, {}});
    read_parts(one->parts, page.calls.back().sends, page.calls.back().receives);
  }
  // Read last: a rank that goes on meanwhile has called more than is listed, and never less.
  page.collectives = collectives_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < pairs_.size(); ++index) {
    const std::uint64_t sent = pairs_[index].sent.load(std::memory_order_acquire), received = pairs_[index].received.load(std::memory_order_acquire);
    if (sent + received > 0) page.pairs.push_back({static_cast<int>(index), sent, received});
  }
  return page;
}

}  // namespace shardbook::comm
