// metrics/queued: which part of a collective did it stand before a full device?
//
// A collective that has been issued, and whose ranks have all come, still needs room on the multiprocessors. A large matmul
// keeps all of them until it ends. A span of ours begins where its stream comes to the collective, before that wait: when
// what it stands behind has ended (device/cuda/span_timer.hpp; the modelled clock does alike, simulate/resolver.hpp). So
// the wait is within the span, and no clock tells it from the transfer. It is claimed only where the run itself shows it:
//   1. when the collective was ready on a rank, a matmul (or flash attention, which is made of such) ran there on another stream, and ran on after the last rank had come;
//   2. nothing had been sent while it ran: the collective took longer than one of its size that met no kernel when it became
//      ready, and by at least three quarters of the time that the matmul still took. What had only been slowed by the matmul
//      takes longer by less.
// It is then queued until the matmul ends, or until what is left is just such a transfer. "Of its size" is the median of those
// of the same group, op and bytes; where there are not three, of the next larger ones up to four times as many bytes, by bytes.
// Not of traces of others, whose spans begin with the kernel itself, nor of the wall's clock.
#pragma once

#include <vector>

#include "engine/metrics/collectives.hpp"

namespace shardbook::metrics {

// Sets `queued_until` and `queued_behind` of those that queued; match_collectives() does it. O(collectives · streams of a rank · log spans).
void find_queued(const Timeline& timeline, std::vector<MatchedCollective>& matched);

}  // namespace shardbook::metrics
