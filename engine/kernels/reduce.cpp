#include "engine/kernels/reduce.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

void sum(Lane lane, const Tensor& value_N, float scale, const Tensor& total, bool accumulate) {
  static constexpr const char* op = "sum";
  expect_nominal(op, "value_N", value_N, base::DType::f32);
  expect_stat(op, "total", total, 1);
  program::OpDesc desc(op, program::OpKind::reduction, value_N.nominal);
  desc.flops(value_N.elements()).reads(value_N.use());
  if (accumulate) desc.updates(total.use());
  else desc.writes(total.use());
  const SumArgs args{value_N.data, total.data, value_N.elements(), scale, accumulate, value_N.storage};
  lane.device().launch(lane, desc, args, &host::sum, &cuda::sum);
}

}  // namespace shardbook::kernels
