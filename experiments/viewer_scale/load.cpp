// How fast does a trace load? Writes traces of a wanted size, and measures loading them.
//
//   load kineto N FILE    N GPU spans, each with its cpu_op and runtime row: 3 N events, as PyTorch writes them
//   load bare N FILE      N GPU spans alone, without arguments
//   load ranks N FOLDER   the same as kineto, dealt to 8 rank files
//   load columns N FILE   N GPU spans of 8 ranks in the form kept for large runs, every eighth a collective with an edge
//   load convert PATH FILE   a trace in that form
//   load measure PATH [TIMES]   loads PATH: CPU and wall time of each turn, spans, memory
//
// Times, names and arguments come from a seed, so that everybody measures the same bytes.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "engine/timeline/columns.hpp"
#include "engine/timeline/reader.hpp"

namespace {

using namespace shardbook;

const char* const kernels[] = {
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, "
    "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "triton_poi_fused_add_view_3", "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >(Flash_fwd_params)"};
const char* const operations[] = {"aten::mm", "aten::add_", "aten::reshape", "aten::_scaled_dot_product_flash_attention"};

std::string microseconds(long long ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03lld", ns / 1000, ns % 1000);
  return text;
}

// One file. Kernels follow each other on two streams; every hundredth is an all-gather.
bool write_trace(const std::string& path, int rank, long long spans, bool bare) {
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr) return false;
  std::setvbuf(out, nullptr, _IOFBF, 1 << 20);
  std::fprintf(out,
               "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": %d, \"name\": \"NVIDIA H200\"}],\n"
               "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": 8},\n"
               "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1759276800000000000,\n  \"traceEvents\": [\n",
               rank, rank);
  std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
  long long now = 4'362'090'081'289'006, end_of_stream[2] = {now, now};
  const char* separator = "";
  for (long long i = 0; i < spans; ++i) {
    const long long correlation = i + 1, kind = static_cast<long long>(random() % 4);
    const bool gather = i % 100 == 99;
    now += 2000 + static_cast<long long>(random() % 3000);
    if (!bare) {
      std::fprintf(out,
                   "%s  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 909, \"tid\": 909,\n"
                   "    \"ts\": %s, \"dur\": 1.808,\n    \"args\": {\n"
                   "      \"External id\": %lld,\"Record function id\": 0, \"Ev Idx\": %lld\n    }\n  },\n"
                   "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 909, \"tid\": 909,\n"
                   "    \"ts\": %s, \"dur\": 0.705,\n    \"args\": {\n"
                   "      \"External id\": %lld,\"cbid\": 211, \"correlation\": %lld\n    }\n  }",
                   separator, operations[kind], microseconds(now).c_str(), correlation, i, microseconds(now + 500).c_str(), correlation,
                   correlation);
      separator = ",\n";
    }
    const int stream = gather ? 1 : 0;
    const long long start = std::max(end_of_stream[stream], now + 4000), length = 500 + static_cast<long long>(random() % 4000);
    end_of_stream[stream] = start + length;
    if (bare) {
      std::fprintf(out, "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"dur\":%s}",
                   i == 0 ? "" : ",\n", kernels[kind], rank, gather ? 20 : 7, microseconds(start).c_str(), microseconds(length).c_str());
      continue;
    }
    std::fprintf(out,
                 "%s  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
                 "    \"ts\": %s, \"dur\": %s,\n    \"args\": {\n"
                 "      \"External id\": %lld,\"queued\": 0, \"device\": %d, \"context\": 1,\n"
                 "      \"stream\": %d, \"correlation\": %lld,\n",
                 separator, gather ? "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)" : kernels[kind], rank,
                 gather ? 20 : 7, microseconds(start).c_str(), microseconds(length).c_str(), correlation, rank, gather ? 20 : 7,
                 correlation);
    if (gather) {
      std::fprintf(out,
                   "      \"Collective name\": \"_allgather_base\", \"In msg nelems\": 1048576, \"Out msg nelems\": 8388608, "
                   "\"Group size\": 8, \"dtype\": \"BFloat16\", \"Process Group Name\": \"0\", \"Process Group Ranks\": "
                   "\"[0, 1, 2, 3, 4, 5, 6, 7]\",\n");
    }
    std::fprintf(out,
                 "      \"registers per thread\": 26,\n      \"shared memory\": 0,\n      \"blocks per SM\": 124.121216,\n"
                 "      \"warps per SM\": 496.484863,\n      \"grid\": [16384, 1, 1],\n      \"block\": [128, 1, 1],\n"
                 "      \"est. achieved occupancy %%\": 100\n    }\n  }");
    separator = ",\n";
  }
  std::fprintf(out, "\n  ],\n  \"traceName\": \"generated\"\n}\n");
  return std::fclose(out) == 0;
}

// 8 ranks of two streams with details, collectives and edges, as a run of the engine has them.
bool write_in_columns(const std::string& path, long long spans) {
  timeline::Timeline timeline;
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> labels;
  for (const char* kernel : kernels) labels.push_back(timeline.strings.intern(kernel));
  for (int i = 1; i < 2000; ++i) {
    timeline::Detail& detail = timeline.details.emplace_back();
    detail.layer = i % 100;
    detail.n = i;
  }
  timeline.groups.emplace_back().ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<timeline::Edge> edges;
  for (int rank = 0; rank < 8; ++rank) {
    timeline::Provenance& provenance = timeline.ranks.emplace_back();
    provenance.rank = rank;
    provenance.world_size = 8;
    for (int stream : {7, 20}) {
      const auto t = static_cast<std::uint32_t>(timeline.tracks.size());
      timeline::Track& track = timeline.tracks.emplace_back();
      track.rank = rank;
      track.kind = timeline::TrackKind::stream;
      track.id = stream;
      long long now = 0;
      for (long long i = 0; i < spans / 64 * (stream == 7 ? 7 : 1); ++i) {
        now += static_cast<long long>(random() % 1000);
        track.start.push_back(now);
        now += 500 + static_cast<long long>(random() % 4000);
        track.end.push_back(now);
        track.label.push_back(labels[random() % labels.size()]);
        track.correlation.push_back(static_cast<std::uint32_t>(i + 1));
        track.detail.push_back(static_cast<std::uint32_t>(random() % timeline.details.size()));
        const bool gather = stream == 20;
        track.collective.push_back(gather ? static_cast<std::uint32_t>(timeline.collectives.size()) : 0);
        if (gather) timeline.collectives.push_back({.group = 1, .seq = i, .op = timeline::CollectiveOp::all_gather, .bytes = 1 << 20});
        track.step.push_back(static_cast<std::int32_t>(i / 1000));
        track.cls.push_back(gather ? timeline::Class::communication : timeline::Class::compute);
        track.flags.push_back(0);
        if (gather) {
          const auto at = static_cast<std::uint32_t>(i);
          edges.push_back({{t, at}, {t - 1, at}, timeline::EdgeKind::event});
        }
      }
    }
  }
  timeline.edges = timeline::Edges(edges);
  const base::Status written = timeline::write_columns(timeline, path);
  if (!written) std::fprintf(stderr, "%s\n", written.error().c_str());
  return written.ok();
}

int convert(const std::string& from, const std::string& to) {
  const base::Result<timeline::Timeline> read = timeline::read(from);
  if (!read) return std::fprintf(stderr, "%s\n", read.error().c_str()), 2;
  const base::Status written = timeline::write_columns(read.value(), to);
  if (!written) return std::fprintf(stderr, "%s\n", written.error().c_str()), 2;
  return 0;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void print_spread(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%s  median %.3f s  least %.3f  most %.3f\n", name, values[values.size() / 2], values.front(), values.back());
}

int measure(const std::string& path, int times) {
  std::vector<double> cpu, wall;
  for (int turn = 0; turn < times; ++turn) {
    const double cpu_before = cpu_seconds();
    const auto before = std::chrono::steady_clock::now();
    const base::Result<timeline::Timeline> read = timeline::read(path);
    wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    cpu.push_back(cpu_seconds() - cpu_before);
    if (!read) return std::fprintf(stderr, "%s\n", read.error().c_str()), 2;
    if (turn > 0) continue;
    const timeline::Timeline& timeline = read.value();
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::printf("%zu spans, %zu edges, %.1f bytes a span, most memory %ld MB\n", timeline.spans(), timeline.edges.size(),
                static_cast<double>(timeline.memory()) / static_cast<double>(timeline.spans()), used.ru_maxrss / 1024);
  }
  print_spread("wall", wall);
  print_spread("CPU ", cpu);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 2 ? words[1] : "";
  const long long number = count > 3 ? std::atoll(words[what == "measure" ? 3 : 2]) : 0;
  bool done = true;
  if (what == "convert" && count > 3) return convert(words[2], words[3]);
  if (what == "measure") return measure(words[2], number > 0 ? static_cast<int>(number) : 7);
  if (number > 0 && (what == "kineto" || what == "bare")) {
    done = write_trace(words[3], 0, number, what == "bare");
  } else if (number > 0 && what == "columns") {
    done = write_in_columns(words[3], number);
  } else if (number > 0 && what == "ranks") {
    std::filesystem::create_directories(words[3]);
    for (int rank = 0; rank < 8 && done; ++rank) {
      done = write_trace(std::string(words[3]) + "/rank" + std::to_string(rank) + ".json", rank, number / 8, false);
    }
  } else {
    std::fprintf(stderr, "usage: load kineto|bare|ranks|columns N PATH, load convert PATH FILE, or load measure PATH [TIMES]\n");
    return 2;
  }
  if (!done) std::perror(words[3]);
  return done ? 0 : 1;
}
