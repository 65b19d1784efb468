// workbook/course: where is this learner, and what is next?
//
// All labs, the progress file, and what follows from both. A part is next if no earlier one is open; a changed file or a
// check that fails opens a part again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/workbook/facts.hpp"
#include "engine/workbook/lab.hpp"
#include "engine/workbook/progress.hpp"
#include "engine/workbook/verdict.hpp"

namespace shardbook::workbook {

struct Course {
  std::string root;
  std::vector<Lab> labs;
  Progress progress;

  // Errors: as find_part's.
  base::Result<Place> part(const std::string& name) const { return find_part(labs, name, progress.seed); }
  std::vector<Place> places() const;
  PartState state(const Place& place) const;
  // The first part that is not passed; none: all are.
  std::optional<Place> current() const;
};

// Errors: those of all_labs and read_progress; no lab with parts.
base::Result<Course> open_course(const std::string& root);

// The part that asks what bounds this run, is begun and not passed: what runs are told of it would answer for the learner.
// Such a part has answers, and names the run's file among its commands. None: nobody asks, or there is no course.
std::optional<std::string> part_that_asks_of(const std::string& root, const std::string& run);

// A prediction beside what was found.
struct Compared {
  std::string key, text, unit;
  std::string predicted, found;
  std::optional<double> ratio;                 // of two numbers, the larger over the smaller: 1 is exact
  bool same = false;                           // of two words
};
// Of what was sealed for the part; empty if nothing was. `figures` are the verdict's.
// Errors: a fact that cannot be computed.
base::Result<std::vector<Compared>> compared(Facts& facts, const Part& part, const PartState& state, const std::map<std::string, double>& figures);
// "you 1.5 ms, found 1.32: 1.14 x"; without what was found, where nothing is known of it.
std::string sentence(const Compared& one);

// All predictions of the course that were compared so far: numbers by their ratio, words by whether they were right.
struct Score {
  int numbers = 0;
  double middle_ratio = 1;                     // the median
  int words = 0, right_words = 0;
};
Score score_of(const Course& course);

// Whether a prediction of this part can be sealed as this text: a number from 0 up, but for what an answer of the part has words
// for. Its error says what is expected.
base::Result<std::string> prediction_of(const Part& part, const Prediction& prediction, const std::string& given);

// A card of a part that was passed, the one that was shown least recently. Those of `not_of` are left out.
struct DueCard {
  std::string part;
  int number = 0;                              // 1 is the first of its part
  Card card;
};
std::optional<DueCard> due_card(const Course& course, const std::string& not_of = "");

}  // namespace shardbook::workbook
