#include "engine/base/check.hpp"
#include "engine/base/types.hpp"

namespace shardbook::base {

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int dim = 0; dim < shape.dims(); ++dim) {
    if (dim > 0) out += ", ";
    out += std::to_string(shape[dim]);
  }
  return out + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

void fail(const char* file, int line, const std::string& what) {
  std::string path = file;
  if (auto at = path.rfind("engine/"); at != std::string::npos) path = path.substr(at);
  throw Failure(text(path, ":", line, ": ", what));
}

}  // namespace shardbook::base
