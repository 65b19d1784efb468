// data: which tokens come next?
//
// A source is a stream of tokens and an order of windows of it. The sample for (step, sequence) is
// a pure function of the seed, so every layout trains on the same global batch, a rank reads only
// its own part, and a restarted run goes on where it stood, with nothing to save.
//
// The stream is cut into windows of S + 1 tokens that share one token with the next (the last
// target of one is the first token of the next). Sample n = step * global_sequences + sequence.
// Within an epoch every window comes once, in an order drawn from (seed, epoch).
//
// Invariants: targets[i] is the token that follows tokens[i] in the stream; fill() allocates
// nothing and may be called from several threads at once.
//
// Sources: NVIDIA/Megatron-LM, megatron/core/datasets/gpt_dataset.py (windows over concatenated
// documents that overlap by one token; a shuffled order an epoch). Unlike there, documents stay in
// the order of the file and the permutation is computed (order.hpp), not stored.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/config/config.hpp"

namespace shardbook::data {

// What to read and how. The same on all ranks.
struct SourceSpec {
  // {"grammar"}: drills that the project generates; {"synthetic"}: uniform tokens; otherwise files,
  // all UTF-8 text (a byte is a token, files are joined by a newline) or all Megatron indexed
  // datasets (FILE.bin or FILE.idx or the common prefix FILE).
  std::vector<std::string> names;
  int vocab = 256;      // token ids must be below this
  int sequence = 128;   // S: tokens of one training sequence
  std::uint64_t seed = 0;
};

// What a run asks for.
SourceSpec spec_of(const config::RunConfig& config);

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // Sequences first_sequence .. first_sequence + count of the global batch of `step`, one after the
  // other: tokens and targets are [count * S], row s holds sequence first_sequence + s.
  // Called by each rank for its own part. REQUIRES: spans of count * S; the part within the batch.
  virtual void fill(std::int64_t step, int global_sequences, int first_sequence, int count,
                    std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const = 0;

  // Tokens of the stream; 0 when it has no end (synthetic).
  virtual std::int64_t tokens() const = 0;
  // For the log: "grammar drills, 312 411 bytes, English and Spanish".
  virtual std::string describe() const = 0;
};

// Opens, checks everything that can be checked (token ids included: it reads indexed files once),
// and maps files instead of loading them.
// Errors: nothing named; a keyword among files; missing, empty, unreadable file; a folder; text
// that is not UTF-8 (with its byte offset); fewer tokens than one window of S + 1; a token id >=
// vocab; a truncated or foreign .idx or .bin.
base::Result<std::unique_ptr<TokenSource>> open(const SourceSpec& spec);

}  // namespace shardbook::data
