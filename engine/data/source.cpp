#include "engine/data/source.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/data/grammar/corpus.hpp"
#include "engine/data/order.hpp"
#include "engine/data/stream.hpp"

namespace shardbook::data {

namespace {

using base::Error;
using base::text;

// The rows that fill() was asked for, checked: calls visit(sample, row of tokens, row of targets).
template <class Visit>
void for_each_row(int sequence, std::int64_t step, int global_sequences, int first_sequence, int count,
                  std::span<std::int32_t> tokens, std::span<std::int32_t> targets, Visit&& visit) {
  const auto row_size = static_cast<std::size_t>(sequence);
  SHARDBOOK_CHECK(step >= 0 && first_sequence >= 0 && count >= 0 && first_sequence + count <= global_sequences,
                  "sequences ", first_sequence, " to ", first_sequence + count, " of ", global_sequences);
  SHARDBOOK_CHECK_EQ(tokens.size(), static_cast<std::size_t>(count) * row_size, "tokens of ", count, " sequences");
  SHARDBOOK_CHECK_EQ(targets.size(), tokens.size(), "targets and tokens");
  for (int row = 0; row < count; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * row_size;
    visit(step * global_sequences + first_sequence + row, tokens.subspan(begin, row_size),
          targets.subspan(begin, row_size));
  }
}

// Windows of a stream in a shuffled order.
class WindowSource final : public TokenSource {
 public:
  WindowSource(std::unique_ptr<TokenStream> stream, std::string what, int sequence, std::uint64_t seed)
      : stream_(std::move(stream)), what_(std::move(what)), sequence_(sequence), seed_(seed),
        windows_((stream_->size() - 1) / sequence) {}

  void fill(std::int64_t step, int global_sequences, int first_sequence, int count, std::span<std::int32_t> tokens,
            std::span<std::int32_t> targets) const override {
    for_each_row(sequence_, step, global_sequences, first_sequence, count, tokens, targets,
                 [&](std::int64_t sample, auto tokens_row, auto targets_row) {
                   const auto epoch = static_cast<std::uint64_t>(sample / windows_);
                   const std::int64_t window = permute(sample % windows_, windows_, mix(seed_) + mix(epoch));
                   stream_->read(window * sequence_, tokens_row);
                   stream_->read(window * sequence_ + 1, targets_row);
                 });
  }
  std::int64_t tokens() const override { return stream_->size(); }
  std::string describe() const override {
    return text(what_, ", ", stream_->size(), " tokens in ", windows_, " windows of ", sequence_);
  }

 private:
  std::unique_ptr<TokenStream> stream_;
  std::string what_;
  std::int64_t sequence_;
  std::uint64_t seed_;
  std::int64_t windows_;
};

// Uniform tokens: each a function of seed, sample and place, so that the stream has no end.
class SyntheticSource final : public TokenSource {
 public:
  SyntheticSource(int vocab, int sequence, std::uint64_t seed) : vocab_(vocab), sequence_(sequence), seed_(seed) {}

  void fill(std::int64_t step, int global_sequences, int first_sequence, int count, std::span<std::int32_t> tokens,
            std::span<std::int32_t> targets) const override {
    for_each_row(sequence_, step, global_sequences, first_sequence, count, tokens, targets,
                 [&](std::int64_t sample, auto tokens_row, auto targets_row) {
                   const std::uint64_t key = mix(seed_) + mix(static_cast<std::uint64_t>(sample));
                   for (std::size_t place = 0; place < tokens_row.size(); ++place) {
                     tokens_row[place] = token(key, place);
                     targets_row[place] = token(key, place + 1);
                   }
                 });
  }
  std::int64_t tokens() const override { return 0; }
  std::string describe() const override { return text("synthetic tokens, uniform over ", vocab_); }

 private:
  // The high half of mix() times the vocabulary, so no division and no bias worth naming.
  std::int32_t token(std::uint64_t key, std::uint64_t place) const {
    return static_cast<std::int32_t>(((mix(key + place) >> 32) * static_cast<std::uint64_t>(vocab_)) >> 32);
  }

  int vocab_;
  int sequence_;
  std::uint64_t seed_;
};

// The corpus is one text, whatever the seed of the run, which only draws its order.
constexpr std::uint64_t corpus_seed = 0;

}  // namespace

SourceSpec spec_of(const config::RunConfig& config) {
  return {config.data, config.model.vocab, config.model.sequence, config.seed};
}

base::Result<std::unique_ptr<TokenSource>> open(const SourceSpec& spec) {
  using Opened = std::unique_ptr<TokenSource>;
  SHARDBOOK_CHECK(spec.vocab >= 1 && spec.sequence >= 1, "vocabulary ", spec.vocab, ", sequence ", spec.sequence);
  if (spec.names.empty()) return Error{"--data names nothing: give files, or grammar, or synthetic"};
  for (const std::string& name : spec.names) {
    if (spec.names.size() > 1 && (name == "grammar" || name == "synthetic")) {
      return Error{text("--data ", name, " stands alone; a file of that name is ./", name)};
    }
  }
  const std::string& first = spec.names.front();
  if (first == "synthetic") {
    return Opened(std::make_unique<SyntheticSource>(spec.vocab, spec.sequence, spec.seed));
  }

  // The stream, and what it is called.
  std::unique_ptr<TokenStream> stream;
  std::string what = "grammar drills in English and Spanish";
  if (first == "grammar") {
    if (spec.vocab < 256) {
      return Error{text("--data grammar is bytes, so it needs a vocabulary of 256, not ", spec.vocab)};
    }
    stream = text_in_memory(grammar::corpus(corpus_seed));
  } else {
    auto files = open_files(spec.names, spec.vocab);
    if (!files) return files.as_error();
    stream = std::move(files).value();
    what = spec.names.size() == 1 ? first : text(first, " and ", spec.names.size() - 1, " more");
  }

  const std::int64_t least = std::int64_t{spec.sequence} + 1;
  if (stream->size() < least) {
    return Error{text("the data ", what, " has ", stream->size(), " tokens, and one sequence of ", spec.sequence,
                      " with its targets takes ", least, ": name more files, or choose a smaller --sequence")};
  }
  return Opened(std::make_unique<WindowSource>(std::move(stream), what, spec.sequence, spec.seed));
}

}  // namespace shardbook::data
