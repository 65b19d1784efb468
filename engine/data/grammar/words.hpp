// data/grammar/words: the words of the drills, with what agreement needs to know of them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace shardbook::data::grammar {

// Forms by person: yo, tú, él, nosotros, vosotros, ellos; I, you, he, we, you, they.
inline constexpr int persons = 6;

enum class Gender { masculine, feminine };

// Who does it. English takes the third form of a verb for a singular third person only.
struct Subject {
  const char* english;
  const char* spanish;
  int person;
  Gender gender;
  bool pronoun;
  bool adult;

  bool plural() const { return person >= 3; }
  bool third_singular() const { return person == 2; }
};

// What a verb takes after it. `object` is the English pronoun that may stand for it ("it", "them"),
// given only where the Spanish complement is el, la, los or las with a noun and nothing more.
struct Complement {
  const char* english;
  const char* spanish;
  const char* object = "";
};

// A verb in both languages. A stative one has no progressive, and another sense in the preterite.
struct Action {
  const char* base;
  const char* third;
  const char* past;
  const char* participle;
  const char* gerund;
  const char* infinitive;  // Spanish
  bool stative;
  std::array<Complement, 3> complements;
};

// A noun with its plurals. An object is something that adjectives of colour and size suit.
struct Noun {
  const char* english;
  const char* english_plural;
  const char* article;  // a, an
  const char* spanish;
  const char* spanish_plural;
  Gender gender;
  bool object;
};

struct Adjective {
  const char* english;
  const char* masculine;
  const char* feminine;
  const char* masculine_plural;
  const char* feminine_plural;

  const char* form(Gender gender, bool plural) const {
    if (gender == Gender::masculine) return plural ? masculine_plural : masculine;
    return plural ? feminine_plural : feminine;
  }
};

// English degrees beside the Spanish adjective; `mas` is "más " but for mejor and peor.
struct Comparison {
  const char* comparative;
  const char* superlative;
  const char* mas;
  Adjective adjective;
};

struct Profession {
  const char* english;
  const char* article;
  const char* english_plural;
  Adjective spanish;
};

std::span<const Subject> subjects();
// The eight names among the subjects.
std::span<const Subject> names();
std::span<const Action> actions();
std::span<const Noun> nouns();
// For things: colours, sizes, ages.
std::span<const Adjective> adjectives();
std::span<const Comparison> comparisons();
std::span<const Profession> professions();
// With ser: what someone is like; with estar: how someone is now.
std::span<const Adjective> traits();
std::span<const Adjective> moods();

// "él" -> "Él", "ana" -> "Ana": the first letter as a capital.
std::string capital(std::string_view sentence);
// el, la, los, las.
const char* definite(Gender gender, bool plural);
// un, una, unos, unas.
const char* indefinite(Gender gender, bool plural);
// I, you, he, she, we, they: what stands for the subject in a short answer.
const char* english_pronoun(const Subject& subject);

}  // namespace shardbook::data::grammar
