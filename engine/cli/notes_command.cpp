// cli/notes_command: what reading/ finds, printed; see notes_command.hpp.
#include "engine/cli/notes_command.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/base/nearest.hpp"
#include "engine/base/printable.hpp"
#include "engine/book/excerpts.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/notes_sources.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/config/switches.hpp"
#include "engine/launch/launch.hpp"
#include "engine/reading/check.hpp"
#include "engine/reading/compare.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;
using reading::Facts;
using reading::Report;
using reading::Sources;

namespace {

constexpr const char* table_of_places = "labs/03_reading/places.json";

// ---- Where things are --------------------------------------------------------------------------

struct Places {
  std::string root, notes, sources, reference;
  Facts facts;
};

base::Result<Facts> facts_under(const std::string& root) {
  base::Result<std::string> table = book::read_text((fs::path(root) / table_of_places).string());
  if (!table) return table.as_error();
  return reading::read_facts(table.value());
}

base::Result<Places> places_of(const Line& line) {
  Places places;
  places.root = book::project_root();
  if (places.root.empty()) return base::Error{"no labs here: start this from within the project's folder, the one that holds labs/ and notes/"};
  places.notes = line.places.size() > 1 ? line.places[1] : (fs::path(places.root) / reading::notes_folder).string();
  places.sources = line.has("sources") ? line.value("sources") : (fs::path(places.root) / "sources").string();
  places.reference = line.has("reference") ? line.value("reference") : (fs::path(places.root) / "solutions/03_reading").string();
  base::Result<Facts> facts = facts_under(places.root);
  if (!facts) return facts.as_error();
  places.facts = std::move(facts).value();
  return places;
}

std::vector<std::string> clones_of(const Line& line) {
  const auto found = line.switches.find("clone");
  return found == line.switches.end() ? std::vector<std::string>{} : found->second;
}

std::string shown_folder(const Places& places, const std::string& folder) {
  std::error_code ignored;
  const std::string shorter = fs::relative(folder, places.root, ignored).generic_string();
  return shorter.empty() || shorter.starts_with("..") ? folder : shorter;
}

void speak(Console& console, const std::string& lead, const std::string& words) {
  console.out << wrapped(lead, base::printable(words), std::min(plain_columns, console.text_columns()));
}

// ---- check -------------------------------------------------------------------------------------

std::string where_of(const reading::Finding& finding) {
  return finding.line > 0 ? text(finding.file, ":", finding.line) : finding.file;
}

nlohmann::json json_of(const Report& report) {
  nlohmann::json findings = nlohmann::json::array();
  for (const reading::Finding& one : report.findings) {
    findings.push_back({{"file", one.file}, {"line", one.line}, {"rule", one.rule}, {"message", one.sentence}, {"warning", one.is_warning}});
  }
  return {{"passed", report.passed()}, {"findings", findings}, {"unjudged", report.unjudged}, {"choices", report.choices}, {"citations", report.citations},
          {"judged_by_file", report.judged_by_file}, {"judged_by_table", report.judged_by_table}, {"figures", report.figures}};
}

int check(const Places& places, const Line& line, Console& console) {
  base::Result<Report> made = notes_report(places.root, places.notes, line.value("part"), clones_of(line), places.sources);
  if (!made) return refuse(console, made.error());
  const Report& report = made.value();
  if (line.has("json")) {
    console.out << base::json_text(json_of(report), 2) << "\n";
    return report.passed() ? exit_ok : exit_failed;
  }
  int failed = 0;
  for (const reading::Finding& one : report.findings) {
    failed += one.is_warning ? 0 : 1;
    speak(console, "", text(where_of(one), one.is_warning ? ": warning: " : ": ", one.sentence, " [", one.rule, "]"));
  }
  if (!report.unjudged.empty()) {
    console.out << (report.findings.empty() ? "" : "\n") << "Not judged:\n";
    for (const std::string& one : report.unjudged) speak(console, "  ", one);
  }
  if (!report.findings.empty() || !report.unjudged.empty()) console.out << "\n";
  speak(console, "", text(report.choices, " choices with ", report.citations, " citations: ", report.judged_by_file, " judged by the files themselves, ", report.judged_by_table,
                        " by the lab's table; ", report.figures, " figures by their runs. Whether a reason is right, no program can judge."));
  if (failed == 0) console.out << "Passed.\n";
  else console.out << "Not passed: " << count_text(failed, "finding") << ".\n";
  if (failed == 0 && line.has("part")) console.out << "Next  ./shardbook next    what the lab asks then\n";
  else if (failed == 0) console.out << "Next  ./shardbook notes compare    what did the reference see that you did not?\n";
  return failed == 0 ? exit_ok : exit_failed;
}

// ---- compare -----------------------------------------------------------------------------------

base::Result<std::vector<reading::NoteAt>> notes_in(const std::string& folder) {
  std::vector<reading::NoteAt> found;
  for (const reading::Asked& asked : reading::asked_notes()) {
    base::Result<std::string> bytes = book::read_text((fs::path(folder) / asked.file).string());
    if (!bytes) return bytes.as_error();
    base::Result<reading::Words> words = reading::words_of(bytes.value());
    if (!words) return base::Error{text(asked.file, " ", words.error())};
    found.push_back({reading::parse_note(asked.file, std::move(words.value().lines)), reading::commit_of(folder, asked)});
  }
  return found;
}

// "2=missed": the row and its mark.
base::Status set_mark(const std::string& words, const std::string& why, reading::Comparison& comparison) {
  const std::size_t sign = words.find('=');
  if (sign == std::string::npos) return base::Error{text("--mark takes N=had, N=missed or N=differs, not '", words, "'")};
  base::Result<int> row = whole_number("mark", words.substr(0, sign), 1);
  if (!row) return row.as_error();
  base::Result<reading::Mark> mark = reading::mark_of(words.substr(sign + 1));
  if (!mark) return mark.as_error();
  if (row.value() > static_cast<int>(comparison.rows.size())) return base::Error{text("there is no choice ", row.value(), "; the reference has ", comparison.rows.size())};
  comparison.rows[static_cast<std::size_t>(row.value() - 1)].mark = mark.value();
  comparison.rows[static_cast<std::size_t>(row.value() - 1)].why = why;
  return base::Done{};
}

void print(const reading::Comparison& comparison, Console& console) {
  int number = 0, both = 0, marked = 0;
  std::string note;
  for (const reading::Row& row : comparison.rows) {
    ++number;
    both += row.mine.empty() ? 0 : 1;
    marked += row.mark == reading::Mark::none ? 0 : 1;
    if (row.note != note) console.out << (note.empty() ? "" : "\n") << row.note << "\n";
    note = row.note;
    const std::string mark = row.mark == reading::Mark::none ? "" : text("[", reading::name_of(row.mark), "] ");
    console.out << pad_left(std::to_string(number), 3) << "  " << mark << base::printable(row.reference.title) << "\n     reference  " << base::printable(row.reference.place) << "\n";
    for (const reading::Side& side : row.mine) console.out << "     yours      " << base::printable(side.place) << ", line " << side.line << ": " << base::printable(side.title) << "\n";
    if (row.mine.empty()) console.out << "     yours      not cited\n";
    if (!row.why.empty()) speak(console, "     why        ", row.why);
  }
  if (!comparison.mine_alone.empty()) console.out << "\nCited by you alone\n";
  for (const auto& [name, side] : comparison.mine_alone) console.out << "     " << base::printable(side.place) << ", " << name << ":" << side.line << ": " << base::printable(side.title) << "\n";
  console.out << "\n" << both << " of " << comparison.rows.size() << " places of the reference are cited here too, " << comparison.mine_alone.size() << " are yours alone; " << marked << " marked.\n\n";
  for (const std::string& sentence : reading::not_judged(comparison)) speak(console, "", sentence);
  console.out << "\nSay of each whether you had it:\n  ./shardbook notes compare --mark 2=missed --why \"I read the line and did not ask why\"\n";
}

int compare(const Places& places, const Line& line, Console& console) {
  base::Result<std::vector<reading::NoteAt>> mine = notes_in(places.notes);
  if (!mine) return refuse(console, mine.error());
  base::Result<std::vector<reading::NoteAt>> reference = notes_in(places.reference);
  if (!reference) return refuse(console, reference.error());
  reading::Comparison comparison = reading::compare_notes(mine.value(), reference.value());
  const std::string path = (fs::path(places.notes) / reading::marks_file).string();
  std::vector<std::string> kept;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    base::Result<std::string> marks = book::read_text(path);
    if (!marks) return refuse(console, marks.error());
    if (base::Status read = reading::read_marks(marks.value(), comparison, kept); !read) return refuse(console, read.error());
  }
  if (line.has("why") && !line.has("mark")) return refuse(console, "--why belongs to a mark: --mark 2=missed --why \"...\"");
  if (line.has("mark")) {
    if (base::Status set = set_mark(line.value("mark"), line.value("why"), comparison); !set) return refuse(console, set.error());
    timeline::Output file(path);
    file << reading::marks_text(comparison, kept);
    if (base::Status written = file.commit(); !written) return refuse(console, written.error());
  }
  print(comparison, console);
  return exit_ok;
}

// ---- sources -----------------------------------------------------------------------------------

// The table anew, from the files that are here: for whoever pins another commit.
int write_table(const Places& places, Console& console) {
  Facts facts = places.facts;
  for (reading::Project& project : facts.projects) {
    for (reading::FileFacts& file : project.files) {
      base::Result<std::string> bytes = book::read_text(Sources(places.sources, facts).place_of(project.repository, project.commit, file.path));
      if (!bytes) return refuse(console, bytes.error());
      std::vector<std::string> names;
      for (const auto& [name, lines] : file.names) names.push_back(name);
      file = reading::facts_of(file.path, bytes.value(), names);
      for (const auto& [name, lines] : file.names) {
        if (lines.empty()) console.out << "note: " << name << " stands nowhere in " << file.path << "\n";
      }
    }
  }
  timeline::Output table((fs::path(places.root) / table_of_places).string());
  table << reading::facts_json(facts);
  if (base::Status written = table.commit(); !written) return refuse(console, written.error());
  console.out << table_of_places << " is written.\n";
  return exit_ok;
}

void say_failure(Console& console, const std::string& sentence) { console.err << "shardbook: " << base::printable(sentence) << "\n"; }

int sources(const Places& places, const Line& line, Console& console) {
  if (line.has("write-table")) return write_table(places, console);
  const Fetched fetched = fetch_sources(places.facts, places.sources, clones_of(line), console);
  for (const std::string& sentence : fetched.failed) say_failure(console, sentence);
  const std::string folder = shown_folder(places, places.sources);
  if (fetched.missing > 0) {
    console.out << "\n" << fetched.missing << " of " << fetched.missing + fetched.here + fetched.fetched << " files are not in " << folder << ". Without a network:\n"
                << "  ./shardbook notes sources --clone DIR...   a clone of Megatron-LM or PyTorch; or the folder\n"
                << "                                             that holds torch/ of an installed torch 2.8.0\n";
    return exit_bad_input;
  }
  console.out << "\n" << fetched.here + fetched.fetched << " files in " << folder << ", each with the sha256 of the table (" << fetched.fetched << " new).\n"
              << "Next  less " << folder << "/NVIDIA+Megatron-LM/*/megatron/core/tensor_parallel/layers.py\n";
  return exit_ok;
}

// ---- The step of a run --------------------------------------------------------------------------

base::Result<double> step_of_folder(const std::string& folder) {
  base::Result<std::string> content = book::read_text((fs::path(folder) / "run.json").string());
  if (!content) return content.as_error();
  const nlohmann::json json = base::try_parse_json(content.value());
  const nlohmann::json::json_pointer step("/results/step_ns");
  if (json.is_discarded() || !json.contains(step) || !json[step].is_number()) return base::Error{text(folder, "/run.json says no step")};
  return json[step].get<double>() / 1e6;
}

}  // namespace

base::Result<Report> notes_report(const std::string& root, const std::string& folder, const std::string& part, const std::vector<std::string>& clones,
                                  const std::string& sources_folder) {
  base::Result<Facts> facts = facts_under(root);
  if (!facts) return facts.as_error();
  for (const std::string& clone : clones) {
    std::error_code ignored;
    if (!fs::is_directory(clone, ignored)) return base::Error{text("there is no folder ", clone, ": --clone names a clone of Megatron-LM or PyTorch")};
  }
  reading::CheckOptions options;
  if (base::Status asked = reading::ask_for_part(part, options); !asked) return asked.as_error();
  base::Result<std::vector<book::Excerpt>> spans = book::all_excerpts(root);
  if (!spans) return spans.as_error();
  for (const book::Excerpt& one : spans.value()) options.spans.push_back(one.name);
  for (const config::Switch& one : config::switches()) options.switches.push_back(one.key);
  // A run that two figures name is made once.
  std::map<std::string, base::Result<double>> known;
  options.step_ms = [&](const std::string& run) {
    const auto found = known.find(run);
    return found != known.end() ? found->second : known.emplace(run, step_ms_of(run)).first->second;
  };
  Sources sources(sources_folder.empty() ? (fs::path(root) / "sources").string() : sources_folder, std::move(facts).value());
  take_cited(folder, clones, sources);
  return reading::check_notes(folder, sources, options);
}

// How many choices of the reference a learner has marked.
int marks_in(const std::string& folder) {
  const base::Result<std::string> marks = book::read_text((fs::path(folder) / reading::marks_file).string());
  if (!marks) return 0;
  std::istringstream lines(marks.value());
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += !line.empty() && line.front() != '#';
  return count;
}

// "NOTE has 4 choices", "NOTE: 'a title' has 20 words": some sentences go on from the file's name, others begin anew.
std::string said_of_file(const reading::Finding& one) {
  constexpr std::array<std::string_view, 4> verbs{"is ", "has ", "does ", "ties "};
  const bool goes_on = std::any_of(verbs.begin(), verbs.end(), [&](std::string_view verb) { return one.sentence.starts_with(verb); });
  return text(one.file, goes_on ? " " : ": ", one.sentence);
}

base::Result<workbook::Verdict> judge_notes(const std::string& root, const workbook::Place& place, const std::string& asked, const std::vector<std::string>& clones) {
  std::error_code ignored;
  const std::string folder = fs::is_regular_file(asked, ignored) || fs::path(asked).has_extension() ? fs::path(asked).parent_path().string() : asked;
  base::Result<Report> report = notes_report(root, folder, place.part->id, clones);
  if (!report) return report.as_error();
  workbook::Verdict verdict;
  verdict.passed = report.value().passed();
  const std::string below = fs::relative(folder, root, ignored).generic_string();
  for (const reading::Finding& one : report.value().findings) {
    // Of notes that pass all that is left are warnings
    if (verdict.passed) verdict.remarks.push_back(said_of_file(one));
    else verdict.findings.push_back({one.rule, said_of_file(one), one.line > 0 ? below + "/" + one.file : "", one.line, "labs/03_reading/text.md#choice", ""});
  }
  verdict.figures = {{"choices", report.value().choices}, {"citations", report.value().citations}};
  if (!verdict.passed) return verdict;
  if (report.value().judged_by_table > 0) {
    verdict.remarks.push_back(text(report.value().judged_by_table, " of ", report.value().citations, " citations were judged by the lab's table alone: their files are not in sources/. "
                                   "The table knows which name stands in which line, and not whether you have read it; ./shardbook notes sources fetches the files, --clone takes them from a clone"));
  }
  if (place.part->id == "03d" && marks_in(folder) == 0) {
    verdict.remarks.push_back("no choice of the reference is marked yet: ./shardbook notes compare lays yours beside it, and --mark 2=missed keeps what you did not see");
  }
  return verdict;
}

base::Result<double> step_ms_of(const std::string& run) {
  std::error_code ignored;
  for (const std::string& folder : {run, (fs::path(book::project_root()) / run).string()}) {
    if (fs::is_directory(folder, ignored)) return step_of_folder(folder);
  }
  std::istringstream in(run);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  for (const char* lead : {"./shardbook", "shardbook", "train"}) {
    if (!words.empty() && words.front() == lead) words.erase(words.begin());
  }
  if (words.empty() || !words.front().starts_with("--")) return base::Error{"it is neither a folder of a run nor options of `shardbook train`"};
  const base::Result<launch::Outcome> outcome = run_on_meta(words, false);
  if (!outcome) return outcome.as_error();
  return outcome.value().speed.step_ns / 1e6;
}

std::vector<Switch> notes_switches() {
  return {{"clone", "DIR...", "Clones of Megatron-LM and PyTorch to look in; nothing in them is changed.", "none", true},
          {"sources", "DIR", "Where the files that are cited are kept.", "sources"},
          {"reference", "DIR", "The notes to compare with.", "solutions/03_reading"},
          {"part", "03a|03b|03c|03d", "With check: only what this part of the lab asks for.", "all"},
          {"mark", "N=MARK", "With compare: choice N of the reference you had, missed, or see differently (differs).", ""},
          {"why", "WORDS", "Why, in your words; kept beside the mark.", ""},
          {"write-table", "", "With sources: write the lab's table of places anew, from the files.", ""},
          {"json", "", "Findings as JSON on standard output.", ""}};
}

int notes(const Line& line, Console& console) {
  const std::string& verb = line.places.front();
  base::Result<Places> places = places_of(line);
  if (!places) return refuse(console, places.error());
  if (verb == "check") return check(places.value(), line, console);
  if (verb == "compare") return compare(places.value(), line, console);
  if (verb == "sources") return sources(places.value(), line, console);
  return refuse(console, text("notes can do check, compare and sources, not '", verb, "'; the nearest is ", base::nearest(verb, {"check", "compare", "sources"})));
}

}  // namespace shardbook::cli
