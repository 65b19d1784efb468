// report/style: which colours and sizes has the page?
//
// Light and dark by what the reader's system prefers, light on paper. Every pair of text and ground that the page uses
// has a contrast of at least 4.5 (WCAG 2.1, 1.4.3), every fill that means something one of 3 against its ground
// (1.4.11); tests compute both from the variables here.
#pragma once

#include <string_view>

namespace shardbook::report {

// The content of the page's <style>.
std::string_view style();

}  // namespace shardbook::report
