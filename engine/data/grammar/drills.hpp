// data/grammar/drills: what a drill is, and where they are kept.
//
// A drill appends one paragraph: a line that begins with "## " and names the rule, then lines that
// show it. Drills of one language are in english.cpp and spanish.cpp; both.cpp translates.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/data/grammar/conjugate.hpp"
#include "engine/data/grammar/words.hpp"

namespace shardbook::data::grammar {

// A sequence of draws that is the same on every machine (the standard's distributions are not).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  // Uniform in [0, count). REQUIRES: count >= 1.
  std::size_t below(std::size_t count);
  template <class Word>
  const Word& one_of(std::span<const Word> words) {
    return words[below(words.size())];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

using Drill = void (*)(Draw&, std::string& out);

std::span<const Drill> english_drills();
std::span<const Drill> spanish_drills();
std::span<const Drill> both_drills();

// Someone who does something: a subject and an action with a complement that does not name the
// subject again.
struct Clause {
  const Subject& subject;
  const Action& action;
  const Complement& complement;
};
Clause draw_clause(Draw& draw);
// The same with an action that is no state: it has a progressive and a plain preterite.
Clause draw_dynamic_clause(Draw& draw);
// The same with a complement that a pronoun may stand for.
Clause draw_object_clause(Draw& draw);
// A noun that adjectives of colour and size suit.
const Noun& draw_object(Draw& draw);

// ---- English ----

enum class Tense { present, past, future };

// "She does not read the letters", without the full stop; `negated` as asked. The subject is small.
std::string english_sentence(const Clause& clause, Tense tense, bool negated);
// "Does she read the letters?"
std::string english_question(const Clause& clause, Tense tense);
// am, are, is; was, were.
const char* english_be(const Subject& subject, Tense tense);
// "an old house": a or an by the word that follows.
std::string with_article(const std::string& english_words);

// ---- Spanish ----

// "ella no lee las cartas", without the full stop.
std::string spanish_sentence(const Clause& clause, Tense tense, bool negated);
// "¿Lee ella las cartas?"
std::string spanish_question(const Clause& clause, Tense tense);

}  // namespace shardbook::data::grammar
