// scene/link: a place as one line of text.
//
//   trace:RUN?t=1.2ms..1.9ms&pin=r0.s20&open=r0&sel=r0.s20/117     a view of a run
//   lab:02#overlap    note:03#cost    span:fsdp.prefetch    source:engine/fsdp/schedule.cpp:118
//   room:fsdp         https://...
// RUN is a folder or file as `view` takes it, relative to the project's root; empty means the open run.
// Times count from the run's first device work (Scene::whole().start), as the ruler shows them: a number
// with ns, us, µs, ms or s. `sel=next-exposed` selects the first exposure; `pin`, `open` may stand several
// times. %20 and the like stand for letters that would end a part. Unknown parts are an error with the
// part named. A relative link of a page ("../engine/fsdp/schedule.cpp#L118", "03_tensor_parallel.md#x",
// "#x") is resolved against the page's own folder into one of the above; it never leaves the project.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/types.hpp"

namespace shardbook::scene {

struct Link {
  enum class Kind : std::uint8_t { trace, page, span, source, web };
  Kind kind = Kind::web;
  // Run; page path from the root; span name; source path; address. lab:02 is the page "labs/02", note:03
  // "notes/03": who opens it completes the number to the folder or file that begins so.
  std::string target;
  std::string anchor;                 // of a page
  int line = 0;                       // of a source; 0 = not said
  // Of a trace:
  std::optional<base::Nanoseconds> start, end;
  std::vector<std::string> pins, open;
  std::string selected;
  friend bool operator==(const Link&, const Link&) = default;
};

// `page`: the path from the root of the page that holds it ("notes/03_tensor_parallel.md"), or "".
base::Result<Link> parse_link(const std::string& text, const std::string& page = "");
// What parse_link() reads as the same link.
std::string link_text(const Link& link);

}  // namespace shardbook::scene
