// timeline/kineto: categories, collectives and safe names; see kineto.hpp.
#include "engine/timeline/kineto.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace shardbook::timeline {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Lower case, without underscores and blanks, so that all spellings of a collective look alike.
std::string plain(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c != '_' && c != ' ') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

const char* name_of(TrackKind kind) {
  switch (kind) {
    case TrackKind::stream: return "stream";
    case TrackKind::host: return "host";
    case TrackKind::marks: return "marks";
  }
  return "?";
}

RowKind row_kind(std::string_view cat, std::string_view name) {
  if (cat == "kernel") {
    return {TrackKind::stream, name.starts_with("nccl") ? Class::communication : Class::compute};
  }
  if (cat == "gpu_memcpy" || cat == "gpu_memset") return {TrackKind::stream, Class::memory};
  if (cat == "cuda_sync") return {TrackKind::marks, Class::sync};
  if (cat == "gpu_user_annotation") return {TrackKind::marks, Class::annotation};
  if (cat == "user_annotation") return {TrackKind::host, Class::annotation};
  if ((cat == "cuda_runtime" || cat == "cuda_driver") && contains(name, "Synchronize")) {
    return {TrackKind::host, Class::sync};
  }
  return {TrackKind::host, Class::host};
}

std::string_view category(TrackKind kind, Class cls, std::string_view kineto_name, std::uint32_t correlation) {
  switch (kind) {
    case TrackKind::stream:
      if (cls == Class::host) return "cpu_op";   // the CPU's work, in its place among a stream's ops
      if (cls != Class::memory) return "kernel";
      return kineto_name.starts_with("Memset") ? "gpu_memset" : "gpu_memcpy";
    case TrackKind::marks: return cls == Class::sync ? "cuda_sync" : "gpu_user_annotation";
    case TrackKind::host: break;
  }
  if (cls == Class::annotation) return "user_annotation";
  return correlation != 0 || cls == Class::sync ? "cuda_runtime" : "cpu_op";
}

CollectiveOp collective_op(std::string_view name) {
  const std::string text = plain(name);
  // Longer words first: "reducescatter" and "allreduce" hold "reduce".
  static constexpr std::array<std::pair<std::string_view, CollectiveOp>, 10> words{{
      {"reducescatter", CollectiveOp::reduce_scatter},
      {"allreduce", CollectiveOp::all_reduce},
      {"allgather", CollectiveOp::all_gather},
      {"alltoall", CollectiveOp::all_to_all},
      {"broadcast", CollectiveOp::broadcast},
      {"barrier", CollectiveOp::barrier},
      {"reduce", CollectiveOp::reduce},
      {"send", CollectiveOp::send},
      {"recv", CollectiveOp::recv},
      {"shift", CollectiveOp::shift},
  }};
  for (const auto& [word, op] : words) {
    if (contains(text, word)) return op;
  }
  return CollectiveOp::other;
}

std::string_view nccl_name(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce: return "AllReduce";
    case CollectiveOp::all_gather: return "AllGather";
    case CollectiveOp::reduce_scatter: return "ReduceScatter";
    case CollectiveOp::all_to_all: return "AllToAll";
    case CollectiveOp::broadcast: return "Broadcast";
    case CollectiveOp::reduce: return "Reduce";
    case CollectiveOp::send: return "Send";
    case CollectiveOp::recv: return "Recv";
    case CollectiveOp::barrier: return "Barrier";
    case CollectiveOp::shift: return "SendRecv";   // as NCCL calls a group of both
    case CollectiveOp::other: break;
  }
  return "Other";
}

Bytes element_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, Bytes>, 18> sizes{{
      {"Byte", 1}, {"Char", 1}, {"Bool", 1}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
      {"Half", 2}, {"BFloat16", 2}, {"bf16", 2}, {"Short", 2},
      {"Float", 4}, {"Int", 4}, {"f32", 4}, {"i32", 4},
      {"Double", 8}, {"Long", 8}, {"f64", 8}, {"ComplexFloat", 8}, {"ComplexDouble", 16},
  }};
  const auto found = std::find_if(sizes.begin(), sizes.end(), [&](const auto& entry) { return entry.first == dtype; });
  return found == sizes.end() ? 0 : found->second;
}

std::string safe_name(std::string_view label, Class cls, CollectiveOp op) {
  std::string name(label);
  if (cls == Class::communication) {
    if (name.starts_with("nccl")) return name;
    return op == CollectiveOp::other ? "ncclDevKernel_" + name : "ncclDevKernel_" + std::string(nccl_name(op));
  }
  if (cls == Class::memory) {
    if (name.starts_with("Memcpy") || name.starts_with("Memset")) return name;
    const bool fills = contains(name, "fill") || contains(name, "zero") || contains(name, "memset") || contains(name, "pause");
    return (fills ? "Memset (Device) " : "Memcpy DtoD (Device -> Device) ") + name;
  }
  // Compute: no word by which HTA would file it elsewhere.
  replace_all(name, "ncclKernel", "nccl_kernel");
  replace_all(name, "Memcpy", "memcpy");
  replace_all(name, "Memset", "memset");
  replace_all(name, "Sync", "sync");
  replace_all(name, "dma", "d_ma");
  replace_all(name, "LaunchKernel", "launch_kernel");
  for (std::string_view prefix : {"nccl", "hip", "hccl", "Stream Wait Event"}) {
    if (name.starts_with(prefix)) name = "kernel " + name;
  }
  return name;
}

}  // namespace shardbook::timeline
