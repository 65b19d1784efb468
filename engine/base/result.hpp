// base/result: what can be expected to go wrong is a value, not an exception.
//
// A missing file, a size that does not divide, a malformed config: the caller gets a Result and
// must look. The message is one sentence for the user: what is wrong, where, what to do.
// (A programmer's mistake is a check, see check.hpp; a failing CUDA or NCCL call throws.)
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "engine/base/check.hpp"

namespace shardbook::base {

struct Error {
  std::string message;
};

// A T, or the one sentence that says why there is none. REQUIRES: value() only if ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Error error) : content_(std::move(error)) {}      // NOLINT: implicit by design

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    SHARDBOOK_CHECK(ok(), "a Result was opened that holds an error: ", std::get<1>(content_).message);
    return std::get<0>(content_);
  }
  const T& value() const& { return const_cast<Result*>(this)->value(); }
  T&& value() && { return std::move(value()); }
  const std::string& error() const { return std::get<1>(content_).message; }
  Error as_error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Error> content_;
};

// The Result of an act that yields nothing.
struct Done {};
using Status = Result<Done>;

}  // namespace shardbook::base
