// workbook/learner: what is the learner's own, and how is it kept?
//
// A learner edits experiments/NN_name/FILE, which begins as a copy of the lab's. Invariant: nothing that stands there is
// ever overwritten without a copy beside it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/base/result.hpp"
#include "engine/workbook/lab.hpp"

namespace shardbook::workbook {

// The file's absolute path; of notes, that of their folder. Where it is not there yet, the starter is copied to it (for answers, the questions), and
// `*made` says so. Errors: the starter is missing, the folder cannot be written.
base::Result<std::string> provide_own_file(const std::string& root, const Place& place, bool* made = nullptr);

// Its hash (progress.hpp), "" where it is not there. Notes of several parts grow in one folder, so their pass holds until a
// check fails: their hash is "notes" as soon as there are any.
std::string own_hash(const std::string& root, const Place& place);

// The learner's files of a part by their paths from the root: one, or those of a folder. Files over 256 KiB are left out.
std::map<std::string, std::string> own_files(const std::string& root, const Place& place);

// How those files stand on the disk: another text as soon as one is saved, in place or beside and renamed, made or taken away.
// What editors leave for a moment (hidden files, `x~`, `x.tmp`, vim's 4913) does not count.
std::string own_look(const std::string& root, const Place& place);

// Puts the starter in its place; what stood there is kept in experiments/NN_name/kept/. Returns the copy's path from the
// root, "" where there was nothing. Errors: as above; the copy cannot be made (then nothing has changed).
base::Result<std::string> reset_own_file(const std::string& root, const Place& place);

// One check of a part at a time: two would note their outcomes for each other's file.
class Lock {
 public:
  explicit Lock(int file) : file_(file) {}
  Lock(Lock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  Lock& operator=(Lock&&) = delete;
  ~Lock();
  int file() const { return file_; }

 private:
  int file_;
};
// Waits for a check in another terminal, at most `seconds`, and calls `waits` once where it has to. Errors: it still runs
// then; Ctrl-C (child.hpp); the folder cannot be written.
base::Result<Lock> lock_checks(const std::string& root, const std::string& part, double seconds = 30, const std::function<void()>& waits = nullptr);

// Writes beside and renames. Errors: the folder cannot be written.
base::Status write_whole(const std::string& path, const std::string& content);

}  // namespace shardbook::workbook
