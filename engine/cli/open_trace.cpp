#include "engine/cli/open_trace.hpp"

#include <ostream>

#include "engine/base/printable.hpp"
#include "engine/launch/recover.hpp"
#include "engine/timeline/reader.hpp"

namespace shardbook::cli {

namespace {

// Ids stay as they are: two names that would become one are kept apart.
void make_printable(timeline::Strings& strings) {
  timeline::Strings shown;
  for (std::uint32_t id = 1; id < strings.size(); ++id) {
    std::string text = base::printable(strings[id]);
    while (shown.find(text) != 0 || text.empty()) text += "'";
    shown.intern(text);
  }
  strings = std::move(shown);
}

void make_printable(timeline::Timeline& timeline) {
  make_printable(timeline.strings);
  for (timeline::Track& track : timeline.tracks) track.name = base::printable(track.name);
  for (timeline::Counter& counter : timeline.counters) counter.name = base::printable(counter.name);
  for (timeline::Provenance& rank : timeline.ranks) {
    rank.profile = base::printable(rank.profile);
    rank.device = base::printable(rank.device);
  }
}

}  // namespace

base::Status finish_killed_runs(const std::vector<std::string>& places, Console& console) {
  for (const std::string& place : places) {
    if (!launch::is_unfinished(place)) continue;
    const base::Result<launch::Outcome> outcome = launch::recover(place);
    if (!outcome) return outcome.as_error();
    console.err << "note: the run in " << base::printable(place) << " had not ended; a run was made of what its ranks had recorded\n";
  }
  return base::Done{};
}

base::Result<timeline::Timeline> open_trace(const std::vector<std::string>& places, Console& console) {
  if (base::Status finished = finish_killed_runs(places, console); !finished) return finished.as_error();
  base::Result<timeline::Timeline> read = timeline::read(places);
  if (read) make_printable(read.value());
  return read;
}

void print_banners(const timeline::Timeline& timeline, Console& console) {
  for (const std::string& banner : timeline.banners) console.err << "note: " << base::printable(banner) << "\n";
}

base::Status is_whole(const timeline::Timeline& timeline) {
  for (const std::string& banner : timeline.banners) {
    if (banner.find(" is cut off at byte ") == std::string::npos) continue;
    return base::Error{base::text(banner.substr(0, banner.find(':')), ", so its figures would be wrong; `shardbook show` opens what is there")};
  }
  return base::Done{};
}

}  // namespace shardbook::cli
