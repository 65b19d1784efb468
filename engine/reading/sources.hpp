// reading/sources: where are the files that the notes cite?
//
// A folder (sources/ at the root, ignored by git) holds them as OWNER+NAME/COMMIT/path, so that several commits can
// stand side by side. Where a file is not there, the table of facts says what it can. A file at a pinned commit whose
// bytes are not those of the table is not used: a citation judged by another version would be judged wrong.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/reading/facts.hpp"

namespace shardbook::reading {

struct SourceFile {
  const std::vector<std::string>* lines = nullptr;   // nullptr: not here
  const FileFacts* facts = nullptr;                  // nullptr: not in the table at this commit
  std::string problem;                               // one sentence where it is there and cannot be used
};

class Sources {
 public:
  // `folder` need not exist. Nothing is read before it is asked for.
  Sources(std::string folder, Facts facts) : folder_(std::move(folder)), facts_(std::move(facts)) {}

  const Facts& facts() const { return facts_; }
  // "FOLDER/NVIDIA+Megatron-LM/d98e…/megatron/core/…"
  std::string place_of(std::string_view repository, std::string_view commit, std::string_view path) const;
  // Pointers stay valid as long as this object.
  SourceFile file(const std::string& repository, const std::string& commit, const std::string& path) const;
  // All files that are here of one commit, by path.
  std::vector<std::string> paths(const std::string& repository, const std::string& commit) const;
  // Whether anything is known of this commit: files, or the table.
  bool knows(const std::string& repository, const std::string& commit) const;

  // A commit that was looked for in the learner's own clone and is not there.
  void mark_missing(const std::string& commit, const std::string& sentence) { missing_[commit] = sentence; }
  // "" or the sentence.
  std::string missing(const std::string& commit) const;

 private:
  std::string folder_;
  Facts facts_;
  std::map<std::string, std::string> missing_;
  struct Loaded {
    bool here = false;
    std::vector<std::string> lines;
    std::string problem;
  };
  mutable std::map<std::string, Loaded> loaded_;   // by place
};

}  // namespace shardbook::reading
