// reading/facts: what is known of the files that the lab reads, where the files themselves are not?
//
// The files are others' work and are not kept in this project. A table (labs/03_reading/places.json) keeps facts about
// each of them at the pinned commit: how many lines it has, the sha256 of its bytes, and in which lines some names
// stand. By it a citation can be judged without a network, as far as its name is in the table; a file that was fetched
// can be told from another version; and a table that no longer agrees with the files is found.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::reading {

struct FileFacts {
  std::string path;                                // in its repository
  std::string sha256;                              // of its bytes, in hexadecimal
  int lines = 0;
  std::map<std::string, std::vector<int>> names;   // the lines that hold this name as a whole word, ascending
};

struct Project {
  std::string repository;                          // "NVIDIA/Megatron-LM"
  std::string commit;                              // the pinned one, 40 hexadecimal digits
  std::string what;                                // "Megatron Core, main of 22 August 2026"
  std::vector<FileFacts> files;
};

struct Facts {
  std::vector<Project> projects;

  // nullptr where there is none.
  const Project* project(std::string_view repository) const;
  const FileFacts* file(std::string_view repository, std::string_view commit, std::string_view path) const;
};

// Errors: no JSON, a key that is missing.
base::Result<Facts> read_facts(const std::string& json);
std::string facts_json(const Facts& facts);
// The facts of a file's bytes; names that stand nowhere in it have no lines.
FileFacts facts_of(std::string path, std::string_view bytes, const std::vector<std::string>& names);

}  // namespace shardbook::reading
