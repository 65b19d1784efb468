#include "engine/cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace shardbook::cli {

Console own_console() {
  Console console{std::cout, std::cerr};
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.in_is_terminal = ::isatty(STDIN_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (console.out_is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    console.columns = size.ws_col;
    console.rows = size.ws_row;
  }
  // The viewer reads what is written and says how wide it can show it.
  const char* asked = console.out_is_terminal ? nullptr : std::getenv("SHARDBOOK_COLUMNS");
  if (const int columns = asked == nullptr ? 0 : std::atoi(asked); columns > 0) console.columns = columns;
  return console;
}

int width_of(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      while (at < text.size() && text[at] != 'm') ++at;
    } else if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) {  // not the inside of a character
      ++width;
    }
  }
  return width;
}

std::string pad_right(std::string_view text, int width) {
  const int missing = width - width_of(text);
  return std::string(text) + std::string(missing > 0 ? missing : 0, ' ');
}

std::string pad_left(std::string_view text, int width) {
  const int missing = width - width_of(text);
  return std::string(missing > 0 ? missing : 0, ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, int width, std::string_view indent) {
  std::vector<std::string> lines;
  std::string line;
  bool has_word = false;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (has_word && width_of(line) + 1 + width_of(word) > width) {
      lines.push_back(line);
      line = indent;
      has_word = false;
    }
    line += (has_word ? " " : "") + word;
    has_word = true;
  }
  lines.push_back(line);
  return lines;
}

std::string wrapped(std::string_view lead, std::string_view text, int width) {
  const int begin = width_of(lead);
  std::string out, before(lead);
  for (const std::string& line : wrap(text, width - begin)) {
    out += before + line + "\n";
    before = std::string(static_cast<std::size_t>(begin), ' ');
  }
  return out;
}

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) || std::string_view("-_./:=,+@%^").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string count_text(long long count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string short_number(double number, std::string_view space) {
  static constexpr struct { double from; const char* letter; } scales[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  std::ostringstream out;
  for (const auto& [from, letter] : scales) {
    // 999.6 thousand would be printed as 1000k: three digits of the next letter are meant.
    if (std::abs(number) < from * 0.9995) continue;
    const double scaled = number / from;
    out << std::fixed << std::setprecision(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0) << scaled << space << letter;
    return out.str();
  }
  out << std::fixed << std::setprecision(number == std::floor(number) || number >= 99.95 ? 0 : number < 9.995 ? 2 : 1) << number;
  return out.str();
}

std::string fixed(double number, int decimals) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(decimals) << number;
  return out.str();
}

std::string bytes_text(long long bytes) {
  return bytes < 1000 ? std::to_string(bytes) + " B" : short_number(static_cast<double>(bytes), " ") + "B";
}

std::string bold(std::string_view text, bool on) { return on ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text); }
std::string dim(std::string_view text, bool on) { return on ? "\x1b[2m" + std::string(text) + "\x1b[0m" : std::string(text); }

}  // namespace shardbook::cli
