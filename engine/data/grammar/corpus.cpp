#include "engine/data/grammar/corpus.hpp"

#include <string_view>

#include "engine/data/grammar/drills.hpp"
#include "engine/data/order.hpp"

namespace shardbook::data::grammar {

std::size_t Draw::below(std::size_t count) {
  return static_cast<std::size_t>(((mix(seed_ + draws_++) >> 32) * count) >> 32);
}

namespace {

// "My sister works with my sister" is grammar, but nobody says so.
bool names_again(const Subject& subject, const Complement& complement) {
  if (subject.pronoun) return false;
  const std::string_view who = subject.english;
  const std::string_view noun = who.substr(who.rfind(' ') + 1);
  return std::string_view(complement.english).find(noun) != std::string_view::npos;
}

// Draws until the clause is as asked.
template <class Wanted>
Clause draw_until(Draw& draw, Wanted&& wanted) {
  while (true) {
    const Subject& subject = draw.one_of(subjects());
    const Action& action = draw.one_of(actions());
    const Complement& complement = action.complements[draw.below(action.complements.size())];
    if (!names_again(subject, complement) && wanted(action, complement)) return {subject, action, complement};
  }
}

}  // namespace

Clause draw_clause(Draw& draw) {
  return draw_until(draw, [](const Action&, const Complement&) { return true; });
}

Clause draw_dynamic_clause(Draw& draw) {
  return draw_until(draw, [](const Action& action, const Complement&) { return !action.stative; });
}

Clause draw_object_clause(Draw& draw) {
  return draw_until(draw, [](const Action&, const Complement& complement) { return *complement.object != '\0'; });
}

const Noun& draw_object(Draw& draw) {
  while (true) {
    const Noun& noun = draw.one_of(nouns());
    if (noun.object) return noun;
  }
}

std::string corpus(std::uint64_t seed, std::size_t least_bytes) {
  Draw draw(mix(seed));
  const std::span<const Drill> languages[] = {english_drills(), spanish_drills(), both_drills()};
  std::string text;
  while (text.size() < least_bytes) {
    // A drill that does not suit what it drew appends nothing.
    std::string paragraph;
    draw.one_of(languages[draw.below(3)])(draw, paragraph);
    if (!paragraph.empty()) text += paragraph + "\n";
  }
  return text;
}

}  // namespace shardbook::data::grammar
