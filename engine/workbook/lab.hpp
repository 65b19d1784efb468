// workbook/lab: what does a lab consist of?
//
// A lab is a folder labs/NN_name with lab.json. It has parts of at most 45 minutes, and each part is one question: of
// kind `exercise` (one file to edit, judged by a program), `answers` (figures to read off runs that ship with the book) or
// `notes` (text to write). Nothing here is a result: what a prediction is compared with is the name of a fact
// (facts.hpp) or of a figure that the exercise reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::workbook {

// A figure that is computed when it is asked for; the meaning of each key is facts.hpp's.
struct Fact {
  std::string figure;                          // "exposed_ms"
  std::map<std::string, std::string> of;       // "run": path from the root, "rank": "2", "step": "10" ...
  std::map<std::string, std::string> less;     // the same of what is subtracted; empty: nothing
};

struct Prediction {
  std::string key, text, unit;
  std::string found;                           // a fact's name, a figure's name, or a number
};

// A typical wrong answer, and what to say to it. `value` is a word, a number or a fact's name.
struct Wrong {
  std::string value, message;
};

struct Answer {
  std::string key, text, unit;
  std::string fact;                            // whose value is right
  double within = 0.05;                        // of a number, relative
  std::vector<std::string> choices;            // of a word: all that there are
  std::vector<Wrong> wrong;
  std::string otherwise;                       // what is said to any other wrong answer
  std::string page;                            // what helps: "labs/00_timeline/text.md#waiting"
};

struct Card {
  std::string question, answer;
};

enum class Kind { exercise, answers, notes };

struct Part {
  std::string id;                              // "00a"
  std::string title, question;
  int minutes = 0;
  Kind kind = Kind::exercise;
  std::vector<Prediction> predict;
  std::vector<std::string> show;               // figures of the check that a pass prints, by name: what the text says to look at
  std::vector<Answer> answers;
  std::string exercise;                        // "fit.cpp"; of notes, their folder below experiments/; empty: nothing is edited
  std::vector<std::string> by_seed;            // starters beside it with other faults: a seed s has the (s mod their number)th of all, the exercise first
  std::vector<std::string> run;                // commands to type
  std::string produce;                         // what one ends with
  std::vector<std::string> hints;
  std::vector<Card> cards;
  Card transfer;
  std::string why;                             // shown on a pass; {fact} stands for its value
};

struct Lab {
  std::string id;                              // "00"
  std::string name;                            // "00_timeline": its folder
  std::string title, question, stakes;
  std::map<std::string, Fact> facts;
  std::vector<std::string> stated;             // phrases of the text, with {fact} where it states its value
  std::vector<Part> parts;
};

// Where stands what the check found in a part's solution when it was written, from the root; of a seed but the first (0), its own.
std::string figures_path(const Lab& lab, const Part& part, int seed = 0);

// Errors: the file, the entry and its key that is missing or of the wrong kind ("`parts[0].predict[1]` needs \"found\""). `name` is
// that of the folder.
base::Result<Lab> lab_from_json(const std::string& content, const std::string& name, const std::string& path);

// All labs below root/labs that have parts, ascending. A lab.json without "parts" is a lab of another kind, and is left out.
// Errors: lab_from_json's.
base::Result<std::vector<Lab>> all_labs(const std::string& root);

// The part that "00a", "0a" or the number of a lab with one part means; "00" is the first of several.
// Errors: none such (those that there are are named).
struct Place {
  const Lab* lab = nullptr;
  const Part* part = nullptr;
  int seed = 0;                                // of the course; 0: none
};
base::Result<Place> find_part(const std::vector<Lab>& labs, const std::string& name, int seed = 0);
// All parts of the lab "00", or the one part "00a".
base::Result<std::vector<Place>> find_parts(const std::vector<Lab>& labs, const std::string& name, int seed = 0);

// Paths from the root. Starter and solution are those of the place's seed.
std::string starter_of(const Place& place);          // labs/00_timeline/fit.cpp
std::string solution_of(const Place& place);         // solutions/00_timeline/fit.cpp; answers: solutions/00_timeline/00a.txt; notes: their folder
std::string own_file_of(const Place& place);         // experiments/00_timeline/fit.cpp; answers: experiments/00_timeline/00a.txt; notes: their folder

}  // namespace shardbook::workbook
