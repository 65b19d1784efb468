// scene/alike: ranks compared by what their streams hold and how their steps divide; see alike.hpp.
#include "viewer/scene/alike.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace shardbook::scene {

using timeline::Track;
using timeline::TrackKind;

namespace {

struct Behaviour {
  std::map<std::int64_t, std::size_t> spans;                 // by stream
  std::vector<metrics::Partition> steps;
};

std::vector<Behaviour> behaviours(const Scene& scene) {
  std::vector<Behaviour> out(scene.ranks().size());
  const auto place = [&](Rank rank) { return static_cast<std::size_t>(scene.rank(rank) - scene.ranks().data()); };
  for (const Track& track : scene.timeline().tracks) {
    if (track.kind == TrackKind::stream && scene.rank(track.rank) != nullptr) out[place(track.rank)].spans[track.id] += track.size();
  }
  for (const timeline::Step& step : scene.timeline().steps) {
    if (const RankScene* rank = scene.rank(step.rank)) out[place(step.rank)].steps.push_back(rank->partition({step.start, step.end}));
  }
  if (scene.steps().empty()) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i].steps.push_back(scene.ranks()[i].partition(scene.whole()));
  }
  return out;
}

bool alike(const metrics::Partition& a, const metrics::Partition& b) {
  const double most = alike_share * static_cast<double>(std::max(a.window.length(), b.window.length()));
  const auto near = [&](Nanoseconds of_a, Nanoseconds of_b) { return std::abs(static_cast<double>(of_a - of_b)) <= most; };
  return near(a.compute_ns, b.compute_ns) && near(a.exposed_communication_ns, b.exposed_communication_ns) &&
         near(a.exposed_memory_ns, b.exposed_memory_ns) && near(a.idle_ns, b.idle_ns);
}

bool alike(const Behaviour& a, const Behaviour& b) {
  return a.spans == b.spans && a.steps.size() == b.steps.size() &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), [](const auto& x, const auto& y) { return alike(x, y); });
}

}  // namespace

bool behave_alike(const Scene& scene, Rank a, Rank b) {
  if (scene.rank(a) == nullptr || scene.rank(b) == nullptr) return false;
  const std::vector<Behaviour> all = behaviours(scene);
  const auto place = [&](Rank rank) { return static_cast<std::size_t>(scene.rank(rank) - scene.ranks().data()); };
  return alike(all[place(a)], all[place(b)]);
}

void make_alike(const Scene& scene, std::vector<std::vector<Rank>>& into, std::vector<bool>& folded) {
  const std::vector<Behaviour> all = behaviours(scene);
  into.assign(all.size(), {});
  folded.assign(all.size(), false);
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Rank rank = scene.ranks()[i].rank;
    const bool keeps = rank == 0 || scene.straggler() == rank;
    const auto first = std::find_if(firsts.begin(), firsts.end(), [&](std::size_t other) { return alike(all[other], all[i]); });
    if (keeps || first == firsts.end()) {
      firsts.push_back(i);
      continue;
    }
    into[*first].push_back(rank);
    folded[i] = true;
  }
}

}  // namespace shardbook::scene
