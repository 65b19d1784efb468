#include "engine/comm/flight.hpp"

#include <algorithm>

#include "engine/program/recorder.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::comm {

using check::CallState;
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

bool is_pair(OpKind kind) { return kind == OpKind::send || kind == OpKind::recv; }

}  // namespace

FlightLog::FlightLog(std::string axis, std::vector<base::Rank> ranks)
    : axis_(std::move(axis)), ranks_(std::move(ranks)), what_(name_of_group(axis_, ranks_)), pairs_(ranks_.size()), ring_(kept) {}

void FlightLog::called(std::uint64_t ticket, const device::Lane& lane, const program::OpDesc& desc, std::uint8_t reduction) {
  const program::Recorder& recorder = lane.recorder();
  const program::OpKey& key = recorder.key();
  const int peer = desc.collective.peer;
  std::lock_guard lock(mutex_);
  SHARDBOOK_CHECK_EQ(ticket, calls_, "calls over ", axis_, " are numbered one by one");
  Entry& mine = entry(calls_++);
  mine = {ticket, 0, desc.kind, desc.dtype, reduction, CallState::called, key.phase, key.layer, key.micro_batch, peer, desc.collective.bytes,
          recorder.in_step() ? recorder.step() : -1, desc.name, key.part, lane.where, program::host_now()};
  if (is_pair(desc.kind)) {
    check::PairCount& pair = pairs_[static_cast<std::size_t>(peer)];
    mine.number = desc.kind == OpKind::send ? pair.sent++ : pair.received++;
    return;
  }
  mine.number = collectives_++;
  hash_ = mixed(hash_, static_cast<std::uint64_t>(desc.kind) << 32 | static_cast<std::uint64_t>(desc.dtype) << 16 | reduction);
  // Of an all-to-all each rank sends as much as it has.
  if (desc.kind != OpKind::all_to_all) hash_ = mixed(hash_, static_cast<std::uint64_t>(desc.collective.bytes));
  hash_ = mixed(hash_, static_cast<std::uint64_t>(peer));
}

void FlightLog::issued(std::uint64_t ticket) {
  std::lock_guard lock(mutex_);
  issued_ = ticket + 1;
  Entry& mine = entry(ticket);
  if (mine.ticket == ticket && mine.state == CallState::called) mine.state = CallState::issued;
}

void FlightLog::ended(std::uint64_t ticket) {
  std::lock_guard lock(mutex_);
  Entry& mine = entry(ticket);
  if (mine.ticket != ticket || ticket >= calls_) return;
  mine.state = CallState::ended;
  advance();
}

void FlightLog::ended_through(std::uint64_t ticket) {
  std::lock_guard lock(mutex_);
  for (std::uint64_t at = std::max(ended_, first_kept()); at <= ticket && at < calls_; ++at) entry(at).state = CallState::ended;
  advance();
}

// REQUIRES: the mutex is held.
void FlightLog::advance() {
  const std::uint64_t before = ended_;
  ended_ = std::max(ended_, first_kept());
  while (ended_ < calls_ && entry(ended_).state == CallState::ended) ++ended_;
  if (ended_ != before) ended_at_ = program::host_now();
}

FlightLog::Range FlightLog::under_way() const {
  std::lock_guard lock(mutex_);
  const std::uint64_t first = std::max(ended_, first_kept());
  return {first, std::max(first, issued_)};
}

base::Nanoseconds FlightLog::waits_since() const {
  std::lock_guard lock(mutex_);
  const std::uint64_t oldest = std::max(ended_, first_kept());
  return oldest >= calls_ ? 0 : std::max(entry(oldest).at, ended_at_);
}

base::Nanoseconds FlightLog::last_called() const {
  std::lock_guard lock(mutex_);
  return calls_ == 0 ? 0 : entry(calls_ - 1).at;
}

check::FlightPage FlightLog::page(base::Nanoseconds now, std::size_t most) const {
  check::FlightPage page{axis_, ranks_, 0, {}, {}};
  std::lock_guard lock(mutex_);
  page.collectives = collectives_;
  for (std::size_t index = 0; index < pairs_.size(); ++index) {
    const check::PairCount& pair = pairs_[index];
    if (pair.sent + pair.received > 0) page.pairs.push_back({static_cast<int>(index), pair.sent, pair.received});
  }
  // A quarter of them before the oldest that has not ended
  std::uint64_t begin = calls_ > most ? calls_ - most : 0;
  begin = std::max(first_kept(), std::min(begin, ended_ > most / 4 ? ended_ - most / 4 : 0));
  for (std::uint64_t ticket = begin; ticket < calls_ && page.calls.size() < most; ++ticket) {
    const Entry& one = entry(ticket);
    const base::Nanoseconds since = std::max(one.at, ended_at_);
    page.calls.push_back({one.number, one.kind, one.dtype, one.reduction, one.bytes, one.peer, one.phase, one.layer, one.micro_batch, one.step, one.name, one.part,
                          one.where.file, one.where.line, one.state, one.state == CallState::ended ? 0 : now - since});
  }
  return page;
}

world::Claim FlightLog::claim() const {
  std::lock_guard lock(mutex_);
  return {what_, static_cast<int>(ranks_.size()), mixed(hash_, collectives_)};
}

// ---- A rank ----------------------------------------------------------------------------------------

FlightLog& Flight::add(const mesh::Group& group) {
  std::lock_guard lock(mutex_);
  const auto before = std::count_if(logs_.begin(), logs_.end(), [&](const auto& log) { return log->is_of(group.axis, group.ranks); });
  return *logs_.emplace_back(std::make_unique<FlightLog>(before == 0 ? group.axis : base::text(group.axis, " ", before + 1), group.ranks));
}

std::vector<FlightLog*> Flight::logs() const {
  std::lock_guard lock(mutex_);
  std::vector<FlightLog*> all;
  for (const auto& log : logs_) all.push_back(log.get());
  return all;
}

std::vector<world::Claim> Flight::claims() const {
  std::vector<world::Claim> all;
  for (const FlightLog* log : logs()) {
    all.push_back(log->claim());
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
    for (const check::FlightCall& call : page.calls) {
      step = std::max(step, call.step);
      pages.integer(static_cast<std::int64_t>(call.number)).integer(static_cast<int>(call.kind)).integer(static_cast<int>(call.dtype)).integer(call.reduction);
      pages.integer(call.bytes).integer(call.peer).integer(static_cast<int>(call.phase)).integer(call.layer).integer(call.micro_batch).integer(call.step);
      pages.string(call.name).string(call.part).string(call.file).integer(call.line).integer(static_cast<int>(call.state)).integer(call.waited);
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
    page.calls.resize(reader.count(15 * 8));
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

check::Verdict ask_and_judge(world::World& world, std::chrono::milliseconds patience) { return judge(world.ask_all(patience)); }

}  // namespace shardbook::comm
