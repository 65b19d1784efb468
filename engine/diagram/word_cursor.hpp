// diagram/word_cursor: where a parser stands among the words of a diagram.
//
// For recursive descent: look at a word, take it if it is of this kind, or say what was expected in its place. A word
// has a kind (with `invalid` among them), its text and its offset, and a function description_of(word) that messages use.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/diagram/diagram_limits.hpp"
#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

// A parser derives from it. REQUIRES: at least one word; the last one is also what stands behind it. The source outlives this.
template <typename Word>
class WordCursor {
 protected:
  using Kind = decltype(Word::kind);

  WordCursor(const DiagramSource& source, std::vector<Word> words) : source_(source), words_(std::move(words)) {}

  const Word& word() const { return words_[std::min(at_, words_.size() - 1)]; }
  bool is(Kind kind) const { return word().kind == kind; }
  int line() const { return source_.line_at(word().offset); }

  // This word, and moves past it.
  const Word& next() {
    const Word& found = word();
    ++at_;
    return found;
  }
  bool take(Kind kind) {
    if (!is(kind)) return false;
    ++at_;
    return true;
  }
  std::string_view expect(Kind kind, const char* what) {
    if (!is(kind)) wrong(what);
    return next().text;
  }
  // Throws a DiagramError at this word.
  [[noreturn]] void wrong(const std::string& expected) const {
    if (is(Kind::invalid)) throw DiagramError{line(), base::text("the sign ", description_of(word()), " has no meaning here; ", expected, " was expected")};
    throw DiagramError{line(), base::text(description_of(word()), " was found where ", expected, " was expected")};
  }

  const DiagramSource& source_;
  const std::vector<Word> words_;
  std::size_t at_ = 0;
};

}  // namespace shardbook::diagram
