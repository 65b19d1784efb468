// reading/citation: which lines of which file does this text name?
//
// A citation is `path:L142-L168` or `path:L142`. Also read: a range without the second L, and GitHub's own links
// (`.../blob/COMMIT/path#L142-L168`), whose commit is kept so that it can be compared with the one the notes name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::reading {

struct Citation {
  std::string path;                  // as it is written, without a link's host and commit
  int first = 0, last = 0;           // lines, from 1, both included
  std::string commit;                // of a link: what stands behind /blob/; else ""
  int line = 0;                      // of the note, from 1
  std::size_t begin = 0, end = 0;    // in that line, bytes
  std::vector<std::string> symbols;  // code words behind it in the same line, up to the next citation
};

// The citations of one line of a note, from left to right. A path holds a slash or a dot and no blank.
std::vector<Citation> citations_in(std::string_view line, int number);

// Code words of a line: what stands in `backticks` and is a name. `f()` and `x=1` count as f and x, `a.b` stays whole.
// A word behind "switch" or "span" is a name of this project, and no name of the file that is cited.
struct CodeWord {
  enum class Of { file, our_switch, our_span };
  std::string name;
  std::size_t begin = 0;   // of the name, in the line
  Of of = Of::file;
};
std::vector<CodeWord> code_words_in(std::string_view line);

// "layers.py:L694-L698"
std::string place_text(std::string_view path, int first, int last);

}  // namespace shardbook::reading
