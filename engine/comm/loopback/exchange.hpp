// comm/loopback: what does a collective do with the numbers of its ranks?
//
// All that is the same whether ranks are threads or processes: what each brings, whether their calls fit together,
// and the arithmetic. Sums run over ranks in group order, whoever comes last: one order, equal bits everywhere. The
// exact checks of nccl-tests are possible because of that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/comm/comm.hpp"

namespace shardbook::comm {

// What a rank brings to a call. Nothing in it points anywhere, so it may lie in memory that processes share; what `in`
// and `out` mean is told by Memories (meetings.hpp).
struct Visit {
  program::OpKind kind = program::OpKind::all_reduce;
  Reduction reduction = Reduction::sum;
  base::DType dtype = base::DType::f32, nominal = base::DType::f32;   // as stored; as a GPU would have it
  program::Phase phase = program::Phase::setup;
  std::int16_t layer = -1, micro_batch = -1;
  std::int32_t peer = -1;                // root of a broadcast, partner of send and receive, distance of a shift
  std::uint32_t line = 0;                // of the source, that issued it
  std::uint64_t ticket = 0;              // counts the collectives of a communicator, or what goes from a sender to its receiver
  std::int64_t elements = 0;             // see Communicator::Call
  std::int64_t in_elements = 0, out_elements = 0;
  std::uint64_t in = 0, out = 0;
};

// One rank at a call, with its memory where this process sees it.
struct Visitor {
  const Visit* visit = nullptr;          // null: of a send and its receive, all but these two
  base::Rank rank = 0;
  const char* file = "";                 // of the source
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  const std::int64_t* send = nullptr;    // of all_to_all: elements to each rank, and from each
  const std::int64_t* receive = nullptr;
};

// "all_reduce 3"
std::string call_text(const Visit& visit);
// "8 f32, forward, layer 1; engine/model/block.cpp:20"
std::string site_text(const Visit& visit, const char* file);
// "tp (ranks 0, 1)"
std::string members_text(const std::string& axis, const std::vector<base::Rank>& ranks);

// Throws base::Failure, with two ranks and both call sites, unless all issued the same call. `visitors` by index in
// the group.
void expect_agreement(const std::string& group, const std::vector<Visitor>& visitors);
// The call itself, for all. In and out may be the same memory, as Communicator says. REQUIRES: they agree.
void carry_out(const std::vector<Visitor>& visitors);

}  // namespace shardbook::comm
