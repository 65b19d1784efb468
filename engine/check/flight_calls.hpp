// check/flight_calls: what have ranks of a group called that does not go together?
//
// Their pages are laid side by side as programs, which the ledger compares; beside that reductions and the parts of an all-to-all are.
// Private to flight.cpp, whose second question it is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/check/flight.hpp"

namespace shardbook::check {

// The first call, by step, in which a rank parts from the others; Blame::nobody where none does. Who is only behind has not done
// anything else.
Verdict who_differs(const std::vector<FlightAccount>& accounts);

// The place of a rank among those of the page; their number, if it is none of them.
std::size_t index_of(const FlightPage& page, base::Rank rank);
// "dp_shard (ranks 0, 1)"
std::string members_text(const FlightPage& page);
// "all_reduce of 64 bytes f32, qkv (step 3, forward, layer 0; engine/…:20)"
std::string call_text(const FlightCall& call);

}  // namespace shardbook::check
