// cli/console: where do words go, and how wide are they?
//
// A Console is the pair of streams that a command speaks to, and what is known of the terminal behind
// them. Commands never ask the operating system themselves, so tests pass string streams.
// Text is UTF-8; widths are counted in characters, which is what a terminal shows for all that is printed here.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace shardbook::cli {

// Of text that is as wide on every terminal.
constexpr int plain_columns = 80;

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool in_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 80;              // of the terminal behind `out`; 80 where there is none
  int rows = 0;                  // likewise; 0 where there is none

  // Text is never wider than this, however wide the terminal.
  int text_columns() const { return columns < 40 ? 40 : columns > 100 ? 100 : columns; }
};

// The process' own streams. Without a terminal, SHARDBOOK_COLUMNS says how wide text may be.
Console own_console();

// Characters of a UTF-8 text; escape sequences (ESC [ ... m) count nothing.
int width_of(std::string_view text);
// The text with blanks behind (or before) it up to `width` characters.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);
// Lines of at most `width` characters, broken at blanks; all but the first begin with `indent`. A word that is
// longer stands alone. At least one line.
std::vector<std::string> wrap(std::string_view text, int width, std::string_view indent = "");

// The same as text: the first line behind `lead`, the others below it, at most `width` characters with it; each ends in a newline.
std::string wrapped(std::string_view lead, std::string_view text, int width);

// The word as a shell reads it back: as it is where it is plain, else in single quotes.
std::string shell_word(const std::string& word);

// "4 ranks", "1 rank"
std::string count_text(long long count, std::string_view noun);
// A number in three digits and a letter: "412k", "1.42 M" with `space` between.
std::string short_number(double number, std::string_view space = "");
// So many digits behind the point: "1.50".
std::string fixed(double number, int decimals);
// "1.42 MB", "512 B"; in powers of ten.
std::string bytes_text(long long bytes);

// Bold or dim where `on` (a terminal), else as it is.
std::string bold(std::string_view text, bool on);
std::string dim(std::string_view text, bool on);

}  // namespace shardbook::cli
