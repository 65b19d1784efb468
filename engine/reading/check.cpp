#include "engine/reading/check.hpp"

#include <algorithm>
#include <filesystem>

#include "engine/book/project.hpp"
#include "engine/reading/rules_diagrams.hpp"
#include "engine/reading/rules_note.hpp"
#include "engine/reading/words.hpp"

namespace shardbook::reading {

namespace fs = std::filesystem;
using base::text;

const std::vector<Asked>& asked_notes() {
  static const std::vector<Asked> asked = {{"megatron-tp-layers.md", "NVIDIA/Megatron-LM", "megatron-sha.txt"},
                                           {"fsdp-prefetch.md", "pytorch/pytorch", "pytorch-sha.txt"}};
  return asked;
}

base::Status ask_for_part(const std::string& part, CheckOptions& options) {
  options.only.clear();
  options.choices = least_choices;
  options.finished = part != "03a";
  if (part == "03a") options.choices = 2;
  if (part == "03a" || part == "03b") options.only = {"megatron-tp-layers.md"};
  else if (part == "03c") options.only = {"fsdp-prefetch.md"};
  else if (!part.empty() && part != "03d") return base::Error{text("lab 03 has no part '", part, "'; it has 03a, 03b, 03c and 03d")};
  return base::Done{};
}

bool Report::passed() const {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& one) { return one.is_warning; });
}

namespace {

// The note, or false where it cannot be read: then a finding says why.
bool read_note(const std::string& folder, const std::string& name, Report& report) {
  const fs::path path = fs::path(folder) / name;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    report.findings.push_back({name, 0, "file", "is missing", false});
    return false;
  }
  base::Result<std::string> bytes = book::read_text(path.string());
  if (!bytes) {
    report.findings.push_back({name, 0, "file", bytes.error(), false});
    return false;
  }
  base::Result<Words> words = words_of(bytes.value());
  if (!words) {
    report.findings.push_back({name, 0, "encoding", words.error(), false});
    return false;
  }
  if (!words.value().remark.empty()) report.findings.push_back({name, 1, "encoding", words.value().remark, true});
  report.notes.push_back(parse_note(name, std::move(words.value().lines)));
  return true;
}

}  // namespace

Report check_notes(const std::string& folder, const Sources& sources, const CheckOptions& options) {
  Report report;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    report.findings.push_back({folder, 0, "file", "is no folder: the lab asks for notes there", false});
    return report;
  }
  const auto is_asked = [&](const std::string& file) { return options.only.empty() || std::find(options.only.begin(), options.only.end(), file) != options.only.end(); };
  for (const Asked& asked : asked_notes()) {
    if (!is_asked(asked.file)) continue;
    check_commit(folder, asked, sources, report);
    if (!read_note(folder, asked.file, report)) continue;
    const std::string commit = commit_of(folder, asked);
    const Note note = report.notes.back();
    check_fences(note, report);
    check_choices(note, options, report);
    check_citations(note, asked, commit, sources, report);
    check_ties(note, options, report);
    if (options.finished || note.has_closing) check_closing(note, report);
    check_pasted(note, asked.repository, commit, sources, report);
    check_figures(note, options, report);
  }
  if (is_asked(synthesis_file) && read_note(folder, synthesis_file, report)) {
    const Note note = report.notes.back();
    check_fences(note, report);
    check_diagrams(note, report);
  }

  // By file in the order in which they were looked at, then by line; what fails before what warns.
  std::vector<std::string> order;
  for (const Finding& one : report.findings) {
    if (std::find(order.begin(), order.end(), one.file) == order.end()) order.push_back(one.file);
  }
  const auto rank = [&](const Finding& one) { return std::find(order.begin(), order.end(), one.file) - order.begin(); };
  std::stable_sort(report.findings.begin(), report.findings.end(), [&](const Finding& left, const Finding& right) {
    if (left.is_warning != right.is_warning) return right.is_warning;
    return rank(left) != rank(right) ? rank(left) < rank(right) : left.line < right.line;
  });
  // Two citations of a line may have one fault.
  const auto same = [](const Finding& left, const Finding& right) { return left.file == right.file && left.line == right.line && left.rule == right.rule && left.sentence == right.sentence; };
  report.findings.erase(std::unique(report.findings.begin(), report.findings.end(), same), report.findings.end());
  return report;
}

}  // namespace shardbook::reading
