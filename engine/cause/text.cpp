#include "engine/cause/text.hpp"

#include <cmath>
#include <cstdio>
#include <sstream>

namespace shardbook::cause {

using base::text;

namespace {

int width_of(std::string_view content) {
  int width = 0;
  for (char c : content) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

}  // namespace

std::string milliseconds(Nanoseconds ns) {
  char digits[48];
  std::snprintf(digits, sizeof digits, "%.3f", static_cast<double>(ns) / 1e6);
  return digits;
}

std::string line_of(const program::SourceLine& where) {
  return where.file == nullptr || *where.file == '\0' ? "" : text(where.file, ":", where.line);
}

std::string paragraph(std::string_view content, std::string_view first, std::string_view indent) {
  std::string out, line(first);
  bool has_word = false;
  std::istringstream words{std::string(content)};
  for (std::string word; words >> word;) {
    // A bare number or unit stays with what it belongs to.
    if (has_word && width_of(line) + 1 + width_of(word) > text_columns) {
      out += line + "\n";
      line = indent;
      has_word = false;
    }
    line += (has_word ? " " : "") + word;
    has_word = true;
  }
  return out + line + "\n";
}

std::string percent(double part) {
  char digits[32];
  const double value = 100 * part;
  std::snprintf(digits, sizeof digits, std::abs(value) < 9.95 && std::abs(value) >= 0.05 ? "%.1f %%" : "%.0f %%", value);
  return digits;
}

std::string counted(std::int64_t count, const std::string& noun) {
  if (count == 1) return "1 " + noun;
  const bool sibilant = noun.ends_with("s") || noun.ends_with("ch");
  return text(count, " ", noun, sibilant ? "es" : "s");
}

std::string basis_of(const Study& study) {
  if (study.clock == timeline::Clock::modelled) return text("the recorded program resolved again, MODELLED ", study.profile, study.others_as_graph ? ", launched by one call (host.graph)." : ".");
  const std::string off = study.error < 0 ? "-" + percent(-study.error) : "+" + percent(study.error);
  const std::string of = study.clock == timeline::Clock::wall ? "step " : "measured step ";
  std::string basis = text(of, study.step.value_or(0), ", op by op with its own durations, placed anew by the recorded edges (", off,
                           " off with nothing changed)");
  if (!study.profile.empty()) basis += "; what running together costs is of profile " + study.profile;
  if (study.others_as_graph) basis += "; it was traced, so issued one by one, as steps that were launched by one call (host.graph) are not: their time is the run's speed";
  return basis + ".";
}

}  // namespace shardbook::cause
