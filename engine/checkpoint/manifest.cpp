#include "engine/checkpoint/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/sha256.hpp"
#include "engine/checkpoint/files.hpp"

namespace shardbook::checkpoint {

namespace {

std::string head_of(std::string_view content) { return "shardbook checkpoint 1\nsha256 " + base::hex_of(base::sha256(content)) + "\n"; }

std::string hex_sums(const std::vector<std::uint32_t>& sums) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t sum : sums) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[sum >> shift & 15];
  }
  return text;
}

using Ordered = nlohmann::ordered_json;

Ordered ends_of(const shard::Box& box, std::int64_t shard::Interval::*end) {
  Ordered all = Ordered::array();
  for (int dim = 0; dim < box.dims; ++dim) all.push_back(box[dim].*end);
  return all;
}

// Built up from empty objects: values in braces are copied with all below them, once a level.
Ordered json_of(const DataFile& file) {
  Ordered json;
  json["name"] = file.name;
  json["bytes"] = file.bytes;
  json["sums"] = hex_sums(file.sums);
  return json;
}

Ordered json_of(const StoredBox& stored) {
  Ordered json;
  json["file"] = stored.file;
  json["at"] = stored.at;
  json["begin"] = ends_of(stored.box, &shard::Interval::begin);
  json["end"] = ends_of(stored.box, &shard::Interval::end);
  return json;
}

Ordered json_of(const StoredTensor& tensor) {
  Ordered json;
  json["name"] = tensor.name;
  json["dtype"] = base::name_of(tensor.dtype);
  Ordered& shape = json["shape"] = Ordered::array();
  for (int dim = 0; dim < tensor.shape.dims(); ++dim) shape.push_back(tensor.shape[dim]);
  Ordered& boxes = json["boxes"] = Ordered::array();
  for (const StoredBox& stored : tensor.boxes) boxes.push_back(json_of(stored));
  return json;
}

}  // namespace

base::Bytes Manifest::bytes() const {
  base::Bytes all = 0;
  for (const DataFile& file : files) all += file.bytes;
  return all;
}

const StoredTensor* Manifest::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string to_text(const Manifest& manifest) {
  Ordered all;
  all["step"] = manifest.step;
  all["config"] = base::parse_ordered_json(manifest.config);
  all["chunk"] = chunk_bytes;
  Ordered& files = all["files"] = Ordered::array();
  for (const DataFile& file : manifest.files) files.push_back(json_of(file));
  Ordered& tensors = all["tensors"] = Ordered::array();
  for (const StoredTensor& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  const std::string content = base::json_text(all) + "\n";
  return head_of(content) + content;
}

base::Result<Manifest> read_file(const std::string& path, Extent extent) {
  // Neither a link that leads elsewhere nor a pipe that nobody fills
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) return base::Error{base::text("cannot read the manifest ", path, ": ", std::strerror(errno))};
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return base::Error{base::text("cannot read the manifest ", path, ": it is no file")};
  if (status.st_size > most_manifest_bytes) {
    return base::Error{base::text("the manifest ", path, " has ", status.st_size, " bytes, and at most ", most_manifest_bytes, " are read: that is none of a checkpoint")};
  }
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  if (const base::Status got = read_at(file, 0, status.st_size, content.data(), "the manifest " + path); !got) return got.as_error();
  return read(content, path, extent);
}

bool is_tensor_name(std::string_view name) {
  return !name.empty() && name.size() <= 512 && std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

bool dtype_of(std::string_view name, base::DType& dtype) {
  for (const base::DType one : {base::DType::bf16, base::DType::f32, base::DType::f64, base::DType::i32}) {
    if (name != base::name_of(one)) continue;
    dtype = one;
    return true;
  }
  return false;
}

std::int64_t elements_of(const std::vector<std::int64_t>& sizes) {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > most / elements) return -1;
    elements *= size;
  }
  return elements;
}

}  // namespace shardbook::checkpoint
