// cause/causes_of_traces: a late rank, kernels that only move memory, and small collectives, in a trace without a record;
// see causes.hpp.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include "engine/cause/causes.hpp"
#include "engine/cause/text.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using base::text;
using timeline::Class;

namespace {

bool has_any(const std::string& name, std::initializer_list<std::string_view> parts) {
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

// Kernels whose time is arithmetic: matmuls and fused attention, as cuBLAS, cuDNN, CUTLASS and PyTorch name them.
bool is_arithmetic(const std::string& name) { return has_any(name, {"gemm", "nvjet", "cutlass", "xmma", "flash", "fmha", "attention", "cudnn", "conv"}); }
bool is_softmax(const std::string& name) { return has_any(name, {"softmax"}); }
// What is fused already: many tensors in one launch, as optimizers and FSDP's own copies are.
bool is_fused_over_tensors(const std::string& name) { return has_any(name, {"multi_tensor", "chunk_cat", "split_with_sizes"}); }

// "softmax_warp_forward" of "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, ...>(...)".
std::string short_name(std::string name) {
  name.erase(0, name.starts_with("void ") ? 5 : 0);
  for (std::string_view gone : {"(anonymous namespace)::"}) {
    for (std::size_t at = name.find(gone); at != std::string::npos; at = name.find(gone)) name.erase(at, gone.size());
  }
  name = name.substr(0, name.find_first_of("<("));
  const std::size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

struct Work {
  Nanoseconds ns = 0;
  std::int64_t count = 0;
};

class OfTrace {
 public:
  OfTrace(const Timeline& timeline, Window window, std::optional<int> step, const TracePlaces& places)
      : timeline_(timeline), window_(window), step_(step), places_(places) {}

  std::vector<Cause> run() {
    for (const timeline::Provenance& rank : timeline_.ranks) sum_up(rank.rank);
    add_rank();
    add_movers();
    return std::move(causes_);
  }

 private:
  struct Place {
    Work arithmetic, moving, copies;
    bool has_softmax = false;
    std::map<std::string, Nanoseconds> kinds;   // of those that move memory
    Nanoseconds all_ns() const { return arithmetic.ns + moving.ns + copies.ns; }
    std::int64_t all() const { return arithmetic.count + moving.count + copies.count; }
  };
  struct OfRank {
    std::map<std::string, Place> places;
    Nanoseconds compute_ns = 0;
  };

  void sum_up(Rank rank) {
    OfRank& sums = ranks_[rank];
    timeline::for_each_device_span(timeline_, rank, [&](SpanRef span) {
      const Class cls = timeline_.cls(span);
      if (step_ && timeline_.step(span) != *step_) return;
      const Nanoseconds ns = step_ ? timeline_.end(span) - timeline_.start(span)
                                   : std::min(timeline_.end(span), window_.end) - std::max(timeline_.start(span), window_.start);
      if (ns <= 0 || (cls != Class::compute && cls != Class::memory)) return;
      if (cls == Class::compute) sums.compute_ns += ns;
      const std::string name(timeline_.strings[timeline_.tracks[span.track].label[span.index]]);
      Place& place = sums.places[places_.of(span)];
      const bool arithmetic = cls == Class::compute && is_arithmetic(name);
      Work& work = cls == Class::memory ? place.copies : arithmetic ? place.arithmetic : place.moving;
      if (cls == Class::compute && !arithmetic && is_fused_over_tensors(name)) return;
      work.ns += ns;
      ++work.count;
      if (&work != &place.moving) return;
      place.has_softmax = place.has_softmax || is_softmax(name);
      place.kinds[short_name(name)] += ns;
    });
  }

  // All wait for the rank with the most to compute; what it runs beyond the rank in the middle names the place.
  void add_rank() {
    if (ranks_.size() < 2) return;
    std::vector<std::pair<Nanoseconds, Rank>> order;
    for (const auto& [rank, sums] : ranks_) order.emplace_back(sums.compute_ns, rank);
    std::sort(order.begin(), order.end());
    const auto [most_ns, slow] = order.back();
    const auto [usual_ns, usual] = order[(order.size() - 1) / 2];
    // As much is chance between two GPUs of one kind
    constexpr double alike = 1.03;
    if (usual_ns <= 0 || static_cast<double>(most_ns) < alike * static_cast<double>(usual_ns)) return;
    const std::map<std::string, Place>& others = ranks_.at(usual).places;
    std::string where;
    Nanoseconds excess = 0;
    std::int64_t extra = 0;
    for (const auto& [name, place] : ranks_.at(slow).places) {
      const auto same = others.find(name);
      const Nanoseconds more = place.all_ns() - (same == others.end() ? 0 : same->second.all_ns());
      if (more <= excess) continue;
      excess = more;
      where = name;
      extra = place.all() - (same == others.end() ? 0 : same->second.all());
    }
    Cause cause;
    cause.regime = Regime::rank;
    cause.gain_ns = most_ns - usual_ns;
    cause.is_bound = true;
    char times[32];
    std::snprintf(times, sizeof times, "%.2f", static_cast<double>(most_ns) / static_cast<double>(usual_ns));
    cause.what = text("all wait for rank ", slow, ", whose kernels take ", times, " times as long as those of the rank in the middle");
    const bool one_place = 2 * excess > cause.gain_ns && !where.empty();
    cause.because = one_place && extra > 0 ? text("it runs ", counted(extra, "kernel"), " that the others do not, and every collective begins with the last rank")
                                           : std::string("every collective begins with the last rank");
    if (one_place) cause.line = where;
    cause.remedy = one_place && extra > 0 ? "look at what only that rank does there" : "look for what else runs on that GPU, for its clocks, or an uneven cut";
    causes_.push_back(std::move(cause));
  }

  // What moves memory and computes little, by place, on the rank with the most of it. Fused into one kernel, a chain takes
  // no less than its longest kind; softmax between matmuls is attention, which a fused kernel does without any of them.
  void add_movers() {
    std::map<std::string, Cause> of_place;
    for (const auto& [rank, sums] : ranks_) {
      for (const auto& [name, place] : sums.places) {
        if (name.find(".py(") == std::string::npos || place.kinds.size() < 2) continue;
        const bool attention = place.has_softmax && place.arithmetic.count > 0;
        const auto longest = std::max_element(place.kinds.begin(), place.kinds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        const Nanoseconds ns = attention ? place.moving.ns + place.copies.ns : place.moving.ns - longest->second;
        Cause& cause = of_place[name];
        if (ns <= cause.gain_ns) continue;
        cause = {};
        cause.regime = Regime::memory;
        cause.gain_ns = ns;
        cause.is_bound = true;
        cause.line = name;
        cause.count = place.moving.count + place.copies.count;
        cause.what = text(counted(cause.count, "kernel"), cause.count == 1 ? " moves" : " move", " memory and ", cause.count == 1 ? "computes" : "compute", " little, most of all ", longest->first);
        cause.because = attention ? "attention is written out: each reads and writes all scores" : "each reads and writes all that it works on";
        cause.remedy = attention ? "F.scaled_dot_product_attention" : "torch.compile, which fuses them";
      }
    }
    for (auto& [name, cause] : of_place) causes_.push_back(std::move(cause));
  }

  const Timeline& timeline_;
  const Window window_;
  const std::optional<int> step_;
  const TracePlaces& places_;
  std::map<Rank, OfRank> ranks_;
  std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> causes_of_traces(const Timeline& timeline, Window window, std::optional<int> step, const TracePlaces& places) {
  return OfTrace(timeline, window, step, places).run();
}

}  // namespace shardbook::cause
