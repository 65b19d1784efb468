#include "engine/workbook/lab.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/nearest.hpp"
#include "engine/book/project.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Json = nlohmann::json;

namespace {

// A text, or that of its English where it is given by language.
std::string words_of(const Json& json, const char* key, bool required = true) {
  if (!required && !json.contains(key)) return "";
  const Json& value = json.at(key);
  return value.is_object() ? value.at("en").get<std::string>() : value.get<std::string>();
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::map<std::string, std::string> keys_of(const Json& json, const char* except) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, value] : json.items()) {
    if (key != except && key != "figure") keys[key] = plain(value);
  }
  return keys;
}

Fact fact_of(const Json& json) {
  Fact fact;
  fact.figure = json.at("figure").get<std::string>();
  fact.of = keys_of(json, "less");
  if (json.contains("less")) {
    fact.less = fact.of;
    for (const auto& [key, value] : json.at("less").items()) fact.less[key] = plain(value);
  }
  return fact;
}

std::vector<std::string> texts_of(const Json& json, const char* key) {
  std::vector<std::string> all;
  if (json.contains(key)) {
    for (const Json& one : json.at(key)) all.push_back(one.get<std::string>());
  }
  return all;
}

Card card_of(const Json& json) { return {json.at("q").get<std::string>(), json.at("a").get<std::string>()}; }

Answer answer_of(const Json& json) {
  Answer answer;
  answer.key = json.at("key").get<std::string>();
  answer.text = words_of(json, "text");
  answer.unit = json.value("unit", "");
  answer.fact = json.at("fact").get<std::string>();
  answer.within = json.value("within", 0.05);
  answer.choices = texts_of(json, "choices");
  if (json.contains("wrong")) {
    for (const Json& one : json.at("wrong")) answer.wrong.push_back({plain(one.at("value")), one.at("message").get<std::string>()});
  }
  answer.otherwise = json.at("otherwise").get<std::string>();
  answer.page = json.value("page", "");
  return answer;
}

Kind kind_of(const std::string& word) {
  if (word == "exercise") return Kind::exercise;
  if (word == "answers") return Kind::answers;
  if (word == "notes") return Kind::notes;
  throw Json::other_error::create(501, "\"kind\" is \"" + word + "\"; it may be exercise, answers or notes", nullptr);
}

Part part_of(const Json& json) {
  Part part;
  part.id = json.at("id").get<std::string>();
  part.title = words_of(json, "title");
  part.question = words_of(json, "question");
  part.minutes = json.at("minutes").get<int>();
  part.kind = kind_of(json.at("kind").get<std::string>());
  if (json.contains("predict")) {
    for (const Json& one : json.at("predict")) {
      part.predict.push_back({one.at("key").get<std::string>(), words_of(one, "text"), one.value("unit", ""), plain(one.at("found"))});
    }
  }
  if (json.contains("answers")) {
    for (const Json& one : json.at("answers")) part.answers.push_back(answer_of(one));
  }
  part.exercise = json.value("exercise", "");
  if (part.kind == Kind::exercise && part.exercise.empty()) {
    throw Json::other_error::create(501, "part " + part.id + " is an exercise without \"exercise\": the file to edit", nullptr);
  }
  part.by_seed = texts_of(json, "by_seed");
  part.run = texts_of(json, "run");
  part.produce = words_of(json, "produce", false);
  part.hints = texts_of(json, "hints");
  if (json.contains("cards")) {
    for (const Json& one : json.at("cards")) part.cards.push_back(card_of(one));
  }
  if (json.contains("transfer")) part.transfer = card_of(json.at("transfer"));
  part.why = words_of(json, "why", false);
  return part;
}

std::string with_zero(const std::string& name) {
  const bool short_number = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) &&
                            (name.size() == 1 || !std::isdigit(static_cast<unsigned char>(name[1])));
  return short_number ? "0" + name : name;
}

}  // namespace

base::Result<Lab> lab_from_json(const std::string& content, const std::string& name, const std::string& path) {
  Lab lab;
  lab.name = name;
  try {
    const Json json = Json::parse(content);
    lab.id = json.value("id", name.substr(0, name.find('_')));
    lab.title = words_of(json, "title");
    lab.question = words_of(json, "question", false);
    lab.stakes = words_of(json, "stakes", false);
    if (json.contains("facts")) {
      for (const auto& [key, value] : json.at("facts").items()) lab.facts[key] = fact_of(value);
    }
    lab.stated = texts_of(json, "stated");
    if (json.contains("parts")) {
      for (const Json& one : json.at("parts")) lab.parts.push_back(part_of(one));
    }
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    const std::size_t begin = what.find("] ");
    return Error{text(path, ": this lab's description cannot be read: ", begin == std::string::npos ? what : what.substr(begin + 2))};
  }
  return lab;
}

base::Result<std::vector<Lab>> all_labs(const std::string& root) {
  if (root.empty()) {
    return Error{"no labs here: start this from within the project's folder, the one that holds labs/ and notes/"};
  }
  std::vector<Lab> labs;
  for (const std::string& name : book::lab_names(root)) {
    const std::string path = (fs::path(root) / "labs" / name / "lab.json").string();
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    base::Result<std::string> content = book::read_text(path);
    if (!content) return content.as_error();
    base::Result<Lab> lab = lab_from_json(content.value(), name, path);
    if (!lab) return lab.as_error();
    if (!lab.value().parts.empty()) labs.push_back(std::move(lab).value());
  }
  return labs;
}

base::Result<std::vector<Place>> find_parts(const std::vector<Lab>& labs, const std::string& name, int seed) {
  const std::string asked = with_zero(name);
  std::vector<Place> found;
  std::vector<std::string> ids;
  for (const Lab& lab : labs) {
    for (const Part& part : lab.parts) {
      ids.push_back(part.id);
      if (part.id == asked || lab.id == asked || lab.name == asked) found.push_back({&lab, &part, seed});
    }
  }
  if (!found.empty()) return found;
  if (ids.empty()) return Error{"there are no labs with parts here; labs/ should hold 00_timeline"};
  std::string list;
  for (const std::string& id : ids) list += (list.empty() ? "" : ", ") + id;
  return Error{text("there is no part '", name, "'; there is ", list)};
}

base::Result<Place> find_part(const std::vector<Lab>& labs, const std::string& name, int seed) {
  base::Result<std::vector<Place>> found = find_parts(labs, name, seed);
  if (!found) return found.as_error();
  return found.value().front();
}

namespace {

std::string below(const char* folder, const Place& place, int seed) {
  const std::vector<std::string>& others = place.part->by_seed;
  const std::size_t which = static_cast<std::size_t>(std::max(0, seed)) % (others.size() + 1);
  const std::string file = place.part->kind != Kind::exercise ? place.part->id + ".txt" : which == 0 ? place.part->exercise : others[which - 1];
  return std::string(folder) + "/" + place.lab->name + "/" + file;
}

}  // namespace

std::string starter_of(const Place& place) { return below("labs", place, place.seed); }
std::string solution_of(const Place& place) {
  return place.part->kind == Kind::notes ? "solutions/" + place.lab->name : below("solutions", place, place.seed);
}
std::string own_file_of(const Place& place) {
  const bool folder = place.part->kind == Kind::notes && !place.part->exercise.empty();
  return folder ? "experiments/" + place.part->exercise : below("experiments", place, 0);
}

}  // namespace shardbook::workbook
