// data/grammar/corpus: a text to learn from that the project brings along.
//
// Drills of English and Spanish grammar, one a paragraph: a title, then a few sentences that show
// one rule (conjugation, tense, negation, question, plural, article, agreement, ser and estar,
// pronouns, comparison) or the same sentence in both languages. Sentences are put together from
// tables of words (words.hpp) by rules that keep agreement, so there is no end of variety and a
// small model has something regular to find.
//
// Sources: Real Academia Española, Nueva gramática de la lengua española (2009), conjugation tables;
// Quirk et al., A Comprehensive Grammar of the English Language (1985).
#pragma once

#include <cstdint>
#include <string>

namespace shardbook::data::grammar {

// UTF-8 text, a pure function of its arguments: paragraphs separated by an empty line, until it has
// at least `least_bytes`.
std::string corpus(std::uint64_t seed, std::size_t least_bytes = 300'000);

}  // namespace shardbook::data::grammar
