// checkpoint/folder: where do checkpoints lie, and which is the newest that is whole?
//
//     DIR/step-00000020/     a checkpoint: what bears such a name was whole when it got it
//     DIR/.step-00000040.…/  one that is being written, or was when its run was killed; nobody reads it
//     DIR/.writer            locked by the run that writes here, as long as it lives; holds its token
//
// A checkpoint is written beside, and gets its name when each of its files is on the disk (saver.hpp). One that goes loses
// its name first. So whatever ends a run, and whenever, no name leads to a part of a checkpoint.
//
// Source: pytorch/pytorch @0140b62d, torch/distributed/checkpoint/filesystem.py (FileSystemWriter.finish: the metadata is
// written beside and renamed, last; the data files already have their names, and one metadata that is replaced is removed
// before, so there is a moment without any).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/files.hpp"
#include "engine/checkpoint/manifest.hpp"

namespace shardbook::checkpoint {

// "DIR/step-00000020"
std::string path_of_step(const std::string& folder, std::int64_t step);
// ... while it is being written, and of what goes: "DIR/.step-00000020.TOKEN".
std::string hidden_path_of_step(const std::string& folder, std::int64_t step, const std::string& token);
// Steps of which there is a folder, the newest first.
std::vector<std::int64_t> steps_in(const std::string& folder);

struct Found {
  std::string path;
  Manifest manifest;
  std::vector<std::string> passed_over;   // why newer ones are none, a sentence each
};
// The checkpoint that `place` is, or the newest whole one of those in it: its manifest can be read, its files are there, of
// the right length. What they hold is compared with their sums when it is read.
// Errors: there is none; the only one, or all of them, are damaged.
base::Result<Found> find(const std::string& place);

// A run that writes checkpoints to a folder, alone.
class Claim {
 public:
  Claim() = default;   // of no folder
  // Makes the folder, locks it, and clears away what a killed run has left half written. Errors: it cannot be made or
  // written; another run writes there.
  // `token` is of this run alone.
  static base::Result<Claim> take(const std::string& folder, const std::string& token);

 private:
  File lock_;
};

// Whether this folder is the one that rank 0 has claimed with that token: ranks meet in it. Waits a few seconds for a file
// system that is slow to tell. Errors: it is another, on this node.
base::Status expect_claimed(const std::string& folder, const std::string& token, std::chrono::milliseconds patience = std::chrono::seconds(10));

// Gives what lies in `hidden`, whole and on the disk, the name of its step, durably.
base::Status publish(const std::string& folder, const std::string& hidden, std::int64_t step, const std::string& token);
// Removes checkpoints before `newest` but for the newest keep − 1 whole ones; keep 0 removes none. Errors: they cannot be
// removed.
base::Status remove_older(const std::string& folder, std::int64_t newest, int keep, const std::string& token);

}  // namespace shardbook::checkpoint
