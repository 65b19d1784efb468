// scene/link: a place as one line of text.
//
//   trace:RUN?t=1.2ms..1.9ms&pin=r0.s20&open=r0&sel=r0.s20/117     a view of a run
//   lab:02#overlap    note:03#cost    span:fsdp.prefetch    source:engine/fsdp/schedule.cpp:118
//   room:fsdp         https://...
// RUN is a folder or file as `view` takes it, relative to the project's root; empty means the open run;
// `sel=next-exposed` selects the first exposure. Unknown parts are an error with the part named.
// A relative link of a page ("../engine/fsdp/schedule.cpp", "03_tensor_parallel.md#x") is resolved
// against the page's own folder into one of the above.
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
  std::string target;                 // run; page path from the root; span name; source path; address
  std::string anchor;                 // of a page
  int line = 0;                       // of a source
  // Of a trace:
  std::optional<base::Nanoseconds> start, end;
  std::vector<std::string> pins, open;
  std::string selected;
};

// `page`: the path from the root of the page that holds it ("notes/03_tensor_parallel.md"), or "".
base::Result<Link> parse_link(const std::string& text, const std::string& page = "");
std::string link_text(const Link& link);

}  // namespace shardbook::scene
