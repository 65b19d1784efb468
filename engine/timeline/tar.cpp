// timeline/tar: headers of 512 bytes, and content padded to them; see tar.hpp.
#include "engine/timeline/tar.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace shardbook::timeline {
namespace {

constexpr std::size_t block = 512;
constexpr std::uint64_t largest_file = (std::uint64_t{1} << 33) - 1;      // eleven octal digits

// What an archive that is opened may hold: enough for any run, too little to fill a disk unseen.
constexpr std::uint64_t most_bytes = std::uint64_t{64} << 30;
constexpr std::uint64_t most_entries = 200'000;
// A packed archive of a run unpacks to ten or twenty times its size.
constexpr std::uint64_t most_times_packed = 100, least_most = std::uint64_t{16} << 20;

// The header's fields: POSIX, "ustar Header Block".
struct Header {
  char name[100] = {}, mode[8] = {}, uid[8] = {}, gid[8] = {}, size[12] = {}, modified[12] = {}, checksum[8] = {};
  char type = '0';
  char linked[100] = {}, magic[6] = {}, version[2] = {}, user[32] = {}, group[32] = {}, major[8] = {}, minor[8] = {};
  char prefix[155] = {}, rest[12] = {};
};
static_assert(sizeof(Header) == block);

// The last byte of a field is a zero, octal digits fill the others.
template <std::size_t size>
void put_octal(char (&field)[size], std::uint64_t value) {
  for (std::size_t i = size - 1; i-- > 0; value /= 8) field[i] = static_cast<char>('0' + value % 8);
}

template <std::size_t size>
bool get_octal(const char (&field)[size], std::uint64_t& value) {
  value = 0;
  std::size_t i = 0;
  while (i < size && field[i] == ' ') ++i;
  bool any = false;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; ++i, any = true) value = value * 8 + static_cast<std::uint64_t>(field[i] - '0');
  return any && (i == size || field[i] == '\0' || field[i] == ' ');
}

// The sum of all bytes, those of the checksum itself taken for blanks.
std::uint64_t sum_of(const Header& header) {
  Header blank = header;
  std::memset(blank.checksum, ' ', sizeof blank.checksum);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&blank);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) sum += bytes[i];
  return sum;
}

template <std::size_t size>
std::string text_in(const char (&field)[size]) {
  return std::string(field, ::strnlen(field, size));
}

// A place below the folder that it is unpacked into, on any system.
bool is_safe(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  }
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool ends_in_tar(const std::string& path) { return path.ends_with(".tar"); }

}  // namespace

// --- Writing --------------------------------------------------------------------------------------

TarWriter::TarWriter(const std::string& path) : out_(path) {
  if (!ends_in_tar(path)) deflater_ = std::make_unique<Deflater>(out_);
}

void TarWriter::write(std::string_view bytes) {
  if (deflater_) deflater_->write(bytes);
  else out_ << bytes;
}

void TarWriter::pad(std::uint64_t size) {
  static constexpr char zeros[block] = {};
  write(std::string_view(zeros, (block - size % block) % block));
}

base::Status TarWriter::add_header(const std::string& name, std::uint64_t size, std::int64_t modified) {
  if (!is_safe(name)) return base::Error{base::text("the name ", name, " cannot stand in a pack")};
  Header header;
  // A name that doesn't fit is cut in two at a slash.
  std::size_t cut = 0;
  if (name.size() > sizeof header.name) {
    cut = name.find('/', name.size() - sizeof header.name - 1);
    if (cut == std::string::npos || cut > sizeof header.prefix) {
      return base::Error{base::text("the name ", name, " is too long for a pack: at most 100 bytes, and 155 for the folders before them")};
    }
    name.copy(header.prefix, cut);
    ++cut;
  }
  name.copy(header.name, name.size() - cut, cut);
  put_octal(header.mode, 0644);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_octal(header.size, size);
  put_octal(header.modified, static_cast<std::uint64_t>(std::max<std::int64_t>(modified, 0)));
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  // Six digits, a zero, a blank.
  char digits[7] = {};
  put_octal(digits, sum_of(header));
  std::memcpy(header.checksum, digits, 7);
  header.checksum[7] = ' ';
  write(std::string_view(reinterpret_cast<const char*>(&header), block));
  return base::Done{};
}

base::Status TarWriter::add_file(const std::string& name, const std::string& path) {
  struct stat info {};
  std::ifstream file(path, std::ios::binary);
  if (::stat(path.c_str(), &info) != 0 || !file) return base::Error{base::text("cannot read ", path, ": ", std::strerror(errno))};
  if (!S_ISREG(info.st_mode)) return base::Error{base::text("cannot read ", path, ": it is not a file")};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > largest_file) return base::Error{base::text(path, " is too large for a pack: ", size, " bytes, at most ", largest_file)};
  if (base::Status added = add_header(name, size, info.st_mtime); !added) return added;
  std::string bytes(piece, '\0');
  std::uint64_t done = 0;
  while (done < size && file) {
    file.read(bytes.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(piece, size - done)));
    write(std::string_view(bytes.data(), static_cast<std::size_t>(file.gcount())));
    done += static_cast<std::uint64_t>(file.gcount());
  }
  if (done < size || file.peek() != std::ifstream::traits_type::eof()) {
    return base::Error{base::text(path, " changed while it was packed; pack again when its run has ended")};
  }
  pad(size);
  return base::Done{};
}

base::Status TarWriter::add_text(const std::string& name, std::string_view content) {
  if (base::Status added = add_header(name, content.size(), 0); !added) return added;
  write(content);
  pad(content.size());
  return base::Done{};
}

base::Status TarWriter::commit() {
  write(std::string(2 * block, '\0'));
  if (deflater_) deflater_->finish();
  return out_.commit();
}

// --- Reading --------------------------------------------------------------------------------------

base::Result<TarReader> TarReader::open(const std::string& path) {
  base::Result<FileBytes> bytes = FileBytes::open_as_it_is(path);
  if (!bytes) return bytes.as_error();
  TarReader reader;
  reader.path_ = path;
  reader.bytes_ = std::make_unique<FileBytes>(std::move(bytes).value());
  if (begins_like_gzip(reader.bytes_->view())) reader.inflater_ = std::make_unique<Inflater>(reader.bytes_->view(), path);
  return reader;
}

base::Error TarReader::cut_off() const {
  return base::Error{base::text(path_, " is cut off: it ends before its archive does; copy it again")};
}

base::Status TarReader::fill(char* to, std::size_t count) {
  std::size_t got = 0;
  if (inflater_) {
    base::Result<std::size_t> read = inflater_->read(to, count);
    if (!read) return read.as_error();
    got = read.value();
  } else {
    const std::string_view bytes = bytes_->view();
    got = std::min(count, bytes.size() - at_);
    bytes.copy(to, got, at_);
  }
  at_ += got;
  if (got < count) return cut_off();
  return base::Done{};
}

base::Result<TarReader::Entry> TarReader::parse(const char* bytes) {
  Header header;
  std::memcpy(&header, bytes, block);
  std::uint64_t stated = 0, size = 0, modified = 0;
  if (std::memcmp(header.magic, "ustar", 5) != 0) return base::Error{base::text(path_, " is no pack: it is not an archive of the form ustar")};
  if (!get_octal(header.checksum, stated) || stated != sum_of(header)) {
    return base::Error{base::text(path_, " is damaged at byte ", at_ - block, " of its archive; copy it again")};
  }
  Entry entry;
  entry.name = text_in(header.name);
  if (const std::string prefix = text_in(header.prefix); !prefix.empty()) entry.name = prefix + "/" + entry.name;
  const bool folder = header.type == '5';
  if (folder && entry.name.ends_with('/')) entry.name.pop_back();
  if (header.type != '0' && header.type != '\0' && !folder) {
    return base::Error{base::text(path_, " holds something that is neither file nor folder; `shardbook pack` writes none")};
  }
  if (!is_safe(entry.name)) return base::Error{base::text(path_, " holds a file whose name leads elsewhere or is none; it is not opened")};
  if (!get_octal(header.size, size) || !get_octal(header.modified, modified) || (folder && size != 0)) {
    return base::Error{base::text(path_, " is damaged at byte ", at_ - block, " of its archive; copy it again")};
  }
  // What cannot be there is not waited for: gzip makes a byte of at most 1032.
  const std::size_t held = bytes_->view().size();
  const std::uint64_t most_left = inflater_ ? std::uint64_t{1032} * held : held - at_;
  if (size > most_left) return cut_off();
  total_ += size;
  const std::uint64_t most = inflater_ ? std::clamp<std::uint64_t>(most_times_packed * held, least_most, most_bytes) : most_bytes;
  if (++entries_ > most_entries || total_ > most) {
    const std::string size = most >= std::uint64_t{1} << 30 ? base::text(most >> 30, " GiB") : base::text(most >> 20, " MiB");
    return base::Error{base::text(path_, " would unpack to more than ", size, " or ", most_entries, " files; it is not opened")};
  }
  entry.size = size;
  entry.modified = static_cast<std::int64_t>(modified);
  if (folder) entry.name.clear();
  return entry;
}

base::Result<TarReader::Entry> TarReader::next() {
  while (true) {
    if (!inflater_) {
      at_ += static_cast<std::size_t>(left_);                 // parse() has seen that they are there
      left_ = 0;
    }
    while (left_ > 0) {
      if (base::Result<std::string_view> skipped = read(piece); !skipped) return skipped.as_error();
    }
    char header[block];
    buffer_.resize(static_cast<std::size_t>(padding_));
    if (base::Status read = fill(buffer_.data(), buffer_.size()); !read) return read.as_error();
    padding_ = 0;
    if (at_ == 0 && bytes_->view().empty()) return base::Error{base::text(path_, " is empty: it is no pack")};
    if (base::Status read = fill(header, block); !read) return read.as_error();
    if (std::all_of(header, header + block, [](char c) { return c == '\0'; })) {
      // Two blocks of zeros end an archive.
      if (base::Status read = fill(header, block); !read) return read.as_error();
      return Entry{};
    }
    base::Result<Entry> entry = parse(header);
    if (!entry) return entry;
    if (entry.value().name.empty()) continue;                 // a folder
    left_ = entry.value().size;
    padding_ = (block - left_ % block) % block;
    return entry;
  }
}

double TarReader::share_read() const {
  const auto size = static_cast<double>(std::max<std::size_t>(bytes_->view().size(), 1));
  return inflater_ ? 1 - static_cast<double>(inflater_->left()) / size : std::min(static_cast<double>(at_) / size, 1.0);
}

base::Result<std::string_view> TarReader::read(std::size_t count) {
  buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>({count, piece, left_})));
  if (base::Status read = fill(buffer_.data(), buffer_.size()); !read) return read.as_error();
  left_ -= buffer_.size();
  return std::string_view(buffer_);
}

}  // namespace shardbook::timeline
