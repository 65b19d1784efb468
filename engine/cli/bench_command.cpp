#include "engine/cli/bench_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/base/signals.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/bench_side.hpp"
#include "engine/cli/bench_suite.hpp"
#include "engine/cli/report.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/speed.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/workbook/child.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Result;
using base::text;

namespace {

constexpr double most_seconds = 600;   // of one run

struct Asked {
  std::vector<BenchShape> shapes;
  int gpus = 1;
  int turns = 2;
  int steps = 0;                  // 0: as the suite has it
  bool on_meta = false;
  bool beside_torch = false;
  bool cudnn = false;             // is here, and attends
  std::vector<std::string> set;
  bool linked = false;            // with what is faster between linked GPUs
  bool lean = false;              // with what makes it hold less memory
  std::string profile;
  fs::path folder;                // of the runs
};

// What is linked, what is lean, and behind them what was typed. To foretell with `profile` only what the model knows; but where it is asked alone, what
// was typed stays, to be refused.
std::vector<std::string> choices_of(const Asked& asked, const BenchShape& shape, const simulate::Profile* profile = nullptr) {
  const auto known = [profile](std::vector<std::string> choices) { return profile == nullptr ? choices : set_without_gpus(std::move(choices), *profile); };
  std::vector<std::string> choices = asked.linked ? known(linked_choices(shape, asked.set)) : std::vector<std::string>{};
  if (asked.lean) {
    std::vector<std::string> taken = choices;
    taken.insert(taken.end(), asked.set.begin(), asked.set.end());
    for (std::string& one : lean_choices(shape, taken)) choices.push_back(std::move(one));
  }
  for (const std::string& typed : asked.on_meta ? asked.set : known(asked.set)) choices.push_back(typed);
  return choices;
}

struct Row {
  BenchShape shape{};
  config::ModelConfig sizes;
  std::int64_t tokens = 0;        // of a step
  Side ours, model;
  Floor floor;
  std::vector<Side> peers;
};

std::string own_program() {
  std::error_code failed;
  const fs::path path = fs::read_symlink("/proc/self/exe", failed);
  return failed ? "shardbook" : path.string();
}

// What a child says of its end: the last line that names an error, else the last that is not empty.
std::string last_line(const std::string& said) {
  std::istringstream lines(said);
  std::string line, last, error;
  while (std::getline(lines, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    if (line.starts_with("shardbook: ") || line.find("Error: ") != std::string::npos) error = line;
  }
  return base::printable(error.empty() ? last : error);
}

// "" if it went well, else why not.
std::string ended(const workbook::ChildEnd& end) {
  using Why = workbook::ChildEnd::Why;
  if (end.why == Why::out_of_time) return text("it was not done after ", most_seconds, " s");
  if (end.why == Why::exited && end.code == 0) return std::string();
  std::string said = last_line(end.said);
  if (said.starts_with("shardbook: ")) said = said.substr(11);
  if (end.why == Why::signalled) return text("it was ended by signal ", end.code, said.empty() ? "" : ": " + said);
  return said.empty() ? text("it ended with code ", end.code) : said;
}

base::Status train_ours(const Asked& asked, const BenchShape& shape, const std::vector<std::string>& options, int turn, Side& side) {
  const int steps = asked.steps > 0 ? asked.steps : shape.steps;
  const fs::path folder = asked.folder / text(shape.name, "-", turn + 1);
  std::vector<std::string> words = {own_program(), "train", "--device", "cuda"};
  words.insert(words.end(), options.begin(), options.end());
  // The traced steps are the last but two, when the clock of the GPUs has settled.
  words.insert(words.end(), {"--steps", text(steps), "--warmup-steps", "2", "--trace-steps", text(steps - 4, ":", steps - 2), "--progress", "0", "--out", folder.string()});
  const Result<workbook::ChildEnd> end = workbook::run_child(words, {.seconds = most_seconds});
  if (!end) return end.as_error();
  side.failure = ended(end.value());
  if (!side.failure.empty()) return base::Done{};
  const Result<timeline::RunInfo> info = timeline::read_run_info((folder / "run.json").string());
  if (!info) return info.as_error();
  const nlohmann::json& results = info.value().results;
  side.add(results.value("step_ns", 0.0), results.value("step_min_ns", 0.0), results.value("step_max_ns", 0.0));
  side.peak_bytes = results.value("allocated_bytes", 0.0);
  side.versions = info.value().versions;
  side.versions["hardware"] = info.value().hardware;
  // Its traced steps were issued one by one, and say nothing of those that the step is of
  if (results.contains("graph")) return base::Done{};
  const Result<timeline::Timeline> timeline = timeline::read({folder.string()});
  if (!timeline) return timeline.as_error();
  const Totals totals = totals_of(timeline.value());
  side.exposed_share = totals.exposed_share();
  side.overlap = totals.overlap();
  return base::Done{};
}

base::Status train_torch(const Asked& asked, const Row& row, Side& side) {
  const char* python = std::getenv("SHARDBOOK_PYTHON");
  const config::ModelConfig& model = row.sizes;
  std::vector<std::string> words = {
      python != nullptr ? python : "python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", text(asked.gpus),
      (fs::path(book::project_root()) / "experiments/speed/torch_peer.py").string(),
      "--cut", row.shape.cut == BenchShape::Cut::tp ? "tp" : "fsdp", "--architecture", config::name_of(model.architecture),
      "--sequences", text(row.shape.sequences), "--steps", text(peer_steps(asked.steps, row.shape.steps)), "--layers", text(model.layers), "--width", text(model.width),
      "--heads", text(model.heads), "--kv-heads", text(model.kv_heads()), "--ffn-width", text(model.ffn_width),
      "--sequence", text(model.sequence), "--vocab", text(model.vocab)};
  if (model.tied) words.push_back("--tied");
  const Result<workbook::ChildEnd> end = workbook::run_child(words, {.seconds = most_seconds});
  if (!end) return end.as_error();
  side.failure = ended(end.value());
  if (!side.failure.empty()) return base::Done{};
  if (!add_figures(end.value().said, side)) side.failure = "torch_peer.py gave no figures: " + last_line(end.value().said);
  return base::Done{};
}

// The model's word on the same options, and the floor, from the program that would be issued.
base::Status foretell(const Asked& asked, const simulate::Profile& profile, std::vector<std::string> words, Row& row) {
  words.insert(words.end(), {"--device", "meta", "--profile", asked.profile});
  const Result<config::RunConfig> config = config_on_meta(words);
  if (!config) return config.as_error();
  row.sizes = config.value().model;
  const Result<launch::Outcome> outcome = run_on_meta(words);
  if (!outcome) return outcome.as_error();
  const launch::Outcome& run = outcome.value();
  row.model.add(run.speed.step_ns, run.speed.step_ns, run.speed.step_ns);
  row.model.peak_bytes = run.speed.peak_memory_bytes;
  if (run.speed.as_graph) {
    row.model.exposed_share = run.speed.exposed_as_graph;
  } else {
    const Totals totals = totals_of(run.timeline);
    row.model.exposed_share = totals.exposed_share();
    row.model.overlap = totals.overlap();
  }
  row.tokens = static_cast<std::int64_t>(std::llround(run.speed.tokens_per_second * run.speed.step_ns / 1e9));
  const program::Record& record = run.records.front();
  row.floor = floor_of(*record.programs.at(record.steps.back().program), profile);
  return base::Done{};
}

// What the tokens of its step need over what the GPUs could do in it.
void put_mfu(const Asked& asked, const Row& row, const std::string& gpu, Side& side) {
  const double peak = launch::peak_flops(gpu);
  if (peak > 0 && !side.steps.empty()) side.mfu = static_cast<double>(row.tokens) * config::flops_per_token(row.sizes) / (side.step_ns() / 1e9) / (asked.gpus * peak);
}

std::string share(double value) { return value < 0 ? "" : fixed(100 * value, 1) + " %"; }

void print_side(Console& console, const std::string& label, const Row& row, const Side& side, const std::string& last) {
  console.out << pad_right(label, 22);
  if (!side.failure.empty()) {
    console.out << wrapped("failed: ", side.failure, console.text_columns() - 22);
    return;
  }
  const double step = side.step_ns();
  const std::string spread = side.most > side.least ? text(short_ms(side.least), "-", short_ms(side.most)) : "";
  console.out << pad_left(short_ms(step), 7) << pad_left(spread, 13) << pad_left(short_number(static_cast<double>(row.tokens) / step * 1e9, " "), 9)
              << pad_left(share(side.mfu), 8) << pad_left(share(side.exposed_share), 9) << pad_left(share(side.overlap), 9)
              << pad_left(side.peak_bytes > 0 ? fixed(side.peak_bytes / 1073741824.0, 1) : "", 7)
              << pad_left(last, 10) << "\n";
}

void print_row(Console& console, const Asked& asked, const Row& row) {
  const auto times = [&](double step) { return fixed(step / row.floor.ns(), 2) + " ×"; };
  if (!asked.on_meta) print_side(console, row.shape.name, row, row.ours, row.ours.steps.empty() ? "" : times(row.ours.step_ns()));
  print_side(console, asked.on_meta ? row.shape.name : "  modelled", row, row.model, times(row.model.step_ns()));
  for (const Side& peer : row.peers) {
    const bool both = !peer.steps.empty() && !row.ours.steps.empty();
    print_side(console, "  " + peer.name, row, peer, peer.steps.empty() ? "" : times(peer.step_ns()));
    if (both) console.out << "    tokens/s: ours are " << fixed(peer.step_ns() / row.ours.step_ns(), 2) << " × its own\n";
    if (const std::string busy = busy_sentence(peer, row.ours); both && !busy.empty()) console.out << "    " << busy << "\n";
  }
  console.out << "  floor " << short_ms(row.floor.ns()) << " ms: matmuls " << short_ms(row.floor.matmul_ns) << ", memory " << short_ms(row.floor.memory_ns) << "\n" << std::flush;
}

nlohmann::json json_of(const Row& row, bool on_meta) {
  nlohmann::json json = {{"shape", row.shape.name}, {"tokens", row.tokens}, {"modelled", json_of(row.model)},
                         {"floor", {{"matmul_ns", row.floor.matmul_ns}, {"memory_ns", row.floor.memory_ns}}}, {"peers", nlohmann::json::array()}};
  if (!on_meta) json["ours"] = json_of(row.ours);
  for (const Side& peer : row.peers) json["peers"].push_back(json_of(peer));
  return json;
}

Result<Asked> asked_of(const Line& line) {
  Asked asked;
  const std::string device = line.has("device") ? line.value("device") : "cuda";
  if (device != "cuda" && device != "meta") return base::Error{text("bench measures GPUs, or asks the model (--device meta); it knows no device \"", device, "\"")};
  asked.on_meta = device == "meta";
  const int here = launch::gpus_available();
  if (!asked.on_meta && here == 0) {
    return base::Error{text("bench measures GPUs, and there is none: ", device::cuda_problem(), "; what the model foretells of them: `shardbook bench --device meta`")};
  }
  asked.gpus = asked.on_meta ? 2 : here;
  if (line.has("gpus")) {
    const Result<int> gpus = whole_number("gpus", line.value("gpus"), 1);
    if (!gpus) return gpus.as_error();
    if (!asked.on_meta && gpus.value() > here) return base::Error{text("--gpus asks for ", gpus.value(), ", and ", here == 1 ? "1 is" : text(here, " are"), " here")};
    asked.gpus = gpus.value();
  }
  for (const auto& [name, into, least] : {std::tuple{"turns", &asked.turns, 1}, {"steps", &asked.steps, 12}}) {
    if (!line.has(name)) continue;
    const Result<int> number = whole_number(name, line.value(name), least);
    if (!number) return number.as_error();
    *into = number.value();
  }
  if (line.has("vs")) {
    if (line.value("vs") != "torch") return base::Error{text("bench can be beside PyTorch (--vs torch); it knows no \"", line.value("vs"), "\"")};
    if (asked.on_meta) return base::Error{"--vs torch measures, and --device meta does not: leave one of them out"};
    asked.beside_torch = true;
  }
  asked.cudnn = !asked.on_meta && kernels::cudnn_problem().empty();
  if (line.has("set")) asked.set = line.switches.at("set");
  asked.linked = line.has("linked");
  asked.lean = line.has("lean");
  if (asked.linked && asked.gpus == 1) return base::Error{"--linked is of what crosses between GPUs, and 1 is asked for: leave it out"};
  if (asked.linked && !asked.on_meta && !comm::nccl_windows_problem().empty()) return base::Error{text("--linked: ", comm::nccl_windows_problem())};
  asked.profile = line.has("profile") ? line.value("profile") : "h200x8";
  Result<std::vector<BenchShape>> shapes = shapes_named(line.places);
  if (!shapes) return shapes.as_error();
  asked.shapes = std::move(shapes).value();
  if (line.places.empty() && asked.gpus == 1) {
    // Cut over one GPU both are the same.
    std::erase_if(asked.shapes, [](const BenchShape& shape) { return shape.cut == BenchShape::Cut::tp && std::string_view(shape.model) != "grammar-tutor"; });
  }
  return asked;
}

// Errors: it cannot be made, or holds runs already.
Result<fs::path> folder_for(const Line& line) {
  const fs::path folder = line.has("out") ? fs::path(line.value("out")) : fs::path("experiments/bench");
  std::error_code failed;
  if (fs::exists(folder, failed) && (!fs::is_directory(folder, failed) || !fs::is_empty(folder, failed))) {
    return base::Error{text(folder.string(), " is there already: name a new folder for the runs with --out")};
  }
  if (!fs::create_directories(folder, failed) && failed) return base::Error{text(folder.string(), " cannot be made: ", failed.message())};
  return folder;
}

base::Status measure_row(const Asked& asked, const std::vector<std::string>& words, Row& row, Console& console) {
  if (asked.beside_torch) row.peers.push_back({.name = "PyTorch"});
  for (int turn = 0; turn < asked.turns; ++turn) {
    if (base::stop_signal() != 0) return base::Error{"asked to stop"};
    if (row.ours.failure.empty()) {
      console.err << row.shape.name << ": ours, turn " << turn + 1 << " of " << asked.turns << "\n" << std::flush;
      if (base::Status status = train_ours(asked, row.shape, words, turn, row.ours); !status) return status;
    }
    for (Side& peer : row.peers) {
      if (!peer.failure.empty()) continue;
      console.err << row.shape.name << ": PyTorch, turn " << turn + 1 << " of " << asked.turns << "\n" << std::flush;
      if (base::Status status = train_torch(asked, row, peer); !status) return status;
    }
  }
  return base::Done{};
}

}  // namespace

std::vector<Switch> bench_switches() {
  return {{"device", "cuda|meta", "Measure GPUs, or say what the model foretells.", "cuda"},
          {"gpus", "N", "Over how many GPUs each shape is cut.", "all; 2 on meta"},
          {"vs", "torch", "Beside it the same shapes in PyTorch: FSDP2, or DTensor with sequence parallel, a block compiled.", ""},
          {"turns", "N", "How often each side runs, in turn; the step is the median of the turns' medians.", "2"},
          {"steps", "N", "Steps of a run, 12 at least.", "by shape"},
          {"set", "KEY=VALUE...", "Design choices of ours, as train takes them.", "", true},
          {"linked", "", "With what is faster still between two GPUs that read each other's memory (NCCL 2.28): under fsdp windows, wider last reductions, lent gradients, updates by unit and, of a gpt, GELU in the matmuls; under tp windows and pieces."},
          {"lean", "", "Under fsdp in a form that holds less memory, of gpt-1.3b, gpt-6.9b and llama-8b no more than FSDP2: gradients lent, what costs no matmul computed again in backward, and of the two largest models copies in bf16 made for each gather."},
          {"profile", "NAME|FILE", "The machine profile of floor and model.", "h200x8"},
          {"out", "DIR", "Folder for the runs, a new one.", "experiments/bench"},
          {"json", "", "Figures as JSON on standard output.", ""}};
}

int bench(const Line& line, Console& console) {
  Result<Asked> made = asked_of(line);
  if (!made) return refuse(console, made.error());
  Asked asked = std::move(made).value();
  const Result<simulate::Profile> profile = simulate::find_profile(asked.profile);
  if (!profile) return refuse(console, profile.error());

  // Everything is foretold first: what cannot be asked for is refused before a run.
  std::vector<Row> rows;
  for (const BenchShape& shape : asked.shapes) {
    Row row{.shape = shape};
    const std::vector<std::string> words = words_of(shape, asked.gpus, choices_of(asked, shape, &profile.value()), asked.cudnn);
    if (base::Status status = foretell(asked, profile.value(), words, row); !status) {
      return refuse(console, text(shape.name, ": ", status.error()));
    }
    rows.push_back(std::move(row));
  }
  if (!asked.on_meta) {
    Result<fs::path> folder = folder_for(line);
    if (!folder) return refuse(console, folder.error());
    asked.folder = std::move(folder).value();
  }

  const base::SignalGuard signals;
  const bool json = line.has("json");
  nlohmann::json out = {{"gpus", asked.gpus}, {"device", asked.on_meta ? "meta" : "cuda"}, {"profile", asked.profile}, {"rows", nlohmann::json::array()}};
  if (!json) {
    console.out << asked.gpus << " × " << (asked.on_meta ? "MODELLED " + asked.profile : device::cuda_device_name(0)) << " · bf16 · step: median of untraced steps, ms · floor and model: "
                << asked.profile << " (" << profile.value().device.name << ")\nexposed: part of a traced step, overlap: part of its communication; of a step that a graph launches\n(it has no marks) the model says how much of itself is exposed\n\n"
                << pad_right("", 22) << pad_left("step", 7) << pad_left("least-most", 13) << pad_left("tokens/s", 9) << pad_left("MFU", 8) << pad_left("exposed", 9) << pad_left("overlap", 9) << pad_left("GiB", 7)
                << pad_left("of floor", 10) << "\n" << std::flush;
  }
  bool failed = false;
  for (Row& row : rows) {
    if (!asked.on_meta) {
      if (base::Status status = measure_row(asked, words_of(row.shape, asked.gpus, choices_of(asked, row.shape), asked.cudnn), row, console); !status) {
        if (json) console.out << base::json_text_or_throw(out, 2) << "\n";
        console.err << "shardbook: bench ended at " << row.shape.name << ": " << status.error() << "\n";
        return base::stop_signal() != 0 ? exit_stopped : exit_failed;
      }
      failed = failed || !row.ours.failure.empty() || std::any_of(row.peers.begin(), row.peers.end(), [](const Side& peer) { return !peer.failure.empty(); });
    }
    const std::string gpu = asked.on_meta ? profile.value().device.name : device::cuda_device_name(0);
    put_mfu(asked, row, profile.value().device.name, row.model);
    put_mfu(asked, row, gpu, row.ours);
    for (Side& peer : row.peers) put_mfu(asked, row, gpu, peer);
    if (json) out["rows"].push_back(json_of(row, asked.on_meta));
    else print_row(console, asked, row);
  }
  if (json) {
    console.out << base::json_text_or_throw(out, 2) << "\n";
  } else {
    if (!asked.on_meta) console.out << "\nruns     " << asked.folder.string() << "\nversions " << base::json_text_or_throw(rows.front().ours.versions) << "\n";
    for (const Side& peer : asked.on_meta ? std::vector<Side>{} : rows.front().peers) console.out << "         " << base::json_text_or_throw(peer.versions) << "\n";
  }
  return failed ? exit_failed : exit_ok;
}

}  // namespace shardbook::cli
