// timeline/gzip: packing and unpacking through zlib. Its twin where there is no zlib: no_gzip.cpp.
#include "engine/timeline/gzip.hpp"

#include <zlib.h>

#include <algorithm>

#include "engine/timeline/file_bytes.hpp"

namespace shardbook::timeline {

bool can_gunzip() { return true; }

base::Result<std::string> gunzip(std::string_view packed, const std::string& name, bool* cut_off,
                                 const std::function<bool(std::size_t)>& told) {
  constexpr std::size_t piece = std::size_t{1} << 22;
  constexpr int gzip_window = 15 + 16;
  const std::size_t most = most_unpacked(packed.size());
  *cut_off = false;
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) return base::Error{base::text("zlib could not start on ", name)};

  std::string out;
  std::size_t read = 0, written = 0;
  int state = Z_OK;
  while (true) {
    // zlib counts in 32 bits, so both sides go piece by piece.
    const std::size_t offered = std::min(piece, packed.size() - read);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(offered);
    if (out.size() - written < piece) out.resize(std::max(written + piece, std::min(out.size() * 2, most)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    read += offered - stream.avail_in;
    written += piece - stream.avail_out;
    if (written > most) {
      inflateEnd(&stream);
      return base::Error{base::text(name, " unpacks to more than ", most >> 20, " MiB, which is more than its ", packed.size(),
                                    " bytes may become in memory; if it is a trace, unpack it with gunzip and open what comes out")};
    }
    if (told && !told(offered - stream.avail_in)) {
      inflateEnd(&stream);
      return base::Error{base::text("unpacking ", name, " was stopped")};
    }
    if (state == Z_STREAM_END) {
      if (read == packed.size() || inflateReset(&stream) != Z_OK) break;
      continue;                              // gzip files may follow each other in one file
    }
    if (state == Z_BUF_ERROR || (state == Z_OK && read == packed.size() && stream.avail_out > 0)) {
      *cut_off = true;
      break;
    }
    if (state != Z_OK) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END && state != Z_OK && state != Z_BUF_ERROR) {
    return base::Error{base::text("cannot unpack ", name, ": the gzip data is damaged at byte ", read)};
  }
  out.resize(written);
  return out;
}

// --- Piece by piece -------------------------------------------------------------------------------

namespace {
constexpr std::size_t most_at_once = std::size_t{1} << 24;      // zlib counts in 32 bits
constexpr int gzip_window_bits = 15 + 16;
}  // namespace

struct Inflater::State {
  std::string_view packed;
  std::string name;
  z_stream stream{};
  bool started = false, ended = false;
};

Inflater::Inflater(std::string_view packed, std::string name) : state_(std::make_unique<State>()) {
  state_->packed = packed;
  state_->name = std::move(name);
  state_->started = inflateInit2(&state_->stream, gzip_window_bits) == Z_OK;
}

Inflater::~Inflater() {
  if (state_->started) inflateEnd(&state_->stream);
}

base::Result<std::size_t> Inflater::read(char* to, std::size_t count) {
  State& s = *state_;
  if (!s.started) return base::Error{base::text("zlib could not start on ", s.name)};
  std::size_t done = 0;
  while (done < count && !s.ended) {
    const std::size_t offered = std::min(most_at_once, s.packed.size()), wanted = std::min(most_at_once, count - done);
    s.stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(s.packed.data()));
    s.stream.avail_in = static_cast<uInt>(offered);
    s.stream.next_out = reinterpret_cast<Bytef*>(to + done);
    s.stream.avail_out = static_cast<uInt>(wanted);
    const int state = inflate(&s.stream, Z_NO_FLUSH);
    s.packed.remove_prefix(offered - s.stream.avail_in);
    const std::size_t made = wanted - s.stream.avail_out;
    done += made;
    if (state == Z_STREAM_END) {
      s.ended = s.packed.empty() || inflateReset(&s.stream) != Z_OK;
    } else if (state == Z_BUF_ERROR || (state == Z_OK && made == 0 && s.packed.empty())) {
      s.ended = true;
    } else if (state != Z_OK) {
      return base::Error{base::text("cannot unpack ", s.name, ": its gzip data is damaged")};
    }
  }
  return done;
}

std::size_t Inflater::left() const { return state_->packed.size(); }

struct Deflater::State {
  Output* out;
  z_stream stream{};
  std::string buffer;
  void run(std::string_view bytes, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);
      *out << std::string_view(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
};

Deflater::Deflater(Output& out) : state_(std::make_unique<State>()) {
  state_->out = &out;
  state_->buffer.resize(std::size_t{1} << 16);
  constexpr int level = 6, memory = 8;
  const int started = deflateInit2(&state_->stream, level, Z_DEFLATED, gzip_window_bits, memory, Z_DEFAULT_STRATEGY);
  SHARDBOOK_CHECK(started == Z_OK, "zlib could not start: ", started);
}

Deflater::~Deflater() { deflateEnd(&state_->stream); }

void Deflater::write(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(most_at_once, bytes.size()))) {
    state_->run(bytes.substr(0, most_at_once), Z_NO_FLUSH);
  }
}

void Deflater::finish() { state_->run({}, Z_FINISH); }

}  // namespace shardbook::timeline
