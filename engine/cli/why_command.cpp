// cli/why_command: what cause/ says, printed; see why_command.hpp.
#include "engine/cli/why_command.hpp"

#include <algorithm>
#include <optional>
#include <filesystem>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/cause/diff.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/cause/whatif.hpp"
#include "engine/cause/why.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/cli/switches_command.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/timeline/reader.hpp"

namespace shardbook::cli {

using base::text;

namespace {

constexpr int most_causes = 5;

// A whole number of a switch, or none where it is not given.
base::Result<std::optional<int>> number_of(const Line& line, const std::string& name, int least) {
  if (!line.has(name)) return std::optional<int>{};
  const base::Result<int> number = whole_number(name, line.value(name), least);
  if (!number) return number.as_error();
  return std::optional<int>(number.value());
}

std::vector<std::string> values_of(const Line& line, const std::string& name) {
  const auto found = line.switches.find(name);
  return found == line.switches.end() ? std::vector<std::string>{} : found->second;
}

// Whether a word names a run, and not what is to be otherwise: neither KEY=VALUE nor FILE:LINE. Folders of runs hold their
// switches, so a '=' behind a '/' is a name's.
bool is_run(const std::string& word) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) return true;
  const std::size_t sign = word.find_first_of("=/"), colon = word.rfind(':');
  if (sign != std::string::npos && word[sign] == '=') return false;
  return colon == std::string::npos || word.find_first_not_of("0123456789", colon + 1) != std::string::npos;
}

// The run's step as all of its ranks issue it with these switches.
// A measured step that is compared was traced, so its ops were issued one by one, whatever untraced ones did: what is asked for is
// issued so, too, unless it is the graph that is asked for.
base::Result<cause::Issued> issued_with(const cause::Recorded& recorded, const std::vector<std::string>& switches) {
  config::RunConfig config;
  if (const base::Status read = config::read_json(config, base::json_text(recorded.info->config, 1), "run.json (\"config\")"); !read) return read.as_error();
  for (const std::string& one : switches) {
    if (const base::Status set = config::find_option("set")->set(config, one); !set) return base::Error{"--set " + set.error()};
  }
  // Whether this machine has its GPUs does not matter: nothing is computed.
  const base::Result<config::RunConfig> valid = config::validate(config, config.tp * config.fsdp * config.dp);
  if (!valid) return valid.as_error();
  cause::Issued issued;
  issued.conditions = launch::conditions_of(valid.value());
  const bool graph_asked = std::find(switches.begin(), switches.end(), "host.graph=on") != switches.end();
  if (valid.value().clock == config::Clock::measured && !graph_asked) issued.conditions.as_graph = false;
  try {
    for (base::Rank rank = 0; rank < valid.value().ranks; ++rank) {
      base::Result<program::Record> record = program::decode(launch::issue_on_meta(valid.value(), rank).record, text("rank ", rank, "'s record"));
      if (!record) return record.as_error();
      issued.records.push_back(std::move(record).value());
    }
  } catch (const base::Failure& failure) {
    return base::Error{failure.what()};
  }
  return issued;
}

void print(Console& console, const nlohmann::json& json) {
  // Names come from the trace, and need not be UTF-8.
  console.out << base::json_text(json, 2) << "\n";
}

}  // namespace

std::vector<Switch> why_switches() {
  return {{"step", "N", "This step, by its number in the timeline.", "the one in the middle by length"},
          {"rank", "N", "Whose idle time is told.", "the first"},
          {"top", "N", "So many causes.", std::to_string(most_causes)},
          {"json", "", "As JSON on standard output.", ""}};
}

std::vector<Switch> whatif_switches() {
  std::string keys;
  for (const cause::ScaleKey& key : cause::scale_keys()) keys += text(keys.empty() ? "" : "; ", key.name, " ", key.sentence);
  std::vector<Switch> all = {{"scale", "KEY=FACTOR...", "A cost times a factor, 0 for nothing: " + keys + ". rank2.KEY is of one rank.", "", true},
          {"drop", "wait=FILE:LINE...", "Without the waits that this line issues, or whose event it records; waits=KIND leaves out all of event, host, limiter, "
                                         "buffer_reuse or communicator.", "", true},
          {"earlier", "FILE:LINE...", "The collectives of this line are issued one place earlier, as by one more prefetch.", "", true},
          {"alike", "", "All ranks as the one in the middle: no rank is late.", ""},
          {"set", "KEY=VALUE...", "The step as it is issued with this switch (`shardbook switches` lists them): ops that stay keep their measured times, others take the "
                                   "profile's.", "", true},
          {"step", "N", "Of a measured run, this step.", "the one in the middle by length"},
          {"json", "", "As JSON on standard output.", ""}};
  for (const auto& [option, key] : options_of_switches()) all.push_back(option);
  return all;
}

std::string not_for_whatif(const std::string& name) {
  if (config::find_option(name) == nullptr) return "";
  return text("whatif takes no --", name, ": it keeps the ranks, the model and the batch of the run; train with it (`shardbook train --device meta` needs no "
              "GPU) and compare the two runs with `shardbook diff`");
}

// Of a switch, in this run; some are told by their option.
std::string value_of(const cause::Recorded& recorded, const std::string& key) {
  for (const auto& [option, switch_key] : options_of_switches()) {
    if (switch_key == key) return recorded.option(option.name);
  }
  return recorded.switch_value(key);
}

std::vector<Switch> diff_switches() {
  return {{"step", "N", "This step of both.", "of each the one in the middle by length"},
          {"top", "N", "So many rows of each table.", "6"},
          {"json", "", "As JSON on standard output.", ""}};
}

int diff(const Line& line, Console& console) {
  const auto step = number_of(line, "step", 0), top = number_of(line, "top", 0);
  for (const auto* number : {&step, &top}) {
    if (!*number) return refuse(console, number->error());
  }
  std::vector<timeline::Timeline> timelines;
  std::vector<cause::Recorded> recorded;
  for (const std::string& place : line.places) {
    base::Result<timeline::Timeline> read = timeline::read(place);
    if (!read) return refuse(console, read.error());
    base::Result<cause::Recorded> left = cause::read_recorded({place});
    if (!left) return refuse(console, left.error());
    timelines.push_back(std::move(read).value());
    recorded.push_back(std::move(left).value());
  }
  const base::Result<cause::Diff> diff = cause::diff_of({timelines[0], recorded[0]}, {timelines[1], recorded[1]}, step.value());
  if (!diff) return refuse(console, diff.error());
  const auto most = static_cast<std::size_t>(top.value().value_or(6));
  if (line.has("json")) print(console, cause::to_json(diff.value(), most));
  else console.out << cause::to_text(diff.value(), most);
  return exit_ok;
}

int why(const Line& line, Console& console) {
  const auto step = number_of(line, "step", 0), rank = number_of(line, "rank", 0), top = number_of(line, "top", 0);
  for (const auto* number : {&step, &rank, &top}) {
    if (!*number) return refuse(console, number->error());
  }
  base::Result<timeline::Timeline> read = timeline::read(line.places);
  if (!read) return refuse(console, read.error());
  if (const base::Status whole = is_whole(read.value()); !whole) return refuse(console, whole.error());
  const base::Result<cause::Recorded> recorded = cause::read_recorded(line.places);
  if (!recorded) return refuse(console, recorded.error());
  const base::Result<cause::Why> why = cause::why_of(read.value(), recorded.value(), {step.value(), rank.value()});
  if (!why) return refuse(console, why.error());
  for (const std::string& banner : read.value().banners) console.err << "note: " << banner << "\n";
  const auto most = static_cast<std::size_t>(top.value().value_or(most_causes));
  if (line.has("json")) print(console, cause::to_json(why.value(), most));
  else console.out << cause::to_text(why.value(), most);
  return exit_ok;
}

int whatif(const Line& line, Console& console) {
  const auto step = number_of(line, "step", 0);
  if (!step) return refuse(console, step.error());
  // "host=0" may stand beside the run as it is.
  cause::Asked asked;
  std::vector<std::string> places;
  for (const std::string& word : line.places) {
    if (is_run(word)) places.push_back(word);
    else if (word.starts_with("wait")) asked.drop.push_back(word);
    else asked.scale.push_back(word);
  }
  // "--set KEY=VALUE RUN": a list takes the run that stands behind it, too
  for (const auto& [name, into] : {std::pair{"scale", &asked.scale}, {"drop", &asked.drop}, {"earlier", &asked.earlier}, {"set", &asked.set}}) {
    for (const std::string& word : values_of(line, name)) (is_run(word) ? places : *into).push_back(word);
  }
  for (const auto& [option, key] : options_of_switches()) {
    if (line.has(option.name)) asked.set.push_back(key + "=" + line.value(option.name));
  }
  std::vector<Asking> asking = asked_of_switches(line);
  for (const std::string& word : asked.scale) asking.emplace_back(word, word);
  if (const base::Status status = one_value_each(asking); !status) return refuse(console, status.error());
  if (places.size() != 1) return refuse(console, "whatif takes one run, and what is to be otherwise: see `shardbook whatif --help`");
  for (const std::string& word : asked.set) {
    const std::string key = word.substr(0, word.find('='));
    if (is_only_measured(key)) return refuse(console, text("whatif cannot say what ", key, " does: that is only measured; train with it, and compare with `shardbook diff`"));
  }
  asked.alike = line.has("alike");
  const base::Result<cause::Recorded> recorded = cause::read_recorded(places);
  if (!recorded) return refuse(console, recorded.error());
  const base::Result<cause::Study> study = cause::study_of(recorded.value(), step.value());
  if (!study) return refuse(console, places.front() + ": " + study.error());
  base::Result<cause::WhatIf> answer = base::Error{""};
  cause::Issued issued;
  if (asked.set.empty()) {
    answer = cause::what_if(study.value(), asked);
  } else {
    base::Result<cause::Issued> again = issued_with(recorded.value(), asked.set);
    if (!again) return refuse(console, again.error());
    issued = std::move(again).value();
    answer = cause::what_if(study.value(), asked, issued);
  }
  if (!answer) return refuse(console, answer.error());
  if (line.has("json")) {
    print(console, cause::to_json(study.value(), answer.value()));
    return exit_ok;
  }
  console.out << cause::to_text(study.value(), answer.value());
  for (const std::string& word : asked.set) {
    const std::string key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
    if (value_of(recorded.value(), key) == value) console.out << "\n" << key << " is " << value << " in this run already.\n";
  }
  return exit_ok;
}

}  // namespace shardbook::cli
