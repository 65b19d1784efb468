// Text as a stream: a byte is a token. Bytes were chosen because every language and every symbol
// then has a token, and because a vocabulary of 256 suits a model of four layers.
#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/data/mapped_file.hpp"
#include "engine/data/stream.hpp"

namespace shardbook::data {

namespace {

void read_bytes(std::span<const unsigned char> bytes, std::int64_t position, std::span<std::int32_t> out) {
  const auto begin = static_cast<std::size_t>(position);
  SHARDBOOK_CHECK(position >= 0 && begin + out.size() <= bytes.size(), "position ", position, " of ", bytes.size());
  std::copy_n(bytes.begin() + position, out.size(), out.begin());
}

class MemoryText final : public TokenStream {
 public:
  explicit MemoryText(std::string text) : text_(std::move(text)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(text_.size()); }
  void read(std::int64_t position, std::span<std::int32_t> out) const override {
    read_bytes({reinterpret_cast<const unsigned char*>(text_.data()), text_.size()}, position, out);
  }

 private:
  std::string text_;
};

class FileText final : public TokenStream {
 public:
  explicit FileText(MappedFile file) : file_(std::move(file)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(file_.bytes().size()); }
  void read(std::int64_t position, std::span<std::int32_t> out) const override {
    read_bytes(file_.bytes(), position, out);
  }

 private:
  MappedFile file_;
};

// Bytes of the character that begins with `first`; 0 when none does.
int length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

// The bounds of the second byte that leave out overlong forms, surrogates and what lies beyond
// U+10FFFF (RFC 3629, section 4).
bool second_is_valid(unsigned char first, unsigned char second) {
  if (first == 0xe0) return second >= 0xa0 && second <= 0xbf;
  if (first == 0xed) return second >= 0x80 && second <= 0x9f;
  if (first == 0xf0) return second >= 0x90 && second <= 0xbf;
  if (first == 0xf4) return second >= 0x80 && second <= 0x8f;
  return second >= 0x80 && second <= 0xbf;
}

}  // namespace

std::int64_t first_invalid_utf8(std::span<const unsigned char> bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const int length = length_of(bytes[at]);
    if (length == 0) return static_cast<std::int64_t>(at);
    for (std::size_t next = 1; next < static_cast<std::size_t>(length); ++next) {
      const bool valid = at + next < bytes.size() &&
                         (next == 1 ? second_is_valid(bytes[at], bytes[at + 1]) : (bytes[at + next] & 0xc0) == 0x80);
      if (!valid) return static_cast<std::int64_t>(at);
    }
    at += static_cast<std::size_t>(length);
  }
  return -1;
}

std::unique_ptr<TokenStream> text_in_memory(std::string text) {
  return std::make_unique<MemoryText>(std::move(text));
}

StreamResult open_text(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.as_error();
  const std::int64_t invalid = first_invalid_utf8(file.value().bytes());
  if (invalid >= 0) {
    return base::Error{base::text("the data ", path, " is not UTF-8 from byte ", invalid,
                                  " on: convert it, or name an indexed dataset as FILE.bin")};
  }
  return std::unique_ptr<TokenStream>(std::make_unique<FileText>(std::move(file).value()));
}

}  // namespace shardbook::data
