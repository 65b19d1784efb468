// timeline/no_gzip: the twin of gzip.cpp where the engine was built without zlib.
#include "engine/timeline/file_bytes.hpp"

namespace shardbook::timeline {

bool can_gunzip() { return false; }

base::Result<std::string> gunzip(std::string_view, const std::string& name, bool*) {
  return base::Error{base::text("cannot read ", name,
                                ": it is packed with gzip and this build has no zlib; unpack it with gunzip, "
                                "or install zlib1g-dev and build again")};
}

}  // namespace shardbook::timeline
