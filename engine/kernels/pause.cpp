#include "engine/kernels/pause.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

void pause(device::Lane lane, const tensor::Tensor& to) {
  program::OpDesc desc(program::pause_name, program::OpKind::fill, to.nominal);
  desc.writes(to.use());
  lane.device().launch(lane, desc, FillArgs{to.data, to.elements(), 0, to.storage}, &host::fill, &cuda::pause);
}

}  // namespace shardbook::kernels
