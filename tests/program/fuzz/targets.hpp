// What must hold for any bytes that claim to be a record (rankN.program): used by the fuzz target, and by fuzz_corpus_test
// on the kept corpus.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/program/file.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::program::fuzz {

using tests::require;

// A head whose version, length and hash fit what follows it (file_form.hpp, said a second time).
inline std::string mended(std::string_view bytes) {
  constexpr std::size_t head = 28;
  std::string file(bytes);
  if (file.size() < head) file.resize(head);
  std::uint64_t sum = 1469598103934665603ull;
  for (std::size_t at = head; at < file.size(); ++at) sum = (sum ^ static_cast<unsigned char>(file[at])) * 1099511628211ull;
  const auto put = [&](std::size_t at, std::uint64_t value, int width) {
    for (int byte = 0; byte < width; ++byte) file[at + static_cast<std::size_t>(byte)] = static_cast<char>(value >> (8 * byte) & 0xff);
  };
  file.replace(0, 8, "SHBKPROG");
  put(8, file[8] == 1 ? 1 : 2, 4);   // as it was, where that is a version
  put(12, file.size() - head, 8);
  put(20, sum, 8);
  return file;
}

// As it is, and with a head that fits. What was read can be used without a further look, and written and read again.
inline void check_record(std::string_view bytes) {
  for (const std::string& file : {std::string(bytes), mended(bytes)}) {
    const base::Result<Record> read = decode(file, "rank0.program");
    if (!read.ok()) {
      require(!read.error().empty(), "what cannot be read is a sentence");
      continue;
    }
    const Record& record = read.value();
    for (const std::unique_ptr<Program>& program : record.programs) {
      for (const Edge& edge : edges(*program)) require(edge.from < program->ops.size() && edge.to < program->ops.size(), "an edge joins ops");
      hash(*program, record.catalogue);
      collective_order_hash(*program, record.catalogue);
    }
    const std::string written = encode(record.rank, record.world_size, record.catalogue, record.programs, record.steps);
    const base::Result<Record> again = decode(written, "rank0.program");
    require(again.ok(), "what was read can be written and read");
    const Record& same = again.value();
    require(encode(same.rank, same.world_size, same.catalogue, same.programs, same.steps) == written, "and is the same then");
  }
}

}  // namespace shardbook::program::fuzz
