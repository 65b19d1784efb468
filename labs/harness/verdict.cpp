#include "labs/harness/verdict.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json.hpp"

namespace shardbook::labs {

void Verdict::figure(const std::string& name, double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.5g", value);
  figures_.emplace_back(name, std::strtod(digits, nullptr));
}

std::string Verdict::to_json() const {
  nlohmann::json json{{"passed", findings_.empty()}, {"findings", nlohmann::json::array()}, {"figures", nlohmann::json::object()}};
  for (const Finding& finding : findings_) {
    nlohmann::json row{{"rule", finding.rule}, {"message", finding.message}, {"phase", finding.phase}, {"span", finding.span}, {"page", finding.page}};
    row["rank"] = finding.rank < 0 ? nlohmann::json(nullptr) : nlohmann::json(finding.rank);
    row["layer"] = finding.layer < 0 ? nlohmann::json(nullptr) : nlohmann::json(finding.layer);
    row["file"] = finding.where.file;
    row["line"] = finding.where.line;
    json["findings"].push_back(std::move(row));
  }
  for (const auto& [name, value] : figures_) json["figures"][name] = value;
  return base::json_text(json, 1) + "\n";
}

int run(int argc, char** argv, Judge judge) {
  Request request;
  for (int at = 1; at < argc; at += 2) {
    const std::string_view name = argv[at];
    const char* value = at + 1 < argc ? argv[at + 1] : nullptr;
    if (value != nullptr && name == "--result") request.result = value;
    else if (value != nullptr && name == "--seed") request.seed = std::strtoull(value, nullptr, 10);
    else {
      std::cerr << "this program checks an exercise: --result FILE.json [--seed N], not " << name << "\n";
      return 2;
    }
  }
  Verdict verdict;
  try {
    judge(request, verdict);
  } catch (const base::Failure& failure) {
    // What the engine or the lab's page refused is a finding like any other
    verdict.fail({"refused", failure.what(), -1, -1, "", "", {}, ""});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  if (request.result.empty()) {
    std::cout << verdict.to_json();
    return 0;
  }
  std::ofstream file(request.result);
  file << verdict.to_json();
  file.close();
  if (file) return 0;
  std::cerr << "cannot write " << request.result << "\n";
  return 1;
}

std::string ms(double ns) {
  char text[32];
  const double value = ns / 1e6;
  std::snprintf(text, sizeof text, value < 9.995 ? "%.2f ms" : value < 99.95 ? "%.1f ms" : "%.0f ms", value);
  return text;
}

std::string line(const program::SourceLine& where) { return "line " + std::to_string(where.line); }

bool is_learners(const program::SourceLine& where) {
  const std::string_view file = where.file;
  if (file.empty() || file.starts_with("engine/") || file.starts_with("labs/harness/")) return false;
  return file.find("/harness/") == std::string_view::npos && !file.ends_with("/lab.hpp");
}

}  // namespace shardbook::labs
