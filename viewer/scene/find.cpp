// scene/find: names are matched once, spans by number; see find.hpp.
#include "viewer/scene/find.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "engine/base/check.hpp"

namespace shardbook::scene {

using timeline::Track;
using timeline::TrackKind;

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

// A word of the query; "layer 7" is one word that means layer 7 alone.
struct Term {
  std::string word;
  int layer = -1;
};

std::vector<Term> terms_of(const std::string& query) {
  std::istringstream in(lower(query));
  std::vector<Term> terms;
  for (std::string word; in >> word;) {
    const bool number = word.size() <= 6 && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && !terms.empty() && terms.back().word == "layer" && terms.back().layer < 0) terms.back().layer = std::stoi(word);
    else terms.push_back({word, -1});
  }
  if (terms.size() > 64) terms.resize(64);
  return terms;
}

// A bit a term, for each name and each detail: which terms it satisfies.
struct Matches {
  std::uint64_t all = 0;
  std::vector<std::uint64_t> names, details;

  Matches(const Timeline& timeline, const std::vector<Term>& terms) : names(timeline.strings.size()), details(timeline.details.size()) {
    for (std::size_t k = 0; k < terms.size(); ++k) all |= std::uint64_t{1} << k;
    for (std::uint32_t id = 0; id < names.size(); ++id) {
      const std::string name = lower(timeline.strings[id]);
      for (std::size_t k = 0; k < terms.size(); ++k) {
        if (terms[k].layer < 0 && name.find(terms[k].word) != std::string::npos) names[id] |= std::uint64_t{1} << k;
      }
    }
    for (std::size_t d = 1; d < details.size(); ++d) {
      const timeline::Detail& detail = timeline.details[d];
      for (std::uint32_t id : {detail.op, detail.part, detail.phase}) {
        if (id != 0) details[d] |= names[id];
      }
      if (detail.layer < 0) continue;
      const std::string layer = base::text("layer ", detail.layer);
      for (std::size_t k = 0; k < terms.size(); ++k) {
        const bool met = terms[k].layer >= 0 ? terms[k].layer == detail.layer : layer.find(terms[k].word) != std::string::npos;
        if (met) details[d] |= std::uint64_t{1} << k;
      }
    }
  }
};

void fill_histogram(const std::vector<Nanoseconds>& lengths, int buckets, Histogram& histogram) {
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  histogram.least = *least;
  histogram.most = *most;
  histogram.counts.assign(static_cast<std::size_t>(std::max(buckets, 1)), 0);
  for (Nanoseconds length : lengths) ++histogram.counts[histogram.bucket_of(length)];
}

void fill_figures(std::vector<Nanoseconds> lengths, int buckets, Found& found) {
  found.total = static_cast<std::int64_t>(lengths.size());
  if (lengths.empty()) return;
  fill_histogram(lengths, buckets, found.histogram);
  for (Nanoseconds length : lengths) found.sum += length;
  const auto quantile = [&](double share) {
    const auto at = lengths.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(lengths.size() - 1));
    std::nth_element(lengths.begin(), at, lengths.end());
    return *at;
  };
  found.least = found.histogram.least;
  found.most = found.histogram.most;
  found.median = quantile(0.5);
  found.p95 = quantile(0.95);
}

}  // namespace

std::size_t Histogram::bucket_of(Nanoseconds length) const {
  if (counts.size() < 2 || most <= least) return 0;
  const double from = std::log1p(static_cast<double>(least)), to = std::log1p(static_cast<double>(most));
  const double place = (std::log1p(static_cast<double>(std::clamp(length, least, most))) - from) / (to - from);
  return std::min(static_cast<std::size_t>(place * static_cast<double>(counts.size())), counts.size() - 1);
}

Nanoseconds Histogram::edge(std::size_t bucket) const {
  if (bucket == 0 || counts.empty()) return least;
  if (bucket >= counts.size()) return most;
  const double from = std::log1p(static_cast<double>(least)), to = std::log1p(static_cast<double>(most));
  return static_cast<Nanoseconds>(std::ceil(std::expm1(from + (to - from) * static_cast<double>(bucket) / static_cast<double>(counts.size()))));
}

Found find(const Scene& scene, const std::string& query, bool host, std::size_t limit, int buckets) {
  Found found;
  const std::vector<Term> terms = terms_of(query);
  if (terms.empty()) return found;
  const Timeline& timeline = scene.timeline();
  const Matches matches(timeline, terms);
  std::vector<Nanoseconds> lengths;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    if (track.kind == TrackKind::host && !host) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if ((matches.names[track.label[i]] | matches.details[track.detail[i]]) != matches.all) continue;
      found.spans.push_back({t, i});
      lengths.push_back(track.end[i] - track.start[i]);
    }
  }
  const auto earlier = [&](SpanRef a, SpanRef b) {
    return timeline.start(a) != timeline.start(b) ? timeline.start(a) < timeline.start(b) : a < b;
  };
  if (found.spans.size() > limit) {
    std::nth_element(found.spans.begin(), found.spans.begin() + static_cast<std::ptrdiff_t>(limit), found.spans.end(), earlier);
    found.spans.resize(limit);
  }
  std::sort(found.spans.begin(), found.spans.end(), earlier);
  fill_figures(std::move(lengths), buckets, found);
  return found;
}

Found narrowed(const Scene& scene, const Found& found, Nanoseconds least, Nanoseconds most) {
  Found out;
  std::vector<Nanoseconds> lengths;
  for (SpanRef span : found.spans) {
    const Nanoseconds length = scene.timeline().end(span) - scene.timeline().start(span);
    if (length < least || length > most) continue;
    out.spans.push_back(span);
    lengths.push_back(length);
  }
  fill_figures(std::move(lengths), static_cast<int>(found.histogram.counts.size()), out);
  return out;
}

}  // namespace shardbook::scene
