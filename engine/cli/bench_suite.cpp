#include "engine/cli/bench_suite.hpp"

#include <algorithm>
#include <sstream>

#include "engine/cli/switches_command.hpp"
#include "engine/simulate/cost.hpp"

namespace shardbook::cli {

using base::text;

namespace {

constexpr const char* sharded = "nccl.buffers=windows nccl.last_ctas=32 fsdp.gradient_memory=lent fsdp.update=by_unit";
constexpr const char* sharded_gpt = "nccl.buffers=windows nccl.last_ctas=32 fsdp.gradient_memory=lent fsdp.update=by_unit gelu.kernel=in_matmuls";
// Outputs of norms and of the activation computed again in backward; and copies in bf16 made for each gather.
constexpr const char* less_kept = "fsdp.gradient_memory=lent activations.recompute=cheap";
constexpr const char* least_kept = "fsdp.gradient_memory=lent activations.recompute=cheap fsdp.parameter_copy=made";
constexpr const char* in_pieces = "nccl.buffers=windows tensor_parallel.sequence=cut tensor_parallel.overlap=pieces";

bool is_set(const std::vector<std::string>& set, std::string_view key) {
  return std::any_of(set.begin(), set.end(), [key](const std::string& one) { return one.substr(0, one.find('=')) == key; });
}

std::vector<std::string> without_those_of(const std::vector<std::string>& set, const char* choices) {
  std::vector<std::string> rest;
  std::istringstream all(choices);
  for (std::string one; all >> one;) {
    if (!is_set(set, std::string_view(one).substr(0, one.find('=')))) rest.push_back(one);
  }
  return rest;
}

}  // namespace

const std::vector<BenchShape>& bench_suite() {
  using enum BenchShape::Cut;
  static const std::vector<BenchShape> suite = {
      {"gpt-1.3b-fsdp", "gpt-1.3b", fsdp, 8, "synthetic", "--attention flash --micro-batches 1 --set loss.kernel=fused", sharded_gpt, less_kept, 60},
      {"gpt-6.9b-fsdp", "gpt-6.9b", fsdp, 2, "synthetic", "--attention flash --micro-batches 1 --set loss.kernel=fused", sharded_gpt, least_kept, 36},
      {"gpt-124m-fsdp", "gpt-124m", fsdp, 64, "synthetic", "--attention flash --micro-batches 1 --set loss.kernel=fused", sharded_gpt, less_kept, 60},
      {"llama-8b-fsdp", "llama-8b", fsdp, 2, "synthetic", "--attention flash --micro-batches 1", sharded, least_kept, 30},
      {"gpt-1.3b-tp", "gpt-1.3b", tp, 8, "synthetic", "--attention flash --micro-batches 1", in_pieces, "", 60},
      {"gpt-6.9b-tp", "gpt-6.9b", tp, 2, "synthetic", "--attention flash --micro-batches 1", in_pieces, "", 40},
      {"grammar-tutor-tp", "grammar-tutor", tp, 16, "grammar", "--set attention.kernel=flash --set host.graph=on", "", "", 300},
  };
  return suite;
}

base::Result<std::vector<BenchShape>> shapes_named(const std::vector<std::string>& names) {
  if (names.empty()) return bench_suite();
  std::vector<bool> wanted(bench_suite().size());
  for (const std::string& name : names) {
    bool found = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!std::string_view(bench_suite()[i].name).starts_with(name)) continue;
      wanted[i] = found = true;
    }
    if (found) continue;
    std::string all;
    for (const BenchShape& shape : bench_suite()) all += text(all.empty() ? "" : ", ", shape.name);
    return base::Error{text("bench has no shape \"", name, "\": it has ", all)};
  }
  std::vector<BenchShape> shapes;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) shapes.push_back(bench_suite()[i]);
  }
  return shapes;
}

std::vector<std::string> words_of(const BenchShape& shape, int gpus, const std::vector<std::string>& set, bool cudnn) {
  const bool is_tp = shape.cut == BenchShape::Cut::tp;
  std::vector<std::string> words = {"--model", shape.model, "--tp", text(is_tp ? gpus : 1), "--fsdp", text(is_tp ? 1 : gpus),
                                    "--sequences", text(shape.global_sequences(gpus)), "--data", shape.data};
  std::istringstream fastest(shape.fastest);
  for (std::string option, value; fastest >> option >> value;) {
    // Attention's kernel is an option and a switch: one of both
    if (option == "--attention" && is_set(set, "attention.kernel")) continue;
    if (option == "--set" && is_set(set, std::string_view(value).substr(0, value.find('=')))) continue;
    words.insert(words.end(), {option, cudnn && value == "flash" ? "cudnn" : value});
  }
  for (const std::string& one : set) words.insert(words.end(), {"--set", one});
  return words;
}

std::vector<std::string> linked_choices(const BenchShape& shape, const std::vector<std::string>& set) {
  return without_those_of(set, shape.linked);
}

std::vector<std::string> lean_choices(const BenchShape& shape, const std::vector<std::string>& set) {
  return without_those_of(set, shape.lean);
}

std::vector<std::string> set_without_gpus(std::vector<std::string> set, const simulate::Profile& profile) {
  std::erase_if(set, [&](const std::string& one) {
    const bool known = one == "nccl.buffers=windows" && !profile.windows.collectives.empty();
    return !known && is_only_measured(one.substr(0, one.find('=')));
  });
  return set;
}

Floor floor_of(const program::Program& step, const simulate::Profile& profile) {
  Floor floor;
  const auto table = profile.gemm.find(base::DType::bf16);
  const double flops_per_ns = table == profile.gemm.end() ? 0 : table->second.peak_flops_per_ns;
  const double bytes_per_ns = profile.device.memory_bytes_per_ns;
  for (const program::Op& op : step.ops) {
    const program::OpClass what = program::class_of(op.desc.kind);
    if (what == program::OpClass::communication || what == program::OpClass::host || simulate::crosses_to_host(op.desc)) continue;
    const bool is_matmul = op.desc.kind == program::OpKind::gemm || op.desc.kind == program::OpKind::attention;
    if (is_matmul && flops_per_ns > 0) floor.matmul_ns += static_cast<double>(op.desc.flop_count) / flops_per_ns;
    if (!is_matmul && bytes_per_ns > 0) floor.memory_ns += static_cast<double>(op.desc.bytes_read + op.desc.bytes_written) / bytes_per_ns;
  }
  return floor;
}

}  // namespace shardbook::cli
