#include "engine/world/secret.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace shardbook::world {

namespace {

constexpr std::size_t least_characters = 16;

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compress(std::array<std::uint32_t, 8>& state, const unsigned char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) w[i] = w[i] << 8 | block[4 * i + byte];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t first = h + sum1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t second = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

base::Error problem_with(const std::string& path, const std::string& what) {
  return base::Error{base::text("the secret that ranks prove themselves with, ", path, ", ", what,
                                ": set SHARDBOOK_SECRET to the same 16 or more characters on all ranks")};
}

// The secret in this folder, which is made where it is not there; nobody else may have a hand in either.
base::Result<std::string> secret_in(const std::string& folder) {
  ::mkdir(folder.c_str(), 0700);
  const std::string path = folder + "/secret";
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return problem_with(path, base::text("cannot be made (", std::strerror(errno), ")"));
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) return problem_with(path, "is in a folder that others can write");

  // Written beside and linked, so that of many ranks that come first one wins, and none reads half of it.
  if (::access(path.c_str(), F_OK) != 0) {
    const std::string beside = base::text(path, ".", hex_of(random_bytes32()).substr(0, 16));
    const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return problem_with(path, base::text("cannot be made (", std::strerror(errno), ")"));
    const std::string content = hex_of(random_bytes32());
    const bool written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    ::close(file);
    if (written) [[maybe_unused]] const int linked = ::link(beside.c_str(), path.c_str());
    ::unlink(beside.c_str());
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return problem_with(path, base::text("cannot be read (", std::strerror(errno), ")"));
  char bytes[256];
  const bool known = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  const ssize_t count = known ? ::read(file, bytes, sizeof bytes) : -1;
  ::close(file);
  if (!known || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) return problem_with(path, "is not this user's alone");
  if (count < static_cast<ssize_t>(least_characters)) return problem_with(path, "is too short; remove it, and it is made anew");
  return std::string(bytes, static_cast<std::size_t>(count));
}

}  // namespace

std::string sha256(std::string_view text) {
  std::array<std::uint32_t, 8> state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(text);
  padded += static_cast<char>(0x80);
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(std::uint64_t{text.size()} * 8 >> shift);
  for (std::size_t at = 0; at < padded.size(); at += 64) compress(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  std::string digest;
  for (const std::uint32_t word : state) {
    for (int shift = 24; shift >= 0; shift -= 8) digest += static_cast<char>(word >> shift);
  }
  return digest;
}

std::string hmac(std::string_view key, std::string_view text) {
  std::string padded = key.size() > 64 ? sha256(key) : std::string(key);
  padded.resize(64, '\0');
  std::string inner = padded, outer = padded;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return sha256(outer + sha256(inner.append(text)));
}

std::string random_bytes32() {
  std::string bytes(32, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    SHARDBOOK_CHECK(count > 0 || errno == EINTR, "the system gives no random numbers: ", std::strerror(errno));
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  return bytes;
}

bool equal_secretly(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char differs = 0;
  for (std::size_t i = 0; i < left.size(); ++i) differs |= static_cast<unsigned char>(left[i] ^ right[i]);
  return differs == 0;
}

std::string hex_of(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) (out += digits[byte >> 4]) += digits[byte & 15];
  return out;
}

std::string proof_of_server(std::string_view secret, std::string_view hello, std::string_view server_random) {
  return hmac(secret, base::text("shardbook server ", server_random, hello));
}

std::string proof_of_rank(std::string_view secret, std::string_view hello, std::string_view server_random) {
  return hmac(secret, base::text("shardbook rank ", server_random, hello));
}

base::Result<std::string> shared_secret(const Launch& launch, const std::string& home) {
  if (!launch.secret.empty()) {
    if (launch.secret.size() >= least_characters) return launch.secret;
    return base::Error{base::text("SHARDBOOK_SECRET has ", launch.secret.size(), " characters; it needs ", least_characters, " or more")};
  }
  const bool one_node = launch.place.local_size == launch.place.size;
  base::Result<std::string> of_home = base::Error{"there is no home folder for the secret that ranks prove themselves with: set "
                                                  "SHARDBOOK_SECRET to the same 16 or more characters on all ranks"};
  if (!home.empty()) of_home = secret_in(home + "/.shardbook");
  if (of_home || !one_node) return of_home;
  return secret_in(base::text("/tmp/shardbook-", ::geteuid()));
}

}  // namespace shardbook::world
