// Every kernel, copy and fill of a process as CUPTI saw it, a line each: kind, stream, start, end (ns of CUPTI's clock), name.
// The driver loads it by itself: CUDA_INJECTION64_PATH=watch.so SPANS_OUT=FILE PROGRAM; each process writes FILE.PID. See README.md.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include <cupti.h>
#include <unistd.h>

namespace {

std::FILE* out = nullptr;

void request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *size = 8 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most_records = 0;
}

template <class Activity>
void line(const char* kind, const CUpti_Activity* record, const char* name) {
  const auto* of = reinterpret_cast<const Activity*>(record);
  std::fprintf(out, "%s %u %llu %llu %s\n", kind, of->streamId, static_cast<unsigned long long>(of->start), static_cast<unsigned long long>(of->end), name);
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (out != nullptr && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        line<CUpti_ActivityKernel10>("kernel", record, reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: line<CUpti_ActivityMemcpy6>("copy", record, "copy"); break;
      case CUPTI_ACTIVITY_KIND_MEMSET: line<CUpti_ActivityMemset4>("fill", record, "fill"); break;
      default: break;
    }
  }
  std::free(buffer);
  if (out != nullptr) std::fflush(out);   // whoever watches may be ended without a word
}

void finish() {
  cuptiActivityFlushAll(1);
  if (out != nullptr) std::fclose(out);
  out = nullptr;
}

}  // namespace

extern "C" int InitializeInjection() {
  const char* path = std::getenv("SPANS_OUT");
  out = path == nullptr ? nullptr : std::fopen((std::string(path) + "." + std::to_string(getpid())).c_str(), "w");
  if (out == nullptr) return 0;
  cuptiActivityRegisterCallbacks(request, completed);
  for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) cuptiActivityEnable(kind);
  cuptiActivityFlushPeriod(100);   // ms
  std::atexit(finish);
  return 1;
}
