#include "engine/kernels/initialize.hpp"

#include "engine/device/copy.hpp"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void fill(Lane lane, const Tensor& to, float value) {
  OpDesc desc("fill", OpKind::fill, to.nominal);
  desc.writes(to.use());
  const FillArgs args{to.data, to.elements(), value, to.storage};
  lane.device().launch(lane, desc, args, &host::fill, &cuda::fill);
}

void copy(Lane lane, const Tensor& from, const Tensor& to) {
  static constexpr const char* op = "copy";
  expect_nominal(op, "to", to, from.nominal);
  expect_elements(op, "to", to, from.elements());
  OpDesc desc(op, OpKind::copy, from.nominal);
  desc.reads(from.use()).writes(to.use());
  lane.device().launch(lane, desc, device::CopyArgs{from.data, to.data, from.storage_bytes()}, &device::host::copy, &device::cuda::copy);
}

void cast(Lane lane, const Tensor& from, const Tensor& to) {
  static constexpr const char* op = "cast";
  expect_nominal(op, "from", from, base::DType::f32);
  expect_elements(op, "to", to, from.elements());
  OpDesc desc(op, OpKind::pointwise, to.nominal);
  desc.reads(from.use()).writes(to.use());
  const CastArgs args{from.data, to.data, from.elements(), to.storage};
  lane.device().launch(lane, desc, args, &host::cast, &cuda::cast);
}

void init_normal(Lane lane, const Tensor& to, const MatrixPart& part, std::uint64_t seed, std::uint32_t parameter,
                 float mean, float deviation) {
  static constexpr const char* op = "init_normal";
  expect_nominal(op, "to", to, base::DType::f32);
  SHARDBOOK_CHECK(part.columns > 0 && part.column_begin + part.columns <= part.global_columns, op, ": columns [",
                  part.column_begin, ", ", part.column_begin + part.columns, ") of ", part.global_columns);
  OpDesc desc(op, OpKind::fill, to.nominal);
  desc.flops(2 * to.elements()).writes(to.use());
  const InitNormalArgs args{to.data,      seed,          parameter,           part.row_begin, part.column_begin,
                            part.columns, part.global_columns, part.begin,    to.elements(),  mean,
                            deviation,    to.storage};
  lane.device().launch(lane, desc, args, &host::init_normal, &cuda::init_normal);
}

}  // namespace shardbook::kernels
