// A manifest back from its text. It may be anyone's: each number is looked at before it is used.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/base/sha256.hpp"
#include "engine/checkpoint/bad.hpp"
#include "engine/checkpoint/boxes.hpp"
#include "engine/checkpoint/manifest.hpp"

namespace shardbook::checkpoint {

namespace {

using base::text;
using Json = nlohmann::json;

constexpr std::string_view magic = "shardbook checkpoint ";
constexpr std::string_view head = "shardbook checkpoint 1\nsha256 ";
constexpr std::size_t head_bytes = head.size() + 64 + 1;

// Files of a checkpoint: a rank's. Boxes of a tensor with more than two dims, which are compared each with each.
constexpr std::size_t most_files = 65536, most_boxes_of_many_dims = 4096;
constexpr std::int64_t most = std::int64_t{1} << 51;   // bytes of a file, steps

const Json& member(const Json& of, const char* name, std::string_view where) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  if (!of.is_object() || found == of.end()) bad(where, " has no \"", name, "\"");
  return *found;
}

// A whole number from 0 to `most`.
std::int64_t number(const Json& value, const char* name, std::string_view where, std::int64_t at_most = most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(at_most)) {
    bad(where, " has a \"", name, "\" that is no whole number from 0 to ", at_most);
  }
  return value.get<std::int64_t>();
}

const std::string& word(const Json& of, const char* name, std::string_view where) {
  const Json& value = member(of, name, where);
  if (!value.is_string()) bad(where, " has a \"", name, "\" that is no text");
  return value.get_ref<const std::string&>();
}

const Json& list(const Json& of, const char* name, std::string_view where) {
  const Json& value = member(of, name, where);
  if (!value.is_array()) bad(where, " has a \"", name, "\" that is no list");
  return value;
}

std::vector<std::int64_t> numbers(const Json& of, const char* name, std::string_view where) {
  const Json& values = list(of, name, where);
  if (values.size() > base::Shape::max_dims) bad(where, " has ", values.size(), " numbers in \"", name, "\", and tensors have at most ", base::Shape::max_dims, " dims");
  std::vector<std::int64_t> all;
  for (const Json& value : values) all.push_back(number(value, name, where));
  return all;
}

// "rank0.data": letters, digits and dots, none of them first. So it lies in the folder and nowhere else.
bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' && name != manifest_name && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
  });
}

std::vector<std::uint32_t> sums_of(const std::string& hex, base::Bytes bytes, std::string_view where) {
  const auto chunks = static_cast<std::size_t>((bytes + chunk_bytes - 1) / chunk_bytes);
  if (hex.size() != 8 * chunks) bad(where, " has ", hex.size(), " digits of sums for ", chunks, " chunks of 8");
  std::vector<std::uint32_t> sums(chunks);
  for (std::size_t at = 0; at < hex.size(); ++at) {
    const char c = hex[at];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) bad(where, " has a sum that is no number");
    sums[at / 8] = sums[at / 8] << 4 | static_cast<std::uint32_t>(digit);
  }
  return sums;
}

std::vector<DataFile> files_of(const Json& all) {
  const Json& listed = list(all, "files", "it");
  if (listed.size() > most_files) bad("it names ", listed.size(), " files, more than ", most_files);
  std::vector<DataFile> files;
  std::set<std::string> names;
  for (const Json& one : listed) {
    const std::string where = text("file ", files.size());
    DataFile& file = files.emplace_back();
    file.name = word(one, "name", where);
    if (!is_file_name(file.name)) bad(where, " is called ", base::printable(file.name), ", which no file of a checkpoint is");
    if (!names.insert(file.name).second) bad("two files are called ", file.name);
    file.bytes = number(member(one, "bytes", where), "bytes", where);
    file.sums = sums_of(word(one, "sums", where), file.bytes, where);
  }
  return files;
}

StoredBox box_of(const Json& one, const StoredTensor& tensor, const std::vector<DataFile>& files, std::string_view where) {
  StoredBox stored;
  stored.file = static_cast<int>(number(member(one, "file", where), "file", where, std::numeric_limits<int>::max()));
  if (static_cast<std::size_t>(stored.file) >= files.size()) bad(where, " lies in file ", stored.file, " of ", files.size());
  stored.at = number(member(one, "at", where), "at", where);
  const std::vector<std::int64_t> begin = numbers(one, "begin", where), end = numbers(one, "end", where);
  const auto dims = static_cast<std::size_t>(tensor.shape.dims());
  if (begin.size() != dims || end.size() != dims) bad(where, " has another number of dims than its tensor");
  stored.box.dims = tensor.shape.dims();
  for (std::size_t dim = 0; dim < dims; ++dim) {
    if (begin[dim] >= end[dim] || end[dim] > tensor.shape[static_cast<int>(dim)]) bad(where, " holds nothing, or lies outside of its tensor");
    stored.box.along[dim] = {begin[dim], end[dim]};
  }
  const base::Bytes bytes = stored.box.elements() * base::size_of(tensor.dtype);
  const DataFile& file = files[static_cast<std::size_t>(stored.file)];
  if (stored.at > file.bytes || bytes > file.bytes - stored.at) bad(where, " ends behind its file ", file.name);
  return stored;
}

StoredTensor tensor_of(const Json& one, const std::vector<DataFile>& files, std::size_t index) {
  StoredTensor tensor;
  tensor.name = word(one, "name", text("tensor ", index));
  if (!is_tensor_name(tensor.name)) bad("tensor ", index, " has a name that is none: ", base::printable(tensor.name.substr(0, 64)));
  const std::string where = "tensor " + tensor.name;
  if (!dtype_of(word(one, "dtype", where), tensor.dtype)) bad(where, " is of the type ", base::printable(word(one, "dtype", where).substr(0, 64)), ", and only bf16, f32, f64 and i32 are known");
  const std::vector<std::int64_t> sizes = numbers(one, "shape", where);
  if (elements_of(sizes) < 0) bad(where, " has a shape of no elements, or of more than any tensor");
  tensor.shape = shape_of(sizes);
  for (const Json& box : list(one, "boxes", where)) tensor.boxes.push_back(box_of(box, tensor, files, text("box ", tensor.boxes.size(), " of ", where)));
  if (tensor.shape.dims() > 2 && tensor.boxes.size() > most_boxes_of_many_dims) bad(where, " has ", tensor.boxes.size(), " boxes, more than ", most_boxes_of_many_dims);
  return tensor;
}

// Each byte of each file belongs to one box: what is stored is what was summed, and nothing hides between.
void expect_tiles(const Manifest& manifest) {
  std::vector<std::vector<shard::Interval>> taken(manifest.files.size());
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredBox& stored : tensor.boxes) {
      taken[static_cast<std::size_t>(stored.file)].push_back({stored.at, stored.at + stored.box.elements() * base::size_of(tensor.dtype)});
    }
  }
  for (std::size_t file = 0; file < taken.size(); ++file) {
    std::sort(taken[file].begin(), taken[file].end(), [](const shard::Interval& a, const shard::Interval& b) { return a.begin < b.begin; });
    base::Bytes end = 0;
    for (const shard::Interval& bytes : taken[file]) {
      if (bytes.begin != end) bad("of ", manifest.files[file].name, " byte ", std::min(bytes.begin, end), bytes.begin < end ? " belongs to two boxes" : " belongs to no box");
      end = bytes.end;
    }
    if (end != manifest.files[file].bytes) bad("of ", manifest.files[file].name, " byte ", end, " belongs to no box");
  }
}

Manifest manifest_of(const Json& all, Extent extent) {
  Manifest manifest;
  manifest.step = number(member(all, "step", "it"), "step", "it");
  const Json& config = member(all, "config", "it");
  if (!config.is_object()) bad("it has a \"config\" that is no object");
  manifest.config = base::json_text(config);
  if (const std::int64_t chunk = number(member(all, "chunk", "it"), "chunk", "it"); chunk != chunk_bytes) bad("its chunks have ", chunk, " bytes, and ", chunk_bytes, " are known");
  manifest.files = files_of(all);
  std::set<std::string_view> names;
  const Json& tensors = list(all, "tensors", "it");
  manifest.tensors.reserve(tensors.size());
  for (const Json& one : tensors) {
    const StoredTensor& tensor = manifest.tensors.emplace_back(tensor_of(one, manifest.files, manifest.tensors.size()));
    if (!names.insert(tensor.name).second) bad("two tensors are called ", tensor.name);
    if (extent == Extent::part) continue;
    std::vector<shard::Box> boxes;
    for (const StoredBox& stored : tensor.boxes) boxes.push_back(stored.box);
    if (const std::string problem = problem_of_cover(tensor.shape, boxes); !problem.empty()) bad("of tensor ", tensor.name, " ", problem);
  }
  expect_tiles(manifest);
  return manifest;
}

Json parsed_manifest(std::string_view content) {
  constexpr int deepest = 8;
  bool too_deep = false;
  Json all = base::try_parse_json(content, deepest, too_deep);
  if (too_deep) bad("its values nest deeper than any manifest's");
  if (all.is_discarded()) bad("it holds no JSON");
  return all;
}

}  // namespace

base::Result<Manifest> read(std::string_view text_of_it, const std::string& name, Extent extent) {
  const auto refused = [&](const std::string& what) { return base::Error{text("the manifest ", name, " is none: ", what, "; take another checkpoint")}; };
  if (!text_of_it.starts_with(magic)) return refused("it does not begin as one");
  if (!text_of_it.starts_with(head) || text_of_it.size() < head_bytes) return refused("it is damaged, or of a form that this build does not know");
  const std::string_view content = text_of_it.substr(head_bytes);
  if (text_of_it.substr(head.size(), 64) != base::hex_of(base::sha256(content)) || text_of_it[head_bytes - 1] != '\n') return refused("it is damaged, for its sum is another");
  try {
    return manifest_of(parsed_manifest(content), extent);
  } catch (const Bad& problem) {
    return refused(problem.what);
  } catch (const Json::exception& error) {
    return refused(error.what());   // "number overflow parsing '1e999'"
  }
}

}  // namespace shardbook::checkpoint
