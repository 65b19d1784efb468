#include "engine/check/ledger.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/check/words.hpp"

namespace shardbook::check {

using base::Rank;
using base::text;
using program::GroupInfo;
using program::Op;
using program::is_pair;
using program::OpKind;

const char* name_of(Difference difference) {
  static constexpr const char* names[] = {"stops", "missing", "extra", "swapped", "kind", "bytes", "dtype", "root"};
  return names[static_cast<int>(difference)];
}

namespace {

struct Call {
  const Op* op;
  Place place;
  std::int64_t step;   // its number
};
struct Page {
  Rank rank;
  std::vector<Call> calls;
};
struct Book {
  GroupInfo group;
  std::vector<Page> pages;  // by rank, upwards
};

// In what `odd` differs from the call that it should be one with.
std::optional<Difference> difference_of(const Call& usual, const Call& odd) {
  const program::OpDesc &a = usual.op->desc, &b = odd.op->desc;
  const bool pair = is_pair(a.kind) && is_pair(b.kind);
  if (!pair && a.kind != b.kind) return Difference::kind;
  if (a.dtype != b.dtype) return Difference::dtype;
  if (a.kind != OpKind::all_to_all && a.collective.bytes != b.collective.bytes) return Difference::bytes;
  if (!pair && a.collective.peer != b.collective.peer) return Difference::root;
  if (usual.step != odd.step) return odd.step > usual.step ? Difference::missing : Difference::extra;
  return std::nullopt;
}
bool alike(const Call& a, const Call& b) { return !difference_of(a, b); }

// How many calls are alike from there on; a few hundred tell enough. Two pages that end together are alike for ever.
std::size_t alike_from(const std::vector<Call>& a, std::size_t at_a, const std::vector<Call>& b, std::size_t at_b) {
  constexpr std::size_t enough = 256;
  std::size_t count = 0;
  while (count < enough && at_a + count < a.size() && at_b + count < b.size() && alike(a[at_a + count], b[at_b + count])) ++count;
  return at_a + count == a.size() && at_b + count == b.size() ? enough : count;
}

// What has `odd` done at `at`, where the pages are alike up to there? The error that explains most of what follows.
Difference explain(const std::vector<Call>& usual, const std::vector<Call>& odd, std::size_t at) {
  if (at == odd.size()) return Difference::stops;
  if (at == usual.size()) return Difference::extra;
  Difference best = *difference_of(usual[at], odd[at]);
  std::size_t most = alike_from(usual, at + 1, odd, at + 1);
  auto weigh = [&](Difference difference, std::size_t explains) {
    if (explains > most) most = explains, best = difference;
  };
  if (at + 1 < usual.size() && at + 1 < odd.size() && alike(usual[at], odd[at + 1]) && alike(usual[at + 1], odd[at])) {
    weigh(Difference::swapped, 1 + alike_from(usual, at + 2, odd, at + 2));
  }
  weigh(Difference::missing, alike_from(usual, at + 1, odd, at));
  weigh(Difference::extra, alike_from(usual, at, odd, at + 1));
  return best;
}

std::string call_text(const Op& op) {
  std::string said = text(op.desc.name, " of ", op.desc.collective.bytes, " bytes ", base::name_of(op.desc.dtype));
  if (op.desc.kind == OpKind::broadcast) said += text(" from ", op.desc.collective.peer);
  if (op.desc.kind == OpKind::shift) said += text(" by ", op.desc.collective.peer);
  if (*op.key.part != '\0') said += text(", ", op.key.part);
  said += text(" (", program::name_of(op.key.phase));
  if (op.key.layer >= 0) said += text(", layer ", op.key.layer);
  if (op.key.micro_batch >= 0) said += text(", micro-batch ", op.key.micro_batch);
  return said + text("; ", line_text(op.where), ")");
}

std::string members_text(const GroupInfo& group) {
  std::string said = text(group.axis, " (ranks ");
  for (std::size_t at = 0; at < group.ranks.size() && at < 8; ++at) said += text(at == 0 ? "" : ", ", group.ranks[at]);
  return said + (group.ranks.size() > 8 ? text(" … ", group.ranks.back(), ")") : ")");
}

Divergence diverges(const Book& book, const Page& usual, const Page& odd, std::size_t at) {
  Divergence found{book.group, explain(usual.calls, odd.calls, at), usual.rank, odd.rank, at, {}, {}, ""};
  const std::string where = text("over ", members_text(book.group), ", call ", at + 1, ": rank ", odd.rank);
  if (found.difference == Difference::stops) {
    found.usual_call = usual.calls[at].place;
    if (at > 0) found.odd_call = odd.calls[at - 1].place;
    found.sentence = text(where, " stops after ", at, at == 1 ? " call" : " calls", at > 0 ? ", the last " + call_text(*odd.calls[at - 1].op) : "",
                          ", where rank ", usual.rank, " goes on with ", call_text(*usual.calls[at].op), " and waits for it for ever");
    return found;
  }
  found.odd_call = odd.calls[at].place;
  const std::string odd_call = call_text(*odd.calls[at].op);
  if (at == usual.calls.size()) {
    if (at > 0) found.usual_call = usual.calls[at - 1].place;
    found.sentence = text(where, " calls ", odd_call, " and waits for ever for rank ", usual.rank, ", which has stopped",
                          at > 0 ? " after " + call_text(*usual.calls[at - 1].op) : "");
    return found;
  }
  found.usual_call = usual.calls[at].place;
  const std::string usual_call = call_text(*usual.calls[at].op);
  switch (found.difference) {
    case Difference::missing:
      found.sentence = text(where, " leaves out what rank ", usual.rank, " calls, ", usual_call, ", and goes on with ", odd_call);
      break;
    case Difference::extra:
      found.sentence = text(where, " has a call more, ", odd_call, ", before what rank ", usual.rank, " calls, ", usual_call);
      break;
    case Difference::swapped:
      found.sentence = text(where, " calls ", odd_call, " before what rank ", usual.rank, " calls first, ", usual_call);
      break;
    default:
      found.sentence = text(where, " calls ", odd_call, " where rank ", usual.rank, " calls ", usual_call, ": another ",
                            found.difference == Difference::bytes ? "size" : found.difference == Difference::dtype ? "type"
                            : usual.calls[at].op->desc.kind == OpKind::shift ? "distance" : name_of(found.difference));
  }
  return found;
}

// The first place where not all pages are alike; most of them are `usual` there.
std::optional<Divergence> first_divergence(const Book& book) {
  const std::vector<Page>& pages = book.pages;
  std::size_t longest = 0;
  for (const Page& page : pages) longest = std::max(longest, page.calls.size());
  for (std::size_t at = 0; at < longest; ++at) {
    auto same = [at](const Page& a, const Page& b) {
      const bool a_ends = at >= a.calls.size(), b_ends = at >= b.calls.size();
      return a_ends || b_ends ? a_ends == b_ends : alike(a.calls[at], b.calls[at]);
    };
    if (std::all_of(pages.begin(), pages.end(), [&](const Page& page) { return same(pages.front(), page); })) continue;
    const Page* usual = nullptr;
    std::ptrdiff_t most = 0;
    for (const Page& page : pages) {
      const auto like_it = std::count_if(pages.begin(), pages.end(), [&](const Page& other) { return same(page, other); });
      // Who goes on is usual before who has stopped.
      const bool better = like_it > most || (like_it == most && at >= usual->calls.size());
      if (better) most = like_it, usual = &page;
    }
    const auto odd = std::find_if(pages.begin(), pages.end(), [&](const Page& page) { return !same(*usual, page); });
    return diverges(book, *usual, *odd, at);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Divergence> divergences(const std::vector<RankSteps>& ranks) {
  // A page for each rank that is given, also where it calls nothing
  using GroupKey = std::pair<std::string, std::vector<Rank>>;
  std::map<GroupKey, std::map<Rank, std::vector<Call>>> collectives;
  std::map<std::pair<GroupKey, std::pair<Rank, Rank>>, std::map<Rank, std::vector<Call>>> pairs;
  std::set<Rank> given;
  for (const RankSteps& rank : ranks) given.insert(rank.rank);
  for (const RankSteps& rank : ranks) {
    for (const GroupInfo& group : rank.catalogue->groups) {
      auto& pages = collectives[{group.axis, group.ranks}];
      for (Rank member : group.ranks) {
        if (given.contains(member)) pages[member];
      }
    }
  }

  // Write the books: one a group, and one for each pair that sends
  for (const RankSteps& rank : ranks) {
    for (std::uint32_t step = 0; step < rank.steps.size(); ++step) {
      const std::vector<Op>& ops = rank.steps[step]->ops;
      for (program::OpIndex at = 0; at < ops.size(); ++at) {
        const program::CollectiveUse& use = ops[at].desc.collective;
        if (use.group == program::no_group) continue;
        const GroupInfo& group = rank.catalogue->groups[use.group];
        const GroupKey key{group.axis, group.ranks};
        const Call call{&ops[at], {step, at}, rank.numbers.empty() ? step : rank.numbers[step]};
        if (!is_pair(ops[at].desc.kind)) {
          collectives[key][rank.rank].push_back(call);
          continue;
        }
        const bool known = use.peer >= 0 && static_cast<std::size_t>(use.peer) < group.ranks.size();
        const Rank peer = known ? group.ranks[static_cast<std::size_t>(use.peer)] : -1;
        const bool sends = ops[at].desc.kind == OpKind::send;
        auto& pages = pairs[{key, sends ? std::pair(rank.rank, peer) : std::pair(peer, rank.rank)}];
        pages[rank.rank].push_back(call);
        if (given.contains(peer)) pages[peer];
      }
    }
  }

  // Read each one's pages side by side
  std::vector<Divergence> found;
  auto read = [&found](const GroupKey& key, std::map<Rank, std::vector<Call>>& pages) {
    Book book{{key.first, key.second}, {}};
    for (auto& [rank, calls] : pages) book.pages.push_back({rank, std::move(calls)});
    if (std::optional<Divergence> divergence = first_divergence(book)) found.push_back(std::move(*divergence));
  };
  for (auto& [key, pages] : collectives) read(key, pages);
  for (auto& [key, pages] : pairs) read(key.first, pages);
  return found;
}

}  // namespace shardbook::check
