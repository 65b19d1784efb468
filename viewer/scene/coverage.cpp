// scene/coverage: blocks of intervals and a pyramid over them; see coverage.hpp.
#include "viewer/scene/coverage.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.hpp"

namespace shardbook::scene {
namespace {

constexpr std::size_t block_size = 64;
constexpr std::size_t intervals_a_slice = 16;
constexpr int least_bits = 10, most_bits = 61;
constexpr Nanoseconds longest_offset = std::numeric_limits<std::uint32_t>::max();

struct Piece {
  std::uint32_t start, end;            // from the base of its block; of one that is alone there the end is not read
};
struct Block {
  Nanoseconds base, prefix;            // its time; busy time before it
  std::uint32_t first;                 // its first piece
};

}  // namespace

struct Coverage::Data {
  std::vector<Piece> pieces;
  std::vector<Block> blocks;           // one more stands at the end: base = end of all, prefix = total
  int bits = least_bits;               // slices of level 0 are 2^bits ns long
  Nanoseconds lowest = 0;              // number of the first slice of level 0: its begin >> bits
  std::vector<std::vector<Nanoseconds>> levels;

  explicit Data(const Intervals& busy);
  void add(Interval interval);
  void make_levels();

  std::size_t count() const { return blocks.size() - 1; }
  Nanoseconds total() const { return blocks.back().prefix; }
  // The interval that is alone in a block may be longer than an offset can say: its length is the block's busy time.
  bool alone(std::size_t block) const { return blocks[block + 1].first - blocks[block].first == 1; }
  Nanoseconds busy_of(std::size_t block) const { return blocks[block + 1].prefix - blocks[block].prefix; }
  // The last block that begins at or before `time`; count() if it is after all, REQUIRES time >= begin of the first.
  std::size_t block_of(Nanoseconds time, std::size_t from = 0) const;
  Nanoseconds before(Nanoseconds time) const;

  // Busy time before ascending times, one after the other.
  class Cursor {
   public:
    explicit Cursor(const Data& data) : data_(data) {}
    Nanoseconds before(Nanoseconds time) {
      if (time <= data_.blocks.front().base) return 0;
      if (time >= data_.blocks[block_ + 1].base) enter(data_.block_of(time, block_ + 1));
      const Nanoseconds offset = time - data_.blocks[block_].base;
      if (data_.alone(block_)) return data_.blocks[block_].prefix + std::min(offset, data_.busy_of(block_));
      const std::uint32_t last = data_.blocks[block_ + 1].first;
      while (piece_ < last && data_.pieces[piece_].end <= offset) {
        sum_ += data_.pieces[piece_].end - data_.pieces[piece_].start;
        ++piece_;
      }
      if (piece_ == last || data_.pieces[piece_].start >= offset) return sum_;
      return sum_ + offset - data_.pieces[piece_].start;
    }

   private:
    void enter(std::size_t block) {
      // The entry after all blocks says where they end: from there on it is the last block, all walked through.
      block_ = std::min(block, data_.count() - 1);
      piece_ = data_.blocks[block].first;
      sum_ = data_.blocks[block].prefix;
    }
    const Data& data_;
    std::size_t block_ = 0;
    std::uint32_t piece_ = 0;
    Nanoseconds sum_ = 0;
  };
};

Coverage::Data::Data(const Intervals& busy) {
  pieces.reserve(busy.size());
  blocks.reserve(busy.size() / block_size + 2);
  Nanoseconds sum = 0;
  Nanoseconds end = 0;
  for (const Interval interval : busy) {
    if (interval.end <= interval.start) continue;
    const bool fits = !blocks.empty() && pieces.size() - blocks.back().first < block_size && interval.end - blocks.back().base <= longest_offset;
    if (!fits) blocks.push_back({interval.start, sum, static_cast<std::uint32_t>(pieces.size())});
    const Nanoseconds base = blocks.back().base;
    pieces.push_back({static_cast<std::uint32_t>(interval.start - base), static_cast<std::uint32_t>(std::min(interval.end - base, longest_offset))});
    sum += interval.length();
    end = interval.end;
  }
  if (pieces.empty()) return;
  blocks.push_back({end, sum, static_cast<std::uint32_t>(pieces.size())});
  blocks.shrink_to_fit();
  make_levels();
}

void Coverage::Data::make_levels() {
  // The finest slices that are few enough.
  const Nanoseconds first = blocks.front().base, end = blocks.back().base;
  const auto slices_at = [&](int shift) { return static_cast<std::uint64_t>(end >> shift) - static_cast<std::uint64_t>(first >> shift) + 1; };
  while (bits < most_bits && slices_at(bits) > pieces.size() / intervals_a_slice + 1) ++bits;
  lowest = first >> bits;

  // Level 0 from the intervals; each further one is every second entry of the one below.
  std::vector<Nanoseconds> level(slices_at(bits) + 1);
  Cursor cursor(*this);
  for (std::size_t i = 0; i < level.size(); ++i) level[i] = cursor.before((lowest + static_cast<Nanoseconds>(i)) << bits);
  levels.push_back(std::move(level));
  for (int k = 1; bits + k <= most_bits && levels.back().size() > 2; ++k) {
    const std::vector<Nanoseconds>& below = levels.back();
    const Nanoseconds lowest_below = lowest >> (k - 1), lowest_here = lowest >> k;
    std::vector<Nanoseconds> here(slices_at(bits + k) + 1);
    for (std::size_t i = 0; i < here.size(); ++i) {
      const Nanoseconds place = 2 * (lowest_here + static_cast<Nanoseconds>(i)) - lowest_below;
      here[i] = place < 0 ? 0 : place < static_cast<Nanoseconds>(below.size()) ? below[static_cast<std::size_t>(place)] : total();
    }
    levels.push_back(std::move(here));
  }
}

std::size_t Coverage::Data::block_of(Nanoseconds time, std::size_t from) const {
  // Galloping: the next edge of a picture is mostly near.
  std::size_t step = 1, low = from;
  while (low + step < blocks.size() && blocks[low + step].base <= time) {
    low += step;
    step *= 2;
  }
  const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(std::min(low + step, blocks.size()));
  const auto after = std::upper_bound(begin, end, time, [](Nanoseconds wanted, const Block& block) { return wanted < block.base; });
  return static_cast<std::size_t>(after - blocks.begin()) - 1;
}

Nanoseconds Coverage::Data::before(Nanoseconds time) const {
  if (time <= blocks.front().base) return 0;
  if (time >= blocks.back().base) return total();
  const auto after = std::upper_bound(blocks.begin(), blocks.end(), time,
                                      [](Nanoseconds wanted, const Block& block) { return wanted < block.base; });
  const Block& block = *std::prev(after);
  const Nanoseconds offset = time - block.base;
  const auto at = static_cast<std::size_t>(after - blocks.begin()) - 1;
  if (alone(at)) return block.prefix + std::min(offset, busy_of(at));
  Nanoseconds sum = block.prefix;
  for (std::uint32_t i = block.first; i < after->first && pieces[i].start < offset; ++i) {
    sum += std::min<Nanoseconds>(pieces[i].end, offset) - pieces[i].start;
  }
  return sum;
}

Coverage::Coverage(const Intervals& busy) {
  const bool any = std::any_of(busy.begin(), busy.end(), [](Interval interval) { return interval.end > interval.start; });
  if (any) data_ = std::make_shared<const Data>(busy);
}

Nanoseconds Coverage::total() const { return empty() ? 0 : data_->total(); }

Interval Coverage::extent() const {
  return empty() ? Interval{} : Interval{data_->blocks.front().base, data_->blocks.back().base};
}

Nanoseconds Coverage::busy(Interval window) const {
  if (empty() || window.end <= window.start) return 0;
  return data_->before(window.end) - data_->before(window.start);
}

void Coverage::columns(std::span<const Nanoseconds> edges, std::span<Nanoseconds> out) const {
  SHARDBOOK_CHECK_EQ(out.size() + 1, edges.size(), "columns and their edges");
  if (empty()) {
    std::fill(out.begin(), out.end(), 0);
    return;
  }
  // The level whose slices all inner edges are multiples of.
  std::uint64_t together = 0;
  for (std::size_t i = 1; i + 1 < edges.size(); ++i) together |= static_cast<std::uint64_t>(edges[i]);
  const int shift = edges.size() > 2 && together != 0 ? std::countr_zero(together) : 0;
  if (shift < data_->bits) {
    Data::Cursor cursor(*data_);
    Nanoseconds last = cursor.before(edges.front());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Nanoseconds next = cursor.before(edges[i + 1]);
      out[i] = next - last;
      last = next;
    }
    return;
  }
  const auto level = std::min(static_cast<std::size_t>(shift - data_->bits), data_->levels.size() - 1);
  const std::vector<Nanoseconds>& values = data_->levels[level];
  const int bits = data_->bits + static_cast<int>(level);
  const Nanoseconds lowest = data_->lowest >> level;
  Nanoseconds last = data_->before(edges.front());
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    const Nanoseconds slice = (edges[i + 1] >> bits) - lowest;
    const Nanoseconds next = slice < 0 ? 0 : slice < static_cast<Nanoseconds>(values.size()) ? values[static_cast<std::size_t>(slice)] : data_->total();
    out[i] = next - last;
    last = next;
  }
  out.back() = data_->before(edges.back()) - last;
}

Intervals Coverage::within(Interval window, std::size_t most) const {
  Intervals out;
  if (empty() || window.end <= window.start || window.end <= data_->blocks.front().base) return out;
  std::size_t b = window.start <= data_->blocks.front().base ? 0 : data_->block_of(window.start);
  for (; b < data_->count() && data_->blocks[b].base < window.end; ++b) {
    const Block& block = data_->blocks[b];
    for (std::uint32_t i = block.first; i < data_->blocks[b + 1].first; ++i) {
      const Nanoseconds end = data_->alone(b) ? data_->busy_of(b) : data_->pieces[i].end;
      const Interval next{block.base + data_->pieces[i].start, block.base + end};
      if (next.end <= window.start) continue;
      if (next.start >= window.end) return out;
      if (!out.empty() && out.back().end == next.start) {
        out.back().end = next.end;
      } else if (out.size() == most) {
        return out;
      } else {
        out.push_back(next);
      }
    }
  }
  return out;
}

std::size_t Coverage::intervals() const { return empty() ? 0 : data_->pieces.size(); }

std::size_t Coverage::memory() const {
  if (empty()) return 0;
  std::size_t sum = sizeof(Data) + data_->pieces.capacity() * sizeof(Piece) + data_->blocks.capacity() * sizeof(Block);
  for (const auto& level : data_->levels) sum += level.capacity() * sizeof(Nanoseconds);
  return sum;
}

}  // namespace shardbook::scene
