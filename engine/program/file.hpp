// program/file: how is the record written down?
//
// `rankN.program` holds what one rank owned (catalogue), what it issued (each distinct program once) and
// when (the times of each traced step). It is what the resolver, the viewer and the checks read back.
//
// The form: eight bytes "SHBKPROG", the version, the length and the hash of what follows; then the text of
// all names, then numbers as variable-length integers (seven bits a byte, low bits first; signed ones
// zigzag), the integers of protocol buffers. A step of 2 500 ops takes about 100 KiB.
//
// Invariants: a file is written beside and renamed, so there is never half of one under its name. load()
// checks every index, so what it returns can be used without a further look.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/program/program.hpp"
#include "engine/program/recorder.hpp"
#include "engine/program/times.hpp"

namespace shardbook::program {

// What a file holds. Names and source files point into `text`, which must live as long as the programs.
struct Record {
  base::Rank rank = 0;
  int world_size = 1;
  Catalogue catalogue;
  std::vector<std::unique_ptr<Program>> programs;  // StepTimes::program is an index into these
  std::vector<StepTimes> steps;
  std::vector<std::unique_ptr<std::string>> text;
};

// Writes a rank's record. `steps` are the traced ones, in order. The folder must exist.
// Errors: the folder cannot be written, the disk is full; nothing is left then.
base::Status save(const std::string& path, base::Rank rank, int world_size, const Catalogue& catalogue,
                  const std::vector<std::unique_ptr<Program>>& programs, const std::vector<StepTimes>& steps);
// The same of what a recorder knows.
base::Status save(const std::string& path, int world_size, const Recorder& recorder,
                  const std::vector<StepTimes>& steps);

// The same bytes in memory, to be sent to another rank, and back; `name` stands for the file in sentences.
std::string encode(base::Rank rank, int world_size, const Catalogue& catalogue,
                   const std::vector<std::unique_ptr<Program>>& programs, const std::vector<StepTimes>& steps);
base::Result<Record> decode(std::string_view bytes, const std::string& name);

// Reads a record. Errors: missing or unreadable file, no record, another version, truncated or damaged.
base::Result<Record> load(const std::string& path);

}  // namespace shardbook::program
