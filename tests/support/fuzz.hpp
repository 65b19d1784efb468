// What fuzz targets share: how they say that something does not hold, and where they put files.
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace shardbook::tests {

// Not by exceptions or gtest: a fuzzer looks for the end of its process.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// A new empty folder, in memory where the system has such.
inline std::string scratch_folder() {
  namespace fs = std::filesystem;
  std::string name = (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) / "shardbook-fuzz-XXXXXX";
  require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
  return name;
}

}  // namespace shardbook::tests
