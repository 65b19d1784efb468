// timeline/gzip: unpacking through zlib. Its twin where there is no zlib: no_gzip.cpp.
#include <zlib.h>

#include <algorithm>

#include "engine/timeline/file_bytes.hpp"

namespace shardbook::timeline {

bool can_gunzip() { return true; }

base::Result<std::string> gunzip(std::string_view packed, const std::string& name, bool* cut_off) {
  constexpr std::size_t piece = std::size_t{1} << 24;
  constexpr int gzip_window = 15 + 16;
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
    if (out.size() - written < piece) out.resize(std::max(written + piece, out.size() * 2));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    read += offered - stream.avail_in;
    written += piece - stream.avail_out;
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

}  // namespace shardbook::timeline
