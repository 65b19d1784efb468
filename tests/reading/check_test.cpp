// The checker of notes: what it finds in notes with a fault, and that it finds none in good ones.
//
// The faults are planted in notes about two small files made here, so that every rule is tried with the sources at
// hand. Good notes about the real files are judged by the lab's table of facts, and by the files where they are here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "engine/base/sha256.hpp"
#include "engine/book/project.hpp"
#include "engine/reading/check.hpp"
#include "engine/reading/compare.hpp"
#include "engine/reading/places.hpp"
#include "engine/reading/rules_diagrams.hpp"
#include "tests/reading/folder.hpp"

namespace shardbook::reading {
namespace {

namespace fs = std::filesystem;
using base::text;

const std::string megatron_commit(40, 'a'), torch_commit(40, 'b');

// 150 lines; each fifth says which it is: `place_10`, `place_15`.
std::string source_text(const std::string& file) {
  std::string out;
  for (int line = 1; line <= 150; ++line) out += line % 5 == 0 ? text("def place_", line, "():  # of ", file, "\n") : text("    value = ", line, "  # ", file, "\n");
  return out;
}

// Two sources as `notes sources` lays them down, with their facts.
struct SmallWorld {
  Folder folder{{{"NVIDIA+Megatron-LM/" + megatron_commit + "/megatron/core/layers.py", source_text("layers")},
                 {"pytorch+pytorch/" + torch_commit + "/torch/fsdp/runtime.py", source_text("runtime")}}};
  Facts facts() const {
    return {{{"NVIDIA/Megatron-LM", megatron_commit, "small", {facts_of("megatron/core/layers.py", source_text("layers"), {"place_10", "place_15", "absent"})}},
             {"pytorch/pytorch", torch_commit, "small", {facts_of("torch/fsdp/runtime.py", source_text("runtime"), {"place_10"})}}}};
  }
  Sources sources() const { return Sources(folder.path(), facts()); }
};

// Forty words or so that say nothing.
const char* const prose =
    "The regime is bandwidth: bytes move while cores compute, and neither needs what the other makes until the end. Without it the one waits "
    "for the other, and the step grows by what was hidden before, as the run beside this shows.\n";

std::string small_note(const std::string& file) {
  std::string note = "# A note\n";
  for (int place = 10; place <= 50; place += 10) note += text("\n### Choice ", place, "\n\n`", file, ":L", place - 2, "-L", place + 2, "` `place_", place, "` · switch `fsdp.prefetch`\n\n", prose);
  return note + "\nWith it 100.0 ms (`--fsdp 8`), without 200 ms (`--fsdp 8 --prefetch 0`).\n\n## Connect the dots\n\nSo lab 02's grammar tutor gains nothing.\n";
}

const char* const block_picture =
    "```mermaid\nflowchart LR\n  qkv[QKV: column] --> attn[attention]\n  attn --> out[row]\n  out -- all-reduce 92 us --> up[column]\n  up --> gelu[GELU]\n"
    "  gelu --> down[row]\n  down -- all-reduce 92 us --> y[y]\n```\n";
const char* const timeline_picture =
    "```mermaid\ngantt\n  dateFormat SSS\n  section all-gather\n    gather 0 :000, 2ms\n    gather 1 :002, 2ms\n  section compute\n    layer 0 :002, 3ms\n    layer 1 :005, 3ms\n```\n";

Files small_notes() {
  return {{"megatron-tp-layers.md", small_note("megatron/core/layers.py")},
          {"fsdp-prefetch.md", small_note("torch/fsdp/runtime.py")},
          {"synthesis.md", text("# Pictures\n\n", block_picture, "\n", timeline_picture)},
          {"megatron-sha.txt", megatron_commit + "\n"},
          {"pytorch-sha.txt", torch_commit + "\n"}};
}

CheckOptions small_options() {
  CheckOptions options;
  options.step_ms = [](const std::string& run) -> base::Result<double> {
    if (run == "--fsdp 8") return 99.0;
    if (run == "--fsdp 8 --prefetch 0") return 203.0;
    return base::Error{"there is no such run"};
  };
  options.switches = {"fsdp.prefetch", "fsdp.reshard"};
  options.spans = {"fsdp.gather"};
  return options;
}

std::string listed(const Report& report) {
  std::string all;
  for (const Finding& one : report.findings) all += text(one.file, ":", one.line, ": ", one.is_warning ? "warning: " : "", one.sentence, " [", one.rule, "]\n");
  for (const std::string& one : report.unjudged) all += "not judged: " + one + "\n";
  return all;
}

void replace(std::string& in, const std::string& what, const std::string& by) {
  const std::size_t at = in.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  in.replace(at, what.size(), by);
}

TEST(GoodNotes, AboutSourcesAtHandHaveNothingFoundAndNothingUnjudged) {
  const SmallWorld world;
  const Folder notes(small_notes());
  const Report report = check_notes(notes.path(), world.sources(), small_options());
  EXPECT_EQ(listed(report), "");
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.choices, 10);
  EXPECT_EQ(report.citations, 10);
  EXPECT_EQ(report.judged_by_file, 10);
  EXPECT_EQ(report.figures, 4);
}

TEST(GoodNotes, WithWindowsLineEndsAndAByteOrderMarkPassWithAWarning) {
  const SmallWorld world;
  Files files = small_notes();
  for (auto& [name, content] : files) {
    for (std::size_t at = 0; (at = content.find('\n', at)) != std::string::npos; at += 2) content.insert(at, 1, '\r');
  }
  files["fsdp-prefetch.md"].insert(0, "\xEF\xBB\xBF");
  const Report report = check_notes(Folder(files).path(), world.sources(), small_options());
  EXPECT_TRUE(report.passed()) << listed(report);
  EXPECT_EQ(report.findings.size(), 3u) << listed(report);
  EXPECT_EQ(report.judged_by_file, 10);
}

struct Fault {
  const char* name;
  std::function<void(Files&)> plant;
  const char* file;
  int line;            // 0: of the file
  const char* rule;
  const char* said;    // part of the sentence
};

const std::vector<Fault>& faults() {
  static const char* const mg = "megatron-tp-layers.md";
  static const std::vector<Fault> all = {
      {"a file is missing", [](Files& files) { files.erase("synthesis.md"); }, "synthesis.md", 0, "file", "is missing"},
      {"no commit", [](Files& files) { files.erase("pytorch-sha.txt"); }, "pytorch-sha.txt", 0, "commit", "git rev-parse HEAD"},
      {"a short commit", [](Files& files) { files["megatron-sha.txt"] = "aaaaaaa\n"; }, "megatron-sha.txt", 1, "commit", "write all 40 digits"},
      {"a commit that is none", [](Files& files) { files["megatron-sha.txt"] = "main\n"; }, "megatron-sha.txt", 1, "commit", "'main' is no commit"},
      {"four choices", [](Files& files) { replace(files[mg], "`megatron/core/layers.py:L48-L52` ", ""); }, mg, 0, "choices", "has 4 choices"},
      {"a range behind the end", [](Files& files) { replace(files[mg], "L8-L12", "L148-L152"); }, mg, 5, "range", "which has 150 lines"},
      {"a range backwards", [](Files& files) { replace(files[mg], "L8-L12", "L12-L8"); }, mg, 5, "range", "is no range"},
      {"a class for a place", [](Files& files) { replace(files[mg], "L8-L12", "L1-L101"); }, mg, 5, "range", "is 101 lines long"},
      {"a name from another era", [](Files& files) { replace(files[mg], "`place_10`", "`places_10`"); }, mg, 5, "symbol", "`places_10` is nowhere in megatron/core/layers.py at this commit; the nearest name there is `place_10"},
      {"a name of other lines", [](Files& files) { replace(files[mg], "`place_10`", "`place_95`"); }, mg, 5, "symbol", "the nearest line that has it is L95"},
      {"no name", [](Files& files) { replace(files[mg], "`place_10` ", ""); }, mg, 5, "symbol", "comes without a name"},
      {"a link to another commit", [](Files& files) { replace(files[mg], "`megatron/core/layers.py:L8-L12`", "https://github.com/NVIDIA/Megatron-LM/blob/cccccccccccc/megatron/core/layers.py#L8-L12"); }, mg, 5, "commit", "read and cite one commit"},
      {"code in a fence", [](Files& files) { files[mg] += "\n```python\na = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n```\n"; }, mg, 0, "pasted", "6 lines of code"},
      {"source as a quotation",
       [](Files& files) {
         std::string pasted;
         for (int line = 61; line <= 66; ++line) pasted += line == 65 ? "> def place_65():  # of layers\n\n" : text("> value = ", line, "  # layers\n");
         replace(files[mg], "## Connect", pasted + "\n## Connect");
       }, mg, 35, "pasted", "6 lines are those of megatron/core/layers.py:L61-L66"},
      {"no closing", [](Files& files) { replace(files[mg], "## Connect the dots", "## The end"); }, mg, 0, "closing", "does not connect the dots"},
      {"a closing about nothing here", [](Files& files) { replace(files[mg], "lab 02's grammar tutor", "everyone"); }, mg, 35, "closing", "neither lab 02 nor the grammar tutor"},
      {"a figure that is not the run's", [](Files& files) { replace(files[mg], "100.0 ms", "102.0 ms"); }, mg, 33, "figure", "says 102.00 ms; the step of `--fsdp 8` is 99.00 ms"},
      {"a run that there is not", [](Files& files) { replace(files[mg], "(`--fsdp 8`)", "(`--fsdp 9`)"); }, mg, 33, "figure", "there is no such run"},
      {"no figures", [](Files& files) { replace(files[mg], "100.0 ms (`--fsdp 8`)", "more"); }, mg, 0, "figures", "has 1 of 2 figures"},
      {"a switch that there is not", [](Files& files) { replace(files[mg], "`fsdp.prefetch`", "`fsdp.prefetsh`"); }, mg, 3, "tie", "the nearest is `fsdp.prefetch`"},
      {"a diagram that does not parse", [](Files& files) { replace(files["synthesis.md"], "up --> gelu[GELU]", "up --> gelu[GELU"); }, "synthesis.md", 9, "mermaid", "this is no Mermaid"},
      {"one diagram", [](Files& files) { replace(files["synthesis.md"], timeline_picture, ""); }, "synthesis.md", 0, "diagrams", "has 1 of 2 diagrams"},
      {"one all-reduce", [](Files& files) { replace(files["synthesis.md"], "down -- all-reduce 92 us -->", "down -->"); }, "synthesis.md", 4, "block", "marks 1 sum over ranks"},
      {"a block without its middle", [](Files& files) { replace(files["synthesis.md"], "gelu --> down", "x --> down"); }, "synthesis.md", 4, "block", "column, GELU, row"},
      {"a timeline without overlap", [](Files& files) { replace(files["synthesis.md"], "gather 1 :002", "gather 1 :008"); }, "synthesis.md", 14, "timeline", "no gather runs while a layer computes"},
      {"UTF-16", [](Files& files) { files[mg] = std::string("\xFF\xFE#\0 \0", 6); }, mg, 0, "encoding", "is UTF-16"},
      {"Latin-1", [](Files& files) { files[mg] = "# Se\xF1or\n"; }, mg, 0, "encoding", "perhaps Latin-1"},
      {"a fence that stays open", [](Files& files) { files["synthesis.md"] += "```mermaid\nflowchart LR\n  a --> b\n"; }, "synthesis.md", 23, "fence", "does not close"},
  };
  return all;
}

TEST(PlantedFaults, AreEachFoundWithFileLineAndRule) {
  const SmallWorld world;
  ASSERT_GE(faults().size(), 12u);
  for (const Fault& fault : faults()) {
    Files files = small_notes();
    fault.plant(files);
    const Folder notes(files);
    const Report report = check_notes(notes.path(), world.sources(), small_options());
    EXPECT_FALSE(report.passed()) << fault.name;
    const bool found = std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& one) {
      return !one.is_warning && one.file == fault.file && (fault.line == 0 || one.line == fault.line) && one.rule == fault.rule && one.sentence.find(fault.said) != std::string::npos;
    });
    EXPECT_TRUE(found) << fault.name << "\n" << listed(report);
    // One fault is one finding, but for notes that cannot be read at all.
    if (std::string(fault.rule) != "encoding") {
      EXPECT_LE(std::count_if(report.findings.begin(), report.findings.end(), [](const Finding& one) { return !one.is_warning; }), fault.rule == std::string("commit") ? 2 : 1) << fault.name << "\n" << listed(report);
    }
  }
}

TEST(PlantedFaults, OfOtherPartsDoNotFailOne) {
  const SmallWorld world;
  Files files = small_notes();
  files.erase("synthesis.md");
  files["megatron-sha.txt"] = "main\n";
  const Folder notes(files);
  CheckOptions options = small_options();
  options.only = {"fsdp-prefetch.md"};
  EXPECT_EQ(listed(check_notes(notes.path(), world.sources(), options)), "");
  options.only = {"synthesis.md"};
  EXPECT_EQ(check_notes(notes.path(), world.sources(), options).findings.size(), 1u);
}

TEST(PlantedFaults, OfALaterPartAreNotThoseOfThisOne) {
  const SmallWorld world;
  Files files = small_notes();
  std::string& note = files["megatron-tp-layers.md"];
  note = note.substr(0, note.find("### Choice 30"));
  files.erase("fsdp-prefetch.md");
  const Folder notes(files);
  CheckOptions options = small_options();
  ASSERT_TRUE(ask_for_part("03a", options));
  EXPECT_EQ(listed(check_notes(notes.path(), world.sources(), options)), "") << "two choices, and no more is asked for";
  ASSERT_TRUE(ask_for_part("03b", options));
  EXPECT_EQ(check_notes(notes.path(), world.sources(), options).findings.size(), 3u) << "choices, closing, figures";
  ASSERT_TRUE(ask_for_part("03c", options));
  EXPECT_EQ(check_notes(notes.path(), world.sources(), options).findings.size(), 1u) << "the file";
  EXPECT_FALSE(ask_for_part("03e", options));
}

TEST(PlantedFaults, OfACloneAreFoundWhereItWasLookedAt) {
  const SmallWorld world;
  Files files = small_notes();
  files["megatron-sha.txt"] = std::string(40, 'd') + "\n";
  const Folder notes(files);
  Sources sources = world.sources();
  // Nothing is known of that commit: it is said, and nothing fails.
  Report report = check_notes(notes.path(), sources, small_options());
  EXPECT_TRUE(report.passed()) << listed(report);
  EXPECT_EQ(report.unjudged.size(), 6u) << listed(report);
  // The learner's clone was looked at, and has it not.
  sources.mark_missing(std::string(40, 'd'), "commit dddddddd is not in clone");
  report = check_notes(notes.path(), sources, small_options());
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.findings.front().rule, "commit");
  // A file that the commit has not.
  Sources pinned = world.sources();
  Files other = small_notes();
  replace(other["megatron-tp-layers.md"], "`megatron/core/layers.py:L8-L12`", "`megatron/core/gone.py:L8-L12`");
  pinned.mark_missing(megatron_commit + ":megatron/core/gone.py", "megatron/core/gone.py does not exist at commit aaaaaaaa");
  report = check_notes(Folder(other).path(), pinned, small_options());
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().rule, "path");
}

TEST(PlantedFaults, OfTheSourcesThemselvesAreNotTheLearners) {
  const SmallWorld world;
  const std::string place = world.sources().place_of("NVIDIA/Megatron-LM", megatron_commit, "megatron/core/layers.py");
  std::ofstream(place, std::ios::app) << "one line more\n";
  const Report report = check_notes(Folder(small_notes()).path(), world.sources(), small_options());
  EXPECT_TRUE(report.passed()) << listed(report);
  EXPECT_EQ(report.judged_by_file, 5) << "the other note's";
  EXPECT_EQ(report.judged_by_table, 5);
  EXPECT_NE(listed(report).find("its sha256 differs"), std::string::npos);
}

TEST(Tables, JudgeWhereThereAreNoFiles) {
  const SmallWorld world;
  const Sources sources("nowhere", world.facts());
  Files files = small_notes();
  const Report good = check_notes(Folder(files).path(), sources, small_options());
  EXPECT_TRUE(good.passed()) << listed(good);
  EXPECT_EQ(good.judged_by_table, 10);
  EXPECT_EQ(good.unjudged.size(), 8u) << "names that the table lacks\n" << listed(good);
  replace(files["megatron-tp-layers.md"], "`place_10`", "`absent`");
  replace(files["megatron-tp-layers.md"], "L18-L22", "L150-L151");
  replace(files["fsdp-prefetch.md"], "L8-L12", "L18-L22");
  const Report bad = check_notes(Folder(files).path(), sources, small_options());
  ASSERT_EQ(bad.findings.size(), 3u) << listed(bad);
  EXPECT_EQ(bad.findings[0].rule, "symbol");
  EXPECT_EQ(bad.findings[1].rule, "range");
  EXPECT_NE(bad.findings[2].sentence.find("nearest line that has it is L10"), std::string::npos);
}

TEST(Tables, AreReadAsTheyAreWritten) {
  const Facts facts = SmallWorld().facts();
  base::Result<Facts> again = read_facts(facts_json(facts));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(facts_json(again.value()), facts_json(facts));
  EXPECT_EQ(again.value().projects.at(1).files.at(0).names.at("place_10"), (std::vector<int>{10}));
  EXPECT_EQ(again.value().projects.at(0).files.at(0).sha256, base::hex_of(base::sha256(source_text("layers"))));
  EXPECT_FALSE(read_facts("{\"projects\": [{}]}"));
  EXPECT_FALSE(read_facts("[")) << "cut off";
}

// ---- The real files ------------------------------------------------------------------------------------------

Facts real_facts() {
  base::Result<std::string> table = book::read_text(std::string(SHARDBOOK_SOURCE_DIR) + "/labs/03_reading/places.json");
  return read_facts(table.value()).value();
}

std::vector<std::string> good_sets() {
  const std::string root = SHARDBOOK_SOURCE_DIR;
  std::vector<std::string> sets = {root + "/solutions/03_reading"};
  for (const fs::directory_entry& entry : fs::directory_iterator(root + "/tests/data/labs/03")) sets.push_back(entry.path().string());
  return sets;
}

TEST(GoodNotes, OfTheReferenceAndOfThreeLearnersPassByTheTable) {
  ASSERT_GE(good_sets().size(), 4u);
  for (const std::string& set : good_sets()) {
    const Report report = check_notes(set, Sources("nowhere", real_facts()));
    EXPECT_TRUE(report.passed()) << set << "\n" << listed(report);
    EXPECT_GE(report.choices, 10) << set;
    EXPECT_GE(report.judged_by_table, 10) << set;
  }
}

TEST(GoodNotes, PassWithTheRealFilesWhereTheyAreHere) {
  const Sources sources(std::string(SHARDBOOK_SOURCE_DIR) + "/sources", real_facts());
  for (const Project& project : sources.facts().projects) {
    if (sources.paths(project.repository, project.commit).size() < project.files.size()) GTEST_SKIP() << "run `shardbook notes sources`";
    // The table is what the files say.
    for (const FileFacts& file : project.files) {
      base::Result<std::string> bytes = book::read_text(sources.place_of(project.repository, project.commit, file.path));
      std::vector<std::string> names;
      for (const auto& [name, lines] : file.names) names.push_back(name);
      const FileFacts now = facts_of(file.path, bytes.value(), names);
      EXPECT_EQ(now.sha256, file.sha256) << file.path;
      EXPECT_EQ(now.lines, file.lines) << file.path;
      EXPECT_EQ(now.names, file.names) << file.path;
    }
  }
  for (const std::string& set : good_sets()) {
    const Report report = check_notes(set, sources);
    EXPECT_TRUE(report.passed()) << set << "\n" << listed(report);
    EXPECT_EQ(report.judged_by_file, report.citations) << set;
  }
}

TEST(ReferenceSet, CitesLinesThatExist) {
  const Facts facts = real_facts();
  const Sources sources("nowhere", facts);
  base::Result<std::string> page = book::read_text(std::string(SHARDBOOK_SOURCE_DIR) + "/solutions/03-reading-ref.md");
  ASSERT_TRUE(page) << page.error();
  int cited = 0, number = 0;
  const std::vector<std::string> lines = words_of(page.value()).value().lines;
  for (const std::string& line : lines) {
    for (const Citation& one : citations_in(line, ++number)) {
      ++cited;
      const FileFacts* file = nullptr;
      for (const Project& project : facts.projects) {
        if (file == nullptr) file = facts.file(project.repository, project.commit, whole_path(sources, project.repository, project.commit, one.path));
      }
      ASSERT_NE(file, nullptr) << "line " << number << ": " << one.path;
      EXPECT_TRUE(1 <= one.first && one.first <= one.last && one.last <= file->lines) << "line " << number << ": " << one.path << ":L" << one.first;
    }
  }
  EXPECT_GE(cited, 30);
}

// ---- Diagrams -------------------------------------------------------------------------------------------------

TEST(Diagrams, MayHoldTheBlockInSubgraphs) {
  const diagram::Diagram shown = diagram::parse_diagram(
      "flowchart TB\n subgraph attention_part\n  q[\"column QKV\"] --> a[\"attention\"] --> o[\"row\"]\n end\n attention_part -->|all-reduce| mlp\n subgraph mlp\n  u[\"column\"] --> g[\"GELU\"] --> d[\"row\"]\n end\n"
      " mlp -->|all-reduce| y\n");
  ASSERT_TRUE(shown.ok) << shown.error;
  EXPECT_EQ(missing_in_block(shown), "");
  const diagram::Diagram apart = diagram::parse_diagram("flowchart TB\n subgraph one\n  u[column]\n  g[GELU]\n  d[row]\n end\n one -- all-reduce --> y\n one -- all-reduce --> z\n");
  EXPECT_NE(missing_in_block(apart).find("no way from a column"), std::string::npos) << "standing together is no arrow";
}

TEST(Diagrams, WithoutTimesAreNotJudgedForOverlap) {
  bool unjudged = false;
  EXPECT_EQ(missing_in_timeline(diagram::parse_diagram("sequenceDiagram\n H->>N: gather 0\n H->>N: gather 1\n H->>G: layer 0 computes\n H->>G: layer 1 computes\n"), unjudged), "");
  EXPECT_TRUE(unjudged);
  EXPECT_NE(missing_in_timeline(diagram::parse_diagram("sequenceDiagram\n H->>N: gather 0\n H->>G: layer 0\n"), unjudged).find("names 1 all-gather"), std::string::npos);
}

// ---- Comparing ------------------------------------------------------------------------------------------------

NoteAt note_at(const std::string& content, const std::string& commit = megatron_commit) {
  return {parse_note("megatron-tp-layers.md", words_of(content).value().lines), commit};
}

TEST(Comparisons, LayChoicesSideBySideByPlace) {
  const NoteAt reference = note_at("### One\n`core/a.py:L10-L20` `x`\n### Two\n`core/a.py:L50` `y`\n### Three\n`core/b.py:L10` `z`\n");
  const NoteAt mine = note_at("### Mine\n`a.py:L24` `q`\n### Other\n`b.py:L16` `q`\n### Also\n`core/a.py:L12` `q`\n");
  const Comparison comparison = compare_notes({mine}, {reference});
  ASSERT_EQ(comparison.rows.size(), 3u);
  ASSERT_EQ(comparison.rows[0].mine.size(), 2u) << "within five lines, and inside";
  EXPECT_EQ(comparison.rows[0].mine[0].title, "Mine");
  EXPECT_EQ(comparison.rows[0].mine[1].place, "a.py:L12");
  EXPECT_TRUE(comparison.rows[1].mine.empty());
  EXPECT_TRUE(comparison.rows[2].mine.empty()) << "six lines away";
  ASSERT_EQ(comparison.mine_alone.size(), 1u);
  EXPECT_EQ(comparison.mine_alone[0].second.title, "Other");
}

TEST(Comparisons, FindOneNameInTwoPlacesOfAFile) {
  const Comparison comparison = compare_notes({note_at("### Mine\n`core/a.py:L500` `same_name`\n### Other\n`core/b.py:L10` `same_name`\n")}, {note_at("### One\n`a.py:L10-L20` `same_name`\n")});
  ASSERT_EQ(comparison.rows.at(0).mine.size(), 1u);
  EXPECT_EQ(comparison.rows[0].mine[0].title, "Mine");
  EXPECT_EQ(comparison.mine_alone.size(), 1u) << "another file";
}

TEST(Comparisons, OfTwoCommitsGoByNames) {
  const Comparison comparison = compare_notes({note_at("### Mine\n`core/a.py:L500` `xx`\n### Near\n`core/a.py:L10` `qq`\n", torch_commit)}, {note_at("### One\n`core/a.py:L10-L20` `xx`\n")});
  ASSERT_EQ(comparison.rows.at(0).mine.size(), 1u);
  EXPECT_EQ(comparison.rows[0].mine[0].title, "Mine");
  EXPECT_EQ(comparison.by_name.size(), 1u);
  EXPECT_EQ(not_judged(comparison).size(), 3u);
}

TEST(Comparisons, KeepMarksAndLoseNone) {
  Comparison comparison = compare_notes({note_at("### Mine\n`a.py:L10` `x`\n")}, {note_at("### One | two\n`a.py:L10` `x`\n")});
  std::vector<std::string> kept;
  comparison.rows[0].reference.title = "One";
  ASSERT_TRUE(read_marks("# a head\nmegatron-tp-layers.md | One | differs | theirs | is later\nmegatron-tp-layers.md | Gone | had | of another day\n", comparison, kept));
  EXPECT_EQ(comparison.rows[0].mark, Mark::differs);
  EXPECT_EQ(comparison.rows[0].why, "theirs | is later");
  const std::string written = marks_text(comparison, kept);
  EXPECT_NE(written.find("megatron-tp-layers.md | One | differs | theirs | is later\n"), std::string::npos) << written;
  EXPECT_NE(written.find("Gone | had | of another day"), std::string::npos) << "a mark whose choice the reference lost";
  EXPECT_NE(read_marks("a | b | perhaps | c\n", comparison, kept).error().find("comparison.txt:1: 'perhaps' is no mark"), std::string::npos);
  EXPECT_FALSE(read_marks("a line\n", comparison, kept));
}

}  // namespace
}  // namespace shardbook::reading
