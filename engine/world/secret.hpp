// world/secret: how do the ranks of a run know each other among strangers?
//
// Idea: they share a secret, and prove to each other that they know it without sending it: each side answers the
// other's random number with an HMAC (RFC 2104) over both numbers and the hello. The secret is SHARDBOOK_SECRET, set
// by spawn_processes or the user; else a file that only this user can read, made by the first rank that looks for it
// (as X's and Erlang's cookies are).
//
// It proves who joins; what is sent after that is neither encrypted nor signed.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/sha256.hpp"
#include "engine/world/launchers.hpp"

namespace shardbook::world {

using base::hex_of;
using base::sha256;

// 32 bytes each.
std::string hmac(std::string_view key, std::string_view text);
std::string random_bytes32();
// Takes equally long wherever two strings of one length differ.
bool equal_secretly(std::string_view left, std::string_view right);

// What each side sends as proof, over the bytes of the hello (which hold the rank's random number) and the server's.
std::string proof_of_server(std::string_view secret, std::string_view hello, std::string_view server_random);
std::string proof_of_rank(std::string_view secret, std::string_view hello, std::string_view server_random);

// The secret of this run: the launch's own, else the user's file in `home` ("" for none: then, on one node, a folder
// of the user's in /tmp). Errors: too short; the file can be read by others; there is no place for it.
base::Result<std::string> shared_secret(const Launch& launch, const std::string& home);

}  // namespace shardbook::world
