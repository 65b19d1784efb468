#include "engine/checkpoint/load.hpp"

#include <map>
#include <set>

#include "engine/checkpoint/boxes.hpp"

namespace shardbook::checkpoint {

using base::Done;
using base::Error;
using base::Status;
using base::text;

namespace {

//@ checkpoint.load: Of each stored box, what it has in common with the wanted one.
Status load_one(const Part& wanted, const StoredTensor& stored, DataReader& reader) {
  const base::Bytes size = base::size_of(stored.dtype);
  for (const StoredBox& box : stored.boxes) {
    for (const Run& run : common_runs(box.box, wanted.box)) {
      if (Status read = reader.read(box.file, box.at + run.from * size, run.elements * size, wanted.numbers + run.to * size); !read) return read;
    }
  }
  return Done{};
}
//@end

}  // namespace

Status load(const std::vector<Part>& wanted, const Manifest& manifest, DataReader& reader) {
  std::map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : manifest.tensors) by_name[tensor.name] = &tensor;
  for (const Part& part : wanted) {
    const auto found = by_name.find(part.tensor);
    if (found == by_name.end()) return Error{text("the checkpoint has no tensor ", part.tensor, ": it is of another model, so ask for that one")};
    const StoredTensor& stored = *found->second;
    if (stored.shape != part.shape) {
      return Error{text("the checkpoint's tensor ", part.tensor, " is ", base::to_string(stored.shape), " and this model's is ", base::to_string(part.shape), ": ask for the sizes of the run that wrote it")};
    }
    if (stored.dtype != part.dtype) {
      return Error{text("the checkpoint's tensor ", part.tensor, " holds ", base::name_of(stored.dtype), " and this run computes in ", base::name_of(part.dtype), ": ask for the --host-dtype of the run that wrote it")};
    }
    if (Status one = load_one(part, stored, reader); !one) return one;
  }
  return Done{};
}

Status expect_tensors(const std::vector<std::string>& names, const Manifest& manifest, const std::string& folder) {
  std::set<std::string_view> known;
  for (const StoredTensor& tensor : manifest.tensors) known.insert(tensor.name);
  for (const std::string& name : names) {
    if (known.erase(name) == 0) return Error{text("the checkpoint ", folder, " has no tensor ", name, ": it is of another model, or holds parameters alone")};
  }
  if (!known.empty()) return Error{text("the checkpoint ", folder, " has a tensor ", *known.begin(), ", and this model has none: ask for the model of the run that wrote it")};
  return Done{};
}

}  // namespace shardbook::checkpoint
