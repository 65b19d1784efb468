// timeline/edges: why could a span not start before another had ended?
//
// A run has an edge for every third span or so, and as a struct an edge takes 20 bytes. But which two tracks it joins,
// and of what kind it is, is the same for thousands: such a way is stored once, and an edge is the number of its
// way and two indices, 12 bytes. Made once, in the order given; reading gives each edge as the struct.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace shardbook::timeline {

// Why one span cannot start (or, for collective, end) before another has ended (or started).
//   stream         the span before it on its stream
//   event          a stream awaited an event that was recorded after `from`
//   host           `from` is the call that launched it (also found by equal correlation)
//   collective     `from` on another rank is the same collective: it must have started
//   communicator   collectives of one device run in the order of their issue
//   limiter        the host or stream waited so that not too many gathers are in flight
//   buffer         the memory it writes was still in use
enum class EdgeKind : std::uint8_t { stream, event, host, collective, communicator, limiter, buffer };
const char* name_of(EdgeKind kind);

// A span: `index` into the columns of track `track`.
struct SpanRef {
  static constexpr std::uint32_t none = 0xffffffffu;
  std::uint32_t track = none;
  std::uint32_t index = none;
  bool valid() const { return track != none; }
  friend bool operator==(const SpanRef&, const SpanRef&) = default;
  friend auto operator<=>(const SpanRef&, const SpanRef&) = default;
};

struct Edge {
  SpanRef from;
  SpanRef to;
  EdgeKind kind = EdgeKind::stream;
  friend bool operator==(const Edge&, const Edge&) = default;
};

// A list of edges that is not changed.
class Edges {
 public:
  Edges() = default;
  explicit Edges(const std::vector<Edge>& edges);

  std::size_t size() const { return stored_.size(); }
  bool empty() const { return stored_.empty(); }
  Edge operator[](std::size_t i) const {
    const Stored& edge = stored_[i];
    const Way& way = ways_[edge.way];
    return {{way.from_track, edge.from_index}, {way.to_track, edge.to_index}, way.kind};
  }
  // Heap bytes.
  std::size_t memory() const { return stored_.capacity() * sizeof(Stored) + ways_.capacity() * sizeof(Way); }
  friend bool operator==(const Edges&, const Edges&) = default;

  // Gives values, not references.
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Edge;
    using difference_type = std::ptrdiff_t;
    using reference = Edge;
    struct pointer {
      Edge edge;
      const Edge* operator->() const { return &edge; }
    };

    Iterator() = default;
    Iterator(const Edges& edges, std::size_t at) : edges_(&edges), at_(static_cast<std::ptrdiff_t>(at)) {}
    Edge operator*() const { return (*edges_)[static_cast<std::size_t>(at_)]; }
    pointer operator->() const { return {**this}; }
    Edge operator[](std::ptrdiff_t by) const { return *(*this + by); }
    Iterator& operator+=(std::ptrdiff_t by) { return at_ += by, *this; }
    Iterator& operator-=(std::ptrdiff_t by) { return at_ -= by, *this; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return ++at_, Iterator(*edges_, static_cast<std::size_t>(at_ - 1)); }
    Iterator operator--(int) { return --at_, Iterator(*edges_, static_cast<std::size_t>(at_ + 1)); }
    friend Iterator operator+(Iterator it, std::ptrdiff_t by) { return it += by; }
    friend Iterator operator+(std::ptrdiff_t by, Iterator it) { return it += by; }
    friend Iterator operator-(Iterator it, std::ptrdiff_t by) { return it -= by; }
    friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

   private:
    const Edges* edges_ = nullptr;
    std::ptrdiff_t at_ = 0;
  };
  using const_iterator = Iterator;
  using iterator = Iterator;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  struct Way {
    std::uint32_t from_track = 0, to_track = 0;
    EdgeKind kind{};
    friend auto operator<=>(const Way&, const Way&) = default;
  };
  struct Stored {
    std::uint32_t way = 0, from_index = 0, to_index = 0;
    friend bool operator==(const Stored&, const Stored&) = default;
  };
  std::vector<Way> ways_;          // in the order in which they are met first
  std::vector<Stored> stored_;
};

}  // namespace shardbook::timeline
