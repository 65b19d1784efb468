#include "engine/cli/doctor.hpp"

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/cli/built_with.hpp"
#include "engine/cli/viewer.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/timeline/file_bytes.hpp"

namespace shardbook::cli {

using base::text;
using State = Examined::State;

namespace {

// What a program prints; "" where it is not there or fails.
std::string output_of(const char* command) {
  std::FILE* pipe = ::popen((std::string(command) + " 2> /dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  return ::pclose(pipe) == 0 ? output : "";
}

std::string first_line(const std::string& output) { return output.substr(0, output.find('\n')); }

// 13000 is "13.0".
std::string cuda_version(int version) { return text(version / 1000, ".", version % 1000 / 10); }

Examined toolkit() {
  if (*built_with::cuda_toolkit != '\0') return {"CUDA Toolkit", built_with::cuda_toolkit, State::works, "kernels for GPUs are built in", ""};
  const bool has_nvcc = !output_of("nvcc --version").empty() || std::filesystem::exists("/usr/local/cuda/bin/nvcc");
  if (has_nvcc) {
    return {"CUDA Toolkit", "nvcc is here, but this build is without it", State::missing, "--device cuda is refused",
            "SHARDBOOK_BUILD=cuda ./shardbook build"};
  }
  return {"CUDA Toolkit", "none", State::missing, "--device cuda is refused; host and meta work",
          "for GPUs: install CUDA Toolkit 12.4 or newer, or set CUDA_HOME, then ./shardbook build"};
}

Examined driver() {
  const int version = device::cuda_driver_version();
  if (version > 0) {
    const int runtime = device::cuda_runtime_version();
    const bool older = version / 1000 < runtime / 1000;
    return {"NVIDIA driver", text("CUDA ", cuda_version(version), ", runtime ", cuda_version(runtime)), older ? State::missing : State::works,
            older ? "the driver is older than the toolkit's major version: kernels will not load" : "GPUs can be used",
            older ? "update the driver, or build with a toolkit of its major version" : ""};
  }
  const std::string said = first_line(output_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader"));
  if (!said.empty()) return {"NVIDIA driver", said, State::partly, "present; this build does not use it", "see CUDA Toolkit"};
  return {"NVIDIA driver", "none", State::missing, "no GPU can be used",
          "for GPUs: install NVIDIA's driver; in a container, start it with access to the GPUs"};
}

Examined gpus() {
  const int count = device::cuda_device_count();
  if (count == 0) {
    const std::string listed = output_of("nvidia-smi -L");
    if (!listed.empty()) return {"GPUs", first_line(listed), State::partly, "not used by this build", "see CUDA Toolkit"};
    return {"GPUs", "none", State::missing, "runs are on the host, their times modelled (h200x8)", ""};
  }
  if (const std::string problem = device::cuda_blas_problem(); !problem.empty()) {
    return {"GPUs", text(count, " × ", device::cuda_device_name(0)), State::missing, "--device cuda is refused: nothing multiplies there", problem};
  }
  const double gibibytes = static_cast<double>(device::cuda_device_memory(0)) / (1024.0 * 1024 * 1024);
  return {"GPUs", text(count, " × ", device::cuda_device_name(0), ", ", static_cast<int>(gibibytes + 0.5), " GiB"), State::works,
          count > 1 ? text("layouts of up to ", count, " ranks, measured") : std::string("one rank, measured; more ranks on the host"), ""};
}

Examined links() {
  const std::string phrase = links_phrase(output_of("nvidia-smi topo -m"));
  if (phrase.empty()) return {"links", "none to look at", State::works, "a single device needs none", ""};
  const bool fast = phrase.find("NV") != std::string::npos && phrase.find("every pair") == 0;
  return {"links", phrase, fast ? State::works : State::partly,
          fast ? "all-gathers at NVLink speed" : "collectives cross PCIe or the host: communication will dominate",
          fast ? "" : "keep tp within pairs that are linked (nvidia-smi topo -m), and let fsdp cross"};
}

Examined nccl() {
  const std::string version = built_with::nccl;
  if (version.empty()) {
    return {"NCCL", "none in this build", State::missing, "more than one GPU cannot be used; one GPU, host and meta work",
            "for several GPUs: install libnccl-dev 2.26 or newer, or set NCCL_HOME, then ./shardbook build"};
  }
  const int major = std::atoi(version.c_str()), minor = std::atoi(version.substr(version.find('.') + 1).c_str());
  const bool new_enough = major > 2 || (major == 2 && minor >= 26);
  return {"NCCL", version, new_enough ? State::works : State::partly,
          new_enough ? "collectives of several groups may overlap" : "collectives of a device run one after the other",
          new_enough ? "" : "install NCCL 2.26 or newer"};
}

Examined cudnn() {
  const std::string problem = kernels::cudnn_problem();
  if (problem.empty()) return {"cuDNN", kernels::cudnn_version(), State::works, "--attention cudnn can be used on GPUs", ""};
  return {"cuDNN", "none", State::missing, "--attention cudnn is refused on GPUs; flash and unfused work", problem};
}

Examined blas() {
  const std::string twin = kernels::gemm_twin();
  const bool reference = twin.find("reference") != std::string::npos;
  return {"host matmul", twin, reference ? State::partly : State::works,
          reference ? "host runs work, several times slower" : "host runs are fast",
          reference ? "install libopenblas-dev, then ./shardbook build" : ""};
}

Examined gzip() {
  if (timeline::can_gunzip()) return {"zlib", "built in", State::works, "opens packed traces (.json.gz)", ""};
  return {"zlib", "none", State::missing, "packed traces are refused; plain .json opens", "install zlib1g-dev, then ./shardbook build, or gunzip first"};
}

Examined display() {
  const bool has_display = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  const std::string problem = viewer_problem();
  if (!problem.empty()) {
    return {"viewer", has_display ? "none; there is a display" : "none; no display either", State::missing,
            "timelines are drawn in the terminal (show)", problem};
  }
  return {"viewer", has_display ? "built, and there is a display" : "built, no display", has_display ? State::works : State::partly,
          has_display ? "view opens windows" : "view draws pictures (--screenshot), but opens no window; show and report work",
          has_display ? "" : "ssh -X, or pack the run and view it on a machine with a screen"};
}

const char* sign_of(State state) { return state == State::works ? "ok" : state == State::partly ? "part" : "no"; }

}  // namespace

std::string links_phrase(const std::string& topology) {
  // Rows "GPU0  X  NV18 ..." under a head "GPU0 GPU1 ..."; the first columns are the GPUs.
  std::istringstream lines(topology);
  std::string line;
  int columns = 0;
  std::set<std::string> links;
  while (std::getline(lines, line)) {
    std::string plain;
    for (std::size_t i = 0; i < line.size(); ++i) {   // terminal escapes underline the head
      if (line[i] == '\x1b') while (i < line.size() && line[i] != 'm') ++i;
      else plain += line[i];
    }
    std::istringstream words(plain);
    std::string word;
    std::vector<std::string> row;
    while (words >> word) row.push_back(word);
    if (row.empty() || row[0].compare(0, 3, "GPU") != 0) continue;
    if (columns == 0) {
      for (const std::string& name : row) columns += name.compare(0, 3, "GPU") == 0 && name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[3]));
      continue;
    }
    for (int c = 1; c <= columns && c < static_cast<int>(row.size()); ++c) {
      if (row[static_cast<std::size_t>(c)] != "X") links.insert(row[static_cast<std::size_t>(c)]);
    }
  }
  if (columns < 2 || links.empty()) return "";
  if (links.size() == 1) return "every pair " + *links.begin();
  std::string phrase = "pairs differ:";
  for (const std::string& link : links) phrase += " " + link;
  return phrase;
}

std::vector<Examined> examine() {
  std::vector<Examined> findings;
  findings.push_back({"compiler", text(built_with::compiler, ", CMake ", built_with::cmake, ", ", built_with::build_type), State::works,
                      "built this program", ""});
  findings.push_back(toolkit());
  findings.push_back(driver());
  findings.push_back(gpus());
  findings.push_back(links());
  findings.push_back(nccl());
  findings.push_back(cudnn());
  findings.push_back(blas());
  findings.push_back(gzip());
  findings.push_back(display());
  return findings;
}

int doctor(const Line& line, Console& console) {
  const std::vector<Examined> findings = examine();
  if (line.has("json")) {
    nlohmann::json json = nlohmann::json::array();
    static const char* const states[] = {"works", "partly", "missing"};
    for (const Examined& finding : findings) {
      json.push_back({{"what", finding.what}, {"found", finding.found}, {"state", states[static_cast<int>(finding.state)]},
                      {"effect", finding.effect}, {"remedy", finding.remedy}});
    }
    console.out << base::json_text_or_throw(json, 2) << "\n";
    return exit_ok;
  }
  const int columns = console.text_columns();
  for (const Examined& finding : findings) {
    const std::string lead = pad_right(sign_of(finding.state), 6) + pad_right(finding.what, 15);
    const std::string indent(21, ' ');
    std::string begin = bold(lead, console.out_is_terminal);
    for (const std::string& said : {finding.found + ": " + finding.effect, finding.remedy.empty() ? "" : "→ " + finding.remedy}) {
      if (said.empty()) continue;
      for (const std::string& part : wrap(said, columns - 21)) {
        console.out << begin << part << "\n";
        begin = indent;
      }
    }
  }
  return exit_ok;
}

}  // namespace shardbook::cli
