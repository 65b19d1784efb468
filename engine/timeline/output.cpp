// timeline/output: write beside, then rename; see output.hpp.
#include "engine/timeline/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shardbook::timeline {

Output::Output(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  buffer_.reserve(limit);
  // What stands there is left over from a killed process, or is someone's link to what we may not overwrite.
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  file_ = ::open(temporary_.c_str(), flags, 0666);
  if (file_ < 0 && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) file_ = ::open(temporary_.c_str(), flags, 0666);
  if (file_ < 0) failure_ = errno;
}

Output::~Output() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void Output::flush() {
  std::size_t done = 0;
  while (failure_ == 0 && done < buffer_.size()) {
    const ssize_t written = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) failure_ = errno;
    else done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
}

Output& Output::microseconds(std::int64_t ns) {
  if (ns < 0) {
    *this << "-";
    ns = -ns;
  }
  *this << ns / 1000;
  const auto rest = static_cast<int>(ns % 1000);
  if (rest == 0) return *this;
  const char decimals[4] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                            static_cast<char>('0' + rest % 10)};
  return *this << std::string_view(decimals, 4);
}

Output& Output::quoted(std::string_view text) {
  *this << "\"";
  std::size_t plain_from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    *this << text.substr(plain_from, i - plain_from);
    plain_from = i + 1;
    if (c == '"') *this << "\\\"";
    else if (c == '\\') *this << "\\\\";
    else {
      constexpr char hex[] = "0123456789abcdef";
      const char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      *this << std::string_view(code, 6);
    }
  }
  return *this << text.substr(plain_from) << "\"";
}

base::Status Output::commit() {
  flush();
  if (file_ >= 0) {
    if (failure_ == 0 && ::fsync(file_) != 0 && errno != EINVAL) failure_ = errno;
    if (::close(file_) != 0 && failure_ == 0) failure_ = errno;
    file_ = -1;
    if (failure_ == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) failure_ = errno;
    if (failure_ != 0) ::unlink(temporary_.c_str());
  }
  if (failure_ != 0) return base::Error{base::text("cannot write ", path_, ": ", std::strerror(failure_))};
  return base::Done{};
}

}  // namespace shardbook::timeline
