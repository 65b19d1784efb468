#include "engine/workbook/lab.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/nearest.hpp"
#include "engine/book/project.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Json = nlohmann::json;

namespace {

// What cannot be read, and why. The entry grows on its way out: "predict[1]", then "parts[0].predict[1]".
struct Unreadable {
  std::string entry, why;
};

template <class Read>
auto within(const std::string& entry, const Read& read) {
  try {
    return read();
  } catch (const Unreadable& error) {
    throw Unreadable{entry + (error.entry.empty() || error.entry[0] == '[' ? "" : ".") + error.entry, error.why};
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    const std::size_t begin = what.find("] ");
    throw Unreadable{entry, begin == std::string::npos ? what : what.substr(begin + 2)};
  }
}

const Json& needed(const Json& json, const std::string& key) {
  if (!json.is_object()) throw Unreadable{"", text("is ", base::json_text(json), ", and should be {...} with \"", key, "\"")};
  if (!json.contains(key)) throw Unreadable{"", "needs \"" + key + "\""};
  return json.at(key);
}

std::string word_of(const Json& value, const std::string& entry) {
  if (!value.is_string()) throw Unreadable{entry, text("is ", base::json_text(value), ", and should be a text in quotes")};
  return value.get<std::string>();
}

std::string word_at(const Json& json, const std::string& key) { return word_of(needed(json, key), key); }
std::string word_or_none(const Json& json, const std::string& key) { return json.contains(key) ? word_at(json, key) : ""; }

double number_at(const Json& json, const std::string& key) {
  if (!needed(json, key).is_number()) throw Unreadable{key, text("is ", base::json_text(json.at(key)), ", and should be a number")};
  return json.at(key).get<double>();
}

// A text, or that of its English where it is given by language.
std::string words_of(const Json& json, const std::string& key, bool required = true) {
  if (!required && !json.contains(key)) return "";
  const Json& value = needed(json, key);
  return value.is_object() ? within(key, [&] { return word_at(value, "en"); }) : word_of(value, key);
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : base::json_text(value); }

// Each of a list; none where there is no such key.
template <class Read>
auto each_of(const Json& json, const std::string& key, const Read& read) {
  std::vector<decltype(read(json))> all;
  if (!json.contains(key)) return all;
  if (!json.at(key).is_array()) throw Unreadable{key, text("is ", base::json_text(json.at(key)), ", and should be a list in [...]")};
  for (const Json& one : json.at(key)) {
    all.push_back(within(text(key, "[", all.size(), "]"), [&] { return read(one); }));
  }
  return all;
}

std::map<std::string, std::string> keys_of(const Json& json, const char* except) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, value] : json.items()) {
    if (key != except && key != "figure") keys[key] = plain(value);
  }
  return keys;
}

Fact fact_of(const Json& json) {
  Fact fact;
  fact.figure = word_at(json, "figure");
  fact.of = keys_of(json, "less");
  if (json.contains("less")) {
    fact.less = fact.of;
    for (const auto& [key, value] : json.at("less").items()) fact.less[key] = plain(value);
  }
  return fact;
}

std::vector<std::string> texts_of(const Json& json, const std::string& key) {
  return each_of(json, key, [](const Json& one) { return word_of(one, ""); });
}

Card card_of(const Json& json) { return {word_at(json, "q"), word_at(json, "a")}; }

Prediction prediction_in(const Json& json) { return {word_at(json, "key"), words_of(json, "text"), word_or_none(json, "unit"), plain(needed(json, "found"))}; }

Answer answer_of(const Json& json) {
  Answer answer;
  answer.key = word_at(json, "key");
  answer.text = words_of(json, "text");
  answer.unit = word_or_none(json, "unit");
  answer.fact = word_at(json, "fact");
  if (json.contains("within")) answer.within = number_at(json, "within");
  answer.choices = texts_of(json, "choices");
  answer.wrong = each_of(json, "wrong", [](const Json& one) { return Wrong{plain(needed(one, "value")), word_at(one, "message")}; });
  answer.otherwise = word_at(json, "otherwise");
  answer.page = word_or_none(json, "page");
  return answer;
}

Kind kind_at(const Json& json, const std::string& key) {
  const std::string word = word_at(json, key);
  if (word == "exercise") return Kind::exercise;
  if (word == "answers") return Kind::answers;
  if (word == "notes") return Kind::notes;
  throw Unreadable{key, "is \"" + word + "\"; it may be exercise, answers or notes"};
}

Part part_of(const Json& json) {
  Part part;
  part.id = word_at(json, "id");
  part.title = words_of(json, "title");
  part.question = words_of(json, "question");
  part.minutes = static_cast<int>(number_at(json, "minutes"));
  part.kind = kind_at(json, "kind");
  part.predict = each_of(json, "predict", prediction_in);
  part.show = texts_of(json, "show");
  part.answers = each_of(json, "answers", answer_of);
  part.exercise = word_or_none(json, "exercise");
  if (part.kind == Kind::exercise && part.exercise.empty()) {
    throw Unreadable{"", "is an exercise without \"exercise\": the file to edit"};
  }
  part.by_seed = texts_of(json, "by_seed");
  part.run = texts_of(json, "run");
  part.produce = words_of(json, "produce", false);
  part.hints = texts_of(json, "hints");
  part.cards = each_of(json, "cards", card_of);
  if (json.contains("transfer")) part.transfer = within("transfer", [&] { return card_of(json.at("transfer")); });
  part.why = words_of(json, "why", false);
  return part;
}

std::string with_zero(const std::string& name) {
  const bool short_number = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) &&
                            (name.size() == 1 || !std::isdigit(static_cast<unsigned char>(name[1])));
  return short_number ? "0" + name : name;
}

}  // namespace

std::string figures_path(const Lab& lab, const Part& part, int seed) {
  return "solutions/" + lab.name + "/" + part.id + (seed == 0 ? "" : "_" + std::to_string(seed)) + ".figures.json";
}

base::Result<Lab> lab_from_json(const std::string& content, const std::string& name, const std::string& path) {
  Lab lab;
  lab.name = name;
  try {
    const Json json = base::parse_json(content);
    lab.id = json.contains("id") ? word_at(json, "id") : name.substr(0, name.find('_'));
    lab.title = words_of(json, "title");
    lab.question = words_of(json, "question", false);
    lab.stakes = words_of(json, "stakes", false);
    if (json.contains("facts")) {
      for (const auto& [key, value] : json.at("facts").items()) lab.facts[key] = within("facts." + key, [&, &of = value] { return fact_of(of); });
    }
    lab.stated = texts_of(json, "stated");
    lab.parts = each_of(json, "parts", part_of);
  } catch (const Unreadable& error) {
    return Error{text(path, ": ", error.entry.empty() ? std::string() : text("`", error.entry, "` "), error.why)};
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
