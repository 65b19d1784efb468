#include "engine/workbook/exercise.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/workbook/child.hpp"
#include "engine/workbook/scratch.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Json = nlohmann::json;

namespace {

// What engine/workbook/guard.cpp exits with, and begins its last line with.
constexpr int guard_code = 97;
constexpr const char* guard_words = "shardbook-guard: ";

constexpr double compile_seconds = 120;

struct Recipe {
  std::string compiler;
  std::vector<std::string> compile, link;
};

base::Result<Recipe> read_recipe(const std::string& path) {
  base::Result<std::string> content = book::read_text(path);
  if (!content) return Error{text(content.error(), "; run ./shardbook build, which makes it")};
  try {
    const Json json = base::parse_json(content.value());
    return Recipe{json.at("compiler").get<std::string>(), json.at("compile").get<std::vector<std::string>>(),
                  json.at("link").get<std::vector<std::string>>()};
  } catch (const Json::exception& error) {
    return Error{text(path, " cannot be read (", error.what(), "); run ./shardbook build, which makes it anew")};
  }
}

Verdict failed(Finding finding) {
  Verdict verdict;
  verdict.findings.push_back(std::move(finding));
  return verdict;
}

// What stands last in an output, on one line.
std::string last_line(const std::string& said) {
  std::istringstream lines(said);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t") != std::string::npos) last = line;
  }
  return base::printable(last.substr(0, 300));
}

std::string seconds_text(double seconds) {
  std::ostringstream out;
  out << seconds;
  return out.str();
}

// How the program ended, where that is the learner's code's doing.
Finding misbehaviour(const ChildEnd& end, const std::string& file, const TrialOptions& options) {
  Finding finding;
  finding.file = file;
  const bool memory = end.said.find("bad_alloc") != std::string::npos || end.said.find("Cannot allocate memory") != std::string::npos ||
                      end.said.find("out of memory") != std::string::npos;
  if (end.why == ChildEnd::Why::out_of_time && end.cpu_seconds < options.seconds / 2) {
    finding.rule = starved_rule;
    finding.message = text("it got ", seconds_text(std::round(end.cpu_seconds)), " s of the processor in ", seconds_text(std::round(end.seconds)),
                           " s, for the machine is busy with other work: nothing is noted, try again when it is not");
  } else if (end.why == ChildEnd::Why::out_of_time) {
    finding.rule = "endless";
    finding.message = text("it did not end within ", seconds_text(options.seconds),
                           " s and was stopped: look for a loop whose condition never becomes false");
  } else if (end.why == ChildEnd::Why::idle) {
    finding.rule = "deadlock";
    finding.message = text("it was stopped, for nothing in it had run for ", seconds_text(options.idle_seconds),
                           " s: each of its threads waits. Does every rank call the same collectives in the same order, and is every event "
                           "that is awaited recorded?");
  } else if (memory) {
    finding.rule = "memory";
    finding.message = text("it asked for more than the ", options.memory >> 20,
                           " MiB that an exercise may have: look for a buffer that grows, or a size in bytes where elements are meant");
  } else if (end.why == ChildEnd::Why::exited && end.code == guard_code && end.said.find(guard_words) != std::string::npos) {
    const std::size_t begin = end.said.rfind(guard_words) + std::string(guard_words).size();
    finding.rule = "outside";
    finding.message = text("it was stopped, for it would have written outside its own folder: ",
                           base::printable(end.said.substr(begin, end.said.find('\n', begin) - begin)),
                           ". An exercise needs no files; a scratch file may lie in the folder where it runs");
  } else if (end.why == ChildEnd::Why::signalled) {
    finding.rule = "crash";
    const char* what = end.code == SIGSEGV  ? "it read or wrote memory that is not its own (a segmentation fault)"
                       : end.code == SIGABRT ? "it was ended by an error that nothing caught"
                       : end.code == SIGFPE  ? "it divided a whole number by zero"
                                             : "it was ended by a signal";
    const std::string last = last_line(end.said);
    finding.message = text(what, last.empty() ? std::string() : text("; its last words: ", last));
  } else {
    finding.rule = "ended";
    const std::string last = last_line(end.said);
    finding.message = text("it ended with exit code ", end.code, " before it was judged", last.empty() ? std::string() : text(": ", last));
  }
  return finding;
}

std::string from_root(const std::string& path, const std::string& root) {
  const std::string prefix = root + "/";
  return path.compare(0, prefix.size(), prefix) == 0 ? path.substr(prefix.size()) : path;
}

std::string place_of(const Json& finding) {
  std::string place;
  for (const char* key : {"rank", "layer", "phase", "span"}) {
    if (!finding.contains(key) || finding.at(key).is_null()) continue;
    const Json& value = finding.at(key);
    if (value.is_string() && value.get<std::string>().empty()) continue;
    const bool numbered = key == std::string("rank") || key == std::string("layer");
    place += text(place.empty() ? "" : " · ", numbered ? text(key, " ") : std::string(), value.is_string() ? value.get<std::string>() : base::json_text(value));
  }
  return place;
}

}  // namespace

std::string own_build_folder() { return SHARDBOOK_BUILD_FOLDER; }

base::Status provide_exercise(const std::string& root, const Place& place, const std::string& build_folder) {
  const std::string folder = build_folder.empty() ? own_build_folder() : build_folder;
  const fs::path recipe = fs::path(folder) / "labs" / (place.part->id + ".json");
  const base::Result<Recipe> read = read_recipe(recipe.string());
  if (!read) return read.as_error();

  // Everything that it was made of is older than the library, or it is made anew.
  std::error_code missing;
  fs::file_time_type oldest = fs::file_time_type::max();
  const std::string name = "exercise_" + place.part->id;
  for (const std::string& word : read.value().link) {
    if (word.find(name) == std::string::npos) continue;
    const fs::path library = fs::path(word).is_absolute() ? fs::path(word) : fs::path(folder) / word;
    oldest = std::min(oldest, fs::exists(library, missing) ? fs::last_write_time(library, missing) : fs::file_time_type::min());
  }
  bool current = oldest != fs::file_time_type::max() && oldest != fs::file_time_type::min();
  for (const char* sources : {"labs", "engine"}) {
    const fs::path of = sources == std::string("labs") ? fs::path(root) / "labs" / place.lab->name : fs::path(root) / sources;
    for (auto one = fs::recursive_directory_iterator(of, missing); current && one != fs::end(one); ++one) {
      const std::string extension = one->path().extension().string();
      if (extension != ".cpp" && extension != ".hpp") continue;
      // What the learner starts from is not part of what judges it.
      const std::string file = one->path().filename().string();
      const std::vector<std::string>& others = place.part->by_seed;
      if (one->path().parent_path() == of && (file == place.part->exercise || std::find(others.begin(), others.end(), file) != others.end())) continue;
      current = one->last_write_time(missing) <= oldest;
    }
  }
  if (current) return base::Done{};

  ChildOptions options;
  options.seconds = 1800;
  base::Result<ChildEnd> built = run_child({"cmake", "--build", folder, "--target", name}, options);
  if (!built) return built.as_error();
  if (built.value().why != ChildEnd::Why::exited || built.value().code != 0) {
    const Finding first = first_error(built.value().said, root, "", "");
    return Error{text("what checks ", place.part->id, " could not be built: ", first.message, first.file.empty() ? "" : text(" (", first.file, ":", first.line, ")"))};
  }
  return base::Done{};
}

namespace {

// What a line of ld's, gold's or lld's means, or nothing.
std::string linker_error(const std::string& line) {
  const auto behind = [&](const char* words) {
    const std::size_t at = line.find(words);
    return at == std::string::npos ? std::string() : base::printable(line.substr(at + std::string_view(words).size()));
  };
  for (const char* words : {"undefined reference to ", "undefined symbol: "}) {
    if (const std::string name = behind(words); !name.empty()) return text("it lacks ", name, ", which the check calls");
  }
  for (const char* words : {"multiple definition of ", "duplicate symbol: "}) {
    if (const std::string name = behind(words); !name.empty()) return text("it defines ", name, " a second time");
  }
  return {};
}

}  // namespace

Finding first_error(const std::string& said, const std::string& root, const std::string& file, const std::string& header) {
  Finding finding;
  finding.rule = "compile";
  finding.file = file;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (std::string message = linker_error(line); !message.empty()) {
      finding.rule = "link";
      finding.message = std::move(message);
      break;
    }
    const std::size_t plain = line.find(": error: "), fatal = line.find(": fatal error: ");
    const std::size_t at = std::min(plain, fatal);
    if (at != std::string::npos) {
      // path:line:column
      const std::string where = line.substr(0, at);
      const std::size_t column = where.rfind(':');
      const std::size_t number = column == std::string::npos || column == 0 ? std::string::npos : where.rfind(':', column - 1);
      if (number != std::string::npos) {
        finding.file = from_root(where.substr(0, number), root);
        finding.line = std::atoi(where.c_str() + number + 1);
      }
      finding.message = base::printable(line.substr(line.find("error: ", at) + 7));
      break;
    }
  }
  if (finding.message.empty()) finding.message = text("the compiler stopped: ", last_line(said));

  struct Advice {
    const char* part;
    const char* advice;
  };
  static constexpr Advice known[] = {
      {"or ';'", "the statement before it lacks its semicolon"},
      {"expected ';'", "the statement before it lacks its semicolon"},
      {"expected '}'", "a brace that was opened is not closed"},
      {"was not declared", "is the name spelt as in the header?"},
      {"undeclared identifier", "is the name spelt as in the header?"},
      {"has no member", "the header lists the members that there are"},
      {"no member named", "the header lists the members that there are"},
      {"no matching function", "compare the arguments with the header"},
      {"cannot convert", "compare the types with the header"},
      {"it lacks ", "keep its name, namespace and arguments as the starter has them"},
      {"No such file", "an exercise includes its lab.hpp and the standard library"},
  };
  for (const Advice& one : known) {
    if (finding.message.find(one.part) == std::string::npos) continue;
    finding.message += text("; ", one.advice);
    if (std::string(one.advice).find("header") != std::string::npos && !header.empty()) finding.page = header;
    break;
  }
  return finding;
}

base::Result<Verdict> verdict_from_json(const std::string& content, const std::string& path) {
  Verdict verdict;
  try {
    const Json json = base::parse_json(content);
    verdict.passed = json.at("passed").get<bool>();
    for (const Json& one : json.at("findings")) {
      Finding finding;
      finding.rule = one.at("rule").get<std::string>();
      finding.message = one.at("message").get<std::string>();
      if (finding.message.empty()) return Error{text(path, " holds a finding that says nothing")};
      finding.file = one.contains("file") && one.at("file").is_string() ? one.at("file").get<std::string>() : "";
      finding.line = one.contains("line") && one.at("line").is_number() ? one.at("line").get<int>() : 0;
      finding.page = one.contains("page") && one.at("page").is_string() ? one.at("page").get<std::string>() : "";
      finding.place = place_of(one);
      verdict.findings.push_back(std::move(finding));
    }
    if (json.contains("figures")) {
      for (const auto& [name, value] : json.at("figures").items()) {
        if (value.is_number()) verdict.figures[name] = value.get<double>();
      }
    }
  } catch (const Json::exception& error) {
    return Error{text(path, " holds no findings that can be read: ", error.what())};
  }
  if (!verdict.passed && verdict.findings.empty()) return Error{text(path, " says that it did not pass, and not why")};
  return verdict;
}

base::Result<Verdict> try_exercise(const std::string& root, const Place& place, const std::string& file, const TrialOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string folder = options.build_folder.empty() ? own_build_folder() : options.build_folder;
  const base::Result<Recipe> recipe = read_recipe((fs::path(folder) / "labs" / (place.part->id + ".json")).string());
  if (!recipe) return recipe.as_error();
  const Scratch scratch("check");
  if (!scratch.is_there()) return Error{"cannot make a scratch folder: is the disk full, or TMPDIR wrong?"};
  const std::string header = "labs/" + place.lab->name + "/lab.hpp", shown = from_root(file, root);

  // Compile and link: paths of the recipe may be relative to the build folder.
  const std::string program = scratch / "exercise";
  std::vector<std::string> compile = {recipe.value().compiler};
  compile.insert(compile.end(), recipe.value().compile.begin(), recipe.value().compile.end());
  if (options.strict) compile.push_back("-Werror");
  compile.insert(compile.end(), {"-c", file, "-o", scratch / "exercise.o"});
  std::vector<std::string> link = {recipe.value().compiler, scratch / "exercise.o", "-o", program};
  link.insert(link.end(), recipe.value().link.begin(), recipe.value().link.end());
  ChildOptions building;
  building.folder = folder;
  building.seconds = compile_seconds;
  building.variables = {{"LC_ALL", "C"}, {"GCC_COLORS", ""}};
  for (const std::vector<std::string>& words : {compile, link}) {
    base::Result<ChildEnd> built = run_child(words, building);
    if (!built) return built.as_error();
    if (built.value().why == ChildEnd::Why::exited && built.value().code == 0) continue;
    return failed(first_error(built.value().said, root, shown, header));
  }

  // Run, in a folder of its own.
  std::error_code ignored;
  fs::create_directory(scratch / "run", ignored);
  const std::string result = scratch / "run/result.json";
  std::vector<std::string> words = {program, "--result", result};
  if (options.seed != 0) words.insert(words.end(), {"--seed", std::to_string(options.seed)});
  ChildOptions running;
  running.folder = scratch / "run";
  running.seconds = options.seconds;
  running.patience = options.patience;
  running.idle_seconds = options.idle_seconds;
  running.variables = {{"TMPDIR", scratch / "run"},   {"HOME", scratch / "run"},       {"OPENBLAS_NUM_THREADS", "1"},
                       {"MALLOC_ARENA_MAX", "2"},     {"SHARDBOOK_ROOT", root},        {"SHARDBOOK_GUARDED", scratch / "run"}};
  if (!std::string(SHARDBOOK_GUARD).empty()) {
    running.memory = options.memory;
    running.variables.emplace_back("LD_PRELOAD", SHARDBOOK_GUARD);
  }
  base::Result<ChildEnd> end = run_child(words, running);
  if (!end) return end.as_error();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  if (end.value().why != ChildEnd::Why::exited || end.value().code != 0) {
    Verdict verdict = failed(misbehaviour(end.value(), shown, options));
    verdict.seconds = seconds();
    return verdict;
  }
  base::Result<std::string> content = book::read_text(result);
  if (!content) {
    return failed({"ended", "it ended the program before it was judged: an exercise returns to its caller, and calls no exit", shown, 0, "", ""});
  }
  base::Result<Verdict> verdict = verdict_from_json(content.value(), "what the exercise left");
  if (!verdict) return verdict;
  verdict.value().seconds = seconds();
  for (Finding& finding : verdict.value().findings) finding.file = from_root(finding.file, root);
  return verdict;
}

}  // namespace shardbook::workbook
