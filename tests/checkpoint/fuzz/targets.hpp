// What must hold for any bytes that claim to be a manifest, or a file of safetensors: used by the fuzz targets, and by
// fuzz_corpus_test on the kept corpus.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/sha256.hpp"
#include "engine/checkpoint/boxes.hpp"
#include "engine/checkpoint/manifest.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::checkpoint::fuzz {

using tests::require;

inline constexpr std::string_view head = "shardbook checkpoint 1\nsha256 ";

// With a head that fits what follows it: else the fuzzer would never come past the sum.
inline std::string mended(std::string_view bytes) {
  const std::size_t head_bytes = head.size() + 64 + 1;
  const std::string_view content = bytes.size() >= head_bytes && bytes.starts_with(head) ? bytes.substr(head_bytes) : bytes;
  return std::string(head) + base::hex_of(base::sha256(content)) + "\n" + std::string(content);
}

// As it is, and with a head that fits. What was read can be used without a further look, and written and read again.
inline void check_manifest(std::string_view bytes) {
  for (const std::string& file : {std::string(bytes), mended(bytes)}) {
    for (const Extent extent : {Extent::whole, Extent::part}) {
      const base::Result<Manifest> read = checkpoint::read(file, "manifest", extent);
      if (!read.ok()) {
        require(!read.error().empty() && read.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
        continue;
      }
      const Manifest& manifest = read.value();
      base::Bytes stored = 0;
      for (const StoredTensor& tensor : manifest.tensors) {
        require(manifest.find(tensor.name) == &tensor, "names differ");
        for (const StoredBox& box : tensor.boxes) {
          require(box.file >= 0 && static_cast<std::size_t>(box.file) < manifest.files.size(), "a box lies in a file");
          const base::Bytes size = box.box.elements() * base::size_of(tensor.dtype);
          require(box.at >= 0 && size > 0 && box.at + size <= manifest.files[static_cast<std::size_t>(box.file)].bytes, "and within it");
          stored += size;
        }
        if (extent == Extent::whole) require(tensor.boxes.empty() == false, "something holds each tensor");
      }
      require(stored == manifest.bytes(), "boxes tile the files");
      for (const DataFile& data : manifest.files) require(data.name.find('/') == std::string::npos && data.name[0] != '.', "files lie in the folder");
      const std::string written = to_text(manifest);
      const base::Result<Manifest> again = checkpoint::read(written, "manifest", extent);
      require(again.ok(), "what was read can be written and read");
      require(to_text(again.value()) == written, "and is the same then");
    }
  }
}

inline void check_safetensors(std::string_view bytes) {
  const base::Result<SafeHeader> read = read_header(bytes, static_cast<base::Bytes>(bytes.size()), "file");
  if (!read.ok()) {
    require(!read.error().empty() && read.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
    return;
  }
  const SafeHeader& header = read.value();
  base::Bytes end = 0;
  for (const SafeTensor& tensor : header.tensors) {
    require(tensor.begin == end && tensor.end - tensor.begin == tensor.shape.elements() * base::size_of(tensor.dtype), "tensors lie end to end");
    end = tensor.end;
  }
  require(header.bytes + end == static_cast<base::Bytes>(bytes.size()), "and nothing behind them");
  const std::string written = to_text(header);
  const base::Result<SafeHeader> again = read_header(written, static_cast<base::Bytes>(written.size()) + end, "file");
  require(again.ok(), "what was read can be written and read");
  require(again.value().metadata == header.metadata && to_text(again.value()) == written, "and is the same then");
}

}  // namespace shardbook::checkpoint::fuzz
