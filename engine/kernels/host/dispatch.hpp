// kernels/host/dispatch: how does one template serve both floating types of the host?
//
//   with_float(args.dtype, [&](auto zero) { gelu<decltype(zero)>(args); });
#pragma once

#include <cstdint>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/types.hpp"

namespace shardbook::kernels::host {

// Calls body(float{}) or body(double{}).
template <class Body>
void with_float(base::DType dtype, Body body) {
  if (dtype == base::DType::f32) return body(float{});
  if (dtype == base::DType::f64) return body(double{});
  throw base::Failure(base::text("the host computes in f32 or f64, not in ", base::name_of(dtype)));
}

template <class T>
T* as(void* pointer) {
  return static_cast<T*>(pointer);
}
template <class T>
const T* as(const void* pointer) {
  return static_cast<const T*>(pointer);
}

// Σ term(i) for i in [0, count), added in sixteen interleaved lanes that are then added in rising order: one
// fixed order that a compiler may vectorise, where the plain loop would be one chain of additions.
template <class T, class Term>
T lane_sum(std::int64_t count, Term term) {
  constexpr int lanes = 16;
  T lane[lanes] = {};
  const std::int64_t whole = count - count % lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    for (int l = 0; l < lanes; ++l) lane[l] += term(i + l);
  }
  for (std::int64_t i = whole; i < count; ++i) lane[i - whole] += term(i);
  T total = lane[0];
  for (int l = 1; l < lanes; ++l) total += lane[l];
  return total;
}

// The largest of values[0, count), count > 0.
template <class T>
T lane_max(const T* values, std::int64_t count) {
  constexpr int lanes = 16;
  T lane[lanes];
  for (int l = 0; l < lanes; ++l) lane[l] = values[0];
  const std::int64_t whole = count - count % lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    for (int l = 0; l < lanes; ++l) lane[l] = values[i + l] > lane[l] ? values[i + l] : lane[l];
  }
  for (std::int64_t i = whole; i < count; ++i) lane[0] = values[i] > lane[0] ? values[i] : lane[0];
  T most = lane[0];
  for (int l = 1; l < lanes; ++l) most = lane[l] > most ? lane[l] : most;
  return most;
}

}  // namespace shardbook::kernels::host
