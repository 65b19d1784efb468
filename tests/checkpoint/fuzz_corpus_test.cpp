// What the fuzzers began with and what they found worth keeping still holds; see fuzz/build.sh for the fuzzers.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/checkpoint/fuzz/targets.hpp"
#include "tests/checkpoint/runs.hpp"

namespace shardbook::checkpoint {
namespace {

namespace fs = std::filesystem;

const fs::path corpus = fs::path(SHARDBOOK_SOURCE_DIR) / "tests/checkpoint/fuzz/corpus";

TEST(ManifestCorpus, IsReadOrRefusedInASentence) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(corpus / "manifest")) {
    SCOPED_TRACE(entry.path().filename().string());
    fuzz::check_manifest(tests::content_of(entry.path().string()));
    ++files;
  }
  EXPECT_GE(files, 40u);
}

TEST(SafetensorsCorpus, IsReadOrRefusedInASentence) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(corpus / "safetensors")) {
    SCOPED_TRACE(entry.path().filename().string());
    fuzz::check_safetensors(tests::content_of(entry.path().string()));
    ++files;
  }
  EXPECT_GE(files, 25u);
}

// By name: what was made right is read, and what was made wrong is refused for the reason that it was made for.
TEST(ManifestCorpus, OfOneMistakeEachIsRefusedForIt) {
  const auto error_of = [](const char* name) {
    const base::Result<Manifest> read = read_file((corpus / "manifest" / name).string());
    return read ? std::string() : read.error();
  };
  EXPECT_EQ(error_of("good"), "");
  EXPECT_EQ(error_of("no_tensors"), "");
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"empty", "does not begin as one"}, {"head_alone", "is damaged, or of a form"}, {"form_2", "of a form that this build does not know"}, {"other_sum", "its sum is another"},
      {"no_json", "holds no JSON"}, {"no_object", "has no \"step\""}, {"deep", "nest deeper"}, {"step_huge", "no whole number from 0"}, {"step_fraction", "no whole number"},
      {"config_list", "\"config\" that is no object"}, {"chunk_other", "its chunks have 4096 bytes"}, {"file_escapes", "is called ../rank0.data"}, {"file_absolute", "is called rank0/x"},
      {"file_hidden", "is called .data"}, {"file_manifest", "is called manifest"}, {"file_twice", "two files are called rank1.data"}, {"file_huge", "no whole number"},
      {"file_longer", "byte 72 belongs to no box"}, {"sums_short", "4 digits of sums for 1 chunks"}, {"sums_no_digits", "a sum that is no number"}, {"tensor_twice", "two tensors are called w"},
      {"tensor_escape_sequence", "\\x1b[2J"}, {"dtype_unknown", "only bf16, f32, f64 and i32 are known"}, {"shape_zero", "shape of no elements"}, {"shape_overflows", "more than any tensor"},
      {"shape_five", "at most 4 dims"}, {"box_outside", "lies outside of its tensor"}, {"box_empty", "holds nothing"}, {"box_dims", "another number of dims"}, {"box_other_file", "lies in file 2 of 2"},
      {"box_huge_file", "no whole number"}, {"box_behind", "ends behind its file"}, {"box_overlaps", "both hold element"}, {"box_missing", "hold 18 of its 24 elements"},
      {"box_twice", "both hold element"}, {"box_behind_by_one", "ends behind its file"}, {"tile_gap", "of rank1.data byte 8 belongs to no box"}, {"tile_twice", "belongs to two boxes"}};
  for (const auto& [name, reason] : wrong) {
    EXPECT_NE(error_of(name).find(reason), std::string::npos) << name << ": " << error_of(name);
    EXPECT_NE(error_of(name).find("take another checkpoint"), std::string::npos) << error_of(name);
  }
}

TEST(SafetensorsCorpus, OfOneMistakeEachIsRefusedForIt) {
  const auto error_of = [](const char* name) {
    const std::string bytes = tests::content_of((corpus / "safetensors" / name).string());
    const base::Result<SafeHeader> read = read_header(bytes, static_cast<base::Bytes>(bytes.size()), name);
    return read ? std::string() : read.error();
  };
  for (const char* right : {"good", "padded", "bf16_and_i32", "no_tensor"}) EXPECT_EQ(error_of(right), "");
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"empty", "fewer than 8 bytes"}, {"seven_bytes", "fewer than 8 bytes"}, {"length_huge", "at most 100000000 are allowed"}, {"length_above_limit", "at most 100000000"},
      {"length_behind", "ends within its header"}, {"blank_first", "does not begin with {"}, {"no_json", "no JSON object"}, {"deep", "nests deeper"}, {"list", "does not begin with {"},
      {"name_twice", "names a twice"}, {"key_twice", "names shape twice"}, {"metadata_number", "no text"}, {"metadata_list", "no object"}, {"hole", "byte 8 behind its header belongs to no tensor"},
      {"overlap", "belongs to two tensors"}, {"too_long", "of its 25 bytes behind the header, tensors have 24"}, {"too_short", "no whole number from 0 to 23"}, {"backward", "-16 bytes"},
      {"offsets_huge", "no whole number"}, {"offsets_three", "no two numbers"}, {"dtype_unknown", "a type of which there is none here"}, {"dtype_number", "a type of which there is none here"},
      {"shape_overflows", "more than any tensor"}, {"shape_five", "at most 4 sizes"}, {"member_missing", "has not exactly"}, {"member_more", "has not exactly"}, {"name_with_blank", "plain ASCII"}};
  for (const auto& [name, reason] : wrong) EXPECT_NE(error_of(name).find(reason), std::string::npos) << name << ": " << error_of(name);
}

TEST(Safetensors, OfACheckpointAreACheckpointAgain) {
  const tests::Folder folder;
  const tests::Asked asked{{"tp", "2"}, {"fsdp", "2"}};
  const tests::Numbers whole = tests::numbers_of(tests::small(tests::with(asked, {{"checkpoint", folder / "saved"}, {"save-every", "4"}, {"keep-checkpoints", "0"}})));
  ASSERT_EQ(whole.error, "");
  const std::string step = path_of_step(folder / "saved", 4);
  const base::Result<Found> found = find(step);
  ASSERT_TRUE(found);
  ASSERT_TRUE(write_safetensors(step, found.value().manifest, folder / "a.safetensors"));
  const base::Result<std::string> made = read_safetensors(folder / "a.safetensors", folder / "made");
  ASSERT_TRUE(made) << made.error();
  EXPECT_EQ(made.value(), path_of_step(folder / "made", 4));
  EXPECT_EQ(tests::damage_of(made.value()), "");
  // It goes on from there as from the first, and written again it is the same file
  tests::expect_goes_on(tests::numbers_of(tests::small(tests::with({{"fsdp", "2"}, {"tp", "2"}}, {{"resume", folder / "made"}}))), whole, 4);
  ASSERT_TRUE(write_safetensors(made.value(), find(made.value()).value().manifest, folder / "b.safetensors"));
  EXPECT_EQ(tests::content_of(folder / "a.safetensors"), tests::content_of(folder / "b.safetensors"));
  // Not twice into one folder; and whatever is none leaves nothing
  const base::Result<std::string> twice = read_safetensors(folder / "a.safetensors", folder / "made");
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().find("is there already"), std::string::npos) << twice.error();
  const std::string bytes = tests::content_of(folder / "a.safetensors");
  std::ofstream(folder / "cut.safetensors", std::ios::binary) << bytes.substr(0, bytes.size() - 1);
  EXPECT_FALSE(read_safetensors(folder / "cut.safetensors", folder / "cut"));
  EXPECT_FALSE(fs::exists(folder / "cut"));
}

// As the specification has it: eight bytes of length, an object, names with type, shape and place, numbers without holes.
TEST(Safetensors, HaveTheFormOfTheirSpecification) {
  SafeHeader header;
  header.tensors = {{"w", base::DType::f32, {2, 3}, 0, 24}};
  const std::string text = to_text(header);
  const std::string json = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  EXPECT_EQ(text.substr(8, json.size()), json);
  EXPECT_EQ(text.size() % 8, 0u) << "numbers begin where eight divides";
  EXPECT_EQ(static_cast<std::size_t>(static_cast<unsigned char>(text[0])), text.size() - 8);
  EXPECT_EQ(text.substr(8 + json.size()).find_first_not_of(' '), std::string::npos);
}

}  // namespace
}  // namespace shardbook::checkpoint
