// Does a script do what a user would, and stop with the reason where it cannot?
#include "viewer/app/script.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "viewer/ui/keys.hpp"

namespace shardbook::app {
namespace {

namespace fs = std::filesystem;

class Scripts : public testing::Test {
 protected:
  std::unique_ptr<Picture> picture;
  std::unique_ptr<Desk> desk;

  void SetUp() override {
    auto made = Picture::make(1280, 800, 1);
    ASSERT_TRUE(made.ok()) << made.error();
    picture = std::move(made).value();
    DeskOptions options;
    options.root = SHARDBOOK_SOURCE_DIR;
    options.remember = false;
    desk = std::make_unique<Desk>(options);
  }
  // "" or the sentence.
  std::string run(const std::string& text) {
    const base::Status done = run_script(text, "test.txt", *desk, *picture);
    return done ? "" : done.error();
  }
};

TEST_F(Scripts, keys_clicks_and_words_work_without_any_display) {
  EXPECT_EQ(run("expect \"No run is open\"\nkey F1\nexpect \"Zoom in\"\nkey Escape\nrefuse \"Zoom in\"\n"), "");
}

TEST_F(Scripts, what_is_not_there_is_said_with_what_is_nearest) {
  const std::string missing = run("wait 2\nclick \"No such button at all\"\n");
  EXPECT_EQ(missing.find("test.txt:2: "), 0U) << missing;
  EXPECT_NE(missing.find("there is no \"No such button at all\" on the screen; the nearest is \""), std::string::npos) << missing;
  const std::string unseen = run("expect \"No run is opem\"");
  EXPECT_NE(unseen.find("the nearest is \"No run is open\""), std::string::npos) << unseen;
}

TEST_F(Scripts, values_are_compared_saved_and_used_again) {
  EXPECT_EQ(run("save runs as before\nexpect runs $before\nexpect runs <= 0\n"), "");
  EXPECT_NE(run("expect runs > 0").find("runs is \"0\", not > \"0\""), std::string::npos);
  EXPECT_NE(run("expect nonsense 1").find("no value called nonsense"), std::string::npos);
  EXPECT_NE(run("expect runs $nothing").find("nothing was saved as nothing"), std::string::npos);
}

TEST_F(Scripts, a_problem_stops_them_unless_the_next_line_is_about_it) {
  EXPECT_NE(run("open /nowhere/at/all\nwait 1\n").find("test.txt:1: "), std::string::npos);
  EXPECT_EQ(run("open /nowhere/at/all\nexpect problem ~ \"/nowhere/at/all\"\nwait 1\n"), "");
  EXPECT_NE(run("open /nowhere/at/all"), "") << "the last line, too";
}

TEST_F(Scripts, nothing_is_typed_where_no_field_is) {
  EXPECT_NE(run("type \"words\"").find("no field is being typed into"), std::string::npos);
}

TEST_F(Scripts, shots_have_the_size_and_theme_that_were_asked_for) {
  const fs::path path = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-script-shot.png");
  fs::remove(path);
  EXPECT_EQ(run("size 640 480\ntheme dark\nshot " + path.string() + "\n"), "");
  EXPECT_TRUE(fs::exists(path));
  EXPECT_TRUE(desk->dark());
  EXPECT_EQ(picture->pixels().width, 640);
  fs::remove(path);
  EXPECT_NE(run("shot /nowhere/x.png").find("cannot be written"), std::string::npos);
}

TEST_F(Scripts, nothing_runs_of_one_that_is_wrong) {
  EXPECT_NE(run("theme dark\nclik \"a\"\n"), "");
  EXPECT_FALSE(desk->dark());
}

TEST_F(Scripts, the_desk_knows_every_command_of_the_table) {
  picture->resize(320, 200, 1);
  ASSERT_NE(run("cmd no.such.command").find("there is no command"), std::string::npos);
  for (const ui::Command& command : ui::commands()) {
    const std::string id = command.id;
    if (id == "quit" || id == "screenshot") continue;
    desk->act({id, id == "step" ? "1" : ""});
    picture->frame(*desk);
    EXPECT_EQ(desk->problem().find("there is no command"), std::string::npos) << id;
  }
}

// A project of its own, with lab 02 and a run of it; and another run elsewhere.
TEST_F(Scripts, a_run_that_is_named_beside_a_lab_is_the_only_one_that_opens) {
  const fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-lab-and-run");
  fs::remove_all(folder);
  const fs::path lab = "labs/02_tensor_parallel", of_lab = folder / "project/experiments/02_tensor_parallel/runs/of-the-lab", other = folder / "other";
  fs::create_directories(folder / "project" / lab);
  fs::copy(fs::path(SHARDBOOK_SOURCE_DIR) / lab, folder / "project" / lab, fs::copy_options::recursive);
  for (const fs::path& run : {of_lab, other}) {
    fs::create_directories(run);
    std::ofstream(run / "rank0.json") << R"({"distributedInfo":{"rank":0,"world_size":1},"traceEvents":[)"
                                         R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7,"device":0}}]})";
  }
  const auto opened = [&](const std::vector<std::string>& words) {
    DeskOptions options;
    options.root = (folder / "project").string();
    options.remember = false;
    options.open = words;
    desk = std::make_unique<Desk>(options);
    EXPECT_EQ(run("wait 2\nexpect page ~ \"labs/02\"\n"), "");
    return desk->value("runs").value_or("") + " " + desk->value("run").value_or("");
  };
  EXPECT_EQ(opened({"02"}), "1 of-the-lab");
  EXPECT_EQ(opened({"02", other.string()}), "1 other");
  EXPECT_EQ(opened({other.string(), "02"}), "1 other");
  EXPECT_EQ(opened({"02", other.string(), other.string()}), "1 other") << "named twice, it is opened once";
  fs::remove_all(folder);
}

TEST_F(Scripts, notes_of_the_reading_pane_are_read_again_when_an_editor_saves_them) {
  const fs::path root = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-reading-pane");
  const fs::path note = root / "experiments/35-reading-notes/synthesis.md";
  fs::create_directories(note.parent_path());
  for (const char* part : {"engine", "labs", "notes"}) fs::create_directory_symlink(fs::path(SHARDBOOK_SOURCE_DIR) / part, root / part);
  const auto save = [&](const std::string& content) {
    std::ofstream(note.string() + "~", std::ios::binary) << content;
    fs::rename(note.string() + "~", note);
  };
  DeskOptions options;
  options.root = root.string();
  options.remember = false;
  desk = std::make_unique<Desk>(options);
  EXPECT_EQ(run("key \"L\"\nexpect \"14 of these files are not here yet: ./shardbook notes sources fetches them\"\n"
                "click \"synthesis.md\"\nexpect \"There is no synthesis.md yet\"\n"), "");
  save("# Pictures\n\n```mermaid\nflowchart LR\n  a --> b\n```\n");
  EXPECT_EQ(run("wait 2\nexpect reading.lines 6\nexpect \"a --> b\"\nrefuse \"There is no synthesis.md\"\n"), "");
  save("# Pictures\n```\nopen\n");
  EXPECT_EQ(run("wait 2\nexpect reading.lines 3\nexpect \"a fence opens here and does not close\"\nclick \"synthesis.md:2\"\nexpect reading.marked 2\n"), "");
  save("\xFF\xFE#");
  EXPECT_EQ(run("wait 2\nexpect reading.lines 0\nexpect \"synthesis.md is UTF-16: save it as UTF-8\"\n"), "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace shardbook::app
