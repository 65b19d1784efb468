// data/stream: tokens one after the other, wherever they are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::data {

class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual std::int64_t size() const = 0;
  // Tokens position .. position + out.size(). Allocates nothing; any thread may call it.
  // REQUIRES: they lie within the stream.
  virtual void read(std::int64_t position, std::span<std::int32_t> out) const = 0;
};

using StreamResult = base::Result<std::unique_ptr<TokenStream>>;

// Text whose bytes are the tokens.
std::unique_ptr<TokenStream> text_in_memory(std::string text);
// The same from a file. Errors: MappedFile's, and bytes that are not UTF-8.
StreamResult open_text(const std::string& path);
// Offset of the first byte that does not continue valid UTF-8 (RFC 3629), or -1.
std::int64_t first_invalid_utf8(std::span<const unsigned char> bytes);

// A Megatron dataset, PREFIX.idx and PREFIX.bin: the tokens of all its documents in file order.
// Reads all tokens once, to check them against the vocabulary.
// Errors: MappedFile's; an index that is foreign, of another version or number type, or truncated;
// a .bin that is shorter or longer than its index says; a token outside [0, vocab).
StreamResult open_indexed(const std::string& prefix, int vocab);

// One stream after the other. REQUIRES: at least one.
std::unique_ptr<TokenStream> join(std::vector<std::unique_ptr<TokenStream>> streams);

// The stream of the named files: all text, joined by newlines, or all indexed datasets.
// Errors: those above; files of both kinds; text with a vocabulary below 256.
StreamResult open_files(const std::vector<std::string>& names, int vocab);

}  // namespace shardbook::data
