// A run to look at, and what was said and asked for in a frame.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/viewer_scene/support.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using scene::Sketch;

inline bool is_said(const std::string& part) {
  const std::vector<std::string>& all = ui::words();
  return std::any_of(all.begin(), all.end(), [&](const std::string& words) { return words.find(part) != std::string::npos; });
}
inline std::string argument_of(const Intents& intents, const std::string& id) {
  for (const ui::Intent& intent : intents) {
    if (intent.id == id) return intent.argument;
  }
  return "there is no " + id;
}

// Steps of 1 ms; rank `late` computes twice as long before it comes to the collective, which then takes 100 us.
inline std::shared_ptr<const Scene> run_of(int ranks, int steps, int late = -1) {
  Sketch sketch(ranks);
  for (int step = 0; step < steps; ++step) {
    const base::Nanoseconds zero = step * 1'000'000;
    for (base::Rank rank = 0; rank < ranks; ++rank) {
      const base::Nanoseconds compute = late < 0 ? 500'000 : rank == late ? 800'000 : 400'000;
      const base::Nanoseconds end = late < 0 ? 600'000 : 900'000;
      sketch.compute(rank, zero, zero + compute, sketch.detail("gemm", 0));
      sketch.collective(rank, zero + compute, zero + end, step, sketch.detail("all_reduce", 0), timeline::CollectiveOp::all_reduce);
      sketch.compute(rank, zero + end, zero + 1'000'000, sketch.detail("gemm", 1));
      sketch.builder.add_step({rank, step + 3, zero, zero + 1'000'000, 0, 0});
    }
  }
  return scene::scene_of(sketch.done());
}

inline PlotState plot_of(const Scene& scene) {
  PlotState plot;
  plot.choices = scene.first_choices();
  plot.rows = scene.rows(plot.choices);
  lanes::show(plot.view, scene.whole(), scene.whole(), 0);
  return plot;
}

}  // namespace shardbook::views
