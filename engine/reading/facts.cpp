#include "engine/reading/facts.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/json.hpp"
#include "engine/base/sha256.hpp"
#include "engine/reading/words.hpp"

namespace shardbook::reading {

using Json = nlohmann::ordered_json;

const Project* Facts::project(std::string_view repository) const {
  for (const Project& one : projects) {
    if (one.repository == repository) return &one;
  }
  return nullptr;
}

const FileFacts* Facts::file(std::string_view repository, std::string_view commit, std::string_view path) const {
  const Project* found = project(repository);
  if (found == nullptr || found->commit != commit) return nullptr;
  for (const FileFacts& one : found->files) {
    if (one.path == path) return &one;
  }
  return nullptr;
}

base::Result<Facts> read_facts(const std::string& json) {
  Facts facts;
  try {
    const Json table = base::parse_ordered_json(json);
    for (const Json& project : table.at("projects")) {
      Project one{project.at("repository"), project.at("commit"), project.at("what"), {}};
      for (const Json& file : project.at("files")) {
        FileFacts known{file.at("path"), file.at("sha256"), file.at("lines"), {}};
        for (const auto& [name, lines] : file.at("names").items()) known.names[name] = lines.get<std::vector<int>>();
        one.files.push_back(std::move(known));
      }
      facts.projects.push_back(std::move(one));
    }
  } catch (const Json::exception& error) {
    return base::Error{base::text("the table of places cannot be read: ", error.what())};
  }
  return facts;
}

std::string facts_json(const Facts& facts) {
  // A name a line: so a change of the table can be read as one of the files.
  std::string out = "{\"projects\": [";
  for (const Project& project : facts.projects) {
    out += base::text(&project == &facts.projects.front() ? "" : ",", "\n {\"repository\": ", base::json_text_or_throw(Json(project.repository)), ", \"commit\": ", base::json_text_or_throw(Json(project.commit)),
                      ",\n  \"what\": ", base::json_text_or_throw(Json(project.what)), ",\n  \"files\": [");
    for (const FileFacts& file : project.files) {
      out += base::text(&file == &project.files.front() ? "" : ",", "\n   {\"path\": ", base::json_text_or_throw(Json(file.path)), ", \"lines\": ", file.lines, ",\n    \"sha256\": \"", file.sha256, "\",\n    \"names\": {");
      bool first = true;
      for (const auto& [name, lines] : file.names) {
        out += base::text(first ? "" : ",", "\n     ", base::json_text_or_throw(Json(name)), ": ", base::json_text_or_throw(Json(lines)));
        first = false;
      }
      out += "}}";
    }
    out += "]}";
  }
  return out + "\n]}\n";
}

FileFacts facts_of(std::string path, std::string_view bytes, const std::vector<std::string>& names) {
  FileFacts facts{std::move(path), base::hex_of(base::sha256(bytes)), 0, {}};
  for (const std::string& name : names) facts.names[name] = {};
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    ++facts.lines;
    for (auto& [name, lines] : facts.names) {
      if (holds_symbol(bytes.substr(at, end - at), name)) lines.push_back(facts.lines);
    }
    at = end + 1;
  }
  return facts;
}

}  // namespace shardbook::reading
