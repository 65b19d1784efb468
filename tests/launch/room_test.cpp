// Which matmuls of a real step leave room to a collective, by the times of the profile that ships.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "engine/comm/meta/meta.hpp"
#include "engine/config/switches.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::launch {
namespace {

// By phase, op and part of the layer: how many matmuls there are, and how many of them leave room. Of the blocks' linears.
struct Left {
  int of = 0, leave = 0, most = 0;
};
using ByPlace = std::map<std::string, Left>;

ByPlace left_in_a_step(int tp, int fsdp, const char* sms, const char* also = "") {
  config::RunConfig config;
  const auto ask = [&config](const char* option, const std::string& value) { EXPECT_TRUE(config::ask(config, option, {value})) << option; };
  ask("model", "gpt-1.3b");
  ask("device", "meta");
  ask("tp", std::to_string(tp));
  ask("fsdp", std::to_string(fsdp));
  ask("sequences", "16");
  const auto valid = config::validate(config, 0);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error());
  if (!valid) return {};
  config = valid.value();
  EXPECT_TRUE(config::set_switch(config, std::string("matmul.sms_beside=") + sms));
  if (*also != 0) {
    EXPECT_TRUE(config::set_switch(config, also));
  }
  device::MetaDevice device(0);
  const auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), 0, nullptr);
  trainer.issue(0, false);
  const program::Program& program = *device.recorder().programs()[0];
  const std::vector<int> left = program::left_beside(program, room_rule(config, device.recorder().catalogue()));
  ByPlace found;
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    const program::Op& op = program.ops[at];
    if (std::strncmp(op.desc.name, "linear_", 7) != 0 || op.key.layer < 0) continue;
    Left& place = found[base::text(program::name_of(op.key.phase), " ", op.desc.name, " ", op.key.part)];
    ++place.of;
    place.leave += left[at] > 0 ? 1 : 0;
    place.most = std::max(place.most, left[at]);
  }
  return found;
}

// A gather ahead starts beside the norm at the begin of a block, and all matmuls find it under way.
TEST(Room, IsLeftByNoMatmulOfForwardToAGatherThatIsUnderWay) {
  int matmuls_of_forward = 0;
  for (const auto& [place, matmuls] : left_in_a_step(1, 2, "16")) {
    if (!place.starts_with("forward ")) continue;
    matmuls_of_forward += matmuls.of;
    EXPECT_EQ(matmuls.leave, 0) << place;
  }
  EXPECT_GE(matmuls_of_forward, 4 * 24);
}

TEST(Room, IsLeftByTheWeightGradientsThatRunBesideASumOverTensorParallelRanksAndByNothingElse) {
  const ByPlace left = left_in_a_step(2, 1, "24");
  for (const auto& [place, matmuls] : left) {
    const bool beside_a_sum = place == "backward linear_weight_gradient qkv" || place == "backward linear_weight_gradient up";
    EXPECT_EQ(matmuls.leave, beside_a_sum ? matmuls.of : 0) << place;
    EXPECT_EQ(matmuls.most, beside_a_sum ? 24 : 0) << place;
  }
  EXPECT_GE(left.at("backward linear_weight_gradient up").of, 24);
  for (const auto& [place, matmuls] : left_in_a_step(2, 1, "24", "tensor_parallel.input_gradient_sum=awaited")) EXPECT_EQ(matmuls.leave, 0) << place;
}

TEST(Room, IsLeftByNobodyUnlessAskedFor) {
  for (const auto& [place, matmuls] : left_in_a_step(2, 2, "0")) EXPECT_EQ(matmuls.leave, 0) << place;
}

}  // namespace
}  // namespace shardbook::launch
