// base/printable: text from a file, as it may stand on a terminal.
//
// Names in a trace, a config or a message come from anyone. A terminal obeys what it is sent: an escape sequence
// moves the cursor, hides what follows, sets its title. So all that was not written by us is printed through here.
#pragma once

#include <string>
#include <string_view>

namespace shardbook::base {

enum class Lines { escaped, kept };

// The text with what is no visible character written out: control characters as "\x1b" (with Lines::kept, tabs and line
// feeds stay), those of C1 and the marks that turn the direction of writing as "\u202e", bytes that are no UTF-8 as
// "\xff". Text without any comes back as it is.
std::string printable(std::string_view text, Lines lines = Lines::escaped);

}  // namespace shardbook::base
