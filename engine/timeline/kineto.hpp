// timeline/kineto: the words that Kineto and its readers use for what a Timeline holds.
//
// Categories are Kineto's (libkineto/include/ActivityType.h of pytorch/kineto at 114171df); by name
// Holistic Trace Analysis decides what is communication, memory and compute (hta/utils/utils.py
// of facebookresearch/HolisticTraceAnalysis at f4d0062). Both directions stand here, side by side.
#pragma once

#include <string>
#include <string_view>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// What a row of category `cat` and name `name` is, and on which kind of track it belongs.
struct RowKind {
  TrackKind track = TrackKind::host;
  Class cls = Class::host;
};
RowKind row_kind(std::string_view cat, std::string_view name);

// The category that a span is written under.
std::string_view category(TrackKind kind, Class cls, std::string_view kineto_name, std::uint32_t correlation);

// "_allgather_base", "all_gather" or "ncclDevKernel_AllGather_RING_LL" -> all_gather.
CollectiveOp collective_op(std::string_view name);
// all_gather -> "AllGather", as in ncclDevKernel_AllGather.
std::string_view nccl_name(CollectiveOp op);

// Bytes of one element, by PyTorch's name ("BFloat16") or ours ("bf16"); 0 if unknown.
Bytes element_bytes(std::string_view dtype);

// A name for a device span that HTA files under the class that it has.
std::string safe_name(std::string_view label, Class cls, CollectiveOp op);

const char* name_of(TrackKind kind);

}  // namespace shardbook::timeline
