// base/sha256: are these the same bytes?
//
// SHA-256 is FIPS 180-4's. Ranks prove with it that they know a secret; fetched files are compared by it.
#pragma once

#include <string>
#include <string_view>

namespace shardbook::base {

// 32 bytes.
std::string sha256(std::string_view text);
// "00ff…"
std::string hex_of(std::string_view bytes);

}  // namespace shardbook::base
