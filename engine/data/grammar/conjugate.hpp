// data/grammar/conjugate: the forms of a Spanish verb.
//
// Regular endings of -ar, -er and -ir, and a table of what irregular verbs do otherwise.
// Source: Real Academia Española, Nueva gramática de la lengua española (2009), §4, tables 1 to 72.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "engine/data/grammar/words.hpp"

namespace shardbook::data::grammar {

using Forms = std::array<std::string, persons>;

struct Conjugation {
  std::string infinitive;
  Forms present;
  Forms preterite;
  Forms imperfect;
  Forms future;
  std::string gerund;
  std::string participle;
};

// REQUIRES: an infinitive in -ar, -er or -ir that is regular or in the table.
Conjugation conjugate(std::string_view infinitive);

// With participles: he, has, ha, ...
extern const Forms haber;
// With gerunds, places and moods: estoy, estás, está, ...
extern const Forms estar_present;
extern const Forms estar_imperfect;
// With what one is: soy, eres, es, ...
extern const Forms ser_present;
extern const Forms ser_imperfect;

}  // namespace shardbook::data::grammar
