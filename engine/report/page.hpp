// report/page: a run as one page to share.
//
// One file that needs no other, no network and no script, opens from a disk, prints, and follows the reader's light or
// dark. First who told the times, then the one sentence with its line of source, then pictures, then figures.
// A Content-Security-Policy in the page forbids scripts and all that would be loaded, whatever a trace is named.
#pragma once

#include <string>

#include "engine/report/figures.hpp"

namespace shardbook::report {

struct PageOf {
  const Timeline& timeline;
  const Figures& figures;
  const timeline::RunInfo* run = nullptr;   // run.json, where there is one
  std::string name;                         // of the run's folder, or of the trace
  std::string made_with;                    // "shardbook 0.1.0"
};

// The whole page. Never fails: what is unknown is said to be so.
std::string page(const PageOf& of);

}  // namespace shardbook::report
