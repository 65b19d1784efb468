#include "engine/launch/matmul_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/base/json.hpp"
#include "engine/launch/rank.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::launch {

using base::text;
using kernels::Beside;
using kernels::MatmulForm;
using kernels::MatmulPlan;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{16} << 20;
constexpr std::int64_t most_number = std::int64_t{1} << 48;
constexpr const char* besides[] = {"nothing", "gelu", "gelu_slope"};
constexpr base::DType dtypes[] = {base::DType::bf16, base::DType::f32};

// The numbers and the flags of a form, by the names that they have in the file.
struct Number {
  const char* name;
  std::int64_t MatmulForm::*at;
};
constexpr Number numbers[] = {{"m", &MatmulForm::m}, {"n", &MatmulForm::n}, {"k", &MatmulForm::k}, {"lda", &MatmulForm::lda}, {"ldb", &MatmulForm::ldb}, {"ldc", &MatmulForm::ldc},
                              {"batch", &MatmulForm::batch}, {"stride_a", &MatmulForm::stride_a}, {"stride_b", &MatmulForm::stride_b}, {"stride_c", &MatmulForm::stride_c}};
struct Flag {
  const char* name;
  bool MatmulForm::*at;
};
constexpr Flag flags[] = {{"a_transposed", &MatmulForm::a_transposed}, {"b_transposed", &MatmulForm::b_transposed}, {"bias", &MatmulForm::bias}, {"adds", &MatmulForm::adds}};

// Thrown within this file; matmul_file_from_json makes the sentence.
struct Malformed {
  std::string what;
};

const Json& of(const Json& json, const char* key, std::string_view where) {
  const auto found = json.find(key);
  if (found == json.end()) throw Malformed{text(where, " has no ", key)};
  return *found;
}

std::int64_t whole(const Json& json, const char* key, const std::string& where, std::int64_t least) {
  const Json& value = of(json, key, where);
  if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) || value.get<double>() > static_cast<double>(most_number)) {
    throw Malformed{text(where, ": ", key, " is no whole number from ", least, " to ", most_number)};
  }
  return value.get<std::int64_t>();
}

std::string words(const Json& json, const char* key, const std::string& where) {
  const Json& value = of(json, key, where);
  if (!value.is_string()) throw Malformed{text(where, ": ", key, " is no text")};
  return value.get<std::string>();
}

base::DType dtype_in(const Json& json, const char* key, const std::string& where) {
  const std::string name = words(json, key, where);
  for (const base::DType dtype : dtypes) {
    if (name == base::name_of(dtype)) return dtype;
  }
  throw Malformed{text(where, ": ", key, " is neither bf16 nor f32")};
}

void expect_no_other(const Json& json, std::initializer_list<const char*> known, const std::string& where) {
  for (const auto& [key, value] : json.items()) {
    const auto named = [&key = key](const auto& entry) { return key == entry.name; };
    if (std::any_of(std::begin(numbers), std::end(numbers), named) || std::any_of(std::begin(flags), std::end(flags), named)) continue;
    if (std::none_of(known.begin(), known.end(), [&key = key](const char* name) { return key == name; })) throw Malformed{text(where, " has a key that is not known: ", key)};
  }
}

MatmulPlan plan_from_json(const Json& json, const std::string& where) {
  if (!json.is_object()) throw Malformed{text(where, " is no object")};
  MatmulPlan plan;
  for (const Number& number : numbers) plan.form.*number.at = whole(json, number.name, where, std::string_view(number.name).starts_with("stride") ? 0 : 1);
  for (const Flag& flag : flags) {
    const Json& value = of(json, flag.name, where);
    if (!value.is_boolean()) throw Malformed{text(where, ": ", flag.name, " is neither true nor false")};
    plan.form.*flag.at = value.get<bool>();
  }
  plan.form.dtype = dtype_in(json, "dtype", where);
  plan.form.c_dtype = dtype_in(json, "c_dtype", where);
  const std::string beside = words(json, "beside", where);
  const auto found = std::find_if(std::begin(besides), std::end(besides), [&](const char* name) { return beside == name; });
  if (found == std::end(besides)) throw Malformed{text(where, ": beside is none of nothing, gelu, gelu_slope")};
  plan.form.beside = static_cast<Beside>(found - std::begin(besides));

  const Json& algorithm = of(json, "algorithm", where);
  if (!algorithm.is_array() || algorithm.size() != plan.algorithm.size()) throw Malformed{text(where, ": algorithm is not ", plan.algorithm.size(), " words")};
  for (std::size_t at = 0; at < plan.algorithm.size(); ++at) {
    const std::string word = algorithm[at].is_string() ? algorithm[at].get<std::string>() : "";
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), plan.algorithm[at], 16);
    if (word.empty() || error != std::errc{} || end != word.data() + word.size()) throw Malformed{text(where, ": word ", at, " of algorithm is not hexadecimal")};
  }
  for (const auto& [key, to] : {std::pair{"first_us", &plan.first_ns}, std::pair{"us", &plan.ns}}) {
    const Json& value = of(json, key, where);
    if (!value.is_number() || !(value.get<double>() > 0)) throw Malformed{text(where, ": ", key, " is no number above 0")};
    *to = 1e3 * value.get<double>();
  }
  expect_no_other(json, {"dtype", "c_dtype", "beside", "algorithm", "first_us", "us"}, where);
  return plan;
}

Json json_of(const MatmulPlan& plan) {
  Json json;
  for (const Number& number : numbers) json[number.name] = plan.form.*number.at;
  for (const Flag& flag : flags) json[flag.name] = plan.form.*flag.at;
  json["dtype"] = base::name_of(plan.form.dtype);
  json["c_dtype"] = base::name_of(plan.form.c_dtype);
  json["beside"] = besides[static_cast<std::size_t>(plan.form.beside)];
  json["algorithm"] = Json::array();
  for (const std::uint64_t word : plan.algorithm) {
    std::array<char, 16> digits{};
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), word, 16).ptr;
    json["algorithm"].push_back(std::string(digits.data(), end));
  }
  json["first_us"] = std::round(plan.first_ns) / 1e3;
  json["us"] = std::round(plan.ns) / 1e3;
  return json;
}

}  // namespace

std::string to_json(const MatmulFile& file) {
  std::string out = text("{\"gpu\": ", base::json_text_or_throw(Json(file.gpu)), ",\n \"library\": ", file.library, ",\n \"matmuls\": [");
  for (std::size_t at = 0; at < file.plans.size(); ++at) out += text(at == 0 ? "\n  " : ",\n  ", base::json_text_or_throw(json_of(file.plans[at])));
  return out + "\n ]}\n";
}

base::Result<MatmulFile> matmul_file_from_json(const std::string& content, const std::string& path) {
  const Json json = base::try_parse_ordered_json(content);
  try {
    if (!json.is_object()) throw Malformed{"it is no JSON object"};
    MatmulFile file;
    file.gpu = words(json, "gpu", "it");
    file.library = whole(json, "library", "it", 1);
    const Json& matmuls = of(json, "matmuls", "it");
    if (!matmuls.is_array()) throw Malformed{"its matmuls are no list"};
    std::set<MatmulForm> forms;
    for (const Json& entry : matmuls) {
      const std::string where = text("matmul ", file.plans.size());
      file.plans.push_back(plan_from_json(entry, where));
      if (!forms.insert(file.plans.back().form).second) throw Malformed{text(where, " is there twice: ", to_string(file.plans.back().form))};
    }
    for (const auto& [key, value] : json.items()) {
      if (key != "gpu" && key != "library" && key != "matmuls") throw Malformed{text("it has a key that is not known: ", key)};
    }
    return file;
  } catch (const Malformed& malformed) {
    return base::Error{text(path, " is no file of measured matmuls: ", malformed.what, "; ./shardbook tune writes one")};
  }
}

base::Result<MatmulFile> read_matmul_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return base::Error{text("no file of measured matmuls can be read at ", path, ": ./shardbook tune --out ", path, " with the options of the run writes one")};
  if (bytes > most_bytes) return base::Error{text(path, " has ", bytes, " bytes, and a file of measured matmuls at most ", most_bytes)};
  std::ostringstream content;
  content << file.rdbuf();
  return matmul_file_from_json(content.str(), path);
}

base::Status write_matmul_file(const MatmulFile& file, const std::string& path) {
  timeline::Output out(path);
  out << to_json(file);
  return out.commit();
}

base::Status check_measured_here(const MatmulFile& file, const std::string& gpu, std::int64_t library, const std::string& path) {
  if (file.gpu == gpu && file.library == library) return base::Done{};
  return base::Error{text("the matmuls of ", path, " were measured on ", file.gpu, " with cuBLASLt ", library_text(file.library), ", and here is ", gpu, " with ", library_text(library),
                          ": measure them here with ./shardbook tune")};
}

std::string library_text(std::int64_t version) { return text(version / 10000, ".", version / 100 % 100, ".", version % 100); }

std::vector<kernels::AskedMatmul> matmuls_of_step(const config::RunConfig& config) {
  return kernels::matmuls_of([&config] { issue_on_meta(config, 0); });
}

}  // namespace shardbook::launch
