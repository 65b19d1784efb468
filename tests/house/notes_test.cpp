// Notes, labs' texts and README say nothing that is not so, and rooms stand as the house has them, as far as a program can tell.
//
// Each rule is run on the project, and each is shown to fail on a small one that breaks it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/house/markdown.hpp"
#include "tests/house/project.hpp"

namespace shardbook::tests {
namespace {

TEST(Notes, AreThere) { EXPECT_GE(project().pages().size(), 25u); }

TEST(Links, LeadSomewhere) {
  EXPECT_EQ(listed(broken_links(project())), "");

  EXPECT_EQ(broken_links(page("# P\n[a](nowhere.md)")).size(), 1u);
  EXPECT_EQ(broken_links(page("# P\n[a](../../above.md)")).size(), 1u);
  EXPECT_EQ(broken_links(page("# P\n![picture](none.png)")).size(), 1u);
  EXPECT_EQ(broken_links(page("# P\n[a](#gone)")).size(), 1u);
  EXPECT_EQ(broken_links(page("# P\n[a](page.md#gone)")).size(), 1u);
  EXPECT_EQ(broken_links(page("# P\n## When it pays: d\n<a id=\"x\"></a>\n[a](#when-it-pays-d) [b](page.md#x) [`c`](page.md)")).size(), 0u);
  EXPECT_EQ(broken_links(page("# P\n`[a](nowhere.md)`\n```text\n[a](nowhere.md)\n```\n[web](https://example.org/x#y)")).size(), 0u);
}

TEST(Links, OfTheViewerLeadSomewhereToo) {
  auto problems = [](const std::string& target) {
    Tree tree = page("# P\n[see](" + target + ")");
    tree.add("experiments/captured/run.tar.gz", "");
    tree.add("labs/02_cut/text.md", "# L\n<a id=\"see\"></a>\n");
    tree.add("notes/03_theory.md", "# N\n## The cost\n");
    tree.add("notes/rooms/fsdp.md", "# R\n");
    tree.add("engine/fsdp/schedule.cpp", "//@ fsdp.use: Use it.\nuse();\n//@end\n");
    return broken_links(tree).size();
  };
  for (const char* right : {"trace:experiments/captured/run.tar.gz", "trace:experiments/captured/run.tar.gz?sel=next-exposed",
                            "trace:?t=1.2ms..1.9ms&open=r0&pin=r0.s20&pin=r1.exposed&sel=r0.s20/117", "lab:02", "lab:02#see", "lab:02_cut",
                            "note:03#the-cost", "room:fsdp", "span:fsdp.use", "source:engine/fsdp/schedule.cpp:3",
                            "source:engine/fsdp/schedule.cpp"}) {
    EXPECT_EQ(problems(right), 0u) << right;
  }
  for (const char* wrong : {"trace:experiments/captured/gone.tar.gz", "trace:experiments/02/runs/mine", "trace:?t=1.2..1.9", "trace:?zoom=2",
                            "trace:?sel=first", "lab:07", "lab:0", "lab:02#gone", "note:04", "note:03#gone", "note:rooms/fsdp", "room:cellar",
                            "span:fsdp.gone", "source:engine/fsdp/gone.cpp", "source:engine/fsdp/schedule.cpp:4",
                            "source:engine/fsdp/schedule.cpp:0"}) {
    EXPECT_EQ(problems(wrong), 1u) << wrong;
  }
}

TEST(Links, OfTheViewerStandBesideWhatTheWebCanFollow) {
  EXPECT_EQ(listed(links_for_the_viewer_alone(project())), "");

  EXPECT_EQ(links_for_the_viewer_alone(page("# P\nLook: [see](trace:a.tar.gz), or `./shardbook view a.tar.gz`.")).size(), 0u);
  EXPECT_EQ(links_for_the_viewer_alone(page("# P\n[note](note:03), [plain](03_theory.md)")).size(), 0u);
  EXPECT_EQ(links_for_the_viewer_alone(page("# P\n[see](trace:a.tar.gz)\n`./shardbook view a.tar.gz`")).size(), 1u) << "in another line";
  EXPECT_EQ(links_for_the_viewer_alone(page("# P\n[see](trace:a.tar.gz) [note](note:03)")).size(), 2u);
}

TEST(Spans, HaveOnePlaceAndAreWhatNotesWeaveIn) {
  EXPECT_EQ(listed(broken_spans(project())), "");

  const std::string marked = "//@ fsdp.use: Use it.\n  //@ fsdp.inner: Within.\n  //@end\n//@end\n";
  Tree tree;
  tree.add("engine/fsdp/schedule.cpp", marked);
  tree.add("notes/page.md", "# P\n[code](../engine/fsdp/schedule.cpp)\n```span\nfsdp.inner\n```\n");
  EXPECT_EQ(listed(broken_spans(tree)), "");
  tree.add("notes/page.md", "# P\n```span\nfsdp.inner\n```\n[code](../engine/fsdp/schedule.cpp)\n");
  EXPECT_EQ(broken_spans(tree).size(), 1u) << "the link comes too late";
  tree.add("notes/page.md", "# P\n[code](../engine/fsdp/schedule.cpp)\n```span\nfsdp.gone\n```\n");
  EXPECT_EQ(broken_spans(tree).size(), 1u);
  tree.add("notes/page.md", "# P\n");
  tree.add("engine/fsdp/layout.cpp", marked);
  EXPECT_EQ(broken_spans(tree).size(), 2u) << "two names, two places each";
  tree.add("engine/fsdp/layout.cpp", "//@ fsdp.open: Not closed.\n");
  EXPECT_EQ(broken_spans(tree).size(), 1u);
  tree.add("engine/fsdp/layout.cpp", "//@end\n");
  EXPECT_EQ(broken_spans(tree).size(), 1u);
  tree.add("engine/fsdp/layout.cpp", "//@ train.step: In another room.\n//@end\n");
  EXPECT_EQ(broken_spans(tree).size(), 1u);
  tree.add("engine/fsdp/layout.cpp", "//@ fsdp.untitled\n//@end\n");
  EXPECT_EQ(broken_spans(tree).size(), 2u) << "no title, so it opens nothing";
}

TEST(Rooms, HaveAPageEach) {
  EXPECT_EQ(listed(missing_rooms(project())), "");

  Tree tree;
  tree.add("engine/mesh/CMakeLists.txt", "shardbook_room(mesh FLOOR 1 USES base SOURCES mesh.cpp)");
  EXPECT_EQ(missing_rooms(tree).size(), 1u);
  tree.add("notes/rooms/mesh.md", "# mesh: who?\n\nFloor 1, [engine/mesh](../../engine/mesh).\n");
  EXPECT_EQ(missing_rooms(tree).size(), 1u) << "not in the index";
  tree.add("notes/README.md", "# N\n| 1 | [mesh](rooms/mesh.md) |\n");
  EXPECT_EQ(listed(missing_rooms(tree)), "");
  tree.add("notes/README.md", "# N\n| 1 | |\n| 2 | [mesh](rooms/mesh.md) |\n");
  EXPECT_EQ(missing_rooms(tree).size(), 1u) << "on the wrong floor of the index";
  tree.add("notes/README.md", "# N\n| 1 | [mesh](rooms/mesh.md) |\n");
  tree.add("notes/rooms/mesh.md", "# mesh: who?\n\nFloor 2, [engine/mesh](../../engine/mesh).\n");
  EXPECT_EQ(missing_rooms(tree).size(), 1u) << "on the wrong floor";
  tree.add("notes/rooms/mesh.md", "# mesh: who?\n\nFloor 1, [engine/mesh](../../engine/mesh).\n");
  tree.add("notes/rooms/cellar.md", "# cellar: what?\n\nFloor 0, [engine/cellar](../../engine/cellar).\n");
  EXPECT_EQ(missing_rooms(tree).size(), 1u) << "a page without a room";
}

TEST(Rooms, OfTheViewerHaveAPageEachToo) {
  Tree tree;
  tree.add("viewer/scene/CMakeLists.txt", "shardbook_room(viewer_scene FLOOR 4 USES base SOURCES scene.cpp)");
  tree.add("notes/README.md", "# N\n| 4 | [viewer_scene](rooms/viewer_scene.md) |\n");
  EXPECT_EQ(missing_rooms(tree).size(), 1u);
  tree.add("notes/rooms/viewer_scene.md", "# viewer_scene: what?\n\nFloor 4, [viewer/scene](../../viewer/scene).\n");
  EXPECT_EQ(listed(missing_rooms(tree)), "");
  tree.add("viewer/scene/CMakeLists.txt", "shardbook_room(scene FLOOR 4 USES base SOURCES scene.cpp)");
  EXPECT_FALSE(missing_rooms(tree).empty()) << "not named by its folder";
}

TEST(Rooms, IncludeOnlyWhatStandsBelow) {
  EXPECT_EQ(listed(upward_includes(project())), "");

  Tree tree;
  tree.add("engine/base/CMakeLists.txt", "shardbook_room(base FLOOR 0 SOURCES base.cpp)");
  tree.add("engine/mesh/CMakeLists.txt", "shardbook_room(mesh FLOOR 1 USES base SOURCES mesh.cpp)");
  tree.add("engine/config/CMakeLists.txt", "shardbook_room(config FLOOR 1 SOURCES config.cpp)");
  tree.add("engine/mesh/mesh.cpp", "#include <vector>\n#include \"engine/mesh/mesh.hpp\"\n#include \"engine/base/check.hpp\"\n");
  EXPECT_EQ(listed(upward_includes(tree)), "");
  tree.add("engine/base/base.cpp", "#include \"engine/mesh/mesh.hpp\"\n");
  EXPECT_EQ(upward_includes(tree).size(), 1u) << "upward";
  tree.add("engine/base/base.cpp", "");
  tree.add("engine/mesh/mesh.cpp", "#include \"engine/config/config.hpp\"\n");
  EXPECT_EQ(upward_includes(tree).size(), 1u) << "sideways";
  tree.add("engine/mesh/mesh.cpp", "");
  tree.add("engine/config/CMakeLists.txt", "shardbook_room(config FLOOR 1 USES mesh SOURCES config.cpp)");
  EXPECT_EQ(upward_includes(tree).size(), 1u) << "two rooms of one floor";
}

TEST(Rooms, OfTheViewerUseThePureOnesAndTheEngineUsesNoneOfThem) {
  auto problems = [](const std::string& path, const std::string& content) {
    Tree tree;
    tree.add("engine/base/CMakeLists.txt", "shardbook_room(base FLOOR 0 SOURCES base.cpp)");
    tree.add("engine/device/CMakeLists.txt", "shardbook_room(device FLOOR 3 USES base SOURCES device.cpp)");
    tree.add("engine/cli/CMakeLists.txt", "shardbook_room(cli FLOOR 10 USES base device SOURCES cli.cpp)");
    tree.add("viewer/scene/CMakeLists.txt", "shardbook_room(viewer_scene FLOOR 4 USES base\n  SOURCES scene.cpp)");
    tree.add("viewer/ui/CMakeLists.txt", "if(X)\n  return()\nendif()\nshardbook_room(viewer_ui FLOOR 5 USES base viewer_scene\n  SOURCES ui.cpp)");
    tree.add(path, content);
    return upward_includes(tree).size();
  };
  EXPECT_EQ(problems("viewer/ui/ui.cpp", "#include <imgui.h>\n#include \"viewer/scene/scene.hpp\"\n#include \"engine/base/result.hpp\"\n"), 0u);
  EXPECT_EQ(problems("viewer/scene/scene.cpp", "#include \"viewer/ui/ui.hpp\"\n"), 1u) << "upward";
  EXPECT_EQ(problems("viewer/scene/scene.cpp", "#include \"engine/device/device.hpp\"\n"), 1u) << "not pure";
  EXPECT_EQ(problems("engine/cli/cli.cpp", "#include \"viewer/scene/scene.hpp\"\n"), 1u) << "from the engine";
  EXPECT_EQ(problems("engine/cli/CMakeLists.txt", "shardbook_room(cli FLOOR 10 USES base viewer_scene SOURCES cli.cpp)"), 1u);
  EXPECT_EQ(problems("viewer/scene/CMakeLists.txt", "shardbook_room(viewer_scene FLOOR 4 USES base device SOURCES scene.cpp)"), 1u);
}

TEST(TreeOfTheProject, LeavesOutWhatGitIgnores) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / ("shardbook_house_tree_" + std::to_string(::getpid()));
  std::filesystem::remove_all(root);
  auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  put(".gitignore", "# what is made\n/build/\n/experiments/*/runs/\n*.tmp\n");
  put("tests/mermaid/.gitignore", "node_modules/\n");
  put("README.md", "# R\n");
  put("tests/mermaid/README.md", "# M\n");
  put("tests/mermaid/node_modules/a/README.md", "no title\n");
  put("build/page.md", "no title\n");
  put("notes/build/page.md", "# P\n");
  put("experiments/02/runs/mine/page.md", "no title\n");
  put("experiments/02/README.md", "# E\n");
  put("page.tmp", "");
  put(".hidden/page.md", "no title\n");

  const Tree tree = read_tree(root.string());
  EXPECT_EQ(tree.pages(), (std::vector<std::string>{"README.md", "experiments/02/README.md", "notes/build/page.md", "tests/mermaid/README.md"}));
  EXPECT_FALSE(tree.paths.contains("build"));
  EXPECT_FALSE(tree.paths.contains("page.tmp"));
  EXPECT_TRUE(tree.paths.contains("experiments/02"));
  std::filesystem::remove_all(root);
}

TEST(Map, ShowsTheArrowsThatThereAre) {
  EXPECT_EQ(listed(false_arrows(project())), "");

  Tree tree;
  tree.add("engine/mesh/CMakeLists.txt", "shardbook_room(mesh FLOOR 1 USES base\n  SOURCES mesh.cpp)");
  tree.add("engine/comm/CMakeLists.txt", "shardbook_room(comm FLOOR 5\n USES base mesh\n SOURCES comm.cpp)");
  tree.add("notes/map.md", "# M\n```mermaid\nflowchart TB\n  comm --> mesh\n```\n");
  EXPECT_EQ(listed(false_arrows(tree)), "");
  tree.add("notes/map.md", "# M\n```mermaid\nflowchart TB\n  mesh --> comm\n```\n");
  EXPECT_EQ(false_arrows(tree).size(), 1u);
  tree.add("notes/map.md", "# M\n```mermaid\nflowchart TB\n  mesh --> base\n```\n");
  EXPECT_EQ(false_arrows(tree).size(), 1u) << "comm is missing";
  tree.add("notes/map.md", "# M\n");
  EXPECT_EQ(false_arrows(tree).size(), 1u);
  tree.add("viewer/scene/CMakeLists.txt", "shardbook_room(viewer_scene FLOOR 4 USES mesh SOURCES scene.cpp)");
  const std::string engine = "# M\n```mermaid\nflowchart TB\n  comm --> mesh\n```\n";
  tree.add("notes/map.md", engine);
  EXPECT_EQ(false_arrows(tree).size(), 1u) << "the viewer's room is missing";
  tree.add("notes/map.md", engine + "```mermaid\nflowchart TB\n  viewer_scene --> mesh\n```\n");
  EXPECT_EQ(listed(false_arrows(tree)), "");
}

TEST(Fences, AreClosedAndDiagramsHaveAKind) {
  EXPECT_EQ(listed(broken_fences(project())), "");

  EXPECT_EQ(broken_fences(page("# P\n```text\nopen")).size(), 1u);
  EXPECT_EQ(broken_fences(page("# P\n```mermaid\nflowchrat TB\n a --> b\n```")).size(), 1u);
  EXPECT_EQ(broken_fences(page("# P\n```mermaid\nflowchart TB\n```")).size(), 1u);
  EXPECT_EQ(broken_fences(page("# P\n```mermaid\nsequenceDiagram\n A->>B: hello\n```")).size(), 0u);
}

TEST(Commands, ExistWithTheirOptionsLabsAndNotes) {
  EXPECT_EQ(listed(unknown_commands(project())), "");

  auto problems = [](const std::string& text) {
    Tree tree = page(text);
    tree.add("engine/cli/cli.cpp", "{\"run\"} {\"read\"} {\"show\"} {\"step\"}");
    tree.add("labs/02_tensor_parallel/text.md", "# T\n");
    tree.add("notes/03_theory.md", "# T\n");
    tree.options = {"tp"};
    return unknown_commands(tree).size();
  };
  EXPECT_EQ(problems("# P\n```sh\n./shardbook run 02 --tp 2\n./shardbook read 03 | less\n```\n`./shardbook show DIR --step 2`"), 0u);
  EXPECT_EQ(problems("# P\n`./shardbook runn 02`"), 1u);
  EXPECT_EQ(problems("# P\n```sh\ntorchrun --nproc-per-node 2 ./shardbook run 02 --tq 2\n```"), 1u);
  EXPECT_EQ(problems("# P\n`./shardbook run 07`"), 1u);
  EXPECT_EQ(problems("# P\n`./shardbook read 09`"), 1u);
  EXPECT_EQ(problems("# P\n```text\n./shardbook quoted output\n```"), 0u);
}

TEST(NamedTests, AreInTheFileThatIsLinked) {
  EXPECT_EQ(listed(missing_tests(project())), "");

  Tree tree;
  tree.add("tests/mesh/mesh_test.cpp", "TEST(Mesh, Holds) {}\nTEST_P(Axes,\n  Cover) {}");
  tree.add("notes/page.md", "# P\n[`Mesh.Holds`](../tests/mesh/mesh_test.cpp) [`Axes.Cover`](../tests/mesh/mesh_test.cpp)");
  EXPECT_EQ(listed(missing_tests(tree)), "");
  tree.add("notes/page.md", "# P\n[`Mesh.Hold`](../tests/mesh/mesh_test.cpp)");
  EXPECT_EQ(missing_tests(tree).size(), 1u);
}

TEST(Pages, NameNoPathOfOneMachine) {
  EXPECT_EQ(listed(foreign_paths(project())), "");

  for (const char* text : {"see /home/ada/run", "`/opt/cuda`", "(C:\\Users)", "export X=/tmp/x"}) {
    EXPECT_EQ(foreign_paths(page(std::string("# P\n") + text)).size(), 1u) << text;
  }
  EXPECT_EQ(listed(foreign_paths(page("# P\nα / 2p, tokens/s, and/or, [x](../a/b.md), https://a.b/c, 2 (n−1)/n"))), "");
}

TEST(Pages, BeginWithTheirOneTitle) {
  EXPECT_EQ(listed(bad_titles(project())), "");

  EXPECT_EQ(bad_titles(page("text first\n\n# Title")).size(), 1u);
  EXPECT_EQ(bad_titles(page("# One\n\n# Two")).size(), 1u);
  EXPECT_EQ(bad_titles(page("# One\n```sh\n# a comment\n```")).size(), 0u);
}

// md4c takes a line behind a table for a row of it, a comment too: the viewer would show it.
TEST(Pages, LeaveALineFreeBetweenATableAndAComment) {
  for (const std::string& page : project().pages()) {
    std::istringstream lines(project().texts.at(page));
    bool in_table = false;
    for (std::string line; std::getline(lines, line); in_table = line.starts_with("|")) {
      EXPECT_FALSE(in_table && line.starts_with("<!--")) << page << ": " << line;
    }
  }
}

TEST(Translations, HaveTheAnchorsCommandsAndLinksOfTheirOriginal) {
  EXPECT_EQ(listed(stray_translations(project())), "");
  EXPECT_TRUE(project().texts.contains("labs/02_tensor_parallel/text.es.md"));

  const std::string original = "# A\n<a id=\"x\"></a>\n## B\n[n](../note.md)\n```sh\n./shardbook test\n```\n```text\nstep 1\n```\n";
  auto problems = [&](const std::string& translated) {
    Tree tree = page(original, "labs/02/text.md");
    tree.add("labs/02/text.es.md", translated);
    return stray_translations(tree).size();
  };
  EXPECT_EQ(problems("# Á\n<a id=\"x\"></a>\n## Bé\n[ene](../note.md)\n```sh\n./shardbook test\n```\n```text\npaso 1\n```\n"), 0u);
  EXPECT_EQ(problems("# Á\n<a id=\"y\"></a>\n## Bé\n[ene](../note.md)\n```sh\n./shardbook test\n```\n"), 1u);
  EXPECT_EQ(problems("# Á\n<a id=\"x\"></a>\n[ene](../note.md)\n```sh\n./shardbook test\n```\n"), 1u);
  EXPECT_EQ(problems("# Á\n<a id=\"x\"></a>\n## Bé\n[ene](../nota.md)\n```sh\n./shardbook test\n```\n"), 1u);
  EXPECT_EQ(problems("# Á\n<a id=\"x\"></a>\n## Bé\n[ene](../note.md)\n```sh\n./shardbook prueba\n```\n"), 1u);
  EXPECT_EQ(stray_translations(page("# Á", "labs/02/text.es.md")).size(), 1u);
}

}  // namespace
}  // namespace shardbook::tests
