// `switches`: the rows of config::switches() in words and as JSON. Nothing is known here that is not in the table.
#include "engine/cli/switches_command.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/base/nearest.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::cli {

using base::text;
using config::Original;
using config::Trial;

namespace {

constexpr int label_columns = 10;

std::string indented(const std::string& words, int by) {
  const std::string blanks(static_cast<std::size_t>(by), ' ');
  std::string out;
  for (const std::string& line : wrap(words, plain_columns - by)) out += blanks + line + "\n";
  return out;
}

// "  needs     fsdp > 1": what follows on more lines stands below what came first. Nothing for empty words.
std::string labelled(const std::string& label, const std::string& words) {
  if (words.empty()) return "";
  std::string out = indented(words, label_columns + 2);
  return out.replace(2, label.size(), label);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string url_of(const Original& original) {
  return text("https://github.com/", original.repository, "/blob/", original.commit, "/", original.path, "#L", original.first_line, "-L", original.last_line);
}

// "torch/.../api.py:L73-L109 @a1cb3cc0"
std::string place_of(const Original& original) {
  return text(original.path, ":L", original.first_line, "-L", original.last_line, " @", original.commit.substr(0, 8));
}

std::string command_of(const Trial& trial, const std::string& key) {
  const char* command = trial.memory ? "plan --memory " : trial.measured ? "train --device cuda " : "train --device meta ";
  return text("./shardbook ", command, trial.options, " --set ", key, "=", trial.value);
}

// "changes the step by at least 5 %", and the command; a command is not broken, so that it can be copied.
std::string trial_text(const std::string& label, const Trial& trial, const std::string& bound, const std::string& key) {
  if (trial.value.empty()) return "";
  return labelled(label, text("changes the ", trial.memory ? "memory that a rank sets aside by " : trial.measured ? "measured step (on 2 H200s) by " : "modelled step by ", bound, " ", trial.percent, " %:")) +
         std::string(label_columns + 2, ' ') + command_of(trial, key) + "\n";
}

std::string promise_text(config::Promise promise) {
  switch (promise) {
    case config::Promise::same_bits: return "same bits: losses and gradients stay the same, bit for bit";
    case config::Promise::bounded: return "bounded: sums run in another order or type, and differ by rounding";
    case config::Promise::time_only: return "time only: losses and gradients mean nothing, and none are reported";
    case config::Promise::wrong: return "wrong: the run's numbers are those of a mistake";
  }
  return "";
}

std::string line_of(const config::Switch& row) {
  const std::string values = text(row.values_text(), " [", row.default_value, "]");
  return text("\n", pad_right(row.key, 35), width_of(row.key) < 35 ? "" : " ", values, "\n") + indented(row.sentence, 4);
}

// What finds it, as a command.
std::string catch_text(const config::Switch& row) {
  if (row.caught_by == "plan") return "the check of the plan: such a run is refused before it starts";
  if (row.caught_by == "verify") return "./shardbook verify RUN (a race: the wait that is missing)";
  return row.caught_by.empty() ? "" : "./shardbook verify RUN --against ONE_RANK (losses and gradient norms)";
}

std::string table_text() {
  std::string out = "Design choices of Megatron-LM and PyTorch, to be made otherwise with\n--set KEY=VALUE.\n";
  for (const config::Switch& row : config::switches()) {
    if (row.promise != config::Promise::wrong) out += line_of(row);
  }
  out += "\nMistakes on purpose, for labs, to see what finds them: --wrong KEY=VALUE.\n";
  for (const config::Switch& row : config::switches()) {
    if (row.promise == config::Promise::wrong) out += line_of(row);
  }
  return out + "\nThe default stands in brackets. shardbook switches NAME tells all of one.\n";
}

std::string row_text(const config::Switch& row) {
  std::string out = row.key + "\n" + indented(row.sentence, 2) + "\n";
  out += labelled("values", row.values_text());
  out += labelled("default", row.default_value);
  if (!row.option.empty()) out += labelled("the same", text("--", row.option));
  out += labelled("needs", joined(row.needs));
  out += labelled("excludes", joined(row.excludes));
  out += labelled("promise", promise_text(row.promise));
  out += labelled("set by", row.promise == config::Promise::wrong ? text("--wrong ", row.key, "=", row.values.back()) : "");
  out += labelled("found by", catch_text(row));
  out += labelled("Megatron", row.megatron);
  out += labelled("PyTorch", row.pytorch);
  out += labelled("read", text("notes/", row.note.substr(0, row.note.find('#')), ".md", row.note.find('#') == std::string::npos ? "" : row.note.substr(row.note.find('#'))));
  if (!row.originals.empty()) out += "\n  Where it stands in the originals\n";
  for (const Original& original : row.originals) out += text("    ", place_of(original), "\n      ", original.what, " (", original.repository, ")\n");
  out += "\n" + trial_text("moves", row.moves, "at least", row.key) + trial_text("still", row.still, "less than", row.key);
  return out;
}

nlohmann::json trial_json(const Trial& trial, const std::string& key) {
  if (trial.value.empty()) return nullptr;
  return {{"options", trial.options}, {"value", trial.value}, {"percent", trial.percent}, {"memory", trial.memory}, {"measured", trial.measured}, {"command", command_of(trial, key)}};
}

nlohmann::json row_json(const config::Switch& row) {
  nlohmann::json originals = nlohmann::json::array();
  for (const Original& original : row.originals) {
    originals.push_back({{"repository", original.repository}, {"commit", original.commit}, {"path", original.path}, {"what", original.what},
                         {"first_line", original.first_line}, {"last_line", original.last_line}, {"url", url_of(original)}});
  }
  nlohmann::json json = {{"key", row.key}, {"values", row.values}, {"default", row.default_value}, {"sentence", row.sentence},
                         {"option", row.option}, {"needs", row.needs}, {"excludes", row.excludes}, {"form", row.form}, {"caught_by", row.caught_by}, {"promise", name_of(row.promise)},
                         {"seam", name_of(row.seam)}, {"megatron", row.megatron}, {"pytorch", row.pytorch}, {"note", row.note},
                         {"originals", originals}, {"moves", trial_json(row.moves, row.key)}, {"still", trial_json(row.still, row.key)}};
  if (row.values.empty() && row.form.empty()) json["least"] = row.least, json["most"] = row.most;
  return json;
}

}  // namespace

int switches_of(const Line& line, Console& console) {
  const bool as_json = line.has("json");
  if (line.places.empty()) {
    nlohmann::json all = nlohmann::json::array();
    for (const config::Switch& row : config::switches()) all.push_back(row_json(row));
    console.out << (as_json ? base::json_text_or_throw(all, 2) + "\n" : table_text());
    return exit_ok;
  }
  const std::string& name = line.places.front();
  const config::Switch* row = config::find_switch(name);
  if (row == nullptr) {
    std::vector<std::string> keys;
    for (const config::Switch& known : config::switches()) keys.push_back(known.key);
    return refuse(console, text("there is no switch '", name, "'; the nearest is ", base::nearest(name, keys), ", and `shardbook switches` lists all"));
  }
  console.out << (as_json ? base::json_text_or_throw(row_json(*row), 2) + "\n" : row_text(*row));
  return exit_ok;
}

std::vector<Asking> asked_of_switches(const Line& line) {
  std::vector<Asking> asking;
  for (const char* list : {"set", "wrong"}) {
    const auto found = line.switches.find(list);
    if (found == line.switches.end()) continue;
    for (const std::string& word : found->second) asking.emplace_back(text("--", list, " ", word), word);
  }
  for (const auto& [option, key] : options_of_switches()) {
    if (!line.has(option.name)) continue;
    const std::string value = line.value(option.name).empty() ? "true" : line.value(option.name);
    asking.emplace_back(text("--", option.name, " ", value), key + "=" + value);
  }
  return asking;
}

base::Status one_value_each(const std::vector<Asking>& asking) {
  std::map<std::string, const Asking*> first;
  for (const Asking& one : asking) {
    const std::string key = one.second.substr(0, one.second.find('='));
    const auto [before, is_first] = first.emplace(key, &one);
    if (!is_first && before->second->second != one.second) {
      return base::Error{text(before->second->first, " and ", one.first, " ask for two values of ", key, ": leave one of them out")};
    }
  }
  return base::Done{};
}

bool is_only_measured(const std::string& key) {
  const config::Switch* row = config::find_switch(key);
  return row != nullptr && row->of_gpus_alone();
}

std::vector<std::pair<Switch, std::string>> options_of_switches() {
  std::vector<std::pair<Switch, std::string>> all;
  for (const config::Switch& row : config::switches()) {
    if (row.option.empty()) continue;
    Switch option{row.option, row.values.empty() ? "N" : row.values_text(), base::text("Another name of --set ", row.key, "."), ""};
    option.boolean = row.values == std::vector<std::string>{"true", "false"};
    all.emplace_back(std::move(option), row.key);
  }
  return all;
}

}  // namespace shardbook::cli
