// checkpoint/saver: files are written while the next steps run.
//
// Each rank has one. It is handed numbers in host memory that nobody changes meanwhile, and a thread of its own writes
// them: to rankN.data in a hidden folder, with the sums, then to rankN.part what boxes these are. (That one is there from the
// first, under another name, so that nobody takes the folder for empty.) Rank 0 awaits all parts, joins them to the manifest,
// and gives the folder its name.
//
//   rank 1   data, fsync | part, renamed
//   rank 0   data, fsync | part | awaits rank 1's | manifest, fsync | fsync of the folder | rename | fsync of DIR | older ones go
//
// Ranks meet in the folder alone, so no collective runs beside those of the steps. The folder must be one that all nodes
// see.
//
// Sources: pytorch/pytorch @157e6e07, torch/distributed/checkpoint/_async_thread_executor.py (one worker saves what has
// been staged; there ranks meet in collectives of a group of their own); NVIDIA/Megatron-LM @00caa53a,
// megatron/core/dist_checkpointing/strategies/async_utils.py (an async call is done when it is done on all ranks, which
// each step asks by an all-reduce; only then it is finalized).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/load.hpp"

namespace shardbook::checkpoint {

struct SaverPlace {
  std::string folder;     // DIR: there, and claimed by this run
  std::string token;      // of this run, the same on all ranks
  base::Rank rank = 0;
  int ranks = 1;
  int keep = 0;           // checkpoints that stay; 0: all
  base::Bytes most_manifest = most_manifest_bytes;   // more is not saved
};

// What a save came to.
struct Saved {
  base::Bytes bytes = 0;        // what this rank wrote; on rank 0 of the whole checkpoint
  base::Nanoseconds took = 0;   // from its begin until this rank was done with it
  std::string left;             // why older ones that should have gone are there still; "": they are not
};

class Saver {
 public:
  explicit Saver(SaverPlace place) : place_(std::move(place)) {}
  // A save that is under way ends without a checkpoint.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Begins to save what this rank writes of the checkpoint after `step` steps. All ranks save the same steps.
  // REQUIRES: nothing is under way; what `parts` point to stays as it is until then.
  void begin(std::int64_t step, const std::string& config, std::vector<Part> parts);
  bool under_way() const { return worker_.joinable() && !ended_; }
  // Waits until nothing is under way; `watch` is called every so often, and may throw.
  void wait(const std::function<void()>& watch);
  // How the last save that has ended went. Errors: a sentence.
  base::Status status() const { return ended_ ? result_ : base::Status(base::Done{}); }
  // ... and what it came to. REQUIRES: one has ended.
  const Saved& saved() const { return saved_; }

 private:
  base::Status save(std::int64_t step, const std::string& config, const std::vector<Part>& parts);
  // Makes the folder, and a first file of this rank in it.
  base::Result<File> enter(const std::string& hidden, const std::string& first);
  base::Status write_part(const std::string& hidden, const std::vector<Part>& parts, std::int64_t step);
  base::Status join(const std::string& hidden, std::int64_t step, const std::string& config);
  base::Result<Manifest> joined(const std::string& hidden);
  bool is_there(const std::string& path);
  std::string path_in(const std::string& hidden, base::Rank rank, const char* ending) const;

  SaverPlace place_;
  std::thread worker_;
  std::atomic<bool> ended_{false}, cancelled_{false};
  // Of the worker until ended_, then of the owner:
  base::Status result_ = base::Done{};
  Saved saved_;
};

}  // namespace shardbook::checkpoint
