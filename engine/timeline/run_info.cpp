// timeline/run_info: run.json in and out; see run_info.hpp.
#include "engine/timeline/run_info.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::timeline {

nlohmann::json to_json(const RunInfo& info) {
  nlohmann::json sources = nlohmann::json::array();
  for (const SourceExcerpt& source : info.sources) {
    sources.push_back({{"path", source.path}, {"hash", source.hash}, {"content", source.content}});
  }
  return {{"format", 1},
          {"id", info.id},
          {"lab", info.lab},
          {"command", info.command},
          {"made_at", info.made_at},
          {"config", info.config},
          {"switches", info.switches},
          {"hardware", info.hardware},
          {"versions", info.versions},
          {"results", info.results},
          {"clock", {{"name", info.clock}, {"profile", info.profile}, {"error_ns", info.clock_error_ns}}},
          {"sources", std::move(sources)}};
}

base::Result<RunInfo> run_info_from_json(const nlohmann::json& json, const std::string& name) {
  try {
    if (const int format = json.at("format").get<int>(); format != 1) {
      return base::Error{base::text(name, " has format ", format, "; this build reads format 1")};
    }
    RunInfo info;
    info.id = json.value("id", "");
    info.lab = json.value("lab", "");
    info.command = json.value("command", "");
    info.made_at = json.value("made_at", "");
    for (auto [key, field] : {std::pair{"config", &info.config}, std::pair{"switches", &info.switches},
                              std::pair{"hardware", &info.hardware}, std::pair{"versions", &info.versions},
                              std::pair{"results", &info.results}}) {
      *field = json.value(key, nlohmann::json::object());
    }
    const nlohmann::json clock = json.value("clock", nlohmann::json::object());
    info.clock = clock.value("name", "");
    info.profile = clock.value("profile", "");
    info.clock_error_ns = clock.value("error_ns", Nanoseconds{0});
    for (const nlohmann::json& source : json.value("sources", nlohmann::json::array())) {
      info.sources.push_back({source.at("path"), source.at("hash"), source.at("content")});
    }
    return info;
  } catch (const nlohmann::json::exception& error) {
    return base::Error{base::text(name, " is not the run.json of a run: ", error.what())};
  }
}

base::Status write_run_info(const RunInfo& info, const std::string& path) {
  Output out(path);
  // What is not UTF-8 in a source file or a command is replaced, never refused.
  out << base::json_text(to_json(info), 2) << "\n";
  return out.commit();
}

base::Result<RunInfo> read_run_info(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return base::Error{base::text("cannot read ", path, ": it is not a file")};
  }
  std::ifstream file(path);
  if (!file) return base::Error{base::text("cannot read ", path)};
  constexpr int deepest = 100;
  bool too_deep = false;
  const nlohmann::json json = base::try_parse_json(std::string(std::istreambuf_iterator<char>(file), {}), deepest, too_deep);
  if (too_deep) return base::Error{base::text(path, " is not the run.json of a run: its values nest deeper than ", deepest, " levels")};
  if (json.is_discarded()) return base::Error{base::text(path, " is not valid JSON")};
  return run_info_from_json(json, path);
}

std::vector<SourceExcerpt> source_excerpts(const Timeline& timeline, const std::string& root) {
  std::set<std::string> paths;
  for (const Detail& detail : timeline.details) {
    for (Line line : {detail.source, detail.awaits, detail.planned}) {
      if (line.known()) paths.emplace(timeline.strings[line.file]);
    }
  }
  std::vector<SourceExcerpt> excerpts;
  for (const std::string& path : paths) {
    std::ifstream file(root + "/" + path, std::ios::binary);
    if (!file) continue;
    std::ostringstream content;
    content << file.rdbuf();
    excerpts.push_back({path, hash_text(content.str()), content.str()});
  }
  return excerpts;
}

std::string hash_text(std::string_view content) {
  constexpr char hex[] = "0123456789abcdef";
  std::uint64_t hash = fnv1a(content);
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) *digit = hex[hash & 15];
  return digits;
}

bool may_be_another_name(std::string_view switch_key, std::string_view option) {
  return switch_key == std::string(option) + ".kernel" || switch_key.ends_with("." + std::string(option));
}

}  // namespace shardbook::timeline
