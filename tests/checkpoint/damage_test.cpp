// A byte that has changed since is found, wherever it is: in the manifest, in a head, in any number.
#include <sys/resource.h>

#include "engine/checkpoint/load.hpp"
#include "tests/checkpoint/runs.hpp"
#include "tests/support/plans.hpp"

namespace shardbook::tests {
namespace {

namespace fs = std::filesystem;

void put(const std::string& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.write(&byte, 1);
}

char byte_of(const std::string& path, std::size_t at) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  return static_cast<char>(file.get());
}

// What a run that reads all of it would say: the manifest, then each tensor.
std::string said_by_a_loader(const std::string& path) {
  const base::Result<checkpoint::Found> found = checkpoint::find(path);
  if (!found) return found.error();
  checkpoint::DataReader reader(path, found.value().manifest);
  for (const checkpoint::StoredTensor& tensor : found.value().manifest.tensors) {
    std::vector<std::byte> numbers(static_cast<std::size_t>(tensor.bytes()));
    const base::Status loaded = checkpoint::load({{tensor.name, tensor.dtype, tensor.shape, shard::whole(tensor.shape), numbers.data()}}, found.value().manifest, reader);
    if (!loaded) return loaded.error();
  }
  return "";
}

TEST(Damage, OfAnyByteIsFoundAThousandTimesOfAThousand) {
  const Folder folder;
  ASSERT_EQ(numbers_of(small({{"tp", "2"}, {"fsdp", "2"}, {"steps", "1"}, {"warmup-steps", "0"}, {"checkpoint", folder / "saved"}})).error, "");
  const std::string step = checkpoint::path_of_step(folder / "saved", 1);
  ASSERT_EQ(said_by_a_loader(step), "");
  std::vector<std::pair<std::string, std::size_t>> files;
  std::size_t all = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(step)) {
    files.emplace_back(entry.path().string(), entry.file_size());
    all += entry.file_size();
  }
  ASSERT_EQ(files.size(), 5u);

  Chance chance(7);
  int found = 0, found_by_verify = 0, in_manifest = 0;
  constexpr int flips = 1000 / static_cast<int>(one_in);
  for (int flip = 0; flip < flips; ++flip) {
    // Half of them anywhere; the others in the manifest, which is short beside the data
    std::size_t at = chance.next() % all, file = 0;
    if (chance.once_in(2)) {
      while (fs::path(files[file].first).filename() != checkpoint::manifest_name) ++file;
      at = chance.next() % files[file].second;
      ++in_manifest;
    } else {
      while (at >= files[file].second) at -= files[file++].second;
    }
    const std::string& path = files[file].first;
    const char before = byte_of(path, at);
    put(path, at, static_cast<char>(before ^ (1 + chance.below(255))));
    const std::string said = said_by_a_loader(step);
    found += said.empty() ? 0 : 1;
    found_by_verify += damage_of(step).empty() ? 0 : 1;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    if (said.empty()) ADD_FAILURE() << "byte " << at << " of " << path;
    put(path, at, before);
  }
  EXPECT_EQ(found, flips);
  EXPECT_EQ(found_by_verify, flips);
  EXPECT_GT(in_manifest, flips / 3);
  EXPECT_EQ(said_by_a_loader(step), "") << "all bytes are as they were";
}

TEST(Damage, OfTheNewestIsPassedOverWhereItIsSeenAndSaidWhereItIsRead) {
  const Folder folder;
  const std::string saved = folder / "saved";
  const Asked asked{{"fsdp", "2"}, {"steps", "12"}};
  const Numbers whole = numbers_of(small(with(asked, {{"checkpoint", saved}, {"save-every", "4"}, {"keep-checkpoints", "0"}})));
  ASSERT_EQ(whole.error, "");
  fs::remove_all(checkpoint::path_of_step(saved, 12));

  // A number: found when it is read
  const std::string data = checkpoint::path_of_step(saved, 8) + "/rank1.data";
  put(data, 1000, static_cast<char>(content_of(data)[1000] ^ 1));
  const std::string error = numbers_of(small(with(asked, {{"resume", saved}}))).error;
  EXPECT_NE(error.find("rank1.data is damaged: bytes 0 to "), std::string::npos) << error;
  EXPECT_NE(error.find("take another checkpoint"), std::string::npos) << error;

  // A file that ends too early, and one that is missing: the one before is taken
  fs::resize_file(data, 999);
  base::Result<checkpoint::Found> found = checkpoint::find(saved);
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found.value().manifest.step, 4);
  ASSERT_EQ(found.value().passed_over.size(), 1u);
  EXPECT_NE(found.value().passed_over[0].find("rank1.data has 999 bytes, and its manifest says "), std::string::npos) << found.value().passed_over[0];
  fs::remove(data);
  expect_goes_on(numbers_of(small(with(asked, {{"resume", saved}}))), whole, 4);
  // ... and the next one of that step takes the place of what is damaged
  expect_goes_on(numbers_of(small(with(asked, {{"resume", saved}, {"checkpoint", saved}, {"save-every", "4"}}))), whole, 4);
  EXPECT_EQ(damage_of(checkpoint::path_of_step(saved, 8)), "");
}

// As many files as there were ranks, and a process may have only so many open.
TEST(Reading, OfMoreFilesThanMayBeOpenAtOnceIsReading) {
  const Folder folder;
  std::filesystem::create_directory(folder / "many");
  checkpoint::Manifest manifest;
  constexpr std::int64_t files = 1500;
  manifest.tensors.push_back({"w", base::DType::i32, {files}, {}});
  for (std::int32_t file = 0; file < files; ++file) {
    base::Result<checkpoint::DataWriter> writer = checkpoint::DataWriter::begin(folder / ("many/rank" + std::to_string(file) + ".data"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer.value().write(&file, 4));
    base::Result<checkpoint::DataFile> written = writer.value().finish();
    ASSERT_TRUE(written);
    manifest.files.push_back(std::move(written).value());
    manifest.tensors[0].boxes.push_back({file, 0, shard::slice({files}, 0, {file, file + 1})});
  }
  ASSERT_TRUE(checkpoint::write_file(folder / "many/manifest", checkpoint::to_text(manifest)));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{100, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const base::Result<checkpoint::Found> found = checkpoint::find(folder / "many");
  std::vector<std::int32_t> numbers(files);
  base::Status loaded = base::Done{};
  if (found) {
    checkpoint::DataReader reader(folder / "many", found.value().manifest);
    loaded = checkpoint::load({{"w", base::DType::i32, {files}, shard::whole({files}), reinterpret_cast<std::byte*>(numbers.data())}}, found.value().manifest, reader);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(found) << found.error();
  ASSERT_TRUE(loaded) << loaded.error();
  for (std::int32_t at = 0; at < files; ++at) ASSERT_EQ(numbers[static_cast<std::size_t>(at)], at);
}

TEST(Damage, ByALinkThatLeadsElsewhereIsRefused) {
  const Folder folder;
  ASSERT_EQ(numbers_of(small({{"steps", "1"}, {"warmup-steps", "0"}, {"checkpoint", folder / "saved"}})).error, "");
  const std::string data = checkpoint::path_of_step(folder / "saved", 1) + "/rank0.data";
  fs::rename(data, folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", data);
  EXPECT_NE(said_by_a_loader(folder / "saved").find("cannot read " + data), std::string::npos);
}

}  // namespace
}  // namespace shardbook::tests
