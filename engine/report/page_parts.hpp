// report/page_parts: the parts of the page that are tables and pictures.
//
// Each is a whole <section> or "" where there is nothing to show. What is left out for want of room is named with its
// number, and sums stay whole.
#pragma once

#include <string>

#include "engine/report/figures.hpp"

namespace shardbook::report {

constexpr std::size_t most_drawn_ranks = 8;
constexpr std::size_t most_bars = 32;
constexpr std::size_t most_table_ranks = 1024;
constexpr std::size_t most_kinds = 12;
constexpr std::size_t most_exposures = 12;
constexpr std::size_t most_ops = 40;

// Where the time of each rank went: a bar a rank, its four parts with their numbers. One group a clock.
std::string bars(const Timeline& timeline, const Figures& figures);
// One step of the first ranks, and the longest blocking exposure from near.
std::string pictures(const Timeline& timeline, const Figures& figures);
std::string kinds_table(const Timeline& timeline, const Figures& figures);
std::string exposure_table(const Timeline& timeline, const Figures& figures);
std::string op_table(const Figures& figures);
// The figures of `metrics`, one table a clock.
std::string metrics_tables(const Timeline& timeline, const Figures& figures);

// "step 19", "steps 17 to 19", or "all device work" where there are none: what the figures are of.
std::string steps_text(const Timeline& timeline, const Figures& figures);

// "4 ranks", "1 rank"
std::string count_text(std::size_t count, const std::string& noun);

}  // namespace shardbook::report
