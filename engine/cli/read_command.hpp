// cli/read_command: `read [NOTE]`, a note in the terminal with the engine's code woven in.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"

namespace shardbook::cli {

// The page that is meant: a path, a folder with text.md, or a name: "03", "words", "fsdp", "03_tensor_parallel".
// `language` "es" means text.es.md where there is one. Errors: none such (those that exist are listed), several.
base::Result<std::string> find_page(const std::string& root, const std::string& name, const std::string& language);

int read_note(const Line& line, Console& console);

}  // namespace shardbook::cli
