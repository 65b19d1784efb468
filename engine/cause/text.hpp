// cause/text: figures and lines as they are said.
#pragma once

#include <string>
#include <string_view>

#include "engine/cause/study.hpp"

namespace shardbook::cause {

inline constexpr int text_columns = 80;

// "66.9 ms", with its unit: metrics::duration_text. And a bare number for tables: "66.940".
std::string milliseconds(Nanoseconds ns);
// "engine/fsdp/schedule.cpp:64", "" where it is not known.
std::string line_of(const program::SourceLine& where);
// Lines of at most 80 columns, broken at blanks, the first after `first`, the others after `indent`; ends in a newline.
std::string paragraph(std::string_view content, std::string_view first = "", std::string_view indent = "  ");
// `ns` over `whole`; 0 of nothing.
inline double part_of(Nanoseconds ns, Nanoseconds whole) { return whole > 0 ? static_cast<double>(ns) / static_cast<double>(whole) : 0; }
// "12 %", "0.4 %"
std::string percent(double part);
// "47 all-gathers", "1 all-gather"
std::string counted(std::int64_t count, const std::string& noun);
// By whom a study is resolved: "MODELLED h200x8", "step 10 as measured, placed anew (−0.1 % off with nothing changed)".
std::string basis_of(const Study& study);

}  // namespace shardbook::cause
