// cli/pack_command: what timeline/pack makes, and where it goes; see pack_command.hpp.
#include "engine/cli/pack_command.hpp"

#include <filesystem>
#include <ostream>

#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/timeline/pack.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;

namespace {

std::string bytes_text(std::uintmax_t bytes) { return short_number(static_cast<double>(bytes), " ") + "B"; }

// RUN.tar.gz in the current folder, RUN the name of the run's folder.
std::string default_name(const std::string& run) {
  const fs::path whole = fs::absolute(run).lexically_normal();
  const fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  return (name.empty() ? "run" : name.string()) + timeline::pack_ending();
}

}  // namespace

std::vector<Switch> pack_switches() {
  return {{"out", "FILE", "Where to; a name that ends in .tar is not packed with gzip.", "RUN" + timeline::pack_ending() + ", here"}};
}

int pack_run(const Line& line, Console& console) {
  const std::string& run = line.places.front();
  const std::string out = line.has("out") ? line.value("out") : default_name(run);
  if (!timeline::is_pack_name(out)) {
    return refuse(console, base::text("--out ", out, ": the name of a pack ends in .tar.gz, .tgz or .tar, by which it is known"));
  }
  if (base::Status finished = finish_killed_runs({run}, console); !finished) return refuse(console, finished.error());
  const base::Result<timeline::PackSize> packed = timeline::write_pack(run, book::project_root(), out);
  if (!packed) return refuse(console, packed.error());
  std::error_code ignored;
  console.out << "Pack  " << base::printable(out) << "   " << bytes_text(fs::file_size(out, ignored)) << ", of "
              << count_text(static_cast<long long>(packed.value().files), "file") << " with " << bytes_text(packed.value().bytes) << "\n"
              << "Next  ./shardbook view " << base::printable(shell_word(out)) << "     on any machine\n";
  return exit_ok;
}

}  // namespace shardbook::cli
