#include "engine/cause/recorded.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/json.hpp"
#include "engine/timeline/pack.hpp"

namespace shardbook::cause {

namespace fs = std::filesystem;

namespace {

base::Result<Recorded> read_folder(const fs::path& folder) {
  Recorded recorded;
  std::error_code ignored;
  const fs::path info = folder / "run.json";
  if (!fs::exists(info, ignored)) return recorded;
  base::Result<timeline::RunInfo> read = timeline::read_run_info(info.string());
  if (!read) return read.as_error();
  recorded.info = std::move(read).value();
  // All ranks or none: a step is resolved on all of them together.
  for (int rank = 0;; ++rank) {
    const fs::path file = folder / base::text("rank", rank, ".program");
    if (!fs::exists(file, ignored)) break;
    base::Result<program::Record> record = program::load(file.string());
    if (!record) return record.as_error();
    recorded.records.push_back(std::move(record).value());
  }
  const bool whole = !recorded.records.empty() && recorded.records.front().world_size == static_cast<int>(recorded.records.size());
  if (!whole) recorded.records.clear();
  return recorded;
}

base::Result<Recorded> read_pack(const std::string& place) {
  std::error_code ignored;
  std::string folder = (fs::temp_directory_path(ignored) / "shardbook-record-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return base::Error{base::text("cannot unpack ", place, " into ", fs::path(folder).parent_path().string(), ": is there room?")};
  }
  const auto opened = timeline::open_pack(place, folder + "/pack");
  base::Result<Recorded> recorded = opened ? read_folder(opened.value().run) : base::Result<Recorded>(opened.as_error());
  fs::remove_all(folder, ignored);
  return recorded;
}

}  // namespace

std::string Recorded::switch_value(const std::string& key) const {
  return info && info->switches.is_object() ? info->switches.value(key, std::string()) : "";
}

std::string Recorded::option(const std::string& name) const {
  if (!info || !info->config.contains(name)) return "";
  const nlohmann::json& value = info->config[name];
  return value.is_string() ? value.get<std::string>() : base::json_text(value);
}

int Recorded::number(const std::string& name, int otherwise) const {
  if (!info || !info->config.contains(name) || !info->config[name].is_number_integer()) return otherwise;
  return info->config[name].get<int>();
}

base::Result<Recorded> read_recorded(const std::vector<std::string>& places) {
  if (places.empty()) return Recorded{};
  if (timeline::is_pack_name(places.front())) return read_pack(places.front());
  std::error_code ignored;
  std::optional<fs::path> folder;
  for (const std::string& place : places) {
    const fs::path here = fs::is_directory(place, ignored) ? fs::path(place) : fs::path(place).parent_path();
    if (folder && *folder != here) return Recorded{};
    folder = here;
  }
  return read_folder(*folder);
}

}  // namespace shardbook::cause
