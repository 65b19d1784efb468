// Phases and layers of a rank, and what each span is called.
#include "viewer/scene/bands.hpp"

#include "engine/base/check.hpp"
#include "tests/viewer_scene/support.hpp"
#include "viewer/scene/roles.hpp"

namespace shardbook::scene {
namespace {

struct LayerRun : Sketch {
  LayerRun() : Sketch(1) {}
  timeline::Detail part(const char* op, const char* part, int layer, const char* phase, int micro_batch = 0) {
    timeline::Detail made = detail(op, layer, phase);
    made.part = *part ? builder.intern(part) : 0;
    made.micro_batch = micro_batch;
    return made;
  }
};

// Two layers forward, then one back; the gather of layer 1 runs ahead beside layer 0.
Timeline two_layers() {
  LayerRun run;
  run.compute(0, 0, 10, run.part("embedding_forward", "token_embedding", -1, "forward"));
  run.collective(0, 5, 60, 0, run.part("all_gather", "fsdp_unit", 1, "forward"));
  run.compute(0, 10, 20, run.part("layer_norm_forward", "norm", 0, "forward"));
  run.compute(0, 20, 30, run.part("linear_forward", "qkv", 0, "forward"));
  run.compute(0, 35, 40, run.part("add_bias_residual", "", 0, "forward"));
  run.compute(0, 40, 42, run.part("layer_norm_forward", "norm", 0, "forward"));
  run.compute(0, 42, 50, run.part("linear_forward", "up", 0, "forward"));
  run.compute(0, 60, 90, run.part("linear_forward", "up", 1, "forward"));
  run.compute(0, 90, 120, run.part("linear_input_gradient", "up", 1, "backward"));
  run.compute(0, 120, 125, run.part("layer_norm_input_gradient", "norm", 1, "backward"));
  return run.done();
}

TEST(Bands, AreThePhasesAndLayersOfTheComputeStreamAlone) {
  const auto scene = scene_of(two_layers());
  const Bands& bands = scene->bands(0);
  const timeline::Strings& strings = scene->timeline().strings;
  ASSERT_EQ(bands.phases.size(), 2u);
  EXPECT_EQ(strings[bands.phases[0].name], "forward");
  EXPECT_EQ(bands.phases[0].time, (Interval{0, 90}));
  EXPECT_EQ(strings[bands.phases[1].name], "backward");
  EXPECT_EQ(bands.phases[1].time, (Interval{90, 125}));
  ASSERT_EQ(bands.layers.size(), 4u);
  EXPECT_EQ(strings[bands.layers[0].name], "token_embedding");
  EXPECT_EQ(bands.layers[0].layer, -1);
  EXPECT_EQ(bands.layers[1].layer, 0);
  EXPECT_EQ(bands.layers[1].time, (Interval{10, 50}));
  EXPECT_EQ(bands.layers[2].layer, 1);
  EXPECT_EQ(bands.layers[3].layer, 1);
  EXPECT_EQ(bands.layers[3].time, (Interval{90, 125}));
  EXPECT_FALSE(bands.has_micro_batches);
}

// Where nothing is computed between phases, what is sent says which it is: no stretch of a step stays blank.
TEST(Bands, PhasesGoOnWhereOnlyCommunicationRuns) {
  LayerRun run;
  run.collective(0, -30, 10, 0, run.part("all_gather", "fsdp_unit", 0, "forward"));
  run.compute(0, 0, 100, run.part("linear_forward", "qkv", 0, "forward"));
  run.compute(0, 100, 200, run.part("linear_input_gradient", "qkv", 0, "backward"));
  run.collective(0, 180, 260, 1, run.part("reduce_scatter", "fsdp_unit", 0, "backward"));
  run.collective(0, 255, 280, 2, run.part("all_reduce", "scalars", -1, "reduce"), timeline::CollectiveOp::all_reduce, 0, 33);
  run.compute(0, 290, 300, run.part("adamw", "", -1, "update"));
  const auto scene = scene_of(run.done());
  const Bands& bands = scene->bands(0);
  std::string said;
  for (const BandPiece& piece : bands.phases) {
    said += base::text(scene->timeline().strings[piece.name], " ", piece.time.start - bands.phases.front().time.start, "-", piece.time.end - bands.phases.front().time.start, ";");
  }
  EXPECT_EQ(said, "forward 0-130;backward 130-290;reduce 290-310;update 320-330;");
  for (const BandPiece& piece : bands.layers) EXPECT_NE(scene->timeline().strings[piece.phase], "reduce") << "layers are those of the compute stream";
}

// The norm before a block is the block's; what names none belongs to the one before it.
TEST(Bands, BlocksOfALayerAreAttentionAndMlp) {
  const auto scene = scene_of(two_layers());
  const std::vector<BandPiece> blocks = blocks_in(*scene, scene->bands(0), {12, 100}, 100);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_STREQ(blocks[0].block, "attention");
  EXPECT_EQ(blocks[0].time, (Interval{10, 40}));
  EXPECT_STREQ(blocks[1].block, "mlp");
  EXPECT_EQ(blocks[1].time, (Interval{40, 50}));
  EXPECT_EQ(blocks[1].layer, 0);
  EXPECT_EQ(blocks[2].layer, 1);
  EXPECT_STREQ(blocks[3].block, "mlp");
  EXPECT_EQ(blocks[3].time, (Interval{90, 125}));
  EXPECT_TRUE(blocks_in(*scene, scene->bands(0), {12, 100}, 3).empty()) << "more spans than may be looked at";
}

TEST(Bands, PiecesAscendAndDoNotOverlapInAnyRun) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    std::mt19937 random(seed);
    LayerRun run;
    Nanoseconds now = 0;
    for (int i = 0; i < 300; ++i) {
      const Nanoseconds end = now + static_cast<Nanoseconds>(random() % 50);
      run.compute(0, now, end, run.part("gemm", random() % 2 ? "qkv" : "", static_cast<int>(random() % 4) - 1, random() % 3 ? "forward" : "backward", static_cast<int>(random() % 2)));
      now = end + static_cast<Nanoseconds>(random() % 9);
    }
    const auto scene = scene_of(run.done());
    const Bands& bands = scene->bands(0);
    EXPECT_TRUE(bands.has_micro_batches);
    for (const auto* pieces : {&bands.phases, &bands.layers}) {
      for (std::size_t i = 0; i < pieces->size(); ++i) {
        EXPECT_LT((*pieces)[i].time.start, (*pieces)[i].time.end);
        if (i > 0) {
          EXPECT_LE((*pieces)[i - 1].time.end, (*pieces)[i].time.start);
        }
      }
    }
  }
}

TEST(Bands, OfATraceWithoutPhasesAreItsAnnotations) {
  Sketch sketch(1);
  sketch.compute(0, 0, 100);
  sketch.compute(0, 200, 300);
  const auto marks = sketch.builder.track(0, TrackKind::marks, 7, "stream 7");
  sketch.builder.add(marks, {.start = 0, .end = 150, .label = sketch.builder.intern("block 3"), .cls = Class::annotation});
  sketch.builder.add(marks, {.start = 10, .end = 50, .label = sketch.builder.intern("inner"), .cls = Class::annotation});
  sketch.builder.add(marks, {.start = 200, .end = 300, .label = sketch.builder.intern("block 4"), .cls = Class::annotation});
  const auto scene = scene_of(sketch.done());
  const Bands& bands = scene->bands(0);
  EXPECT_TRUE(bands.of_annotations);
  ASSERT_EQ(bands.phases.size(), 2u);
  EXPECT_EQ(scene->timeline().strings[bands.phases[1].name], "block 4");
  EXPECT_TRUE(scene->bands(5).empty()) << "there is no rank 5";
}

// --- Roles ----------------------------------------------------------------------------------------
std::string label_of(const char* op, const char* part, int layer) {
  Sketch sketch(1);
  timeline::Detail detail;
  if (*op != 0) detail.op = sketch.builder.intern(op);
  if (*part != 0) detail.part = sketch.builder.intern(part);
  detail.layer = layer;
  const auto span = sketch.compute(0, 0, 10, detail);
  const Timeline timeline = sketch.done();
  return role_label(timeline, sketch.at(span));
}

TEST(Roles, BeginWithThePartSayTheLayerLastAndNothingTwice) {
  EXPECT_EQ(label_of("linear_forward", "qkv", 7), "qkv · L7");
  EXPECT_EQ(label_of("linear_weight_gradient", "down", 3), "down weight gradient · L3");
  EXPECT_EQ(label_of("attention_scores", "attention", 0), "attention scores · L0");
  EXPECT_EQ(label_of("causal_softmax_forward", "attention", 0), "attention causal softmax · L0");
  EXPECT_EQ(label_of("layer_norm_forward", "norm", 1), "layer norm · L1");
  EXPECT_EQ(label_of("embedding_backward", "token_embedding", -1), "token embedding backward");
  EXPECT_EQ(label_of("gemm", "qkv", 7), "qkv gemm · L7");
  EXPECT_EQ(label_of("norm", "norm", 0), "norm · L0");
  EXPECT_EQ(label_of("adam_w", "", -1), "adam_w");
  EXPECT_EQ(label_of("all_gather", "fsdp_unit", 3), "all_gather · L3");
  EXPECT_EQ(label_of("all_gather", "fsdp_unit", -1), "all_gather · root unit");
  EXPECT_EQ(label_of("all_gather", "fsdp_unit 2-3", 2), "all_gather · L2-3");
}

TEST(Roles, OfAForeignTraceAreItsOwnLabels) { EXPECT_EQ(label_of("", "qkv", 7), "gemm"); }

TEST(Roles, OfASumIsWhatItAwaited) {
  LayerRun run;
  const auto projection = run.compute(0, 0, 10, run.part("linear_forward", "projection", 4, "forward"));
  const auto first = run.collective(0, 10, 20, 0, run.part("all_reduce", "", 4, "forward"), timeline::CollectiveOp::all_reduce);
  const auto down = run.compute(0, 20, 30, run.part("linear_forward", "down", 4, "forward"));
  const auto second = run.collective(0, 30, 40, 1, run.part("all_reduce", "", 4, "forward"), timeline::CollectiveOp::all_reduce);
  const auto third = run.collective(0, 40, 50, 2, run.part("all_reduce", "", 4, "forward"), timeline::CollectiveOp::all_reduce);
  const auto named = run.collective(0, 50, 60, 3, run.part("all_reduce", "cross_entropy", -1, "forward"), timeline::CollectiveOp::all_reduce);
  run.builder.add_edge(projection, first, timeline::EdgeKind::event);
  run.builder.add_edge(down, second, timeline::EdgeKind::event);
  const Timeline timeline = run.done();
  EXPECT_EQ(role_label(timeline, run.at(first)), "attention sum · L4");
  EXPECT_EQ(role_label(timeline, run.at(second)), "mlp sum · L4");
  EXPECT_EQ(role_label(timeline, run.at(third)), "all_reduce · L4") << "nothing is recorded of what it sums";
  EXPECT_EQ(role_label(timeline, run.at(named)), "cross entropy sum");
  EXPECT_EQ(summed_span(timeline, run.at(second)), run.at(down));
  EXPECT_FALSE(summed_span(timeline, run.at(third)).valid());
}

TEST(Labels, LoseTheirLayerFirstAndBecomeAShorterWordWhereThereIsNoRoom) {
  const auto within = [](std::size_t letters) { return [letters](std::string_view form) { return form.size() <= letters; }; };
  EXPECT_EQ(fitted_label("all_gather · L3", within(99)), "all_gather · L3");
  EXPECT_EQ(fitted_label("all_gather · L3", within(15)), "all_gather");
  EXPECT_EQ(fitted_label("all_gather · root unit", within(12)), "all_gather");
  EXPECT_EQ(fitted_label("all_gather · L3", within(9)), "gather");
  EXPECT_EQ(fitted_label("reduce_scatter · L12", within(9)), "scatter");
  EXPECT_EQ(fitted_label("qkv weight gradient · L3", within(9)), "qkv weight gradient") << "the role comes first, and is cut";
}

}  // namespace
}  // namespace shardbook::scene
