// English drills.
#include "engine/data/grammar/drills.hpp"

namespace shardbook::data::grammar {

const char* english_be(const Subject& subject, Tense tense) {
  if (tense == Tense::past) return subject.person == 0 || subject.person == 2 ? "was" : "were";
  if (tense == Tense::future) return "will be";
  if (subject.person == 0) return "am";
  return subject.person == 2 ? "is" : "are";
}

std::string with_article(const std::string& english_words) {
  const bool vowel = std::string_view("aeiou").find(english_words.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + english_words;
}

namespace {

// The finite verb, or the auxiliary and the verb that a negation needs.
std::string english_verb(const Subject& subject, const Action& action, Tense tense, bool negated) {
  const std::string base = action.base;
  switch (tense) {
    case Tense::past: return negated ? "did not " + base : action.past;
    case Tense::future: return (negated ? "will not " : "will ") + base;
    case Tense::present: break;
  }
  if (negated) return (subject.third_singular() ? "does not " : "do not ") + base;
  return subject.third_singular() ? action.third : base;
}

const char* have(const Subject& subject) { return subject.third_singular() ? "has" : "have"; }

namespace english {

void forms(Draw& draw, std::string& out) {
  const Action& action = draw.one_of(actions());
  const bool she = draw.below(2) == 0;
  const std::string who = she ? "she " : "he ";
  out += "## English verbs: " + std::string(action.base) + "\n";
  out += "to " + std::string(action.base) + ", " + action.past + ", " + action.participle + "\n";
  out += "I " + std::string(action.base) + ", you " + action.base + ", " + who + action.third + ", we " + action.base +
         ", they " + action.base + "\n";
  out += who + action.past + ", " + who + "has " + action.participle + ", " + who + "will " + action.base + "\n";
}

void tenses(Draw& draw, std::string& out) {
  const Clause clause = draw_dynamic_clause(draw);
  const std::string who = clause.subject.english;
  const std::string what = clause.complement.english;
  out += "## Tenses\n";
  out += "Every day " + english_sentence(clause, Tense::present, false) + ".\n";
  out += "Yesterday " + english_sentence(clause, Tense::past, false) + ".\n";
  out += "Tomorrow " + english_sentence(clause, Tense::future, false) + ".\n";
  out += "Now " + who + " " + english_be(clause.subject, Tense::present) + " " + clause.action.gerund + " " + what +
         ".\n";
  out += capital(who) + " " + have(clause.subject) + " already " + clause.action.participle + " " + what + ".\n";
}

void negation(Draw& draw, std::string& out) {
  const Clause clause = draw_clause(draw);
  const Tense tense = draw.below(2) == 0 ? Tense::present : Tense::past;
  out += "## Negation\n";
  out += "Yes: " + capital(english_sentence(clause, tense, false)) + ".\n";
  out += "No: " + capital(english_sentence(clause, tense, true)) + ".\n";
}

void questions(Draw& draw, std::string& out) {
  const Clause clause = draw_clause(draw);
  if (clause.subject.person < 2 || clause.subject.person == 3) return;  // question and answer would change persons
  const Tense tense = draw.below(2) == 0 ? Tense::present : Tense::past;
  const std::string who = english_pronoun(clause.subject);
  const std::string auxiliary = tense == Tense::past ? "did" : clause.subject.third_singular() ? "does" : "do";
  out += "## Questions\n";
  out += capital(english_sentence(clause, tense, false)) + ".\n";
  out += english_question(clause, tense) + "\n";
  out += "Yes, " + who + " " + auxiliary + ". No, " + who + " " + auxiliary + " not.\n";
}

void plurals(Draw& draw, std::string& out) {
  constexpr const char* numbers[] = {"two", "three", "four", "five", "six", "ten"};
  const Noun& noun = draw.one_of(nouns());
  const Noun& other = draw.one_of(nouns());
  const std::string many = numbers[draw.below(6)];
  out += "## Plurals\n";
  for (const Noun* each : {&noun, &other}) {
    out += std::string(each->article) + " " + each->english + ", " + many + " " + each->english_plural + "\n";
  }
  out += "There is " + std::string(noun.article) + " " + noun.english + ". There are " + many + " " +
         noun.english_plural + ".\n";
}

void articles(Draw& draw, std::string& out) {
  const Noun& noun = draw_object(draw);
  const Adjective& adjective = draw.one_of(adjectives());
  const std::string both = std::string(adjective.english) + " " + noun.english;
  out += "## Articles\n";
  out += std::string(noun.article) + " " + noun.english + ", the " + noun.english + "\n";
  out += with_article(both) + ", the " + both + "\n";
  out += capital(with_article(both)) + " is " + noun.article + " " + noun.english + " that is " + adjective.english +
         ".\n";
}

void passive(Draw& draw, std::string& out) {
  const Clause clause = draw_object_clause(draw);
  const std::string what = clause.complement.english;
  if (clause.subject.pronoun || clause.action.stative || !what.starts_with("the ")) return;
  const bool plural = std::string_view(clause.complement.object) == "them";
  out += "## Active and passive\n";
  out += capital(english_sentence(clause, Tense::past, false)) + ".\n";
  out += capital(what) + (plural ? " were " : " was ") + clause.action.participle + " by " +
         clause.subject.english + ".\n";
}

void pronouns(Draw& draw, std::string& out) {
  const Clause clause = draw_object_clause(draw);
  const std::string what = clause.complement.english;
  const std::string shorter = what.substr(0, what.find("the ")) + clause.complement.object;
  const Complement replaced{shorter.c_str(), clause.complement.spanish};
  out += "## Pronouns\n";
  out += capital(english_sentence(clause, Tense::past, false)) + ".\n";
  out += capital(english_sentence({clause.subject, clause.action, replaced}, Tense::past, false)) + ".\n";
}

void comparison(Draw& draw, std::string& out) {
  const std::size_t first = draw.below(names().size());
  const std::size_t second = (first + 1 + draw.below(names().size() - 1)) % names().size();
  const std::string who = names()[first].english;
  const std::string than = names()[second].english;
  const Comparison& degree = draw.one_of(comparisons());
  out += "## Comparison\n";
  out += who + " is " + degree.adjective.english + ". " + who + " is " + degree.comparative + " than " + than + ".\n";
  out += who + " is as " + degree.adjective.english + " as " + than + ". " + who + " is " + degree.superlative +
         " in the class.\n";
}

void demonstratives(Draw& draw, std::string& out) {
  const Noun& noun = draw_object(draw);
  const std::string adjective = draw.one_of(adjectives()).english;
  out += "## This and that\n";
  out += "This " + std::string(noun.english) + " is " + adjective + ". These " + noun.english_plural + " are " +
         adjective + ".\n";
  out += "That " + std::string(noun.english) + " was " + adjective + ". Those " + noun.english_plural + " were " +
         adjective + ".\n";
}

void to_be(Draw& draw, std::string& out) {
  const Subject& subject = draw.one_of(subjects());
  const std::string how = draw.one_of(moods()).english;
  const std::string who = subject.english;
  out += "## To be\n";
  out += "Today " + who + " " + english_be(subject, Tense::present) + " " + how + ". Yesterday " + who + " " +
         english_be(subject, Tense::past) + " " + how + ". Tomorrow " + who + " " +
         english_be(subject, Tense::future) + " " + how + ".\n";
}

constexpr Drill drills[] = {forms,    tenses,   negation,   questions,      plurals, articles,
                            passive,  pronouns, comparison, demonstratives, to_be};

}  // namespace english
}  // namespace

std::string english_sentence(const Clause& clause, Tense tense, bool negated) {
  return std::string(clause.subject.english) + " " + english_verb(clause.subject, clause.action, tense, negated) + " " +
         clause.complement.english;
}

std::string english_question(const Clause& clause, Tense tense) {
  const std::string auxiliary = tense == Tense::past     ? "Did"
                                : tense == Tense::future ? "Will"
                                : clause.subject.third_singular() ? "Does"
                                                                  : "Do";
  return auxiliary + " " + clause.subject.english + " " + clause.action.base + " " + clause.complement.english + "?";
}

std::span<const Drill> english_drills() { return english::drills; }

}  // namespace shardbook::data::grammar
