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
  if (step % FlightLog::claimed_every != 0) return;
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
  const std::int64_t first = std::max(step < 0 ? 0 : (step / FlightLog::claimed_every + 1) * FlightLog::claimed_every, last - FlightLog::claims_kept * FlightLog::claimed_every);
  for (std::int64_t one = first; one <= last; one += FlightLog::claimed_every) {
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
