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
