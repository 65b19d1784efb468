// check/words: how an op of a record is named in a sentence.
#pragma once

#include <string>

#include "engine/program/program.hpp"

namespace shardbook::check {

// "engine/fsdp/schedule.cpp:76"
std::string line_text(const program::SourceLine& where);
// "all_gather fsdp_unit (forward, layer 3, micro-batch 0; engine/fsdp/schedule.cpp:76)"
std::string op_text(const program::Op& op);
// Names of a catalogue; one that it lacks is "stream 7".
std::string stream_name(const program::Catalogue& catalogue, program::StreamId stream);
std::string event_name(const program::Catalogue& catalogue, program::EventId event);
std::string buffer_name(const program::Catalogue& catalogue, program::BufferId buffer);

}  // namespace shardbook::check
