// timeline/reader: files and folders; see reader.hpp. The events themselves: rank_file.cpp.
#include "engine/timeline/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "engine/timeline/columns.hpp"
#include "engine/timeline/cores.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/gzip.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/rank_file.hpp"
#include "engine/timeline/whole.hpp"

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

// One file, read on its own.
struct ReadFile {
  FileEvents events;
  base::Status status = base::Done{};
};

// On the disk. What cannot be said is 0: reading it will say why.
std::int64_t size_of(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(path, failure);
  return failure ? 0 : static_cast<std::int64_t>(size);
}

void read_file(const std::string& path, ReadFile& file, Meter& meter) {
  // A packed file is half done when it is unpacked.
  std::int64_t left = size_of(path);
  const auto unpacked = [&](std::size_t bytes) {
    left -= static_cast<std::int64_t>(bytes / 2);
    return meter.add(static_cast<std::int64_t>(bytes / 2));
  };
  base::Result<FileBytes> bytes = FileBytes::open(path, unpacked);
  if (!bytes) file.status = bytes.as_error();
  else file.status = RankFile(file.events, bytes.value().view(), path, bytes.value().cut_off(), &bytes.value(), {meter, left}).read();
}

// Older PyTorch states no base and counts its events from 1970. Those are counted from their first event here, as
// fractions of a microsecond would else have no room beside them in a double.
Nanoseconds origin_of(const FileEvents& first) {
  constexpr Nanoseconds year_1980 = 315'532'800'000'000'000;
  const Nanoseconds start = first.base_ns == 0 ? first.builder.first_start() : 0;
  return start >= year_1980 ? start : 0;
}

// The files, in their order, as one timeline: ranks told apart, one base, edges between them; steps
// and edges of traces that state none.
base::Result<Timeline> joined(std::vector<ReadFile>& files, const std::vector<std::string>& names) {
  TimelineBuilder builder;
  std::map<Rank, std::size_t> file_of;
  std::vector<TimelineBuilder::SpanNumber> before(files.size());     // what comes on top of each file's numbers
  std::vector<ForeignWait> waits;
  const std::int64_t base_ns = files[0].events.base_ns;
  const Nanoseconds origin = files[0].status ? origin_of(files[0].events) : 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!files[i].status) return files[i].status.as_error();
    FileEvents& file = files[i].events;
    Rank rank = file.rank;
    if (rank < 0) {
      for (rank = 0; file_of.contains(rank);) ++rank;
    }
    if (!file_of.emplace(rank, i).second) {
      return base::Error{base::text(names[i], " says that it is rank ", rank,
                                    ", which another file already is; give one file a rank")};
    }
    // Files of one run begin within hours. So all times stay within what columns_check.cpp asks for.
    constexpr std::int64_t farthest_base_ns = 200'000'000'000'000'000, year_ns = 31'557'600'000'000'000;
    const std::int64_t shift = file.base_ns - base_ns;
    if (shift < -farthest_base_ns || shift > farthest_base_ns) {
      return base::Error{base::text(names[i], " begins ", std::abs(shift) / year_ns, " years ", shift < 0 ? "before " : "after ", names[0],
                                    ": they are not of one run; open them one at a time")};
    }
    before[i] = builder.absorb(std::move(file.builder), rank, shift - origin);
    for (ForeignWait wait : file.waits) {
      wait.mark_number += before[i];
      waits.push_back(wait);
    }
  }
  builder.set_base_ns(base_ns + origin);
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const FileEvents::StatedEdge& edge : files[i].events.edges) {
      const auto other = edge.from_rank < 0 ? file_of.end() : file_of.find(edge.from_rank);
      if (edge.from_rank >= 0 && other == file_of.end()) continue;       // of a rank that was not named
      const std::size_t from_file = edge.from_rank < 0 ? i : other->second;
      const auto from = files[from_file].events.ids.find(edge.from_id);
      if (from == files[from_file].events.ids.end()) continue;
      builder.add_edge(from->second + before[from_file], edge.to + before[i], edge.kind);
    }
  }
  std::vector<SpanRef> where;
  Timeline timeline = builder.finish(waits.empty() ? nullptr : &where);
  for (const auto& [rank, i] : file_of) {
    if (files[i].events.foreign) infer_steps(timeline, rank);
  }
  if (!waits.empty()) infer_event_edges(timeline, waits, where);
  std::vector<std::string> runs;
  for (const ReadFile& file : files) runs.push_back(file.events.run);
  note_mixed_runs(timeline, runs, names);
  return timeline;
}

}  // namespace

bool is_rank_file(const std::string& file) {
  return is_trace_name(file) && (rank_number(file) >= 0 || file.find(".pt.trace.json") != std::string::npos);
}

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

// The run.tlb of this folder, if there is one that no rank file is newer than.
static std::string columns_of(const std::string& folder) {
  std::error_code failure;
  const std::string path = folder + "/" + columns_name;
  const fs::file_time_type written = fs::last_write_time(path, failure);
  if (failure) return "";
  const base::Result<std::vector<std::string>> files = rank_files(folder);
  if (!files) return path;
  for (const std::string& file : files.value()) {
    if (fs::last_write_time(file, failure) > written || failure) return "";
  }
  return path;
}

static base::Result<Timeline> read_any(const std::vector<std::string>& paths, const Heard& heard) {
  // What holds all ranks: a pack, or the form for large runs.
  std::string passed_over;
  if (paths.size() == 1) {
    std::error_code ignored;
    if (is_pack_name(paths[0])) return read_pack(paths[0]);
    const bool folder = fs::is_directory(paths[0], ignored);
    const std::string columns = folder ? columns_of(paths[0]) : paths[0].ends_with(".tlb") ? paths[0] : "";
    if (!columns.empty()) {
      base::Result<Timeline> read = read_columns(columns, heard);
      if (read || !folder || !rank_files(paths[0])) return read;
      passed_over = base::text(read.error(), "; its rank files were read instead");
    }
  }

  // A folder stands for the rank files in it.
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path.ends_with(".tlb") || is_pack_name(path)) {
      return base::Error{base::text(path, " holds all ranks of a run; name it alone, or the rank files of each run")};
    }
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    base::Result<std::vector<std::string>> found = rank_files(path);
    if (!found) return found.as_error();
    files.insert(files.end(), found.value().begin(), found.value().end());
  }
  if (files.empty()) return base::Error{"no trace was named: give a rank file or the folder of a run"};

  std::vector<ReadFile> read(files.size());
  std::int64_t bytes = 0;
  for (const std::string& file : files) bytes += size_of(file);
  Meter meter(heard, bytes);
  on_all_cores(files.size(), [&](std::size_t i) { read_file(files[i], read[i], meter); });
  base::Result<Timeline> timeline = joined(read, files);
  if (timeline && !passed_over.empty()) timeline.value().banners.push_back(passed_over);
  return timeline;
}

base::Result<Timeline> read(const std::vector<std::string>& paths, const Heard& heard) {
  base::Result<Timeline> timeline = read_any(paths, heard);
  // Of a run that was named whole, all of it is expected.
  if (timeline && paths.size() == 1) {
    std::error_code ignored;
    const bool folder = fs::is_directory(paths[0], ignored);
    if (folder || is_pack_name(paths[0])) note_missing_ranks(timeline.value(), paths[0]);
    if (folder) note_interrupted(timeline.value(), paths[0]);
  }
  if (timeline && heard) heard(1);
  return timeline;
}

base::Result<Timeline> read_named(std::vector<NamedBytes> files) {
  std::sort(files.begin(), files.end(), [](const NamedBytes& a, const NamedBytes& b) {
    return std::pair(rank_number(a.name), a.name) < std::pair(rank_number(b.name), b.name);
  });
  std::vector<ReadFile> read(files.size());
  on_all_cores(files.size(), [&](std::size_t i) {
    bool cut_off = false;
    if (begins_like_gzip(files[i].bytes)) {
      base::Result<std::string> unpacked = gunzip(files[i].bytes, files[i].name, &cut_off);
      if (!unpacked) {
        read[i].status = unpacked.as_error();
        return;
      }
      files[i].bytes = std::move(unpacked).value();
    }
    read[i].status = RankFile(read[i].events, files[i].bytes, files[i].name, cut_off, nullptr).read();
  });
  std::vector<std::string> names;
  for (const NamedBytes& file : files) names.push_back(file.name);
  return joined(read, names);
}

base::Result<Timeline> read_bytes(std::string_view bytes, const std::string& name) {
  std::vector<ReadFile> file(1);
  file[0].status = RankFile(file[0].events, bytes, name, false, nullptr).read();
  return joined(file, {name});
}

}  // namespace shardbook::timeline
