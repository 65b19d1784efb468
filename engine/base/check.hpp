// base/check: a programmer's mistake stops the rank, with both values and where.
//
// A failed check throws Failure; launch/ turns it into the end of all ranks within seconds, with
// the first cause named. User input never reaches a check: that is what Result is for.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace shardbook::base {

// A check that did not hold, or a failed call of CUDA, NCCL or cuBLAS.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The pieces, streamed one after the other (g++ 12 has no std::format).
template <class... Pieces>
std::string text(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return out.str();
}

[[noreturn]] void fail(const char* file, int line, const std::string& what);

}  // namespace shardbook::base

// SHARDBOOK_CHECK(sizes_agree, "gemm: k of a is ", k_a, " and of b ", k_b);
#define SHARDBOOK_CHECK(condition, ...)                                                        \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ::shardbook::base::fail(__FILE__, __LINE__,                                              \
                              ::shardbook::base::text("check failed: " #condition ". ",        \
                                                      ##__VA_ARGS__));                         \
    }                                                                                          \
  } while (false)

// SHARDBOOK_CHECK_EQ(x.shape[0], y.shape[0], "rows of input and output");
#define SHARDBOOK_CHECK_EQ(left, right, ...)                                                   \
  do {                                                                                         \
    const auto& left_value_ = (left);                                                          \
    const auto& right_value_ = (right);                                                        \
    if (!(left_value_ == right_value_)) {                                                      \
      ::shardbook::base::fail(                                                                 \
          __FILE__, __LINE__,                                                                  \
          ::shardbook::base::text("check failed: " #left " == " #right " (", left_value_,      \
                                  " against ", right_value_, "). ", ##__VA_ARGS__));           \
    }                                                                                          \
  } while (false)
