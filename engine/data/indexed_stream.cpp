// Megatron's indexed dataset as a stream.
//
// PREFIX.bin holds the tokens of all sequences end to end. PREFIX.idx, little endian:
//
//     byte 0   "MMIDIDX\0\0"
//          9   version, 8 bytes: 1
//         17   number type, 1 byte: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64,
//              7 float32, 8 uint16
//         18   sequences s, 8 bytes
//         26   entries d of the document table, 8 bytes
//         34   s lengths in tokens, 4 bytes each
//              s offsets into .bin in bytes, 8 bytes each
//              d indices of sequences at which documents begin or end, 8 bytes each
//              (multimodal sets only: s modes, 1 byte each)
//
// Source: NVIDIA/Megatron-LM@00caa53a, megatron/core/datasets/indexed_dataset.py (_IndexWriter,
// _IndexReader, _MMapBinReader).
#include <cstring>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/data/mapped_file.hpp"
#include "engine/data/stream.hpp"

namespace shardbook::data {

namespace {

using base::Error;
using base::text;
using Bytes = std::span<const unsigned char>;

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::size_t header_bytes = 34;

// How .bin stores one token.
enum class Storage : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };

int size_of(Storage storage) {
  switch (storage) {
    case Storage::u8:
    case Storage::i8: return 1;
    case Storage::i16:
    case Storage::u16: return 2;
    case Storage::i32: return 4;
    case Storage::i64: return 8;
  }
  return 0;
}

// The number at a byte offset, which need not be aligned. Hosts of the project are little endian.
template <class Number>
Number load(Bytes bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

// Calls visit(token) for the tokens [begin, end) of a .bin, each widened to 64 bits.
template <class Number, class Visit>
void visit_as(Bytes bin, std::int64_t begin, std::int64_t end, Visit&& visit) {
  for (std::int64_t at = begin; at < end; ++at) {
    visit(static_cast<std::int64_t>(load<Number>(bin, static_cast<std::size_t>(at) * sizeof(Number))));
  }
}

template <class Visit>
void visit_tokens(Bytes bin, Storage storage, std::int64_t begin, std::int64_t end, Visit&& visit) {
  switch (storage) {
    case Storage::u8: return visit_as<std::uint8_t>(bin, begin, end, visit);
    case Storage::i8: return visit_as<std::int8_t>(bin, begin, end, visit);
    case Storage::i16: return visit_as<std::int16_t>(bin, begin, end, visit);
    case Storage::i32: return visit_as<std::int32_t>(bin, begin, end, visit);
    case Storage::i64: return visit_as<std::int64_t>(bin, begin, end, visit);
    case Storage::u16: return visit_as<std::uint16_t>(bin, begin, end, visit);
  }
}

class IndexedStream final : public TokenStream {
 public:
  IndexedStream(MappedFile bin, Storage storage, std::int64_t tokens)
      : bin_(std::move(bin)), storage_(storage), tokens_(tokens) {}
  std::int64_t size() const override { return tokens_; }
  void read(std::int64_t position, std::span<std::int32_t> out) const override {
    const std::int64_t end = position + static_cast<std::int64_t>(out.size());
    SHARDBOOK_CHECK(position >= 0 && end <= tokens_, "tokens ", position, " to ", end, " of ", tokens_);
    std::int32_t* next = out.data();
    visit_tokens(bin_.bytes(), storage_, position, end,
                 [&](std::int64_t token) { *next++ = static_cast<std::int32_t>(token); });
  }

 private:
  MappedFile bin_;
  Storage storage_;
  std::int64_t tokens_;
};

// What an index says of its .bin.
struct Index {
  Storage storage;
  std::int64_t tokens;
};

base::Result<Index> read_index(Bytes idx, const std::string& path) {
  // The header.
  if (idx.size() < sizeof magic || std::memcmp(idx.data(), magic, sizeof magic) != 0) {
    return Error{text(path, " is no index of a Megatron dataset: it does not begin with MMIDIDX")};
  }
  if (idx.size() < header_bytes) {
    return Error{text(path, " is truncated: its header takes ", header_bytes, " bytes, and it has ", idx.size())};
  }
  const auto version = load<std::uint64_t>(idx, 9);
  if (version != 1) return Error{text(path, " is an index of version ", version, "; version 1 can be read")};
  const int code = idx[17];
  if (code < 1 || code > 8 || code == 6 || code == 7) {
    return Error{text(path, " gives number type ", code, " for its tokens; whole numbers (1 to 5, 8) can be read")};
  }
  const auto storage = static_cast<Storage>(code);

  // The tables must be there in full. Counts beyond the file's size are refused before they are
  // multiplied, so no product overflows.
  const auto sequences = load<std::uint64_t>(idx, 18);
  const auto documents = load<std::uint64_t>(idx, 26);
  const std::uint64_t room = idx.size() - header_bytes;
  if (sequences > room / 12 || documents > (room - sequences * 12) / 8) {
    return Error{text(path, " is truncated: its header announces ", sequences, " sequences and ", documents,
                      " entries for documents, and it has ", idx.size(), " bytes")};
  }

  // Sequences lie end to end, so the tokens of .bin are one stream.
  std::int64_t tokens = 0;
  const std::size_t pointers = header_bytes + sequences * 4;
  for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
    const auto length = load<std::int32_t>(idx, header_bytes + sequence * 4);
    const auto pointer = load<std::int64_t>(idx, pointers + sequence * 8);
    if (length < 0 || pointer != tokens * size_of(storage)) {
      return Error{text(path, " is damaged: sequence ", sequence, " has ", length, " tokens at byte ", pointer,
                        ", and byte ", tokens * size_of(storage), " comes next")};
    }
    tokens += length;
  }
  if (tokens == 0) return Error{text(path, " holds no tokens")};
  return Index{storage, tokens};
}

}  // namespace

StreamResult open_indexed(const std::string& prefix, int vocab) {
  const std::string idx_path = prefix + ".idx";
  const std::string bin_path = prefix + ".bin";
  auto idx = MappedFile::open(idx_path);
  if (!idx) return idx.as_error();
  auto bin = MappedFile::open(bin_path);
  if (!bin) return bin.as_error();
  const auto index = read_index(idx.value().bytes(), idx_path);
  if (!index) return index.as_error();

  const auto [storage, tokens] = index.value();
  const Bytes bytes = bin.value().bytes();
  const std::int64_t expected = tokens * size_of(storage);
  const auto actual = static_cast<std::int64_t>(bytes.size());
  if (actual != expected) {
    return Error{text(bin_path, actual < expected ? " is truncated: " : " is not of this index: ", idx_path,
                      " accounts for ", expected, " bytes, and it has ", actual)};
  }

  // Every token once, so that a bad one is a sentence now and not a wild row of a table later.
  std::int64_t at = 0;
  std::int64_t bad_at = -1;
  std::int64_t bad = 0;
  visit_tokens(bytes, storage, 0, tokens, [&](std::int64_t token) {
    if ((token < 0 || token >= vocab) && bad_at < 0) {
      bad_at = at;
      bad = token;
    }
    ++at;
  });
  if (bad_at >= 0) {
    return Error{text(bin_path, " holds token ", bad, " at position ", bad_at, ", and the vocabulary ends at ",
                      vocab - 1, ": choose a larger --vocab, or data of the model's tokenizer")};
  }
  return std::unique_ptr<TokenStream>(std::make_unique<IndexedStream>(std::move(bin).value(), storage, tokens));
}

}  // namespace shardbook::data
