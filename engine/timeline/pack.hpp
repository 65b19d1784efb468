// timeline/pack: one small file of a run, to carry from the node to a laptop.
//
// It is a tar archive that any tar opens, through gzip where zlib is built in (RUN.tar.gz), plain where not
// (RUN.tar). Below one folder, named like the run:
//
//   pack.json             the form's version and the run's name
//   run/                  rank files, records (rankN.program), run.json, summary.txt, notes.json
//   notes/, labs/<lab>/   what a reader wants beside it, of the project that packed it
//
// run.tlb stays behind: it is large, and made from the rank files.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"
#include "engine/timeline/progress.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// ".tar.gz", or ".tar" in a build without zlib.
std::string pack_ending();
// Whether a file of this name is read as a pack: *.tar, *.tar.gz, *.tgz.
bool is_pack_name(const std::string& path);

struct PackSize {
  std::size_t files = 0;
  std::uint64_t bytes = 0;         // before packing
};

// Packs a run folder into out_path, written beside and renamed. project_root may be "": then without notes
// and lab. Errors: no folder, no rank files, anything unreadable, out_path cannot be written or asks for
// gzip (any ending but .tar) in a build without it; nothing is left then.
base::Result<PackSize> write_pack(const std::string& run_folder, const std::string& project_root, const std::string& out_path);

// Where a pack was unpacked: `root` stands for the project (notes/, labs/), `run` is the run's folder.
struct OpenedPack {
  std::string root, run;
};

// Unpacks below target_folder, which is made and must be empty or not there; if anything is wrong nothing is
// left of it. Errors: no pack, cut off, damaged, of another version, names or sizes that no pack has.
// `heard` hears how far it is (progress.hpp).
base::Result<OpenedPack> open_pack(const std::string& path, const std::string& target_folder, const Heard& heard = {});

// The timeline of a pack without unpacking it to the disk; timeline::read() does so for pack names.
base::Result<Timeline> read_pack(const std::string& path);

}  // namespace shardbook::timeline
