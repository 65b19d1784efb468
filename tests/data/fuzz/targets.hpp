// What must hold for any bytes that claim to be an indexed dataset: used by the fuzz target, and by fuzz_corpus_test.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/stream.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::data::fuzz {

using tests::require;

// The first two bytes say how long the .idx is; the rest of it is the .bin.
inline void check_indexed(std::string_view bytes) {
  static const std::string prefix = tests::scratch_folder() + "/set";
  if (bytes.size() < 2) return;
  const std::size_t length = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  std::ofstream(prefix + ".idx", std::ios::binary) << bytes.substr(0, std::min(length, bytes.size()));
  std::ofstream(prefix + ".bin", std::ios::binary) << bytes.substr(std::min(length, bytes.size()));
  constexpr int vocab = 1000;
  const StreamResult read = open_indexed(prefix, vocab);
  if (!read) {
    require(!read.error().empty() && read.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
    return;
  }
  const TokenStream& stream = *read.value();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(stream.size()));
  require(stream.size() <= static_cast<std::int64_t>(bytes.size()), "a token takes a byte at least");
  stream.read(0, tokens);
  for (const std::int32_t token : tokens) require(token >= 0 && token < vocab, "tokens are of the vocabulary");
}

}  // namespace shardbook::data::fuzz
