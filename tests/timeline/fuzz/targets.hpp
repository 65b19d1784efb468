// What must hold for any bytes: used by the fuzz targets, and by fuzz_corpus_test on the kept corpus.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/base/json.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/idle.hpp"
#include "engine/metrics/predicates.hpp"
#include "engine/metrics/rank_summary.hpp"
#include "engine/metrics/table.hpp"
#include "engine/metrics/terminal.hpp"
#include "engine/timeline/columns.hpp"
#include "engine/timeline/columns_check.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "tests/support/fuzz.hpp"
#include "tests/timeline/fuzz/mended.hpp"

namespace shardbook::timeline::fuzz {

using tests::require;

// One rank in one window: its parts, its gaps.
inline void check_rank(const Timeline& timeline, Rank rank, metrics::Window window) {
  const metrics::Partition parts = metrics::partition(timeline, rank, window);
  const Nanoseconds whole = std::max<Nanoseconds>(window.length(), 0);
  require(parts.compute_ns + parts.exposed_communication_ns + parts.exposed_memory_ns + parts.idle_ns == whole, "the parts sum to the window");
  for (const metrics::IdleGap& gap : metrics::idle_gaps(timeline, rank, window)) require(gap.gap.length() > 0, "a gap has a length");
  for (const metrics::StreamBusy& stream : metrics::stream_busy(timeline, rank, window)) {
    require(stream.busy_ns >= 0 && stream.busy_ns <= whole, "a stream is busy within the window");
  }
}

// Collectives, the critical path, what was exposed and why.
inline void check_path(const Timeline& timeline, metrics::Window window) {
  std::string disagreement;
  const auto matched = metrics::match_collectives(timeline, &disagreement);
  for (const metrics::MatchedCollective& collective : matched) {
    require(collective.skew_ns >= 0, "the last comes after the first");
    metrics::busbw(timeline, collective);
    for (const SpanRef span : collective.spans) {
      const metrics::WaitSplit split = metrics::split(timeline, collective, span);
      require(split.wait_ns >= 0 && split.queued_ns >= 0 && split.transfer_ns >= 0, "a collective is waiting, queued and transfer");
    }
  }
  const metrics::CriticalPath path = metrics::critical_path(timeline, matched, window);
  Nanoseconds at = window.start;
  for (const metrics::PathPiece& piece : path.pieces) {
    require(piece.time.start == at && piece.time.end > at, "pieces of the path follow one another");
    at = piece.time.end;
  }
  require(window.length() <= 0 || at == window.end, "the path fills the window");
  for (const metrics::Exposure& exposure : metrics::exposures(timeline, path)) {
    require(exposure.exposed_ns > 0 && exposure.exposed_ns <= exposure.span_ns, "no more is exposed than ran");
    require(exposure.blocking_ns >= 0 && exposure.blocking_ns <= exposure.exposed_ns, "no more blocks than is exposed");
    require(!metrics::sentence(timeline, exposure).empty(), "an exposure is a sentence");
  }
  metrics::exposure_sentence(timeline, window);
  metrics::order_disagreement(timeline);
}

// What a timeline that was opened goes through: tables, the picture in the terminal, a file of its own.
inline void check_timeline(const Timeline& timeline) {
  const base::Status sound = check_indices(timeline, "timeline");
  require(sound.ok(), sound.ok() ? "" : sound.error().c_str());
  constexpr std::size_t most_spans = 5000, most_ranks = 64;
  if (timeline.spans() >= most_spans || timeline.ranks.size() > most_ranks) return;
  const metrics::Window window = metrics::common_window(timeline);
  for (const Provenance& provenance : timeline.ranks) {
    check_rank(timeline, provenance.rank, window);
    check_rank(timeline, provenance.rank, metrics::device_window(timeline, provenance.rank));
    metrics::json_line(metrics::rank_summary(timeline, provenance.rank));
  }
  for (const Step& step : timeline.steps) metrics::common_step_window(timeline, step.number);
  check_path(timeline, window);
  const auto rows = metrics::rank_rows(timeline);
  metrics::table_text(timeline, rows);
  base::json_text(metrics::table_json(timeline, rows));
  if (!timeline.ranks.empty()) {
    metrics::ViewState state;
    for (const metrics::ViewKey key : {metrics::ViewKey::fit, metrics::ViewKey::next_exposed, metrics::ViewKey::zoom_in, metrics::ViewKey::pan_left}) {
      state = metrics::step(timeline, state, key);
      metrics::draw(timeline, state, {});
    }
  }
}

inline void check_opened(const base::Result<Timeline>& read) {
  if (read.ok()) check_timeline(read.value());
  else require(!read.error().empty(), "what cannot be opened is a sentence");
}

// Rank files: plain or gzip. A byte 0x1e (a record's end in ASCII) ends one plain file and begins the next rank's.
inline base::Result<Timeline> read_trace(std::string_view bytes) {
  constexpr char next_file = '\x1e';
  if (bytes.starts_with("\x1f\x8b")) return read_named({{"packed.json.gz", std::string(bytes)}});
  if (bytes.find(next_file) == std::string_view::npos) return read_bytes(bytes, "rank0.json");
  std::vector<NamedBytes> files;
  for (std::size_t at = 0; at <= bytes.size() && files.size() < 4;) {
    const std::size_t end = std::min(bytes.find(next_file, at), bytes.size());
    files.push_back({base::text("rank", files.size(), ".json"), std::string(bytes.substr(at, end - at))});
    at = end + 1;
  }
  return read_named(std::move(files));
}
inline void check_trace(std::string_view bytes) { check_opened(read_trace(bytes)); }

// run.tlb, as it is and with sums that fit.
inline void check_columns(std::string_view bytes) {
  for (const std::string& file : {std::string(bytes), mended_columns(bytes)}) {
    std::vector<std::uint64_t> words((file.size() + 7) / 8);                    // read_columns_bytes() asks for bytes aligned to 8
    std::copy(file.begin(), file.end(), reinterpret_cast<char*>(words.data()));
    check_opened(read_columns_bytes({reinterpret_cast<const char*>(words.data()), file.size()}, "run.tlb"));
  }
}

// A file in memory that has a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "memory can be written");
  }
  ~MemoryFile() { ::close(file_); }
  std::string path() const { return base::text("/proc/self/fd/", file_); }

 private:
  int file_;
};

// A pack, as it is and with sums that fit: read at once, and unpacked into a folder and nowhere else.
inline void check_pack(std::string_view bytes) {
  namespace fs = std::filesystem;
  static const std::string folder = tests::scratch_folder();
  for (const std::string& content : {std::string(bytes), mended_tar(bytes)}) {
    const MemoryFile file(content);
    check_opened(read_pack(file.path()));
    const base::Result<OpenedPack> opened = open_pack(file.path(), folder + "/target");
    for (const auto& entry : fs::directory_iterator(folder)) {
      require(opened.ok() && entry.path() == folder + "/target", "a pack is unpacked below its folder, or nothing is left of it");
    }
    require(!opened.ok() || fs::is_directory(opened.value().run), "a pack that was opened has a run");
    fs::remove_all(folder + "/target");
  }
  fs::remove_all(folder);
  fs::create_directory(folder);
}

// run.json.
inline void check_run_info(std::string_view bytes) {
  const MemoryFile file(bytes);
  const base::Result<RunInfo> info = read_run_info(file.path());
  if (!info.ok()) return require(!info.error().empty(), "what is no run.json is a sentence");
  const std::string text = base::json_text(to_json(info.value()), 2);
  const MemoryFile again(text);
  require(read_run_info(again.path()).ok(), "what was read can be written and read");
}

}  // namespace shardbook::timeline::fuzz
