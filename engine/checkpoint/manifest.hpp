// checkpoint/manifest: what does a checkpoint hold, and where in its files?
//
// A checkpoint is a folder: `manifest`, and a file of numbers from each rank that wrote it. The manifest names global
// tensors, with shape and type, and for each the boxes of it that are stored, each in which file from which byte on. Files
// hold boxes end to end, row-major, little end first, and nothing else: no padding, no head. So a loader needs to know
// nothing of the layout that wrote it, and there is no byte without a sum.
//
//     shardbook checkpoint 1
//     sha256 6dcd…                       of all that follows
//     {"step": 20, "config": {…}, "chunk": 1048576,
//      "files": [{"name": "rank0.data", "bytes": 91136, "sums": "e3069283…"}],      CRC-32C of each chunk of the file
//      "tensors": [{"name": "blocks.0.mlp.up.weight", "dtype": "f32", "shape": [512, 128],
//                   "boxes": [{"file": 0, "at": 0, "begin": [0, 0], "end": [256, 128]}, …]}, …]}
//
// A parameter has three tensors: its master by the parameter's own name, and both moments by that name and what they are.
// What else a run needs to go on is a function of the step and the config: the data's position, the masks of dropout, the
// learning rate.
//
// Invariants of what read() gives: names and files differ and lead nowhere else; each tensor's boxes cover it exactly once;
// boxes tile each file; no number overflows when it is used. A manifest is a stranger's file, so all of this is checked.
//
// Sources: pytorch/pytorch @03e266fa, torch/distributed/checkpoint/metadata.py (Metadata: tensors with chunks, and where
// each is stored; pickled there, which runs what a stranger has written); NVIDIA/Megatron-LM @00119989,
// megatron/core/dist_checkpointing/validation.py (validate_sharding_integrity: main replicas cover a tensor once).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/shard/shard.hpp"

namespace shardbook::checkpoint {

inline constexpr const char* manifest_name = "manifest";
// Files are summed in pieces of so many bytes, so that a part of one can be read and trusted.
inline constexpr base::Bytes chunk_bytes = base::Bytes{1} << 20;

struct StoredBox {
  int file = 0;           // index into Manifest::files
  base::Bytes at = 0;     // its first byte there
  shard::Box box;
};

struct StoredTensor {
  std::string name;
  base::DType dtype = base::DType::f32;
  base::Shape shape;
  std::vector<StoredBox> boxes;

  base::Bytes bytes() const { return shape.elements() * base::size_of(dtype); }
};

struct DataFile {
  std::string name;                   // "rank0.data"
  base::Bytes bytes = 0;
  std::vector<std::uint32_t> sums;    // CRC-32C of each chunk
};

struct Manifest {
  std::int64_t step = 0;      // so many steps have been done: the next one is step `step`
  std::string config = "{}";  // the options of the run that wrote it, as one JSON object (config/)
  std::vector<DataFile> files;
  std::vector<StoredTensor> tensors;

  base::Bytes bytes() const;
  const StoredTensor* find(std::string_view name) const;
};

// Whether these are all of a checkpoint, or what one rank has to say of it: then tensors need not be covered.
enum class Extent { whole, part };

// The manifest's file. REQUIRES: `manifest` is one that read() would accept.
std::string to_text(const Manifest& manifest);
// The same back. `name` stands for it in sentences. Errors: damaged; not of this form; it breaks an invariant.
base::Result<Manifest> read(std::string_view text, const std::string& name, Extent extent = Extent::whole);
// From a file. Errors: also missing, no file, larger than most_manifest_bytes.
base::Result<Manifest> read_file(const std::string& path, Extent extent = Extent::whole);

inline constexpr base::Bytes most_manifest_bytes = base::Bytes{256} << 20;   // some four million boxes

// What may stand for a tensor: up to 512 characters of ASCII, none of them blank.
bool is_tensor_name(std::string_view name);
// The type of this name, or false: "f32".
bool dtype_of(std::string_view name, base::DType& dtype);
// The product of the sizes, or -1 where one is below 1 or all of them hold more than 2^48 elements.
std::int64_t elements_of(const std::vector<std::int64_t>& sizes);

}  // namespace shardbook::checkpoint
