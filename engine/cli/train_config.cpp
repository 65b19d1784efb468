#include "engine/cli/train_config.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/checkpoint/folder.hpp"
#include "engine/cli/switches_command.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Done;
using base::Error;
using base::text;
using config::DeviceKind;
using config::RunConfig;

namespace {

// A file of options; or a run, whose run.json holds them under "config".
base::Status read_config(RunConfig& config, const std::string& path) {
  std::error_code ignored;
  const bool is_run = fs::is_regular_file(fs::path(path) / "run.json", ignored);
  if (!is_run && fs::path(path).filename() != "run.json") return config::read_file(config, path);
  const std::string file = is_run ? (fs::path(path) / "run.json").string() : path;
  const base::Result<timeline::RunInfo> run = timeline::read_run_info(file);
  if (!run) return run.as_error();
  if (run.value().config.empty()) return Error{text(file, " is not the run.json of a run: it holds no \"config\"")};
  return config::read_json(config, base::json_text(run.value().config, 1), file + " (\"config\")");
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

// A run that goes on has the options of the run that wrote the checkpoint, but for those that stand on the line, and those
// that change no number. Another layout on the line is another layout in all.
base::Status take_from_checkpoint(RunConfig& config, const Line& line, const checkpoint::Found& found) {
  const bool other_layout = line.has("tp") || line.has("fsdp") || line.has("dp") || line.has("ranks");
  const nlohmann::json stored = base::parse_json(found.manifest.config);
  nlohmann::json taken = nlohmann::json::object();
  for (const config::Option& option : config::options()) {
    const std::string& name = option.name;
    if (line.has(name) || !stored.contains(name)) continue;
    if (is_one_of(name, {"clock", "profile", "launch", "trace-steps", "lab", "progress", "drain-seed", "check-finite", "checkpoint", "save-every", "keep-checkpoints", "resume"})) continue;
    if (other_layout && is_one_of(name, {"tp", "fsdp", "dp", "ranks", "prefetch", "reshard", "set", "micro-batches"})) continue;
    taken[name] = stored[name];
  }
  return config::read_json(config, base::json_text(taken, 1), found.path + "/manifest (\"config\")");
}

// Steps to record are counted from where the run goes on, unless they were asked for.
void begin_at(RunConfig& config, std::int64_t step) {
  if (step == 0 || !config.is_open("trace-steps") || config.trace_steps.begin > step) return;
  const int first = static_cast<int>(std::min<std::int64_t>(step, config.steps));
  const int begin = std::max(first, std::min(first + 2, config.steps - 3));
  config.trace_steps = {begin, std::min(begin + 3, config.steps)};
}

base::Status suggest_layout(RunConfig& config, const book::Lab::Layout& layout) {
  if (base::Status status = config::suggest(config, "tp", {std::to_string(layout.tp)}); !status) return status;
  return config::suggest(config, "fsdp", {std::to_string(layout.fsdp)});
}

std::string layout_text(int tp, int fsdp) { return text("tp ", tp, " × fsdp ", fsdp); }

// The lab's layouts on GPUs, largest first: the first that validate() need not shrink.
base::Result<TrainingConfig> on_gpus(const RunConfig& config, const book::Lab& lab, int gpus) {
  base::Result<RunConfig> validated = Error{""};
  for (const book::Lab::Layout& layout : lab.cuda) {
    RunConfig tried = config;
    if (base::Status status = suggest_layout(tried, layout); !status) return status.as_error();
    validated = config::validate(tried, gpus);
    if (!validated) return validated.as_error();
    const RunConfig& found = validated.value();
    if (found.device != DeviceKind::cuda || (found.tp >= tried.tp && found.fsdp >= tried.fsdp)) break;
  }
  return TrainingConfig{validated.value(), {}};
}

base::Result<TrainingConfig> lab_config(RunConfig config, const book::Lab& lab, int gpus) {
  // A layout that was asked for, in whole, needs no suggestion.
  if (base::Status status = config::suggest(config, "lab", {lab.name}); !status) return status.as_error();
  for (const auto& [option, values] : lab.options) {
    if (base::Status status = config::suggest(config, option, values); !status) {
      return Error{text(lab.folder, "/lab.json: ", status.error())};
    }
  }
  const bool device_open = config.is_open("device");
  const book::Lab::Layout& least = lab.cuda.back();
  std::vector<std::string> said;
  if (gpus > 0 && (device_open || config.device == DeviceKind::cuda)) {
    // Too few for the smallest: the host has as many ranks as are wanted.
    const bool layout_asked = config.was_asked("tp") || config.was_asked("fsdp") || config.was_asked("ranks");
    if (gpus >= least.ranks() || !device_open || layout_asked) {
      base::Result<TrainingConfig> found = on_gpus(config, lab, gpus);
      if (!found || found.value().config.device == DeviceKind::cuda) {
        if (!found) return found;
        const RunConfig& taken = found.value().config;
        found.value().said.push_back(text(count_text(gpus, "GPU"), gpus == 1 ? " is" : " are", " here: this run takes ",
                                          layout_text(taken.tp, taken.fsdp), ", the largest layout of this lab that fits"));
        return found;
      }
    } else {
      said.push_back(text("this lab needs ", count_text(least.ranks(), "GPU"), " and ", gpus, gpus == 1 ? " is" : " are",
                          " here, so it runs on the host"));
      if (base::Status status = config::suggest(config, "device", {"host"}); !status) return status.as_error();
    }
  } else if (device_open) {
    said.push_back("no GPU can be used here, so the host computes the numbers and a machine profile tells the time "
                   "(`shardbook doctor` says what is missing)");
  }
  if (base::Status status = suggest_layout(config, lab.host.front()); !status) return status.as_error();
  base::Result<RunConfig> validated = config::validate(config, gpus);
  if (!validated) return validated.as_error();
  return TrainingConfig{validated.value(), said};
}

// What stands on a line, in its --config and in the checkpoint that it goes on from: nothing is chosen yet.
struct Wanted {
  RunConfig config;
  std::int64_t first_step = 0;
  std::vector<std::string> said;   // of the checkpoint
};

base::Result<Wanted> wanted_by(const Line& line) {
  if (base::Status status = one_value_each(asked_of_switches(line)); !status) return status.as_error();
  Wanted wanted;
  RunConfig& config = wanted.config;
  if (line.has("config")) {
    if (base::Status status = read_config(config, line.value("config")); !status) return status.as_error();
  }
  if (line.has("resume")) {
    const base::Result<checkpoint::Found> found = checkpoint::find(line.value("resume"));
    if (!found) return found.as_error();
    if (!line.has("config")) {
      if (base::Status status = take_from_checkpoint(config, line, found.value()); !status) return status.as_error();
    }
    wanted.first_step = found.value().manifest.step;
    for (const std::string& why : found.value().passed_over) wanted.said.push_back(base::printable(why));
    wanted.said.push_back(text("goes on from ", base::printable(found.value().path), ", of ", count_text(wanted.first_step, "step")));
  }
  // In the order of the table, so that another model than the file's comes before its sizes.
  for (const config::Option& option : config::options()) {
    if (!line.has(option.name)) continue;
    const std::vector<std::string>& given = line.switches.at(option.name);
    if (base::Status status = config::ask(config, option.name, given.empty() ? std::vector<std::string>{"true"} : given); !status) {
      return status.as_error();
    }
  }
  return wanted;
}

base::Result<TrainingConfig> settle(const Wanted& wanted, const std::optional<book::Lab>& lab, int gpus) {
  base::Result<TrainingConfig> made = Error{""};
  if (lab) {
    made = lab_config(wanted.config, *lab, gpus);
  } else {
    base::Result<RunConfig> validated = config::validate(wanted.config, gpus);
    if (!validated) return validated.as_error();
    made = TrainingConfig{validated.value(), {}};
  }
  if (made) {
    begin_at(made.value().config, wanted.first_step);
    made.value().said.insert(made.value().said.end(), wanted.said.begin(), wanted.said.end());
    const std::vector<std::string>& notes = made.value().config.notes;
    made.value().said.insert(made.value().said.end(), notes.begin(), notes.end());
  }
  return made;
}

}  // namespace

std::vector<Switch> training_switches() {
  std::vector<Switch> switches;
  for (const config::Option& option : config::options()) {
    const bool flag = option.name == "json";
    switches.push_back({option.name, flag ? "" : option.values, option.help, flag ? "" : option.default_text,
                        option.takes_many, option.kind == config::Option::Kind::boolean && !flag});
  }
  switches.push_back({"config", "FILE", "Options as a JSON file, or the folder of a run that is to be repeated; what stands on "
                                        "the line goes before.", "none"});
  return switches;
}

base::Result<TrainingConfig> training_config(const Line& line, const std::optional<book::Lab>& lab, int gpus) {
  const base::Result<Wanted> wanted = wanted_by(line);
  if (!wanted) return wanted.as_error();
  return settle(wanted.value(), lab, gpus);
}

base::Result<TrainingConfig> config_of_shapes(const Line& line, int gpus) {
  base::Result<Wanted> wanted = wanted_by(line);
  if (!wanted) return wanted.as_error();
  base::Result<TrainingConfig> here = settle(wanted.value(), std::nullopt, gpus);
  RunConfig& config = wanted.value().config;
  if (here || gpus == 0 || config.was_asked("device")) return here;
  if (base::Status status = config::ask(config, "device", {"meta"}); !status) return status.as_error();
  base::Result<TrainingConfig> elsewhere = settle(wanted.value(), std::nullopt, 0);
  const bool fits_here = elsewhere && elsewhere.value().config.ranks <= gpus;
  return fits_here ? here : elsewhere;   // or what is wrong with it on any node
}

base::Result<TrainingConfig> config_of_any_node(const Line& line, int gpus) {
  const base::Result<Wanted> wanted = wanted_by(line);
  if (!wanted) return wanted.as_error();
  base::Result<TrainingConfig> here = settle(wanted.value(), std::nullopt, gpus);
  if (here) return here;
  const RunConfig& config = wanted.value().config;
  const int fsdp = config.was_asked("fsdp") ? config.fsdp : 1;
  const int ranks = config.was_asked("ranks") && config.ranks > 0 ? config.ranks : config.tp * fsdp * config.dp;
  return ranks > gpus ? settle(wanted.value(), std::nullopt, ranks) : here;
}

base::Result<config::RunConfig> config_on_meta(const std::vector<std::string>& words) {
  Command command;
  command.name = "train";
  command.switches = training_switches();
  base::Result<Line> line = read_line(command, words);
  if (!line) return line.as_error();
  if (line.value().has("device") && line.value().value("device") != "meta") return Error{"only runs with --device meta are made here: name the folder of the run instead"};
  line.value().switches["device"] = {"meta"};
  base::Result<TrainingConfig> made = training_config(line.value(), std::nullopt, 0);
  if (!made) return made.as_error();
  return made.value().config;
}

base::Result<launch::Outcome> run_on_meta(const std::vector<std::string>& words, bool make_timeline) {
  const base::Result<config::RunConfig> config = config_on_meta(words);
  if (!config) return config.as_error();
  constexpr int most_ranks = 64;
  if (config.value().ranks > most_ranks) return Error{text("it has ", config.value().ranks, " ranks; a figure names a run of at most ", most_ranks)};
  launch::LaunchOptions quiet;
  quiet.write_run = false;
  quiet.make_timeline = make_timeline;
  return launch::run(config.value(), quiet);
}

}  // namespace shardbook::cli
