// timeline/no_gzip: the twin of gzip.cpp where the engine was built without zlib.
#include "engine/timeline/file_bytes.hpp"
#include "engine/timeline/gzip.hpp"

namespace shardbook::timeline {

bool can_gunzip() { return false; }

base::Result<std::string> gunzip(std::string_view, const std::string& name, bool*, const std::function<bool(std::size_t)>&) {
  return base::Error{base::text("cannot read ", name,
                                ": it is packed with gzip and this build has no zlib; unpack it with gunzip, "
                                "or install zlib1g-dev and build again")};
}

struct Inflater::State {
  std::string name;
};
Inflater::Inflater(std::string_view, std::string name) : state_(new State{std::move(name)}) {}
Inflater::~Inflater() = default;
std::size_t Inflater::left() const { return 0; }
base::Result<std::size_t> Inflater::read(char*, std::size_t) { return gunzip({}, state_->name, nullptr).as_error(); }

// Who packs asks can_gunzip() first.
struct Deflater::State {};
Deflater::Deflater(Output&) { SHARDBOOK_CHECK(false, "this build has no zlib"); }
Deflater::~Deflater() = default;
void Deflater::write(std::string_view) {}
void Deflater::finish() {}

}  // namespace shardbook::timeline
