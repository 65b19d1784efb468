// workbook/guard: what does code that nobody has read write, and where?
//
// Loaded before an exercise's program (LD_PRELOAD). The calls that open a file for writing, move, remove or make one are
// caught; a path outside the folder that SHARDBOOK_GUARDED names ends the program with one line on standard error. It
// stops mistakes, and no malice: who calls the kernel past the C library is not seen.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int guard_code = 97;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_below(const char* path, const char* folder) {
  const std::size_t length = std::strlen(folder);
  return std::strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

// The path itself may not exist yet, so its folder is what is resolved.
bool is_allowed(const char* path) {
  const char* folder = std::getenv("SHARDBOOK_GUARDED");
  if (folder == nullptr || path == nullptr || is_below(path, "/dev") || is_below(path, "/proc")) return true;
  char parent[4096], resolved[4096], own[4096];
  std::snprintf(parent, sizeof parent, "%s", path);
  char* slash = std::strrchr(parent, '/');
  if (slash == nullptr) std::snprintf(parent, sizeof parent, ".");
  else if (slash == parent) slash[1] = '\0';
  else *slash = '\0';
  if (::realpath(parent, resolved) == nullptr) return true;   // the call fails by itself
  if (::realpath(folder, own) == nullptr) return true;
  return is_below(resolved, own);
}

void demand(const char* path, const char* what) {
  if (is_allowed(path)) return;
  char line[4400];
  const int length = std::snprintf(line, sizeof line, "shardbook-guard: %s %s\n", what, path);
  [[maybe_unused]] const ssize_t said = ::write(2, line, static_cast<std::size_t>(length));
  ::_exit(guard_code);
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0; }
bool writes(const char* mode) { return std::strpbrk(mode, "wa+") != nullptr; }

}  // namespace

extern "C" {

#define SHARDBOOK_GUARD_OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                                      \
    if (writes(flags)) demand(path, "writes");                                      \
    va_list rest;                                                                   \
    va_start(rest, flags);                                                          \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                                   \
    return next<int(const char*, int, ...)>(#name)(path, flags, mode);              \
  }
SHARDBOOK_GUARD_OPEN(open)
SHARDBOOK_GUARD_OPEN(open64)
#undef SHARDBOOK_GUARD_OPEN

int creat(const char* path, mode_t mode) {
  demand(path, "writes");
  return next<int(const char*, mode_t)>("creat")(path, mode);
}
FILE* fopen(const char* path, const char* mode) {
  if (writes(mode)) demand(path, "writes");
  return next<FILE*(const char*, const char*)>("fopen")(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  if (writes(mode)) demand(path, "writes");
  return next<FILE*(const char*, const char*)>("fopen64")(path, mode);
}
int rename(const char* from, const char* to) noexcept {
  demand(from, "moves");
  demand(to, "writes");
  return next<int(const char*, const char*)>("rename")(from, to);
}
int unlink(const char* path) noexcept {
  demand(path, "removes");
  return next<int(const char*)>("unlink")(path);
}
int remove(const char* path) noexcept {
  demand(path, "removes");
  return next<int(const char*)>("remove")(path);
}
int rmdir(const char* path) noexcept {
  demand(path, "removes");
  return next<int(const char*)>("rmdir")(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  demand(path, "makes");
  return next<int(const char*, mode_t)>("mkdir")(path, mode);
}
int truncate(const char* path, off_t length) noexcept {
  demand(path, "shortens");
  return next<int(const char*, off_t)>("truncate")(path, length);
}
int symlink(const char* to, const char* path) noexcept {
  demand(path, "makes");
  return next<int(const char*, const char*)>("symlink")(to, path);
}

}  // extern "C"
