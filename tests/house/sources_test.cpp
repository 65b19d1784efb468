// Sources keep the house's law: what they include, what they may know, and by what they go.
//
// Each rule is run on the project, and each is shown to fail on a small one that breaks it.
#include <gtest/gtest.h>

#include <string>

#include "tests/house/project.hpp"

namespace shardbook::tests {
namespace {

TEST(Includes, AreThereForWhatASourceNames) {
  EXPECT_EQ(listed(missing_includes(project())), "");

  auto problems = [](const std::string& content) {
    Tree tree;
    tree.add("engine/base/text.hpp", "#include <string>\nnamespace shardbook::base {\nstd::string text();\nclass Word {\n};\n#define BASE_CHECK(x)\n}\n");
    tree.add("engine/mesh/mesh.hpp", "#include \"engine/base/text.hpp\"\nnamespace shardbook::mesh {\nstruct Mesh {\n};\nint ranks_of(const Mesh& mesh);\n}\n");
    tree.add("engine/mesh/mesh.cpp", content);
    return listed(missing_includes(tree));
  };
  const std::string space = "namespace shardbook::mesh {\n";
  EXPECT_EQ(problems("#include <vector>\n" + space + "std::vector<int> all;"), "");
  EXPECT_NE(problems(space + "std::vector<int> all;").find("engine/mesh/mesh.cpp names std::vector and does not include vector"), std::string::npos);
  EXPECT_EQ(problems("#include \"engine/mesh/mesh.hpp\"\n" + space + "std::string name = base::text();"), "") << "by what it includes";
  EXPECT_NE(problems("#include <string>\n" + space + "std::string name = base::text();"), "") << "a function of another room";
  EXPECT_NE(problems(space + "base::Word word;"), "") << "a type of another room";
  EXPECT_NE(problems(space + "Mesh mesh;"), "") << "a type of its own";
  EXPECT_NE(problems(space + "int n = ranks_of(all);"), "") << "a function of its own";
  EXPECT_NE(problems(space + "void f() {\n  BASE_CHECK(1);\n}"), "") << "a macro";
  EXPECT_NE(problems(space + "int n = errno;"), "") << "of the system";
  EXPECT_EQ(problems(space + "class Other {\n  struct Mesh {};\n  Mesh mesh;\n};"), "") << "another of that name";
  EXPECT_EQ(problems(space + "// a std::vector\nconst char* said = \"std::vector\";"), "") << "a word, not a name";
}

// In a batch another file's using makes up for it; file by file the first to build it would be whoever trains.
TEST(Usings, AreInEachFileThatCallsANameSo) {
  EXPECT_EQ(listed(names_without_using(project())), "");

  auto problems = [](const std::string& content) {
    Tree tree;
    tree.add("engine/mesh/a.cpp", "namespace shardbook::mesh {\nusing base::text;\nusing program::Op;\n}\n");
    tree.add("engine/base/text.hpp", "namespace shardbook::base {\nstd::string text(int n);\n}\n");
    tree.add("engine/mesh/b.cpp", "#include \"engine/base/text.hpp\"\nnamespace shardbook::mesh {\n" + content + "\n}\n");
    return names_without_using(tree).size();
  };
  EXPECT_EQ(problems("void f() {\n  say(text(1));\n}"), 1u);
  EXPECT_EQ(problems("using base::text;\nvoid f() {\n  say(text(1));\n}"), 0u);
  EXPECT_EQ(problems("void f() {\n  say(base::text(1));\n}"), 0u) << "with its namespace";
  EXPECT_EQ(problems("void f() {\n  const std::string text = said();\n  say(text);\n}"), 0u) << "a variable";
  EXPECT_EQ(problems("std::string text(int n) {\n}\nvoid f() {\n  say(text(1));\n}"), 0u) << "one of its own";
  EXPECT_EQ(problems("void f(const Op& op) {\n}"), 1u) << "a type";
}

TEST(NamesOfFiles, AreGivenOnceInARoom) {
  EXPECT_EQ(listed(names_given_twice(project())), "");

  auto problems = [](const std::string& a, const std::string& b, const std::string& second = "engine/mesh/b.cpp") {
    Tree tree;
    for (const auto& [path, content] : {std::pair{std::string("engine/mesh/a.cpp"), a}, std::pair{second, b}}) {
      tree.add(path, "namespace shardbook::mesh {\nnamespace {\n" + content + "\n}  // namespace\nint shared(int n) { return n; }\n}  // namespace shardbook::mesh\n");
    }
    return names_given_twice(tree).size();
  };
  EXPECT_EQ(problems("constexpr int most = 5;", "constexpr long most = 8;"), 1u);
  EXPECT_EQ(problems("constexpr int most = 5;", "constexpr long most = 8;", "engine/config/b.cpp"), 0u) << "of another room";
  EXPECT_EQ(problems("struct Asked {\n};", "class Asked final : Base {\n};"), 1u);
  EXPECT_EQ(problems("std::string said(int n) {\n}", "std::string said(int count) {\n}"), 1u) << "whatever a parameter is called";
  EXPECT_EQ(problems("std::string said(int n) {\n}", "std::string said(double n) {\n}"), 0u) << "an overload";
  EXPECT_EQ(problems("int one;", "// constexpr int most = 5;\nint two;"), 0u);
}

TEST(Libraries, AreKnownWhereTheyBelongAlone) {
  EXPECT_EQ(listed(stray_libraries(project())), "");

  auto problems = [](const std::string& path, const std::string& header) { return stray_libraries(page("#include <" + header + ">\n", path)).size(); };
  EXPECT_EQ(problems("viewer/ui/theme.hpp", "imgui.h"), 0u);
  EXPECT_EQ(problems("viewer/ui/keys.cpp", "GLFW/glfw3.h"), 0u);
  EXPECT_EQ(problems("viewer/app/window_glfw.cpp", "backends/imgui_impl_opengl3.h"), 0u);
  EXPECT_EQ(problems("viewer/scene/scene.hpp", "imgui.h"), 1u);
  EXPECT_EQ(problems("engine/report/page.cpp", "imgui_internal.h"), 1u);
  EXPECT_EQ(problems("viewer/ui/widgets.cpp", "GLFW/glfw3.h"), 1u);
  EXPECT_EQ(problems("viewer/lanes/paint.cpp", "GL/gl.h"), 1u);
  EXPECT_EQ(problems("viewer/views/overview.cpp", "EGL/egl.h"), 1u);
  EXPECT_EQ(problems("viewer/page/flow.cpp", "md4c.h"), 1u);
  EXPECT_EQ(problems("viewer/ui/picture_view.cpp", "gvc.h"), 1u);
}

TEST(Packages, AreLinkedWhereTheyAreIncluded) {
  EXPECT_EQ(listed(unlinked_packages(project())), "");

  Tree tree;
  tree.add("engine/base/CMakeLists.txt", "shardbook_room(base FLOOR 0 SOURCES json.cpp)");
  tree.add("engine/cli/CMakeLists.txt", "shardbook_room(cli FLOOR 1 USES base SOURCES cli.cpp LIBRARIES shardbook_cli11)");
  tree.add("engine/base/json.cpp", "#include <nlohmann/json.hpp>\n");
  tree.add("engine/cli/cli.cpp", "#include <CLI/CLI.hpp>\n#include <nlohmann/json.hpp>\n");
  EXPECT_EQ(unlinked_packages(tree).size(), 2u);
  tree.add("engine/base/CMakeLists.txt", "shardbook_room(base FLOOR 0 SOURCES json.cpp LIBRARIES shardbook_json)");
  EXPECT_EQ(listed(unlinked_packages(tree)), "");
}

TEST(Clocks, ThatJumpNameDaysAndMeasureNothing) {
  EXPECT_EQ(listed(clocks_that_jump(project())), "");

  auto problems = [](const std::string& path, const std::string& line) { return clocks_that_jump(page(line + "\n", path)).size(); };
  EXPECT_EQ(problems("engine/world/processes.cpp", "const auto until = std::chrono::steady_clock::now() + grace;"), 0u);
  EXPECT_EQ(problems("engine/launch/run_folder.cpp", "const std::time_t now = std::time(nullptr);"), 0u);
  EXPECT_EQ(problems("engine/world/processes.cpp", "const auto until = std::chrono::system_clock::now() + grace;"), 1u);
  EXPECT_EQ(problems("engine/comm/loopback/hall.cpp", "clock_gettime(CLOCK_REALTIME, &until);"), 1u);
  EXPECT_EQ(problems("viewer/app/frame.cpp", "const std::time_t begin = time(NULL);"), 1u);
}

TEST(Json, IsParsedAndWrittenInOnePlace) {
  EXPECT_EQ(listed(json_as_text(project())), "");

  auto problems = [](const std::string& path, const std::string& line) { return json_as_text(page(line + "\n", path)).size(); };
  EXPECT_EQ(problems("engine/base/json.cpp", "return nlohmann::json::parse(text);"), 0u);
  EXPECT_EQ(problems("engine/cli/doctor.cpp", "console.out << base::json_text(json, 2);"), 0u);
  EXPECT_EQ(problems("engine/cli/doctor.cpp", "const Json read = Json::parse(line);"), 1u);
  EXPECT_EQ(problems("engine/cli/doctor.cpp", "const auto read = nlohmann::ordered_json::parse(line);"), 1u);
  EXPECT_EQ(problems("engine/cli/doctor.cpp", "console.out << json.dump(2);"), 1u);
  EXPECT_EQ(problems("tests/cli/why_test.cpp", "EXPECT_TRUE(nlohmann::json::accept(spoken.out));"), 1u);
}

TEST(Switches, AreKnownToTheirTableAndToTheSeamsAlone) {
  EXPECT_EQ(listed(strangers_to_switches(project())), "");

  Tree tree;
  tree.add("engine/train/seams.cpp", "#include \"engine/config/switches.hpp\"\n");
  EXPECT_EQ(listed(strangers_to_switches(tree)), "");
  tree.add("engine/fsdp/parameters.cpp", "#include \"engine/config/switches.hpp\"\n");
  EXPECT_EQ(strangers_to_switches(tree).size(), 1u);
}

TEST(Schedules, KnowNothingButThePlan) {
  ASSERT_TRUE(project().texts.contains("engine/fsdp/schedule.cpp") && project().texts.contains("engine/data_parallel/schedule.cpp"));
  EXPECT_EQ(listed(impure_schedules(project())), "");

  Tree tree;
  tree.add("engine/fsdp/schedule.cpp", "#include \"engine/fsdp/schedule.hpp\"\n#include <map>\n#include \"engine/plan/uses.hpp\"\n");
  EXPECT_EQ(listed(impure_schedules(tree)), "");
  for (const char* stranger : {"engine/fsdp/parameters.hpp", "engine/device/device.hpp", "engine/config/config.hpp"}) {
    tree.add("engine/data_parallel/schedule.cpp", std::string("#include \"") + stranger + "\"\n");
    EXPECT_EQ(impure_schedules(tree).size(), 1u) << stranger;
  }
}

TEST(KernelsThatAreLetInEarly, WaitForTheOneBefore) {
  EXPECT_EQ(listed(kernels_that_do_not_wait(project())), "");

  const std::string body = "  double_it(x);\n}\n\n\n\n\n\n\n\n\n\n";
  auto problems = [](const std::string& content) { return kernels_that_do_not_wait(page(content, "engine/kernels/cuda/twice.cu")).size(); };
  EXPECT_EQ(problems("__global__ void twice(float* x) {\n  wait_for_kernel_before();\n" + body), 0u);
  EXPECT_EQ(problems("template <class Before> __global__ void twice(Before before, float* x) {\n  before.wait();\n" + body), 0u);
  EXPECT_EQ(problems("__global__ void twice(float* x) {\n" + body), 1u);
  EXPECT_EQ(problems("__global__ void twice(float* x) {\n  double_it(x);\n}\n"), 1u) << "at the end of a file";
  EXPECT_EQ(problems("template <class T> __global__ void twice(T* x) {\n}\n__global__ void thrice(float* x) {\n  wait_for_kernel_before();\n" + body), 1u) << "before another";
  EXPECT_EQ(problems("// no __global__ function\n" + body), 0u);
  EXPECT_EQ(problems("void launch_twice(float* x) {\n  twice<<<1, 1>>>(x);\n}\n"), 1u);
}

TEST(Kernels, BeginWithTheirFloor) {
  EXPECT_EQ(listed(kernels_without_a_floor(project())), "");

  const std::string kernel = "__global__ void twice(float* x) {\n}\n";
  auto problems = [](const std::string& content, const std::string& path = "engine/kernels/cuda/twice.cu") { return kernels_without_a_floor(page(content, path)).size(); };
  const std::string head = "// Flops: 1 a number. Bytes: 8.\n// Floor: a copy. Reference: host/twice.cpp.\n";
  EXPECT_EQ(problems(head + kernel), 0u);
  EXPECT_EQ(problems(head, "engine/kernels/cuda/cudnn/attention.cpp"), 0u);
  EXPECT_EQ(problems(kernel, "engine/kernels/cuda/cudnn/attention.cpp"), 4u);
  for (const std::string word : {"Flops", "Bytes", "Floor", "Reference"}) {
    std::string lacks = head;
    lacks.replace(lacks.find(word), word.size(), "Thing");
    EXPECT_EQ(problems(lacks + kernel), 1u) << word;
  }
  EXPECT_EQ(problems(kernel + "// Flops: 1 a number. Bytes: 8.\n// Floor: a copy. Reference: host/twice.cpp.\n"), 4u) << "not at its head";
  EXPECT_EQ(problems(kernel, "engine/device/cuda/twice.cu"), 4u);
  EXPECT_EQ(problems(kernel, "tests/gpu/twice.cu"), 0u);
}

}  // namespace
}  // namespace shardbook::tests
