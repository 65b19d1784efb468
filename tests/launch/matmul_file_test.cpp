// The file of measured matmuls: what is written is read again, and what is no such file is refused in a sentence.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "engine/config/switches.hpp"
#include "engine/launch/matmul_file.hpp"
#include "tests/support/small_run.hpp"

namespace shardbook::launch {
namespace {

using kernels::MatmulForm;
using kernels::MatmulPlan;

MatmulFile sample() {
  MatmulForm up;
  up.m = 65536, up.n = 3072, up.k = 768, up.lda = up.ldb = 768, up.ldc = 3072;
  up.b_transposed = up.bias = true;
  up.beside = kernels::Beside::gelu;
  MatmulForm gradient;
  gradient.m = 3072, gradient.n = 768, gradient.k = 65536, gradient.lda = 3072, gradient.ldb = gradient.ldc = 768;
  gradient.a_transposed = gradient.adds = true;
  gradient.c_dtype = base::DType::f32;
  MatmulForm scores;
  scores.m = scores.n = scores.ldc = 1024, scores.k = scores.lda = scores.ldb = 64;
  scores.batch = 96, scores.stride_a = scores.stride_b = 65536, scores.stride_c = 1048576;
  return {"NVIDIA H200", 130101,
          {{up, {1, 2, 3, 4, 5, 6, 7, 0xfedcba9876543210}, 671900, 581900}, {gradient, {}, 425900, 425900}, {scores, {9}, 1500, 1250}}};
}

TEST(MatmulFile, IsReadAsItWasWritten) {
  const MatmulFile file = sample();
  const auto read = matmul_file_from_json(to_json(file), "m.json");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read.value().gpu, file.gpu);
  EXPECT_EQ(read.value().library, file.library);
  ASSERT_EQ(read.value().plans.size(), file.plans.size());
  for (std::size_t at = 0; at < file.plans.size(); ++at) {
    EXPECT_EQ(read.value().plans[at].form, file.plans[at].form) << at;
    EXPECT_EQ(read.value().plans[at].algorithm, file.plans[at].algorithm) << at;
    EXPECT_DOUBLE_EQ(read.value().plans[at].ns, file.plans[at].ns) << at;
    EXPECT_DOUBLE_EQ(read.value().plans[at].first_ns, file.plans[at].first_ns) << at;
  }
  EXPECT_EQ(to_json(read.value()), to_json(file));
}

TEST(MatmulFile, WhatIsNoSuchFileIsRefusedWithItsPlace) {
  const std::string good = to_json(sample());
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string content = good;
    const std::size_t at = content.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return matmul_file_from_json(content.replace(at, from.size(), to), "m.json");
  };
  struct Bad {
    const char *from, *to, *said;
  };
  for (const Bad& bad : {Bad{"{\"gpu\"", "[\"gpu\"", "it is no JSON object"}, {"\"gpu\": \"NVIDIA H200\"", "\"gpu\": 7", "gpu is no text"}, {"\"library\": 130101", "\"library\": 0", "library is no whole number"},
                         {"\"m\":65536", "\"m\":-1", "matmul 0: m is no whole number from 1"}, {"\"m\":65536", "\"m\":1e30", "matmul 0: m is no whole number"}, {"\"k\":768,", "", "matmul 0 has no k"},
                         {"\"bias\":true", "\"bias\":1", "bias is neither true nor false"}, {"\"dtype\":\"bf16\"", "\"dtype\":\"f16\"", "dtype is neither bf16 nor f32"},
                         {"\"gelu\"", "\"relu\"", "beside is none of"}, {"[\"1\",", "[", "algorithm is not 8 words"}, {"[\"1\",", "[\"1x\",", "word 0 of algorithm is not hexadecimal"},
                         {"\"fedcba9876543210\"", "\"1fedcba9876543210\"", "word 7 of algorithm is not hexadecimal"}, {"\"us\":581.9", "\"us\":0", "us is no number above 0"},
                         {"\"bias\":true", "\"bias\":true,\"colour\":1", "a key that is not known: colour"}, {"\"library\"", "\"name\":1,\"library\"", "it has a key that is not known: name"}}) {
    const auto read = with(bad.from, bad.to);
    ASSERT_FALSE(read) << bad.said;
    EXPECT_NE(read.error().find(bad.said), std::string::npos) << read.error();
    EXPECT_EQ(read.error().find("m.json is no file of measured matmuls: "), 0u) << read.error();
  }
  MatmulFile twice = sample();
  twice.plans.push_back(twice.plans[0]);
  EXPECT_NE(matmul_file_from_json(to_json(twice), "m.json").error().find("matmul 3 is there twice: 65536 x 3072 x 768 bf16, B transposed, bias, gelu"), std::string::npos);
}

TEST(MatmulFile, OfAnotherGpuOrLibraryIsNotUsed) {
  EXPECT_TRUE(check_measured_here(sample(), "NVIDIA H200", 130101, "m.json"));
  EXPECT_EQ(check_measured_here(sample(), "NVIDIA H100 80GB HBM3", 130101, "m.json").error(),
            "the matmuls of m.json were measured on NVIDIA H200 with cuBLASLt 13.1.1, and here is NVIDIA H100 80GB HBM3 with 13.1.1: measure them here with ./shardbook tune");
  EXPECT_FALSE(check_measured_here(sample(), "NVIDIA H200", 130200, "m.json"));
}

TEST(MatmulFile, IsWrittenWholeOrNotAtAll) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("matmul_file_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "m.json").string();
  ASSERT_TRUE(write_matmul_file(sample(), path));
  EXPECT_EQ(to_json(read_matmul_file(path).value()), to_json(sample()));
  const base::Status nowhere = write_matmul_file(sample(), (folder / "no" / "m.json").string());
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().find("cannot write " + (folder / "no" / "m.json").string()), std::string::npos);
  EXPECT_NE(read_matmul_file((folder / "none.json").string()).error().find("./shardbook tune --out "), std::string::npos);
  std::filesystem::resize_file(path, std::uintmax_t{17} << 20);
  EXPECT_NE(read_matmul_file(path).error().find("has 17825792 bytes"), std::string::npos);
  std::filesystem::remove_all(folder);
}

// A plan is of one form, to the last of its fields, until others take its place.
TEST(MatmulFile, APlanIsOfOneFormAlone) {
  const MatmulPlan plan = sample().plans[0];
  kernels::use_matmul_plans({plan, sample().plans[2]});
  ASSERT_NE(kernels::planned_algorithm(plan.form), nullptr);
  EXPECT_EQ(*kernels::planned_algorithm(plan.form), plan.algorithm);
  std::vector<MatmulForm> others(4, plan.form);
  others[0].k = 769, others[1].bias = false, others[2].beside = kernels::Beside::nothing, others[3].c_dtype = base::DType::f32;
  for (const MatmulForm& other : others) EXPECT_EQ(kernels::planned_algorithm(other), nullptr) << to_string(other);
  kernels::use_matmul_plans({});
  EXPECT_EQ(kernels::planned_algorithm(plan.form), nullptr);
}

// Each matmul of a step once, and as often as the step's record has it.
TEST(MatmulFile, AStepsMatmulsAreThoseOfItsProgram) {
  config::RunConfig config = tests::config_of({{"device", "meta"}, {"layers", "3"}, {"width", "32"}, {"heads", "4"}, {"sequence", "16"}, {"sequences", "8"}, {"fsdp", "2"}, {"micro-batches", "2"}});
  ASSERT_TRUE(config::set_switch(config, "accumulate.reduce=last"));
  for (const bool fused : {false, true}) {
    if (fused) { ASSERT_TRUE(config::set_switch(config, "gelu.kernel=in_matmuls")); }
    const std::vector<kernels::AskedMatmul> asked = matmuls_of_step(config);
    int of_gelu = 0, added = 0, all = 0;
    for (const kernels::AskedMatmul& one : asked) {
      EXPECT_EQ(std::count_if(asked.begin(), asked.end(), [&](const kernels::AskedMatmul& other) { return other.form == one.form; }), 1);
      EXPECT_GE(kernels::memory_of(one.form), 2 * (one.form.m * one.form.k + one.form.k * one.form.n + one.form.m * one.form.n));
      all += one.times;
      if (one.form.beside != kernels::Beside::nothing) of_gelu += one.times;
      if (one.form.adds) added += one.times;
    }
    // A block: four linears with three products each, and attention's six; the head's three. Twice, for two micro-batches.
    EXPECT_EQ(all, 2 * (config.model.layers * (4 * 3 + 6) + 3));
    EXPECT_EQ(of_gelu, fused ? 2 * 2 * config.model.layers : 0);
    EXPECT_EQ(added, 4 * config.model.layers + 1);   // weight gradients of the second micro-batch
  }
}

}  // namespace
}  // namespace shardbook::launch
