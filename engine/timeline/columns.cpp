// timeline/columns: writing and reading run.tlb; see columns.hpp. Its parts in order: columns_form.hpp.
#include "engine/timeline/columns.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <string_view>

#include "engine/timeline/columns_check.hpp"
#include "engine/timeline/columns_form.hpp"
#include "engine/timeline/cores.hpp"
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/output.hpp"

namespace shardbook::timeline {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they are in memory");

// Bytes that are summed and moved at once, so that the second finds them in the cache.
constexpr std::size_t cached_piece = std::size_t{1} << 18;

// A checksum of a column, piece by piece: four lanes of multiplications, so that it runs as fast as memory.
// Each step is one to one in the word and in the lane: one changed word always changes the sum.
class Checksum {
 public:
  // All calls but the last give a multiple of 32 bytes.
  void add(const char* bytes, std::size_t count) {
    length_ += count;
    for (; count >= 32; bytes += 32, count -= 32) {
      std::uint64_t words[4];
      std::memcpy(words, bytes, 32);
      for (int i = 0; i < 4; ++i) lanes_[i] = step(lanes_[i], words[i]);
    }
    if (count == 0) return;
    std::uint64_t words[4] = {};
    std::memcpy(words, bytes, count);
    for (int i = 0; i < 4; ++i) lanes_[i] = step(lanes_[i], words[i]);
  }
  std::uint64_t sum() const {
    std::uint64_t sum = step(7, length_);
    for (std::uint64_t lane : lanes_) sum = step(sum, lane);
    return sum;
  }

 private:
  static std::uint64_t step(std::uint64_t state, std::uint64_t word) {
    return std::rotl((state ^ word) * 0x9e3779b97f4a7c15ull, 29);
  }
  std::uint64_t lanes_[4] = {1, 2, 3, 4};
  std::uint64_t length_ = 0;
};

std::uint64_t checksum_of(const char* bytes, std::size_t count) {
  Checksum sum;
  sum.add(bytes, count);
  return sum.sum();
}

// --- A field of each row --------------------------------------------------------------------------

// Where a field lies in its row, in bytes: to what copies it a column of ids and one of times differ in nothing else.
struct Field {
  std::size_t offset, width;
};
template <class Row, class Of>
Field field_of(Of of) {
  Row row{};
  return {static_cast<std::size_t>(reinterpret_cast<const char*>(&of(row)) - reinterpret_cast<const char*>(&row)), sizeof of(row)};
}

// `count` words of `width` bytes, each `from_stride` bytes behind the last, to where each is `to_stride` behind the last.
template <std::size_t width>
void copy_words(const char* from, std::size_t from_stride, char* to, std::size_t to_stride, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, width);
}
void copy_fields(std::size_t width, const char* from, std::size_t from_stride, char* to, std::size_t to_stride, std::size_t count) {
  switch (width) {
    case 1: return copy_words<1>(from, from_stride, to, to_stride, count);
    case 2: return copy_words<2>(from, from_stride, to, to_stride, count);
    case 4: return copy_words<4>(from, from_stride, to, to_stride, count);
    case 8: return copy_words<8>(from, from_stride, to, to_stride, count);
    default: SHARDBOOK_CHECK(false, "a column of ", width, " bytes a row");
  }
}

// --- Writing --------------------------------------------------------------------------------------

// Goes through the timeline twice: without a file it makes the head, with one it writes the columns.
class Writing {
 public:
  explicit Writing(Output* out) : out_(out) {}

  std::string head;
  std::size_t column_bytes = 0;              // with what aligns them

  template <class Value>
  void value(const Value& value) {
    if (out_ == nullptr) head.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    value(std::uint64_t{text.size()});
    if (out_ == nullptr) head += text;
  }
  template <class T, class Visit>
  void list(std::vector<T>& elements, Visit visit) {
    value(std::uint64_t{elements.size()});
    for (T& element : elements) visit(element);
  }
  template <class T>
  void column(const std::vector<T>& values, std::uint64_t count) {
    column(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
  }
  template <class T, class... Of>
  void table(std::vector<T>& rows, Of... of) {
    value(std::uint64_t{rows.size()});
    for (const Field field : {field_of<T>(of)...}) gather(field, reinterpret_cast<const char*>(rows.data()), sizeof(T), rows.size());
  }

 private:
  void column(const char* bytes, std::size_t size) {
    if (out_ == nullptr) {
      value(checksum_of(bytes, size));
      column_bytes += aligned(size);
      return;
    }
    for (std::size_t at = 0; at < size; at += cached_piece) *out_ << std::string_view(bytes + at, std::min(cached_piece, size - at));
    static constexpr char zeros[column_alignment] = {};
    *out_ << std::string_view(zeros, aligned(size) - size);
  }
  void gather(Field field, const char* rows, std::size_t row_bytes, std::size_t count) {
    std::vector<char> values(count * field.width);
    if (count > 0) copy_fields(field.width, rows + field.offset, row_bytes, values.data(), field.width, count);   // no rows lie nowhere
    column(values.data(), values.size());
  }

  Output* out_;
};

// --- Reading --------------------------------------------------------------------------------------

// Goes through the head, and notes what is to be done for each column; nothing is trusted but the head's sum.
class Reading {
 public:
  Reading(std::string_view file, const FileBytes* mapped, std::size_t head_at, std::size_t head_bytes)
      : file_(file), mapped_(mapped), head_(file_.substr(head_at, head_bytes)), at_(aligned(head_at + head_bytes)) {}

  struct Task {
    std::size_t at, bytes;                   // of its column in the file
    std::uint64_t checksum;
    std::function<void(const char* bytes, std::size_t size)> take;   // piece by piece
  };
  std::vector<Task> tasks;
  bool whole() const { return !failed_ && head_.empty() && at_ == file_.size(); }

  // Hands a column over; false if its checksum is another. Called on many threads, for another task each.
  bool copy(Task& task) const {
    const char* bytes = file_.data() + task.at;
    Checksum sum;
    for (std::size_t at = 0; at < task.bytes; at += cached_piece) {
      const std::size_t some = std::min(cached_piece, task.bytes - at);
      sum.add(bytes + at, some);
      task.take(bytes + at, some);
    }
    if (mapped_ != nullptr) mapped_->let_go(static_cast<std::int64_t>(task.at), static_cast<std::int64_t>(task.bytes));
    return sum.sum() == task.checksum;
  }

  template <class Value>
  void value(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      std::uint8_t byte = 0;
      this->value(byte);
      value = byte != 0;
    } else if (need(sizeof value)) {
      std::memcpy(&value, head_.data(), sizeof value);
      head_.remove_prefix(sizeof value);
    }
  }
  void text(std::string& text) {
    std::uint64_t size = 0;
    value(size);
    if (!need(size)) return;
    text = head_.substr(0, size);
    head_.remove_prefix(size);
  }
  template <class T, class Visit>
  void list(std::vector<T>& elements, Visit visit) {
    std::uint64_t count = 0;
    value(count);
    if (!need(count)) return;                // each element takes a byte of the head at least
    elements.clear();
    elements.reserve(count);                 // tasks keep pointers to what is in the elements
    for (std::uint64_t i = 0; i < count && !failed_; ++i) visit(elements.emplace_back());
  }
  template <class T>
  void column(std::vector<T>& values, std::uint64_t count) {
    if (Task* task = next_column(count, sizeof(T))) {
      values.clear();
      task->take = [&values, count](const char* bytes, std::size_t size) {
        if (values.empty()) values.reserve(count);
        const T* some = reinterpret_cast<const T*>(bytes);
        values.insert(values.end(), some, some + size / sizeof(T));
      };
    }
  }
  template <class T, class... Of>
  void table(std::vector<T>& rows, Of... of) {
    std::uint64_t count = 0;
    value(count);
    const Field fields[] = {field_of<T>(of)...};
    const std::size_t first = tasks.size();
    for (const Field& field : fields) next_column(count, field.width);
    if (failed_) return;
    rows.assign(count, T{});
    for (std::size_t i = 0; i < std::size(fields); ++i) tasks[first + i].take = scatter(fields[i], reinterpret_cast<char*>(rows.data()), sizeof(T));
  }

 private:
  bool need(std::uint64_t bytes) {
    failed_ = failed_ || bytes > head_.size();
    return !failed_;
  }
  // The task of the next column in the file, which takes nothing yet; null where the file has no room for it.
  Task* next_column(std::uint64_t count, std::size_t width) {
    Task task{at_, count * width, 0, {}};
    value(task.checksum);
    failed_ = failed_ || at_ > file_.size() || count > (file_.size() - at_) / width;
    if (failed_) return nullptr;
    at_ += aligned(task.bytes);
    tasks.push_back(std::move(task));
    return &tasks.back();
  }
  static std::function<void(const char*, std::size_t)> scatter(Field field, char* rows, std::size_t row_bytes) {
    return [field, row_bytes, rows](const char* bytes, std::size_t size) mutable {
      const std::size_t count = size / field.width;
      copy_fields(field.width, bytes, field.width, rows + field.offset, row_bytes, count);
      rows += count * row_bytes;
    };
  }

  std::string_view file_;
  const FileBytes* mapped_;                  // null if the bytes are in memory anyway
  std::string_view head_;
  std::size_t at_;
  bool failed_ = false;
};

// What is wrong with the header, or nothing.
base::Status check_header(const ColumnsHeader& header, std::string_view bytes, const std::string& path) {
  if (bytes.size() < sizeof header || std::memcmp(header.magic, columns_magic, sizeof header.magic) != 0) {
    if (!bytes.empty() && std::string_view(columns_magic, 8).starts_with(bytes.substr(0, 8))) {
      return base::Error{base::text(path, " is cut off at byte ", bytes.size(), ", within its first 64")};
    }
    return base::Error{base::text(path, " is no timeline in columns: it does not begin with ", columns_magic)};
  }
  if (header.version != columns_version) {
    return base::Error{base::text(path, " has version ", header.version, "; this build reads version ", columns_version)};
  }
  if (header.own_checksum != checksum_of(bytes.data(), offsetof(ColumnsHeader, own_checksum))) {
    return base::Error{base::text(path, " is damaged within its first 64 bytes; write it again")};
  }
  if (header.file_bytes != bytes.size() || header.head_bytes > bytes.size() - sizeof header) {
    return base::Error{base::text(path, " is cut off: it has ", bytes.size(), " of ", header.file_bytes, " bytes")};
  }
  if (header.head_checksum != checksum_of(bytes.data() + sizeof header, header.head_bytes)) {
    return base::Error{base::text(path, " is damaged in bytes ", sizeof header, " to ", sizeof header + header.head_bytes,
                                  "; write it again")};
  }
  return base::Done{};
}

}  // namespace

base::Status write_columns(const Timeline& timeline, const std::string& path) {
  StoredStrings strings;
  for (std::uint32_t id = 0; id < timeline.strings.size(); ++id) {
    const std::string_view text = timeline.strings[id];
    strings.text.insert(strings.text.end(), text.begin(), text.end());
    strings.length.push_back(static_cast<std::uint32_t>(text.size()));
  }
  // describe() serves reading too, so it asks for what can be changed; writing changes nothing.
  auto& whole = const_cast<Timeline&>(timeline);
  std::vector<Edge> edges(timeline.edges.begin(), timeline.edges.end());
  Writing head(nullptr);
  describe(head, whole, strings, edges);

  ColumnsHeader header;
  std::memcpy(header.magic, columns_magic, sizeof header.magic);
  header.version = columns_version;
  header.head_bytes = head.head.size();
  header.file_bytes = aligned(sizeof header + header.head_bytes) + head.column_bytes;
  header.head_checksum = checksum_of(head.head.data(), head.head.size());
  header.own_checksum = checksum_of(reinterpret_cast<const char*>(&header), offsetof(ColumnsHeader, own_checksum));
  head.head.resize(aligned(head.head.size()), '\0');

  Output out(path);
  out << std::string_view(reinterpret_cast<const char*>(&header), sizeof header) << head.head;
  Writing columns(&out);
  describe(columns, whole, strings, edges);
  return out.commit();
}

static base::Result<Timeline> read_from(std::string_view bytes, const FileBytes* mapped, const std::string& path, const Heard& heard) {
  ColumnsHeader header;
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (base::Status fine = check_header(header, bytes, path); !fine) return fine.as_error();

  // Sizes first, then all columns at once.
  Timeline timeline;
  StoredStrings strings;
  std::vector<Edge> edges;
  Reading reading(bytes, mapped, sizeof header, header.head_bytes);
  describe(reading, timeline, strings, edges);
  if (!reading.whole()) return base::Error{base::text(path, " is damaged: its columns do not fill its ", bytes.size(), " bytes")};
  std::vector<char> fits(reading.tasks.size());
  Meter meter(heard, static_cast<std::int64_t>(bytes.size()));
  std::atomic<bool> stopped{false};
  on_all_cores(reading.tasks.size(), [&](std::size_t i) {
    if (stopped) return;
    fits[i] = reading.copy(reading.tasks[i]);
    if (!meter.add(static_cast<std::int64_t>(reading.tasks[i].bytes))) stopped = true;
  });
  if (stopped) return base::Error{base::text("reading ", path, " was stopped")};
  const auto damaged = std::find(fits.begin(), fits.end(), 0);
  if (damaged != fits.end()) {
    const std::size_t at = reading.tasks[static_cast<std::size_t>(damaged - fits.begin())].at;
    return base::Error{base::text(path, " is damaged in the column that begins at byte ", at, "; write it again")};
  }

  timeline.edges = Edges(edges);

  // The names, whose numbers must come out as they were.
  std::size_t at = 0;
  for (std::uint32_t id = 0; id < strings.length.size(); ++id) {
    const std::size_t length = strings.length[id];
    if (length > strings.text.size() - at || timeline.strings.intern({strings.text.data() + at, length}) != id) {
      return base::Error{base::text(path, " is damaged: its name ", id, " is none")};
    }
    at += length;
  }
  for (Provenance& provenance : timeline.ranks) provenance.path = path;
  if (base::Status sound = check_indices(timeline, path); !sound) return sound.as_error();
  return timeline;
}

base::Result<Timeline> read_columns(const std::string& path, const Heard& heard) {
  const base::Result<FileBytes> file = FileBytes::open(path);
  if (!file) return file.as_error();
  return read_from(file.value().view(), &file.value(), path, heard);
}

base::Result<Timeline> read_columns_bytes(std::string_view bytes, const std::string& name) {
  return read_from(bytes, nullptr, name, {});
}

bool keeps_columns(std::size_t spans) { return spans > 2'000'000; }

}  // namespace shardbook::timeline
