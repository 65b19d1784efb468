// What does a frame of the timeline cost? Makes a run of N spans over 64 rows, and draws it at all scales.
//
//   viewer_frames_bench [MILLIONS] [most items of the picture] [tries of each frame, of which the fastest counts: 1]
//
// 32 ranks of a compute and a communication stream. Spans of some microseconds with gaps, in steps with
// quiet times between them; one span of compute in 20 is a copy, and one of communication in 20 is a
// collective of all ranks. What is measured is the scene's part of a frame: which rows there are, and the
// items of all 64 stream rows in view, on one thread. Views: every zoom from the whole run to 2 µs in
// steps of sqrt 2, and at each of them 12 pans, so that nothing is in the cache that a user would not
// have there. The worst frame is what is printed, with its scale. Then whole frames of the timeline with its minimap, ruler
// and bands of phases and layers, as the viewer draws them, up to the lists that a GPU is given: a window of 1900 x 1200.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/viewer_ui/screen.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/lanes/plot.hpp"
#include "viewer/scene/find.hpp"
#include "viewer/scene/scene.hpp"

namespace {

using namespace shardbook;

constexpr int ranks = 32, layers = 48, ops = 20;
int tries = 1;
constexpr float width = 1900;

timeline::Timeline make_run(long long spans) {
  timeline::Timeline run;
  std::mt19937_64 random(7);
  const auto any = [&](long long most) { return static_cast<long long>(random() % static_cast<unsigned long long>(most)); };
  std::vector<std::uint32_t> labels;
  for (int i = 0; i < 40; ++i) labels.push_back(run.strings.intern("kernel_" + std::to_string(i)));
  // Forward through 48 layers and backward again; of each layer 20 ops.
  for (const char* phase : {"forward", "backward"}) {
    const std::uint32_t name = run.strings.intern(phase);
    for (int i = 0; i < layers * ops; ++i) {
      timeline::Detail& detail = run.details.emplace_back();
      detail.op = labels[static_cast<std::size_t>(i % 40)];
      detail.phase = name;
      detail.layer = i / ops;
    }
  }
  timeline::Group& group = run.groups.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) group.ranks.push_back(rank);
  const long long per_track = spans / (2 * ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    timeline::Provenance& provenance = run.ranks.emplace_back();
    provenance.rank = rank;
    provenance.world_size = ranks;
    provenance.clock = timeline::Clock::modelled;
    provenance.profile = "bench";
    for (const int stream : {7, 20}) {
      timeline::Track& track = run.tracks.emplace_back();
      track.rank = rank;
      track.id = stream;
      track.name = stream == 7 ? "compute" : "communication";
      const auto n = static_cast<std::size_t>(per_track);
      track.start.reserve(n), track.end.reserve(n), track.label.reserve(n), track.correlation.reserve(n), track.detail.reserve(n);
      track.collective.reserve(n), track.step.reserve(n), track.cls.reserve(n), track.flags.reserve(n);
      long long now = 0;
      for (long long i = 0; i < per_track; ++i) {
        // A step of 5 000 spans, then a quiet time; gaps mostly short, sometimes long.
        now += i % 5000 == 0 ? 3'000'000 : any(30) == 0 ? any(60'000) : any(1500);
        const long long end = now + 300 + (any(20) == 0 ? any(80'000) : any(6000));
        track.start.push_back(now);
        track.end.push_back(end);
        track.label.push_back(labels[static_cast<std::size_t>(any(40))]);
        track.correlation.push_back(static_cast<std::uint32_t>(i + 1));
        const long long in_step = i % 5000, forward = in_step < 2500 ? 1 : 0, through = in_step % 2500 * layers / 2500;
        const long long layer = forward ? through : layers - 1 - through;
        track.detail.push_back(static_cast<std::uint32_t>(1 + (forward ? 0 : layers * ops) + layer * ops + any(ops)));
        const bool collective = stream == 20 && i % 20 == 0;
        track.collective.push_back(collective ? static_cast<std::uint32_t>(run.collectives.size()) : 0);
        if (collective) run.collectives.push_back({.group = 1, .seq = i, .op = timeline::CollectiveOp::all_gather, .bytes = 1 << 20});
        track.step.push_back(static_cast<std::int32_t>(i / 5000));
        track.cls.push_back(stream == 20 ? timeline::Class::communication : i % 20 == 7 ? timeline::Class::memory : timeline::Class::compute);
        track.flags.push_back(0);
        now = end;
      }
      for (long long step = 0; stream == 7 && step * 5000 < per_track; ++step) {
        const auto first = static_cast<std::size_t>(step * 5000), last = static_cast<std::size_t>(std::min(per_track, step * 5000 + 5000) - 1);
        run.steps.push_back({rank, static_cast<std::int32_t>(step), track.start[first], track.end[last], track.start[first], track.end[last]});
      }
    }
  }
  run.collectives.shrink_to_fit();
  return run;
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

struct Worst {
  double ms = 0, view_ns = 0;
};

// The same views, as whole frames of the timeline.
Worst draw_frames(const scene::Scene& made) {
  ui::Screen screen(width + 260, 1200);
  ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;      // as the viewer's renderer has
  lanes::PlotState state;
  state.choices.fold_alike = false;
  for (int rank = 0; rank < ranks; ++rank) state.choices.open.insert(scene::row_name(scene::RowKind::rank, rank));
  state.choices.hidden = {"exposed", "idle", "critical"};
  const metrics::Window whole = made.whole();
  std::mt19937 random(3);
  Worst worst;
  std::vector<double> all;
  const auto draw = [&] { lanes::draw_plot(made, state, ImGui::GetContentRegionAvail()); };
  screen.frame(draw);              // what is made once
  for (double view_ns = 1.05 * static_cast<double>(whole.length()); view_ns > 2000; view_ns /= std::sqrt(2.0)) {
    for (int turn = 0; turn < 12; ++turn) {
      const double room = std::max(static_cast<double>(whole.length()) - view_ns, 0.0);
      const double start = static_cast<double>(whole.start) + std::uniform_real_distribution<double>(0, 1)(random) * room;
      state.view.start = start;
      state.view.end = start + view_ns;
      double ms = 1e9;
      for (int again = 0; again < tries; ++again) {
        const double from = cpu_ms();
        screen.frame(draw);
        ms = std::min(ms, cpu_ms() - from);
      }
      all.push_back(ms);
      if (ms > worst.ms) worst = {ms, view_ns};
    }
  }
  std::sort(all.begin(), all.end());
  double sum = 0;
  for (const double ms : all) sum += ms;
  const auto frames = static_cast<double>(all.size());
  const scene::Bands& bands = made.bands(0);
  std::printf("%.0f frames as drawn, %zu rows of which those in sight, bands of %zu phases and %zu layers: mean %.2f ms, 99 of 100 below %.2f ms, worst %.2f ms (view of %.0f ns)\n",
              frames, made.rows(state.choices).size(), bands.phases.size(), bands.layers.size(), sum / frames, all[static_cast<std::size_t>(0.99 * frames)], worst.ms, worst.view_ns);
  return worst;
}

}  // namespace

int main(int count, char** words) {
  const double millions = count > 1 ? std::atof(words[1]) : 16;
  const int most_items = count > 2 ? std::atoi(words[2]) : 5000;
  if (count > 3) tries = std::max(1, std::atoi(words[3]));
  timeline::Timeline run = make_run(static_cast<long long>(millions * 1e6));
  const auto spans = static_cast<double>(run.spans());
  std::printf("%.0f spans on %zu rows, timeline %.1f bytes a span\n", spans, run.tracks.size(), static_cast<double>(run.memory()) / spans);

  const auto before = std::chrono::steady_clock::now();
  const std::shared_ptr<const scene::Scene> made = scene::Scene::make(std::move(run), {}, "bench");
  std::printf("scene made in %.2f s (wall), timeline and index %.1f bytes a span; path over %.1f %% of the run\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count(), static_cast<double>(made->memory()) / spans,
              100.0 * static_cast<double>(made->path_window().length()) / static_cast<double>(made->whole().length()));

  // All stream rows, as when every rank is open.
  scene::RowChoices choices;
  choices.fold_alike = false;
  for (int rank = 0; rank < ranks; ++rank) choices.open.insert(scene::row_name(scene::RowKind::rank, rank));
  choices.hidden = {"exposed", "idle", "critical"};
  const metrics::Window whole = made->whole();
  std::mt19937 random(3);
  Worst worst;
  double sum = 0, worst_rows = 0;
  std::vector<double> all;
  std::size_t worst_items = 0;
  for (double view_ns = 1.05 * static_cast<double>(whole.length()); view_ns > 2000; view_ns /= std::sqrt(2.0)) {
    Worst here;
    std::size_t items_here = 0;
    for (int turn = 0; turn < 12; ++turn) {
      const double room = static_cast<double>(whole.length()) - view_ns;
      const double start = static_cast<double>(whole.start) + std::uniform_real_distribution<double>(0, 1)(random) * std::max(room, 0.0);
      double ms = 1e9;
      std::vector<scene::Item> items;
      for (int again = 0; again < tries; ++again) {
        const double from = cpu_ms();
        const std::vector<scene::Row> rows = made->rows(choices);
        if (again == 0) worst_rows = std::max(worst_rows, cpu_ms() - from);
        items.clear();
        for (const scene::Row& row : rows) {
          if (row.kind == scene::RowKind::stream) made->items(row, {start, start + view_ns, width, most_items / (2 * ranks)}, items);
        }
        ms = std::min(ms, cpu_ms() - from);
      }
      sum += ms;
      all.push_back(ms);
      if (ms > here.ms) here = {ms, view_ns};
      items_here = std::max(items_here, items.size());
    }
    if (here.ms > worst.ms) worst = here;
    worst_items = std::max(worst_items, items_here);
    std::printf("  view of %12.0f ns: worst %.2f ms, %zu items\n", view_ns, here.ms, items_here);
  }
  std::sort(all.begin(), all.end());
  const auto frames = static_cast<double>(all.size());
  std::printf("%.0f frames of 64 rows x %.0f px: mean %.2f ms, 99 of 100 below %.2f ms, worst %.2f ms (view of %.0f ns), of it rows %.2f ms; at most %zu items\n",
              frames, width, sum / frames, all[static_cast<std::size_t>(0.99 * frames)], worst.ms, worst.view_ns, worst_rows, worst_items);
  const Worst drawn = draw_frames(*made);
  double from = cpu_ms();
  const scene::Found found = scene::find(*made, "kernel_7 layer 7", false);
  std::printf("find: %lld spans in %.1f ms\n", static_cast<long long>(found.total), cpu_ms() - from);
  from = cpu_ms();
  made->minimap(1900);
  std::printf("minimap of 1900 columns: %.2f ms\n", cpu_ms() - from);
  return worst.ms < 8 && drawn.ms < 8 && worst_items <= static_cast<std::size_t>(most_items) ? 0 : 1;
}
