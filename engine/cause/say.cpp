// cause/say: a Why in words, and as JSON; see why.hpp.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/cause/text.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using base::text;
using metrics::duration_text;

namespace {

// "18.5 of 66.9 ms", or with two units where they differ.
std::string of_step(Nanoseconds ns, Nanoseconds step_ns) {
  const std::string small = duration_text(ns), whole = duration_text(step_ns);
  const std::size_t unit = whole.find(' ');
  const bool same = small.size() > 3 && small.substr(small.find(' ')) == whole.substr(unit);
  return (same ? small.substr(0, small.find(' ')) : small) + " of " + whole;
}

// What nothing can hide.
std::string unavoidable_text(const Why& why) {
  for (const Cause& cause : why.causes) {
    if (!cause.avoidable && !cause.line.empty()) return text("; ", cause.what, ", ", duration_text(cause.gain_ns), cause.remedy.empty() ? ", cannot be hidden" : ", can be hidden in part");
  }
  return "";
}

Nanoseconds path_of(const Why& why, Regime regime) {
  for (const Share& share : why.shares) {
    if (share.regime == regime) return share.path_ns;
  }
  return 0;
}

bool is_advice(const Cause& cause) { return cause.remedy.starts_with("look "); }

// What the step takes without the cause, and what a reader can change: two things, unless the change itself was resolved.
std::string way_out(const Why& why, const Cause& cause) {
  const std::string then = duration_text(why.step_ns - cause.gain_ns);
  if (cause.is_resolved) return cause.remedy + " would give " + then + (why.step ? ", by the model" : "");
  std::string words = "with that gone altogether the step would take " + std::string(cause.is_bound ? "at least " : "") + then;
  if (cause.remedy.empty()) return words;
  return words + (is_advice(cause) ? "; to find out more, " : "; what acts on it, and need not give that: ") + cause.remedy;
}

std::string clock_text(const Why& why) {
  if (why.clock == timeline::Clock::modelled) return "MODELLED " + why.profile;
  return timeline::name_of(why.clock);
}

// "host and launches" and so on, in a table.
const char* row_name(Regime regime) {
  switch (regime) {
    case Regime::host: return "the host, and launches";
    case Regime::latency: return "latency of collectives";
    case Regime::bandwidth: return "bandwidth of collectives";
    case Regime::rank: return "a rank that is late";
    case Regime::memory: return "copies and fills";
    case Regime::compute: return "compute";
    case Regime::unexplained: break;
  }
  return "not explained";
}

// A wait of the host may stand before what gains more.
Nanoseconds dearest_avoidable(const Why& why) {
  Nanoseconds most = 0;
  for (const Cause& cause : why.causes) most = cause.avoidable ? std::max(most, cause.gain_ns) : most;
  return most;
}

// In the table a part of the path and a gain stand side by side, and are not the same.
constexpr const char* gains_are_others =
    "A gain may be less than its part of the path, for what stands behind it takes its place; or more, where it also slowed what ran beside it.";

}  // namespace

const Cause* leading(const Why& why) {
  const Cause* best = nullptr;
  for (const Cause& cause : why.causes) {
    if (!cause.avoidable) continue;
    if (best == nullptr) best = &cause;
    if (cause.regime == why.regime && 2 * cause.gain_ns >= best->gain_ns) return &cause;
  }
  return best;
}

std::string headline(const Why& why) {
  const char* what = why.step ? "this step" : why.clock == timeline::Clock::modelled ? "this step" : "this window";
  const Cause* cause = leading(why);
  if (!why.has_problem || cause == nullptr) {
    std::string sentence = text(what, " is ", adjective_of(why.regime), " and has no problem: compute fills ",
                                percent(part_of(path_of(why, Regime::compute), why.step_ns)), " of ", duration_text(why.step_ns));
    if (cause != nullptr) sentence += text(", and nothing that could be changed costs more than ", duration_text(dearest_avoidable(why)));
    return sentence + unavoidable_text(why);
  }
  // A cause of another kind is no example of the regime: collectives that wait do not make a step compute-bound.
  std::string sentence = text(what, " is ", adjective_of(why.regime), cause->regime == why.regime ? ": " : "; beside that, ", cause->what, ", ", cause->is_bound ? "at most " : "",
                              of_step(cause->gain_ns, why.step_ns));
  if (!cause->because.empty()) sentence += ", because " + cause->because;
  if (!cause->line.empty()) sentence += " (" + cause->line + ")";
  return sentence + "; " + way_out(why, *cause);
}

std::string what_is_shown(const Why& why) {
  if (why.traced_step_ns == 0 || why.traced_step_ns == why.step_ns) return "";
  return text("The timeline shows traced steps of ", duration_text(why.traced_step_ns), "; meant here is the step without tracing, ", duration_text(why.step_ns), ".");
}

std::string to_text(const Why& why, std::size_t top) {
  std::string out = paragraph(headline(why) + ".");
  char row[160];
  const std::string which = why.step ? text("step ", *why.step, ", ", clock_text(why)) : clock_text(why);
  out += "\n" + paragraph(text("On the critical path across ranks, which is the step of ", duration_text(why.step_ns), " (", which, "), and what the step would gain without it"), "", "");
  for (const Share& share : why.shares) {
    if (share.path_ns == 0 && share.gain_ns.value_or(0) == 0) continue;
    std::snprintf(row, sizeof row, "  %-25s %10s ms %5.1f %%", row_name(share.regime), milliseconds(share.path_ns).c_str(),
                  100 * part_of(share.path_ns, why.step_ns));
    out += row;
    if (share.gain_ns) {
      std::snprintf(row, sizeof row, "     gains %9s ms %5.1f %%", milliseconds(*share.gain_ns).c_str(), 100 * part_of(*share.gain_ns, why.step_ns));
      out += row;
    }
    out += "\n";
  }
  if (std::ranges::any_of(why.shares, [](const Share& share) { return share.gain_ns.has_value(); })) out += paragraph(gains_are_others);
  if (const std::string shown = what_is_shown(why); !shown.empty()) out += paragraph(shown);
  std::size_t number = 0;
  for (const Cause& cause : why.causes) {
    if (number == top) break;
    if (number == 0 && cause.avoidable) {
      out += "\n" + paragraph("Causes, by what the step would gain with each gone altogether; what is to try acts on its cause, and need not give that", "", "");
    } else if (!cause.avoidable && (number == 0 || why.causes[number - 1].avoidable)) {
      out += "\n" + paragraph("What no change takes away altogether, by what the step would gain without it", "", "");
    }
    ++number;
    const std::string lead = text("  ", number, ". ", cause.is_bound ? "at most " : "", duration_text(cause.gain_ns), "  ");
    std::string content = cause.what;
    if (!cause.because.empty()) content += ": " + cause.because;
    if (!cause.avoidable && cause.remedy.empty()) content += "; nothing can change it";
    out += paragraph(content + ".", lead, "     ");
    if (!cause.where.empty()) out += paragraph(cause.where, "     in   ", "          ");
    if (!cause.line.empty()) out += "     at   " + cause.line + (cause.also.empty() ? "" : ", and " + counted(static_cast<std::int64_t>(cause.also.size()), "line") + " more") + "\n";
    if (cause.is_resolved) out += paragraph(cause.remedy + ", which gives that by the model", "     try  ", "          ");
    else if (!cause.remedy.empty()) out += paragraph(cause.remedy, is_advice(cause) ? "     do   " : "     try  ", "          ");
    if (!cause.note.empty()) out += "     read ./shardbook read " + cause.note + "\n";
  }
  if (why.idle_ns > 0) {
    out += text("\nIdle of rank ", why.rank, ", on that path or not: ", duration_text(why.idle_ns), ", ", percent(part_of(why.idle_ns, why.step_ns)), " of the step\n");
    for (const Idle& idle : why.idle) {
      std::snprintf(row, sizeof row, "  %-26s %10s ms  %5lld gaps  ", idle.cause.c_str(), milliseconds(idle.ns).c_str(), static_cast<long long>(idle.gaps));
      out += row;
      out += (idle.line.empty() || idle.line.size() > 24 ? std::string(idle.line.empty() ? "" : "\n    most at " + idle.line) : idle.line) + "\n";
    }
  }
  return out + "\n" + paragraph("Gains: " + why.basis);
}

nlohmann::json to_json(const Why& why, std::size_t top) {
  nlohmann::json shares = nlohmann::json::array(), causes = nlohmann::json::array(), idle = nlohmann::json::array();
  for (const Share& share : why.shares) {
    shares.push_back({{"regime", name_of(share.regime)}, {"path_ns", share.path_ns},
                      {"gain_ns", share.gain_ns ? nlohmann::json(*share.gain_ns) : nlohmann::json()}});
  }
  for (const Cause& cause : why.causes) {
    if (causes.size() == top) break;
    causes.push_back({{"regime", name_of(cause.regime)}, {"what", cause.what}, {"because", cause.because}, {"line", cause.line}, {"where", cause.where}, {"other_lines", cause.also},
                      {"remedy", cause.remedy}, {"note", cause.note}, {"count", cause.count}, {"gain_ns", cause.gain_ns},
                      {"is_bound", cause.is_bound}, {"avoidable", cause.avoidable}, {"without_it_ns", why.step_ns - cause.gain_ns},
                      {"remedy_gives_ns", cause.is_resolved ? nlohmann::json(why.step_ns - cause.gain_ns) : nlohmann::json()}});
  }
  for (const Idle& one : why.idle) idle.push_back({{"cause", one.cause}, {"line", one.line}, {"ns", one.ns}, {"gaps", one.gaps}});
  nlohmann::json json = {{"sentence", headline(why)}, {"regime", name_of(why.regime)}, {"has_problem", why.has_problem},
                         {"clock", timeline::name_of(why.clock)}, {"profile", why.profile}, {"basis", why.basis},
                         {"step_ns", why.step_ns}, {"shares_of", "the critical path across ranks"}, {"shares", shares},
                         {"causes", causes}, {"idle_of", text("rank ", why.rank)}, {"rank", why.rank}, {"idle_ns", why.idle_ns}, {"idle", idle}};
  json["step"] = why.step ? nlohmann::json(*why.step) : nlohmann::json();
  if (why.traced_step_ns > 0) json["traced_step_ns"] = why.traced_step_ns;
  return json;
}

}  // namespace shardbook::cause
