// A run as one file, carried away and opened; and files that only pretend to be one.
#include "engine/timeline/pack.hpp"

#include <functional>
#include <random>

#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/tar.hpp"
#include "engine/timeline/writer.hpp"
#include "tests/timeline/sample.hpp"

namespace shardbook::timeline {
namespace {

namespace fs = std::filesystem;

// A run with everything, and a project with notes and two labs.
struct Project {
  TemporaryFolder folder;
  std::string root = folder / "project", run = folder / "project/experiments/02/runs/first";

  Project() {
    RunInfo info;
    info.lab = "02";
    info.sources = {{"engine/a.cpp", hash_text("int a;\n"), "int a;\n"}};
    EXPECT_TRUE(write_run(sample_timeline(), info, run));
    write_file(run + "/rank0.program", std::string("SHBKPROG\0\1", 10));
    write_file(run + "/summary.txt", "summary\n");
    write_file(run + "/notes.json", "{}");
    write_file(run + "/run.tlb", "left behind");
    write_file(run + "/core.1234", "left behind");
    for (const char* file : {"notes/map.md", "notes/rooms/fsdp.md", "labs/02_tensor_parallel/text.md", "labs/03_other/text.md", "notes/.hidden"}) {
      fs::create_directories(fs::path(root + "/" + file).parent_path());
      write_file(root + "/" + file, std::string("text of ") + file);
    }
    fs::create_symlink("/etc/passwd", root + "/notes/link.md");
  }
};

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Pack, HoldsTheRunAndWhatIsReadBesideIt) {
  const Project project;
  for (const std::string& ending : {pack_ending(), std::string(".tar")}) {
    const TemporaryFolder target_folder;
    const std::string pack = project.folder / ("first" + ending), target = target_folder / "opened";
    const auto written = write_pack(project.run, project.root, pack);
    ASSERT_TRUE(written) << written.error();
    EXPECT_EQ(written.value().files, 9u);
    const auto opened = open_pack(pack, target);
    ASSERT_TRUE(opened) << opened.error();
    EXPECT_EQ(opened.value().run, target + "/first/run");
    EXPECT_EQ(files_below(opened.value().root),
              (std::vector<std::string>{"labs/02_tensor_parallel/text.md", "notes/map.md", "notes/rooms/fsdp.md", "pack.json", "run/notes.json",
                                        "run/rank0.json", "run/rank0.program", "run/rank1.json", "run/run.json", "run/summary.txt"}));
    for (const char* file : {"rank0.json", "rank1.json", "rank0.program", "run.json", "summary.txt", "notes.json"}) {
      EXPECT_EQ(content_of(opened.value().run + "/" + file), content_of(project.run + "/" + file)) << file;
    }
    EXPECT_EQ(description(read(opened.value().run).value()), description(sample_timeline()));
    // And without unpacking it.
    const auto at_once = read(pack);
    ASSERT_TRUE(at_once) << at_once.error();
    EXPECT_EQ(description(at_once.value()), description(sample_timeline()));
    EXPECT_EQ(at_once.value().ranks[1].path, pack + "/first/run/rank1.json");
  }
}

TEST(Pack, IsAnArchiveThatTarOpens) {
  const Project project;
  const std::string pack = project.folder / "first.tar", listed = project.folder / "listed";
  ASSERT_TRUE(write_pack(project.run, project.root, pack));
  if (std::system("tar --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no tar here";
  fs::create_directories(listed);
  ASSERT_EQ(std::system(("tar -xf " + pack + " -C " + listed).c_str()), 0);
  EXPECT_EQ(files_below(listed).size(), 10u);
  EXPECT_EQ(content_of(listed + "/first/run/rank0.json"), content_of(project.run + "/rank0.json"));
  // What tar itself packs again is opened as well, folders and all.
  ASSERT_EQ(std::system(("cd " + listed + " && tar --format=ustar -cf ../again.tar first/pack.json first/run").c_str()), 0);
  const auto again = read(project.folder / "again.tar");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(description(again.value()), description(sample_timeline()));
}

TEST(Pack, CutOffAnywhereIsOneSentenceAndLeavesNothing) {
  const Project project;
  for (const std::string& ending : {pack_ending(), std::string(".tar")}) {
    const std::string pack = project.folder / ("whole" + ending), cut = project.folder / ("cut" + ending), target = project.folder / "target";
    ASSERT_TRUE(write_pack(project.run, project.root, pack));
    const std::string whole = content_of(pack);
    for (std::size_t length = 0; length + 9 < whole.size(); length += 97) {      // gzip's own last 8 bytes are a checksum
      write_file(cut, whole.substr(0, length));
      const auto read_cut = read_pack(cut);
      ASSERT_FALSE(read_cut) << "cut at byte " << length;
      if (length % 7 != 0) continue;
      const auto opened = open_pack(cut, target);
      ASSERT_FALSE(opened) << "cut at byte " << length;
      EXPECT_EQ(opened.error(), read_cut.error());
      EXPECT_EQ(opened.error(), length == 0 ? cut + " is empty: it is no pack"
                                            : cut + " is cut off: it ends before its archive does; copy it again");
      ASSERT_FALSE(fs::exists(target));
    }
  }
  for (const auto& entry : fs::directory_iterator(project.folder.path())) {
    EXPECT_EQ(entry.path().string().find(".part-"), std::string::npos) << entry.path();
  }
}

TEST(Pack, WithChangedBytesIsRefusedOrOpened) {
  const Project project;
  std::mt19937 random(5);
  for (const std::string& ending : {pack_ending(), std::string(".tar")}) {
    const std::string pack = project.folder / ("whole" + ending), changed = project.folder / ("changed" + ending);
    ASSERT_TRUE(write_pack(project.run, "", pack));
    const std::string whole = content_of(pack);
    int refused = 0;
    for (int turn = 0; turn < 400; ++turn) {
      std::string bytes = whole;
      for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
      write_file(changed, bytes);
      const auto opened = read_pack(changed);
      if (!opened) {
        ++refused;
        EXPECT_TRUE(opened.error().find(changed) != std::string::npos) << opened.error();
      }
    }
    EXPECT_GT(refused, 20);
  }
}

// An archive with one more file, whose header is changed before its sum is made.
std::string hostile(const std::string& path, const std::function<void(std::string&)>& change) {
  TarWriter writer(path);
  EXPECT_TRUE(writer.add_text("first/pack.json", R"({"format":1,"run":"first"})"));
  EXPECT_TRUE(writer.add_text("first/run/rank0.json", "[]"));
  EXPECT_TRUE(writer.commit());
  std::string bytes = content_of(path);
  std::string header = bytes.substr(1024, 512);
  change(header);
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  bytes.replace(1024, 512, header);
  write_file(path, bytes);
  return bytes;
}

TEST(Pack, ThatLeadsOutOfItsFolderIsNotOpened) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tar";
  const auto named = [&](const std::string& name) {
    hostile(path, [&](std::string& header) { header.replace(0, 100, name + std::string(100 - name.size(), '\0')); });
    const auto opened = open_pack(path, folder / "target");
    EXPECT_FALSE(opened) << name;
    EXPECT_FALSE(fs::exists(folder / "target"));
    return opened.ok() ? "" : opened.error();
  };
  for (const char* name : {"/tmp/rank0.json", "first/../../rank0.json", "..", "first/run/../../../x", "first//x", "./first/x", "first/run/\x01", ""}) {
    EXPECT_EQ(named(name), path + " holds a file whose name leads elsewhere or is none; it is not opened") << name;
  }
  EXPECT_EQ(named("second/rank0.json"), path + " holds second/rank0.json outside of its folder first; it is not opened");
  EXPECT_EQ(named("first/pack.json"), "the pack holds first/pack.json twice; it is not opened");
  for (const char type : {'1', '2', '3', '4', '6', 'x', 'L', 'g'}) {
    hostile(path, [&](std::string& header) { header[156] = type; });
    EXPECT_EQ(open_pack(path, folder / "target").error(), path + " holds something that is neither file nor folder; `shardbook pack` writes none");
  }
  hostile(path, [](std::string& header) { header.replace(124, 11, "77777777777"); });
  EXPECT_EQ(open_pack(path, folder / "target").error(), path + " is cut off: it ends before its archive does; copy it again");
}

TEST(Tar, ThatWouldFillTheDiskIsNotOpened) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tar";
  // Eight files that hold nearly 8 GiB each and a small one, in a file that is mostly holes.
  const std::string bytes = hostile(path, [](std::string& header) { header.replace(124, 11, "77777777777"); });
  const std::string rest = bytes.substr(1024, 512);
  std::ofstream out(path, std::ios::binary);
  out << bytes.substr(0, 1024);
  for (std::uint64_t i = 0; i < 8; ++i) {
    out.seekp(static_cast<std::streamoff>(1024 + i * (512 + (std::uint64_t{1} << 33))));
    out << rest;
  }
  out.seekp(static_cast<std::streamoff>(1024 + 8 * (512 + (std::uint64_t{1} << 33)) + 1024));
  out << '\0';
  out.close();
  auto reader = TarReader::open(path);
  ASSERT_TRUE(reader);
  for (int entry = 0; entry < 8; ++entry) ASSERT_TRUE(reader.value().next());      // pack.json, and seven of them
  const auto eighth = reader.value().next();
  ASSERT_FALSE(eighth);
  EXPECT_EQ(eighth.error(), path + " would unpack to more than 64 GiB or 200000 files; it is not opened");
}

TEST(Pack, OfAnotherKindOrFormatIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tar";
  const auto with = [&](const std::string& name, const std::string& content) {
    TarWriter writer(path);
    EXPECT_TRUE(writer.add_text(name, content));
    EXPECT_TRUE(writer.commit());
    return read(path).error();
  };
  EXPECT_EQ(with("first/pack.json", "{\"format\": 2}"), path + " has format 2; this build reads format 1");
  EXPECT_EQ(with("first/pack.json", "{\"format\": 1}"), path + " holds no rank files");
  EXPECT_EQ(with("first/pack.json", "["), path + " is no pack of a run: it does not begin with its pack.json");
  EXPECT_EQ(with("first/other.txt", ""), path + " is no pack of a run: it does not begin with its pack.json");
  write_file(path, std::string(2000, '{'));
  EXPECT_EQ(read(path).error(), path + " is no pack: it is not an archive of the form ustar");
  EXPECT_EQ(read(folder / "missing.tar").error(), "cannot read " + (folder / "missing.tar") + ": No such file or directory");
}

TEST(Pack, ThatCannotBeWrittenSaysWhyAndLeavesNothing) {
  const Project project;
  EXPECT_EQ(write_pack(project.folder / "nowhere", "", project.folder / "x.tar").error(),
            "there is no " + (project.folder / "nowhere") + ": name the folder of a run");
  EXPECT_EQ(write_pack(project.run + "/run.json", "", project.folder / "x.tar").error(),
            project.run + "/run.json is no folder: name the folder of a run");
  EXPECT_EQ(write_pack(project.root, "", project.folder / "x.tar").error(),
            "no rank files in " + project.root + ": expected rank0.json, rank1.json, ...");
  EXPECT_EQ(write_pack(project.run, "", project.folder / "missing/x.tar").error(),
            "cannot write " + (project.folder / "missing/x.tar") + ": No such file or directory");
  // A file that cannot be read in the middle of packing.
  fs::remove(project.run + "/summary.txt");
  fs::create_directory(project.run + "/summary.txt");
  EXPECT_EQ(write_pack(project.run, "", project.folder / "x.tar").error(), "cannot read " + project.run + "/summary.txt: it is not a file");
  EXPECT_FALSE(fs::exists(project.folder / "x.tar"));
  EXPECT_FALSE(fs::exists(project.folder / "x.tar.tmp"));
}

TEST(Pack, IsNotUnpackedOverWhatIsThere) {
  const Project project;
  const std::string pack = project.folder / "x.tar", target = project.folder / "target";
  ASSERT_TRUE(write_pack(project.run, "", pack));
  fs::create_directories(target);
  EXPECT_TRUE(open_pack(pack, target)) << "an empty folder is none";
  EXPECT_EQ(open_pack(pack, target).error(), "cannot unpack into " + target + ": it is there already and not empty");
}

TEST(Tar, CutsLongNamesAtASlashAndRefusesLongerOnes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tar", fits = std::string(140, 'a') + "/" + std::string(90, 'b');
  TarWriter writer(path);
  ASSERT_TRUE(writer.add_text(fits, "content"));
  EXPECT_FALSE(writer.add_text(std::string(101, 'a'), ""));
  EXPECT_FALSE(writer.add_text(std::string(160, 'a') + "/" + std::string(90, 'b'), ""));
  EXPECT_EQ(writer.add_text("../x", "").error(), "the name ../x cannot stand in a pack");
  ASSERT_TRUE(writer.commit());
  auto reader = TarReader::open(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader.value().next().value().name, fits);
  EXPECT_EQ(reader.value().read(100).value(), "content");
  EXPECT_EQ(reader.value().next().value().name, "");
}

}  // namespace
}  // namespace shardbook::timeline
