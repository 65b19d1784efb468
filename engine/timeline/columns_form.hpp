// timeline/columns_form: what stands in run.tlb, said once for writing and reading.
//
// describe() names each part of a timeline in the order of the file; an archive (the writer's or the
// reader's, columns.cpp) decides what naming it does. So the two cannot disagree.
//   archive.value(x)                  an integer or enum, in the head
//   archive.text(string)              in the head
//   archive.list(vector, visit)       a count in the head, then visit(element) of each
//   archive.column(vector, count)     a column of `count` plain values
//   archive.table(vector, fields...)  a count in the head, then a column of each field of its elements
#pragma once

#include <cstdint>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

constexpr char columns_magic[9] = "SHARDTLB";
constexpr std::uint32_t columns_version = 2;
constexpr std::size_t column_alignment = 64;

// The fixed part before the head.
struct ColumnsHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t reserved = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t head_bytes = 0;
  std::uint64_t head_checksum = 0;
  std::uint64_t own_checksum = 0;          // of the bytes before it
  std::uint64_t padding[2] = {};
};
static_assert(sizeof(ColumnsHeader) == column_alignment);

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + column_alignment - 1) / column_alignment * column_alignment; }

// All names one after the other, and how long each is.
struct StoredStrings {
  std::vector<char> text;
  std::vector<std::uint32_t> length;
};

// `edges` are those of the timeline, as structs.
template <class Archive>
void describe(Archive& archive, Timeline& timeline, StoredStrings& strings, std::vector<Edge>& edges) {
  archive.value(timeline.base_ns);
  archive.list(timeline.banners, [&](std::string& banner) { archive.text(banner); });
  archive.list(timeline.ranks, [&](Provenance& p) {
    archive.value(p.rank), archive.value(p.world_size), archive.value(p.clock), archive.value(p.clock_error_ns);
    archive.value(p.foreign), archive.text(p.profile), archive.text(p.device);
  });
  archive.table(strings.length, [](std::uint32_t& length) -> auto& { return length; });
  archive.table(strings.text, [](char& letter) -> auto& { return letter; });
  archive.table(
      timeline.details, [](Detail& d) -> auto& { return d.op; }, [](Detail& d) -> auto& { return d.part; },
      [](Detail& d) -> auto& { return d.phase; }, [](Detail& d) -> auto& { return d.micro_batch; },
      [](Detail& d) -> auto& { return d.chunk; }, [](Detail& d) -> auto& { return d.layer; },
      [](Detail& d) -> auto& { return d.n; }, [](Detail& d) -> auto& { return d.source.file; },
      [](Detail& d) -> auto& { return d.source.line; }, [](Detail& d) -> auto& { return d.awaits.file; },
      [](Detail& d) -> auto& { return d.awaits.line; }, [](Detail& d) -> auto& { return d.planned.file; },
      [](Detail& d) -> auto& { return d.planned.line; }, [](Detail& d) -> auto& { return d.planned_leads; }, [](Detail& d) -> auto& { return d.flops; },
      [](Detail& d) -> auto& { return d.bytes; });
  archive.table(
      timeline.collectives, [](Collective& c) -> auto& { return c.group; }, [](Collective& c) -> auto& { return c.seq; },
      [](Collective& c) -> auto& { return c.op; }, [](Collective& c) -> auto& { return c.dtype; },
      [](Collective& c) -> auto& { return c.bytes; }, [](Collective& c) -> auto& { return c.wait_ns; });
  archive.list(timeline.groups, [&](Group& group) {
    archive.value(group.name);
    archive.table(group.ranks, [](Rank& rank) -> auto& { return rank; });
  });
  archive.table(
      edges, [](Edge& e) -> auto& { return e.from.track; }, [](Edge& e) -> auto& { return e.from.index; },
      [](Edge& e) -> auto& { return e.to.track; }, [](Edge& e) -> auto& { return e.to.index; },
      [](Edge& e) -> auto& { return e.kind; });
  archive.table(
      timeline.steps, [](Step& s) -> auto& { return s.rank; }, [](Step& s) -> auto& { return s.number; },
      [](Step& s) -> auto& { return s.start; }, [](Step& s) -> auto& { return s.end; },
      [](Step& s) -> auto& { return s.host_start; }, [](Step& s) -> auto& { return s.host_end; });
  archive.list(timeline.counters, [&](Counter& counter) {
    archive.value(counter.rank), archive.text(counter.name);
    archive.table(counter.time, [](Nanoseconds& time) -> auto& { return time; });
    archive.table(counter.value, [](std::int64_t& value) -> auto& { return value; });
  });
  archive.list(timeline.tracks, [&](Track& track) {
    archive.value(track.rank), archive.value(track.kind), archive.value(track.id), archive.value(track.lane);
    archive.text(track.name);
    std::uint64_t count = track.size();
    archive.value(count);
    archive.column(track.start, count), archive.column(track.end, count), archive.column(track.label, count);
    archive.column(track.correlation, count), archive.column(track.detail, count), archive.column(track.collective, count);
    archive.column(track.step, count), archive.column(track.cls, count), archive.column(track.flags, count);
  });
}

}  // namespace shardbook::timeline
