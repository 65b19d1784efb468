// What engine/cause says of the run in front and of two that are compared. It resolves steps many times, which takes a
// while, so it is found beside the frames.
#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/cause/diff.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/cause/why.hpp"
#include "viewer/app/desk_state.hpp"
#include "viewer/scene/navigate.hpp"

namespace shardbook::app {

using base::text;

namespace {

bool is_ready(const auto& future, bool wait) { return future.valid() && (wait || future.wait_for(std::chrono::seconds(0)) == std::future_status::ready); }

// Where its records are: a pack was unpacked when it was opened.
std::vector<std::string> places_of(const OpenRun& one) {
  return one.scene->unpacked() != nullptr ? std::vector<std::string>{one.scene->unpacked()->run} : one.paths;
}

// All steps of a modelled run are one, and are explained without tracing.
bool is_modelled(const scene::Scene& scene) { return scene.timeline().ranks.front().clock == timeline::Clock::modelled; }

// The step to explain: that in view; of a view of several the one of `shardbook why`.
int step_to_explain(const OpenRun& one) {
  if (is_modelled(*one.scene)) return OpenRun::any_step;
  return views::step_in_view(*one.scene, one.plot).number;
}

std::string being_found(int step) {
  return step == OpenRun::any_step ? "What bounds this step is being computed …" : text("Step ", step, ": what bounds it is being computed …");
}

// The sentence has the step that it is about.
std::future<StepCause> find_cause(const OpenRun& one, int step) {
  return std::async(std::launch::async, [scene = one.scene, places = places_of(one), step] {
    const base::Result<cause::Recorded> recorded = cause::read_recorded(places);
    if (!recorded) return StepCause{};
    cause::WhyOptions options;
    if (step != OpenRun::any_step) options.step = step;
    const base::Result<cause::Why> why = cause::why_of(scene->timeline(), recorded.value(), options);
    if (!why) return StepCause{};
    StepCause found;
    if (why.value().has_problem) {
      const cause::Cause& first = *cause::leading(why.value());
      found.lines = first.also;
      if (!first.line.empty()) found.lines.push_back(first.line);
      for (const program::Phase phase : first.phases) found.phases.push_back(program::name_of(phase));
    }
    const std::string sentence = cause::headline(why.value()) + ".";
    const std::size_t begin = std::string("this step").size();
    found.sentence = !sentence.starts_with("this step") ? "T" + sentence.substr(1)
                                                        : (why.value().step ? text("Step ", *why.value().step) : "This step") + sentence.substr(begin);
    if (const std::string shown = cause::what_is_shown(why.value()); !shown.empty()) found.sentence += " " + shown;
    return found;
  });
}

// What the sentence of this step names: the longest exposed span of its lines and phases. Not valid(): there is none.
scene::SpanRef named_by(const StepCause& cause, const OpenRun& one, const scene::Scene::StepWindow& step) {
  const scene::Timeline& timeline = one.scene->timeline();
  const auto names = [](const std::vector<std::string>& of, std::string_view word) { return std::find(of.begin(), of.end(), word) != of.end(); };
  for (const scene::SpanRef span : scene::exposed_in(*one.scene, step)) {
    const timeline::Detail& detail = timeline.detail(span);
    if (names(cause.lines, timeline::line_text(timeline, detail.leading())) && (cause.phases.empty() || names(cause.phases, timeline.strings[detail.phase]))) return span;
  }
  return {};
}

}  // namespace

// The first look was at the longest exposed span. It is at what the sentence speaks of, once there is one, if the user has not looked
// elsewhere since: at another span, another row or another step.
void Desk::Impl::look_again(OpenRun& one) {
  const scene::SpanRef first = std::exchange(one.looked_at, {});
  const scene::Scene::StepWindow step = views::step_in_view(*one.scene, one.plot);
  if (!first.valid() || one.chosen || one.plot.selected != first) return;
  if (one.explained != (is_modelled(*one.scene) ? OpenRun::any_step : step.number)) return;
  if (!is_modelled(*one.scene) && step.number < 0) return;   // of a measured run one step is explained
  const scene::SpanRef named = named_by(one.causes[one.explained], one, step);
  if (!named.valid()) return;
  one.plot.selected = named;
  open_row_of(one, named);
}

void Desk::Impl::take_causes(bool wait) {
  for (const auto& one : runs) {
    // Of a run that is too large to wait for there is none.
    if (one->scene->path_is_partial()) continue;
    const int step = step_to_explain(*one);
    do {
      if (is_ready(one->cause, wait)) {
        one->causes[one->explained] = one->cause.get();
        look_again(*one);
        quiet_frames = 0;
      }
      if (!one->cause.valid() && !one->causes.contains(step)) {
        one->explained = step;
        one->cause = find_cause(*one, step);
      }
    } while (wait && one->cause.valid());
    // Never the sentence of another step.
    const auto found = one->causes.find(step);
    one->overview.cause = found != one->causes.end() ? found->second.sentence : being_found(step);
  }
}

void Desk::Impl::take_difference(bool wait) {
  const auto is_of_these = [&](const Difference& of) {
    return compare.made && of.a == compare.made_a && of.b == compare.made_b && of.step_a == compare.made->step_a && of.step_b == compare.made->step_b;
  };
  if (is_ready(difference, wait)) {
    const Difference found = difference.get();
    if (is_of_these(found)) compare.told = found.told;
    quiet_frames = 0;
  }
  if (difference.valid() || !compare.made || compare.told) return;
  const auto run_of = [&](const scene::Scene* scene) -> const OpenRun* {
    for (const auto& one : runs) {
      if (one->scene.get() == scene) return one.get();
    }
    return nullptr;
  };
  const OpenRun *a = run_of(compare.made_a), *b = run_of(compare.made_b);
  if (a == nullptr || b == nullptr) return;
  struct Side {
    std::shared_ptr<const scene::Scene> scene;
    std::vector<std::string> places;
    std::optional<int> step;
  };
  const auto side = [](const OpenRun& one, int step) {
    return Side{one.scene, places_of(one), one.scene->steps().empty() ? std::nullopt : std::optional<int>(step)};
  };
  const Difference asked{compare.made_a, compare.made_b, compare.made->step_a, compare.made->step_b, {}};
  difference = std::async(std::launch::async, [asked, before = side(*a, asked.step_a), after = side(*b, asked.step_b)] {
    Difference found = asked;
    const base::Result<cause::Recorded> of_before = cause::read_recorded(before.places), of_after = cause::read_recorded(after.places);
    if (!of_before || !of_after) {
      found.told.sentence = (!of_before ? of_before : of_after).error() + ".";
      return found;
    }
    const base::Result<cause::Diff> made = cause::diff_of({before.scene->timeline(), of_before.value(), before.step}, {after.scene->timeline(), of_after.value(), after.step});
    if (!made) {
      found.told.sentence = made.error() + ".";
      return found;
    }
    const cause::Diff& diff = made.value();
    found.told = {cause::headline(diff) + ".", {}, diff.equal, diff.before_ns, diff.after_ns};
    if (const std::string sums = cause::reconciliation(diff); !sums.empty()) found.told.sums.push_back("The step " + sums + ".");
    return found;
  });
}

}  // namespace shardbook::app
