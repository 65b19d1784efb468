// workbook/new_lab: a lab to fill in, complete in form; see lint.hpp.
#include <cctype>
#include <filesystem>
#include <sstream>

#include "engine/book/project.hpp"
#include "engine/workbook/learner.hpp"
#include "engine/workbook/lint.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

// What stands for the lab in the templates: %N its number, %F its folder.
std::string filled(std::string content, const std::string& number, const std::string& folder) {
  for (const auto& [mark, value] : {std::pair<std::string, std::string>{"%N", number}, {"%F", folder}}) {
    for (std::size_t at = content.find(mark); at != std::string::npos; at = content.find(mark, at + value.size())) content.replace(at, mark.size(), value);
  }
  return content;
}

constexpr const char* json_template = R"({
  "id": "%N",
  "title": {"en": "TODO: what the lab is about"},
  "note": "03",
  "options": {"model": "grammar-tutor"},
  "layouts": {"host": [{"tp": 2, "fsdp": 2}], "cuda": [{"tp": 2, "fsdp": 2}]},
  "question": "TODO: the one question of the lab?",
  "stakes": "TODO: what its answer is worth, in percent and money; `next` shows it with the first part.",
  "parts": [
    {
      "id": "%Na",
      "title": "Write: TODO",
      "minutes": 40,
      "kind": "exercise",
      "exercise": "work.cpp",
      "question": "TODO: the question of this part?",
      "predict": [{"key": "doubled", "text": "TODO: a figure that is found in this part. Twice 21 is?", "unit": "x", "found": "doubled"}],
      "run": ["./shardbook check %Na"],
      "produce": "experiments/%F/work.cpp",
      "hints": ["TODO: a question.", "TODO: a place in the trace or the code.", "TODO: nearly there."],
      "cards": [{"q": "TODO?", "a": "TODO."}, {"q": "TODO?", "a": "TODO."}, {"q": "TODO?", "a": "TODO."}],
      "transfer": {"q": "TODO: the same idea elsewhere?", "a": "TODO."},
      "why": "TODO: the explanation, shown on a pass, at most 60 words: a span, a number, and what happened without the cause."
    }
  ]
}
)";

constexpr const char* text_template = R"(# Lab %N: TODO

**TODO: the question.** Which regime is this step in, and which one change pays?

| | |
|---|---|
| Time | 40 minutes |
| You need | no GPU |
| You end with | `experiments/%F/work.cpp` |

<a id="a"></a>
## %Na Write: TODO

TODO: what is given, what to write, what to see, and a counterfactual for each "because". The interface is [lab.hpp](lab.hpp).

**In PyTorch** you would write: TODO.

**Transfer.** TODO?

<a id="found"></a>
## What there is to find

For when you have your own numbers: `./shardbook read %Na --found` shows one part of this, `./shardbook read labs/%F --found` all of it.

### %Na

TODO: the table of figures, and what the reader should have seen.
)";

constexpr const char* header_template = R"(// Lab %N: TODO: what you write, in one page.
#pragma once

namespace shardbook::lab%N {

// TODO: the contract: units, who calls it, when.
double doubled(double number);

}  // namespace shardbook::lab%N
)";

std::string code(const std::string& first_line, const std::string& body) {
  return first_line + "#include \"labs/%F/lab.hpp\"\n\nnamespace shardbook::lab%N {\n\ndouble doubled(double number) { return " + body + "; }\n\n}  // namespace shardbook::lab%N\n";
}

constexpr const char* harness_template = R"(// labs/%F/harness/work: TODO: when is this exercise right?
#include <cstdio>

#include "labs/%F/lab.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab%N {

namespace {

// What the learner sees is the first finding: what was expected, what was found, where.
void judge(const labs::Request&, labs::Verdict& verdict) {
  const double found = doubled(21);
  verdict.figure("doubled", 42);
  if (found == 42) return;
  char message[120];
  std::snprintf(message, sizeof message, "doubled(21) is %g, and 42 was expected", found);
  labs::Finding finding;
  finding.rule = "value";
  finding.message = message;
  finding.where.file = "experiments/%F/work.cpp";
  finding.page = "labs/%F/text.md";
  verdict.fail(finding);
}

}  // namespace

}  // namespace shardbook::lab%N

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab%N::judge); }
)";

}  // namespace

base::Result<std::vector<std::string>> make_lab(const std::string& root, const std::string& number, const std::string& name) {
  const auto is_digit = [](char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; };
  if (number.size() != 2 || !is_digit(number[0]) || !is_digit(number[1])) return Error{text("'", number, "' is no lab's number: two digits, as in `./shardbook lab new 05 sequence_parallel`")};
  if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
    return Error{text("'", name, "' is no lab's name: small letters, digits and _, as in `./shardbook lab new 05 sequence_parallel`")};
  }
  for (const std::string& lab : book::lab_names(root)) {
    if (lab.substr(0, 2) == number) return Error{text("there is a lab ", number, " already: labs/", lab)};
  }
  const std::string folder = number + "_" + name, lab = "labs/" + folder, wrong = "tests/data/labs/" + number + "a/";
  const std::vector<std::pair<std::string, std::string>> files = {
      {lab + "/lab.json", json_template},
      {lab + "/text.md", text_template},
      {lab + "/lab.hpp", header_template},
      {lab + "/work.cpp", code("", "number + 0")},
      {lab + "/harness/work.cpp", harness_template},
      {lab + "/CMakeLists.txt", "shardbook_exercise(%Na FILE work.cpp HARNESS harness/work.cpp USES base)\n"},
      {"solutions/" + folder + "/work.cpp", code("", "2 * number")},
      {"solutions/" + folder + "/solution.md", "# Lab %N: one way to do it, and answers\n\n## %Na Write: TODO\n\nTODO: why, and all questions answered.\n"},
      {wrong + "starter.txt", "doubled(21) is 21\n"},
      {wrong + "squared.cpp", code("// fails with: doubled(21) is 441\n", "number * number")},
      {wrong + "halved.cpp", code("// fails with: doubled(21) is 10.5\n", "number / 2")},
      {wrong + "nothing.cpp", code("// fails with: doubled(21) is 0\n", "0 * number")},
  };
  std::vector<std::string> made;
  for (const auto& [path, content] : files) {
    const std::string whole = (fs::path(root) / path).string();
    std::error_code ignored;
    if (fs::exists(whole, ignored)) return Error{text(path, " is there already, and nothing is overwritten")};
    if (base::Status written = write_whole(whole, filled(content, number, folder)); !written) return written.as_error();
    made.push_back(path);
  }
  return made;
}

}  // namespace shardbook::workbook
