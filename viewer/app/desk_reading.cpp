// Others' files beside the learner's notes about them: which there are, what is selected, what the notes' check finds.
// What holds of a citation, a note or a folder is reading's; nothing of a note is written here but by reading/begin.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "engine/book/project.hpp"
#include "engine/config/switches.hpp"
#include "engine/reading/begin.hpp"
#include "engine/reading/check.hpp"
#include "engine/reading/places.hpp"
#include "engine/workbook/course.hpp"
#include "viewer/app/desk_act.hpp"

namespace shardbook::app {

namespace fs = std::filesystem;
using base::text;

namespace {

constexpr const char* table_of_places = "labs/03_reading/places.json";

std::string notes_folder_of(const std::string& root) { return (fs::path(root) / reading::notes_folder).string(); }

// The commit that the notes name, else the lab's own.
std::string commit_for(const std::string& root, const reading::Asked& asked, const reading::Facts& facts) {
  const std::string named = reading::commit_of(notes_folder_of(root), asked);
  const reading::Project* project = facts.project(asked.repository);
  return !named.empty() || project == nullptr ? named : project->commit;
}

const reading::Asked& asked_of(const std::string& repository) {
  const auto& all = reading::asked_notes();
  return *std::find_if(all.begin(), all.end() - 1, [&](const reading::Asked& one) { return one.repository == repository; });
}

// Changes when any of these files does: name, length, time, and which file it is.
std::string look_of(const fs::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return path.filename().string() + " -\n";
  std::ostringstream out;
  out << path.filename().string() << ' ' << about.st_size << ' ' << about.st_ino << ' ' << about.st_mtim.tv_sec << '.' << about.st_mtim.tv_nsec << '\n';
  return out.str();
}

// Which part of the lab this note is for, as far as the learner is: the first asks for less.
std::string part_of(const std::string& root, const std::string& note) {
  if (note != reading::asked_notes().front().file) return note == reading::synthesis_file ? "03d" : "03c";
  const base::Result<workbook::Course> course = workbook::open_course(root);
  if (!course) return "03b";
  const base::Result<workbook::Place> first = course.value().part("03a");
  return first && !course.value().state(first.value()).passed ? "03a" : "03b";
}

}  // namespace

void Desk::Impl::turn_reading() {
  if (show_reading) {
    show_reading = false;
    return;
  }
  std::error_code ignored;
  if (options.root.empty() || !fs::exists(fs::path(options.root) / table_of_places, ignored)) {
    fail("no lab 03 here: start this from within the project's folder, the one that holds labs/ and notes/");
    return;
  }
  show_reading = true;
  seen_on_disk.clear();
  look_at_reading();
  ui::focus_pane("sources");
}

void Desk::Impl::look_at_reading() {
  if (!show_reading) return;
  pane.citation = pane.shown < 0 || pane.choosing || pane.code.from == 0
                      ? "" : reading::place_text(pane.files[static_cast<std::size_t>(pane.shown)].path, pane.code.low(), pane.code.high());
  std::string now;
  for (const reading::Asked& asked : reading::asked_notes()) {
    now += look_of(fs::path(notes_folder_of(options.root)) / asked.file) + look_of(fs::path(notes_folder_of(options.root)) / asked.commit_file);
  }
  now += look_of(fs::path(notes_folder_of(options.root)) / reading::synthesis_file) + look_of(fs::path(options.root) / "experiments/progress.txt");
  if (sources) {
    std::error_code ignored;
    for (const views::Reading::File& file : pane.files) {
      if (!file.here) now += fs::exists(sources->place_of(file.repository, commits[file.repository], file.path), ignored) ? '+' : '-';
    }
  }
  if (now == seen_on_disk) return;
  const bool first = seen_on_disk.empty() || !sources;
  seen_on_disk = std::move(now);
  read_files();
  if (!sources) return;
  read_note();
  check_note();
  // What was missing is part of what was seen, and is known only now.
  if (first) seen_on_disk = "read";
}

// The table, and what is here of the commits that the notes name. The file that is shown stays, as long as it is there.
void Desk::Impl::read_files() {
  const base::Result<std::string> table = book::read_text((fs::path(options.root) / table_of_places).string());
  base::Result<reading::Facts> facts = table ? reading::read_facts(table.value()) : base::Result<reading::Facts>(table.as_error());
  if (!facts) return fail(facts.error());
  const std::string shown = pane.shown < 0 ? "" : pane.files[static_cast<std::size_t>(pane.shown)].path, shown_commit = pane.commit;
  sources = std::make_unique<reading::Sources>((fs::path(options.root) / "sources").string(), std::move(facts).value());
  pane.files.clear();
  pane.shown = -1;
  pane.missing.clear();
  int missing = 0;
  std::error_code ignored;
  for (const reading::Asked& asked : reading::asked_notes()) {
    const std::string commit = commit_for(options.root, asked, sources->facts());
    commits[asked.repository] = commit;
    const reading::Project* project = sources->facts().project(asked.repository);
    const std::vector<std::string> here = sources->paths(asked.repository, commit);
    std::vector<std::string> paths = here;
    const bool pinned = project != nullptr && project->commit == commit;
    if (pinned) {
      for (const reading::FileFacts& file : project->files) paths.push_back(file.path);
    }
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    for (const std::string& path : paths) {
      const bool is_here = std::find(here.begin(), here.end(), path) != here.end();
      missing += is_here ? 0 : 1;
      if (path == shown && commit == shown_commit && is_here) pane.shown = static_cast<int>(pane.files.size());
      pane.files.push_back({asked.repository, path, is_here});
    }
    if (paths.empty() && !pinned) {
      pane.missing = text("Nothing of commit ", commit.substr(0, 8), " of ", asked.repository, " is here, which your notes name: ./shardbook notes check --clone DIR takes the files that you cite from your clone.");
    }
  }
  if (missing > 0) pane.missing = text(missing, " of these files are not here yet: ./shardbook notes sources fetches them; without a network, ./shardbook notes sources --clone DIR takes them from a clone.");
  if (pane.shown < 0) pane.choosing = true;
  pane.notes.clear();
  for (const reading::Asked& asked : reading::asked_notes()) pane.notes.push_back(asked.file);
  pane.notes.emplace_back(reading::synthesis_file);
  pane.folder = reading::notes_folder;
}

void Desk::Impl::read_note() {
  const std::string& name = pane.notes[static_cast<std::size_t>(pane.note)];
  const fs::path path = fs::path(notes_folder_of(options.root)) / name;
  pane.lines.clear();
  pane.unread.clear();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    pane.unread = text("There is no ", name, " yet: select lines on the left and add them, or begin it in your editor.");
    return;
  }
  const base::Result<std::string> bytes = book::read_text(path.string());
  base::Result<reading::Words> words = bytes ? reading::words_of(bytes.value()) : base::Result<reading::Words>(bytes.as_error());
  if (!words) {
    pane.unread = bytes ? text(name, " ", words.error(), ".") : words.error();
    return;
  }
  const reading::Note note = reading::parse_note(name, std::move(words.value().lines));
  for (std::size_t i = 0; i < note.lines.size(); ++i) {
    views::Reading::Line line{note.lines[i], note.in_fence[i], {}};
    if (!line.fenced) {
      for (const reading::Citation& one : reading::citations_in(line.text, 0)) line.places.push_back({one.begin, one.end, line.text.substr(one.begin, one.end - one.begin)});
    }
    pane.lines.push_back(std::move(line));
  }
  pane.marked = std::min(pane.marked, static_cast<int>(pane.lines.size()));
}

void Desk::Impl::check_note() {
  const std::string& name = pane.notes[static_cast<std::size_t>(pane.note)];
  const std::string part = part_of(options.root, name);
  reading::CheckOptions checked;
  if (const base::Status asked = reading::ask_for_part(part, checked); !asked) return fail(asked.error());
  checked.only = {name};
  for (const book::Excerpt& one : excerpts()) checked.spans.push_back(one.name);
  for (const config::Switch& one : config::switches()) checked.switches.push_back(one.key);
  const reading::Report report = reading::check_notes(notes_folder_of(options.root), *sources, checked);
  pane.findings.clear();
  int warnings = 0;
  for (const reading::Finding& one : report.findings) {
    warnings += one.is_warning ? 1 : 0;
    pane.findings.push_back({one.file, one.rule, one.sentence, one.line, one.is_warning});
  }
  pane.unjudged = report.unjudged;
  const bool figures = !report.notes.empty() && !report.notes.front().figures.empty();
  if (figures) pane.unjudged.push_back("Figures need their runs: ./shardbook notes check makes them.");
  const int faults = static_cast<int>(report.findings.size()) - warnings;
  pane.verdict = text(faults == 0 ? std::string("Nothing found") : text(faults, faults == 1 ? " finding" : " findings"),
                      warnings == 0 ? std::string() : text(", ", warnings, warnings == 1 ? " warning" : " warnings"), " of what ", part, " asks of this note",
                      report.unjudged.empty() ? "" : text("; ", report.unjudged.size(), " not judged"));
}

// --- Commands ---------------------------------------------------------------------------------------
// What would act on the timeline acts on the pane, or waits until that is closed.
bool Desk::Impl::act_in_reading(const ui::Intent& intent) {
  const std::string& id = intent.id;
  if (id == "select.up" || id == "select.down") move_lines(id == "select.up" ? -1 : 1, false);
  else if (id == "follow.in" || id == "follow.out") next_citation(id == "follow.in" ? -1 : 1);
  else if (id == "select.previous" || id == "select.next") next_finding(id == "select.previous" ? -1 : 1);
  else if (id == "pane.next" || id == "pane.previous") next_pane(id == "pane.previous" ? -1 : 1);
  else if (id == "find" && intent.argument.empty()) pane.searching = pane.take_focus = pane.shown >= 0 && !pane.choosing;
  else if (id == "find.next" || id == "find.previous") find_in_file(id == "find.next" ? 1 : -1);
  else if (id.starts_with("scroll.") || id == "text.copy" || id == "text.select_all") return true;   // the panes' own
  else if (id == "up" && !show_help && !palette.open && (pane.searching || (shown_problem.empty() && font_problem.empty()))) {
    if (pane.searching) pane.searching = false;
    else if (pane.code.from > 0) pane.code.from = pane.code.to = 0;
    else show_reading = false;
  } else if (id == "work" && show_work) {
    show_reading = false;
  } else {
    // What shows something else comes in front.
    for (const char* other : {"open", "follow", "library", "work", "panel", "drawer", "compare", "run.show", "go.source", "go.note", "text.back", "text.forward", "layout.read", "layout.split", "layout.trace"}) {
      if (id == other) show_reading = false;
    }
    const bool of_run = view_actions().contains(id) || row_actions().contains(id) || selection_actions().contains(id) || mark_actions().contains(id);
    if (show_reading && of_run) hint = "L closes the sources; then keys move in the timeline";
    return show_reading && of_run;
  }
  return true;
}

void Desk::Impl::choose_file(int place) {
  if (!sources || place < 0 || place >= static_cast<int>(pane.files.size())) return fail(text("there is no file ", place, " among the sources"));
  const views::Reading::File& file = pane.files[static_cast<std::size_t>(place)];
  const std::string commit = commits[file.repository];
  const reading::SourceFile found = sources->file(file.repository, commit, file.path);
  if (found.lines == nullptr) {
    fail(!found.problem.empty() ? found.problem : text(file.path, " is not here: ./shardbook notes sources fetches it"));
    return;
  }
  pane.shown = place;
  pane.commit = commit;
  pane.choosing = false;
  pane.code = {};
  for (const std::string& line : *found.lines) pane.code.text += line + "\n";
  pane.code.language = file.path.ends_with(".py") ? "python" : file.path.ends_with(".md") || file.path.ends_with(".rst") ? "" : "cpp";
  pane.code.picks = true;
  ui::focus_pane("sources");
}

void Desk::Impl::choose_note(int place) {
  if (pane.notes.empty()) return fail("the notes are not open: L opens them");
  pane.note = std::clamp(place, 0, static_cast<int>(pane.notes.size()) - 1);
  pane.marked = 0;
  pane.found = -1;
  pane.cited.clear();
  read_note();
  check_note();
}

void Desk::Impl::show_citation(const std::string& words) {
  const std::size_t blank = words.find(' ');
  const std::vector<reading::Citation> cited = reading::citations_in(blank == std::string::npos ? words : words.substr(blank + 1), 0);
  if (cited.empty() || !sources) return fail(text("'", words, "' is no citation"));
  const reading::Citation& one = cited.front();
  // The note's own project first; the synthesis may cite both.
  std::vector<reading::Asked> asked = reading::asked_notes();
  std::stable_partition(asked.begin(), asked.end(), [&](const reading::Asked& of) { return of.file == pane.notes[static_cast<std::size_t>(pane.note)]; });
  for (const reading::Asked& of : asked) {
    const std::string path = reading::whole_path(*sources, of.repository, commits[of.repository], one.path);
    for (std::size_t i = 0; i < pane.files.size(); ++i) {
      if (pane.files[i].repository != of.repository || pane.files[i].path != path) continue;
      if (pane.shown != static_cast<int>(i) || pane.choosing) choose_file(static_cast<int>(i));
      if (pane.shown != static_cast<int>(i)) return;
      const int lines = static_cast<int>(std::count(pane.code.text.begin(), pane.code.text.end(), '\n'));
      if (one.first < 1 || one.last > lines || one.last < one.first) return fail(text(path, " has ", lines, " lines at this commit, so there is no ", reading::place_text(one.path, one.first, one.last)));
      pane.code.from = pane.code.marked = one.first;
      pane.code.to = one.last;
      pane.code.scroll = true;
      pane.marked = blank == std::string::npos ? 0 : number_of(words);
      pane.cited = words;
      return;
    }
  }
  fail(text(one.path, " is none of the files that lab 03 reads: ./shardbook notes check --clone DIR takes it from your clone"));
}

void Desk::Impl::show_finding(int place) {
  if (place < 0 || place >= static_cast<int>(pane.findings.size())) return fail(text("there is no finding ", place));
  pane.found = place;
  pane.marked = pane.findings[static_cast<std::size_t>(place)].line;
  pane.scroll = true;
}

// The citation behind (or before) the one whose line is marked, around; those of one line in turn.
void Desk::Impl::next_citation(int direction) {
  std::vector<std::string> all;   // "12 a/b.py:L3-L9"
  for (std::size_t i = 0; i < pane.lines.size(); ++i) {
    for (const views::Reading::Place& place : pane.lines[i].places) all.push_back(std::to_string(i + 1) + " " + place.words);
  }
  if (all.empty()) {
    hint = "this note cites nothing yet";
    return;
  }
  const auto count = static_cast<int>(all.size());
  const auto found = std::find(all.begin(), all.end(), pane.cited);
  const int at = found == all.end() ? (direction > 0 ? -1 : count) : static_cast<int>(found - all.begin());
  pane.cited = all[static_cast<std::size_t>((at + direction + count) % count)];
  pane.marked = number_of(pane.cited);
  pane.scroll = true;
  show_citation(pane.cited);
}

void Desk::Impl::next_finding(int direction) {
  const auto count = static_cast<int>(pane.findings.size());
  if (count == 0) {
    hint = "nothing was found in this note";
    return;
  }
  const int at = pane.found < 0 ? (direction > 0 ? -1 : count) : std::min(pane.found, count);
  show_finding((at + direction + count) % count);
}

void Desk::Impl::next_pane(int direction) {
  static const std::vector<std::string> names{"sources", "notes", "findings"};
  const auto at = static_cast<int>(std::find(names.begin(), names.end(), ui::focused_pane()) - names.begin()) % 3;
  ui::focus_pane(names[static_cast<std::size_t>((at + direction + 3) % 3)]);
}

void Desk::Impl::move_lines(int by, bool longer) {
  if (!show_reading || pane.shown < 0 || pane.choosing) {
    hint = "L opens the sources; there, lines become a citation";
    return;
  }
  const int lines = static_cast<int>(std::count(pane.code.text.begin(), pane.code.text.end(), '\n'));
  ui::CodeView& code = pane.code;
  if (code.from == 0) code.from = code.to = std::max(code.marked, 1);
  else code.to = std::clamp(code.to + by, 1, std::max(lines, 1));
  if (!longer) code.from = code.to;
  code.reveal = true;
}

void Desk::Impl::find_in_file(int direction) {
  if (pane.query.empty() || pane.shown < 0) return;
  std::vector<std::string> lines;
  std::istringstream in(pane.code.text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const int count = static_cast<int>(lines.size()), step = direction < 0 ? -1 : 1;
  for (int i = 1; i <= count; ++i) {
    const int at = ((std::max(pane.code.marked, 1) - 1 + (pane.code.marked > 0 ? i : i - 1) * step) % count + count) % count;
    if (lines[static_cast<std::size_t>(at)].find(pane.query) == std::string::npos) continue;
    pane.code.marked = pane.code.from = pane.code.to = at + 1;
    pane.code.scroll = true;
    return;
  }
  hint = text("'", pane.query, "' is nowhere in this file");
}

void Desk::Impl::copy_citation() {
  if (pane.citation.empty()) {
    hint = "select lines of a source first (L): they become the citation";
    return;
  }
  ImGui::SetClipboardText(pane.citation.c_str());
  hint = "copied: " + pane.citation;
}

void Desk::Impl::add_citation() {
  if (pane.citation.empty() || pane.shown < 0) {
    hint = "select lines of a source first (L): they become the citation";
    return;
  }
  // Into the note about that project, whichever is in front.
  const std::string& note = asked_of(pane.files[static_cast<std::size_t>(pane.shown)].repository).file;
  const base::Result<reading::Begun> begun = reading::begin_choice(notes_folder_of(options.root), note, pane.citation);
  if (!begun) return fail(begun.error());
  choose_note(static_cast<int>(std::find(pane.notes.begin(), pane.notes.end(), note) - pane.notes.begin()));
  pane.marked = begun.value().line;
  pane.scroll = true;
  std::error_code ignored;
  hint = text("added to ", note, ", line ", pane.marked, begun.value().kept.empty() ? "" : text("; as it was: ", fs::relative(begun.value().kept, options.root, ignored).generic_string()));
}

}  // namespace shardbook::app
