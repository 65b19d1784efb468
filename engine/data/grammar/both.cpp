// Drills that say the same in both languages.
#include "engine/data/grammar/drills.hpp"

namespace shardbook::data::grammar {

namespace {
namespace both {

void pair(std::string& out, const std::string& english, const std::string& spanish) {
  out += "English: " + english + "\nEspañol: " + spanish + "\n";
}

void sentence(Draw& draw, std::string& out) {
  constexpr Tense tenses[] = {Tense::present, Tense::past, Tense::future};
  const Clause clause = draw_dynamic_clause(draw);
  const Tense tense = tenses[draw.below(3)];
  const bool negated = draw.below(3) == 0;
  out += "## Translate\n";
  pair(out, capital(english_sentence(clause, tense, negated)) + ".",
       capital(spanish_sentence(clause, tense, negated)) + ".");
}

void state(Draw& draw, std::string& out) {
  const Clause clause = draw_clause(draw);
  out += "## Translate\n";
  pair(out, capital(english_sentence(clause, Tense::present, false)) + ".",
       capital(spanish_sentence(clause, Tense::present, false)) + ".");
}

void question(Draw& draw, std::string& out) {
  const Clause clause = draw_dynamic_clause(draw);
  const Tense tense = draw.below(2) == 0 ? Tense::present : Tense::past;
  out += "## Translate the question\n";
  pair(out, english_question(clause, tense), spanish_question(clause, tense));
}

void vocabulary(Draw& draw, std::string& out) {
  out += "## Words\n";
  for (int line = 0; line < 3; ++line) {
    const Noun& noun = draw.one_of(nouns());
    out += "the " + std::string(noun.english) + " = " + definite(noun.gender, false) + " " + noun.spanish + "; the " +
           noun.english_plural + " = " + definite(noun.gender, true) + " " + noun.spanish_plural + "\n";
  }
}

// English puts the adjective first and leaves it alone; Spanish puts it last and makes it agree.
void adjective_order(Draw& draw, std::string& out) {
  const Noun& noun = draw_object(draw);
  const Adjective& adjective = draw.one_of(adjectives());
  out += "## Adjectives\n";
  pair(out, with_article(std::string(adjective.english) + " " + noun.english),
       std::string(indefinite(noun.gender, false)) + " " + noun.spanish + " " + adjective.form(noun.gender, false));
  pair(out, "the " + std::string(adjective.english) + " " + noun.english_plural,
       std::string(definite(noun.gender, true)) + " " + noun.spanish_plural + " " + adjective.form(noun.gender, true));
}

void to_be(Draw& draw, std::string& out) {
  const Subject& subject = draw.one_of(subjects());
  const auto person = static_cast<std::size_t>(subject.person);
  const Adjective& trait = draw.one_of(traits());
  const Adjective& mood = draw.one_of(moods());
  const std::string english = capital(subject.english) + " " + english_be(subject, Tense::present) + " ";
  const std::string spanish = capital(subject.spanish) + " ";
  out += "## To be: ser, estar\n";
  pair(out, english + trait.english + ".",
       spanish + ser_present[person] + " " + trait.form(subject.gender, subject.plural()) + ".");
  pair(out, english + mood.english + " today.",
       spanish + estar_present[person] + " " + mood.form(subject.gender, subject.plural()) + " hoy.");
}

void profession(Draw& draw, std::string& out) {
  const Subject& subject = draw.one_of(subjects());
  if (!subject.adult) return;
  const auto person = static_cast<std::size_t>(subject.person);
  const Profession& job = draw.one_of(professions());
  out += "## Professions\n";
  pair(out,
       capital(subject.english) + " " + english_be(subject, Tense::present) + " " +
           (subject.plural() ? job.english_plural : std::string(job.article) + " " + job.english) + ".",
       capital(subject.spanish) + " " + ser_present[person] + " " + job.spanish.form(subject.gender, subject.plural()) +
           ".");
}

void comparison(Draw& draw, std::string& out) {
  const std::size_t first = draw.below(names().size());
  const std::size_t second = (first + 1 + draw.below(names().size() - 1)) % names().size();
  const Subject& who = names()[first];
  const Subject& than = names()[second];
  const Comparison& degree = draw.one_of(comparisons());
  out += "## Comparison\n";
  pair(out, std::string(who.english) + " is " + degree.comparative + " than " + than.english + ".",
       std::string(who.spanish) + " es " + degree.mas + degree.adjective.form(who.gender, false) + " que " +
           than.spanish + ".");
}

constexpr Drill drills[] = {sentence,   sentence,        sentence, state,      question,
                            vocabulary, adjective_order, to_be,    profession, comparison};

}  // namespace both
}  // namespace

std::span<const Drill> both_drills() { return both::drills; }

}  // namespace shardbook::data::grammar
