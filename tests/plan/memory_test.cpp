// Formulas that print what they computed, and what they come to for sizes that can be done by hand.
#include <gtest/gtest.h>

#include "engine/plan/memory.hpp"

namespace shardbook::plan {
namespace {

TEST(Quantities, ReadAsTheyWereComputed) {
  const Quantity L{"L", 24}, D{"D", 2048}, F{"F", 8192}, two{"2 B", 2};
  const Quantity all = L * (3 * D + F) * two;
  EXPECT_EQ(all.text(), "L · (3 D + F) · 2 B");
  EXPECT_EQ(all.value(), 24 * (3 * 2048 + 8192) * 2);
  EXPECT_EQ((all / Quantity{"n", 8}).text(), "L · (3 D + F) · 2 B / n");
  EXPECT_EQ((all / Quantity{"n", 8}).value(), all.value() / 8);
  EXPECT_EQ(least(2, L).text(), "min(2, L)");
  EXPECT_EQ(least(2, L).value(), 2);
  EXPECT_EQ((1 * D + 0).text(), "D");
}

// GPT-2 of 2 blocks of width 64 over 4 ranks: sizes that divide, so that nothing is padded.
Shapes small() {
  Shapes shapes;
  shapes.layers = 2;
  shapes.width = 64;
  shapes.heads = shapes.key_value_heads = 4;
  shapes.head_dim = 16;
  shapes.ffn_width = 256;
  shapes.vocabulary = 256;
  shapes.positions = 32;
  shapes.sequences = 2;
  shapes.fsdp = 4;
  return shapes;
}

base::Bytes bytes_of(const Holding& holding, Held held) {
  base::Bytes bytes = 0;
  for (const HeldLine& line : holding.lines) bytes += line.held == held ? line.bytes : 0;
  return bytes;
}

constexpr std::int64_t block = 12 * 64 * 64 + 13 * 64, embedding = 256 * 64 + 32 * 64, head = 256 * 64 + 2 * 64;
constexpr std::int64_t padded_block = 50176, padded_embedding = embedding, padded_head = 16640;   // to multiples of 4 · 64

TEST(Holding, OfParametersGradientsAndTheOptimizerIsTwelveDSquaredABlock) {
  static_assert(padded_block - block >= 0 && padded_block - block < 256 && padded_block % 256 == 0);
  static_assert(padded_head - head >= 0 && padded_head - head < 256 && padded_head % 256 == 0 && embedding % 256 == 0);
  const std::int64_t all = 2 * padded_block + padded_embedding + padded_head;
  const Holding zero_3 = holding_of(small());
  EXPECT_EQ(bytes_of(zero_3, Held::parameter_shards), 2 * all / 4);
  EXPECT_EQ(bytes_of(zero_3, Held::whole_blocks), 2 * 2 * padded_block);
  EXPECT_EQ(bytes_of(zero_3, Held::whole_ends), 2 * (padded_embedding + padded_head));
  EXPECT_EQ(bytes_of(zero_3, Held::gradient_sums), 4 * all / 4);
  EXPECT_EQ(bytes_of(zero_3, Held::block_gradients), 4 * 2 * padded_block);
  EXPECT_EQ(zero_3.bytes(program::MemoryKind::optimizer), 12 * all / 4);
  // Data parallel: 18 bytes a parameter, and nothing else of them
  Shapes ddp = small();
  ddp.fsdp = 1;
  ddp.dp = 4;
  const Holding replica = holding_of(ddp);
  const std::int64_t whole = 2 * block + embedding + head;
  EXPECT_EQ(whole % 64, 0);
  EXPECT_EQ(replica.bytes(program::MemoryKind::parameter) + replica.bytes(program::MemoryKind::gradient) + replica.bytes(program::MemoryKind::optimizer), 18 * whole);
  EXPECT_EQ(replica.bytes(program::MemoryKind::gathered), 0);
}

TEST(Holding, OfGradientsThatCrossInBf16IsOneRoundedUnitAndItsShardBesideWhatIsSummedInF32) {
  for (int micro_batches : {1, 2}) {
    Shapes shapes = small();
    shapes.micro_batches = micro_batches;
    const Holding wide = holding_of(shapes);
    shapes.reduce = 2;
    const Holding narrow = holding_of(shapes);
    EXPECT_EQ(bytes_of(narrow, Held::rounded_gradient), 2 * padded_block);   // the largest unit of the three
    EXPECT_EQ(bytes_of(narrow, Held::staged_gradient), 2 * padded_block / 4);
    EXPECT_EQ(bytes_of(wide, Held::rounded_gradient), 0);
    EXPECT_EQ(bytes_of(wide, Held::staged_gradient), micro_batches > 1 ? 4 * padded_block / 4 : 0);
    EXPECT_EQ(narrow.all() - bytes_of(narrow, Held::rounded_gradient) - bytes_of(narrow, Held::staged_gradient), wide.all() - bytes_of(wide, Held::staged_gradient));
    // Alone nothing crosses
    shapes.fsdp = 1;
    EXPECT_EQ(bytes_of(holding_of(shapes), Held::rounded_gradient), 0);
  }
}

TEST(Holding, OfStatesInHostMemoryIsThreePiecesOnTheDevice) {
  Shapes shapes = small();
  const Holding here = holding_of(shapes);
  shapes.states_on_host = true;
  shapes.piece = std::int64_t{1} << 24;
  shapes.slots = 3;
  const Holding there = holding_of(shapes);
  EXPECT_EQ(there.on_host(), here.bytes(program::MemoryKind::optimizer));
  EXPECT_EQ(bytes_of(there, Held::host_moments), 2 * bytes_of(there, Held::host_masters));
  EXPECT_EQ(there.bytes(program::MemoryKind::optimizer), 3 * 12 * padded_block / 4);   // the largest shard of the three
  EXPECT_EQ(here.on_host(), 0);
  EXPECT_EQ(here.all() - there.all(), here.bytes(program::MemoryKind::optimizer) - there.bytes(program::MemoryKind::optimizer));
  // What is large crosses in pieces of 2²⁴ numbers
  shapes.width = 4096;
  shapes.heads = shapes.key_value_heads = 32;
  shapes.head_dim = 128;
  shapes.ffn_width = 16384;
  EXPECT_EQ(holding_of(shapes).bytes(program::MemoryKind::optimizer), std::int64_t{36} << 24);
  // Two units of one piece each
  const std::int64_t piece = shapes.piece;
  shapes = small();
  shapes.piece = piece;
  shapes.slots = 3;
  shapes.states_on_host = shapes.tied = true;
  shapes.blocks_a_unit = 2;
  EXPECT_EQ(holding_of(shapes).bytes(program::MemoryKind::optimizer), 2 * 12 * (2 * block + 256 - 2 * block % 256) / 4);
}

TEST(Holding, OfUnitsOfSeveralBlocksIsMoreAtOnce) {
  Shapes shapes = small();
  shapes.layers = 4;
  const std::int64_t two_blocks = 2 * block + 256 - 2 * block % 256;   // fewer numbers of padding than two units have
  static_assert(2 * block % 256 != 0);
  const Holding one = holding_of(shapes);
  EXPECT_EQ(bytes_of(one, Held::whole_blocks), 2 * 2 * padded_block);
  EXPECT_EQ(bytes_of(one, Held::block_gradients), 4 * 2 * padded_block);
  shapes.blocks_a_unit = 2;
  const Holding two = holding_of(shapes);
  EXPECT_EQ(bytes_of(two, Held::whole_blocks), 2 * 2 * two_blocks);
  EXPECT_EQ(bytes_of(two, Held::block_gradients), 4 * 2 * two_blocks);
  EXPECT_EQ(bytes_of(two, Held::parameter_shards), 2 * (2 * two_blocks + padded_embedding + padded_head) / 4);
  // All in one: whole, and its gradient whole, once
  shapes.blocks_a_unit = 4;
  static_assert(4 * block % 256 == 0);
  EXPECT_EQ(bytes_of(holding_of(shapes), Held::whole_blocks), 2 * 4 * block);
  EXPECT_EQ(bytes_of(holding_of(shapes), Held::block_gradients), 4 * 4 * block);
}

TEST(Holding, OfUnitsThatDoNotComeOutEvenIsThatOfALastOneThatIsSmaller) {
  Shapes shapes = small();
  shapes.layers = 5;
  shapes.blocks_a_unit = 2;
  shapes.near = 2;
  const std::int64_t two_blocks = 2 * block + 256 - 2 * block % 256, blocks = 2 * two_blocks + padded_block;
  const Holding two = holding_of(shapes);
  EXPECT_EQ(bytes_of(two, Held::parameter_shards), 2 * (blocks + padded_embedding + padded_head) / 4);
  // Buffers are as large as the largest that uses them; of what is kept each unit has its own
  EXPECT_EQ(bytes_of(two, Held::whole_blocks), 2 * 2 * two_blocks);
  EXPECT_EQ(bytes_of(two, Held::block_gradients), 4 * 2 * two_blocks);
  EXPECT_EQ(bytes_of(two, Held::kept_parts), 2 * blocks / 2);
  shapes.reshard = false;
  EXPECT_EQ(bytes_of(holding_of(shapes), Held::whole_blocks), 2 * blocks);
  // By size: so many blocks as have enough numbers, or all there are
  Shapes by_size = shapes;
  by_size.blocks_a_unit = 1;
  for (const std::int64_t numbers : {block + 1, 2 * block}) {
    by_size.numbers_a_unit = numbers;
    EXPECT_EQ(holding_of(by_size).all(), holding_of(shapes).all()) << numbers;
  }
  by_size.numbers_a_unit = 100 * block;
  shapes.blocks_a_unit = 5;
  EXPECT_EQ(holding_of(by_size).all(), holding_of(shapes).all());
}

// Whatever is whole at a time: of each unit a part more.
TEST(Holding, OfPartsThatAreKeptIsAPartOfAllBlocks) {
  Shapes shapes = small();
  const Holding all = holding_of(shapes);
  EXPECT_EQ(bytes_of(all, Held::kept_parts), 0);
  shapes.near = 2;
  const Holding near = holding_of(shapes);
  EXPECT_EQ(bytes_of(near, Held::kept_parts), 2 * 2 * padded_block / 2);
  EXPECT_EQ(near.all() - all.all(), 2 * 2 * padded_block / 2);
  shapes.reshard = false;   // kept whole
  EXPECT_EQ(bytes_of(holding_of(shapes), Held::kept_parts), 0);
}

// Korthikanti et al. 2022, §4.1: 34 s b h + 5 a s² b bytes a layer, of which dropout, which here keeps nothing, has two masks of
// s b h and, of the square, a mask of one byte and an output of two. Norms here keep two numbers a token besides.
TEST(Holding, OfABlocksActivationsIsThatOfKorthikantiWithoutDropout) {
  Shapes shapes = small();
  const std::int64_t N = 64, D = 64, square = 2 * 4 * 32 * 32;
  auto kept = [](const Shapes& of) {
    const Holding holding = holding_of(of);
    return bytes_of(holding, Held::layer_inputs) + bytes_of(holding, Held::attention_kept) + bytes_of(holding, Held::block_kept);
  };
  // Cut over t ranks: 10 + 24 / t (of which 2 are masks of what is not cut), and with the rows between the linears cut
  // as well all of it is divided by t (§4.2); so are the numbers of the norms
  Shapes cut = shapes;
  cut.tp = 2;
  const auto block_of = [&](Shapes of) {
    of.layers = 3;
    const base::Bytes three = kept(of);
    of.layers = 2;
    return three - kept(of);
  };
  EXPECT_EQ(block_of(cut), (10 - 2 + 24 / 2) * N * D + (5 - 3) * square / 2 + 2 * 2 * 4 * N);
  cut.rows_divided_by = 2;
  EXPECT_EQ(2 * block_of(cut), block_of(shapes));
  const base::Bytes two = kept(shapes);
  shapes.layers = 3;
  EXPECT_EQ(kept(shapes) - two, (34 - 2) * N * D + (5 - 3) * square + 2 * 2 * 4 * N);
  // Without the square (§5), a further block costs 34 s b h, whatever the sequence; all layers share one square more
  Shapes selective = shapes, whole = shapes;
  selective.recompute_attention = true;
  EXPECT_EQ(block_of(selective), (34 - 2) * N * D + 2 * 2 * 4 * N);
  EXPECT_EQ(bytes_of(holding_of(selective), Held::attention_workspace) - bytes_of(holding_of(whole), Held::attention_workspace), 2 * square);
  // Without what costs no matmul, a further block costs 16 D numbers less 6 D: outputs of two norms, and of the activation, 4 D wide
  Shapes cheap = whole;
  cheap.remake = true;
  EXPECT_EQ(block_of(whole) - block_of(cheap), 2 * (2 * D + 4 * D) * N);
  // Computed again, a further block costs its input
  shapes.recompute = true;
  const base::Bytes three_again = kept(shapes);
  shapes.layers = 4;
  EXPECT_EQ(kept(shapes) - three_again, 2 * N * D);
}

TEST(Holding, OfAStageOfZeroIsWhatIsNotCut) {
  const std::int64_t all = 2 * padded_block + padded_embedding + padded_head;
  Shapes shapes = small();
  shapes.micro_batches = 2;
  shapes.reshard = false;
  const Holding zero_2 = holding_of(shapes);
  EXPECT_EQ(zero_2.bytes(program::MemoryKind::gathered), 2 * all);
  EXPECT_EQ(bytes_of(zero_2, Held::staged_gradient), padded_block);
  shapes.reduce_each = false;
  const Holding zero_1 = holding_of(shapes);
  EXPECT_EQ(bytes_of(zero_1, Held::block_gradients) + bytes_of(zero_1, Held::end_gradients), 4 * all);
  EXPECT_EQ(bytes_of(zero_1, Held::staged_gradient), 0);
}

}  // namespace
}  // namespace shardbook::plan
