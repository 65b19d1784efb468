#include "engine/reading/rules_note.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "engine/base/nearest.hpp"
#include "engine/book/project.hpp"
#include "engine/reading/pasted.hpp"
#include "engine/reading/places.hpp"

namespace shardbook::reading {

using base::text;

namespace {

constexpr int least_words = 40, most_words = 80;          // of a choice
constexpr int most_closing_words = 80, most_note_words = 480;   // five such choices and a closing
constexpr int least_figures = 2;
constexpr double figure_tolerance = 0.02;

void add(Report& report, const std::string& file, int line, std::string rule, std::string sentence) {
  report.findings.push_back({file, line, std::move(rule), std::move(sentence), false});
}
void warn(Report& report, const std::string& file, int line, std::string rule, std::string sentence) {
  report.findings.push_back({file, line, std::move(rule), std::move(sentence), true});
}

bool is_commit(const std::string& word) {
  return word.size() == 40 && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string first_line_of(const std::string& path) {
  base::Result<std::string> bytes = book::read_text(path);
  if (!bytes) return "";
  base::Result<Words> words = words_of(bytes.value());
  if (!words || words.value().lines.empty()) return "";
  return std::string(trimmed(words.value().lines.front()));
}

// "87.3", "1.32": as many places as say something.
std::string ms_text(double ms) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, ms < 10 ? "%.3f" : "%.2f", ms);
  return buffer;
}

bool is_ours(const Citation& citation) { return citation.path.starts_with("engine/"); }

}  // namespace

std::string commit_of(const std::string& folder, const Asked& asked) {
  const std::string own = first_line_of((std::filesystem::path(folder) / asked.commit_file).string());
  if (!own.empty()) return is_commit(own) ? own : "";
  base::Result<std::string> note = book::read_text((std::filesystem::path(folder) / asked.file).string());
  if (!note) return "";
  std::string word;
  for (const char letter : note.value() + " ") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) word += letter;
    else if (is_commit(word)) return word;
    else word.clear();
  }
  return "";
}

void check_commit(const std::string& folder, const Asked& asked, const Sources& sources, Report& report) {
  const std::string path = (std::filesystem::path(folder) / asked.commit_file).string();
  const std::string commit = commit_of(folder, asked);
  std::error_code ignored;
  if (commit.empty()) {
    if (!std::filesystem::exists(path, ignored)) {
      add(report, asked.commit_file, 0, "commit", text("is missing: it names the commit of ", asked.repository, " that you read (`git rev-parse HEAD`, in your clone of it), without which no line number means anything"));
      return;
    }
    base::Result<std::string> bytes = book::read_text(path);
    if (bytes && !words_of(bytes.value())) {
      add(report, asked.commit_file, 0, "encoding", words_of(bytes.value()).error());
      return;
    }
    const std::string found = first_line_of(path);
    const bool is_short = found.size() >= 6 && found.size() < 40 && found.find_first_not_of("0123456789abcdef") == std::string::npos;
    add(report, asked.commit_file, 1, "commit",
        is_short ? text("'", found, "' is the short form of a commit: write all 40 digits (`git rev-parse HEAD` prints them)")
                 : text("'", found.substr(0, 60), "' is no commit: 40 digits of 0-9 and a-f, as `git rev-parse HEAD` prints them"));
    return;
  }
  if (const std::string missing = sources.missing(commit); !missing.empty()) {
    add(report, asked.commit_file, 1, "commit", missing);
  } else if (!sources.knows(asked.repository, commit)) {
    report.unjudged.push_back(text(asked.commit_file, ": whether ", asked.repository, " has a commit ", commit.substr(0, 8), " (with a clone of it: `--clone DIR`)"));
  }
}

void check_citations(const Note& note, const Asked& asked, const std::string& commit, const Sources& sources, Report& report) {
  for (const Choice& choice : note.choices) {
    for (const Citation& citation : choice.citations) {
      if (is_ours(citation)) continue;
      ++report.citations;
      if (!citation.commit.empty() && !commit.empty() && !commit.starts_with(citation.commit)) {
        add(report, note.name, citation.line, "commit", text("the link is to ", citation.commit.substr(0, 12), ", and ", asked.commit_file, " names ", commit.substr(0, 8), ": read and cite one commit"));
        continue;
      }
      const Verdict verdict = judge(sources, asked.repository, commit, citation, choice);
      if (verdict.by == Verdict::By::file) ++report.judged_by_file;
      if (verdict.by == Verdict::By::facts) ++report.judged_by_table;
      if (!verdict.rule.empty()) add(report, note.name, citation.line, verdict.rule, verdict.sentence);
      if (!verdict.unjudged.empty()) report.unjudged.push_back(text(note.name, ":", citation.line, ": ", verdict.unjudged));
    }
  }
}

void check_choices(const Note& note, const CheckOptions& options, Report& report) {
  int choices = 0;
  for (const Choice& choice : note.choices) {
    const bool counts = std::any_of(choice.citations.begin(), choice.citations.end(), [](const Citation& one) { return !is_ours(one); });
    if (!counts) continue;
    ++choices;
    if (choice.words < least_words || choice.words > most_words) {
      warn(report, note.name, choice.line, "words", text("'", choice.title, "' has ", choice.words, " words; ", least_words, " to ", most_words, " say regime, reason and what breaks without"));
    }
  }
  report.choices += choices;
  if (choices < options.choices) {
    add(report, note.name, 0, "choices", text("has ", choices, choices == 1 ? " choice" : " choices", " with a place cited; ", options.choices, " are asked for, each under a heading or as an item of a list, with `path:L10-L20` and the name that stands there"));
  }
  if (note.words > most_note_words) {
    warn(report, note.name, 0, "words", text("has ", note.words, " words; beyond ", most_note_words, " it copies more than it sums up"));
  }
}

void check_ties(const Note& note, const CheckOptions& options, Report& report) {
  const auto look = [&](const Choice& choice, const char* kind, const std::vector<std::string>& named, const std::vector<std::string>& known, const char* command) {
    if (known.empty()) return;
    for (const std::string& name : named) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      add(report, note.name, choice.line, "tie", text("there is no ", kind, " `", name, "` here; the nearest is `", base::nearest(name, known), "` (", command, ")"));
    }
  };
  int tied = 0;
  for (const Choice& choice : note.choices) {
    look(choice, "switch", choice.switches, options.switches, "`shardbook switches` lists them");
    look(choice, "span", choice.spans, options.spans, "they begin with `//@ name:` in engine/");
    tied += choice.switches.empty() && choice.spans.empty() ? 0 : 1;
  }
  if (tied == 0 && !note.choices.empty()) {
    warn(report, note.name, 0, "tie", "ties no choice to this engine: name the switch that makes it otherwise (switch `fsdp.prefetch`), or the span that does the same (span `fsdp.gather`)");
  }
}

void check_closing(const Note& note, Report& report) {
  if (!note.has_closing) {
    add(report, note.name, 0, "closing", "does not connect the dots: end it with a section of that name on lab 02 or the grammar tutor");
    return;
  }
  const bool later = std::any_of(note.choices.begin(), note.choices.end(), [&](const Choice& one) { return one.line > note.closing_line; });
  if (later) add(report, note.name, note.closing_line, "closing", "connecting the dots is the end of the note, and a choice comes after it");
  const bool ties = holds(note.closing, "tutor") || holds(note.closing, "lab 02") || holds(note.closing, "lab 2") || holds(note.closing, "lab-02");
  if (!ties) add(report, note.name, note.closing_line, "closing", "speaks of neither lab 02 nor the grammar tutor: say what these lines explain there");
  if (note.closing_words > most_closing_words) {
    warn(report, note.name, note.closing_line, "words", text("the closing has ", note.closing_words, " words; at most ", most_closing_words));
  }
}

void check_pasted(const Note& note, const std::string& repository, const std::string& commit, const Sources& sources, Report& report) {
  for (const Pasted& one : pasted_in(note, sources, repository, commit)) {
    add(report, note.name, one.line, "pasted",
        one.from.empty() ? text(one.lines, " lines of code stand here; more than ", most_pasted_lines, " is copying: cite them, and say what they are for")
                         : text(one.lines, " lines are those of ", one.from, "; more than ", most_pasted_lines, " is copying: the place is enough"));
  }
}

void check_figures(const Note& note, const CheckOptions& options, Report& report) {
  if (options.finished && static_cast<int>(note.figures.size()) < least_figures) {
    add(report, note.name, 0, "figures", text("has ", note.figures.size(), " of ", least_figures, " figures: what a choice is worth, as `87.3 ms (", "`--model gpt-1.3b --tp 2`)`: a time, and in backticks the run that has it"));
  }
  for (const Figure& figure : note.figures) {
    if (!options.step_ms) {
      report.unjudged.push_back(text(note.name, ":", figure.line, ": whether ", ms_text(figure.ms), " ms is the step of `", figure.run, "`"));
      continue;
    }
    ++report.figures;
    base::Result<double> found = options.step_ms(figure.run);
    if (!found) {
      add(report, note.name, figure.line, "figure", text("the run `", figure.run, "` cannot be looked at: ", found.error()));
    } else if (std::abs(figure.ms - found.value()) > figure_tolerance * found.value()) {
      add(report, note.name, figure.line, "figure", text("says ", ms_text(figure.ms), " ms; the step of `", figure.run, "` is ", ms_text(found.value()), " ms"));
    }
  }
}

void check_fences(const Note& note, Report& report) {
  for (const Fence& fence : note.fences) {
    if (!fence.closed) add(report, note.name, fence.line - 1, "fence", "a fence opens here and does not close: all that follows is taken for code");
  }
}

}  // namespace shardbook::reading
