// program/file: a record is written; see file.hpp. file_read.cpp reads it.
#include "engine/program/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>

#include "engine/program/file_form.hpp"

namespace shardbook::program {

namespace {

class Writer {
 public:
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      body_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    body_.push_back(static_cast<char>(value));
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  // Each text is stored once, and named by its place in the table.
  void text(const std::string& words) {
    number(places_.try_emplace(words, places_.size()).first->second);
  }
  void where(const SourceLine& line) {
    text(line.file);
    number(line.line);
  }

  // The table of texts, then all that was written.
  std::string content() const {
    std::vector<const std::string*> table(places_.size());
    for (const auto& [words, place] : places_) table[place] = &words;
    Writer head;
    head.number(table.size());
    for (const std::string* words : table) {
      head.number(words->size());
      head.body_ += *words;
    }
    return head.body_ + body_;
  }

 private:
  std::string body_;
  std::map<std::string, std::size_t> places_;
};

void write(Writer& to, const Catalogue& catalogue) {
  to.number(catalogue.streams.size());
  for (const StreamInfo& stream : catalogue.streams) to.text(stream.name);
  to.number(catalogue.events.size());
  for (const std::string& event : catalogue.events) to.text(event);
  to.number(catalogue.buffers.size());
  for (const BufferInfo& buffer : catalogue.buffers) {
    to.text(buffer.name);
    to.number(static_cast<std::uint64_t>(buffer.kind));
    to.signed_number(buffer.bytes);
  }
  to.number(catalogue.groups.size());
  for (const GroupInfo& group : catalogue.groups) {
    to.text(group.axis);
    to.number(group.ranks.size());
    for (base::Rank rank : group.ranks) to.signed_number(rank);
  }
}

void write(Writer& to, const Op& op) {
  to.signed_number(op.key.micro_batch);
  to.signed_number(op.key.chunk);
  to.number(static_cast<std::uint64_t>(op.key.phase));
  to.signed_number(op.key.layer);
  to.number(op.key.n);
  to.text(op.key.part);
  to.number(op.stream);
  to.where(op.where);
  to.text(op.desc.name);
  to.number(static_cast<std::uint64_t>(op.desc.kind));
  to.number(static_cast<std::uint64_t>(op.desc.dtype));
  to.signed_number(op.desc.flop_count);
  to.signed_number(op.desc.bytes_read);
  to.signed_number(op.desc.bytes_written);
  for (std::int64_t size : {op.desc.gemm.m, op.desc.gemm.n, op.desc.gemm.k, op.desc.gemm.batch}) to.signed_number(size);
  to.number(op.desc.collective.group);
  to.number(op.desc.collective.sequence);
  to.signed_number(op.desc.collective.bytes);
  to.signed_number(op.desc.collective.peer);
  to.number(op.desc.uses.size());
  to.number(op.desc.written_mask);
  for (int use = 0; use < op.desc.uses.size(); ++use) {
    to.number(op.desc.uses[use].buffer);
    to.signed_number(op.desc.uses[use].begin);
    to.signed_number(op.desc.uses[use].end);
    to.number(op.desc.uses[use].generation);
  }
}

void write(Writer& to, const Command& command) {
  to.number(static_cast<std::uint64_t>(command.kind));
  to.number(command.stream);
  to.number(command.kind == CommandKind::op ? command.op : 0);
  to.number(command.event);
  to.number(command.generation);
  to.number(static_cast<std::uint64_t>(command.reason));
  to.where(command.where);
  to.where(command.planned);
  to.number(command.planned_leads);
}

// Times as differences from the one before: small numbers, few bytes.
void write(Writer& to, const std::vector<TimeSpan>& spans, base::Nanoseconds last) {
  to.number(spans.size());
  for (const TimeSpan& span : spans) {
    to.signed_number(span.start - last);
    to.signed_number(span.end - span.start);
    last = span.start;
  }
}

void write(Writer& to, const StepTimes& times) {
  to.signed_number(times.step);
  to.number(times.program);
  to.signed_number(times.window.start);
  to.signed_number(times.window.end - times.window.start);
  write(to, times.issued, times.window.start);
  write(to, times.ran, times.window.start);
}

base::Status write_beside_and_rename(const std::string& path, const std::string& content) {
  const std::string beside = path + ".tmp";
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  if (file == nullptr) {
    return base::Error{base::text("cannot write the record ", path, ": ", std::strerror(errno))};
  }
  bool good = std::fwrite(content.data(), 1, content.size(), file) == content.size() && std::fflush(file) == 0;
  int why = errno;
  if (std::fclose(file) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && std::rename(beside.c_str(), path.c_str()) != 0) {
    good = false;
    why = errno;
  }
  if (good) return base::Done{};
  std::remove(beside.c_str());
  return base::Error{base::text("cannot write the record ", path, ": ", std::strerror(why))};
}

template <class Programs>
std::string encode_all(base::Rank rank, int world_size, const Catalogue& catalogue,
                      const Programs& programs, const std::vector<StepTimes>& steps) {
  Writer to;
  to.signed_number(rank);
  to.signed_number(world_size);
  write(to, catalogue);
  to.number(programs.size());
  for (const auto& program : programs) {
    to.number(program->ops.size());
    for (const Op& op : program->ops) write(to, op);
    to.number(program->commands.size());
    for (const Command& command : program->commands) write(to, command);
  }
  to.number(steps.size());
  for (const StepTimes& times : steps) write(to, times);

  const std::string content = to.content();
  std::string head(magic, magic_bytes);
  put_fixed(head, version, 4);
  put_fixed(head, content.size(), 8);
  put_fixed(head, hash_of(content), 8);
  return head + content;
}

}  // namespace

std::string encode(base::Rank rank, int world_size, const Catalogue& catalogue,
                   const std::vector<std::unique_ptr<Program>>& programs, const std::vector<StepTimes>& steps) {
  return encode_all(rank, world_size, catalogue, programs, steps);
}

base::Status save(const std::string& path, base::Rank rank, int world_size, const Catalogue& catalogue,
                  const std::vector<std::unique_ptr<Program>>& programs, const std::vector<StepTimes>& steps) {
  return write_beside_and_rename(path, encode_all(rank, world_size, catalogue, programs, steps));
}

base::Status save(const std::string& path, int world_size, const Recorder& recorder,
                  const std::vector<StepTimes>& steps) {
  return save(path, recorder.rank(), world_size, recorder.catalogue(), recorder.programs(), steps);
}

}  // namespace shardbook::program
