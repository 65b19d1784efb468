#include "engine/workbook/answers.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "engine/base/nearest.hpp"
#include "engine/base/printable.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;

namespace {

std::string trimmed(const std::string& word) {
  const std::size_t begin = word.find_first_not_of(" \t\r"), end = word.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : word.substr(begin, end - begin + 1);
}

const Answer* find(const Part& part, const std::string& key) {
  const auto found = std::find_if(part.answers.begin(), part.answers.end(), [&](const Answer& one) { return one.key == key; });
  return found == part.answers.end() ? nullptr : &*found;
}

// The key of a line "key = value", "" where it is none.
std::string key_of(const std::string& line) {
  const std::size_t equals = line.find('=');
  return line.empty() || line[0] == '#' || equals == std::string::npos ? "" : trimmed(line.substr(0, equals));
}

// How many of the unit are one of the other; 0 where they measure different things.
double scale_of(const std::string& unit) {
  if (unit == "ns") return 1e-9;
  if (unit == "us" || unit == "µs" || unit == "μs") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1;
  return 0;
}

bool is_close(double given, double right, double within) { return std::fabs(given - right) <= within * std::fabs(right) + 1e-12; }

// Whether an answer is this value: a word by its letters, a number within the tolerance.
bool means(const Answer& answer, const std::string& given, const Value& value) {
  if (!value.is_number) return plain_word(given) == plain_word(value.word);
  const std::optional<double> number = number_in(given, answer.unit);
  return number && is_close(*number, value.number, answer.unit == "rank" ? 0 : answer.within);
}

// What a wrong answer's `value` stands for: a fact, else a number, else a word.
base::Result<Value> value_of(Facts& facts, const Answer& answer, const std::string& value) {
  if (const std::optional<double> number = number_in(value, answer.unit)) return Value{true, *number, ""};
  base::Result<Value> fact = facts.value(value);
  if (fact || answer.choices.empty()) return fact;
  return Value{false, 0, value};
}

}  // namespace

std::string blank_answers(const Part& part) {
  std::string out = "# " + part.id + " · " + part.title + "\n# Write behind each '=', then: ./shardbook check " + part.id + "\n";
  int number = 0;
  for (const Answer& answer : part.answers) {
    std::string kinds;
    for (const std::string& choice : answer.choices) kinds += (kinds.empty() ? "" : ", ") + choice;
    out += "\n# " + std::to_string(++number) + ". " + answer.text;
    if (!kinds.empty()) out += " (" + kinds + ")";
    else if (!answer.unit.empty()) out += " (" + answer.unit + ")";
    out += "\n" + answer.key + " =\n";
  }
  return out;
}

base::Result<Answers> answers_from(const std::string& content, const Part& part, const std::string& name) {
  Answers answers;
  std::istringstream lines(content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trimmed(line).empty() || trimmed(line)[0] == '#') continue;
    const std::string key = key_of(line);
    if (key.empty()) return Error{text(name, ":", number, " is no answer: write KEY = VALUE, or begin it with #")};
    if (find(part, key) == nullptr) {
      std::vector<std::string> keys;
      for (const Answer& one : part.answers) keys.push_back(one.key);
      return Error{text(name, ":", number, ": ", part.id, " does not ask for '", base::printable(key), "'; the nearest is ", base::nearest(key, keys))};
    }
    const std::string value = trimmed(line.substr(line.find('=') + 1));
    if (value.empty()) continue;
    if (answers.contains(key)) return Error{text(name, ":", number, ": '", key, "' is answered twice")};
    answers[key] = value;
  }
  return answers;
}

std::string with_answers(const std::string& content, const Answers& answers) {
  std::string out;
  Answers left = answers;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const auto found = left.find(key_of(line));
    if (found != left.end()) {
      line = found->first + " = " + found->second;
      left.erase(found);
    }
    out += line + "\n";
  }
  for (const auto& [key, value] : left) out += key + " = " + value + "\n";
  return out;
}

std::optional<double> number_in(const std::string& given, const std::string& unit) {
  std::string word = trimmed(given);
  while (!word.empty() && (word[0] == '~' || word[0] == '<' || word[0] == '>')) word = trimmed(word.substr(1));
  for (const char* sign : {"≈", "−"}) {
    if (word.compare(0, 3, sign) == 0) word = (sign == std::string("−") ? "-" : "") + trimmed(word.substr(3));
  }
  if (plain_word(word).compare(0, 4, "rank") == 0) word = trimmed(word.substr(4));
  // A comma is a decimal point where no point stands, and not three digits follow.
  const std::size_t comma = word.find(',');
  if (comma != std::string::npos && word.find('.') == std::string::npos) word[comma] = '.';
  if (word.empty() || !(std::isdigit(static_cast<unsigned char>(word[0])) || std::string("+-.").find(word[0]) != std::string::npos)) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (end == word.c_str() || !std::isfinite(number)) return std::nullopt;
  const std::string behind = trimmed(end);
  if (behind.empty() || behind == unit || (unit == "us" && behind == "µs")) return number;
  if ((behind == "x" || behind == "×") && (unit.empty() || unit == "x" || unit == "×")) return number;
  const double from = scale_of(behind), to = scale_of(unit);
  if (from == 0 || to == 0) return std::nullopt;
  return number * from / to;
}

std::string plain_word(const std::string& given) {
  std::string word;
  for (const char letter : trimmed(given)) word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const char* ending : {"-bound", " bound"}) {
    const std::size_t at = word.rfind(ending);
    if (at != std::string::npos && at + std::string(ending).size() == word.size()) word.resize(at);
  }
  return word;
}

base::Result<Verdict> judge_answers(Facts& facts, const Part& part, const Answers& answers, const std::string& file) {
  Verdict verdict;
  std::string asked_for;
  const auto fail = [&](const std::string& rule, const std::string& message, const std::string& page) {
    verdict.findings.push_back({rule, message, file, 0, page, asked_for});
    return verdict;
  };
  int number = 0;
  for (const Answer& answer : part.answers) {
    ++number;
    asked_for = answer.key;
    const std::string asked = text("question ", number, ", ", answer.key);
    const auto given = answers.find(answer.key);
    if (given == answers.end()) return fail("unanswered", text(asked, ": no answer yet. ", answer.text), answer.page);
    base::Result<Value> right = facts.value(answer.fact);
    if (!right) return right.as_error();
    if (means(answer, given->second, right.value())) {
      if (right.value().is_number) verdict.figures[answer.key] = right.value().number;
      continue;
    }
    const std::string said = base::printable(given->second);
    if (right.value().is_number && !number_in(given->second, answer.unit)) {
      return fail("unreadable", text(asked, ": '", said, "' is no number", answer.unit.empty() ? "" : " of " + answer.unit), answer.page);
    }
    const bool known = answer.choices.empty() || std::any_of(answer.choices.begin(), answer.choices.end(), [&](const std::string& choice) {
      return plain_word(choice) == plain_word(given->second);
    });
    for (const Wrong& wrong : answer.wrong) {
      base::Result<Value> value = value_of(facts, answer, wrong.value);
      if (!value) return value.as_error();
      if (!means(answer, given->second, value.value())) continue;
      base::Result<std::string> message = facts.filled(wrong.message);
      if (!message) return message.as_error();
      return fail(answer.key, text(asked, ", you said ", said, ". ", message.value()), answer.page);
    }
    if (!known) {
      std::string choices;
      for (const std::string& choice : answer.choices) choices += (choices.empty() ? "" : ", ") + choice;
      return fail("unreadable", text(asked, ": '", said, "' is none of ", choices), answer.page);
    }
    base::Result<std::string> message = facts.filled(answer.otherwise);
    if (!message) return message.as_error();
    return fail(answer.key, text(asked, ", you said ", said, ". ", message.value()), answer.page);
  }
  verdict.passed = true;
  return verdict;
}

}  // namespace shardbook::workbook
