// Gradients of every layer against finite differences, and against PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

config::RunConfig one_step_in_f64(bool tied, bool llama = false, config::AttentionKind attention = config::AttentionKind::unfused) {
  config::RunConfig config = llama ? small_llama(1, 1) : small_config(1, 1);
  config.model.tied = tied;
  config.attention = attention;
  config.host_dtype = config::HostDtype::f64;
  config.sequences = 4;
  config.steps = 1;
  config.clip = 0;
  return config;
}

// Sets an element of a parameter where the layers read it. One rank: shards are whole.
double& element(train::Trainer& trainer, const std::string& name, std::int64_t at) {
  for (optimizer::ShardState& shard : trainer.shards()) {
    for (const shard::FlatParameter& parameter : shard.layout->parameters()) {
      if (parameter.name == name) return static_cast<double*>(shard.parameter.data)[shard.layout->range(name).begin + at];
    }
  }
  throw base::Failure("no parameter " + name);
}

struct Tried {
  const char* name;
  bool tied, llama;
  config::AttentionKind attention;
  double dropout = 0;
};
class FiniteDifferences : public testing::TestWithParam<Tried> {};

TEST_P(FiniteDifferences, AgreeWithTheGradientOfEveryParameter) {
  config::RunConfig config = one_step_in_f64(GetParam().tied, GetParam().llama, GetParam().attention);
  config.hidden_dropout = config.attention_dropout = GetParam().dropout;   // of one step: the same masks each time
  const TestTokens tokens(config.model.vocab, config.model.sequence);
  const std::string error = on_host_ranks(1, [&](HostRank& rank) {
    train::Trainer trainer(config, rank.device, rank.backend, mesh_of(config), 0, &tokens);
    trainer.set_update(false);
    auto loss = [&] {
      trainer.issue(0, false);
      return trainer.await(0).loss;
    };
    const double at_rest = loss();
    Parameters gradients;
    collect(trainer, &optimizer::ShardState::gradient, gradients);

    for (const auto& [name, gradient] : gradients) {
      // Five elements of each, spread out.
      const std::int64_t size = static_cast<std::int64_t>(gradient.size());
      for (std::int64_t probe = 0; probe < 5; ++probe) {
        const std::int64_t at = (probe * 2 + 1) * size / 10;
        double& value = element(trainer, name, at);
        const double before = value;
        auto slope = [&](double h) {
          value = before + h;
          const double up = loss();
          value = before - h;
          const double down = loss();
          value = before;
          return (up - down) / (2 * h);
        };
        // The error of a central difference goes with h²: that of step 2h is four times that of h, so their
        // difference is three times the error of h. Rounding of the loss adds a few units in the last place over h.
        const double h = 1e-4;
        const double fine = slope(h), coarse = slope(2 * h);
        const double rounding = 64 * std::numeric_limits<double>::epsilon() * at_rest / h;
        EXPECT_NEAR(gradient[static_cast<std::size_t>(at)], fine, std::abs(fine - coarse) + rounding) << name << " element " << at;
      }
    }
  }, 0, base::DType::f64);
  EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(Networks, FiniteDifferences,
                         testing::Values(Tried{"TiedGpt", true, false, config::AttentionKind::unfused},
                                         Tried{"UntiedGpt", false, false, config::AttentionKind::unfused},
                                         Tried{"GptWithFlashAttention", true, false, config::AttentionKind::flash},
                                         Tried{"Llama", false, true, config::AttentionKind::unfused},
                                         Tried{"LlamaWithFlashAttention", false, true, config::AttentionKind::flash},
                                         Tried{"LlamaWithCudnnAttention", false, true, config::AttentionKind::cudnn},
                                         Tried{"GptWithDropout", true, false, config::AttentionKind::unfused, 0.2},
                                         Tried{"GptWithFlashAttentionAndDropout", true, false, config::AttentionKind::flash, 0.2},
                                         Tried{"LlamaWithDropout", false, true, config::AttentionKind::unfused, 0.2}),
                         [](const auto& info) { return info.param.name; });

// pytorch_reference.py fills the same small model with the same numbers, by this rule.
double reference_weight(const std::string& name, std::int64_t at) {
  std::uint32_t key = 2166136261u;
  for (unsigned char letter : name) key = (key ^ letter) * 16777619u;
  const double small = (static_cast<double>((static_cast<std::uint64_t>(at) * 7919 + key) % 1009) - 504) / 2520;
  return name.find("norm") != std::string::npos && name.ends_with(".weight") ? 1 + small : small;
}

void fill_by_rule(train::Trainer& trainer) {
  for (optimizer::ShardState& shard : trainer.shards()) {
    for (const shard::FlatParameter& parameter : shard.layout->parameters()) {
      const shard::Interval range = shard.layout->range(parameter.name);
      for (std::int64_t at = 0; at < range.size(); ++at) {
        static_cast<double*>(shard.parameter.data)[range.begin + at] = reference_weight(parameter.name, at);
        static_cast<double*>(shard.master.data)[range.begin + at] = reference_weight(parameter.name, at);
      }
    }
  }
}

TEST(PyTorch, GivesTheSameLossAndGradients) {
  std::ifstream file(std::string(SHARDBOOK_SOURCE_DIR) + "/tests/train/pytorch_reference.json");
  ASSERT_TRUE(file) << "tests/train/pytorch_reference.json is made by pytorch_reference.py";
  const nlohmann::json reference = base::parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  struct Case {
    const char* name;
    bool tied, llama;
    config::AttentionKind attention;
  };
  using config::AttentionKind;
  for (const Case& one : {Case{"tied", true, false, AttentionKind::unfused}, Case{"tied", true, false, AttentionKind::flash},
                          Case{"untied", false, false, AttentionKind::unfused}, Case{"llama", false, true, AttentionKind::unfused},
                          Case{"llama", false, true, AttentionKind::flash}}) {
    SCOPED_TRACE(testing::Message() << one.name << ", attention " << config::name_of(one.attention));
    if (!reference.contains(one.name)) {
      ADD_FAILURE() << "pytorch_reference.json has no " << one.name << ": make it anew with pytorch_reference.py";
      continue;
    }
    const nlohmann::json& expected = reference[one.name];
    config::RunConfig config = one_step_in_f64(one.tied, one.llama, one.attention);
    // Heads of 16: their scale is the same in fp32 and fp64.
    config.model.heads = 2;
    config.model.head_dim = 16;
    config.model.key_value_heads = one.llama ? 1 : 0;
    const HostRun run = run_on_host(config, TestTokens(config.model.vocab, config.model.sequence), fill_by_rule);
    ASSERT_EQ(run.error, "");
    // Both in fp64: what differs is the order of sums of up to some thousand terms, a relative 1e-12 or so.
    EXPECT_NEAR(run.losses[0], expected["loss"].get<double>(), 1e-11 * run.losses[0]);
    ASSERT_EQ(run.gradients.size(), expected["gradients"].size());
    for (const auto& [name, gradient] : run.gradients) {
      const nlohmann::json& known = expected["gradients"].at(name);
      double norm = 0;
      for (double value : gradient) norm += value * value;
      norm = std::sqrt(norm);
      EXPECT_NEAR(norm, known["norm"].get<double>(), 1e-10 * norm) << name;
      for (const auto& [index, value] : known["elements"].items()) {
        EXPECT_NEAR(gradient[std::stoul(index)], value.get<double>(), 1e-10 * norm) << name << "[" << index << "]";
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::tests
