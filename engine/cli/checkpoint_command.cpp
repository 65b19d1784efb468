// cli/checkpoint_command: a manifest in words; see checkpoint_command.hpp.
#include "engine/cli/checkpoint_command.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/checkpoint/folder.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::printable;
using base::text;
using checkpoint::Manifest;
using checkpoint::StoredTensor;

namespace {

// "tp 2 × fsdp 4 × dp 1, grammar-tutor, bf16", or "" of a config that does not say.
std::string writer_text(const nlohmann::json& config) {
  const auto value = [&](const char* name) { return config.contains(name) ? printable(config[name].is_string() ? config[name].get<std::string>() : base::json_text(config[name])) : std::string("?"); };
  if (!config.contains("tp")) return "";
  std::string words = text("tp ", value("tp"), " × fsdp ", value("fsdp"), " × dp ", value("dp"), ", ", value("model"), ", ", value("precision"), " on ", value("device"));
  if (config.contains("set")) words += ", --set " + printable(base::json_text(config["set"]));
  return words;
}

nlohmann::ordered_json json_of(const checkpoint::Found& found) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const StoredTensor& tensor : found.manifest.tensors) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int dim = 0; dim < tensor.shape.dims(); ++dim) shape.push_back(tensor.shape[dim]);
    tensors.push_back({{"name", tensor.name}, {"dtype", base::name_of(tensor.dtype)}, {"shape", shape}, {"bytes", tensor.bytes()}, {"boxes", tensor.boxes.size()}});
  }
  return {{"path", found.path}, {"step", found.manifest.step}, {"bytes", found.manifest.bytes()}, {"files", found.manifest.files.size()},
          {"config", base::parse_ordered_json(found.manifest.config)}, {"tensors", tensors}};
}

void list(const checkpoint::Found& found, const std::string& place, Console& console) {
  const Manifest& manifest = found.manifest;
  const std::string writer = writer_text(base::parse_json(manifest.config));
  console.out << "Checkpoint  " << printable(found.path) << "\n"
              << "  steps     " << manifest.step << " done\n";
  if (!writer.empty()) console.out << "  layout    " << writer << "\n";
  console.out << "  size      " << bytes_text(manifest.bytes()) << " in " << count_text(static_cast<long long>(manifest.files.size()), "file") << ", "
              << count_text(static_cast<long long>(manifest.tensors.size()), "tensor") << "\n";
  for (const std::string& why : found.passed_over) console.out << "  not whole " << printable(why) << "\n";
  std::string others;
  for (const std::int64_t step : checkpoint::steps_in(place)) {
    if (checkpoint::path_of_step(place, step) != found.path) others += (others.empty() ? "" : ", ") + std::to_string(step);
  }
  if (!others.empty()) console.out << "  beside it " << "checkpoints of step " << others << "\n";

  int widest = 6;
  for (const StoredTensor& tensor : manifest.tensors) widest = std::max(widest, width_of(tensor.name));
  console.out << "\n" << pad_right("tensor", widest) << "  type  " << pad_right("shape", 16) << pad_left("bytes", 10) << pad_left("boxes", 7) << "\n";
  for (const StoredTensor& tensor : manifest.tensors) {
    console.out << pad_right(tensor.name, widest) << "  " << pad_right(base::name_of(tensor.dtype), 4) << "  " << pad_right(base::to_string(tensor.shape), 16)
                << pad_left(bytes_text(tensor.bytes()), 10) << pad_left(std::to_string(tensor.boxes.size()), 7) << "\n";
  }
}

// Boxes and tiles were checked when the manifest was read: what is left is what the files hold.
int verify_all(const checkpoint::Found& found, Console& console) {
  checkpoint::DataReader reader(found.path, found.manifest);
  for (std::size_t file = 0; file < found.manifest.files.size(); ++file) {
    if (base::Status whole = reader.verify(static_cast<int>(file)); !whole) {
      console.err << "shardbook: " << printable(whole.error()) << "\n";
      return exit_failed;
    }
  }
  console.out << "Whole: " << printable(found.path) << ": all " << found.manifest.bytes() << " bytes are those that were written, and boxes cover each of the "
              << found.manifest.tensors.size() << " tensors exactly once.\n";
  return exit_ok;
}

int convert_from(const std::string& file, const std::string& folder, Console& console) {
  const base::Result<std::string> made = checkpoint::read_safetensors(file, folder);
  if (!made) return refuse(console, printable(made.error()));
  console.out << "Checkpoint  " << printable(made.value()) << "\n"
              << "Next  ./shardbook checkpoint " << printable(shell_word(made.value())) << "\n";
  return exit_ok;
}

}  // namespace

std::vector<Switch> checkpoint_switches() {
  return {{"verify", "", "Read all of it and compare each sum; exit code 1 where a byte has changed.", ""},
          {"to", "FILE", "Write all tensors, merged, to this one file (.safetensors).", "none"},
          {"from", "FILE", "Make a checkpoint in DIR of such a file.", "none"},
          {"json", "", "The list as JSON on standard output.", ""}};
}

int checkpoint_of(const Line& line, Console& console) {
  const std::string& place = line.places.front();
  if (line.has("from") && (line.has("to") || line.has("verify"))) return refuse(console, "--from makes a checkpoint, and --to and --verify read one: ask for one after the other");
  if (line.has("from")) return convert_from(line.value("from"), place, console);
  const base::Result<checkpoint::Found> found = checkpoint::find(place);
  if (!found) return refuse(console, printable(found.error()));
  if (line.has("to")) {
    const std::string file = line.value("to");
    if (base::Status written = checkpoint::write_safetensors(found.value().path, found.value().manifest, file); !written) return refuse(console, printable(written.error()));
    std::error_code ignored;
    console.out << "Safetensors  " << printable(file) << "   " << bytes_text(static_cast<base::Bytes>(fs::file_size(file, ignored))) << ", "
                << count_text(static_cast<long long>(found.value().manifest.tensors.size()), "tensor") << ", of " << printable(found.value().path) << "\n";
    return exit_ok;
  }
  if (line.has("verify")) return verify_all(found.value(), console);
  if (line.has("json")) console.out << base::json_text(json_of(found.value()), 2) << "\n";
  else list(found.value(), place, console);
  return exit_ok;
}

}  // namespace shardbook::cli
