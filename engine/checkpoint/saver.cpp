#include "engine/checkpoint/saver.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "engine/checkpoint/boxes.hpp"
#include "engine/checkpoint/folder.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::checkpoint {

namespace fs = std::filesystem;
using base::Done;
using base::Error;
using base::Status;
using base::text;
using namespace std::chrono_literals;

namespace {

constexpr base::Bytes slice = base::Bytes{16} << 20;   // between two looks whether the run has failed

// Tensors of what is written by one rank after another, in the order in which they come first.
class Tensors {
 public:
  explicit Tensors(std::vector<StoredTensor>& all) : all_(all) {}
  // The place for a tensor of this name, shape and type; null where one of that name is of another.
  StoredTensor* of(const std::string& name, base::DType dtype, const base::Shape& shape) {
    const auto [found, is_new] = by_name_.emplace(name, all_.size());
    if (is_new) all_.push_back({name, dtype, shape, {}});
    StoredTensor& tensor = all_[found->second];
    return tensor.dtype == dtype && tensor.shape == shape ? &tensor : nullptr;
  }

 private:
  std::vector<StoredTensor>& all_;
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace

Saver::~Saver() {
  cancelled_ = true;
  if (worker_.joinable()) worker_.join();
}

void Saver::begin(std::int64_t step, const std::string& config, std::vector<Part> parts) {
  SHARDBOOK_CHECK(!under_way(), "a save begins while another is under way");
  if (worker_.joinable()) worker_.join();
  ended_ = false;
  worker_ = std::thread([this, step, config, parts = std::move(parts)] {
    const base::Nanoseconds begun = program::host_now();
    saved_ = {};
    try {
      result_ = save(step, config, parts);
    } catch (const std::exception& problem) {
      result_ = Error{text("the checkpoint of step ", step, " cannot be written: ", problem.what())};
    }
    saved_.took = program::host_now() - begun;
    ended_ = true;
  });
}

void Saver::wait(const std::function<void()>& watch) {
  while (under_way()) {
    std::this_thread::sleep_for(1ms);
    watch();
  }
}

std::string Saver::path_in(const std::string& hidden, base::Rank rank, const char* ending) const {
  return (fs::path(hidden) / text("rank", rank, ending)).string();
}

//@ checkpoint.save: Each rank writes its numbers; rank 0 joins the parts of all, and names the checkpoint last.
Status Saver::save(std::int64_t step, const std::string& config, const std::vector<Part>& parts) {
  const std::string hidden = hidden_path_of_step(place_.folder, step, place_.token);
  Status saved = write_part(hidden, parts, step);
  if (saved && place_.rank == 0) saved = join(hidden, step, config);
  if (saved && place_.rank == 0) saved = publish(place_.folder, hidden, step, place_.token);
  if (saved && place_.rank == 0) {
    if (const Status removed = remove_older(place_.folder, step, place_.keep, place_.token); !removed) saved_.left = removed.error();
  }
  if (saved) return saved;
  // What was written of it may be what fills the disk
  for (const char* ending : {".data", ".part", ".part.new"}) ::unlink(path_in(hidden, place_.rank, ending).c_str());
  if (place_.rank == 0) ::unlink((fs::path(hidden) / manifest_name).c_str());
  ::rmdir(hidden.c_str());
  return Error{text("the checkpoint of step ", step, " was not saved: ", saved.error(), "; those before it in ", place_.folder,
                    " are whole: free space there, or name another folder with --checkpoint")};
}
//@end

// A rank that fails takes the folder away if nothing stands in it, and would leave to one that is about to write there the
// blame: so each begins with a file, and makes the folder again where it went. Each of the others takes it away once at most.
base::Result<File> Saver::enter(const std::string& hidden, const std::string& first) {
  for (int others = place_.ranks - 1;; --others) {
    if (::mkdir(hidden.c_str(), 0777) != 0 && errno != EEXIST) return Error{text("cannot make ", hidden, ": ", std::strerror(errno))};
    File file(::open(first.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.is_open()) return file;
    if ((errno != ENOENT && errno != ESTALE) || others <= 0) return Error{text("cannot write ", first, ": ", std::strerror(errno))};
  }
}

Status Saver::write_part(const std::string& hidden, const std::vector<Part>& parts, std::int64_t step) {
  const std::string path = path_in(hidden, place_.rank, ".part"), beside = path + ".new";
  const base::Result<File> part_file = enter(hidden, beside);
  if (!part_file) return part_file.as_error();
  Manifest mine;
  mine.step = step;
  if (!parts.empty()) {
    base::Result<DataWriter> writer = DataWriter::begin(path_in(hidden, place_.rank, ".data"));
    if (!writer) return writer.as_error();
    Tensors tensors(mine.tensors);
    for (const Part& part : parts) {
      StoredTensor* tensor = tensors.of(part.tensor, part.dtype, part.shape);
      SHARDBOOK_CHECK(tensor != nullptr, part.tensor, " is of two shapes");
      tensor->boxes.push_back({0, writer.value().bytes(), part.box});
      for (base::Bytes at = 0; at < part.bytes(); at += slice) {
        if (cancelled_) return Error{"the run has ended"};
        if (Status written = writer.value().write(part.numbers + at, std::min(slice, part.bytes() - at)); !written) return written;
      }
    }
    base::Result<DataFile> file = writer.value().finish();
    if (!file) return file.as_error();
    saved_.bytes = file.value().bytes;
    mine.files.push_back(std::move(file).value());
  }
  // Who sees the part sees all of it
  const std::string content = to_text(mine);
  if (Status written = write_all(part_file.value(), content.data(), content.size(), beside); !written) return written;
  if (Status synced = sync(part_file.value(), beside); !synced) return synced;
  if (std::rename(beside.c_str(), path.c_str()) != 0) return Error{text("cannot rename ", beside, ": ", std::strerror(errno))};
  return Done{};
}

bool Saver::is_there(const std::string& path) {
  std::error_code ignored;
  for (auto pause = 1ms; !cancelled_; pause = std::min(2 * pause, 50ms)) {
    if (fs::exists(path, ignored)) return true;
    std::this_thread::sleep_for(pause);
  }
  return false;
}

base::Result<Manifest> Saver::joined(const std::string& hidden) {
  Manifest all;
  Tensors tensors(all.tensors);
  for (base::Rank rank = 0; rank < place_.ranks; ++rank) {
    const std::string path = path_in(hidden, rank, ".part");
    if (!is_there(path)) return Error{"the run has ended"};
    base::Result<Manifest> part = read_file(path, Extent::part);
    if (!part) return part;
    for (const DataFile& file : part.value().files) all.files.push_back(file);
    for (const StoredTensor& mine : part.value().tensors) {
      StoredTensor* tensor = tensors.of(mine.name, mine.dtype, mine.shape);
      if (tensor == nullptr) return Error{text("rank ", rank, " has another ", mine.name, " than the ranks before it")};
      for (StoredBox stored : mine.boxes) {
        stored.file = static_cast<int>(all.files.size()) - 1;
        tensor->boxes.push_back(stored);
      }
    }
  }
  return all;
}

Status Saver::join(const std::string& hidden, std::int64_t step, const std::string& config) {
  base::Result<Manifest> all = joined(hidden);
  if (!all) return all.as_error();
  saved_.bytes = all.value().bytes();
  all.value().step = step;
  all.value().config = config;
  // Nothing gets a name that could not be read again: so boxes that do not cover a tensor are found now
  const std::string content = to_text(all.value());
  if (static_cast<base::Bytes>(content.size()) > place_.most_manifest) {
    return Error{text("its manifest has ", content.size(), " bytes, and at most ", place_.most_manifest, " would be read again; with fewer ranks, or --set fsdp.sharding=flat, it names fewer pieces")};
  }
  if (const base::Result<Manifest> again = read(content, "of this run"); !again) return again.as_error();
  if (Status written = write_file((fs::path(hidden) / manifest_name).string(), content); !written) return written;
  for (base::Rank rank = 0; rank < place_.ranks; ++rank) ::unlink(path_in(hidden, rank, ".part").c_str());
  return Done{};
}

}  // namespace shardbook::checkpoint
