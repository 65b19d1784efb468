#include "engine/comm/meta/meta.hpp"

namespace shardbook::comm {

namespace {

class MetaCommunicator final : public Communicator {
 public:
  using Communicator::Communicator;

 protected:
  void issue(Lane lane, const program::OpDesc& desc, const Call& call) override {
    lane.device().launch_body(lane, desc, device::Body{});
    ran(call.ticket);
  }
};

class MetaBackend final : public Backend {
 public:
  std::unique_ptr<Communicator> communicator(device::Device& device, const mesh::Group& group) override {
    const program::GroupId id = device.recorder().add_group({group.axis, group.ranks});
    return std::make_unique<MetaCommunicator>(group, id);
  }
  std::string version() const override { return "meta"; }
};

}  // namespace

std::unique_ptr<Backend> make_meta_backend() { return std::make_unique<MetaBackend>(); }

}  // namespace shardbook::comm
