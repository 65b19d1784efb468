#include "engine/check/flight_calls.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/check/words.hpp"

namespace shardbook::check {

using base::Rank;
using base::text;
using program::is_pair;
using program::OpKind;

std::string members_text(const FlightPage& page) {
  std::string said = text(page.axis, " (ranks ");
  for (std::size_t at = 0; at < page.ranks.size() && at < 8; ++at) said += text(at == 0 ? "" : ", ", page.ranks[at]);
  return said + (page.ranks.size() > 8 ? text(" … ", page.ranks.back(), ")") : ")");
}

std::string call_text(const FlightCall& call) {
  std::string said = text(call.name, " of ", call.bytes, " bytes ", base::name_of(call.dtype));
  if (!call.part.empty()) said += ", " + call.part;
  said += call.step >= 0 ? text(" (step ", call.step, ", ", program::name_of(call.phase)) : text(" (", program::name_of(call.phase));
  if (call.layer >= 0) said += text(", layer ", call.layer);
  if (call.micro_batch >= 0) said += text(", micro-batch ", call.micro_batch);
  if (call.in_graph > 0) said += text(", ", call.in_graph, " of the ", call.graph_calls, " calls of a graph");
  return said + text("; ", line_text({call.file.c_str(), call.line}), ")");
}

std::size_t index_of(const FlightPage& page, Rank rank) {
  return static_cast<std::size_t>(std::find(page.ranks.begin(), page.ranks.end(), rank) - page.ranks.begin());
}

namespace {

// The calls of one group as programs, from the first on that all pages still have, for the ledger to compare.
struct Books {
  std::vector<program::Catalogue> catalogues;
  std::vector<std::vector<program::Program>> programs; // by rank: one for each step of which it has calls
  std::vector<RankSteps> ranks;
  std::vector<std::vector<std::vector<const FlightCall*>>> calls;   // the same, then as op
};

// A book of a page: its collectives, or its sends to or receives from one peer; the first number that is kept.
std::map<std::pair<int, int>, std::uint64_t> first_kept(const FlightPage& page, int me) {
  std::map<std::pair<int, int>, std::uint64_t> first{{{-1, -1}, page.collectives}};
  for (const PairCount& pair : page.pairs) {
    first[{me, pair.peer}] = pair.sent;
    first[{pair.peer, me}] = pair.received;
  }
  for (const FlightCall& call : page.calls) {
    const auto book = !is_pair(call.kind) ? std::pair(-1, -1) : call.kind == OpKind::send ? std::pair(me, call.peer) : std::pair(call.peer, me);
    first[book] = std::min(first.try_emplace(book, call.number).first->second, call.number);
  }
  return first;
}

using Pages = std::vector<std::pair<const FlightAccount*, const FlightPage*>>;

Books books_of(const Pages& pages) {
  std::map<std::pair<int, int>, std::uint64_t> begin;
  for (const auto& [account, page] : pages) {
    for (const auto& [book, first] : first_kept(*page, static_cast<int>(index_of(*page, account->rank)))) begin[book] = std::max(begin[book], first);
  }
  Books books;
  books.catalogues.resize(pages.size());
  books.programs.resize(pages.size());
  books.calls.resize(pages.size());
  for (std::size_t at = 0; at < pages.size(); ++at) {
    const auto& [account, page] = pages[at];
    books.catalogues[at].groups.push_back({page->axis, page->ranks});
    std::vector<std::int64_t> numbers;
    const int me = static_cast<int>(index_of(*page, account->rank));
    for (const FlightCall& call : page->calls) {
      const auto book = !is_pair(call.kind) ? std::pair(-1, -1) : call.kind == OpKind::send ? std::pair(me, call.peer) : std::pair(call.peer, me);
      if (call.number < begin[book]) continue;
      program::Op op{{}, program::OpDesc(call.name.c_str(), call.kind, call.dtype), 0, {call.file.c_str(), call.line}};
      op.desc.collective_of({0, 0, call.bytes, call.peer});
      if (numbers.empty() || numbers.back() != call.step) {
        numbers.push_back(call.step);
        books.programs[at].emplace_back();
        books.calls[at].emplace_back();
      }
      books.programs[at].back().ops.push_back(op);
      books.calls[at].back().push_back(&call);
    }
    books.ranks.push_back({account->rank, &books.catalogues[at], {}, numbers});
    for (const program::Program& program : books.programs[at]) books.ranks.back().steps.push_back(&program);
  }
  return books;
}

std::string did_text(Difference difference, OpKind kind) {
  switch (difference) {
    case Difference::missing: return "leaves out what";
    case Difference::extra: return "has a call more before what";
    case Difference::swapped: return "calls in another order what";
    case Difference::kind: return "calls another collective where";
    case Difference::bytes: return "calls it with another size where";
    case Difference::dtype: return "calls it with another type where";
    case Difference::root: return kind == OpKind::shift ? "calls it by another distance where" : "calls it with another root where";
    case Difference::stops: break;
  }
  return "differs where";
}

// The collective of this number, where the page still has it.
const FlightCall* collective(const FlightPage& page, std::uint64_t number) {
  const auto found = std::find_if(page.calls.begin(), page.calls.end(), [&](const FlightCall& call) { return !is_pair(call.kind) && call.number == number; });
  return found == page.calls.end() ? nullptr : &*found;
}

// Where pages that are alike otherwise ask for another reduction.
Verdict other_reduction(const Pages& pages) {
  const auto& [usual_account, usual_page] = pages.front();
  for (std::size_t at = 1; at < pages.size(); ++at) {
    const auto& [account, page] = pages[at];
    for (const FlightCall& usual : usual_page->calls) {
      const FlightCall* odd = is_pair(usual.kind) ? nullptr : collective(*page, usual.number);
      if (odd == nullptr || odd->reduction == usual.reduction) continue;
      return {Blame::differs, {account->rank}, {}, text("over ", members_text(*page), ", call ", odd->number + 1, ": rank ", account->rank,
              " calls it with another reduction where rank ", usual_account->rank, " calls ", call_text(usual), ": rank ", account->rank, " calls ", call_text(*odd)), ""};
    }
  }
  return {};
}

// The first all-to-all of which one rank expects of another what that does not send. Of two, the one that fits fewer of the
// others is odd, or the later one.
Verdict other_splits(const Pages& pages) {
  std::vector<std::size_t> places;   // in the group
  for (const auto& [account, page] : pages) places.push_back(index_of(*page, account->rank));
  for (const FlightCall& first : pages.front().second->calls) {
    if (first.sends.empty()) continue;
    std::vector<const FlightCall*> calls;
    for (const auto& [account, page] : pages) calls.push_back(collective(*page, first.number));
    const auto fits = [&](std::size_t from, std::size_t to) {
      return calls[from] == nullptr || calls[to] == nullptr || places[to] >= calls[from]->sends.size() || places[from] >= calls[to]->receives.size() ||
             calls[from]->sends[places[to]] == calls[to]->receives[places[from]];
    };
    const auto misfits = [&](std::size_t one) {
      std::size_t count = 0;
      for (std::size_t other = 0; other < pages.size(); ++other) count += !fits(one, other) + !fits(other, one);
      return count;
    };
    std::size_t odd = 0, most = 0;
    for (std::size_t one = 0; one < pages.size(); ++one) {
      if (const std::size_t count = misfits(one); count > 0 && count >= most) odd = one, most = count;
    }
    for (std::size_t usual = 0; most > 0 && usual < pages.size(); ++usual) {
      if (fits(usual, odd) && fits(odd, usual)) continue;
      const auto rank_of = [&](std::size_t at) { return pages[at].first->rank; };
      const std::size_t from = fits(usual, odd) ? odd : usual, to = from == odd ? usual : odd;
      return {Blame::differs, {rank_of(odd)}, Difference::bytes,
              text("over ", members_text(*pages[odd].second), ", call ", first.number + 1, ": ", pages[odd].first->name, " calls it with another size where rank ", rank_of(usual), " calls ",
                   call_text(*calls[usual]), ": rank ", rank_of(odd), " calls ", call_text(*calls[odd]), "; rank ", rank_of(from), " sends ", calls[from]->sends[places[to]], " bytes to rank ",
                   rank_of(to), ", which expects ", calls[to]->receives[places[from]]), ""};
    }
  }
  return {};
}

}  // namespace

Verdict who_differs(const std::vector<FlightAccount>& accounts) {
  std::map<std::pair<std::string, std::vector<Rank>>, Pages> groups;
  for (const FlightAccount& account : accounts) {
    for (const FlightPage& page : account.pages) groups[{page.axis, page.ranks}].push_back({&account, &page});
  }
  Verdict first;
  std::int64_t first_step = 0;
  for (const auto& [key, pages] : groups) {
    if (pages.size() < 2) continue;
    const Books books = books_of(pages);
    const auto name_of = [&](Rank rank) -> const std::string& {
      return std::find_if(pages.begin(), pages.end(), [&](const auto& one) { return one.first->rank == rank; })->first->name;
    };
    const auto call_at = [&](Rank rank, Place place) -> const FlightCall& {
      std::size_t at = 0;
      while (books.ranks[at].rank != rank) ++at;
      return *books.calls[at][place.step][place.op];
    };
    for (const Divergence& found : divergences(books.ranks)) {
      // Who is only behind has not done anything else.
      if (found.difference == Difference::stops || found.usual_call.op == program::no_op || found.odd_call.op == program::no_op) continue;
      const FlightCall &usual = call_at(found.usual, found.usual_call), &odd = call_at(found.odd, found.odd_call);
      if (first.blame != Blame::nobody && first_step <= odd.step) continue;
      first_step = odd.step;
      first = {Blame::differs, {found.odd}, found.difference,
               text("over ", members_text(*pages[0].second), ", call ", odd.number + 1, ": ", name_of(found.odd), " ", did_text(found.difference, usual.kind), " rank ", found.usual,
                    " calls ", call_text(usual), ": rank ", found.odd, " calls ", call_text(odd)), ""};
    }
    if (first.blame == Blame::nobody) first = other_reduction(pages);
    if (first.blame == Blame::nobody) first = other_splits(pages);
  }
  return first;
}

}  // namespace shardbook::check
