// The last reductions of a step have no block beside them, and say so to whoever carries them out (nccl.last_ctas).
#include <gtest/gtest.h>

#include "engine/comm/comm.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

using comm::Beside;

// Notes what each reduce-scatter says of what runs beside it.
class Listening final : public comm::Backend {
 public:
  class One final : public comm::Communicator {
   public:
    One(const mesh::Group& group, program::GroupId id, std::vector<Beside>& heard) : Communicator(group, id), heard_(heard) {}
    void prepare_beside_nothing() override { prepared_ = true; }

   protected:
    void issue(comm::Lane lane, const program::OpDesc& desc, const Call& call) override {
      if (call.kind == program::OpKind::reduce_scatter) {
        heard_.push_back(call.beside);
      } else {
        EXPECT_EQ(call.beside, Beside::kernels) << program::name_of(call.kind);
      }
      EXPECT_TRUE(prepared_ || call.beside == Beside::kernels) << "of a group that was not prepared for it";
      lane.device().launch_body(lane, desc, device::Body{});
      ran(call.ticket);
    }

   private:
    bool prepared_ = false;
    std::vector<Beside>& heard_;
  };
  std::unique_ptr<comm::Communicator> communicator(device::Device& device, const mesh::Group& group) override {
    return std::make_unique<One>(group, device.recorder().add_group({group.axis, group.ranks}), heard);
  }
  std::string version() const override { return "listening"; }

  std::vector<Beside> heard;
};

std::vector<Beside> heard_in_a_step(config::RunConfig config, const char* set) {
  if (*set != 0) {
    EXPECT_TRUE(config::set_switch(config, set)) << set;
  }
  device::MetaDevice device(0);
  Listening backend;
  train::Trainer trainer(config, device, backend, mesh_of(config), 0, nullptr);
  for (std::int64_t step = 0; step < 2; ++step) {
    backend.heard.clear();   // the same in each step
    trainer.issue(step, false);
  }
  return backend.heard;
}

std::vector<Beside> first_then_alone(int beside_blocks, int alone) {
  std::vector<Beside> expected(static_cast<std::size_t>(beside_blocks), Beside::kernels);
  expected.insert(expected.end(), static_cast<std::size_t>(alone), Beside::nothing);
  return expected;
}

// Of one unit a block and one of embedding and head, which are tied: those of the first block and of the embedding.
TEST(LastReductions, AreThoseBehindWhichNoBlockIsComputed) {
  config::RunConfig config = small_config(1, 2);
  const int layers = config.model.layers;
  EXPECT_EQ(heard_in_a_step(config, ""), first_then_alone(layers - 1, 2));
  EXPECT_EQ(heard_in_a_step(config, "fsdp.reduce_dtype=bf16"), first_then_alone(layers - 1, 2));
  EXPECT_EQ(heard_in_a_step(config, "fsdp.blocks_a_unit=2"), first_then_alone((layers + 1) / 2 - 1, 2));
  config.model.tied = false;   // the head is reduced first, with all blocks beside it
  EXPECT_EQ(heard_in_a_step(config, ""), first_then_alone(layers, 2));
  config.model.tied = true;
  config.micro_batches = 2;
  EXPECT_EQ(heard_in_a_step(config, ""), first_then_alone(2 * layers, 2));
  EXPECT_EQ(heard_in_a_step(config, "accumulate.reduce=last"), first_then_alone(layers - 1, 2));
}

}  // namespace
}  // namespace shardbook::tests
