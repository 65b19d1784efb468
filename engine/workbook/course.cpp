#include "engine/workbook/course.hpp"

#include <algorithm>
#include <cmath>

#include "engine/workbook/answers.hpp"
#include "engine/workbook/learner.hpp"

namespace shardbook::workbook {

using base::Error;
using base::text;

std::vector<Place> Course::places() const {
  std::vector<Place> all;
  for (const Lab& lab : labs) {
    for (const Part& part : lab.parts) all.push_back({&lab, &part, progress.seed});
  }
  return all;
}

PartState Course::state(const Place& place) const { return state_of(progress, place.part->id, own_hash(root, place)); }

std::optional<Place> Course::current() const {
  for (const Place& place : places()) {
    if (!state(place).passed) return place;
  }
  return std::nullopt;
}

base::Result<Course> open_course(const std::string& root) {
  base::Result<std::vector<Lab>> labs = all_labs(root);
  if (!labs) return labs.as_error();
  if (labs.value().empty()) return Error{text("no lab below ", root, "/labs has parts: is this clone whole?")};
  base::Result<Progress> progress = read_progress(root);
  if (!progress) return progress.as_error();
  return Course{root, std::move(labs).value(), std::move(progress).value()};
}

base::Result<std::string> prediction_of(const Part& part, const Prediction& prediction, const std::string& given) {
  const std::size_t begin = given.find_first_not_of(" \t\r"), end = given.find_last_not_of(" \t\r");
  if (begin == std::string::npos) return Error{text(prediction.key, " has no value")};
  const std::string word = given.substr(begin, end - begin + 1);
  const bool is_word = std::any_of(part.answers.begin(), part.answers.end(), [&](const Answer& one) {
    return !one.choices.empty() && (one.key == prediction.found || one.fact == prediction.found);
  });
  if (is_word) return plain_word(word);
  const std::optional<double> number = number_in(word, prediction.unit);
  if (!number || *number < 0) {
    return Error{text("'", word, "' is no number", prediction.unit.empty() ? "" : " of " + prediction.unit, ": a guess will do, such as ", prediction.key, "=10")};
  }
  return shown({true, *number, ""});
}

std::optional<std::string> part_that_asks_of(const std::string& root, const std::string& run) {
  const std::size_t slash = run.find_last_of('/');
  const std::string name = slash == std::string::npos ? run : run.substr(slash + 1);
  const base::Result<Course> course = open_course(root);
  if (!course || name.empty()) return std::nullopt;
  for (const Place& place : course.value().places()) {
    if (place.part->kind != Kind::answers) continue;
    const bool names_it = std::any_of(place.part->run.begin(), place.part->run.end(), [&](const std::string& command) { return command.find("/" + name) != std::string::npos; });
    const PartState state = course.value().state(place);
    if (names_it && state.begun && !state.passed) return place.part->id;
  }
  return std::nullopt;
}

base::Result<std::vector<Compared>> compared(Facts& facts, const Part& part, const PartState& state, const std::map<std::string, double>& figures) {
  std::vector<Compared> all;
  if (!state.predicted) return all;
  for (const Prediction& one : part.predict) {
    const auto said = state.predicted->find(one.key);
    if (said == state.predicted->end()) continue;
    Compared line{one.key, one.text, one.unit, said->second, "", std::nullopt, false};
    Value found{false, 0, ""};
    if (const auto figure = figures.find(one.found); figure != figures.end()) {
      found = {true, figure->second, ""};
    } else if (const std::optional<double> number = number_in(one.found, one.unit)) {
      found = {true, *number, ""};
    } else if (base::Result<Value> fact = facts.value(one.found)) {
      found = fact.value();
    } else if (part.kind == Kind::answers) {
      return fact.as_error();
    }
    line.found = shown(found);
    const std::optional<double> predicted = number_in(said->second, one.unit);
    if (!found.is_number) line.same = plain_word(said->second) == plain_word(found.word);
    else if (one.unit == "rank") line.same = predicted && *predicted == found.number;
    else if (predicted && *predicted > 0 && found.number > 0) line.ratio = std::max(*predicted / found.number, found.number / *predicted);
    all.push_back(std::move(line));
  }
  return all;
}

Score score_of(const Course& course) {
  Score score;
  std::vector<double> ratios;
  for (const Place& place : course.places()) {
    const PartState state = course.state(place);
    const Event* pass = nullptr;
    for (const Event& event : course.progress.events) {
      if (event.part == place.part->id && event.what == "passed") pass = &event;
    }
    if (pass == nullptr || !state.predicted) continue;
    for (const Prediction& one : place.part->predict) {
      const auto said = state.predicted->find(one.key), found = pass->values.find(one.key);
      if (said == state.predicted->end() || found == pass->values.end()) continue;
      const std::optional<double> left = number_in(said->second, one.unit), right = number_in(found->second, one.unit);
      if (one.unit == "rank" || !left || !right) {
        ++score.words;
        score.right_words += plain_word(said->second) == plain_word(found->second);
      } else if (*left > 0 && *right > 0) {
        ratios.push_back(std::max(*left / *right, *right / *left));
      }
    }
  }
  score.numbers = static_cast<int>(ratios.size());
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    score.middle_ratio = ratios[ratios.size() / 2];
  }
  return score;
}

std::string sentence(const Compared& one) {
  const bool rank = one.unit == "rank";
  const std::string unit = one.unit.empty() || rank ? "" : " " + one.unit;
  std::string out = text("you ", rank ? "rank " : "", one.predicted, unit);
  if (one.found.empty()) return out;
  out += text(", found ", rank ? "rank " : "", one.found, unit);
  if (one.ratio) return out + text(": ", shown({true, *one.ratio, ""}, 2), " ×");
  return out + (one.same ? ": right" : "");
}

std::optional<DueCard> due_card(const Course& course, const std::string& not_of) {
  // Those that were shown longest ago, or never; of equals another after each check.
  std::vector<DueCard> due;
  int longest_ago = 1 << 30;
  for (const Place& place : course.places()) {
    if (place.part->id == not_of || !course.state(place).passed) continue;
    for (std::size_t i = 0; i < place.part->cards.size(); ++i) {
      const int number = static_cast<int>(i) + 1;
      int last_shown = 0;
      for (const Event& event : course.progress.events) {
        const auto shown_number = event.values.find("number");
        if (event.part == place.part->id && event.what == "card" && shown_number != event.values.end() &&
            shown_number->second == std::to_string(number)) {
          last_shown = event.line;
        }
      }
      if (last_shown > longest_ago) continue;
      if (last_shown < longest_ago) due.clear();
      longest_ago = last_shown;
      due.push_back(DueCard{place.part->id, number, place.part->cards[i]});
    }
  }
  if (due.empty()) return std::nullopt;
  return due[course.progress.events.size() % due.size()];
}

}  // namespace shardbook::workbook
