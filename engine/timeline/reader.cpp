// timeline/reader: files and folders; see reader.hpp. The events themselves: rank_file.cpp.
#include "engine/timeline/reader.hpp"

#include <algorithm>
#include <filesystem>

#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/rank_file.hpp"

namespace shardbook::timeline {
namespace {

namespace fs = std::filesystem;

bool is_trace_name(const std::string& file) { return file.ends_with(".json") || file.ends_with(".json.gz"); }

// The number after the last "rank" in a file's name, or -1.
int rank_number(const std::string& file) {
  const std::size_t at = file.rfind("rank");
  if (at == std::string::npos) return -1;
  std::size_t digit = at + 4;
  if (digit < file.size() && (file[digit] == '_' || file[digit] == '-')) ++digit;
  if (digit == file.size() || file[digit] < '0' || file[digit] > '9') return -1;
  int number = 0;
  for (; digit < file.size() && file[digit] >= '0' && file[digit] <= '9' && number < 100'000'000; ++digit) {
    number = number * 10 + (file[digit] - '0');
  }
  return number;
}

// Edges between spans of files, steps and edges of traces that state none.
Timeline finished(ReadState& state) {
  for (const ReadState::StatedEdge& edge : state.edges) {
    const auto from = state.ids.find(edge.from);
    if (from != state.ids.end()) state.builder.add_edge(from->second, edge.to, edge.kind);
  }
  std::vector<SpanRef> where;
  Timeline timeline = state.builder.finish(state.waits.empty() ? nullptr : &where);
  for (Rank rank : state.foreign) infer_steps(timeline, rank);
  if (!state.waits.empty()) infer_event_edges(timeline, state.waits, where);
  return timeline;
}

}  // namespace

base::Result<std::vector<std::string>> rank_files(const std::string& folder) {
  std::error_code failure;
  std::vector<std::pair<int, std::string>> ranked;
  std::vector<std::string> profiles;                       // PyTorch's own naming: *.pt.trace.json
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string file = entry->path().filename().string();
    if (!is_trace_name(file)) continue;
    if (const int rank = rank_number(file); rank >= 0) ranked.emplace_back(rank, entry->path().string());
    else if (file.find(".pt.trace.json") != std::string::npos) profiles.push_back(entry->path().string());
  }
  if (failure) return base::Error{base::text("cannot read the folder ", folder, ": ", failure.message())};
  std::sort(ranked.begin(), ranked.end());
  std::sort(profiles.begin(), profiles.end());
  std::vector<std::string> paths;
  for (auto& [rank, path] : ranked) paths.push_back(path);
  if (paths.empty()) paths = profiles;
  if (paths.empty()) {
    return base::Error{base::text("no rank files in ", folder, ": expected rank0.json, rank1.json, ...")};
  }
  return paths;
}

base::Result<Timeline> read(const std::vector<std::string>& paths) {
  // A folder stands for the rank files in it.
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    base::Result<std::vector<std::string>> found = rank_files(path);
    if (!found) return found.as_error();
    files.insert(files.end(), found.value().begin(), found.value().end());
  }
  if (files.empty()) return base::Error{"no trace was named: give a rank file or the folder of a run"};

  ReadState state;
  for (const std::string& file : files) {
    base::Result<FileBytes> bytes = FileBytes::open(file);
    if (!bytes) return bytes.as_error();
    base::Status read = RankFile(state, bytes.value().view(), file, bytes.value().cut_off()).read();
    if (!read) return read.as_error();
  }
  return finished(state);
}

base::Result<Timeline> read_bytes(std::string_view bytes, const std::string& name) {
  ReadState state;
  base::Status read = RankFile(state, bytes, name, false).read();
  if (!read) return read.as_error();
  return finished(state);
}

}  // namespace shardbook::timeline
