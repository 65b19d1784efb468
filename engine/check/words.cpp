#include "engine/check/words.hpp"

namespace shardbook::check {

using base::text;

std::string line_text(const program::SourceLine& where) {
  std::string path = where.file;
  if (const std::size_t at = path.rfind("engine/"); at != std::string::npos) path = path.substr(at);
  return text(path, ":", where.line);
}

std::string op_text(const program::Op& op) {
  std::string said = op.desc.name;
  if (*op.key.part != '\0') said += text(" ", op.key.part);
  said += text(" (", program::name_of(op.key.phase));
  if (op.key.layer >= 0) said += text(", layer ", op.key.layer);
  if (op.key.micro_batch >= 0) said += text(", micro-batch ", op.key.micro_batch);
  return said + text("; ", line_text(op.where), ")");
}

std::string stream_name(const program::Catalogue& catalogue, program::StreamId stream) {
  return stream < catalogue.streams.size() ? catalogue.streams[stream].name : text("stream ", stream);
}
std::string event_name(const program::Catalogue& catalogue, program::EventId event) {
  return event < catalogue.events.size() ? catalogue.events[event] : text("event ", event);
}
std::string buffer_name(const program::Catalogue& catalogue, program::BufferId buffer) {
  return buffer < catalogue.buffers.size() ? catalogue.buffers[buffer].name : text("buffer ", buffer);
}

}  // namespace shardbook::check
