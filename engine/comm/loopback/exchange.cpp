#include "engine/comm/loopback/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "engine/check/words.hpp"

namespace shardbook::comm {

using program::is_pair;
using program::OpKind;

std::string call_text(const Visit& visit) { return base::text(program::name_of(visit.kind), " ", visit.ticket); }

std::string site_text(const Visit& visit, const char* file) {
  std::string said = base::text(visit.elements, " ", base::name_of(visit.nominal));
  if (visit.kind == OpKind::broadcast) said += base::text(" from index ", visit.peer);
  if (visit.kind == OpKind::shift) said += base::text(" by ", visit.peer);
  said += base::text(", ", program::name_of(visit.phase));
  if (visit.layer >= 0) said += base::text(", layer ", visit.layer);
  if (visit.micro_batch >= 0) said += base::text(", micro-batch ", visit.micro_batch);
  return said + base::text("; ", check::line_text({file, visit.line}));
}

std::string members_text(const std::string& axis, const std::vector<base::Rank>& ranks) {
  constexpr std::size_t most = 8;
  std::string said = axis + " (ranks ";
  for (std::size_t at = 0; at < std::min(ranks.size(), most); ++at) said += base::text(at == 0 ? "" : ", ", ranks[at]);
  return said + (ranks.size() > most ? base::text(" … ", ranks.back(), ")") : ")");
}

namespace {

// "all_reduce 3 (8 f32, forward, layer 1; engine/model/block.cpp:20)"
std::string text_of(const Visitor& visitor) { return base::text(call_text(*visitor.visit), " (", site_text(*visitor.visit, visitor.file), ")"); }

// In what two visits of one call differ; null: in nothing that counts.
const char* difference(const Visit& a, const Visit& b) {
  if (!is_pair(a.kind) && a.kind != b.kind) return "another kind";
  if (a.nominal != b.nominal || a.dtype != b.dtype) return "another type";
  // Of an all-to-all each rank sends as much as it has; the splits tell.
  if (a.kind != OpKind::all_to_all && a.elements != b.elements) return "another size";
  if (a.kind == OpKind::broadcast && a.peer != b.peer) return "another root";
  if (a.kind == OpKind::shift && a.peer != b.peer) return "another distance";
  if (a.reduction != b.reduction) return "another reduction";
  return nullptr;
}

void expect_splits_to_meet(const std::string& group, const std::vector<Visitor>& visitors) {
  for (std::size_t from = 0; from < visitors.size(); ++from) {
    for (std::size_t to = 0; to < visitors.size(); ++to) {
      if (visitors[from].send[to] == visitors[to].receive[from]) continue;
      throw base::Failure(base::text("ranks disagree over ", group, ": rank ", visitors[from].rank, " sends ", visitors[from].send[to],
                                     " elements to rank ", visitors[to].rank, " in ", text_of(visitors[from]),
                                     ", which expects ", visitors[to].receive[from], " in ", text_of(visitors[to])));
    }
  }
}

}  // namespace

void expect_agreement(const std::string& group, const std::vector<Visitor>& visitors) {
  const auto first = std::find_if(visitors.begin(), visitors.end(), [](const Visitor& one) { return one.visit != nullptr; });
  for (auto other = first + 1; other < visitors.end(); ++other) {
    if (other->visit == nullptr) continue;
    const char* differs = difference(*first->visit, *other->visit);
    if (differs == nullptr) continue;
    throw base::Failure(base::text("ranks disagree over ", group, ": rank ", first->rank, " calls ", text_of(*first), ", where rank ",
                                   other->rank, " calls ", text_of(*other), ": ", differs));
  }
  if (first->visit->kind == OpKind::all_to_all) expect_splits_to_meet(group, visitors);
}

namespace {

template <class T>
void reduce(const std::vector<Visitor>& visitors) {
  // Reduce a short run of elements at a time, ranks in group order, and hand it to whoever gets it: all
  // of them, or the one whose shard it is. In and out may be the same memory.
  constexpr std::int64_t run = 1024;
  T total[run];
  const int size = static_cast<int>(visitors.size());
  const Visit& visit = *visitors[0].visit;
  const bool scatter = visit.kind == OpKind::reduce_scatter;
  for (int shard = 0; shard < (scatter ? size : 1); ++shard) {
    for (std::int64_t begin = 0; begin < visit.elements; begin += run) {
      const std::int64_t count = std::min(run, visit.elements - begin);
      for (int index = 0; index < size; ++index) {
        const T* in = reinterpret_cast<const T*>(visitors[index].in) + shard * visit.elements + begin;
        for (std::int64_t at = 0; at < count; ++at) {
          if (index == 0) total[at] = in[at];
          else if (visit.reduction == Reduction::max) total[at] = std::max(total[at], in[at]);
          else total[at] += in[at];
        }
      }
      for (int index = 0; index < size; ++index) {
        if (scatter && index != shard) continue;
        std::copy_n(total, count, reinterpret_cast<T*>(visitors[index].out) + begin);
      }
    }
  }
}

void move(const std::vector<Visitor>& visitors) {
  const int size = static_cast<int>(visitors.size());
  for (int to = 0; to < size; ++to) {
    const Visitor& receiver = visitors[to];
    if (receiver.visit == nullptr) continue;
    const std::int64_t width = base::size_of(receiver.visit->dtype), elements = receiver.visit->elements;
    const auto copy = [&](const std::byte* from, std::int64_t from_element, std::int64_t to_element, std::int64_t count) {
      const std::byte* source = from + from_element * width;
      std::byte* target = receiver.out + to_element * width;
      if (source != target && count > 0) std::memcpy(target, source, static_cast<std::size_t>(count * width));
    };
    switch (receiver.visit->kind) {
      case OpKind::all_gather:
        for (int from = 0; from < size; ++from) copy(visitors[from].in, 0, from * elements, elements);
        break;
      case OpKind::broadcast: case OpKind::recv: copy(visitors[receiver.visit->peer].in, 0, 0, elements); break;
      case OpKind::shift: copy(visitors[(to + size - receiver.visit->peer) % size].in, 0, 0, elements); break;
      case OpKind::all_to_all: {
        std::int64_t target = 0;
        for (int from = 0; from < size; ++from) {
          std::int64_t source = 0;
          for (int before = 0; before < to; ++before) source += visitors[from].send[before];
          copy(visitors[from].in, source, target, receiver.receive[from]);
          target += receiver.receive[from];
        }
        break;
      }
      default: break;
    }
  }
}

}  // namespace

void carry_out(const std::vector<Visitor>& visitors) {
  const auto present = std::find_if(visitors.begin(), visitors.end(), [](const Visitor& one) { return one.visit != nullptr; });
  const Visit& visit = *present->visit;
  if (visit.kind != OpKind::all_reduce && visit.kind != OpKind::reduce_scatter) return move(visitors);
  switch (visit.dtype) {
    case base::DType::f32: return reduce<float>(visitors);
    case base::DType::f64: return reduce<double>(visitors);
    case base::DType::i32: return reduce<std::int32_t>(visitors);
    case base::DType::bf16: break;
  }
  SHARDBOOK_CHECK(false, "the host reduces no ", base::name_of(visit.dtype));
}

}  // namespace shardbook::comm
