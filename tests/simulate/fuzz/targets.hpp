// What must hold for any bytes that claim to be a machine profile: used by the fuzz target, and by fuzz_corpus_test.
#pragma once

#include <string>
#include <string_view>

#include "engine/simulate/profile.hpp"
#include "tests/support/fuzz.hpp"

namespace shardbook::simulate::fuzz {

using tests::require;

inline void check_profile(std::string_view bytes) {
  const base::Result<Profile> read = profile_from_json(bytes, "profile");
  if (!read.ok()) {
    require(!read.error().empty() && read.error().find('\n') == std::string::npos, "what cannot be read is a sentence");
    return;
  }
  const std::string written = to_json(read.value());
  const base::Result<Profile> again = profile_from_json(written, "profile");
  require(again.ok(), "what was read can be written and read");
  require(again.value() == read.value(), "and is the same then");
  for (const auto& [name, curve] : read.value().kernels) {
    double before = 0;
    for (const base::Bytes size : {base::Bytes{0}, base::Bytes{1}, base::Bytes{1} << 20, base::Bytes{1} << 40}) {
      const double ns = at(curve, size);
      require(ns >= 0 && ns == ns, "a time is a number");
      before = ns;
    }
    require(before >= 0, "and none is negative");
  }
}

}  // namespace shardbook::simulate::fuzz
