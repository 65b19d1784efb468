#include "engine/check/flight.hpp"

#include <algorithm>
#include <iomanip>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/check/flight_calls.hpp"

namespace shardbook::check {

using base::Rank;
using base::text;
using program::is_pair;
using program::OpKind;

const char* name_of(Blame blame) {
  static constexpr const char* names[] = {"nobody", "absent", "differs", "missing", "circle", "stuck"};
  return names[static_cast<int>(blame)];
}

namespace {

std::string seconds_text(base::Nanoseconds time) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(time) / 1e9 << " s";
  return out.str();
}

// A call that has not ended.
struct Wait {
  const FlightAccount* account;
  const FlightPage* page;
  const FlightCall* call;
};
std::string where_text(const Wait& wait) { return text("call ", wait.call->number + 1, " over ", members_text(*wait.page)); }

class Court {
 public:
  explicit Court(const std::vector<FlightAccount>& accounts) : accounts_(accounts) {
    for (const FlightAccount& account : accounts) by_rank_[account.rank] = &account;
    for (const FlightAccount& account : accounts) {
      for (const FlightPage& page : account.pages) note_waits(account, page);
    }
    // Who waits longest is told first.
    std::stable_sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) { return a.call->waited > b.call->waited; });
  }

  Verdict judge() const {
    Verdict verdict;
    for (auto of : {&Court::absent, &Court::differs, &Court::missing, &Court::in_order, &Court::stuck}) {
      if (verdict.blame == Blame::nobody) verdict = (this->*of)();
    }
    for (const FlightAccount& account : accounts_) verdict.side_by_side += line_of(account) + "\n";
    for (const Wait& wait : waits_) verdict.speaker = verdict.speaker < 0 ? wait.account->rank : std::min(verdict.speaker, wait.account->rank);
    return verdict;
  }

 private:
  void note_waits(const FlightAccount& account, const FlightPage& page);
  const FlightPage* page_of(Rank rank, const FlightPage& like) const;
  std::vector<Rank> lacking(const Wait& wait) const;
  std::vector<const Wait*> waits_of(Rank rank) const;
  const Wait* longest() const { return waits_.empty() ? nullptr : &waits_.front(); }
  std::string why_not(Rank rank, const FlightPage& page) const;
  std::string line_of(const FlightAccount& account) const;
  std::string name(Rank rank) const {
    const auto found = by_rank_.find(rank);
    return found == by_rank_.end() ? text("rank ", rank) : found->second->name;
  }
  std::string waiting_text(const Wait& wait) const {
    return text(call_text(*wait.call), ", ", where_text(wait), ", has not ended in ", seconds_text(wait.call->waited), " on ", name(wait.account->rank));
  }
  Verdict absent() const;
  Verdict differs() const;
  Verdict missing() const;
  Verdict in_order() const;
  Verdict stuck() const;

  const std::vector<FlightAccount>& accounts_;
  std::map<Rank, const FlightAccount*> by_rank_;
  std::vector<Wait> waits_;   // of each page the oldest collective, and of each pair and direction the oldest
};

void Court::note_waits(const FlightAccount& account, const FlightPage& page) {
  std::set<std::pair<bool, int>> seen;   // books of this page that have one
  for (const FlightCall& call : page.calls) {
    if (call.state == CallState::ended) continue;
    const auto book = is_pair(call.kind) ? std::pair(call.kind == OpKind::send, call.peer) : std::pair(false, -1);
    if (seen.insert(book).second) waits_.push_back({&account, &page, &call});
  }
}

const FlightPage* Court::page_of(Rank rank, const FlightPage& like) const {
  const auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) return nullptr;
  for (const FlightPage& page : found->second->pages) {
    if (page.axis == like.axis && page.ranks == like.ranks) return &page;
  }
  return nullptr;
}

std::vector<const Wait*> Court::waits_of(Rank rank) const {
  std::vector<const Wait*> found;
  for (const Wait& wait : waits_) {
    if (wait.account->rank == rank) found.push_back(&wait);
  }
  return found;
}

// Whom a call lacks: ranks that have not called it, as far as they have said anything.
std::vector<Rank> Court::lacking(const Wait& wait) const {
  const FlightCall& call = *wait.call;
  std::vector<Rank> found;
  for (std::size_t index = 0; index < wait.page->ranks.size(); ++index) {
    const Rank rank = wait.page->ranks[index];
    const auto said = by_rank_.find(rank);
    if (rank == wait.account->rank || said == by_rank_.end() || !said->second->absent.empty()) continue;
    if (is_pair(call.kind) && static_cast<int>(index) != call.peer) continue;
    const FlightPage* page = page_of(rank, *wait.page);
    std::uint64_t called = page == nullptr ? 0 : page->collectives;
    if (is_pair(call.kind)) {
      called = 0;
      const auto me = std::find(wait.page->ranks.begin(), wait.page->ranks.end(), wait.account->rank) - wait.page->ranks.begin();
      for (const PairCount& pair : page == nullptr ? std::vector<PairCount>{} : page->pairs) {
        if (pair.peer == me) called = call.kind == OpKind::send ? pair.received : pair.sent;
      }
    }
    if (called <= call.number) found.push_back(rank);
  }
  return found;
}

// ---- 1. Who says nothing ---------------------------------------------------------------------------

Verdict Court::absent() const {
  std::vector<Rank> gone;
  for (const FlightAccount& account : accounts_) {
    if (!account.absent.empty()) gone.push_back(account.rank);
  }
  if (gone.empty()) return {};
  Verdict verdict{Blame::absent, gone, {}, "", ""};
  for (std::size_t at = 0; at < gone.size() && at < 8; ++at) {
    verdict.sentence += text(at == 0 ? "" : ", ", name(gone[at]), " ", by_rank_.at(gone[at])->absent);
  }
  if (gone.size() > 8) verdict.sentence += text(", and ", gone.size() - 8, " more");
  // Of the calls that wait, one that has such a rank in its group
  for (const Wait& wait : waits_) {
    const auto in_group = [&](Rank rank) { return std::find(wait.page->ranks.begin(), wait.page->ranks.end(), rank) != wait.page->ranks.end(); };
    if (!std::any_of(gone.begin(), gone.end(), in_group)) continue;
    verdict.sentence += text(": ", waiting_text(wait));
    break;
  }
  return verdict;
}

// ---- 2. Who calls something else ---------------------------------------------------------------------

Verdict Court::differs() const { return who_differs(accounts_); }

// ---- 3. and 4. Who does not come -----------------------------------------------------------------------

std::string Court::why_not(Rank rank, const FlightPage& page) const {
  const FlightPage* own = page_of(rank, page);
  const FlightAccount& account = *by_rank_.at(rank);
  std::string said = own == nullptr || own->calls.empty() ? text("it has called nothing over ", page.axis)
                                                          : text("its last over ", page.axis, " was ", call_text(own->calls.back()),
                                                                 own->calls.back().state == CallState::ended ? ", which has ended" : "");
  said += text("; for ", seconds_text(account.quiet), " it has called no collective");
  if (account.step >= 0) said += text(", and is in step ", account.step);
  return said;
}

Verdict Court::missing() const {
  // Who waits for whom, by whose call
  std::map<Rank, std::pair<const Wait*, Rank>> waits_for;
  for (const Wait& wait : waits_) {
    for (const Rank rank : lacking(wait)) {
      if (waits_of(rank).empty()) {
        Verdict verdict{Blame::missing, {}, {}, "", ""};
        for (const Rank other : lacking(wait)) {
          if (waits_of(other).empty()) verdict.ranks.push_back(other);
        }
        verdict.sentence = waiting_text(wait) + ": ";
        for (std::size_t at = 0; at < verdict.ranks.size() && at < 8; ++at) verdict.sentence += text(at == 0 ? "" : ", ", name(verdict.ranks[at]));
        verdict.sentence += text(verdict.ranks.size() == 1 ? " has" : " have", " not called it (", why_not(verdict.ranks.front(), *wait.page), ")");
        return verdict;
      }
      waits_for.try_emplace(wait.account->rank, &wait, rank);
    }
  }
  // Follow them until one comes again
  for (const auto& start : waits_for) {
    std::vector<Rank> path{start.first};
    while (waits_for.contains(path.back())) {
      const Rank next = waits_for.at(path.back()).second;
      const auto again = std::find(path.begin(), path.end(), next);
      if (again == path.end()) {
        path.push_back(next);
        continue;
      }
      Verdict verdict{Blame::circle, {again, path.end()}, {}, "ranks wait for each other: ", ""};
      for (std::size_t at = 0; at < verdict.ranks.size(); ++at) {
        const auto& [wait, whom] = waits_for.at(verdict.ranks[at]);
        verdict.sentence += text(at == 0 ? "" : "; ", "rank ", verdict.ranks[at], " waits for rank ", whom, " in ", call_text(*wait->call), ", ", where_text(*wait));
      }
      return verdict;
    }
    // Somebody waits in what all have called: until that ends it comes to nothing else.
    const std::vector<const Wait*> held = waits_of(path.back());
    return {Blame::stuck, {path.back()}, {}, text(waiting_text(*start.second.first), ": ", name(path.back()), " has not called it, for it waits in ", call_text(*held.front()->call), ", ",
                                                where_text(*held.front()), ", which all have called"), ""};
  }
  return {};
}

// All have called all, but in another order: what a rank waits for another has behind a call in which that one waits.
Verdict Court::in_order() const {
  // Whom this waits for so, and in what that one stands; nothing where all stand at this call, too.
  const auto held_up_by = [&](const Wait& here) -> std::optional<Wait> {
    const int me = static_cast<int>(index_of(*here.page, here.account->rank));
    const bool of_pair = is_pair(here.call->kind);
    const auto is_the_same = [&](const FlightCall& call) {
      if (call.number != here.call->number || is_pair(call.kind) != of_pair) return false;
      return !of_pair || (call.peer == me && (call.kind == OpKind::send) != (here.call->kind == OpKind::send));
    };
    for (const Rank other : here.page->ranks) {
      const FlightPage* page = other == here.account->rank ? nullptr : page_of(other, *here.page);
      if (page == nullptr || (of_pair && here.call->peer != static_cast<int>(index_of(*here.page, other)))) continue;
      const auto its = std::find_if(page->calls.begin(), page->calls.end(), is_the_same);
      if (its == page->calls.end() || its->state == CallState::ended) continue;
      const auto before = std::find_if(page->calls.begin(), its, [&](const FlightCall& call) { return call.stream == its->stream && call.state != CallState::ended; });
      if (before != its) return Wait{by_rank_.at(other), page, &*before};
    }
    return std::nullopt;
  };
  for (const Wait& start : waits_) {
    std::vector<Wait> path{start};
    while (const std::optional<Wait> next = held_up_by(path.back())) {
      std::size_t again = 0;
      while (again < path.size() && path[again].call != next->call) ++again;
      path.push_back(*next);
      if (again + 1 == path.size()) continue;
      Verdict verdict{Blame::circle, {}, {}, text("a deadlock, for ranks call in another order over ", members_text(*start.page), ": "), ""};
      for (std::size_t at = again; at + 1 < path.size(); ++at) {
        const Wait &one = path[at], &other = path[at + 1];
        verdict.ranks.push_back(one.account->rank);
        verdict.sentence += text(at == again ? "" : "; ", "rank ", one.account->rank, " in ", call_text(*one.call), ", call ", one.call->number + 1, ", which rank ", other.account->rank,
                                 " has called behind ", call_text(*other.call));
      }
      return verdict;
    }
  }
  return {};
}

// ---- 5. What all have called -----------------------------------------------------------------------------

Verdict Court::stuck() const {
  const Wait* wait = longest();
  if (wait == nullptr) return {};
  Verdict verdict{Blame::stuck, {}, {}, waiting_text(*wait) + ", though all its ranks have called it", ""};
  // Those on which it has ended are done with it; the others' streams, or their way to each other, hold it up.
  std::string ended;
  for (const Rank rank : wait->page->ranks) {
    bool waits = false;
    for (const Wait* other : waits_of(rank)) waits |= other->page->axis == wait->page->axis && other->page->ranks == wait->page->ranks && other->call->number == wait->call->number;
    if (waits) verdict.ranks.push_back(rank);
    else if (by_rank_.contains(rank)) ended += text(ended.empty() ? "" : ", ", rank);
  }
  if (!ended.empty()) verdict.sentence += text(" and it has ended on rank ", ended);
  verdict.sentence += ": a stream is behind other work that does not end, or a device or the way between them has stopped";
  return verdict;
}

std::string Court::line_of(const FlightAccount& account) const {
  if (!account.absent.empty()) return text(account.name, " ", account.absent);
  std::string said = account.name + (account.step >= 0 ? text(", step ", account.step) : "") + ":";
  const std::vector<const Wait*> waits = waits_of(account.rank);
  for (const Wait* wait : waits) {
    said += text(wait == waits.front() ? "" : ";", " waits ", seconds_text(wait->call->waited), " in ", call_text(*wait->call), ", ", where_text(*wait),
                 wait->call->state == CallState::called ? ", and the host is still in the call" : "");
  }
  if (waits.empty()) said += text(" waits in no collective; the last was called ", seconds_text(account.quiet), " ago");
  for (const FlightPage& page : account.pages) {
    const auto last = std::find_if(page.calls.rbegin(), page.calls.rend(), [](const FlightCall& call) { return call.state == CallState::ended; });
    if (last != page.calls.rend()) said += text("; ended last over ", page.axis, ": call ", last->number + 1, ", ", call_text(*last));
  }
  return said;
}

}  // namespace

Verdict verdict_of(const std::vector<FlightAccount>& accounts) { return Court(accounts).judge(); }

}  // namespace shardbook::check
