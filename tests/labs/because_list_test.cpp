// Has every "because" of the labs and of notes 03, 04 and 06 a test that takes its cause away?
//
// because.txt lists the sentences, each with its test: a sentence with "because" or "since" that is not listed fails here, and
// so does a row whose words stand nowhere or whose test there is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "tests/labs/pages.hpp"

namespace shardbook::labs {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string file, words, test;
};

std::vector<fs::path> pages() {
  const fs::path root = SHARDBOOK_SOURCE_DIR;
  std::vector<fs::path> all = {"notes/03_tensor_parallel.md", "notes/04_fsdp.md", "notes/06_memory.md"};
  for (const fs::directory_entry& lab : fs::directory_iterator(root / "labs")) {
    const fs::path name = lab.path().filename();
    if (!fs::exists(lab.path() / "lab.json")) continue;
    all.insert(all.end(), {fs::path("labs") / name / "text.md", fs::path("labs") / name / "lab.json", fs::path("solutions") / name / "solution.md"});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  std::istringstream lines(read(fs::path(SHARDBOOK_SOURCE_DIR) / "tests/labs/because.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t first = line.find(" | "), last = line.rfind(" | ");
    if (first == std::string::npos || first == last) {
      ADD_FAILURE() << "not 'file | words | test': " << line;
      continue;
    }
    all.push_back({line.substr(0, first), line.substr(first + 3, last - first - 3), line.substr(last + 3)});
  }
  return all;
}

// Where "because" and "since" stand, as words.
std::vector<std::size_t> claims_in(const std::string& prose) {
  std::vector<std::size_t> all;
  for (const std::string word : {"because ", "since "}) {
    for (std::size_t at = 0; (at = prose.find(word, at)) != std::string::npos; at += word.size()) {
      if (at == 0 || std::isalpha(static_cast<unsigned char>(prose[at - 1])) == 0) all.push_back(at);
    }
  }
  return all;
}

TEST(Because, EverySentenceIsListedWithTheTestThatTakesItsCauseAway) {
  std::string sources;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / "tests")) {
    if (entry.path().extension() == ".cpp") sources += read(entry.path());
  }
  const std::vector<Row> listed = rows();
  int claims = 0;
  for (const fs::path& page : pages()) {
    const std::string prose = prose_of(read(fs::path(SHARDBOOK_SOURCE_DIR) / page));
    ASSERT_NE(prose, "") << page;
    for (std::size_t at : claims_in(prose)) {
      ++claims;
      const bool is_listed = std::any_of(listed.begin(), listed.end(), [&](const Row& row) {
        for (std::size_t found = prose.find(row.words); row.file == page && found != std::string::npos; found = prose.find(row.words, found + 1)) {
          if (found <= at && at < found + row.words.size()) return true;
        }
        return false;
      });
      EXPECT_TRUE(is_listed) << page << " claims '..." << prose.substr(at > 60 ? at - 60 : 0, 150) << "...': list it in tests/labs/because.txt with the test that takes the cause away";
    }
  }
  EXPECT_GT(claims, 20);
  for (const Row& row : listed) {
    EXPECT_NE(prose_of(read(fs::path(SHARDBOOK_SOURCE_DIR) / row.file)).find(row.words), std::string::npos) << row.file << " says nowhere '" << row.words << "'";
    EXPECT_FALSE(claims_in(row.words).empty()) << "no claim: " << row.words;
    if (row.test.rfind("from ", 0) == 0) continue;   // what others' sources do, read at their pinned commits: "from PLACE"
    if (row.test.rfind("tests/", 0) == 0) {
      EXPECT_TRUE(fs::exists(fs::path(SHARDBOOK_SOURCE_DIR) / row.test)) << row.test;
      continue;
    }
    const std::size_t dot = row.test.find('.');
    const std::string suite = row.test.substr(0, dot), name = row.test.substr(dot + 1);
    const bool is_there = sources.find("(" + suite + ", " + name + ")") != std::string::npos;
    EXPECT_TRUE(dot != std::string::npos && is_there) << "there is no test " << row.test;
  }
}

TEST(Because, IsFoundInProseAndNotInCode) {
  EXPECT_EQ(claims_in(prose_of("It is late, because\nit waits.\n```\nbecause no\n```\n<!-- since then -->, since it must")).size(), 2u);
  EXPECT_TRUE(claims_in("long sincere words").empty());
}

}  // namespace
}  // namespace shardbook::labs
