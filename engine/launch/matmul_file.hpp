// launch/matmul_file: the algorithms that were measured to be the fastest, on disk.
//
// One file a kind of GPU and version of cuBLASLt: {"gpu", "library", "matmuls": [...]}, a matmul with its form, cuBLASLt's 64 bytes
// in hexadecimal words, and the times that decided. `shardbook tune` writes it, a run with --matmuls reads it.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/config/config.hpp"
#include "engine/kernels/matmul_plans.hpp"

namespace shardbook::launch {

struct MatmulFile {
  std::string gpu;             // as the driver names it
  std::int64_t library = 0;    // cublasLtGetVersion
  std::vector<kernels::MatmulPlan> plans;
};

std::string to_json(const MatmulFile& file);
// Errors, each with `path`: no JSON, a key that is missing, unknown or of another type, two plans of one form.
base::Result<MatmulFile> matmul_file_from_json(const std::string& content, const std::string& path);
// Errors: those, no such file, more than 16 MiB.
base::Result<MatmulFile> read_matmul_file(const std::string& path);
// By way of a file beside it. Errors: it cannot be written.
base::Status write_matmul_file(const MatmulFile& file, const std::string& path);

// May it be used on this GPU, with this library? Errors: what it was measured on, and what is here.
base::Status check_measured_here(const MatmulFile& file, const std::string& gpu, std::int64_t library, const std::string& path);

// "13.1": of cublasLtGetVersion's 130101.
std::string library_text(std::int64_t version);

// What rank 0 of this config multiplies in a step, its update included. `config` is validated.
std::vector<kernels::AskedMatmul> matmuls_of_step(const config::RunConfig& config);

}  // namespace shardbook::launch
