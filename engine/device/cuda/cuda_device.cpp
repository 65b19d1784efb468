#include "engine/device/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/device/crew.hpp"
#include "engine/device/cuda/arena.hpp"
#include "engine/device/cuda/blas_library.hpp"
#include "engine/device/cuda/clock_kernel.hpp"
#include "engine/device/cuda/delay_kernel.hpp"
#include "engine/device/cuda/mark_kernel.hpp"
#include "engine/device/cuda/owners.hpp"
#include "engine/device/cuda/span_timer.hpp"
#include "engine/device/cuda/step_graphs.hpp"

namespace shardbook::device {
namespace cuda {
namespace {

using base::Nanoseconds;
using program::host_now;

// What cuBLASLt's kernels for this generation ask for at most (cuBLAS documentation: 32 MiB on Hopper).
constexpr base::Bytes blas_workspace_bytes = base::Bytes{32} << 20;
constexpr Nanoseconds spin_for = 1'000'000;
constexpr Nanoseconds watch_every = 50'000'000;
constexpr std::size_t first_timed_ops = 2048;

// Must run before this process' first call of CUDA.
void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("CUDA_MODULE_LOADING", "EAGER", 0); });
}

class BlasHandle {
 public:
  BlasHandle() {
    const cublasStatus_t code = blas_library().cublasLtCreate(&handle_);
    if (code != CUBLAS_STATUS_SUCCESS) {
      throw base::Failure(base::text("cublasLtCreate failed: ", blas_library().cublasLtGetStatusName(code)));
    }
  }
  ~BlasHandle() { blas_library().cublasLtDestroy(handle_); }
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  cublasLtHandle_t get() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int gpu, Storage storage, base::Rank rank)
      : Device(Kind::cuda, storage, rank), gpu_(gpu), context_(base::text("rank ", rank, ", GPU ", gpu)) {
    SHARDBOOK_CUDA(cudaSetDevice(gpu), context_);
    SHARDBOOK_CUDA(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, gpu), context_);
    SHARDBOOK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest_priority_, &highest_priority_), context_);
    arena_.emplace(gpu, context_);
    blas_.emplace();
    timer_.emplace(context_);
    graphs_.emplace(context_);
    fill_once();
  }

  ~CudaDevice() override {
    // Memory must not go while a kernel uses it; a kernel that waits for a dead peer may never end, though.
    cudaSetDevice(gpu_);
    const Nanoseconds give_up = host_now() + 2'000'000'000;
    for (const StreamState& state : streams_) {
      while (cudaStreamQuery(state.stream.get()) == cudaErrorNotReady && host_now() < give_up) std::this_thread::yield();
    }
  }

  void seal() override {
    for (StreamState& state : streams_) {
      state.queue.blas_workspace = arena_->allocate(blas_workspace_bytes);
      state.queue.blas_workspace_bytes = static_cast<std::size_t>(blas_workspace_bytes);
    }
    synchronize();
    const OwnedStream scratch = make_stream(lowest_priority_, context_);
    std::vector<SpanTimer::Timed> streams;
    for (const StreamState& state : streams_) streams.push_back({state.stream.get(), state.goes_last});
    timer_->measure_cost(scratch.get(), streams);
    timer_->reserve(first_timed_ops);
    Device::seal();
  }

  void* pinned(base::Bytes bytes) override {
    SHARDBOOK_CHECK(!sealed(), "page-locked memory is asked for after seal(): make it before the first step");
    pinned_.push_back(make_pinned(bytes, context_));
    return pinned_.back().get();
  }

  void synchronize() override {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      await([&] { return cudaStreamQuery(streams_[i].stream.get()); }, "cudaStreamQuery", static_cast<program::StreamId>(i));
    }
  }

  void* scratch(base::Bytes bytes) {
    SHARDBOOK_CHECK(!sealed(), "scratch memory is asked for after seal(): make it before the first step");
    return arena_->allocate(bytes);
  }

  void keep_buffers_whole() { arena_->keep_whole(); }

  // One processor stays with the thread that issues
  void set_up_crew() override {
    SHARDBOOK_CHECK(!sealed(), "threads for work of the host are asked for after seal(): make them before the first step");
    if (!crew_) crew_.emplace(std::max(1, processors_here() - 1));
    for (StreamState& state : streams_) state.queue.crew = &*crew_;
  }

  bool captures() const override { return true; }
  GraphInfo info(Graph graph) const override { return graphs_->info(graph); }
  void drop_graphs() override { graphs_->drop(); }

  double clock() {
    constexpr Nanoseconds looks_for = 100'000;
    if (clock_said_.get() == nullptr) {
      clock_stream_ = make_stream(lowest_priority_, context_);
      clock_said_ = make_pinned(2 * sizeof(std::uint64_t), context_);
    }
    auto* const said = static_cast<std::uint64_t*>(clock_said_.get());
    launch_clock_kernel(clock_stream_.get(), looks_for, said);
    SHARDBOOK_CUDA(cudaStreamSynchronize(clock_stream_.get()), context_);
    return static_cast<double>(said[1]) / static_cast<double>(said[0]);
  }

  CudaTiming timing() const {
    const SpanTimer::Quality& quality = timer_->quality();
    // Costs are those of the marks that a step has whose host is ahead
    const bool as_measured = timer_->by_kernels() == marks_start_early();
    return {quality.clock_error, quality.host_cost, as_measured ? quality.device_cost : 0, quality.lead, timer_->by_kernels(), quality.without_marks};
  }

 protected:
  void* allocate_storage(base::Bytes bytes) override { return arena_->allocate(bytes); }

  void stream_created(program::StreamId id, Priority priority) override {
    SHARDBOOK_CHECK_EQ(static_cast<std::size_t>(id), streams_.size(), "streams are created in the order of their ids");
    StreamState state;
    state.stream = make_stream(priority == Priority::high ? highest_priority_ : lowest_priority_, context_);
    state.queue.stream = state.stream.get();
    state.queue.blas = blas_->get();
    state.queue.multiprocessors = multiprocessors_;
    state.goes_last = priority == Priority::normal;
    state.queue.crew = crew_ ? &*crew_ : nullptr;
    streams_.push_back(std::move(state));
  }

  void event_created(program::EventId id) override {
    SHARDBOOK_CHECK_EQ(static_cast<std::size_t>(id), events_.size(), "events are created in the order of their ids");
    events_.push_back(make_order_event(context_));
  }

  void run(program::StreamId stream, const Body& body, program::OpIndex op) override {
    const StreamState& state = streams_[stream];
    ++ops_in_step_;
    BeforeEnded before_ended;
    if (op != program::no_op) before_ended.at = timer_->begin_op(op, stream, state.stream.get(), made_of(state));
    CudaQueue queue = state.queue;
    queue.left_to_others = left();
    queue.before_ended = &before_ended;
    body.cuda(body.arguments, queue);
    if (longer() > 0) launch_delay_kernel(state.stream.get(), longer());
    if (op == program::no_op) return;
    // Behind a collective the stream is recorded at once, and others wait there
    timer_->end_op(before_ended, !state.goes_last);
    if (host_is_slower()) timer_->mark_now();
  }

  void run_record(program::StreamId stream, program::EventId event) override {
    if (graphs_->capturing()) return graphs_->record(event, streams_[stream].stream.get());
    timer_->records(event);
    SHARDBOOK_CUDA(cudaEventRecord(events_[event].get(), streams_[stream].stream.get()), where(stream));
    timer_->recorded(stream, event);
  }

  void run_wait(program::StreamId stream, program::EventId event) override {
    if (graphs_->capturing()) return graphs_->wait(event, streams_[stream].stream.get());
    timer_->waits(stream, event);
    SHARDBOOK_CUDA(cudaStreamWaitEvent(streams_[stream].stream.get(), events_[event].get(), 0), where(stream));
  }

  void run_host_wait(program::EventId event) override {
    timer_->mark_now();
    await([&] { return cudaEventQuery(events_[event].get()); }, "cudaEventQuery", 0);
  }

  void capture_begins(program::StreamId origin) override {
    std::vector<cudaStream_t> others;
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
      if (stream != origin) others.push_back(streams_[stream].stream.get());
    }
    graphs_->begin(streams_[origin].stream.get(), others, events_.size());
  }

  // What was issued before the first graph ends before that is launched, and what NCCL put on streams of its own while it was captured.
  Graph capture_ends() override {
    const Graph graph = graphs_->end();
    synchronize();
    SHARDBOOK_CUDA(cudaDeviceSynchronize(), context_);
    return graph;
  }
  void run_graph(Graph graph) override { graphs_->launch(graph); }

  void step_begins(bool timed) override {
    ops_in_step_ = 0;
    const Nanoseconds now = host_now();
    // Of two untimed steps, one behind the other, the first: how long it was issued for, and when the next began.
    if (!timed && untimed_begin_ > 0) untimed_period_ = now - untimed_begin_;
    untimed_begin_ = timed ? 0 : now;
    if (!timed) return;
    synchronize();
    timer_->reserve(most_ops_ + most_ops_ / 4);
    timer_->begin_step({untimed_issue_, untimed_period_, untimed_ops_});
  }

  void step_ends(bool timed, program::StepTimes& times) override {
    most_ops_ = std::max(most_ops_, ops_in_step_);
    if (!timed) {
      untimed_issue_ = host_now() - untimed_begin_;
      untimed_ops_ = ops_in_step_;
      return;
    }
    timer_->mark_now();
    synchronize();
    timer_->end_step(times);
  }

 private:
  struct StreamState {
    OwnedStream stream;
    CudaQueue queue;
    bool goes_last = true;   // where the device has priorities
  };

  // Copies and collectives may be those of copy engines, and the host's work is none of the GPU's.
  SpanTimer::Of made_of(const StreamState& state) const {
    const program::OpKind kind = op_desc().kind;
    if (!state.goes_last || (program::class_of(kind) != program::OpClass::compute && kind != program::OpKind::fill)) return SpanTimer::Of::anything;
    const bool by_library = kind == program::OpKind::gemm || kind == program::OpKind::attention;
    return by_library || longer() > 0 ? SpanTimer::Of::kernels : SpanTimer::Of::early_kernels;
  }

  // Once, before anything else. Without it, in steps of some sizes, which of two kernels is let in first that become ready at one event is
  // a toss; after it the one on the busy stream is, always (experiments/speed, "toss-gone"). What this fill changes in CUDA is not known.
  void fill_once() {
    constexpr std::size_t bytes = 4096;
    void* place = nullptr;
    SHARDBOOK_CUDA(cudaMalloc(&place, bytes), context_);
    const OwnedDeviceMemory memory(place);
    const OwnedStream stream = make_stream(lowest_priority_, context_);
    SHARDBOOK_CUDA(cudaMemsetAsync(place, 0, bytes, stream.get()), context_);
    SHARDBOOK_CUDA(cudaStreamSynchronize(stream.get()), context_);
  }

  std::string where(program::StreamId stream) {
    return base::text(context_, ", stream ", recorder().catalogue().streams[stream].name);
  }

  // Waits until `query` no longer says "not ready": spins, then yields, and looks after the peers meanwhile.
  template <class Query>
  void await(Query query, const char* expression, program::StreamId stream) {
    const Nanoseconds begin = host_now();
    Nanoseconds next_watch = begin + watch_every;
    cudaError_t code;
    while ((code = query()) == cudaErrorNotReady) {
      const Nanoseconds now = host_now();
      if (now > next_watch) {
        watch();
        next_watch = now + watch_every;
      }
      if (now - begin > spin_for) std::this_thread::yield();
    }
    if (code != cudaSuccess) check(code, expression, where(stream));
  }

  int gpu_;
  std::string context_;
  int multiprocessors_ = 0;
  int lowest_priority_ = 0, highest_priority_ = 0;
  // Destroyed from the last to the first: memory goes after what uses it.
  std::optional<Arena> arena_;
  std::vector<OwnedPinned> pinned_;
  std::optional<Crew> crew_;
  std::optional<BlasHandle> blas_;
  std::vector<OwnedEvent> events_;
  std::vector<StreamState> streams_;
  std::optional<SpanTimer> timer_;
  OwnedStream clock_stream_;
  OwnedPinned clock_said_;
  std::optional<StepGraphs> graphs_;
  std::size_t ops_in_step_ = 0, most_ops_ = 0, untimed_ops_ = 0;
  Nanoseconds untimed_begin_ = 0, untimed_issue_ = 0, untimed_period_ = 0;
};

}  // namespace
}  // namespace cuda

int cuda_device_count() {
  cuda::prepare_process();
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return count;
}

std::string cuda_problem() {
  cuda::prepare_process();
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (code != cudaSuccess) return base::text("CUDA finds no GPU: ", cudaGetErrorString(code));
  return count == 0 ? "CUDA finds no GPU" : "";
}

std::string cuda_blas_problem() {
  try {
    cuda::blas_library();
    return "";
  } catch (const base::Failure& failure) {
    return failure.what();
  }
}

std::string cuda_device_name(int gpu) {
  cuda::prepare_process();
  cudaDeviceProp properties = {};
  SHARDBOOK_CUDA(cudaGetDeviceProperties(&properties, gpu), "GPU ", gpu);
  return properties.name;
}

base::Bytes cuda_device_memory(int gpu) {
  cuda::prepare_process();
  cudaDeviceProp properties = {};
  SHARDBOOK_CUDA(cudaGetDeviceProperties(&properties, gpu), "GPU ", gpu);
  return static_cast<base::Bytes>(properties.totalGlobalMem);
}

int cuda_driver_version() {
  cuda::prepare_process();
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int cuda_runtime_version() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

base::Result<std::unique_ptr<Device>> make_cuda_device(int gpu, Storage storage, base::Rank rank) {
  const int count = cuda_device_count();
  if (count == 0) return base::Error{base::text("rank ", rank, " has no GPU: ", cuda_problem(), "; use --device host")};
  if (gpu < 0 || gpu >= count) {
    return base::Error{base::text("rank ", rank, " asks for GPU ", gpu, ", but this process sees ", count,
                                  ": ask for fewer ranks, or use --device host")};
  }
  const bool bf16_ok = storage.bf16 == base::DType::bf16 || storage.bf16 == base::DType::f32;
  SHARDBOOK_CHECK(bf16_ok && storage.f32 == base::DType::f32, "a cuda device stores bf16 as bf16 or f32, and f32 as f32");
  try {
    return std::unique_ptr<Device>(std::make_unique<cuda::CudaDevice>(gpu, storage, rank));
  } catch (const base::Failure& failure) {
    return base::Error{base::text("GPU ", gpu, " cannot be used: ", failure.what())};
  }
}

void* cuda_scratch(Device& device, base::Bytes bytes) {
  SHARDBOOK_CHECK(device.kind() == Kind::cuda, "cuda scratch memory of a ", name_of(device.kind()), " device");
  return static_cast<cuda::CudaDevice&>(device).scratch(bytes);
}

void cuda_keep_buffers_whole(Device& device) {
  SHARDBOOK_CHECK(device.kind() == Kind::cuda, "pieces of memory of a ", name_of(device.kind()), " device");
  static_cast<cuda::CudaDevice&>(device).keep_buffers_whole();
}

CudaPiece cuda_piece_of(const void* place) {
  CUdeviceptr begin = 0;
  CudaPiece piece;
  const CUresult code = cuda::driver().get_address_range(&begin, &piece.bytes, reinterpret_cast<CUdeviceptr>(place));
  if (code != CUDA_SUCCESS) throw base::Failure("no memory of a GPU lies at the place that a collective is given");
  piece.begin = reinterpret_cast<void*>(begin);
  return piece;
}

double cuda_clock(Device& device) {
  SHARDBOOK_CHECK(device.kind() == Kind::cuda, "the clock of a ", name_of(device.kind()), " device");
  return static_cast<cuda::CudaDevice&>(device).clock();
}

CudaTiming cuda_timing(const Device& device) {
  SHARDBOOK_CHECK(device.kind() == Kind::cuda, "timing of a ", name_of(device.kind()), " device");
  return static_cast<const cuda::CudaDevice&>(device).timing();
}

}  // namespace shardbook::device
