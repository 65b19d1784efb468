// scene/runs: passes over runs, each with fewer of them; see runs.hpp.
#include "viewer/scene/runs.hpp"

#include <algorithm>

namespace shardbook::scene {
namespace {

constexpr int first_tolerance = 255 / 36, last_tolerance = 255 / 4;

void absorb(Run& run, const Run& next) {
  run.end = next.end;
  run.last = next.last;
  for (std::size_t c = 0; c < 4; ++c) {
    run.least[c] = std::min(run.least[c], next.least[c]);
    run.most[c] = std::max(run.most[c], next.most[c]);
  }
}

// Without a branch a class: what the columns hold is as good as random.
bool within(const Run& a, const Run& b, int tolerance) {
  unsigned apart = 0;
  for (std::size_t c = 0; c < 4; ++c) {
    const int least = std::min(a.least[c], b.least[c]), most = std::max(a.most[c], b.most[c]);
    apart |= static_cast<unsigned>(most - least > tolerance) | (static_cast<unsigned>(least == 0) & static_cast<unsigned>(most != 0));
  }
  return apart == 0;
}

}  // namespace

Shares shares_of(const std::array<Nanoseconds, 4>& busy, Nanoseconds length) {
  Shares out{};
  const float scale = 255.0f / static_cast<float>(length);
  for (std::size_t c = 0; c < 4; ++c) {
    if (busy[c] != 0) out[c] = static_cast<std::uint8_t>(std::clamp(static_cast<float>(busy[c]) * scale, 1.0f, 255.0f));
  }
  return out;
}

void Runs::add(Nanoseconds start, Nanoseconds end, std::uint32_t column, const Shares& shares) {
  const Run next{start, end, column, column + 1, shares, shares};
  if (!runs_.empty() && runs_.back().end == start && within(runs_.back(), next, first_tolerance)) absorb(runs_.back(), next);
  else runs_.push_back(next);
}

// Each run joins the one before it if they touch and `alike` holds. Returns how many are busy afterwards.
template <class Alike>
std::size_t Runs::pass(Alike alike) {
  std::size_t last = 0, busy = 0;
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    if ((runs_[last].end == runs_[i].start) & alike(runs_[last], runs_[i])) {
      absorb(runs_[last], runs_[i]);
      continue;
    }
    busy += runs_[last].any();
    runs_[++last] = runs_[i];
  }
  runs_.resize(last + 1);
  return busy + runs_[last].any();
}

void Runs::reduce(std::size_t most, double column_ns, double longest) {
  if (runs_.empty()) return;
  auto busy = static_cast<std::size_t>(std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.any(); }));
  for (int tolerance = 3 * first_tolerance; busy > most && tolerance <= last_tolerance; tolerance *= 3) {
    busy = pass([&](const Run& a, const Run& b) { return within(a, b, tolerance); });
  }
  for (double width = 2 * column_ns; busy > most && width < 2 * longest; width *= 2) {
    const auto narrow = static_cast<Nanoseconds>(std::min(width, 4e18));       // a damaged trace may last for decades
    busy = pass([&](const Run& a, const Run& b) { return a.end - a.start < narrow && b.end - b.start < narrow; });
  }
}

}  // namespace shardbook::scene
