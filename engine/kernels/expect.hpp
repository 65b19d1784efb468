// kernels/expect: do the tensors of an op fit each other?
//
// A shape or a type that does not fit is a programmer's mistake: it stops with the op, the tensor, what it
// is and what it should be.
#pragma once

#include <utility>

#include "engine/base/check.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using tensor::Tensor;

inline void expect_shape(const char* op, const char* name, const Tensor& tensor, base::Shape shape) {
  SHARDBOOK_CHECK(tensor.shape == shape, op, ": ", name, " is ", base::to_string(tensor.shape), " and should be ",
                  base::to_string(shape));
}

// For what is a row of numbers by nature, or seen as one.
inline void expect_elements(const char* op, const char* name, const Tensor& tensor, std::int64_t elements) {
  SHARDBOOK_CHECK(tensor.elements() == elements, op, ": ", name, " has ", tensor.elements(), " elements, ",
                  base::to_string(tensor.shape), ", and should have ", elements);
}

inline void expect_at_least(const char* op, const char* name, const Tensor& tensor, std::int64_t elements) {
  SHARDBOOK_CHECK(tensor.elements() >= elements, op, ": ", name, " has ", tensor.elements(),
                  " elements and needs at least ", elements);
}

inline void expect_nominal(const char* op, const char* name, const Tensor& tensor, base::DType nominal) {
  SHARDBOOK_CHECK(tensor.nominal == nominal, op, ": ", name, " is nominally ", base::name_of(tensor.nominal),
                  " and should be ", base::name_of(nominal));
}

// Tensors that one kernel takes as one type.
inline void expect_same_type(const char* op, const char* name, const Tensor& tensor, const Tensor& as) {
  SHARDBOOK_CHECK(tensor.nominal == as.nominal && tensor.storage == as.storage, op, ": ", name, " is ",
                  base::name_of(tensor.nominal), " and should be ", base::name_of(as.nominal), ", as the others");
}

// A row of numbers of nominal type f32: statistics, masters, gradients of parameters.
inline void expect_stat(const char* op, const char* name, const Tensor& tensor, std::int64_t elements) {
  expect_nominal(op, name, tensor, base::DType::f32);
  expect_elements(op, name, tensor, elements);
}

// A row of tokens or of positions.
inline void expect_index(const char* op, const char* name, const Tensor& tensor, std::int64_t elements) {
  expect_nominal(op, name, tensor, base::DType::i32);
  expect_elements(op, name, tensor, elements);
}

// A matrix of two dims; every op's first tensor says how many rows and columns the others have.
inline void expect_matrix(const char* op, const char* name, const Tensor& tensor) {
  SHARDBOOK_CHECK(tensor.shape.dims() == 2, op, ": ", name, " is ", base::to_string(tensor.shape),
                  " and should have two dims");
}

// A branch that joins the residual path: three matrices alike, and a bias of their width, which may be absent.
inline void expect_residual(const char* op, const Tensor& residual_ND, const Tensor& x_ND, const Tensor& bias_D, const Tensor& out_ND) {
  expect_matrix(op, "x_ND", x_ND);
  for (const auto& [name, tensor] : {std::pair{"residual_ND", &residual_ND}, std::pair{"out_ND", &out_ND}}) {
    expect_shape(op, name, *tensor, x_ND.shape);
    expect_same_type(op, name, *tensor, x_ND);
  }
  if (!bias_D.exists()) return;
  expect_elements(op, "bias_D", bias_D, x_ND.shape[1]);
  expect_same_type(op, "bias_D", bias_D, x_ND);
}

}  // namespace shardbook::kernels
