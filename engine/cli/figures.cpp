#include "engine/cli/figures.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <utility>

#include "engine/book/project.hpp"
#include "engine/workbook/learner.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::text;

namespace {

std::string_view trimmed(std::string_view words) {
  while (!words.empty() && std::isspace(static_cast<unsigned char>(words.front()))) words.remove_prefix(1);
  while (!words.empty() && std::isspace(static_cast<unsigned char>(words.back()))) words.remove_suffix(1);
  return words;
}

// What a term's base unit is worth in another: times are ns, rates flops a ns, slopes ps a byte, memory bytes, the rest plain.
struct Unit {
  const char* name;
  double in_base;
};
constexpr Unit units[] = {{"", 1}, {"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"%", 0.01}, {"×", 1}, {"times", 1}, {"ps", 1},
                          {"TFLOP/s", 1e3}, {"tokens", 1}, {"calls", 1}, {"all-reduces", 1}, {"GB", 1e9}, {"GiB", 1073741824}, {"MB", 1e6}, {"B", 1}};

// Digits, with one point; a blank may part thousands.
struct Number {
  double value = 0;
  double place = 1;      // of the last digit that counts
  std::size_t length = 0;
};

Number number_at(std::string_view words) {
  Number number;
  std::string digits;
  std::size_t at = 0;
  bool point = false;
  for (; at < words.size(); ++at) {
    const char c = words[at];
    if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
    else if (c == '.' && !point) point = true, digits += c;
    else if ((c == '-' || c == '+') && at == 0) digits += c;
    else if (c == ' ' && at + 3 < words.size() && std::all_of(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.begin() + static_cast<std::ptrdiff_t>(at) + 4,
                                                             [](unsigned char d) { return std::isdigit(d) != 0; })) continue;
    else break;
  }
  number.length = at;
  if (digits.find_first_of("0123456789") == std::string::npos) return {.length = 0};
  number.value = std::stod(digits);
  if (point) {
    number.place = std::pow(10.0, -static_cast<double>(digits.size() - digits.find('.') - 1));
  } else if (std::abs(number.value) >= 1000) {
    // "7500" is said of 7493: noughts at the end of a large number are there to round it
    for (auto digit = digits.rbegin(); digit != digits.rend() && *digit == '0'; ++digit) number.place *= 10;
  }
  return number;
}

// The unit of "1.319 ms"; null for one that no term has.
const Unit* unit_of(std::string_view words) {
  const std::string_view name = trimmed(words.substr(number_at(words).length));
  const Unit* unit = std::find_if(std::begin(units), std::end(units), [&](const Unit& one) { return name == one.name; });
  return unit == std::end(units) ? nullptr : unit;
}

// Lines of the paragraph or table that ends above line `at`.
struct Block {
  std::size_t begin = 0, end = 0;
};

template <class Lines>
Block block_above(const Lines& lines, std::size_t at) {
  while (at > 0 && trimmed(lines[at - 1]).empty()) --at;
  Block block{at, at};
  while (block.begin > 0 && !trimmed(lines[block.begin - 1]).empty()) --block.begin;
  return block;
}

template <class Lines>
std::string text_of(const Lines& lines, Block block) {
  std::string all;
  for (std::size_t line = block.begin; line < block.end; ++line) all += std::string(lines[line]) + "\n";
  return all;
}

// "30.7 ms" where the text says "80 ms": its unit, its decimals, and three digits at least.
std::string in_unit_of(std::string_view words, double value) {
  const Unit* unit = unit_of(words);
  if (unit == nullptr) return text(value);
  const double number = value / unit->in_base;
  const double place = number_at(words).place;
  const int before_point = number == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(number)))) + 1;
  const int decimals = std::max({place < 1 ? static_cast<int>(std::lround(-std::log10(place))) : 0, 3 - before_point, 0});
  std::ostringstream shown;
  shown << std::fixed << std::setprecision(decimals) << number << (*unit->name == '\0' ? "" : " ") << unit->name;
  return shown.str();
}

// "44 000 tokens" of 43 512 where the text says "51 000 tokens", "1.32 ms" where it says "1.28 ms": its digits, blanks and unit.
std::string as_said(std::string_view words, double value) {
  const Unit* unit = unit_of(words);
  const Number said = number_at(words);
  const std::string_view number = words.substr(0, said.length);
  const double now = value / unit->in_base;
  double place = said.place;   // noughts that round a large number are not to round a small one away
  while (place > 1 && (std::abs(now) < 1000 || place * 10 > std::abs(now))) place /= 10;
  std::ostringstream shown;
  shown << std::fixed << std::setprecision(place < 1 ? static_cast<int>(std::lround(-std::log10(place))) : 0) << std::round(now / place) * place;
  std::string digits = shown.str();
  if (number.find(' ') != std::string_view::npos) {
    const std::size_t begin = digits.find_first_of("0123456789");
    for (std::size_t at = std::min(digits.find('.'), digits.size()); at > begin + 3;) digits.insert(at -= 3, " ");
  }
  if (number.front() == '+' && digits.front() != '-') digits.insert(0, "+");
  return digits + std::string(words.substr(said.length));
}

// Where `words` stand in `block`, from `from` on, and are no part of a longer number.
std::size_t find_words(std::string_view block, std::string_view words, std::size_t from) {
  const auto is_of_number = [&](std::size_t at) { return at < block.size() && (std::isdigit(static_cast<unsigned char>(block[at])) || block[at] == '.'); };
  for (std::size_t at = block.find(words, from); at != std::string_view::npos; at = block.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || !is_of_number(at - 1)) && !(is_of_number(end) && std::isdigit(static_cast<unsigned char>(block[end])))) return at;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Said look_after(std::string_view line, const std::string& block) {
  Said said;
  const std::size_t arrow = line.find("->");
  if (arrow == std::string_view::npos) {
    said.term = std::string(trimmed(line));
    said.problem = "there is no -> in this line: left of it stands a term, right of it what the text says";
    return said;
  }
  said.term = std::string(trimmed(line.substr(0, arrow)));
  said.words = std::string(trimmed(line.substr(arrow + 2)));
  const Result<double> value = value_of_term(said.term);
  if (!value) {
    said.problem = value.error();
    return said;
  }
  said.value = value.value();
  const Result<bool> rounds = rounds_to(said.value, said.words);
  if (!rounds) said.problem = rounds.error();
  else if (!rounds.value()) said.problem = text("it is ", in_unit_of(said.words, said.value), " now");
  else if (block.find(said.words) == std::string::npos) said.problem = text("the paragraph above does not say '", said.words, "'");
  if (rounds && !rounds.value()) said.anew = as_said(said.words, said.value);
  said.holds = said.problem.empty();
  return said;
}

std::vector<std::string> texts_of(const std::string& root) {
  std::vector<std::string> files{root + "/README.md"};
  for (const char* folder : {"notes", "labs", "solutions"}) {
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder, ignored)) {
      if (entry.path().extension() == ".md") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<bool> rounds_to(double value, std::string_view words) {
  const Number number = number_at(words);
  if (number.length == 0) return Error{text("'", words, "' begins with no number")};
  const Unit* unit = unit_of(words);
  if (unit == nullptr) return Error{text("'", trimmed(words.substr(number.length)), "' is no unit that a term has")};
  return std::abs(value / unit->in_base - number.value) <= 0.5000001 * number.place;
}

std::vector<Said> said_in(std::string_view content, const std::string& file) {
  std::vector<Said> all;
  const std::vector<std::string_view> lines = lines_of(content);
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (trimmed(lines[at]) != "<!-- says") continue;
    const std::string block = text_of(lines, block_above(lines, at));
    for (++at; at < lines.size() && trimmed(lines[at]) != "-->"; ++at) {
      Said said = look_after(lines[at], block);
      said.file = file;
      said.line = static_cast<int>(at) + 1;
      all.push_back(std::move(said));
    }
  }
  return all;
}

std::string with_figures_anew(std::string_view content, const std::vector<Said>& all) {
  std::vector<std::string> lines;
  for (std::string_view line : lines_of(content)) lines.emplace_back(line);
  Block block;
  std::size_t comment = lines.size(), next = 0;   // whose lines the paragraph is of, and where to look on in it
  for (const Said& said : all) {
    const auto at = static_cast<std::size_t>(said.line) - 1;
    std::size_t begin = at;
    while (trimmed(lines[begin]) != "<!-- says") --begin;
    if (begin != comment) {
      comment = begin;
      block = block_above(lines, begin);
      next = 0;
    }
    std::string paragraph = text_of(lines, block);
    std::size_t found = find_words(paragraph, said.words, next);
    if (found == std::string::npos) found = find_words(paragraph, said.words, 0);
    if (found == std::string::npos) continue;
    next = found + said.words.size();
    if (said.anew.empty()) continue;
    next = found + said.anew.size();
    paragraph.replace(found, said.words.size(), said.anew);
    std::size_t line = block.begin;
    for (std::string_view one : lines_of(paragraph)) lines[line++] = std::string(one);
    lines[at].replace(lines[at].rfind(said.words), said.words.size(), said.anew);
  }
  std::string written;
  for (std::size_t line = 0; line < lines.size(); ++line) written += lines[line] + (line + 1 < lines.size() || content.ends_with('\n') ? "\n" : "");
  return written;
}

std::vector<Switch> figures_switches() {
  return {{"stale", "", "Only those that no longer hold.", ""},
          {"write", "", "Write into the texts what is so now: in the comment, and in the paragraph or table above it. What is said of the numbers is yours to read again.", ""}};
}

int figures_of(const Line& line, Console& console) {
  std::vector<std::string> files = line.places;
  if (files.empty()) {
    if (book::project_root().empty()) return refuse(console, "there are no texts here: run it at the root of the project, or name files");
    files = texts_of(book::project_root());
  }
  std::size_t count = 0, stale = 0, wrote = 0;
  for (const std::string& file : files) {
    const Result<std::string> content = book::read_text(file);
    if (!content) return refuse(console, content.error());
    std::vector<Said> all = said_in(content.value(), file);
    if (line.has("write")) {
      const std::string written = with_figures_anew(content.value(), all);
      std::size_t changed = 0;
      if (written != content.value()) {
        if (base::Status status = workbook::write_whole(fs::absolute(file).string(), written); !status) return refuse(console, status.error());
        const std::vector<Said> before = std::exchange(all, said_in(written, file));
        for (std::size_t at = 0; at < all.size(); ++at) {
          if (all[at].words == before[at].words) continue;
          ++changed;
          console.out << "wrote  " << file << ":" << all[at].line << "  " << all[at].term << " -> " << all[at].words << ", which was " << before[at].words << "\n";
        }
      }
      wrote += changed;
    }
    if (all.empty() && !line.places.empty()) {
      console.out << file << " names no run that its figures are of (<!-- says ... -->), so nothing is made anew here; those of a lab are `shardbook lab figures NN`'s\n";
    }
    for (const Said& said : all) {
      ++count;
      stale += !said.holds;
      if (said.holds && (line.has("stale") || line.has("write"))) continue;
      console.out << (said.holds ? "holds  " : "STALE  ") << said.file << ":" << said.line << "  " << said.term << " -> " << said.words
                  << (said.holds ? "" : ": " + said.problem) << "\n";
    }
  }
  console.out << count << " figures, ";
  if (line.has("write")) console.out << wrote << " made anew, ";
  console.out << stale << " stale\n";
  return stale == 0 ? exit_ok : exit_failed;
}

}  // namespace shardbook::cli
