#include "engine/checkpoint/safetensors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/checkpoint/bad.hpp"
#include "engine/checkpoint/boxes.hpp"

namespace shardbook::checkpoint {

using base::Bytes;
using base::text;
using Json = nlohmann::json;

namespace {

constexpr const char* metadata_key = "__metadata__";

struct Name {
  base::DType dtype;
  const char* name;
};
constexpr Name names[] = {{base::DType::bf16, "BF16"}, {base::DType::f32, "F32"}, {base::DType::f64, "F64"}, {base::DType::i32, "I32"}};

const char* safe_name(base::DType dtype) {
  return std::find_if(std::begin(names), std::end(names), [&](const Name& one) { return one.dtype == dtype; })->name;
}

std::int64_t number(const Json& value, const std::string& where, std::int64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) bad(where, " is no whole number from 0 to ", most);
  return value.get<std::int64_t>();
}

SafeTensor tensor_of(const std::string& name, const Json& value, Bytes data_bytes) {
  SafeTensor tensor;
  tensor.name = name;
  if (!is_tensor_name(name)) bad("a tensor is called ", base::printable(name.substr(0, 64)), ", and names here are plain ASCII without blanks");
  const std::string where = "tensor " + name;
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
    bad(where, " has not exactly \"dtype\", \"shape\" and \"data_offsets\"");
  }
  const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const Name& one) { return dtype == one.name; });
  if (found == std::end(names)) bad(where, " has a type of which there is none here: BF16, F32, F64 and I32 are known");
  tensor.dtype = found->dtype;
  if (!shape.is_array() || shape.size() > base::Shape::max_dims) bad(where, " has a shape that is no list of at most ", base::Shape::max_dims, " sizes");
  std::vector<std::int64_t> sizes;
  for (const Json& size : shape) sizes.push_back(number(size, "a size of " + where, std::int64_t{1} << 48));
  const std::int64_t elements = elements_of(sizes);
  if (elements < 0) bad(where, " has a shape of no elements, or of more than any tensor");
  tensor.shape = shape_of(sizes);
  if (!offsets.is_array() || offsets.size() != 2) bad(where, " has \"data_offsets\" that are no two numbers");
  tensor.begin = number(offsets[0], "where the bytes of " + where + " begin", data_bytes);
  tensor.end = number(offsets[1], "where the bytes of " + where + " end", data_bytes);
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != elements * base::size_of(tensor.dtype)) {
    bad(where, " has ", tensor.end - tensor.begin, " bytes, and its shape needs ", elements * base::size_of(tensor.dtype));
  }
  return tensor;
}

// The tree, and that no key of an object comes twice.
Json parsed_header(std::string_view content) {
  constexpr int deepest = 4;
  bool too_deep = false;
  std::string twice;
  Json all = base::try_parse_json(content, deepest, too_deep, twice);
  if (too_deep) bad("its header nests deeper than any");
  if (all.is_discarded() || !all.is_object()) bad("its header is no JSON object");
  if (!twice.empty()) bad("its header names ", base::printable(twice.substr(0, 64)), " twice");
  return all;
}

SafeHeader header_of(const Json& all, Bytes header_bytes, Bytes data_bytes) {
  SafeHeader header;
  header.bytes = header_bytes;
  for (const auto& [name, value] : all.items()) {
    if (name != metadata_key) {
      header.tensors.push_back(tensor_of(name, value, data_bytes));
      continue;
    }
    if (!value.is_object()) bad("its ", metadata_key, " is no object");
    for (const auto& [key, entry] : value.items()) {
      if (!entry.is_string()) bad("its ", metadata_key, " holds something that is no text");
      header.metadata[key] = entry.get<std::string>();
    }
  }
  // No holes: each byte belongs to one tensor
  std::sort(header.tensors.begin(), header.tensors.end(), [](const SafeTensor& a, const SafeTensor& b) { return a.begin < b.begin; });
  Bytes end = 0;
  for (const SafeTensor& tensor : header.tensors) {
    if (tensor.begin != end) bad("byte ", std::min(tensor.begin, end), " behind its header belongs to ", tensor.begin < end ? "two tensors" : "no tensor");
    end = tensor.end;
  }
  if (end != data_bytes) bad("of its ", data_bytes, " bytes behind the header, tensors have ", end);
  return header;
}

}  // namespace

std::string to_text(const SafeHeader& header) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) all[metadata_key] = header.metadata;
  for (const SafeTensor& tensor : header.tensors) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int dim = 0; dim < tensor.shape.dims(); ++dim) shape.push_back(tensor.shape[dim]);
    all[tensor.name] = {{"dtype", safe_name(tensor.dtype)}, {"shape", shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string content = base::json_text(all);
  while (content.size() % 8 != 0) content += ' ';
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) length += static_cast<char>(std::uint64_t{content.size()} >> shift & 255);
  return length + content;
}

base::Result<SafeHeader> read_header(std::string_view begin, Bytes file_bytes, const std::string& name) {
  const auto refused = [&](const std::string& what) { return base::Error{text(name, " is no safetensors file that can be read here: ", what)}; };
  if (file_bytes < 8 || begin.size() < 8) return refused("it has fewer than 8 bytes");
  std::uint64_t length = 0;
  for (std::size_t byte = 8; byte-- > 0;) length = length << 8 | static_cast<unsigned char>(begin[byte]);
  if (length > static_cast<std::uint64_t>(most_header_bytes)) return refused(text("its header would have ", length, " bytes, and at most ", most_header_bytes, " are allowed"));
  if (length > static_cast<std::uint64_t>(file_bytes) - 8 || length > begin.size() - 8) return refused("it ends within its header");
  const std::string_view content = begin.substr(8, static_cast<std::size_t>(length));
  if (!content.starts_with('{')) return refused("its header does not begin with {");
  const Bytes header_bytes = 8 + static_cast<Bytes>(length);
  try {
    return header_of(parsed_header(content), header_bytes, file_bytes - header_bytes);
  } catch (const Bad& problem) {
    return refused(problem.what);
  } catch (const Json::exception& error) {
    return refused(error.what());
  }
}

}  // namespace shardbook::checkpoint
