// scene/sidecar: notes.json in and out; see sidecar.hpp.
#include "viewer/scene/sidecar.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::scene {

namespace fs = std::filesystem;
using nlohmann::json;

std::string sidecar_path(const std::string& run) {
  std::error_code error;
  std::string path = run;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return fs::is_directory(path, error) ? path + "/notes.json" : path + ".notes.json";
}

namespace {

json to_json(const Sidecar& sidecar) {
  json ranges = json::array(), annotations = json::array();
  for (const Range& range : sidecar.ranges) ranges.push_back({{"start", range.window.start}, {"end", range.window.end}, {"note", range.note}});
  for (const Annotation& note : sidecar.annotations) annotations.push_back({{"row", note.row}, {"time", note.time}, {"text", note.text}});
  return {{"format", 1},
          {"view", {{"start", sidecar.view_start}, {"end", sidecar.view_end}}},
          {"rows", {{"open", sidecar.choices.open}, {"pinned", sidecar.choices.pinned}, {"hidden", sidecar.choices.hidden}, {"fold_alike", sidecar.choices.fold_alike}}},
          {"ranges", std::move(ranges)},
          {"annotations", std::move(annotations)},
          {"selected", sidecar.selected}};
}

// A time. A number with a fraction is none, and one that does not fit would become another.
Nanoseconds time_in(const json& from) {
  const bool fits = from.is_number_integer() && (!from.is_number_unsigned() || from.get<std::uint64_t>() <= std::numeric_limits<Nanoseconds>::max());
  if (!fits) throw std::range_error("a time is no whole number of nanoseconds");
  return from.get<Nanoseconds>();
}

// Throws json::exception or std::range_error where something has another type.
Sidecar from_json(const json& from) {
  Sidecar out;
  const json view = from.value("view", json::object()), rows = from.value("rows", json::object());
  out.view_start = view.value("start", 0.0);
  out.view_end = view.value("end", 0.0);
  out.choices.open = rows.value("open", std::set<std::string>{});
  out.choices.pinned = rows.value("pinned", std::set<std::string>{});
  out.choices.hidden = rows.value("hidden", std::set<std::string>{});
  out.choices.fold_alike = rows.value("fold_alike", true);
  for (const json& range : from.value("ranges", json::array())) {
    out.ranges.push_back({{time_in(range.at("start")), time_in(range.at("end"))}, range.value("note", "")});
  }
  for (const json& note : from.value("annotations", json::array())) {
    out.annotations.push_back({note.value("row", ""), time_in(note.at("time")), note.value("text", "")});
  }
  out.selected = from.value("selected", "");
  return out;
}

// What cannot be read is kept under another name, so that nothing writes over it.
base::Error moved_aside(const std::string& path, const std::string& why) {
  std::string aside = path + ".unreadable";
  std::error_code error;
  for (int number = 2; fs::exists(aside, error) && number < 100; ++number) aside = base::text(path, ".unreadable-", number);
  fs::rename(path, aside, error);
  if (error) return {base::text(path, " cannot be used: ", why, "; it could not be moved aside either (", error.message(), ")")};
  return {base::text(path, " cannot be used: ", why, "; it was moved to ", aside, ", and this run starts without notes")};
}

}  // namespace

base::Result<Sidecar> read_sidecar(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Sidecar{};
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path, error)) return base::Error{base::text("cannot read ", path, ": look at its rights")};
  constexpr int deepest = 100;
  bool too_deep = false;
  const json content = base::try_parse_json(std::string(std::istreambuf_iterator<char>(file), {}), deepest, too_deep);
  if (too_deep) return moved_aside(path, base::text("its values nest deeper than ", deepest, " levels"));
  if (content.is_discarded()) return moved_aside(path, "it is not valid JSON");
  if (!content.is_object()) return moved_aside(path, "it is not an object");
  try {
    if (const json format = content.value("format", json(1)); format != 1) {
      return moved_aside(path, base::text("it has format ", base::json_text(format, -1, true).substr(0, 20), ", and this build reads format 1"));
    }
    return from_json(content);
  } catch (const std::exception& problem) {
    return moved_aside(path, base::text("something in it has another type than expected (", problem.what(), ")"));
  }
}

base::Status write_sidecar(const Sidecar& sidecar, const std::string& path) {
  timeline::Output out(path);
  out << base::json_text(to_json(sidecar), 2) << "\n";
  return out.commit();
}

std::string span_name(const Scene& scene, SpanRef span) {
  const Timeline& timeline = scene.timeline();
  if (!span.valid() || span.track >= timeline.tracks.size()) return "";
  const timeline::Track& track = timeline.tracks[span.track];
  const RowKind kind = track.kind == timeline::TrackKind::stream ? RowKind::stream : track.kind == timeline::TrackKind::host ? RowKind::host : RowKind::marks;
  return base::text(row_name(kind, track.rank, track.id, track.lane), "/", span.index);
}

SpanRef span_of_name(const Scene& scene, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {};
  std::uint32_t index = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + slash + 1, end, index);
  if (error != std::errc() || stopped != end) return {};
  const std::optional<Row> row = scene.row_of(name.substr(0, slash));
  if (!row || row->track < 0 || index >= scene.timeline().tracks[static_cast<std::size_t>(row->track)].size()) return {};
  return {static_cast<std::uint32_t>(row->track), index};
}

}  // namespace shardbook::scene
