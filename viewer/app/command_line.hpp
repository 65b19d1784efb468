// app/command_line: what the program was asked for.
//
//   shardbook-viewer view [RUN|TRACE|LAB...]      shardbook-viewer diagram FILE
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::app {

struct ViewRequest {
  std::vector<std::string> open;
  std::string screenshot, script;    // files; "" = a window
  std::string theme, layout, view, panel;
  int width = 1280, height = 800;
  float scale = 1;
};

struct DiagramRequest {
  std::string file;                  // "-" is the standard input
  std::string png, theme;
  int number = 1;                    // which one of a page
  bool json = false;
  float scale = 1;
};

// Each returns the program's exit code: 0, or 2 with one sentence on `err`.
int view(const ViewRequest& request, std::ostream& err);
int draw_diagram(const DiagramRequest& request, std::ostream& out, std::ostream& err);

// "1280x800". Errors: what a size is.
base::Result<std::pair<int, int>> size_of(const std::string& words);

int main_with(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace shardbook::app
