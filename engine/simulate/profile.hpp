// simulate/profile: what is known of a machine?
//
// A Profile is a table of measurements of one kind of node: what the host pays to issue a command, how long
// matmuls, other kernels and collectives take alone, and how much they slow each other down when they run
// together. It is a JSON file. What ships (`h200x8`) is compiled in, so the program needs no data folder.
//
// Two rules keep the figures comparable:
//   - a duration in a profile is a *period*: the time from start to start of the same op issued back to back
//     on one stream with the host far ahead. The gap between two ops of a stream is part of it.
//   - bytes of a collective are those of the whole buffer, as nccl-tests counts them.
//
// Sources: the α–β model after Thakur, Rabenseifner and Gropp 2005 ("Optimization of Collective
// Communication Operations in MPICH"); bus bandwidth after NVIDIA/nccl-tests, doc/PERFORMANCE.md.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/types.hpp"
#include "engine/program/program.hpp"
#include "engine/simulate/clock.hpp"

namespace shardbook::simulate {

// `ns` for `bytes`. A curve is ascending in bytes; between its points the logarithm of the time is linear
// in the logarithm of the bytes, before the first point it is constant, behind the last proportional.
struct CurvePoint {
  base::Bytes bytes = 0;
  double ns = 0;
  bool operator==(const CurvePoint&) const = default;
};
using Curve = std::vector<CurvePoint>;
// REQUIRES: a curve of at least one point.
double at(const Curve& curve, base::Bytes bytes);

// What the host pays for each call, in ns.
struct HostCosts {
  double kernel_ns = 0;        // launch of an own kernel
  double gemm_ns = 0;          // call of the BLAS
  double copy_ns = 0;          // copies and fills
  double collective_ns = 0;    // call of the communication library
  double record_ns = 0;        // record of an event
  double wait_ns = 0;          // making a stream wait for an event
  double host_wait_ns = 0;     // waking up after a host wait, besides the wait itself
  double step_ns = 0;          // what a step costs the host beside its commands
  double trace_ns = 0;         // added to each op of a step that is traced
  double graph_ns = 6000;      // one call that launches a whole step (host.graph); a profile may leave it out: then it is this, assumed
  bool operator==(const HostCosts&) const = default;
};

// How a device starts work, in ns.
struct DeviceCosts {
  std::string name;                // "NVIDIA H200"
  int multiprocessors = 1;
  double launch_latency_ns = 0;    // from the end of the host's call to the start on an idle device
  double stream_gap_ns = 0;        // from the end of an op to the start of the next on its stream
  double event_latency_ns = 0;     // from the end of an op to the start on a stream that awaited its event
  double memory_bytes_per_ns = 0;  // device memory, sustained
  double trace_ns = 0;             // added to the gap behind each op of a step that is traced
  double graph_gap_ns = 0;         // by how much an op's period is shorter in a graph (host.graph); a profile may leave it out: not measured
  double graph_collective_gap_ns = -1;   // the same of a collective; −1, left out: as of any op
  double graph_event_latency_ns = -1;    // event_latency_ns in a graph, where an awaited event is an edge; −1, left out: as outside of one
  bool operator==(const DeviceCosts&) const = default;
};

struct GemmPoint {
  program::GemmSize size;
  double ns = 0;
  double beside_ns = 0;  // what it takes while a collective is under way on the device; 0: not measured
};
bool operator==(const GemmPoint& left, const GemmPoint& right);

// Matmuls of one nominal type. Without points the small model of cost.hpp stands alone.
struct GemmTable {
  double peak_flops_per_ns = 0;  // sustained by large matmuls when every wave is full
  double fixed_ns = 0;           // what the smallest one takes
  std::vector<GemmPoint> points;
  bool operator==(const GemmTable&) const = default;
};

// What running together costs, for collectives of `ranks` ranks: a time while together over the time alone.
struct Contention {
  int ranks = 2;
  double gemm_by_collective = 1;    // of matmuls without a measured point near by
  double collective_by_gemm = 1;
  double memory_by_collective = 1;  // of all kernels that are no matmuls
  double collective_by_memory = 1;
  bool operator==(const Contention&) const = default;
};

// What collectives take where memory is windows to NCCL (nccl.buffers): gathers are copy engines' there, and sums have kernels of their
// own. Of steps in which gathers lie open it says too little: copy engines take longer there than in the trains that are measured
// (experiments/speed, "drawn").
struct Windows {
  std::map<program::OpKind, std::map<int, Curve>> collectives;   // by kind and number of ranks, as the profile's; empty: not measured
  std::vector<Contention> contention;   // as the profile's, of reduce-scatters; empty: as of other memory
  // By name of a matmul's op: sums whose blocks found room beside one of those that filled the device. Others wait for its end.
  std::map<std::string, std::set<program::OpKind>> fit;
  bool operator==(const Windows&) const = default;
};

// Between nodes, for groups that leave one.
struct Network {
  int ranks_per_node = 8;
  double bytes_per_ns = 0;  // of one rank's adapter, one direction
  double latency_ns = 0;    // added for each doubling of nodes
  bool operator==(const Network&) const = default;
};

struct Profile {
  std::string name;
  std::string made_at;              // date
  std::vector<std::string> origin;  // one sentence each: what was measured with what, what is assumed
  // Relative error of modelled step times against measured ones where that was checked; negative: never.
  double step_error = -1;

  HostCosts host;
  DeviceCosts device;
  std::map<base::DType, GemmTable> gemm;
  // All kernels but matmuls: by the op's name ("layer_norm_forward") or, where that is not listed, by its
  // kind ("pointwise", "reduction", "lookup", "copy", "fill"). Over bytes read and written; the
  // CPU's own work ("host"), where listed, over bytes of host memory; fused attention, where listed, over flops, a curve for
  // each width of a head that was measured (curve_of_heads).
  std::map<std::string, Curve> kernels;
  // By kind and number of ranks, within one node.
  std::map<program::OpKind, std::map<int, Curve>> collectives;
  Windows windows;                     // a profile may leave them out
  std::vector<Contention> contention;  // ascending in ranks
  PowerCosts power;
  Network network;

  bool operator==(const Profile&) const = default;
};

// "flash_attention_forward/64": a head half as wide has as many exponentials for half of the flops.
std::string curve_of_heads(const program::OpDesc& attention);

// As JSON text, and back. `source` names the text in error sentences.
// Errors: no JSON, a key that is missing, unknown or of the wrong type, a table that is empty or unsorted.
std::string to_json(const Profile& profile);
base::Result<Profile> profile_from_json(std::string_view json, const std::string& source);

// A profile by the name of one that is compiled in ("h200x8"), or by the path of a file.
// Errors: neither; and those of profile_from_json.
base::Result<Profile> find_profile(const std::string& name_or_path);
// Names of what is compiled in.
std::vector<std::string> profile_names();
// Writes beside and renames. Errors: the folder cannot be written.
base::Status save_profile(const Profile& profile, const std::string& path);

}  // namespace shardbook::simulate
