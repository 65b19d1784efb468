// timeline/strings: open addressing over a buffer of all texts; see strings.hpp.
#include "engine/timeline/strings.hpp"

#include <cstring>

namespace shardbook::timeline {
namespace {

// Eight bytes a step; only spreads well enough for a table, promises nothing across runs.
std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15ull;
  std::uint64_t hash = text.size() * odd;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 32;
  }
  std::uint64_t word = 0;
  if (left > 0) std::memcpy(&word, at, left);      // an empty text may be a null pointer
  hash = (hash ^ word) * odd;
  return hash ^ (hash >> 29);
}

}  // namespace

Strings::Strings() : begin_{0, 0}, slots_(64, 0) {
  slots_[slot_of("", hash_of(""))] = 1;
}

std::size_t Strings::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != 0 && (*this)[slots_[slot] - 1] != text) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t Strings::find(std::string_view text) const {
  const std::uint32_t entry = slots_[slot_of(text, hash_of(text))];
  return entry == 0 ? 0 : entry - 1;
}

std::uint32_t Strings::intern(std::string_view text) {
  std::size_t slot = slot_of(text, hash_of(text));
  if (slots_[slot] != 0) return slots_[slot] - 1;
  if (2 * (size() + 1) > slots_.size()) {
    grow();
    slot = slot_of(text, hash_of(text));
  }
  const auto id = static_cast<std::uint32_t>(size());
  buffer_.append(text);
  begin_.push_back(buffer_.size());
  slots_[slot] = id + 1;
  return id;
}

void Strings::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t id = 0; id < size(); ++id) {
    slots_[slot_of((*this)[id], hash_of((*this)[id]))] = id + 1;
  }
}

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

}  // namespace shardbook::timeline
