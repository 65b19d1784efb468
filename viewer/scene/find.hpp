// scene/find: which spans are called so, and how long do they take?
#pragma once

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct Histogram {
  Nanoseconds least = 0, most = 0;            // logarithmic buckets between them
  std::vector<std::int64_t> counts;
  std::size_t bucket_of(Nanoseconds length) const;
  Nanoseconds edge(std::size_t bucket) const;   // the least length of a bucket; edge(counts.size()) is `most`
};

struct Found {
  std::vector<SpanRef> spans;                 // by start, at most `limit`
  std::int64_t total = 0;
  Nanoseconds sum = 0, least = 0, median = 0, p95 = 0, most = 0;
  Histogram histogram;
};

// Spans whose label, op, part, phase or "layer N" contains every word of the query, letters' case
// ignored; on device rows and marks only unless `host`. The words "layer 7" mean layer 7 alone, not 17. An
// empty query finds nothing. Names are matched once, so a million spans are one pass over their numbers.
Found find(const Scene& scene, const std::string& query, bool host, std::size_t limit = 100'000, int buckets = 40);
// Of found.spans (of the first `limit`, where more were found) those whose duration lies within [least, most].
Found narrowed(const Scene& scene, const Found& found, Nanoseconds least, Nanoseconds most);

}  // namespace shardbook::scene
