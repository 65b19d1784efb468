// cli/report_command: what report/ makes, from what, and where it goes; see report_command.hpp.
#include "engine/cli/report_command.hpp"

#include <filesystem>
#include <optional>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/base/printable.hpp"
#include "engine/cli/built_with.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/cli/window.hpp"
#include "engine/report/page.hpp"
#include "engine/timeline/output.hpp"
#include "engine/timeline/pack.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;
using timeline::Timeline;

namespace {

// "RUN", "fsdp_rank0": the last name of a path, without what tells its form.
std::string name_of_place(const std::string& place) {
  const fs::path whole = fs::absolute(place).lexically_normal();
  std::string name = (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
  std::error_code ignored;
  if (fs::is_directory(place, ignored)) return name;
  for (const char* ending : {".json.gz", ".tar.gz", ".json", ".tgz", ".tar", ".tlb"}) {
    if (name.size() > std::string(ending).size() && name.ends_with(ending)) return name.substr(0, name.size() - std::string(ending).size());
  }
  return name;
}

// RUN/report.html, or TRACE.html here: who opens a pack or a trace that ships wants nothing beside it.
std::string default_out(const std::string& place) {
  std::error_code ignored;
  if (fs::is_directory(place, ignored)) return (fs::path(place) / "report.html").string();
  return name_of_place(place) + ".html";
}

}  // namespace

std::vector<Switch> report_switches() {
  return {{"out", "FILE.html", "Where to.", "RUN/report.html; of a pack or trace NAME.html, here"},
          {"step", "N", "This step only, by its number in the timeline.", "all steps"},
          {"json", "", "The page's figures as JSON on standard output, beside the page.", ""}};
}

int report_run(const Line& line, Console& console) {
  const std::string out = line.has("out") ? line.value("out") : default_out(line.places.front());
  if (!out.ends_with(".html") && !out.ends_with(".htm")) return refuse(console, text("--out ", out, ": the name of a page ends in .html"));
  base::Result<Timeline> read = open_trace(line.places, console);
  if (!read) return refuse(console, read.error());
  const Timeline& timeline = read.value();
  const auto window = window_of(line, timeline);
  if (!window) return refuse(console, window.error());
  const base::Result<cause::Recorded> recorded = cause::read_recorded(line.places);
  if (!recorded) return refuse(console, recorded.error());
  const std::optional<timeline::RunInfo>& info = recorded.value().info;

  std::optional<int> step;
  if (line.has("step")) step = std::stoi(line.value("step"));
  const report::Figures figures = report::figures_of(timeline, step, recorded.value());
  const std::string page = report::page({timeline, figures, info ? &*info : nullptr, name_of_place(line.places.front()),
                                         text("shardbook ", built_with::version, " report")});
  timeline::Output file(out);
  file << page;
  const base::Status written = file.commit();
  if (!written) return refuse(console, written.error() + "; --out says where else");

  print_banners(timeline, console);
  if (line.has("json")) {
    console.out << base::json_text(report::to_json(timeline, figures, 12), 2) << "\n";
    return exit_ok;
  }
  console.out << "Page  " << base::printable(out) << "   " << short_number(static_cast<double>(page.size()), " ") << "B, one file, for any browser\n";
  for (const std::string& part : wrap(figures.headline + ".", console.text_columns())) console.out << part << "\n";
  return exit_ok;
}

}  // namespace shardbook::cli
