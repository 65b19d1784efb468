#include "engine/check/accesses.hpp"

#include <iterator>

namespace shardbook::check {

void Accesses::cut(base::Bytes at) {
  auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin()) return;
  auto& [begin, range] = *std::prev(next);
  if (begin == at || range.end <= at) return;
  Range rest = range;
  range.end = at;
  ranges_.emplace_hint(next, at, std::move(rest));
}

void Accesses::fill(base::Bytes begin, base::Bytes end) {
  auto at = ranges_.lower_bound(begin);
  while (begin < end) {
    const base::Bytes known = at == ranges_.end() || at->first > end ? end : at->first;
    if (begin < known) ranges_.emplace_hint(at, begin, Range{known, no_op_number, {}});
    if (at == ranges_.end() || at->first >= end) return;
    begin = at->second.end;
    ++at;
  }
}

void Accesses::add_reader(Range& range, Reader op) {
  for (Reader& known : range.readers) {
    if (known.stream != op.stream) continue;
    known.op = op.op;
    return;
  }
  range.readers.push_back(op);
}

}  // namespace shardbook::check
