// diagram/diagram_limits: what no diagram for people exceeds, so that none can hang the page.
#pragma once

#include <cstddef>
#include <string>

namespace shardbook::diagram {

inline constexpr int most_nesting = 64;
inline constexpr std::size_t most_parts = 20000;

// Thrown inside a parser, caught by parse_diagram alone; `reason` is one clause that follows "line N: ".
struct DiagramError {
  int line = 0;
  std::string reason;
};

}  // namespace shardbook::diagram
