// cli/report: what does a run say of itself?
//
// The same words go to the terminal and to summary.txt. Every figure stands beside its clock; a table holds one
// clock only (metrics/table). Lines are at most 100 characters.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/book/project.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/config/config.hpp"
#include "engine/launch/launch.hpp"

namespace shardbook::cli {

// Before the first step: the lab, what runs where, which clock, model, data and batch.
std::string heading_text(const config::RunConfig& config, const std::optional<book::Lab>& lab);

// What a run left, for cause/: its records and run.json, taken out of the outcome.
cause::Recorded recorded_of(launch::Outcome& outcome);

// After the last: loss, where the time of each rank went, speed, what bounds the step (cause::headline), the folder and
// what to do next. REQUIRES: the outcome is a reporter's.
std::string outcome_text(const config::RunConfig& config, const launch::Outcome& outcome, const cause::Recorded& recorded,
                         const std::optional<book::Lab>& lab);

// The same figures for programs; times in nanoseconds.
nlohmann::json outcome_json(const config::RunConfig& config, const launch::Outcome& outcome, const cause::Recorded& recorded);

// Overlap and exposed communication over all ranks: sums of metrics::Partition.
struct Totals {
  base::Nanoseconds window_ns = 0, communication_ns = 0, overlapped_ns = 0, exposed_ns = 0;
  // Of the communication, and of the window; negative where there is none.
  double overlap() const { return communication_ns > 0 ? double(overlapped_ns) / double(communication_ns) : -1; }
  double exposed_share() const { return window_ns > 0 ? double(exposed_ns) / double(window_ns) : -1; }
};
Totals totals_of(const timeline::Timeline& timeline);

// "MODELLED h200x8", "measured on the GPUs", "wall clock of this CPU"
std::string clock_phrase(const config::RunConfig& config);

}  // namespace shardbook::cli
