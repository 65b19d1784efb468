// program/file_read: a record is read, whatever its bytes are; see file.hpp.
#include "engine/program/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "engine/program/file_form.hpp"

namespace shardbook::program {

namespace {

// Thrown within this file when content that has the right hash makes no sense; decode() catches it.
struct Damaged {
  std::string what;
};

class Reader {
 public:
  explicit Reader(std::string_view content) : rest_(content) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) throw Damaged{"it ends within a number"};
      const unsigned char byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw Damaged{"a number has more than 64 bits"};
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  // A number below `bound`.
  std::uint64_t below(std::uint64_t bound, const char* what) {
    const std::uint64_t value = number();
    if (value >= bound) throw Damaged{base::text(what, " ", value, " is not below ", bound)};
    return value;
  }
  // How many of something that takes at least `least` bytes each: so what is set aside for them is a small multiple
  // of the file, whatever it claims.
  std::size_t count(const char* what, std::size_t least = 1) {
    const std::uint64_t value = number();          // read first: what is left is counted behind it
    if (value > rest_.size() / least) throw Damaged{base::text(what, " ", value, " is more than what follows can hold")};
    return value;
  }
  // A time that stands as a difference from another. Those allowed are 73 years around 0, so that any two can be
  // subtracted.
  base::Nanoseconds time_after(base::Nanoseconds last) {
    constexpr base::Nanoseconds farthest = base::Nanoseconds{1} << 61;
    base::Nanoseconds time = 0;
    if (__builtin_add_overflow(last, signed_number(), &time) || time < -farthest || time > farthest) throw Damaged{"a time is out of range"};
    return time;
  }
  template <class Small>
  Small small(const char* what) {
    const std::int64_t value = signed_number();
    if (static_cast<Small>(value) != value) throw Damaged{base::text(what, " ", value, " is out of range")};
    return static_cast<Small>(value);
  }

  void read_texts(std::vector<std::unique_ptr<std::string>>& into) {
    const std::size_t texts = count("number of texts");
    for (std::size_t at = 0; at < texts; ++at) {
      const std::size_t length = count("length of a text");
      into.push_back(std::make_unique<std::string>(rest_.substr(0, length)));
      rest_.remove_prefix(length);
    }
    texts_ = &into;
  }
  const std::string& text() { return *(*texts_)[below(texts_->size(), "text")]; }
  SourceLine where() {
    const char* file = text().c_str();
    return {file, static_cast<std::uint32_t>(below(1ull << 32, "source line"))};
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const std::vector<std::unique_ptr<std::string>>* texts_ = nullptr;
};

Catalogue read_catalogue(Reader& from) {
  Catalogue catalogue;
  catalogue.streams.resize(from.count("number of streams"));
  for (StreamInfo& stream : catalogue.streams) stream.name = from.text();
  catalogue.events.resize(from.count("number of events"));
  for (std::string& event : catalogue.events) event = from.text();
  catalogue.buffers.resize(from.count("number of buffers", 3));
  for (BufferInfo& buffer : catalogue.buffers) {
    buffer.name = from.text();
    buffer.kind = static_cast<MemoryKind>(from.below(static_cast<int>(MemoryKind::input) + 1, "kind of memory"));
    buffer.bytes = from.signed_number();
  }
  catalogue.groups.resize(from.count("number of groups", 2));
  for (GroupInfo& group : catalogue.groups) {
    group.axis = from.text();
    group.ranks.resize(from.count("size of a group"));
    for (base::Rank& rank : group.ranks) rank = from.small<base::Rank>("rank");
  }
  return catalogue;
}

Op read_op(Reader& from, const Catalogue& catalogue) {
  OpKey key;
  key.micro_batch = from.small<std::int16_t>("micro-batch");
  key.chunk = from.small<std::int16_t>("chunk");
  key.phase = static_cast<Phase>(from.below(static_cast<int>(Phase::update) + 1, "phase"));
  key.layer = from.small<std::int16_t>("layer");
  key.n = static_cast<std::uint16_t>(from.below(1 << 16, "place in a scope"));
  key.part = from.text().c_str();
  const StreamId stream = static_cast<StreamId>(from.below(catalogue.streams.size(), "stream"));
  const SourceLine where = from.where();
  const char* name = from.text().c_str();
  const OpKind kind = static_cast<OpKind>(from.below(op_kinds, "kind of op"));
  const base::DType dtype = static_cast<base::DType>(from.below(static_cast<int>(base::DType::i32) + 1, "dtype"));
  Op op{key, OpDesc(name, kind, dtype), stream, where};
  op.desc.flop_count = from.signed_number();
  op.desc.bytes_read = from.signed_number();
  op.desc.bytes_written = from.signed_number();
  for (std::int64_t* size : {&op.desc.gemm.m, &op.desc.gemm.n, &op.desc.gemm.k, &op.desc.gemm.batch}) {
    *size = from.signed_number();
  }
  op.desc.collective.group = static_cast<GroupId>(from.below(1 << 16, "group"));
  if (op.desc.collective.group != no_group && op.desc.collective.group >= catalogue.groups.size()) {
    throw Damaged{base::text("group ", op.desc.collective.group, " is not in the catalogue")};
  }
  op.desc.collective.sequence = static_cast<std::uint32_t>(from.below(1ull << 32, "sequence number"));
  op.desc.collective.bytes = from.signed_number();
  op.desc.collective.peer = from.small<base::Rank>("peer");
  const auto uses = from.below(BufferUses::most + 1, "number of buffers");
  op.desc.written_mask = static_cast<std::uint16_t>(from.below(1ull << uses, "mask of written buffers"));
  while (op.desc.uses.size() < static_cast<int>(uses)) {
    BufferUse use;
    use.buffer = static_cast<BufferId>(from.below(catalogue.buffers.size(), "buffer"));
    use.begin = from.signed_number();
    use.end = from.signed_number();
    use.generation = static_cast<std::uint32_t>(from.below(1ull << 32, "generation"));
    op.desc.uses.add(use);
  }
  return op;
}

Command read_command(Reader& from, const Catalogue& catalogue, std::size_t ops, std::uint64_t file_version) {
  Command command;
  command.kind = static_cast<CommandKind>(from.below(static_cast<int>(CommandKind::read_back) + 1, "kind of command"));
  command.stream = static_cast<StreamId>(from.number());
  const std::uint64_t op = from.number();
  command.event = static_cast<EventId>(from.number());
  command.generation = static_cast<std::uint32_t>(from.below(1ull << 32, "generation"));
  command.reason = static_cast<WaitReason>(from.below(static_cast<int>(WaitReason::limiter) + 1, "reason of a wait"));
  command.where = from.where();
  if (file_version > 1) {
    command.planned = from.where();
    command.planned_leads = from.below(2, "whether the plan leads") == 1;
  }
  // Only what its kind uses must be in range.
  const bool of_event = command.kind == CommandKind::record_event || command.kind == CommandKind::wait_event ||
                        command.kind == CommandKind::host_wait;
  if (command.kind == CommandKind::op) {
    if (op >= ops) throw Damaged{base::text("a command runs op ", op, " of ", ops)};
    command.op = static_cast<OpIndex>(op);
  }
  if (of_event && command.event >= catalogue.events.size()) {
    throw Damaged{base::text("event ", command.event, " is not in the catalogue")};
  }
  if (command.kind != CommandKind::host_wait && command.stream >= catalogue.streams.size()) {
    throw Damaged{base::text("stream ", command.stream, " is not in the catalogue")};
  }
  return command;
}

std::vector<TimeSpan> read_spans(Reader& from, std::size_t expected, base::Nanoseconds last) {
  std::vector<TimeSpan> spans(from.count("number of times", 2));
  if (spans.size() != expected) throw Damaged{base::text("a step has ", spans.size(), " times, not ", expected)};
  for (TimeSpan& span : spans) {
    span.start = from.time_after(last);
    span.end = from.time_after(span.start);
    last = span.start;
  }
  return spans;
}

constexpr std::size_t least_bytes_of_an_op = 25, least_bytes_of_a_command = 8;

Record read_record(std::string_view content, std::uint64_t file_version) {
  Record record;
  Reader from(content);
  from.read_texts(record.text);
  record.rank = from.small<base::Rank>("rank");
  record.world_size = from.small<int>("number of ranks");
  record.catalogue = read_catalogue(from);
  record.programs.resize(from.count("number of programs", 2));
  for (std::unique_ptr<Program>& program : record.programs) {
    program = std::make_unique<Program>();
    const std::size_t ops = from.count("number of ops", least_bytes_of_an_op);
    program->ops.reserve(ops);
    for (std::size_t op = 0; op < ops; ++op) program->ops.push_back(read_op(from, record.catalogue));
    program->commands.resize(from.count("number of commands", least_bytes_of_a_command));
    for (Command& command : program->commands) command = read_command(from, record.catalogue, ops, file_version);
  }
  record.steps.resize(from.count("number of steps", 6));
  for (StepTimes& times : record.steps) {
    times.step = from.signed_number();
    times.program = static_cast<std::uint32_t>(from.below(record.programs.size(), "program"));
    times.window.start = from.time_after(0);
    times.window.end = from.time_after(times.window.start);
    const Program& program = *record.programs[times.program];
    times.issued = read_spans(from, program.commands.size(), times.window.start);
    times.ran = read_spans(from, program.ops.size(), times.window.start);
  }
  if (!from.at_end()) throw Damaged{"something follows the last step"};
  return record;
}

}  // namespace

base::Result<Record> load(const std::string& path) {
  // Read all of it.
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return base::Error{base::text("cannot read the record ", path, ": ", std::strerror(errno))};
  std::string bytes;
  char block[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file)) > 0) bytes.append(block, got);
  const int why = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (why != 0) return base::Error{base::text("cannot read the record ", path, ": ", std::strerror(why))};
  return decode(bytes, path);
}

base::Result<Record> decode(std::string_view view, const std::string& path) {
  // Is it a record, of this version, and whole?
  if (view.substr(0, magic_bytes) != std::string_view(magic, magic_bytes)) {
    return base::Error{base::text(path, " is not a record of a program (it does not begin with ", magic, ")")};
  }
  const char* again = "; make the run again";
  if (view.size() < head_bytes) return base::Error{base::text("the record ", path, " is cut off in its head", again)};
  const std::uint64_t file_version = get_fixed(view.substr(magic_bytes), 4);
  if (file_version < 1 || file_version > version) {
    return base::Error{base::text("the record ", path, " has version ", file_version, " and this program reads versions 1 to ",
                                  version, again)};
  }
  const std::uint64_t length = get_fixed(view.substr(magic_bytes + 4), 8);
  const std::string_view content = view.substr(head_bytes);
  if (content.size() != length) {
    return base::Error{base::text("the record ", path, " has ", content.size(), " bytes behind its head and should have ",
                                  length, again)};
  }
  if (hash_of(content) != get_fixed(view.substr(magic_bytes + 12), 8)) {
    return base::Error{base::text("the record ", path, " is damaged: its content does not have the stored hash", again)};
  }
  try {
    return read_record(content, file_version);
  } catch (const Damaged& damaged) {
    return base::Error{base::text("the record ", path, " is damaged: ", damaged.what, again)};
  }
}

}  // namespace shardbook::program
