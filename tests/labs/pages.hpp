// Pages as they are, and the prose of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

namespace shardbook::labs {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One blank for every run of blanks and line ends; no code, no comments.
inline std::string prose_of(const std::string& page) {
  std::string out, rest = page;
  for (const auto& [begin, end] : {std::pair<std::string, std::string>{"```", "```"}, {"<!--", "-->"}}) {
    out.clear();
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t open = rest.find(begin, at), close = open == std::string::npos ? open : rest.find(end, open + begin.size());
      out += rest.substr(at, open == std::string::npos ? open : open - at);
      at = close == std::string::npos ? rest.size() : close + end.size();
    }
    rest = out;
  }
  std::istringstream words(rest);
  out.clear();
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace shardbook::labs
