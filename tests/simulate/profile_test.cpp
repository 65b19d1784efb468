// Is a profile read back as it was written, and is a bad one refused with one sentence?
#include "engine/simulate/profile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <algorithm>

#include "engine/simulate/cost.hpp"

namespace shardbook::simulate {
namespace {

Profile fixed_machine() {
  base::Result<Profile> profile = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  return std::move(profile).value();
}

TEST(Profile, H200x8IsCompiledIn) {
  const base::Result<Profile> found = find_profile("h200x8");
  ASSERT_TRUE(found.ok()) << found.error();
  const Profile& profile = found.value();
  EXPECT_EQ(profile.name, "h200x8");
  EXPECT_EQ(profile.device.name, "NVIDIA H200");
  EXPECT_FALSE(profile.origin.empty());
  const std::vector<std::string> names = profile_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "h200x8"), names.end());
}

TEST(Profile, ComesBackFromItsJsonAsItWas) {
  Profile profile = fixed_machine();
  profile.kernels["adamw"] = {{1024, 2000.5}, {1 << 20, 3000.25}};
  profile.windows.collectives[program::OpKind::all_gather][2] = {{4096, 7000.5}, {1 << 20, 9000}};
  profile.windows.contention = {{2, 1.0625, 1.125, 1.25, 1.5}};
  profile.windows.fit["linear_forward_gelu"] = {program::OpKind::reduce_scatter, program::OpKind::all_reduce};
  const base::Result<Profile> again = profile_from_json(to_json(profile), "text");
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_TRUE(again.value() == profile);
}

TEST(Profile, IsFoundByThePathOfAFile) {
  const std::string path = (std::filesystem::temp_directory_path() / base::text("profile_", ::getpid(), ".json")).string();
  ASSERT_TRUE(save_profile(fixed_machine(), path).ok());
  const base::Result<Profile> again = find_profile(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_TRUE(again.value() == fixed_machine());
}

TEST(Profile, SaysWhereItCannotBeWritten) {
  const base::Status status = save_profile(fixed_machine(), "/nowhere/at/all.json");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("/nowhere/at/all.json"), std::string::npos) << status.error();
}

TEST(Profile, OfNoNameAndNoFileIsRefusedWithTheNamesThatAreKnown) {
  const base::Result<Profile> profile = find_profile("b300x72");
  ASSERT_FALSE(profile.ok());
  EXPECT_NE(profile.error().find("'b300x72'"), std::string::npos) << profile.error();
  EXPECT_NE(profile.error().find("h200x8"), std::string::npos) << profile.error();
}

std::string refusal(const std::string& json) {
  const base::Result<Profile> profile = profile_from_json(json, "my.json");
  EXPECT_FALSE(profile.ok());
  return profile.ok() ? "" : profile.error();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Profile, ThatIsMalformedIsRefusedWithFileAndKey) {
  const std::string good = to_json(fixed_machine());
  Profile of_windows = fixed_machine();
  of_windows.windows.collectives[program::OpKind::all_gather][2] = {{4096, 7000.5}};
  of_windows.windows.contention = {{2, 1.5, 1, 1, 1}};
  of_windows.windows.fit["linear_forward"] = {program::OpKind::shift};
  const std::string windows = to_json(of_windows);
  EXPECT_EQ(refusal(replaced(windows, "\"shift\"", "\"shyft\"")), "my.json is no machine profile: key windows.fit.linear_forward is no list of different collectives");
  EXPECT_EQ(refusal(replaced(windows, "\"gemm_by_collective\": 1.5", "\"gemm_by_collective\": 0.5")), "my.json is no machine profile: key windows.contention[0].gemm_by_collective is below 1");
  EXPECT_NE(refusal("{ not json").find("my.json"), std::string::npos);
  EXPECT_EQ(refusal("[]"), "my.json is no machine profile: the whole is no object");
  EXPECT_EQ(refusal("{}"), "my.json is no machine profile: key name is missing");
  EXPECT_EQ(refusal(replaced(good, "\"kernel_ns\"", "\"kernal_ns\"")), "my.json is no machine profile: key host.kernel_ns is missing");
  EXPECT_EQ(refusal(replaced(good, "\"wait_ns\"", "\"extra_ns\": 1, \"wait_ns\"")),
            "my.json is no machine profile: key host.extra_ns is not known");
  EXPECT_EQ(refusal(replaced(good, "\"multiprocessors\": 132", "\"multiprocessors\": 0")),
            "my.json is no machine profile: key device.multiprocessors is below 1");
  EXPECT_EQ(refusal(replaced(good, "\"multiprocessors\": 132", "\"multiprocessors\": \"many\"")),
            "my.json is no machine profile: key device.multiprocessors is no whole number");
  EXPECT_EQ(refusal(replaced(good, "[4096,2300.0]", "[4096,-1]")),
            "my.json is no machine profile: a row of kernels.copy is not 2 positive numbers");
  EXPECT_EQ(refusal(replaced(good, "[1048576,2700.0]", "[1024,2700.0]")),
            "my.json is no machine profile: table kernels.copy is not ascending in bytes at 1024");
  EXPECT_EQ(refusal(replaced(good, "\"pointwise\": ", "\"pointwize\": ")),
            "my.json is no machine profile: key kernels.pointwise is missing");
  EXPECT_EQ(refusal(replaced(good, "\"all_gather\": ", "\"all_gatter\": ")),
            "my.json is no machine profile: key collectives.all_gather is missing");
}

TEST(Curve, IsConstantThenLogarithmicThenProportional) {
  const Curve curve = {{100, 10}, {10000, 1000}};
  EXPECT_DOUBLE_EQ(at(curve, 1), 10);
  EXPECT_DOUBLE_EQ(at(curve, 100), 10);
  EXPECT_NEAR(at(curve, 1000), 100, 1e-9);
  EXPECT_DOUBLE_EQ(at(curve, 10000), 1000);
  EXPECT_DOUBLE_EQ(at(curve, 20000), 2000);
}

}  // namespace
}  // namespace shardbook::simulate
