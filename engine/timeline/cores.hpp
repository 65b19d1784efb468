// timeline/cores: the same work for each of several things, on as many threads as there are cores.
//
// Each index is worked on once, by whichever thread is free: what is done for one must not depend on
// another. So the result is the same however many threads there are.
#pragma once

#include <cstddef>
#include <functional>

namespace shardbook::timeline {

// Calls work(i) for each i < count and returns when all are done. An exception of the lowest index that
// threw is thrown on.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace shardbook::timeline
