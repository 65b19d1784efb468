// timeline/pack: what of a run goes into its pack, and back; see pack.hpp.
#include "engine/timeline/pack.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <vector>

#include "engine/base/json.hpp"
#include "engine/timeline/reader.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/tar.hpp"

namespace shardbook::timeline {
namespace {

namespace fs = std::filesystem;

constexpr int pack_format = 1;
constexpr const char* about_name = "pack.json";
constexpr std::uint64_t most_read_at_once = std::uint64_t{8} << 30;      // by read_pack()

struct Source {
  std::string name, path;          // in the pack; on the disk
};

bool is_record(const std::string& file) { return file.starts_with("rank") && file.ends_with(".program"); }

// Files of a folder and those below it, as NAME/...; hidden ones, links and what is huge for a text stay behind.
void add_folder(std::vector<Source>& sources, const std::string& name, const fs::path& folder) {
  constexpr std::uintmax_t largest_text = 16 << 20;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string file = entry->path().filename().string();
    std::error_code ignored;
    if (file.starts_with(".") || entry->is_symlink(ignored)) continue;
    if (entry->is_directory(ignored)) add_folder(sources, name + "/" + file, entry->path());
    else if (entry->is_regular_file(ignored) && entry->file_size(ignored) <= largest_text) {
      sources.push_back({name + "/" + file, entry->path().string()});
    }
  }
}

// The folder of the lab that a run belongs to: labs/02_tensor_parallel of "02".
std::string lab_folder(const std::string& root, const std::string& lab) {
  std::error_code failure;
  if (lab.empty()) return "";
  for (fs::directory_iterator entry(root + "/labs", failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(failure) && (name == lab || name.starts_with(lab + "_"))) return name;
  }
  return "";
}

base::Result<std::vector<Source>> sources_of(const std::string& run_folder, const std::string& root) {
  base::Result<std::vector<std::string>> ranks = rank_files(run_folder);
  if (!ranks) return ranks.as_error();
  std::vector<Source> sources;
  for (const std::string& path : ranks.value()) sources.push_back({"run/" + fs::path(path).filename().string(), path});
  std::error_code failure;
  for (fs::directory_iterator entry(run_folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string file = entry->path().filename().string();
    if (is_record(file) || file == "run.json" || file == "summary.txt" || file == "notes.json") {
      sources.push_back({"run/" + file, entry->path().string()});
    }
  }
  if (failure) return base::Error{base::text("cannot read the folder ", run_folder, ": ", failure.message())};
  if (!root.empty()) {
    add_folder(sources, "notes", fs::path(root) / "notes");
    // A run whose run.json cannot be read is packed all the same, without its lab.
    const base::Result<RunInfo> info = read_run_info(run_folder + "/run.json");
    const std::string lab = info ? lab_folder(root, info.value().lab) : "";
    if (!lab.empty()) add_folder(sources, "labs/" + lab, fs::path(root) / "labs" / lab);
  }
  std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.name < b.name; });
  return sources;
}

std::string own_name(const std::string& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  std::string name = whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; }, '_');
  return name.empty() ? "run" : name;
}

// "NAME/run/rank0.json" -> "run/rank0.json"
std::string below_top(const std::string& name) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(slash + 1);
}

base::Result<std::string> read_whole(TarReader& reader, std::uint64_t size) {
  std::string content;
  content.reserve(static_cast<std::size_t>(size));
  while (content.size() < size) {
    const base::Result<std::string_view> bytes = reader.read(piece);
    if (!bytes) return bytes.as_error();
    content += bytes.value();
  }
  return content;
}

// What a pack begins with: NAME/pack.json.
struct About {
  std::string name, content;
};
base::Result<About> read_about(TarReader& reader, const std::string& path) {
  const base::Error no_pack{base::text(path, " is no pack of a run: it does not begin with its pack.json")};
  const base::Result<TarReader::Entry> entry = reader.next();
  if (!entry) return entry.as_error();
  if (below_top(entry.value().name) != about_name || entry.value().size > 4096) return no_pack;
  const base::Result<std::string> content = read_whole(reader, entry.value().size);
  if (!content) return content.as_error();
  const nlohmann::json about = base::try_parse_json(content.value());
  if (!about.is_object() || !about.contains("format") || !about["format"].is_number_integer()) return no_pack;
  if (about["format"] != pack_format) {
    return base::Error{base::text(path, " has format ", base::json_text(about["format"]), "; this build reads format ", pack_format)};
  }
  return About{entry.value().name.substr(0, entry.value().name.find('/')), content.value()};
}

base::Status unpack_file(TarReader& reader, const TarReader::Entry& entry, const fs::path& to, const Heard& heard) {
  std::error_code failure;
  fs::create_directories(to.parent_path(), failure);
  if (failure) return base::Error{base::text("cannot make the folder ", to.parent_path().string(), ": ", failure.message())};
  if (fs::exists(to, failure)) return base::Error{base::text("the pack holds ", entry.name, " twice; it is not opened")};
  errno = 0;
  std::ofstream file(to, std::ios::binary);
  std::uint64_t done = 0;
  while (file && done < entry.size) {
    const base::Result<std::string_view> bytes = reader.read(piece);
    if (!bytes) return bytes.as_error();
    file << bytes.value();
    done += bytes.value().size();
    if (heard && !heard(reader.share_read())) return base::Error{base::text("unpacking ", entry.name, " was stopped")};
  }
  if (!file.flush()) return base::Error{base::text("cannot write ", to.string(), ": ", std::strerror(errno))};
  return base::Done{};
}

base::Result<std::string> unpack(const std::string& path, const fs::path& folder, const Heard& heard) {
  base::Result<TarReader> reader = TarReader::open(path);
  if (!reader) return reader.as_error();
  const base::Result<About> about = read_about(reader.value(), path);
  if (!about) return about.as_error();
  const std::string& name = about.value().name;
  std::error_code failure;
  fs::create_directory(folder / name, failure);
  if (!(std::ofstream(folder / name / about_name) << about.value().content).flush()) {
    return base::Error{base::text("cannot write into ", folder.string(), ": ", failure ? failure.message() : std::strerror(errno))};
  }
  while (true) {
    const base::Result<TarReader::Entry> entry = reader.value().next();
    if (!entry) return entry.as_error();
    if (entry.value().name.empty()) break;
    if (!entry.value().name.starts_with(name + "/")) {
      return base::Error{base::text(path, " holds ", entry.value().name, " outside of its folder ", name, "; it is not opened")};
    }
    if (base::Status unpacked = unpack_file(reader.value(), entry.value(), folder / entry.value().name, heard); !unpacked) return unpacked.as_error();
  }
  if (base::Result<std::vector<std::string>> ranks = rank_files((folder / name / "run").string()); !ranks) {
    return base::Error{base::text(path, " holds no rank files")};
  }
  return name;
}

}  // namespace

std::string pack_ending() { return can_gunzip() ? ".tar.gz" : ".tar"; }

bool is_pack_name(const std::string& path) { return path.ends_with(".tar") || path.ends_with(".tar.gz") || path.ends_with(".tgz"); }

base::Result<PackSize> write_pack(const std::string& run_folder, const std::string& project_root, const std::string& out_path) {
  std::error_code ignored;
  if (!fs::is_directory(run_folder, ignored)) {
    const bool is_file = fs::exists(run_folder, ignored);
    return base::Error{base::text(is_file ? "" : "there is no ", run_folder, is_file ? " is no folder" : "", ": name the folder of a run")};
  }
  if (!out_path.ends_with(".tar") && !can_gunzip()) {
    return base::Error{base::text("cannot write ", out_path, ": this build has no zlib; name a file that ends in .tar")};
  }
  base::Result<std::vector<Source>> sources = sources_of(run_folder, project_root);
  if (!sources) return sources.as_error();

  const std::string top = own_name(run_folder) + "/";
  TarWriter writer(out_path);
  const nlohmann::json about = {{"format", pack_format}, {"run", own_name(run_folder)}};
  PackSize size;
  if (base::Status added = writer.add_text(top + about_name, base::json_text(about) + "\n"); !added) return added.as_error();
  for (const Source& source : sources.value()) {
    if (base::Status added = writer.add_file(top + source.name, source.path); !added) return added.as_error();
    ++size.files;
    size.bytes += fs::file_size(source.path, ignored);
  }
  if (base::Status written = writer.commit(); !written) return written.as_error();
  return size;
}

base::Result<OpenedPack> open_pack(const std::string& path, const std::string& target_folder, const Heard& heard) {
  std::error_code failure;
  fs::path target = fs::absolute(target_folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (fs::exists(target, failure) && !fs::is_empty(target, failure)) {
    return base::Error{base::text("cannot unpack into ", target_folder, ": it is there already and not empty")};
  }
  fs::create_directories(target.parent_path(), failure);
  // Unpacked in a new folder beside, which takes the name at the end: what is there is whole, and nobody else's
  // link can stand in the way.
  std::string beside = (target.parent_path() / (target.filename().string() + ".part-XXXXXX")).string();
  if (::mkdtemp(beside.data()) == nullptr) {
    return base::Error{base::text("cannot make a folder beside ", target_folder, ": ", std::strerror(errno))};
  }
  base::Result<std::string> name = unpack(path, beside, heard);
  if (name) {
    fs::permissions(beside, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec, failure);
    fs::rename(beside, target, failure);
    if (failure) name = base::Error{base::text("cannot unpack into ", target_folder, ": ", failure.message())};
  }
  if (!name) {
    fs::remove_all(beside, failure);
    return name.as_error();
  }
  if (heard) heard(1);
  const std::string root = (target / name.value()).string();
  return OpenedPack{root, root + "/run"};
}

base::Result<Timeline> read_pack(const std::string& path) {
  base::Result<TarReader> reader = TarReader::open(path);
  if (!reader) return reader.as_error();
  if (const base::Result<About> about = read_about(reader.value(), path); !about) return about.as_error();
  std::vector<NamedBytes> files;
  std::uint64_t total = 0;
  while (true) {
    const base::Result<TarReader::Entry> entry = reader.value().next();
    if (!entry) return entry.as_error();
    const std::string file = entry.value().name;
    if (file.empty()) break;
    const bool of_run = below_top(file).starts_with("run/") && below_top(below_top(file)).find('/') == std::string::npos;
    if (!of_run || !is_rank_file(fs::path(file).filename().string())) continue;
    total += entry.value().size;
    if (total > most_read_at_once) {
      return base::Error{base::text(path, " holds more than ", most_read_at_once >> 30, " GiB of rank files; unpack it, then open its run folder")};
    }
    base::Result<std::string> content = read_whole(reader.value(), entry.value().size);
    if (!content) return content.as_error();
    files.push_back({path + "/" + file, std::move(content).value()});
  }
  if (files.empty()) return base::Error{base::text(path, " holds no rank files")};
  return read_named(std::move(files));
}

}  // namespace shardbook::timeline
