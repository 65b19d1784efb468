#include "engine/cause/trace_places.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace shardbook::cause {

using base::Nanoseconds;
using timeline::SpanRef;
using timeline::Timeline;
using timeline::Track;
using timeline::TrackKind;

namespace {

constexpr std::string_view node_prefix = "autograd::engine::evaluate_function: ";
constexpr std::string_view op_prefix = "aten::";

// "train.py(82): is_finite" is the user's; the functions of PyTorch and of Python's own library are not.
bool is_users(std::string_view name) {
  constexpr std::array libraries{"torch/",       "torch\\",      "site-packages/", "dist-packages/", "<built-in", "<string>",   "<frozen",
                                 "contextlib.py", "functools.py", "threading.py",   "typing.py",      "enum.py",   "warnings.py", "copy.py",
                                 "_weakrefset.py", "weakref.py",  "abc.py",         "importlib",      "runpy.py",  "random.py",   "collections/"};
  if (name.find(".py(") == std::string_view::npos) return false;
  return std::none_of(libraries.begin(), libraries.end(), [&](std::string_view library) {
    return library.starts_with('<') || library.ends_with("packages/") ? name.find(library) != std::string_view::npos : name.starts_with(library);
  });
}

// "MaskedFillBackward0" and "masked_fill" are both "maskedfill".
std::string plain(std::string_view name) {
  if (const std::size_t backward = name.find("Backward"); backward != std::string_view::npos) name = name.substr(0, backward);
  std::string out;
  for (char c : name) {
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

TracePlaces::TracePlaces(const Timeline& timeline) : timeline_(timeline) {
  for (const timeline::Provenance& rank : timeline.ranks) links_.emplace(rank.rank, timeline::Links(timeline, rank.rank));
  for (const Track& track : timeline.tracks) {
    if (track.kind == TrackKind::stream) continue;
    Thread& thread = threads_[{track.rank, track.id}];
    for (std::size_t i = 0; i < track.size(); ++i) {
      const std::string_view name = timeline.strings[track.label[i]];
      const Row row{track.start[i], track.end[i], std::string(name)};
      if (name.starts_with(node_prefix)) thread.nodes.push_back(row);
      else if (track.cls[i] == timeline::Class::annotation && !name.starts_with("nccl:")) thread.annotations.push_back(row);
      else if (is_users(name)) thread.functions.push_back(row);
    }
  }
  for (auto& [key, thread] : threads_) {
    for (std::vector<Row>* rows : {&thread.functions, &thread.annotations, &thread.nodes}) {
      std::stable_sort(rows->begin(), rows->end(), [](const Row& a, const Row& b) { return a.start < b.start; });
    }
  }

  // Where each op of forward is called most
  std::map<base::Rank, std::map<std::string, std::map<std::string, int>>> calls;
  for (const Track& track : timeline.tracks) {
    if (track.kind == TrackKind::stream) continue;
    const Thread& thread = threads_[{track.rank, track.id}];
    if (thread.functions.empty()) continue;
    for (std::size_t i = 0; i < track.size(); ++i) {
      const std::string_view name = timeline.strings[track.label[i]];
      if (!name.starts_with(op_prefix)) continue;
      if (const Row* function = innermost(thread.functions, track.start[i], track.end[i])) {
        ++calls[track.rank][plain(name.substr(op_prefix.size()))][function->name];
      }
    }
  }
  for (const auto& [rank, ops] : calls) {
    for (const auto& [op, places] : ops) {
      of_op_[rank][op] = std::max_element(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
    }
  }
}

const TracePlaces::Row* TracePlaces::innermost(const std::vector<Row>& rows, Nanoseconds start, Nanoseconds end) {
  constexpr int most_looked_at = 5'000;
  auto at = std::upper_bound(rows.begin(), rows.end(), start, [](Nanoseconds wanted, const Row& row) { return wanted < row.start; });
  // Backwards: the first that encloses it is the innermost
  for (int looked_at = 0; at != rows.begin() && looked_at < most_looked_at; ++looked_at) {
    --at;
    if (at->end >= end) return &*at;
  }
  return nullptr;
}

std::string TracePlaces::of(SpanRef span) const {
  const bool on_host = timeline_.tracks[span.track].kind == TrackKind::host;
  const base::Rank rank = timeline_.rank(span);
  const SpanRef call = on_host ? span : links_.at(rank).launch_of(span);
  if (!call.valid()) return "";
  const auto found = threads_.find({rank, timeline_.tracks[call.track].id});
  if (found == threads_.end()) return "";
  const Nanoseconds start = timeline_.start(call), end = timeline_.end(call);
  if (const Row* function = innermost(found->second.functions, start, end)) return function->name;
  const Row* annotation = innermost(found->second.annotations, start, end);
  if (const Row* node = innermost(found->second.nodes, start, end); node != nullptr && annotation == nullptr) {
    const auto ops = of_op_.find(rank);
    if (ops != of_op_.end()) {
      const auto place = ops->second.find(plain(std::string_view(node->name).substr(node_prefix.size())));
      if (place != ops->second.end()) return place->second;
    }
    return node->name.substr(node_prefix.size());
  }
  return annotation == nullptr ? "" : annotation->name;
}

}  // namespace shardbook::cause
