// Drills of Spanish. Titles and explanations are in Spanish too.
#include "engine/data/grammar/drills.hpp"

namespace shardbook::data::grammar {

namespace {

std::string spanish_verb(const Clause& clause, Tense tense) {
  const Conjugation verb = conjugate(clause.action.infinitive);
  const auto person = static_cast<std::size_t>(clause.subject.person);
  switch (tense) {
    case Tense::present: return verb.present[person];
    case Tense::past: return verb.preterite[person];
    case Tense::future: return verb.future[person];
  }
  return "";
}

namespace spanish {

void conjugation(Draw& draw, std::string& out) {
  constexpr const char* pronouns[persons] = {"yo", "tú", "ella", "nosotros", "vosotros", "ellas"};
  const Conjugation verb = conjugate(draw.one_of(actions()).infinitive);
  const struct {
    const char* title;
    const Forms& forms;
  } choices[] = {{"Presente", verb.present},
                 {"Pretérito", verb.preterite},
                 {"Imperfecto", verb.imperfect},
                 {"Futuro", verb.future}};
  const auto& choice = choices[draw.below(4)];
  out += "## " + std::string(choice.title) + " de " + verb.infinitive + "\n";
  for (std::size_t person = 0; person < persons; ++person) {
    out += std::string(pronouns[person]) + " " + choice.forms[person] + (person + 1 < persons ? ", " : "\n");
  }
}

void tenses(Draw& draw, std::string& out) {
  const Clause clause = draw_dynamic_clause(draw);
  const Conjugation verb = conjugate(clause.action.infinitive);
  const auto person = static_cast<std::size_t>(clause.subject.person);
  const std::string who = clause.subject.spanish;
  const std::string what = clause.complement.spanish;
  out += "## Tiempos\n";
  out += "Todos los días " + spanish_sentence(clause, Tense::present, false) + ".\n";
  out += "Ayer " + spanish_sentence(clause, Tense::past, false) + ".\n";
  out += "Antes " + who + " " + verb.imperfect[person] + " " + what + ".\n";
  out += "Mañana " + spanish_sentence(clause, Tense::future, false) + ".\n";
  out += capital(who) + " ya " + haber[person] + " " + verb.participle + " " + what + ".\n";
  // Verbs of motion have no usual progressive.
  const std::string_view name = verb.infinitive;
  if (name != "ir" && name != "venir" && name != "llegar" && name != "salir") {
    out += "Ahora " + who + " " + estar_present[person] + " " + verb.gerund + " " + what + ".\n";
  }
}

void negation(Draw& draw, std::string& out) {
  const Clause clause = draw_clause(draw);
  const Tense tense = draw.below(2) == 0 ? Tense::present : Tense::future;
  out += "## Negación\n";
  out += "Sí: " + capital(spanish_sentence(clause, tense, false)) + ".\n";
  out += "No: " + capital(spanish_sentence(clause, tense, true)) + ".\n";
}

void questions(Draw& draw, std::string& out) {
  const Clause clause = draw_dynamic_clause(draw);
  if (clause.subject.person < 2 || clause.subject.person == 3) return;  // question and answer would change persons
  const Tense tense = draw.below(2) == 0 ? Tense::present : Tense::past;
  out += "## Preguntas\n";
  out += spanish_question(clause, tense) + "\n";
  out += "Sí, " + spanish_sentence(clause, tense, false) + ".\n";
  out += "No, " + spanish_sentence(clause, tense, true) + ".\n";
}

void plurals(Draw& draw, std::string& out) {
  out += "## Plural\n";
  for (int line = 0; line < 3; ++line) {
    const Noun& noun = draw.one_of(nouns());
    out += std::string(definite(noun.gender, false)) + " " + noun.spanish + ", " + definite(noun.gender, true) + " " +
           noun.spanish_plural + "; " + indefinite(noun.gender, false) + " " + noun.spanish + ", " +
           indefinite(noun.gender, true) + " " + noun.spanish_plural + "\n";
  }
}

void agreement(Draw& draw, std::string& out) {
  const Noun& noun = draw_object(draw);
  const Adjective& adjective = draw.one_of(adjectives());
  const std::string one = std::string(definite(noun.gender, false)) + " " + noun.spanish;
  const std::string many = std::string(definite(noun.gender, true)) + " " + noun.spanish_plural;
  out += "## Concordancia\n";
  out += one + " " + adjective.form(noun.gender, false) + ", " + many + " " + adjective.form(noun.gender, true) + "\n";
  out += capital(one) + " es " + adjective.form(noun.gender, false) + ". " + capital(many) + " son " +
         adjective.form(noun.gender, true) + ".\n";
}

// Feminine nouns that begin with a stressed a take el and un in the singular only.
void feminine_with_el(Draw& draw, std::string& out) {
  constexpr const char* rows[][2] = {{"agua", "aguas"}, {"águila", "águilas"}, {"hacha", "hachas"}};
  const auto& [one, many] = rows[draw.below(3)];
  const Adjective& adjective = draw.one_of(adjectives());
  out += "## Femenino con el\n";
  out += "el " + std::string(one) + " " + adjective.form(Gender::feminine, false) + ", las " + many + " " +
         adjective.form(Gender::feminine, true) + "\n";
}

void ser_and_estar(Draw& draw, std::string& out) {
  constexpr const char* places[] = {"en el parque", "en casa", "en la cocina", "en la playa", "en la biblioteca"};
  constexpr const char* origins[] = {"de México", "de España", "de Perú", "de Chile", "de Argentina", "de Cuba"};
  const Subject& subject = draw.one_of(subjects());
  const auto person = static_cast<std::size_t>(subject.person);
  const std::string who = capital(subject.spanish);
  const char* trait = draw.one_of(traits()).form(subject.gender, subject.plural());
  const char* mood = draw.one_of(moods()).form(subject.gender, subject.plural());
  out += "## Ser y estar\n";
  out += who + " " + ser_present[person] + " " + trait + ". " + who + " " + ser_present[person] + " " +
         origins[draw.below(6)] + ".\n";
  out += who + " " + estar_present[person] + " " + mood + ". " + who + " " + estar_present[person] + " " +
         places[draw.below(5)] + ".\n";
  if (subject.adult) {
    const char* job = draw.one_of(professions()).spanish.form(subject.gender, subject.plural());
    out += who + " " + ser_present[person] + " " + job + ". Antes " + ser_imperfect[person] + " " +
           draw.one_of(professions()).spanish.form(subject.gender, subject.plural()) + ".\n";
    out += "Ayer " + std::string(subject.spanish) + " " + estar_imperfect[person] + " " + mood + ".\n";
  }
}

void object_pronouns(Draw& draw, std::string& out) {
  const Clause clause = draw_object_clause(draw);
  const std::string what = clause.complement.spanish;
  const std::string article = what.substr(0, what.find(' '));
  const std::string pronoun = article == "el" ? "lo" : article;
  out += "## Pronombres\n";
  out += capital(spanish_sentence(clause, Tense::present, false)) + ".\n";
  out += capital(clause.subject.spanish) + " " + pronoun + " " + spanish_verb(clause, Tense::present) + ".\n";
  out += capital(clause.subject.spanish) + " no " + pronoun + " " + spanish_verb(clause, Tense::future) + ".\n";
}

void gustar(Draw& draw, std::string& out) {
  constexpr const char* people[][2] = {{"A mí", "me"},       {"A ti", "te"},       {"A él", "le"},
                                       {"A ella", "le"},     {"A nosotros", "nos"}, {"A ellos", "les"},
                                       {"A Ana", "le"},      {"A Pedro", "le"},    {"A mis padres", "les"},
                                       {"A los niños", "les"}};
  const auto& [who, pronoun] = people[draw.below(10)];
  const Noun& noun = draw_object(draw);
  const Action& action = draw.one_of(actions());
  const std::string doing = std::string(action.infinitive) + " " + action.complements[draw.below(3)].spanish;
  out += "## Gustar\n";
  out += std::string(who) + " " + pronoun + " gusta " + definite(noun.gender, false) + " " + noun.spanish + ". " + who +
         " " + pronoun + " gustan " + definite(noun.gender, true) + " " + noun.spanish_plural + ".\n";
  out += std::string(who) + " no " + pronoun + " gusta " + doing + ".\n";
}

void comparison(Draw& draw, std::string& out) {
  const std::size_t first = draw.below(names().size());
  const std::size_t second = (first + 1 + draw.below(names().size() - 1)) % names().size();
  const Subject& who = names()[first];
  const std::string than = names()[second].spanish;
  const Comparison& degree = draw.one_of(comparisons());
  const std::string adjective = degree.adjective.form(who.gender, false);
  out += "## Comparación\n";
  out += std::string(who.spanish) + " es " + degree.mas + adjective + " que " + than + ".\n";
  if (*degree.mas != '\0') out += std::string(who.spanish) + " es tan " + adjective + " como " + than + ".\n";
  out += std::string(who.spanish) + " es " + definite(who.gender, false) + " " + degree.mas + adjective +
         " de la clase.\n";
}

void there_is(Draw& draw, std::string& out) {
  constexpr const char* numbers[] = {"dos", "tres", "cuatro", "cinco", "seis", "diez"};
  const Noun& noun = draw_object(draw);
  out += "## Hay\n";
  out += "Hay " + std::string(indefinite(noun.gender, false)) + " " + noun.spanish + ". Hay " + numbers[draw.below(6)] +
         " " + noun.spanish_plural + ". No hay " + noun.spanish_plural + ".\n";
}

void determiners(Draw& draw, std::string& out) {
  const Noun& noun = draw_object(draw);
  const std::string one = std::string(" ") + noun.spanish;
  const std::string many = std::string(" ") + noun.spanish_plural;
  const bool masculine = noun.gender == Gender::masculine;
  out += "## Este, ese, mi, nuestro\n";
  out += (masculine ? "este" : "esta") + one + ", " + (masculine ? "estos" : "estas") + many + "; " +
         (masculine ? "ese" : "esa") + one + ", " + (masculine ? "esos" : "esas") + many + "\n";
  out += "mi" + one + ", mis" + many + "; tu" + one + ", tus" + many + "; su" + one + ", sus" + many + "; " +
         (masculine ? "nuestro" : "nuestra") + one + ", " + (masculine ? "nuestros" : "nuestras") + many + "\n";
}

constexpr Drill drills[] = {conjugation, conjugation,     tenses, negation,   questions, plurals,    agreement,
                            ser_and_estar, object_pronouns, gustar, comparison, there_is,  determiners,
                            feminine_with_el};

}  // namespace spanish
}  // namespace

std::string spanish_sentence(const Clause& clause, Tense tense, bool negated) {
  return std::string(clause.subject.spanish) + (negated ? " no " : " ") + spanish_verb(clause, tense) + " " +
         clause.complement.spanish;
}

std::string spanish_question(const Clause& clause, Tense tense) {
  return "¿" + capital(spanish_verb(clause, tense)) + " " + clause.subject.spanish + " " + clause.complement.spanish +
         "?";
}

std::span<const Drill> spanish_drills() { return spanish::drills; }

}  // namespace shardbook::data::grammar
