#include "engine/comm/loopback/meetings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>

namespace shardbook::comm {

namespace {

using Number64 = std::atomic_ref<std::uint64_t>;

// So many calls of a communicator may be under way at once on one rank, each on a stream of its own.
constexpr std::size_t collective_places = 16, pair_places = 4;

using Path = std::array<char, 104>;
// A path that is too long loses its begin.
void keep_end(std::string_view path, Path& into) {
  if (path.size() >= into.size()) path.remove_prefix(path.size() - into.size() + 1);
  into[path.copy(into.data(), path.size())] = '\0';
}

}  // namespace

// What one rank has left at a place.
struct Meetings::Entry {
  std::uint64_t came;
  base::Nanoseconds since;
  Visit visit;
  Path file;
};

// A place: this, then an entry for each who meets there, then, for collectives, two counts for each pair of ranks.
struct Meetings::Place {
  std::uint64_t arrived;
  std::uint64_t done;

  Entry& entry(int number) { return reinterpret_cast<Entry*>(this + 1)[number]; }
  // Of all_to_all: what rank `index` of `size` sends to each, then what it receives from each.
  std::int64_t* splits(int index, int size) {
    return reinterpret_cast<std::int64_t*>(&entry(size)) + static_cast<std::ptrdiff_t>(2) * size * index;
  }
  static std::size_t collective_bytes(int size) {
    const std::size_t n = static_cast<std::size_t>(size);
    return sizeof(Place) + n * sizeof(Entry) + 2 * n * n * sizeof(std::int64_t);
  }
  static std::size_t pair_bytes() { return sizeof(Place) + 2 * sizeof(Entry); }
};

Meetings::Meetings(Roll& roll, Memories& memories, std::string axis, std::vector<base::Rank> ranks, std::byte* table)
    : roll_(roll), memories_(memories), axis_(std::move(axis)), ranks_(std::move(ranks)), size_(static_cast<int>(ranks_.size())), table_(table) {
  static_assert(alignof(Place) <= 8 && alignof(Entry) <= 8 && sizeof(Place) % 8 == 0 && sizeof(Entry) % 8 == 0);
}

std::size_t Meetings::bytes_for(int size) {
  const std::size_t n = static_cast<std::size_t>(size);
  return collective_places * Place::collective_bytes(size) + n * n * pair_places * Place::pair_bytes();
}

Meetings::Place& Meetings::collective_place(std::size_t number) const {
  return *reinterpret_cast<Place*>(table_ + number * Place::collective_bytes(size_));
}

Meetings::Place& Meetings::pair_place(int from, int to, std::size_t number) const {
  const std::size_t pair = static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(to);
  return *reinterpret_cast<Place*>(table_ + collective_places * Place::collective_bytes(size_) + (pair * pair_places + number) * Place::pair_bytes());
}

Meetings::Seat Meetings::seat_of(int index, const Visit& visit) const {
  const bool sends = visit.kind == program::OpKind::send, receives = visit.kind == program::OpKind::recv;
  const std::size_t places = sends || receives ? pair_places : collective_places;
  const std::uint64_t round = visit.ticket / places;
  const std::size_t number = visit.ticket % places;
  if (sends) return {&pair_place(index, visit.peer, number), 0, 2, round};
  if (receives) return {&pair_place(visit.peer, index, number), 1, 2, round};
  return {&collective_place(number), index, size_, round};
}

bool Meetings::attend(int index, const Visit& visit, const char* file, const std::int64_t* send, const std::int64_t* receive) {
  const Seat seat = seat_of(index, visit);
  Place& place = *seat.place;
  Entry& mine = place.entry(seat.entry);
  const Number64 done(place.done), came(mine.came);
  if (came.load(std::memory_order_relaxed) != seat.round + 1) {
    // The meeting that has the place before this one may not be over.
    if (done.load(std::memory_order_acquire) < seat.round) return false;

    // Leave what is brought.
    mine.visit = visit;
    mine.visit.in = memories_.address_of(reinterpret_cast<const void*>(visit.in));
    mine.visit.out = memories_.address_of(reinterpret_cast<const void*>(visit.out));
    keep_end(file, mine.file);
    mine.since = program::host_now();
    if (send != nullptr) {
      std::copy_n(send, size_, place.splits(index, size_));
      std::copy_n(receive, size_, place.splits(index, size_) + size_);
    }
    came.store(seat.round + 1, std::memory_order_release);

    // The last to arrive does the work, and tells those who wait.
    const std::uint64_t arrived = Number64(place.arrived).fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived == (seat.round + 1) * static_cast<std::uint64_t>(seat.expected)) {
      work(seat);
      done.store(seat.round + 1, std::memory_order_release);
      roll_.changed();
    }
  }
  return done.load(std::memory_order_acquire) >= seat.round + 1;
}

void Meetings::work(const Seat& seat) const {
  // Everyone's memory, as it is seen from here
  std::vector<Visitor> visitors(ranks_.size());
  const bool pair = seat.place->entry(0).visit.kind == program::OpKind::send;
  for (int entry = 0; entry < seat.expected; ++entry) {
    Entry& left = seat.place->entry(entry);
    const Visit& visit = left.visit;
    // Of a pair each names the other.
    const int index = pair ? seat.place->entry(1 - entry).visit.peer : entry;
    Visitor& visitor = visitors[static_cast<std::size_t>(index)];
    const base::Rank rank = ranks_[static_cast<std::size_t>(index)];
    const std::int64_t width = base::size_of(visit.dtype);
    visitor.visit = &visit;
    visitor.rank = rank;
    visitor.file = left.file.data();
    if (visit.in != 0) visitor.in = memories_.at(rank, visit.in, visit.in_elements * width);
    if (visit.out != 0) visitor.out = memories_.at(rank, visit.out, visit.out_elements * width);
    if (visit.kind != program::OpKind::all_to_all) continue;
    visitor.send = seat.place->splits(index, size_);
    visitor.receive = visitor.send + size_;
  }
  expect_agreement(members_text(axis_, ranks_), visitors);
  carry_out(visitors);
}

void Meetings::tell(Place& place, const std::vector<int>& indices, int only, std::vector<Waiting>& found) const {
  const std::uint64_t done = Number64(place.done).load(std::memory_order_acquire);
  std::vector<base::Rank> missing;
  std::vector<std::size_t> here;
  for (std::size_t entry = 0; entry < indices.size(); ++entry) {
    const bool came = Number64(place.entry(static_cast<int>(entry)).came).load(std::memory_order_acquire) > done;
    if (came) here.push_back(entry);
    else missing.push_back(ranks_[static_cast<std::size_t>(indices[entry])]);
  }
  for (const std::size_t entry : here) {
    if (only >= 0 && indices[entry] != only) continue;
    const base::Rank rank = ranks_[static_cast<std::size_t>(indices[entry])];
    const Entry& left = place.entry(static_cast<int>(entry));
    found.push_back({rank, left.since, call_text(left.visit) + " over " + axis_, site_text(left.visit, left.file.data()), missing});
    if (!missing.empty()) continue;
    // All have come, and one of the others does the work.
    for (const int other : indices) {
      if (other != indices[entry]) found.back().missing.push_back(ranks_[static_cast<std::size_t>(other)]);
    }
  }
}

std::vector<Meetings::Waiting> Meetings::waiting(int index) const {
  std::vector<Waiting> found;
  std::vector<int> all(ranks_.size());
  for (int at = 0; at < size_; ++at) all[static_cast<std::size_t>(at)] = at;
  for (std::size_t number = 0; number < collective_places; ++number) tell(collective_place(number), all, index, found);
  for (int from = 0; from < size_; ++from) {
    for (int to = 0; to < size_; ++to) {
      if (from == to || (index >= 0 && from != index && to != index)) continue;
      for (std::size_t number = 0; number < pair_places; ++number) tell(pair_place(from, to, number), {from, to}, index, found);
    }
  }
  return found;
}

}  // namespace shardbook::comm
