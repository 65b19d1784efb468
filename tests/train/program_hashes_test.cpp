// The programs of many layouts, as hashes without source lines: what a step issues may move to another file, but it
// stays what it was unless somebody means to change it. data/program_hashes.txt was written by the engine of commit
// 8abc1ee, whose step was made of loops and hooks. Since then 144 of its 1080 entries have changed, on purpose: where
// prefetch reaches beyond the blocks of the model, only as many gather slots are made as the plan needs, so the same
// gathers take other slots. To write it anew, run this test with SHARDBOOK_WRITE_HASHES=FILE and say in the commit
// which ops changed and why.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "engine/comm/meta/meta.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {
namespace {

// The first step of a rank, issued on no device at all.
std::uint64_t hash_of_rank(const config::RunConfig& config, int rank) {
  device::MetaDevice device(rank);
  auto backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
  trainer.issue(0, true);
  return program::structure_hash(*device.recorder().programs()[0], device.recorder().catalogue());
}

// A line for each model, layout and number of micro-batches; in it, for each schedule, the first rank's program and
// the last one's.
std::string all_hashes() {
  std::ostringstream out;
  for (int layers : {2, 5}) {
    for (bool tied : {true, false}) {
      for (int tp : {1, 2, 4}) {
        for (int fsdp : {1, 2, 4}) {
          for (int micro_batches : {1, 2, 4}) {
            out << std::dec << "layers " << layers << (tied ? " tied" : " untied") << " tp " << tp << " fsdp " << fsdp << " micro-batches " << micro_batches << ":";
            for (int prefetch : {0, 1, 2, 3, 7}) {
              for (bool reshard : {true, false}) {
                config::RunConfig config = small_config(tp, fsdp);
                config.model.layers = layers;
                config.model.tied = tied;
                config.micro_batches = micro_batches;
                config.prefetch = prefetch;
                config.reshard = reshard;
                const std::uint64_t first = hash_of_rank(config, 0), last = hash_of_rank(config, config.ranks - 1);
                out << ' ' << std::hex << std::setw(8) << std::setfill('0') << static_cast<std::uint32_t>(first ^ first >> 32)
                    << '.' << std::setw(8) << static_cast<std::uint32_t>(last ^ last >> 32);
              }
            }
            out << '\n';
          }
        }
      }
    }
  }
  return out.str();
}

TEST(Program, OfEachOf1080LayoutsIsWhatItWas) {
  const std::string now = all_hashes();
  if (const char* path = std::getenv("SHARDBOOK_WRITE_HASHES")) std::ofstream(path) << now;
  std::ifstream file(SHARDBOOK_SOURCE_DIR "/tests/train/data/program_hashes.txt");
  std::istringstream computed(now);
  std::string was, is;
  int lines = 0;
  while (std::getline(file, was)) {
    ASSERT_TRUE(std::getline(computed, is));
    EXPECT_EQ(is, was);
    ++lines;
  }
  EXPECT_EQ(lines, 108);
}

}  // namespace
}  // namespace shardbook::tests
