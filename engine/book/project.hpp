// book/project: where are the labs, the notes and the engine's own text?
//
// The root is the folder that holds engine/, labs/ and notes/: what SHARDBOOK_ROOT names, else found upward from the
// current folder, else the one that this program was built from.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::book {

// "" where there is none: a program that was carried away from its tree.
std::string project_root();
// The same, looking upward from `folder` and then at `built_from`.
std::string project_root(const std::string& folder, const std::string& built_from);

// The content of a text file. Errors: missing, a folder, unreadable.
base::Result<std::string> read_text(const std::string& path);

// A lab: its folder, its titles, and the layouts that suit it.
struct Lab {
  struct Layout {
    int tp = 1, fsdp = 1;
    int ranks() const { return tp * fsdp; }
  };
  std::string name;                                                // "02_tensor_parallel"
  std::string folder;                                              // <root>/labs/02_tensor_parallel
  std::string title;                                               // English
  std::string note;                                                // what to read along: "03"
  std::vector<std::pair<std::string, std::vector<std::string>>> options;   // suggested, by name
  std::vector<Layout> host, cuda;                                  // largest first
};

// Names of all labs under root, ascending.
std::vector<std::string> lab_names(const std::string& root);
// The lab that "02", "2" or "02_tensor_parallel" names. Errors: none (those that exist are listed), a lab
// without lab.json, a lab.json that is malformed (file and key).
base::Result<Lab> find_lab(const std::string& root, const std::string& name);

}  // namespace shardbook::book
