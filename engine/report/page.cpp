// report/page: from the head of the page to its foot; see page.hpp.
#include "engine/report/page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/report/html.hpp"
#include "engine/report/page_parts.hpp"
#include "engine/report/style.hpp"
#include "engine/report/svg.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::report {

using base::text;

namespace {

constexpr std::size_t most_banners = 20;
constexpr std::size_t most_files = 16;

// A value of run.json as text: strings as they are, all else as JSON.
std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return base::json_text(value);
}

std::string field(const std::string& name, const std::string& inside) {
  return inside.empty() ? "" : element("dt", escaped(name)) + element("dd", inside) + "\n";
}

// "CUDA driver 13.0 · NCCL 2.28.3"
std::string pairs_text(const nlohmann::json& object) {
  std::string out;
  if (!object.is_object()) return out;
  for (const auto& [key, value] : object.items()) out += text(out.empty() ? "" : " · ", key, " ", shortened(value_text(value), 200));
  return out;
}

std::string pairs_html(const nlohmann::json& object) {
  std::string out;
  if (!object.is_object()) return out;
  for (const auto& [key, value] : object.items()) {
    out += element("span", element("code", escaped(shortened(key, 60)) + " = " + escaped(shortened(value_text(value), 300)))) + "\n";
  }
  return out.empty() ? "" : element("div", {{"class", "config"}}, out);
}

std::string string_of(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) ? value_text(object[key]) : "";
}
double number_of(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number() ? object[key].get<double>() : -1;
}

// "MODELLED by the profile h200x8: a prediction", "measured on NVIDIA H200"
std::string clock_words(const timeline::Provenance& provenance) {
  const std::string on = provenance.device.empty() ? "" : " on " + provenance.device;
  switch (provenance.clock) {
    case timeline::Clock::measured: return "measured" + on;
    case timeline::Clock::modelled: return "MODELLED by the profile " + provenance.profile + ": a prediction, not a measurement";
    case timeline::Clock::wall: return "wall clock of this CPU" + on;
    case timeline::Clock::unknown: break;
  }
  return "clock not stated by the trace" + (on.empty() ? "" : ", device" + on.substr(3));
}

// Every clock of the run, each with its error.
std::string clocks_html(const PageOf& of) {
  std::vector<metrics::RankRow> all;
  for (const timeline::Provenance& rank : of.timeline.ranks) all.push_back({rank.rank, {}});
  std::string out;
  for (const ClockRows& clock : by_clock(of.timeline, all)) {
    const bool modelled = clock.provenance.clock == timeline::Clock::modelled;
    out += element("span", {{"class", modelled ? "clockname modelled" : "clockname"}}, escaped(clock_words(clock.provenance))) + " ";
    const std::size_t of_world = static_cast<std::size_t>(std::max(clock.provenance.world_size, 1));
    out += escaped(text(clock.rows.size(), " of ", count_text(std::max(of_world, clock.rows.size()), "rank")));
    if (clock.rows.size() < 2) continue;
    out += clock.provenance.foreign ? std::string("; how well their clocks agree is not stated by the traces")
                                    : ", whose clocks agree to " + metrics::duration_text(clock.largest_error_ns) + "; shorter waits are not claimed";
  }
  return element("p", out) + "\n";
}

// "gpt-1.3b · tp 1 × fsdp 8 · step 0"
std::string what_ran(const PageOf& of) {
  std::string out;
  if (of.run != nullptr) {
    out = string_of(of.run->config, "model");
    const std::string tp = string_of(of.run->config, "tp"), fsdp = string_of(of.run->config, "fsdp");
    if (!tp.empty() && !fsdp.empty()) out += text(out.empty() ? "" : " · ", "tp ", tp, " × fsdp ", fsdp);
    if (!of.run->lab.empty()) out += text(out.empty() ? "" : " · ", "lab ", of.run->lab);
  }
  return text(out, out.empty() ? "" : " · ", count_text(of.timeline.ranks.size(), "rank"), " · ", steps_text(of.timeline, of.figures));
}

// What the run printed of its speed; the figures of a modelled clock are about.
std::string speed_text(const timeline::RunInfo& run) {
  const char* about = run.clock == "modelled" ? "≈ " : "";
  const double tokens = number_of(run.results, "tokens_per_second"), step = number_of(run.results, "step_ns"), mfu = number_of(run.results, "mfu");
  std::string out;
  if (tokens > 0) out += text(about, std::llround(tokens), " tokens/s");
  if (step > 0 && step < 9e18) out += text(out.empty() ? "" : " · ", about, metrics::duration_text(std::llround(step)), " a step");
  if (mfu >= 0) out += text(out.empty() ? "" : " · ", "MFU ", std::round(1000 * mfu) / 10, " %");
  if (out.empty()) return out;
  out += " (" + (run.profile.empty() ? run.clock : run.clock + " " + run.profile) + ")";
  // Another step than those below, which were traced
  const bool as_graph = run.results.is_object() && run.results.contains("graph");
  return out + (as_graph ? ", of steps that were launched by one call each; the traced ones below were issued one by one" : "");
}

// How this came to be, in short.
std::string provenance(const PageOf& of) {
  if (of.run == nullptr) return element("p", {{"class", "note"}}, "No run.json: command, versions and configuration are not known.") + "\n";
  const timeline::RunInfo& run = *of.run;
  std::string fields;
  if (!run.command.empty()) fields += field("command", element("code", escaped(shortened(run.command, 2000))));
  fields += field("hardware", escaped(pairs_text(run.hardware)));
  fields += field("versions", escaped(pairs_text(run.versions)));
  fields += field("speed", escaped(speed_text(run)));
  fields += field("made", escaped(shortened(run.made_at, 60)));
  return element("dl", "\n" + fields) + "\n";
}

std::string head_part(const PageOf& of) {
  std::string out = element("h1", escaped(shortened(of.name, 160))) + "\n" + element("p", escaped(what_ran(of))) + "\n" + clocks_html(of) + provenance(of);
  std::size_t shown = 0;
  for (const std::string& banner : of.timeline.banners) {
    if (shown++ == most_banners) break;
    std::string words = shortened(banner, 500);
    if (banner.find(" is cut off at byte ") != std::string::npos) words += ". Figures count only what is there";
    out += element("p", {{"class", "banner"}, {"role", "note"}}, escaped(words + ".")) + "\n";
  }
  if (of.timeline.banners.size() > most_banners) {
    out += element("p", {{"class", "banner"}}, text("… and ", of.timeline.banners.size() - most_banners, " notes more of this kind.")) + "\n";
  }
  return element("header", "\n" + out) + "\n";
}

// The lines around the line that the sentence names, as they were when the run was made.
std::string source_html(const PageOf& of) {
  if (of.figures.exposures.empty()) return "";
  const SourcePlace place = source_of(of.timeline, of.figures.exposures.front().line, of.run);
  if (place.path.empty()) return "";
  const std::string where = text(place.path, ":", place.line);
  if (place.text.empty()) {
    return element("p", {{"class", "note"}}, element("code", escaped(where)) + " (no copy of this file is stored with the trace)") + "\n";
  }
  std::string lines;
  for (std::size_t i = 0; i < place.text.size(); ++i) {
    const int number = place.first + static_cast<int>(i);
    const bool named = number == place.line;
    lines += element("span", {{"class", named ? "named" : "line"}},
                     element("i", text(number)) + escaped(shortened(place.text[i], 240)) + (place.text[i].empty() ? " " : ""));
  }
  std::string title = element("code", escaped(where));
  if (!place.span.empty()) title += escaped(", in " + place.span + ": " + place.title);
  return element("p", {{"class", "note"}}, title + " As it was when the run was made:") + "\n" + element("pre", {{"class", "source"}}, lines) + "\n";
}

// What bounds the step: the sentence that `shardbook why` begins with.
std::string bound(const PageOf& of) {
  std::string sentence = shortened(of.figures.headline, 800);
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return element("section", "\n" + element("h2", "What bounds the step") + "\n" + element("p", {{"class", "why"}}, escaped(sentence + ".")) + "\n") + "\n";
}

std::string headline(const PageOf& of) {
  std::string sentence = shortened(of.figures.sentence, 800);
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  const bool blocks = !of.figures.exposures.empty() && of.figures.exposures.front().blocking_ns > 0;
  return element("section", "\n" + element("h2", blocks ? "The longest exposure that blocked the step" : "Exposed communication") + "\n" +
                                element("p", {{"class", "sentence"}}, escaped(sentence + ".")) + "\n" + source_html(of)) + "\n";
}

// What repeats it, and what was read.
std::string origin(const PageOf& of) {
  std::string fields;
  if (of.run != nullptr) {
    fields += field("switches", pairs_html(of.run->switches));
    fields += field("configuration", pairs_html(of.run->config));
  }
  std::string files;
  std::size_t count = 0;
  for (const timeline::Provenance& rank : of.timeline.ranks) {
    if (rank.path.empty() || count++ >= most_files) continue;
    files += (files.empty() ? "" : ", ") + std::filesystem::path(rank.path).filename().string();
  }
  if (count > most_files) files += text(" and ", count - most_files, " more");
  fields += field("read from", escaped(files));
  fields += field("page", escaped("made by " + of.made_with));
  return element("section", "\n" + element("h2", of.run != nullptr ? "What repeats this run" : "Where this comes from") + "\n" +
                                element("dl", "\n" + fields)) + "\n";
}

}  // namespace

std::string page(const PageOf& of) {
  const std::string head =
      "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n" +
      element("title", escaped(shortened(of.name, 160) + " · " + what_ran(of))) + "\n" + element("style", style()) + "\n";
  const std::string body = patterns_svg() + "\n" + head_part(of) + bound(of) + headline(of) + bars(of.timeline, of.figures) + pictures(of.timeline, of.figures) +
                           kinds_table(of.timeline, of.figures) + exposure_table(of.timeline, of.figures) + op_table(of.figures) +
                           metrics_tables(of.timeline, of.figures) + origin(of);
  return "<!DOCTYPE html>\n" + element("html", {{"lang", "en"}}, "\n" + element("head", "\n" + head) + "\n" + element("body", "\n" + body)) + "\n";
}

}  // namespace shardbook::report
