// timeline/progress: how far is a reader?
//
// Who waits for a large file gives a Heard. It hears the share of the work that is done, by the bytes of all files
// together: ascending, the last one 1 if all went well. It is called every megabyte or so, from any of the reader's
// threads, but never by two at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>

namespace shardbook::timeline {

// Of the whole in [0, 1]. False ends the reading soon, with an error.
using Heard = std::function<bool(double share)>;

// Counts the bytes of several files that are read at once.
class Meter {
 public:
  // Bytes up to 0.9 of the whole: what is joined and sorted when all are read comes on top. `heard` may be empty.
  Meter(const Heard& heard, std::int64_t whole) : heard_(heard), whole_(std::max<std::int64_t>(whole, 1)) {}

  // False if the reading is to end.
  bool add(std::int64_t bytes) {
    if (!heard_) return true;
    const std::lock_guard hold(guard_);
    done_ = std::min(done_ + bytes, whole_);
    go_on_ = go_on_ && heard_(0.9 * static_cast<double>(done_) / static_cast<double>(whole_));
    return go_on_;
  }

 private:
  const Heard& heard_;
  const std::int64_t whole_;
  std::mutex guard_;
  std::int64_t done_ = 0;
  bool go_on_ = true;
};

// One file's part of it: `weight` bytes, told as its text is gone through.
class FileMeter {
 public:
  FileMeter() = default;
  FileMeter(Meter& meter, std::int64_t weight) : meter_(&meter), weight_(weight) {}

  // `offset` of `size` has been gone through. False if the reading is to end.
  bool at(std::int64_t offset, std::int64_t size) {
    if (meter_ == nullptr || (offset - last_ < piece && offset < size)) return true;
    last_ = offset;
    const auto done = static_cast<std::int64_t>(static_cast<double>(weight_) * static_cast<double>(offset) / static_cast<double>(std::max<std::int64_t>(size, 1)));
    const std::int64_t more = std::max<std::int64_t>(done - told_, 0);
    told_ += more;
    return meter_->add(more);
  }

 private:
  static constexpr std::int64_t piece = std::int64_t{1} << 20;
  Meter* meter_ = nullptr;
  std::int64_t weight_ = 0, last_ = 0, told_ = 0;
};

}  // namespace shardbook::timeline
