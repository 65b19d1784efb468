// metrics/terminal: a timeline as lines of text.
//
// A row a stream, a row of exposed communication, a row of idle time. One character is one slice of
// time and says how much of it was busy: compute fills upward with blocks (▁▂▃▄▅▆▇█), communication
// by density of hatching (░▒▓), so that shape tells them apart without colour, and what queues before a
// full device by a broken line; where both run in one slice of a row the larger part wins. Pure: no terminal is asked, nothing is printed.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/metrics/collectives.hpp"
#include "engine/metrics/critical_path.hpp"

namespace shardbook::metrics {

struct ViewState {
  Window window;                          // what is shown; empty = everything
  std::optional<SpanRef> selected;        // an exposed span, by next_exposed
  bool quit = false;
};

// When collectives stood before a full device (queued.hpp): most spans did not, and are not here.
using QueuedSpans = std::unordered_map<SpanRef, Interval, SpanHash>;
QueuedSpans queued_spans(const Timeline& timeline);

struct DrawOptions {
  int width = 100;                        // columns, at least 40
  bool color = false;                     // ANSI colours
  bool ascii = false;                     // for terminals without UTF-8
  std::vector<Rank> ranks;                // empty = all
  const QueuedSpans* queued = nullptr;    // of the timeline, for who draws it often; else they are found
};

// Lines without line ends, each at most `width` columns. The first names clock and profile.
std::vector<std::string> draw(const Timeline& timeline, const ViewState& state, const DrawOptions& options);

enum class ViewKey { pan_left, pan_right, zoom_in, zoom_out, next_exposed, previous_exposed, fit, quit, none };

// a d pan by a quarter, w s zoom by two, n N next and previous exposed span (longest blocking
// first), f fit, q quit; arrows likewise ("\x1b[D" ...).
ViewKey key_of(const std::string& bytes);

// The next state; exposed spans are those of these ranks (empty: of all). Never zooms below 100 ns nor pans out of the timeline.
ViewState step(const Timeline& timeline, const ViewState& state, ViewKey key, const std::vector<Rank>& ranks = {});

}  // namespace shardbook::metrics
