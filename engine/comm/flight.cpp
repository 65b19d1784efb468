#include "engine/comm/flight.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "engine/program/recorder.hpp"
#include "engine/world/wire.hpp"

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
  const std::size_t row = static_cast<std::size_t>(step / Flight::claimed_every) % claims_kept;
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
  const std::size_t row = static_cast<std::size_t>(step / Flight::claimed_every) % claims_kept;
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

// ---- A rank ----------------------------------------------------------------------------------------

FlightLog& Flight::add(const mesh::Group& group) {
  std::lock_guard lock(mutex_);
  const auto before = std::count_if(logs_.begin(), logs_.end(), [&](const auto& log) { return log->is_of(group.axis, group.ranks); });
  return *logs_.emplace_back(std::make_unique<FlightLog>(before == 0 ? group.axis : base::text(group.axis, " ", before + 1), group.ranks, group.index_of_me));
}

std::vector<FlightLog*> Flight::logs() const {
  std::lock_guard lock(mutex_);
  std::vector<FlightLog*> all;
  for (const auto& log : logs_) all.push_back(log.get());
  return all;
}

void Flight::step_issued(std::int64_t step) {
  if (step % claimed_every != 0) return;
  // Only this thread makes the list longer.
  for (const auto& log : logs_) log->step_issued(step);
  claimed_.store(step, std::memory_order_release);
}

std::vector<world::Claim> Flight::claims_now() const {
  std::vector<world::Claim> claims;
  for (const FlightLog* log : logs()) {
    for (const world::Claim& claim : log->claims_now()) claims.push_back(claim);
  }
  return claims;
}

std::vector<Flight::Claims> Flight::claims_after(std::int64_t step) const {
  std::vector<Claims> all;
  const std::int64_t last = claimed_.load(std::memory_order_acquire);
  const std::vector<FlightLog*> of = logs();
  const std::int64_t first = std::max(step < 0 ? 0 : (step / claimed_every + 1) * claimed_every, last - FlightLog::claims_kept * claimed_every);
  for (std::int64_t one = first; one <= last; one += claimed_every) {
    Claims claims{one, {}};
    for (const FlightLog* log : of) {
      for (const world::Claim& claim : log->claims(one)) claims.claims.push_back(claim);
    }
    if (!claims.claims.empty()) all.push_back(std::move(claims));
  }
  return all;
}

base::Nanoseconds Flight::longest_wait(base::Nanoseconds now) const {
  base::Nanoseconds longest = 0;
  for (const FlightLog* log : logs()) {
    if (const base::Nanoseconds since = log->waits_since(); since > 0) longest = std::max(longest, now - since);
  }
  return longest;
}

std::string Flight::account(int world_size) const {
  // All ranks' accounts together stay far below what a message may have.
  const std::size_t most = std::clamp<std::size_t>(32768 / static_cast<std::size_t>(std::max(1, world_size)), 32, FlightLog::kept);
  const base::Nanoseconds now = program::host_now();
  base::Nanoseconds last = 0;
  std::int64_t step = -1;
  world::Writer pages;
  const std::vector<FlightLog*> all = logs();
  for (const FlightLog* log : all) {
    const check::FlightPage page = log->page(now, most);
    last = std::max(last, log->last_called());
    pages.string(page.axis).integer(static_cast<std::int64_t>(page.ranks.size()));
    for (const base::Rank rank : page.ranks) pages.integer(rank);
    pages.integer(static_cast<std::int64_t>(page.collectives)).integer(static_cast<std::int64_t>(page.pairs.size()));
    for (const check::PairCount& pair : page.pairs) {
      pages.integer(pair.peer).integer(static_cast<std::int64_t>(pair.sent)).integer(static_cast<std::int64_t>(pair.received));
    }
    pages.integer(static_cast<std::int64_t>(page.calls.size()));
    // Parts of all-to-alls from the oldest on, while they are no more than the calls are
    std::size_t room = 8 * most;
    for (const check::FlightCall& call : page.calls) {
      step = std::max(step, call.step);
      pages.integer(static_cast<std::int64_t>(call.number)).integer(static_cast<int>(call.kind)).integer(static_cast<int>(call.dtype)).integer(call.reduction);
      pages.integer(call.bytes).integer(call.peer).integer(call.stream).integer(static_cast<int>(call.phase)).integer(call.layer).integer(call.micro_batch).integer(call.step);
      pages.string(call.name).string(call.part).string(call.file).integer(call.line).integer(static_cast<int>(call.state)).integer(call.waited);
      const std::size_t parts = 2 * call.sends.size() <= room ? call.sends.size() : 0;
      room -= 2 * parts;
      pages.integer(call.in_graph).integer(call.graph_calls).integer(static_cast<std::int64_t>(parts));
      for (std::size_t peer = 0; peer < parts; ++peer) pages.integer(call.sends[peer]).integer(call.receives[peer]);
    }
  }
  return world::Writer().integer(step).integer(last == 0 ? 0 : now - last).integer(static_cast<std::int64_t>(all.size())).bytes() + pages.bytes();
}

namespace {

// An integer in [0, end), or nothing good.
template <class T>
T choice(world::Reader& reader, std::int64_t end, bool& sound) {
  const std::int64_t value = reader.integer();
  sound &= value >= 0 && value < end;
  return static_cast<T>(sound ? value : 0);
}

check::FlightCall read_call(world::Reader& reader, int members, bool& sound) {
  check::FlightCall call;
  call.number = static_cast<std::uint64_t>(reader.integer());
  call.kind = choice<OpKind>(reader, program::op_kinds, sound);
  call.dtype = choice<base::DType>(reader, static_cast<int>(base::DType::i32) + 1, sound);
  call.reduction = choice<std::uint8_t>(reader, 256, sound);
  call.bytes = reader.integer();
  call.peer = static_cast<int>(reader.integer());
  call.stream = choice<program::StreamId>(reader, std::numeric_limits<program::StreamId>::max(), sound);
  sound &= call.peer >= -1 && call.peer < members && (!is_pair(call.kind) || call.peer >= 0);
  sound &= program::class_of(call.kind) == program::OpClass::communication;
  call.phase = choice<program::Phase>(reader, static_cast<int>(program::Phase::update) + 1, sound);
  call.layer = static_cast<int>(reader.integer());
  call.micro_batch = static_cast<int>(reader.integer());
  call.step = reader.integer();
  call.name = reader.string();
  call.part = reader.string();
  call.file = reader.string();
  call.line = static_cast<std::uint32_t>(reader.integer());
  call.state = choice<CallState>(reader, static_cast<int>(CallState::ended) + 1, sound);
  call.waited = reader.integer();
  call.in_graph = static_cast<std::uint32_t>(reader.integer());
  call.graph_calls = static_cast<std::uint32_t>(reader.integer());
  const std::size_t parts = reader.count(2 * 8);
  sound &= parts == 0 || parts == static_cast<std::size_t>(members);
  for (std::size_t peer = 0; peer < parts; ++peer) {
    call.sends.push_back(reader.integer());
    call.receives.push_back(reader.integer());
  }
  return call;
}

}  // namespace

std::optional<check::FlightAccount> read_account(std::string_view bytes) {
  world::Reader reader(bytes);
  check::FlightAccount account;
  account.step = reader.integer();
  account.quiet = reader.integer();
  bool sound = true;
  account.pages.resize(reader.count(5 * 8));
  for (check::FlightPage& page : account.pages) {
    page.axis = reader.string();
    page.ranks.resize(reader.count());
    for (base::Rank& rank : page.ranks) rank = static_cast<base::Rank>(reader.integer());
    page.collectives = static_cast<std::uint64_t>(reader.integer());
    page.pairs.resize(reader.count(3 * 8));
    for (check::PairCount& pair : page.pairs) {
      pair.peer = choice<int>(reader, static_cast<std::int64_t>(page.ranks.size()), sound);
      pair.sent = static_cast<std::uint64_t>(reader.integer());
      pair.received = static_cast<std::uint64_t>(reader.integer());
    }
    page.calls.resize(reader.count(19 * 8));
    for (check::FlightCall& call : page.calls) call = read_call(reader, static_cast<int>(page.ranks.size()), sound);
    for (const check::FlightPage* other = account.pages.data(); other != &page; ++other) sound &= other->axis != page.axis || other->ranks != page.ranks;
  }
  if (!sound || !reader.ended()) return std::nullopt;
  return account;
}

check::Verdict judge(const std::vector<world::Account>& accounts) {
  std::vector<check::FlightAccount> all;
  for (std::size_t rank = 0; rank < accounts.size(); ++rank) {
    std::optional<check::FlightAccount> read;
    if (accounts[rank].absent.empty()) read = read_account(accounts[rank].said);
    check::FlightAccount& one = all.emplace_back(read.value_or(check::FlightAccount{}));
    one.rank = static_cast<base::Rank>(rank);
    one.name = accounts[rank].name;
    one.absent = !accounts[rank].absent.empty() || read ? accounts[rank].absent : accounts[rank].said.empty() ? "does no longer communicate" : "says what no rank says; do all ranks run the same build?";
  }
  return check::verdict_of(all);
}

void compare_flights(world::World& world, const Flight& flight) {
  world::Writer mine;
  for (const world::Claim& claim : flight.claims_now()) mine.integer(static_cast<std::int64_t>(claim.what)).integer(static_cast<std::int64_t>(claim.value));
  std::map<std::int64_t, std::pair<base::Rank, std::int64_t>> first;
  std::optional<std::pair<base::Rank, base::Rank>> differ;
  const std::vector<std::string> all = world.all_gather(mine.bytes());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (world::Reader reader(all[rank]); !reader.ended();) {
      const std::int64_t what = reader.integer(), value = reader.integer();
      if (!reader.good()) break;
      const auto [at, is_first] = first.try_emplace(what, static_cast<base::Rank>(rank), value);
      if (!is_first && at->second.second != value && !differ) differ.emplace(at->second.first, static_cast<base::Rank>(rank));
    }
  }
  if (!differ) return;
  // All come here, for all have compared the same.
  std::vector<world::Account> accounts;
  for (std::string& said : world.all_gather(flight.account(world.size()))) accounts.push_back({base::text("rank ", accounts.size()), "", std::move(said)});
  const check::Verdict verdict = judge(accounts);
  if (verdict.blame == check::Blame::differs) throw base::Failure(verdict.sentence);
  throw base::Failure(base::text("rank ", differ->second, " has called other collectives, or in another order, than rank ", differ->first,
                                 ", so long ago that they no longer know which; ./shardbook verify compares what the run recorded"));
}

check::Verdict ask_and_judge(world::World& world, std::chrono::milliseconds patience) { return judge(world.ask_all(patience)); }

}  // namespace shardbook::comm
