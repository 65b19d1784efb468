#include "engine/cli/tune_command.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "engine/cli/train_config.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/launch/matmul_file.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::cli {

using base::text;
using kernels::AskedMatmul;
using kernels::MatmulPlan;
using launch::MatmulFile;
using tensor::Tensor;

namespace {

constexpr const char* usual_file = "matmuls.json";

// What a step asks for, all on one GPU: measured one after the other in the same memory. Before each all of it is random numbers,
// for zeros, and what is no number, cost less power.
std::vector<MatmulPlan> measure(const std::vector<AskedMatmul>& asked, Console& console) {
  base::Result<std::unique_ptr<device::Device>> made = device::make_cuda_device(0, {base::DType::bf16, base::DType::f32}, 0);
  if (!made) throw base::Failure(made.error());
  device::Device& device = *made.value();
  device::Stream& stream = device.create_stream("compute");
  base::Bytes most = 0;
  for (const AskedMatmul& one : asked) most = std::max(most, kernels::memory_of(one.form));
  const Tensor drawn = tensor::allocate(device, {std::min<std::int64_t>(most / 4 + 1, std::int64_t{1} << 24)}, base::DType::f32, program::MemoryKind::workspace, "tune.drawn");
  const Tensor memory = tensor::allocate(device, {most / 2 + drawn.elements()}, base::DType::bf16, program::MemoryKind::workspace, "tune.memory");
  device.seal();
  kernels::init_normal(stream, drawn, {}, 1, 0, 0, 1);
  const auto fill = [&](std::int64_t elements) {
    for (std::int64_t at = 0; at < elements; at += drawn.elements()) {
      const std::int64_t count = std::min(drawn.elements(), elements - at);
      kernels::cast(stream, drawn.slice(0, {count}), memory.slice(at, {count}));
    }
  };
  std::vector<MatmulPlan> plans;
  for (const AskedMatmul& one : asked) {
    console.err << (console.err_is_terminal ? "\r\x1b[K" : "") << "measuring " << plans.size() + 1 << " of " << asked.size() << ": " << to_string(one.form) << (console.err_is_terminal ? "" : "\n") << std::flush;
    fill(kernels::memory_of(one.form) / 2);
    plans.push_back(kernels::measure_matmul(device, stream, one.form, memory.data));
  }
  if (console.err_is_terminal) console.err << "\r\x1b[K" << std::flush;
  return plans;
}

std::string table(const std::vector<AskedMatmul>& asked, const std::vector<MatmulPlan>& plans) {
  std::string out = text(pad_left("a step", 7), pad_left("first, us", 11), pad_left("best, us", 10), pad_left("of it", 8), "  product\n");
  double first = 0, best = 0;
  for (std::size_t at = 0; at < asked.size(); ++at) {
    const MatmulPlan& plan = plans[at];
    out += text(pad_left(std::to_string(asked[at].times), 7), pad_left(fixed(plan.first_ns / 1e3, 1), 11), pad_left(fixed(plan.ns / 1e3, 1), 10), pad_left(fixed(plan.ns / plan.first_ns, 3), 8),
                "  ", to_string(plan.form), "\n");
    first += asked[at].times * plan.first_ns;
    best += asked[at].times * plan.ns;
  }
  return out + text("All matmuls of a step: ", fixed(first / 1e6, 2), " ms by the heuristic's first, ", fixed(best / 1e6, 2), " ms by the fastest.\n");
}

// Plans that the file has already, of other forms, stay.
base::Result<MatmulFile> with_those_before(MatmulFile measured, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return measured;
  const base::Result<MatmulFile> before = launch::read_matmul_file(path);
  if (!before) return base::Error{before.error() + ": remove it, or name another file with --out"};
  if (base::Status same = launch::check_measured_here(before.value(), measured.gpu, measured.library, path); !same) return base::Error{same.error() + ", or name another file with --out"};
  for (const MatmulPlan& plan : before.value().plans) {
    const bool again = std::any_of(measured.plans.begin(), measured.plans.end(), [&](const MatmulPlan& one) { return one.form == plan.form; });
    if (!again) measured.plans.push_back(plan);
  }
  return measured;
}

}  // namespace

std::vector<Switch> tune_switches() {
  std::vector<Switch> switches = {{"out", "FILE", "Where it is kept; what the file has of other matmuls stays.", usual_file}};
  for (const Switch& one : training_switches()) {
    if (one.name != "out" && one.name != "matmuls") switches.push_back(one);
  }
  return switches;
}

int tune(const Line& line, Console& console) {
  Line of_training = line;
  of_training.switches.erase("out");
  if (of_training.has("device") && of_training.value("device") == "host") return refuse(console, "tune measures a GPU's matmuls: leave --device host out");
  const int gpus = launch::gpus_available();
  if (gpus == 0) return refuse(console, text("tune measures a GPU, and there is none: ", device::cuda_problem()));
  const base::Result<TrainingConfig> made = config_of_any_node(of_training, gpus);
  if (!made) return refuse(console, made.error());
  const std::string out = line.has("out") ? line.value("out") : usual_file;
  MatmulFile file;
  std::vector<AskedMatmul> asked;
  try {
    file = {device::cuda_device_name(0), kernels::matmul_library(), {}};
    // Whether it can be written is known before a minute of measuring
    const base::Result<MatmulFile> before = with_those_before(file, out);
    if (!before) return refuse(console, before.error());
    if (base::Status written = launch::write_matmul_file(before.value(), out); !written) return refuse(console, written.error());
    asked = launch::matmuls_of_step(made.value().config);
    file.plans = measure(asked, console);
  } catch (const base::Failure& failure) {
    console.err << "shardbook: " << failure.what() << "\n";
    return exit_failed;
  }
  console.out << file.gpu << ", cuBLASLt " << launch::library_text(file.library) << "\n\n" << table(asked, file.plans);
  base::Result<MatmulFile> whole = with_those_before(std::move(file), out);
  if (!whole) return refuse(console, whole.error());
  if (base::Status written = launch::write_matmul_file(whole.value(), out); !written) return refuse(console, written.error());
  console.out << "Written to " << out << ". A run multiplies so with --matmuls " << out << ".\n";
  return exit_ok;
}

}  // namespace shardbook::cli
