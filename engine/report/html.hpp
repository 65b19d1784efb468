// report/html: how does text of a trace become part of a page, and nothing but text?
//
// Names in a trace were written by anybody. Each passes escaped() once, on its way into the page; all else is
// written by this room. Elements are closed always, so that a page is also well-formed XML.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/types.hpp"

namespace shardbook::report {

// For content and for attributes in double quotes. What isn't UTF-8, control characters, and the signs that turn
// the direction of the text around them become U+FFFD.
std::string escaped(std::string_view text);

// At most `most` characters; what is longer loses its middle to an ellipsis. REQUIRES: most >= 3.
std::string shortened(std::string_view text, std::size_t most);
// Characters of a UTF-8 text.
std::size_t characters(std::string_view text);

using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// <tag name="value">inside</tag>; values are escaped here, `inside` is HTML already.
std::string element(std::string_view tag, Attributes attributes, std::string_view inside);
inline std::string element(std::string_view tag, std::string_view inside) { return element(tag, {}, inside); }

// Milliseconds with all six decimals, as `metrics` prints them: "134.502167". Times may be negative.
std::string milliseconds(base::Nanoseconds ns);
// The same, with the integer nanoseconds for programs: <data value="134502167">134.502167</data>.
std::string milliseconds_data(base::Nanoseconds ns);
// "98.2 %", or "–" where the whole is 0.
std::string percent(base::Nanoseconds part, base::Nanoseconds whole);
// A coordinate of a picture, to a tenth: "12", "12.5".
std::string coordinate(double value);

}  // namespace shardbook::report
