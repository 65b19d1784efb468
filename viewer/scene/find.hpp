// scene/find: which spans are called so, and how long do they take?
#pragma once

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct Histogram {
  Nanoseconds least = 0, most = 0;            // logarithmic buckets between them
  std::vector<std::int64_t> counts;
};

struct Found {
  std::vector<SpanRef> spans;                 // by start, at most `limit`
  std::int64_t total = 0;
  Nanoseconds sum = 0, least = 0, median = 0, p95 = 0, most = 0;
  Histogram histogram;
};

// Spans whose label, op, part, phase or "layer N" contains every word of the query, letters' case
// ignored; on device rows only unless `host`. An empty query finds nothing.
Found find(const Scene& scene, const std::string& query, bool host, std::size_t limit = 100'000, int buckets = 40);
// Only those whose duration lies within [least, most].
Found narrowed(const Scene& scene, const Found& found, Nanoseconds least, Nanoseconds most);

}  // namespace shardbook::scene
