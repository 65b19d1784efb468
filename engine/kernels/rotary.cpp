#include "engine/kernels/rotary.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void rotate(Lane lane, const Tensor& rows_NE, std::int64_t positions, std::int64_t heads, std::int64_t head_dim, float theta,
            bool inverse) {
  static constexpr const char* op = "rotate";
  expect_matrix(op, "rows_NE", rows_NE);
  const std::int64_t tokens = rows_NE.shape[0], width = rows_NE.shape[1];
  SHARDBOOK_CHECK(positions > 0 && tokens % positions == 0, op, ": ", tokens, " tokens are no sequences of ", positions);
  SHARDBOOK_CHECK(head_dim % 2 == 0 && heads * head_dim <= width, op, ": ", heads, " heads of ", head_dim, " in rows of ", width);
  const std::int64_t turned = tokens * heads * head_dim;
  OpDesc desc(op, OpKind::pointwise, rows_NE.nominal);
  const base::Bytes bytes = turned * base::size_of(rows_NE.nominal);
  desc.flops(3 * turned).reads(rows_NE.use(), bytes).writes(rows_NE.use(), bytes);  // two products and a sum a number
  const RotateArgs args{rows_NE.data, tokens / positions, positions, heads, head_dim, width, theta, inverse, rows_NE.storage};
  lane.device().launch(lane, desc, args, &host::rotate, &cuda::rotate);
}

}  // namespace shardbook::kernels
