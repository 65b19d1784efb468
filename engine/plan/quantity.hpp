// plan/quantity: a number that remembers the formula it came from.
//
// A letter with its value, or a sum, product or quotient of such. What is printed is what was computed, so a formula on
// the screen cannot say something else than the code that counts.
#pragma once

#include <cstdint>
#include <string>

namespace shardbook::plan {

class Quantity {
 public:
  Quantity(std::int64_t number) : Quantity(std::to_string(number), number) { plain_ = true; }   // NOLINT: 3 * D shall read as it does
  Quantity(std::string letter, std::int64_t value) : text_(std::move(letter)), value_(value) {}

  std::int64_t value() const { return value_; }
  const std::string& text() const { return text_; }   // "L · N · (3 D + E) · 2 B"

  friend Quantity operator+(const Quantity& a, const Quantity& b);
  friend Quantity operator*(const Quantity& a, const Quantity& b);
  friend Quantity operator/(const Quantity& a, const Quantity& b);   // REQUIRES: b divides a

 private:
  enum class Form : std::uint8_t { atom, product, sum };
  Quantity(std::string text, std::int64_t value, Form form) : text_(std::move(text)), value_(value), form_(form) {}
  std::string factor() const { return form_ == Form::sum ? "(" + text_ + ")" : text_; }

  std::string text_;
  std::int64_t value_ = 0;
  Form form_ = Form::atom;
  bool plain_ = false;   // a number, that stands before a letter without a point: 3 D
};

// The smaller one: "min(N, V)".
Quantity least(const Quantity& a, const Quantity& b);
// The larger one.
Quantity most(const Quantity& a, const Quantity& b);

}  // namespace shardbook::plan
