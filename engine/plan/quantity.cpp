#include "engine/plan/quantity.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace shardbook::plan {

// What is nothing is not written: a model without biases has no "+ 0".
Quantity operator+(const Quantity& a, const Quantity& b) {
  if (a.plain_ && a.value_ == 0) return b;
  if (b.plain_ && b.value_ == 0) return a;
  return {a.text_ + " + " + b.text_, a.value_ + b.value_, Quantity::Form::sum};
}

Quantity operator*(const Quantity& a, const Quantity& b) {
  if (a.plain_ && a.value_ == 1) return b;
  if (b.plain_ && b.value_ == 1) return a;
  return {a.factor() + (a.plain_ && b.form_ == Quantity::Form::atom && !b.plain_ ? " " : " · ") + b.factor(), a.value_ * b.value_, Quantity::Form::product};
}

Quantity operator/(const Quantity& a, const Quantity& b) {
  SHARDBOOK_CHECK(b.value_ != 0 && a.value_ % b.value_ == 0, a.text_, " = ", a.value_, " does not divide by ", b.text_, " = ", b.value_);
  if (b.value_ == 1) return a;
  return {a.factor() + " / " + b.factor(), a.value_ / b.value_, Quantity::Form::product};
}

Quantity least(const Quantity& a, const Quantity& b) { return {"min(" + a.text() + ", " + b.text() + ")", std::min(a.value(), b.value())}; }
Quantity most(const Quantity& a, const Quantity& b) { return {"max(" + a.text() + ", " + b.text() + ")", std::max(a.value(), b.value())}; }

}  // namespace shardbook::plan
