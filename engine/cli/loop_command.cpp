#include "engine/cli/loop_command.hpp"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <ostream>

#include "engine/base/nearest.hpp"
#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/help.hpp"
#include "engine/cli/input.hpp"
#include "engine/workbook/learner.hpp"

namespace shardbook::cli {

using base::Error;
using base::text;
using workbook::Course;
using workbook::Part;
using workbook::PartState;
using workbook::Place;

void say(Console& console, const std::string& content, const std::string& first, const std::string& lead) {
  const std::string indent = lead.empty() ? std::string(static_cast<std::size_t>(width_of(first)), ' ') : lead;
  std::string before = first;
  for (const std::string& line : wrap(content, std::min(console.text_columns(), 80) - width_of(first))) {
    console.out << before << line << "\n";
    before = indent;
  }
}

void point_to(Console& console, const std::string& word, const std::string& command, const std::string& reason) {
  console.out << pad_right(word, 6) << bold(command, console.out_is_terminal) << (reason.empty() ? "" : "   " + dim(reason, console.out_is_terminal)) << "\n";
}

std::string heading_of(const Place& place, const PartState& state) {
  const std::string time = state.passed ? "passed" : text(state.begun ? text(state.minutes, " of ") : std::string(), place.part->minutes, " min");
  return text(place.part->id, " · ", place.part->title, " · ", time);
}

base::Result<Course> course_here(Console& console) {
  base::Result<Course> course = workbook::open_course(book::project_root());
  if (!course) return course;
  const std::vector<std::string>& problems = course.value().progress.problems;
  if (!problems.empty()) {
    console.err << "note: " << base::printable(problems.front());
    if (problems.size() > 1) console.err << " (and " << problems.size() - 1 << " more lines)";
    console.err << "\n";
  }
  return course;
}

base::Result<Place> part_meant(const Course& course, const std::vector<std::string>& places) {
  if (places.empty()) {
    if (const std::optional<Place> current = course.current()) return *current;
    return Error{"every part is passed: name one, as in `./shardbook check 00a`"};
  }
  base::Result<std::vector<Place>> parts = workbook::find_parts(course.labs, places.front(), course.progress.seed);
  if (!parts) return parts.as_error();
  for (const Place& place : parts.value()) {
    if (!course.state(place).passed) return place;
  }
  return parts.value().front();
}

namespace {

// At most so many columns, the last of them "…" where it was longer.
std::string cut(std::string title, std::size_t columns) {
  std::size_t seen = 0, keep = 0;
  for (std::size_t at = 0; at < title.size(); ++at) {
    if ((static_cast<unsigned char>(title[at]) & 0xC0) == 0x80) continue;
    if (++seen == columns) keep = at;
  }
  if (seen <= columns) return title;
  return title.substr(0, keep) + "…";
}

std::vector<const workbook::Prediction*> missing(const Part& part, const std::map<std::string, std::string>& given) {
  std::vector<const workbook::Prediction*> all;
  for (const workbook::Prediction& one : part.predict) {
    if (!given.contains(one.key)) all.push_back(&one);
  }
  return all;
}

// KEY=VALUE words become predictions. Errors: no such key, no value.
base::Status take_words(const Part& part, const std::vector<std::string>& words, std::map<std::string, std::string>& given) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto found = std::find_if(part.predict.begin(), part.predict.end(), [&](const auto& one) { return one.key == key; });
    if (equals == std::string::npos || found == part.predict.end()) {
      std::vector<std::string> keys;
      for (const workbook::Prediction& one : part.predict) keys.push_back(one.key);
      if (keys.empty()) return Error{text("'", base::printable(word), "': ", part.id, " asks for no prediction")};
      return Error{text("'", base::printable(word), "' is no prediction of ", part.id, ": write ", base::nearest(key, keys), "=VALUE")};
    }
    base::Result<std::string> value = workbook::prediction_of(part, *found, word.substr(equals + 1));
    if (!value) return value.as_error();
    given[key] = value.value();
  }
  return base::Done{};
}

// Asks for each that is missing; what cannot be read is asked again. Stops at the end of the input.
void ask(const Part& part, std::istream& in, std::map<std::string, std::string>& given, Console& console) {
  for (const workbook::Prediction* one : missing(part, given)) {
    while (true) {
      say(console, one->text);
      console.out << "  " << one->key << (one->unit.empty() ? "" : " (" + one->unit + ")") << " = " << std::flush;
      std::string answer;
      if (!std::getline(in, answer)) {
        console.out << "\n";
        return;
      }
      if (!answers_are_typed()) console.out << base::printable(answer) << "\n";
      if (answer.compare(0, one->key.size() + 1, one->key + "=") == 0) answer.erase(0, one->key.size() + 1);
      base::Result<std::string> value = workbook::prediction_of(part, *one, answer);
      if (value) {
        given[one->key] = value.value();
        break;
      }
      say(console, base::printable(value.error()) + ".", "  ");
    }
  }
}

std::string sealed_already(const workbook::Progress& progress, const workbook::Event& event) {
  for (const workbook::Event& one : progress.events) {
    if (one.part == event.part && one.what == "predicted") return text(event.part, " was predicted in another terminal meanwhile, and that stands");
  }
  return "";
}

std::string shown_predictions(const Part& part, const std::map<std::string, std::string>& given) {
  std::string all;
  for (const workbook::Prediction& one : part.predict) {
    const auto value = given.find(one.key);
    if (value == given.end()) continue;
    const std::string unit = one.unit.empty() || one.unit == "rank" ? "" : " " + one.unit;
    all += text(all.empty() ? "" : ", ", one.key, " = ", value->second, unit);
  }
  return all;
}

// What to do about a part whose predictions are sealed, or that has none.
int point_onward(const Course& course, const Place& place, const PartState& state, Console& console) {
  const Part& part = *place.part;
  bool made = false;
  if (base::Result<std::string> own = workbook::provide_own_file(course.root, place, &made); !own) return refuse(console, own.error());
  const std::string own_path = workbook::own_file_of(place);
  console.out << (std::filesystem::is_directory(std::filesystem::path(course.root) / own_path) ? "Folder " : "File  ") << own_path << (made ? "   (new, and yours)" : "") << "\n";
  point_to(console, "Read", "./shardbook read " + part.id);
  const std::string check = "./shardbook check " + part.id;
  if (state.failures > 0) {
    say(console, base::printable(state.last_failure), "Last  ");
    point_to(console, "Hint", "./shardbook hint " + part.id, text(state.hints, " of ", part.hints.size(), " seen"));
  } else if (!part.run.empty() && part.run.front() != check) {
    point_to(console, "Next", part.run.front());
    point_to(console, "Then", check);
    return exit_ok;
  }
  point_to(console, "Next", check);
  return exit_ok;
}

// Reading others' sources is a kind of work of its own: who has none of them goes on without.
void point_beyond_notes(const Course& course, const Place& place, Console& console) {
  if (place.part->kind != workbook::Kind::notes) return;
  bool behind = false;
  for (const Place& other : course.places()) {
    behind = behind || other.part == place.part;
    if (!behind || other.lab == place.lab || course.state(other).passed) continue;
    return point_to(console, "Or", "./shardbook next " + other.part->id, "this lab later: nothing builds on it");
  }
}

// The seed is given once, before anything is sealed by it.
int take_seed(Course& course, const std::string& value, Console& console) {
  base::Result<int> seed = whole_number("seed", value, 1);
  if (!seed) return refuse(console, seed.error());
  if (course.progress.seed == seed.value()) return exit_ok;
  // Another terminal may be as fast: what stands in the file decides.
  const auto given_already = [](const workbook::Progress& progress, const workbook::Event&) {
    return progress.seed == 0 ? std::string() : text("your seed is ", progress.seed, ", and stays");
  };
  if (base::Status noted = workbook::append(course.root, {"", "--", "seed", {{"number", std::to_string(seed.value())}}, "", 0}, given_already); !noted) return refuse(console, noted.error());
  course.progress.seed = seed.value();
  return exit_ok;
}

// What is to be predicted, all at once, and the line that says it.
int refuse_to_guess(const Place& place, const std::map<std::string, std::string>& given, Console& console) {
  std::string command = "./shardbook next " + place.part->id;
  for (const workbook::Prediction* one : missing(*place.part, {})) {
    const auto value = given.find(one->key);
    command += " " + one->key + "=" + (value == given.end() ? std::string("...") : value->second);
  }
  console.out << "Predict first: a guess is enough, and it is sealed before you look.\n";
  int number = 0;
  for (const workbook::Prediction& one : place.part->predict) {
    say(console, text(one.text, one.unit.empty() ? std::string() : text(" (", one.unit, ")")), text(" ", ++number, ". "));
  }
  point_to(console, "Next", command);
  return exit_ok;
}

}  // namespace

int next_part(const Line& line, Console& console) {
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  Course& course = opened.value();
  // A part may stand before the predictions.
  std::vector<std::string> words = line.places, named;
  if (!words.empty() && words.front().find('=') == std::string::npos) {
    named = {words.front()};
    words.erase(words.begin());
  }
  if (line.has("seed")) {
    if (int code = take_seed(course, line.value("seed"), console); code != exit_ok) return code;
  }
  if (named.empty() && !course.current()) {
    console.out << "Every part is passed.\n";
    point_to(console, "Card", "./shardbook card", "asks what you remember");
    point_to(console, "List", "./shardbook list", "what you predicted, and how far off it was");
    point_to(console, "Next", "./shardbook why TRACE", "of your own job; ./shardbook switches has more to try");
    say(console, "A lab of your own: CONTRIBUTING.md says how.");
    return exit_ok;
  }
  base::Result<Place> meant = part_meant(course, named);
  if (!meant) return refuse(console, meant.error());
  const Place place = meant.value();
  const Part& part = *place.part;
  PartState state = course.state(place);

  console.out << bold(heading_of(place, state), console.out_is_terminal) << "\n";
  say(console, part.question);
  if (&part == &place.lab->parts.front() && !place.lab->stakes.empty()) say(console, place.lab->stakes, "What it is worth: ");
  if (state.reopened) say(console, text("Open again: it was passed on ", state.passed_at, ", and its file has changed since or failed a check."));
  if (!state.begun) {
    if (base::Status noted = workbook::append(course.root, {"", part.id, "opened", {}, "", 0}); !noted) return refuse(console, noted.error());
  }

  // Predictions: once sealed they stand.
  if (!state.predicted && !part.predict.empty()) {
    std::map<std::string, std::string> given;
    if (base::Status taken = take_words(part, words, given); !taken) return refuse(console, taken.error());
    std::istream* in = missing(part, given).empty() ? nullptr : answers();
    // A closed input answers nothing: then all is asked at once, below
    if (in != nullptr && (answers_are_typed() || in->peek() != std::istream::traits_type::eof())) {
      console.out << "\nPredict first: a guess is enough, and it is sealed before you look.\n";
      ask(part, *in, given, console);
    }
    if (!missing(part, given).empty()) return refuse_to_guess(place, given, console);
    base::Status sealed = workbook::append(course.root, {"", part.id, "predicted", given, "", 0}, sealed_already);
    if (!sealed) return refuse(console, sealed.error());
    say(console, shown_predictions(part, given) + ".", "\nSealed  ", "        ");
  } else if (state.predicted) {
    if (!words.empty()) say(console, text("Your prediction was sealed before and stands: ", shown_predictions(part, *state.predicted), "."));
    else say(console, shown_predictions(part, *state.predicted) + ".", "Sealed  ");
  }
  const int code = point_onward(course, place, state, console);
  point_beyond_notes(course, place, console);
  return code;
}

int list_parts(const Line&, Console& console) {
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  const Course& course = opened.value();
  const std::optional<Place> current = course.current();
  const workbook::Lab* lab = nullptr;
  for (const Place& place : course.places()) {
    if (place.lab != lab) {
      lab = place.lab;
      console.out << (lab == course.places().front().lab ? "" : "\n") << bold(text("Lab ", lab->id, " · ", lab->title), console.out_is_terminal) << "\n";
    }
    const PartState state = course.state(place);
    const bool here = current && current->part == place.part;
    std::string what = state.passed ? "passed" : state.reopened ? "open again" : state.failures > 0 ? count_text(state.failures, "failed check")
                       : state.predicted ? "sealed" : state.begun ? "opened" : "";
    console.out << (here ? "> " : "  ") << pad_right(place.part->id, 5) << pad_right(cut(base::printable(place.part->title), 43), 44) << pad_left(std::to_string(place.part->minutes), 3)
                << " min" << (what.empty() ? "" : "  ") << what << "\n";
  }
  console.out << "\n";
  const workbook::Score score = workbook::score_of(course);
  if (score.numbers > 0) console.out << "Your predictions: " << count_text(score.numbers, "figure") << ", the one in the middle off by " << workbook::shown({true, score.middle_ratio, ""}, 2) << " ×";
  if (score.words > 0) console.out << (score.numbers > 0 ? "; " : "Your predictions: ") << score.right_words << " of " << score.words << " names right";
  if (score.numbers + score.words > 0) console.out << "\n";
  point_to(console, "Next", current ? "./shardbook next" : "./shardbook card");
  return exit_ok;
}

int hint_of(const Line& line, Console& console) {
  // Of two terminals that ask at once, one gets the next hint and the other the one after it.
  const auto shown_meanwhile = [](const workbook::Progress& progress, const workbook::Event& event) {
    const auto shown = std::count_if(progress.events.begin(), progress.events.end(), [&](const auto& one) { return one.part == event.part && one.what == "hint"; });
    return std::to_string(shown + 1) == event.values.at("number") ? std::string() : text("a hint of ", event.part, " was shown in another terminal at this moment: ask again");
  };
  constexpr int tries = 20;
  for (int turn = 1;; ++turn) {
    base::Result<Course> opened = course_here(console);
    if (!opened) return refuse(console, opened.error());
    const Course& course = opened.value();
    base::Result<Place> meant = part_meant(course, line.places);
    if (!meant) return refuse(console, meant.error());
    const Part& part = *meant.value().part;
    if (part.hints.empty()) return refuse(console, text("there are no hints for ", part.id));
    const int seen = course.state(meant.value()).hints, count = static_cast<int>(part.hints.size());
    if (seen >= count) {
      for (int i = 0; i < count; ++i) say(console, part.hints[static_cast<std::size_t>(i)], text("Hint ", i + 1, " of ", count, ": "), "    ");
      point_to(console, "Read", "./shardbook read " + part.id);
      point_to(console, "Next", "./shardbook check " + part.id, "after three failed checks: ./shardbook solution " + part.id + " --anyway");
      return exit_ok;
    }
    const base::Status noted = workbook::append(course.root, {"", part.id, "hint", {{"number", std::to_string(seen + 1)}}, "", 0}, shown_meanwhile);
    if (!noted && (turn == tries || noted.error().find("in another terminal") == std::string::npos)) return refuse(console, noted.error());
    if (!noted) continue;
    say(console, part.hints[static_cast<std::size_t>(seen)], text("Hint ", seen + 1, " of ", count, ": "), "    ");
    point_to(console, "Next", "./shardbook check " + part.id);
    return exit_ok;
  }
}

int card_of(const Line& line, Console& console) {
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  const Course& course = opened.value();
  std::optional<workbook::DueCard> due;
  if (line.places.empty()) {
    due = workbook::due_card(course);
    if (!due) {
      console.out << "No card is due: cards come with parts that you have passed.\n";
      point_to(console, "Next", "./shardbook next");
      return exit_ok;
    }
  } else {
    base::Result<Place> place = course.part(line.places.front());
    if (!place) return refuse(console, place.error());
    if (!course.state(place.value()).passed) return refuse(console, text("the cards of ", place.value().part->id, " come when it is passed"));
    if (place.value().part->cards.empty()) return refuse(console, text("there are no cards for ", place.value().part->id));
    // In turn.
    int shown = 0;
    for (const workbook::Event& event : course.progress.events) shown += event.what == "card" && event.part == place.value().part->id;
    const std::size_t at = static_cast<std::size_t>(shown) % place.value().part->cards.size();
    due = workbook::DueCard{place.value().part->id, static_cast<int>(at) + 1, place.value().part->cards[at]};
  }
  say(console, due->card.question, text(due->part, " · "));
  if (answers_are_typed()) {
    console.out << dim("Say it to yourself, then press Enter. ", console.out_is_terminal) << std::flush;
    std::string nothing;
    std::getline(*answers(), nothing);
  }
  say(console, due->card.answer, "      ");
  const base::Status noted = workbook::append(course.root, {"", due->part, "card", {{"number", std::to_string(due->number)}}, "", 0});
  return noted ? exit_ok : refuse(console, noted.error());
}

int first_page(Console& console) {
  if (book::project_root().empty()) {
    console.out << first_steps();
    return exit_ok;
  }
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  const Course& course = opened.value();
  int passed = 0, minutes = 0;
  const std::vector<Place> places = course.places();
  for (const Place& place : places) {
    const PartState state = course.state(place);
    passed += state.passed;
    if (!state.passed) minutes += std::max(0, place.part->minutes - state.minutes);
  }
  console.out << "Shardbook: learn how large models are trained on many GPUs, by running it and\nlooking. No GPU is needed.\n\n";
  if (const std::optional<Place> current = course.current()) {
    console.out << bold(heading_of(*current, course.state(*current)), console.out_is_terminal) << "\n";
    say(console, current->part->question);
    console.out << "\n";
    point_to(console, "Next", "./shardbook next");
    console.out << pad_right("", 6) << passed << " of " << places.size() << " parts are passed; about " << (minutes + 30) / 60 << " h are left (./shardbook list)\n";
  } else {
    console.out << "Every part is passed: ./shardbook list, ./shardbook card.\n";
  }
  console.out << "\nOr look around: ./shardbook run 02 trains a small model on 4 ranks;\n"
                 "./shardbook --help lists every command; ./shardbook doctor says what works here.\n";
  return exit_ok;
}

}  // namespace shardbook::cli
