// app/script_lines: a script's text as checked lines.
//
// Everything that can be seen to be wrong without running it is an error here: words that are unknown, too many or
// missing, keys without a name, numbers that are none. So a script that starts is at least well formed.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::app {

struct ScriptLine {
  int number = 0;                    // in the file, from 1
  std::string text;                  // as written, for messages
  std::string verb;
  std::vector<std::string> words;    // behind it, unquoted; $NAME not yet replaced
};

// `name` stands for the script in messages. Errors: name, line, what is wrong.
base::Result<std::vector<ScriptLine>> script_lines(const std::string& text, const std::string& name);

// A number, whole or not. Errors: the word itself.
base::Result<double> read_number(const std::string& word);

}  // namespace shardbook::app
