// page/formula: how does $t = \alpha + n/\beta$ look with nothing but letters?
//
// A subset of TeX becomes Unicode text in runs that are raised or lowered: Greek letters, relations, operators,
// arrows, sub- and superscripts, \frac as a/b, \sqrt, \text, accents. A command that is not known shows as its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::page {

struct FormulaRun {
  std::string text;
  int raise = 0;          // 1: superscript, -1: subscript, 0: on the line; nested ones add up
  bool upright = true;    // false: a variable, set in italics
};

// Never fails and never yields a backslash; braces that do not match are passed over. Work is linear in the text.
std::vector<FormulaRun> formula_runs(std::string_view tex);

// The same without levels, for a place that has none: "t = α + n/β", x^2, a_i.
std::string formula_text(std::string_view tex);

}  // namespace shardbook::page
