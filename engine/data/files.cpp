// Several streams as one, and which kind of stream a file name stands for.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/data/stream.hpp"

namespace shardbook::data {

namespace {

using base::Error;
using base::text;

class JoinedStream final : public TokenStream {
 public:
  explicit JoinedStream(std::vector<std::unique_ptr<TokenStream>> streams) : streams_(std::move(streams)) {
    for (const auto& stream : streams_) {
      begins_.push_back(size_);
      size_ += stream->size();
    }
  }
  std::int64_t size() const override { return size_; }
  void read(std::int64_t position, std::span<std::int32_t> out) const override {
    SHARDBOOK_CHECK(position >= 0 && position + static_cast<std::int64_t>(out.size()) <= size_, "position ", position,
                    " of ", size_);
    // The last stream that begins at or before the position, and on from there.
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), position);
    auto at = static_cast<std::size_t>(after - begins_.begin() - 1);
    for (; !out.empty(); ++at) {
      const std::int64_t within = position - begins_[at];
      const auto count = std::min(out.size(), static_cast<std::size_t>(streams_[at]->size() - within));
      streams_[at]->read(within, out.first(count));
      out = out.subspan(count);
      position += static_cast<std::int64_t>(count);
    }
  }

 private:
  std::vector<std::unique_ptr<TokenStream>> streams_;
  std::vector<std::int64_t> begins_;
  std::int64_t size_ = 0;
};

// The prefix of an indexed dataset, or empty for a text file.
std::string indexed_prefix(const std::string& name) {
  if (name.ends_with(".bin") || name.ends_with(".idx")) return name.substr(0, name.size() - 4);
  std::error_code ignored;
  const bool is_prefix = !std::filesystem::exists(name, ignored) && std::filesystem::exists(name + ".idx", ignored);
  return is_prefix ? name : "";
}

}  // namespace

std::unique_ptr<TokenStream> join(std::vector<std::unique_ptr<TokenStream>> streams) {
  SHARDBOOK_CHECK(!streams.empty(), "nothing to join");
  return std::make_unique<JoinedStream>(std::move(streams));
}

StreamResult open_files(const std::vector<std::string>& names, int vocab) {
  const bool indexed = !indexed_prefix(names.front()).empty();
  if (!indexed && vocab < 256) {
    return Error{text("text is read as bytes, so --data ", names.front(), " needs a vocabulary of 256, not ", vocab)};
  }
  std::vector<std::unique_ptr<TokenStream>> streams;
  for (const std::string& name : names) {
    const std::string prefix = indexed_prefix(name);
    if (prefix.empty() == indexed) {
      return Error{text("--data mixes an indexed dataset with text: ", indexed ? names.front() : name,
                        " is indexed and ", indexed ? name : names.front(), " is not; name files of one kind")};
    }
    if (!indexed && !streams.empty()) streams.push_back(text_in_memory("\n"));
    auto stream = indexed ? open_indexed(prefix, vocab) : open_text(name);
    if (!stream) return stream.as_error();
    streams.push_back(std::move(stream).value());
  }
  return join(std::move(streams));
}

}  // namespace shardbook::data
