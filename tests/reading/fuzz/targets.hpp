// What must hold for any bytes that claim to be a learner's note: used by the fuzz target, and by fuzz_corpus_test.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/reading/begin.hpp"
#include "engine/reading/check.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::reading::fuzz {

using tests::require;

// Two small sources at one commit each, as a table and with no file at hand.
inline const Sources& small_sources() {
  static const Sources sources = [] {
    std::string text;
    for (int line = 1; line <= 60; ++line) text += line % 5 == 0 ? "def place_" + std::to_string(line) + "():\n" : "    value\n";
    const auto project = [&](const char* repository, char digit, const char* path) {
      return Project{repository, std::string(40, digit), "small", {facts_of(path, text, {"place_10", "place_15", "absent"})}};
    };
    return Sources("nowhere", Facts{{project("NVIDIA/Megatron-LM", 'a', "megatron/core/layers.py"), project("pytorch/pytorch", 'b', "torch/fsdp/runtime.py")}});
  }();
  return sources;
}

inline void check_page(const Note& note) {
  const int lines = static_cast<int>(note.lines.size());
  require(note.in_fence.size() == note.lines.size(), "each line is inside a fence or not");
  for (const Choice& choice : note.choices) {
    require(1 <= choice.line && choice.line <= choice.last_line && choice.last_line <= lines, "a choice has lines of the note");
    require(choice.words >= 0, "a choice has words or none");
    for (const Citation& citation : choice.citations) {
      require(!citation.path.empty() && 0 <= citation.first, "what is cited is a place");   // line 0, too: the check says that there is none
      require(choice.line <= citation.line && citation.line <= choice.last_line, "a choice has its own citations");
    }
  }
  for (const Fence& fence : note.fences) require(1 <= fence.line && fence.line - 1 <= lines && fence.lines.size() <= note.lines.size(), "a fence has lines of the note");
  for (const Figure& figure : note.figures) require(1 <= figure.line && figure.line <= lines, "a figure has a line of the note");
}

// The first byte says which of the three notes it is.
inline void check_bytes(std::string_view bytes) {
  if (bytes.empty()) return;
  static const std::string folder = tests::scratch_folder();
  const int which = static_cast<unsigned char>(bytes[0]) % 3;
  const std::string file = which == 2 ? synthesis_file : asked_notes().at(static_cast<std::size_t>(which)).file;
  bytes.remove_prefix(1);

  const base::Result<Words> words = words_of(bytes);
  if (!words) require(!words.error().empty() && words.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
  else check_page(parse_note(file, words.value().lines));

  const std::string path = folder + "/" + file;
  std::ofstream(path, std::ios::binary) << bytes;
  CheckOptions options;
  options.only = {file};
  options.switches = {"fsdp.prefetch"};
  options.spans = {"fsdp.prefetch"};
  options.step_ms = [](const std::string& run) -> base::Result<double> {
    if (run.size() % 2 == 0) return base::Error{"no such run"};
    return 100.0;
  };
  const Report report = check_notes(folder, small_sources(), options);
  for (const Finding& finding : report.findings) {
    require(!finding.sentence.empty() && finding.sentence.find('\n') == std::string::npos, "a finding is a sentence");
    require(finding.line >= 0, "a finding has a line, or the file");
  }

  // A choice that is begun leaves what stood there.
  const base::Result<Begun> begun = begin_choice(folder, file, "megatron/core/layers.py:L8-L12");
  std::ifstream now(path, std::ios::binary);
  const std::string after(std::istreambuf_iterator<char>(now), {});
  if (!begun) require(after == bytes, "where nothing is begun nothing has changed");
  else require(after.size() > bytes.size(), "what was begun is there");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
}

}  // namespace shardbook::reading::fuzz
