#include "engine/launch/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/launch/speed.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::launch {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic = "SHBKPART";
enum Kind : std::int64_t { begin_kind = 1, head_kind, programs_kind, traced_kind, result_kind };

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 29;
  }
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

void write_spans(world::Writer& writer, const std::vector<program::TimeSpan>& spans) {
  writer.integer(static_cast<std::int64_t>(spans.size()));
  for (const program::TimeSpan& span : spans) writer.integer(span.start).integer(span.end);
}

std::vector<program::TimeSpan> read_spans(world::Reader& reader) {
  std::vector<program::TimeSpan> spans(reader.count(2 * 8));
  for (program::TimeSpan& span : spans) {
    span.start = reader.integer();
    span.end = reader.integer();
  }
  return spans;
}

}  // namespace

base::Result<Journal> Journal::begin(const std::string& folder, const std::string& run_id, base::Rank rank, int size) {
  const std::string path = (fs::path(folder) / base::text("rank", rank, ".partial")).string();
  Journal journal;
  journal.file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (journal.file_ < 0) return base::Error{base::text("cannot make ", path, ": ", std::strerror(errno))};
  ::flock(journal.file_, LOCK_EX | LOCK_NB);
  if (::write(journal.file_, magic.data(), magic.size()) == static_cast<ssize_t>(magic.size())) {
    journal.append(begin_kind, world::Writer().string(run_id).integer(rank).integer(size).bytes());
  }
  return journal;
}

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(programs_, other.programs_);
  return *this;
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

void Journal::append(int kind, std::string_view payload) {
  if (file_ < 0) return;
  std::string bytes = world::Writer().integer(static_cast<std::int64_t>(payload.size())).integer(kind)
                          .integer(static_cast<std::int64_t>(hash_of(payload))).bytes();
  bytes += payload;
  // Half a chunk is passed over by the reader, and nothing may follow it.
  if (::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) return;
  ::close(file_);
  file_ = -1;
}

void Journal::head(const RankOutcome& outcome, const std::string& backend) {
  append(head_kind, world::Writer().string(outcome.device).integer(outcome.clock.offset).integer(outcome.clock.error).integer(outcome.clock.at)
                        .integer(outcome.device_clock_error).number(outcome.allocated_bytes).number(outcome.tracing_pair_ns)
                        .string(backend).bytes());
}

void Journal::programs(const program::Recorder& recorder, int size) {
  if (file_ < 0 || recorder.programs().size() == programs_) return;
  programs_ = recorder.programs().size();
  append(programs_kind, program::encode(recorder.rank(), size, recorder.catalogue(), recorder.programs(), {}));
}

void Journal::traced(const program::StepTimes& times) {
  if (file_ < 0) return;
  world::Writer writer;
  writer.integer(times.step).integer(times.program).integer(times.window.start).integer(times.window.end);
  write_spans(writer, times.issued);
  write_spans(writer, times.ran);
  append(traced_kind, writer.bytes());
}

void Journal::result(const train::StepResult& result, base::Nanoseconds done) {
  append(result_kind, world::Writer().integer(result.step).number(result.loss).number(result.gradient_norm)
                          .number(result.learning_rate).integer(done).bytes());
}

namespace {

void take(Remains& remains, std::int64_t kind, std::string_view payload) {
  world::Reader reader(payload);
  RankOutcome& outcome = remains.outcome;
  switch (kind) {
    case begin_kind:
      remains.run_id = reader.string();
      remains.rank = static_cast<base::Rank>(reader.integer());
      remains.size = static_cast<int>(reader.integer());
      return;
    case head_kind:
      outcome.device = reader.string();
      outcome.clock.offset = reader.integer();
      outcome.clock.error = reader.integer();
      outcome.clock.at = reader.integer();
      outcome.device_clock_error = reader.integer();
      outcome.allocated_bytes = reader.number();
      outcome.tracing_pair_ns = reader.number();
      remains.backend = reader.string();
      return;
    case programs_kind: remains.programs = payload; return;
    case traced_kind: {
      program::StepTimes& times = remains.traced.emplace_back();
      times.step = reader.integer();
      times.program = static_cast<std::uint32_t>(reader.integer());
      times.window.start = reader.integer();
      times.window.end = reader.integer();
      times.issued = read_spans(reader);
      times.ran = read_spans(reader);
      return;
    }
    case result_kind: {
      train::StepResult& result = outcome.results.emplace_back();
      result.step = reader.integer();
      result.loss = reader.number();
      result.gradient_norm = reader.number();
      result.learning_rate = reader.number();
      outcome.step_done.push_back(reader.integer());
      return;
    }
    default: return;
  }
}

}  // namespace

base::Result<Remains> read_journal(const std::string& path) {
  const int lock = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (lock < 0) return base::Error{base::text("cannot read ", path, ": ", std::strerror(errno))};
  Remains remains;
  remains.alive = ::flock(lock, LOCK_SH | LOCK_NB) != 0;
  ::close(lock);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!bytes.starts_with(magic)) return base::Error{path + " is not what a rank recorded"};

  std::string_view rest = std::string_view(bytes).substr(magic.size());
  while (rest.size() >= 3 * 8) {
    world::Reader head(rest);
    const std::int64_t length = head.integer(), kind = head.integer(), hash = head.integer();
    rest.remove_prefix(3 * 8);
    if (length < 0 || static_cast<std::uint64_t>(length) > rest.size()) break;
    const std::string_view payload = rest.substr(0, static_cast<std::size_t>(length));
    if (hash != static_cast<std::int64_t>(hash_of(payload))) break;
    take(remains, kind, payload);
    rest.remove_prefix(payload.size());
  }
  for (const train::StepResult& result : remains.outcome.results) {
    remains.outcome.step_timed.push_back(std::any_of(remains.traced.begin(), remains.traced.end(),
                                                     [&](const program::StepTimes& times) { return times.step == result.step; }));
  }
  for (const program::StepTimes& times : remains.traced) remains.outcome.traced_took.push_back(took_alone(times));
  return remains;
}

base::Result<std::string> record_of(const Remains& remains, std::size_t steps) {
  const std::string name = base::text("what rank ", remains.rank, " recorded");
  base::Result<program::Record> record = program::decode(remains.programs, name);
  if (!record) return record.as_error();
  const std::vector<program::StepTimes> kept(remains.traced.begin(), remains.traced.begin() + static_cast<std::ptrdiff_t>(steps));
  for (const program::StepTimes& times : kept) {
    const auto& programs = record.value().programs;
    if (times.program >= programs.size() || times.issued.size() != programs[times.program]->commands.size() ||
        times.ran.size() != programs[times.program]->ops.size()) {
      return base::Error{name + " is damaged"};
    }
  }
  return program::encode(remains.rank, remains.size, record.value().catalogue, record.value().programs, kept);
}

std::vector<std::string> journals(const std::string& folder) {
  std::vector<std::pair<int, std::string>> found;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view before = "rank", behind = ".partial";
    if (!name.starts_with(before) || !name.ends_with(behind)) continue;
    int rank = 0;
    const char* last = name.data() + name.size() - behind.size();
    const auto [at, error] = std::from_chars(name.data() + before.size(), last, rank);
    if (error == std::errc{} && at == last) found.emplace_back(rank, entry->path().string());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (const auto& [rank, path] : found) paths.push_back(path);
  return paths;
}

}  // namespace shardbook::launch
