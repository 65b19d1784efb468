// checkpoint/safetensors: a checkpoint as one file that other programs read, and back.
//
// The form: 8 bytes little end first, how long the header is; the header, a JSON object of tensors by name, each with
// dtype, shape and where its bytes begin and end behind the header; the bytes, row-major, little end first, without holes.
// A key "__metadata__" may hold texts by name: here step and config, so that the file is a checkpoint again.
//
// The form has no sums. What is read from a checkpoint is compared with its own; what is made of such a file gets new ones.
//
// Source: huggingface/safetensors @24b0b285, README.md (Format) and safetensors/src/tensor.rs (a header has at most
// 100,000,000 bytes and is filled up with blanks to a multiple of 8; tensors come by size of their type, then by name;
// nothing may lie behind the last).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/manifest.hpp"

namespace shardbook::checkpoint {

struct SafeTensor {
  std::string name;
  base::DType dtype = base::DType::f32;
  base::Shape shape;
  base::Bytes begin = 0, end = 0;   // behind the header
};

struct SafeHeader {
  std::vector<SafeTensor> tensors;   // in the order of their bytes
  std::map<std::string, std::string> metadata;
  base::Bytes bytes = 0;             // with the 8 before it
};

inline constexpr base::Bytes most_header_bytes = 100'000'000;

// The header with the 8 bytes before it.
std::string to_text(const SafeHeader& header);
// From the begin of a file of `file_bytes` bytes: all of its header at least. `name` stands for it in sentences. Errors: it
// is none; a name or key comes twice; a type or shape that is not known here; bytes that are missing, too many, or belong to
// no tensor or to two.
base::Result<SafeHeader> read_header(std::string_view begin, base::Bytes file_bytes, const std::string& name);

// Writes all tensors of a checkpoint to one file, beside and renamed. Errors: the checkpoint is damaged; the file cannot be
// written.
base::Status write_safetensors(const std::string& checkpoint, const Manifest& manifest, const std::string& path);
// Makes a checkpoint in `folder` of such a file; its path. Step and config are those of the metadata, else 0 and none.
// Errors: the file is none; the folder holds that step already, or cannot be written.
base::Result<std::string> read_safetensors(const std::string& path, const std::string& folder);

}  // namespace shardbook::checkpoint
