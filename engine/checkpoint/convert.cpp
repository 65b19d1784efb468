// Between a checkpoint and one file: tensor after tensor, a piece of it at a time.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/checkpoint/boxes.hpp"
#include "engine/checkpoint/folder.hpp"
#include "engine/checkpoint/load.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace shardbook::checkpoint {

namespace fs = std::filesystem;
using base::Bytes;
using base::Done;
using base::Error;
using base::Status;
using base::text;

namespace {

constexpr const char *step_key = "shardbook.step", *config_key = "shardbook.config";

// By size of their type, then by name, as the original writes them: so each begins at a multiple of its type's size.
SafeHeader header_for(const Manifest& manifest) {
  SafeHeader header;
  header.metadata = {{step_key, std::to_string(manifest.step)}, {config_key, manifest.config}};
  for (const StoredTensor& tensor : manifest.tensors) header.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, 0, 0});
  std::sort(header.tensors.begin(), header.tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return base::size_of(a.dtype) != base::size_of(b.dtype) ? base::size_of(a.dtype) > base::size_of(b.dtype) : a.name < b.name;
  });
  Bytes end = 0;
  for (SafeTensor& tensor : header.tensors) {
    tensor.begin = end;
    end += tensor.shape.elements() * base::size_of(tensor.dtype);
    tensor.end = end;
  }
  return header;
}

Status write_tensors(const File& file, const SafeHeader& header, const std::string& checkpoint, const Manifest& manifest, const std::string& path) {
  const std::string begin = to_text(header);
  if (static_cast<Bytes>(begin.size()) - 8 > most_header_bytes) return Error{text(path, " would have a header longer than the form allows")};
  if (Status written = write_all(file, begin.data(), begin.size(), path); !written) return written;
  DataReader reader(checkpoint, manifest);
  std::vector<std::byte> numbers;
  for (const SafeTensor& tensor : header.tensors) {
    numbers.resize(static_cast<std::size_t>(tensor.end - tensor.begin));
    const Part whole{tensor.name, tensor.dtype, tensor.shape, shard::whole(tensor.shape), numbers.data()};
    if (Status loaded = load({whole}, manifest, reader); !loaded) return loaded;
    if (Status written = write_all(file, numbers.data(), numbers.size(), path); !written) return written;
  }
  return sync(file, path);
}

// A file that is read from its begin.
class Source {
 public:
  static base::Result<Source> open(const std::string& path) {
    Source source;
    source.path_ = path;
    source.file_ = File(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!source.file_.is_open()) return Error{text("cannot read ", path, ": ", std::strerror(errno))};
    struct stat status = {};
    if (::fstat(source.file_.number(), &status) != 0 || !S_ISREG(status.st_mode)) return Error{text("cannot read ", path, ": it is no file")};
    source.bytes_ = status.st_size;
    return source;
  }
  Bytes bytes() const { return bytes_; }
  Status read(void* to, Bytes size) {
    const Bytes begin = std::exchange(at_, at_ + size);
    return read_at(file_, begin, size, to, path_);
  }

 private:
  std::string path_;
  File file_;
  Bytes bytes_ = 0, at_ = 0;
};

base::Result<SafeHeader> header_in(Source& source, const std::string& path) {
  std::string begin(static_cast<std::size_t>(std::min<Bytes>(8, source.bytes())), '\0');
  if (Status read = source.read(begin.data(), static_cast<Bytes>(begin.size())); !read) return read.as_error();
  std::uint64_t length = 0;
  if (begin.size() == 8) std::memcpy(&length, begin.data(), 8);
  // What is too long is refused below, unread
  if (length <= static_cast<std::uint64_t>(std::min(most_header_bytes, source.bytes() - static_cast<Bytes>(begin.size())))) {
    begin.resize(8 + static_cast<std::size_t>(length));
    if (Status read = source.read(begin.data() + 8, static_cast<Bytes>(length)); !read) return read.as_error();
  }
  return read_header(begin, source.bytes(), path);
}

// Step and config of what was a checkpoint once; a stranger may have written them.
Status take_metadata(const SafeHeader& header, Manifest& manifest, const std::string& path) {
  if (const auto found = header.metadata.find(step_key); found != header.metadata.end()) {
    const std::string& step = found->second;
    const auto [at, error] = std::from_chars(step.data(), step.data() + step.size(), manifest.step);
    if (error != std::errc{} || at != step.data() + step.size() || manifest.step < 0) return Error{text(path, " is of a step that is no number")};
  }
  if (const auto found = header.metadata.find(config_key); found != header.metadata.end()) {
    if (!base::is_json(found->second)) return Error{text(path, " has a config that is no JSON")};
    manifest.config = found->second;
  }
  return Done{};
}

// All of the data in one file, tensors as they come.
Status copy_data(Source& source, const SafeHeader& header, Manifest& manifest, const std::string& hidden) {
  base::Result<DataWriter> writer = DataWriter::begin((fs::path(hidden) / "rank0.data").string());
  if (!writer) return writer.as_error();
  std::vector<char> piece(static_cast<std::size_t>(chunk_bytes));
  for (const SafeTensor& tensor : header.tensors) {
    manifest.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {{0, tensor.begin, shard::whole(tensor.shape)}}});
    for (Bytes left = tensor.end - tensor.begin; left > 0;) {
      const Bytes size = std::min(left, chunk_bytes);
      if (Status read = source.read(piece.data(), size); !read) return read;
      if (Status written = writer.value().write(piece.data(), size); !written) return written;
      left -= size;
    }
  }
  base::Result<DataFile> file = writer.value().finish();
  if (!file) return file.as_error();
  manifest.files.push_back(std::move(file).value());
  return Done{};
}

}  // namespace

Status write_safetensors(const std::string& checkpoint, const Manifest& manifest, const std::string& path) {
  const std::string beside = path + ".tmp";
  base::Result<File> file = create(beside);
  if (!file) return file.as_error();
  Status written = write_tensors(file.value(), header_for(manifest), checkpoint, manifest, beside);
  if (written && std::rename(beside.c_str(), path.c_str()) != 0) written = Error{text("cannot write ", path, ": ", std::strerror(errno))};
  if (!written) ::unlink(beside.c_str());
  return written;
}

base::Result<std::string> read_safetensors(const std::string& path, const std::string& folder) {
  base::Result<Source> source = Source::open(path);
  if (!source) return source.as_error();
  base::Result<SafeHeader> header = header_in(source.value(), path);
  if (!header) return header.as_error();
  if (header.value().tensors.empty()) return Error{text(path, " holds no tensor")};
  Manifest manifest;
  if (Status taken = take_metadata(header.value(), manifest, path); !taken) return taken.as_error();
  std::error_code ignored;
  const std::string step = path_of_step(folder, manifest.step);
  if (fs::exists(step, ignored)) return Error{text(step, " is there already: name another folder, or remove it")};
  const std::string token = "from";
  const base::Result<Claim> claim = Claim::take(folder, token);
  if (!claim) return claim.as_error();

  const std::string hidden = hidden_path_of_step(folder, manifest.step, token);
  std::error_code failure;
  fs::create_directory(hidden, failure);
  Status made = failure ? Status(Error{text("cannot make ", hidden, ": ", failure.message())}) : copy_data(source.value(), header.value(), manifest, hidden);
  if (made) {
    const std::string content = to_text(manifest);
    if (const base::Result<Manifest> again = read(content, path); !again) made = again.as_error();
    if (made) made = write_file((fs::path(hidden) / manifest_name).string(), content);
  }
  if (made) made = publish(folder, hidden, manifest.step, token);
  if (!made) {
    fs::remove_all(hidden, ignored);
    return made.as_error();
  }
  return step;
}

}  // namespace shardbook::checkpoint
