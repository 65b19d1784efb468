#include "engine/book/project.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"


namespace shardbook::book {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Json = nlohmann::json;

namespace {

bool is_root(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "engine", ignored) && fs::is_directory(folder / "labs", ignored) &&
         fs::is_directory(folder / "notes", ignored);
}

// "02" of "02_tensor_parallel".
std::string number_of(const std::string& name) { return name.substr(0, name.find('_')); }

bool means(const std::string& lab, const std::string& asked) {
  const bool digits = !asked.empty() && std::all_of(asked.begin(), asked.end(), [](unsigned char c) { return std::isdigit(c); });
  return lab == asked || number_of(lab) == (digits && asked.size() == 1 ? "0" + asked : asked);
}

// "8" or "grammar-tutor" as an option reads it; several values for an option that takes many.
std::vector<std::string> values_of(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) return {base::json_text(value)};
  std::vector<std::string> values;
  for (const Json& element : value) values.push_back(element.is_string() ? element.get<std::string>() : base::json_text(element));
  return values;
}

// The layouts for a device. Errors: the entry and what it needs.
base::Result<std::vector<Lab::Layout>> layouts_of(const Json& json, const std::string& device) {
  if (!json.contains("layouts") || !json.at("layouts").is_object() || !json.at("layouts").contains(device) || !json.at("layouts").at(device).is_array()) {
    return Error{"`layouts." + device + "` is missing: a list such as [{\"tp\": 2, \"fsdp\": 2}], largest first"};
  }
  std::vector<Lab::Layout> layouts;
  for (const Json& one : json.at("layouts").at(device)) {
    const auto has = [&](const char* key) { return one.is_object() && one.contains(key) && one.at(key).is_number_integer() && one.at(key).get<int>() > 0; };
    if (!has("tp") || !has("fsdp")) return Error{text("`layouts.", device, "[", layouts.size(), "]` needs tp and fsdp, whole numbers of at least 1, and is ", base::json_text(one))};
    layouts.push_back({one.at("tp").get<int>(), one.at("fsdp").get<int>()});
  }
  return layouts;
}

base::Result<Lab> read_lab(const std::string& root, const std::string& name) {
  Lab lab;
  lab.name = name;
  lab.folder = (fs::path(root) / "labs" / name).string();
  const std::string path = (fs::path(lab.folder) / "lab.json").string();
  base::Result<std::string> content = read_text(path);
  if (!content) return content.as_error();
  try {
    const Json json = base::parse_json(content.value());
    const auto missing = [&](const std::string& what) -> base::Result<Lab> { return Error{text(path, ": ", what)}; };
    if (!json.contains("title") || !json.at("title").is_object() || !json.at("title").contains("en")) return missing("`title` needs \"en\": {\"en\": \"...\"}");
    lab.title = json.at("title").at("en").get<std::string>();
    lab.note = json.value("note", "");
    if (!json.contains("options") || !json.at("options").is_object()) return missing("`options` is missing: what `run` trains with, such as {\"model\": \"grammar-tutor\"}");
    for (const auto& [option, value] : json.at("options").items()) lab.options.emplace_back(option, values_of(value));
    for (const auto& [device, layouts] : {std::pair{"host", &lab.host}, std::pair{"cuda", &lab.cuda}}) {
      base::Result<std::vector<Lab::Layout>> read = layouts_of(json, device);
      if (!read) return missing(read.error());
      *layouts = std::move(read).value();
    }
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    return Error{text(path, ": this lab's description cannot be read: ", what.substr(what.find("] ") + 2))};
  }
  if (lab.host.empty() || lab.cuda.empty()) return Error{text(path, ": \"layouts\" needs at least one for host and one for cuda")};
  return lab;
}

}  // namespace

std::string project_root(const std::string& folder, const std::string& built_from) {
  for (fs::path at = folder;; at = at.parent_path()) {
    if (is_root(at)) return at.string();
    if (!at.has_relative_path()) break;
  }
  return is_root(built_from) ? built_from : "";
}

std::string project_root() {
  std::error_code ignored;
  // Set by the launcher script.
  if (const char* root = std::getenv("SHARDBOOK_ROOT"); root != nullptr && is_root(root)) return root;
  return project_root(fs::current_path(ignored).string(), SHARDBOOK_BUILT_FROM);
}

base::Result<std::string> read_text(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return Error{text(path, " is a folder, not a file")};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{text("cannot read ", path, ": ", std::strerror(errno))};
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lab_names(const std::string& root) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / "labs", ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.size() > 3 && std::isdigit(static_cast<unsigned char>(name[0]))) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<Lab> find_lab(const std::string& root, const std::string& asked) {
  if (root.empty()) {
    return Error{"no labs here: start this from within the project's folder, the one that holds labs/ and notes/"};
  }
  const std::vector<std::string> names = lab_names(root);
  std::string list;
  for (const std::string& name : names) {
    if (means(name, asked)) return read_lab(root, name);
    list += (list.empty() ? "" : ", ") + name;
  }
  return Error{text("there is no lab '", asked, "'; ", names.empty() ? text(root, "/labs holds none") : text("there is ", list))};
}

}  // namespace shardbook::book
