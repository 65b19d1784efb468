// reading/rules_note: the rules of one note, a function each. They add findings to a report; check.hpp says what for.
#pragma once

#include "engine/reading/check.hpp"

namespace shardbook::reading {

void check_commit(const std::string& folder, const Asked& asked, const Sources& sources, Report& report);
void check_citations(const Note& note, const Asked& asked, const std::string& commit, const Sources& sources, Report& report);
void check_choices(const Note& note, const CheckOptions& options, Report& report);
void check_ties(const Note& note, const CheckOptions& options, Report& report);
void check_closing(const Note& note, Report& report);
void check_pasted(const Note& note, const std::string& repository, const std::string& commit, const Sources& sources, Report& report);
void check_figures(const Note& note, const CheckOptions& options, Report& report);
void check_fences(const Note& note, Report& report);

}  // namespace shardbook::reading
