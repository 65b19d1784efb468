// app/script: what a user would do, line by line.
//
//   open PATH...            size W H [SCALE]        theme light|dark      wait [FRAMES]
//   cmd ID [ARGUMENT]       key "Ctrl+P"            type "text"           layout split
//   click "LABEL"           hover "LABEL"           drag "LABEL" DX DY    scroll "LABEL" N
//   expect "words on the screen"        expect NAME VALUE      expect NAME ~ "part"     refuse "words"
//   expect NAME > NUMBER    save NAME as WORD, then $WORD       shot FILE.png
// A line that cannot be carried out stops the script with its number, what was wanted and the nearest
// things that are on the screen. Whatever acts waits until the desk is idle afterwards. `expect "words"` looks
// at all that was drawn, without regard to where lines break; `refuse` expects that they are not there. A label
// may be told apart by its pane: "notes/03 Tensor parallel". What the desk reports as a problem stops the script
// too, unless the next line is about it: expect problem ~ "part". '#' begins a remark.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "viewer/app/stage.hpp"

namespace shardbook::app {

// `name` stands for the script in messages.
base::Status run_script(const std::string& text, const std::string& name, Desk& desk, Picture& picture);

}  // namespace shardbook::app
