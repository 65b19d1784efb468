#include "engine/comm/nccl/nccl.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "engine/comm/nccl/all_to_all.hpp"
#include "engine/comm/nccl/backend.hpp"
#include "engine/comm/nccl/communicator.hpp"
#include "engine/comm/nccl/process.hpp"
#include "engine/device/cuda/cuda_device.hpp"

namespace shardbook::comm {
namespace {

constexpr base::Bytes warm_up_bytes = 1 << 16;
constexpr std::chrono::milliseconds look_every{50};
constexpr int most_ctas = 64;   // that NCCL has for a collective (MAXCHANNELS)

}  // namespace

NcclBackend::NcclBackend(world::World& world, device::Device& device, NcclOptions options)
    : world_(world), options_(options), rank_name_(base::text("rank ", world.rank())) {
  SHARDBOOK_CHECK(device.kind() == device::Kind::cuda, "NCCL needs a cuda device, not ", device::name_of(device.kind()));
  serialised_ = !prepare_process(options_.in_graphs);
  if (options_.buffers != Buffers::plain) device::cuda_keep_buffers_whole(device);
  const char* problem = options_.buffers == Buffers::windows ? windows_problem(version_number(), options_.in_graphs, options_.behind_kernels) : nullptr;
  if (problem != nullptr) throw base::Failure(problem);
  warm_up_memory_ = device::cuda_scratch(device, warm_up_bytes);
  for (Before& before : before_) before.event = device::cuda::make_order_event(rank_name_);

  // Rank 0 names the world's communicator; all join it.
  ncclUniqueId id = {};
  if (world.rank() == 0) expect(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId", rank_name_);
  const std::string shared = world.broadcast(std::string_view(reinterpret_cast<const char*>(&id), sizeof(id)), 0);
  SHARDBOOK_CHECK_EQ(shared.size(), sizeof(id), "bytes of NCCL's id: do all ranks run the same build?");
  std::memcpy(&id, shared.data(), sizeof(id));

  ncclConfig_t config = config_of(false);
  try {
    const Inside inside(*this);
    const ncclResult_t code = ncclCommInitRankConfig(&whole_, world.size(), id, world.rank(), &config);
    if (whole_ != nullptr) keep(whole_);
    if (code != ncclInProgress) expect(code, whole_, "ncclCommInitRankConfig", rank_name_);
    await_ready(whole_, "ncclCommInitRankConfig", rank_name_);
  } catch (...) {
    abort_all();
    throw;
  }
  SHARDBOOK_CUDA(cudaGetDevice(&gpu_), rank_name_);
  if (options_.mark_ends) poll_.emplace(look_every, [this] { look_for_ends(); });
}

std::string NcclBackend::version() const {
  return base::text("NCCL ", nccl_version(), !has_launch_order() ? ", older than 2.26: collectives serialised" : "");
}

ncclConfig_t NcclBackend::config_of(bool blocking) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  if (options_.max_ctas > 0) config.maxCTAs = options_.max_ctas;
  if (options_.buffers == Buffers::windows) use_copy_engines(config);
  return config;
}

// Made just now; ended at once where the others have been.
void NcclBackend::keep(ncclComm_t nccl) {
  {
    std::lock_guard lock(list_mutex_);
    if (!aborted_) {
      all_.push_back(nccl);
      mine_.push_back(nccl);
      return;
    }
  }
  (void)ncclCommAbort(nccl);
  stop_if_failed();
}

// Whether it was still there: else abort_all() ends it.
bool NcclBackend::take(ncclComm_t nccl) {
  std::lock_guard lock(list_mutex_);
  return std::erase(all_, nccl) == 1;
}

void NcclBackend::look_for_ends() {
  thread_local bool on_its_gpu = false;
  if (!on_its_gpu) {
    on_its_gpu = cudaSetDevice(gpu_) == cudaSuccess;
    // A capture of the rank's thread into a graph is not this thread's business, and goes on though this one asks.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
  }
  std::vector<const Ends*> all;
  {
    std::lock_guard lock(list_mutex_);
    for (const auto& ends : ends_) all.push_back(ends.get());
  }
  for (const Ends* ends : all) ends->look();
}

NcclBackend::~NcclBackend() {
  // Communicators end together, or, where something failed, each by itself.
  if (!aborting_ && !world_.failed() && std::uncaught_exceptions() == 0) {
    try {
      const Inside inside(*this);
      for (auto nccl = mine_.rbegin(); nccl != mine_.rend(); ++nccl) {
        const ncclResult_t code = ncclCommFinalize(*nccl);
        if (code != ncclInProgress) expect(code, *nccl, "ncclCommFinalize", rank_name_);
        await_ready(*nccl, "ncclCommFinalize", rank_name_);
        if (!take(*nccl)) break;
        expect(ncclCommDestroy(*nccl), nullptr, "ncclCommDestroy", rank_name_);
      }
    } catch (const base::Failure&) {
      // A peer failed meanwhile; its cause is known to the world.
    }
  }
  if (aborter_.joinable()) aborter_.join();
  abort_all();
  poll_.reset();
}

std::unique_ptr<Communicator> NcclBackend::communicator(device::Device& device, const mesh::Group& group) {
  const std::string who = base::text(rank_name_, ", ", group.axis, " group ", group.number);
  const program::GroupId id = device.recorder().add_group({group.axis, group.ranks});
  const bool takes_whole = is_whole_world(group) && !whole_is_taken_ && !options_.blocking_calls;
  if (takes_whole) {
    whole_is_taken_ = true;
    warm_up(whole_, group, who);
  }
  const ncclComm_t nccl = takes_whole ? whole_ : split(group, config_of(options_.blocking_calls), who);
  auto made = std::make_unique<NcclCommunicator>(group, id, *this, nccl, who);
  FlightLog& log = flight().add(group);
  made->keep_log(log);
  if (options_.mark_ends) {
    auto ends = std::make_unique<Ends>(log, who);
    made->mark(*ends);
    std::lock_guard lock(list_mutex_);
    ends_.push_back(std::move(ends));
  }
  return made;
}

ncclComm_t NcclBackend::split_beside_nothing(const mesh::Group& group, const std::string& who) {
  if (options_.ctas_beside_nothing == 0) return nullptr;
  ncclConfig_t config = config_of(options_.blocking_calls);
  config.minCTAs = options_.ctas_beside_nothing;
  config.maxCTAs = std::max(options_.max_ctas > 0 ? options_.max_ctas : most_ctas, options_.ctas_beside_nothing);   // NCCL refuses a least without a most
  return split(group, config, base::text(who, " (for what nothing runs beside)"));
}

ncclComm_t NcclBackend::split(const mesh::Group& group, ncclConfig_t config, const std::string& who) {
  ncclComm_t nccl = nullptr;
  {
    const Inside inside(*this);
    const ncclResult_t code = ncclCommSplit(whole_, group.number, group.index_of_me, &nccl, &config);
    if (code != ncclInProgress) expect(code, whole_, "ncclCommSplit", who);
    await_ready(whole_, "ncclCommSplit", who);
    SHARDBOOK_CHECK(nccl != nullptr, who, ": ncclCommSplit gave no communicator");
    keep(nccl);
    await_ready(nccl, "ncclCommSplit", who);
  }
  int size = 0, index = -1;
  expect(ncclCommCount(nccl, &size), nccl, "ncclCommCount", who);
  expect(ncclCommUserRank(nccl, &index), nccl, "ncclCommUserRank", who);
  SHARDBOOK_CHECK(size == group.size() && index == group.index_of_me, who, ": NCCL counts ", size, " ranks and me as ",
                  index, ", the mesh ", group.size(), " and ", group.index_of_me);
  warm_up(nccl, group, who);
  return nccl;
}

bool NcclBackend::is_whole_world(const mesh::Group& group) const {
  if (group.size() != world_.size()) return false;
  for (int i = 0; i < group.size(); ++i) {
    if (group.ranks[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

void NcclBackend::await_ready(ncclComm_t nccl, const char* expression, const std::string& who) {
  ncclResult_t state = ncclInProgress;
  while (true) {
    stop_if_failed();   // before NCCL is asked of a communicator that may have been aborted
    expect(ncclCommGetAsyncError(nccl, &state), nccl, "ncclCommGetAsyncError", who);
    if (state != ncclInProgress) break;
    std::this_thread::yield();
  }
  expect(state, nccl, expression, who);
}

void NcclBackend::expect(ncclResult_t code, ncclComm_t nccl, const char* expression, const std::string& who) const {
  if (code == ncclSuccess) return;
  // A peer that left makes calls fail here: its cause is the first one.
  // And a communicator that was aborted can be asked nothing.
  stop_if_failed();
  throw base::Failure(base::text(who, ": ", expression, " failed: ", ncclGetErrorString(code), ". NCCL says: ",
                                 ncclGetLastError(nccl)));
}

void NcclBackend::stop_if_failed() const {
  if (world_.failed()) world_.throw_if_failed();
  if (aborting_.load()) throw base::Failure(base::text(rank_name_, ": collectives were aborted"));
}

void NcclBackend::warm_up(ncclComm_t nccl, const mesh::Group& group, const std::string& who) {
  const device::cuda::OwnedStream owned = device::cuda::make_stream(0, who);
  const cudaStream_t stream = owned.get();
  char* memory = static_cast<char*>(warm_up_memory_);
  const int size = group.size(), me = group.index_of_me;
  const std::size_t shard = static_cast<std::size_t>(warm_up_bytes) / sizeof(float) / static_cast<std::size_t>(size);
  float* mine = reinterpret_cast<float*>(memory) + static_cast<std::size_t>(me) * shard;

  call(nccl, "warm-up: ncclAllReduce", who, stream,
       [&] { return ncclAllReduce(memory, memory, shard, ncclFloat32, ncclSum, nccl, stream); });
  call(nccl, "warm-up: ncclAllGather", who, stream,
       [&] { return ncclAllGather(mine, memory, shard, ncclFloat32, nccl, stream); });
  call(nccl, "warm-up: ncclReduceScatter", who, stream,
       [&] { return ncclReduceScatter(memory, mine, shard, ncclFloat32, ncclSum, nccl, stream); });
  call(nccl, "warm-up: ncclBroadcast", who, stream,
       [&] { return ncclBroadcast(memory, memory, shard, ncclFloat32, 0, nccl, stream); });
  call(nccl, "warm-up: ncclSend, ncclRecv", who, stream, [&] {
    // The first half of the memory goes out, the second takes what comes.
    const std::vector<std::int64_t> pieces(static_cast<std::size_t>(size), warm_up_bytes / 2 / size / base::size_of(base::DType::f32));
    return nccl_all_to_all(memory, memory + warm_up_bytes / 2, base::DType::f32, pieces.data(), pieces.data(), size, nccl, stream);
  });
  cudaError_t code;
  while ((code = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    stop_if_failed();
    std::this_thread::yield();
  }
  SHARDBOOK_CUDA(code, who);
}

void NcclBackend::check() {
  const Inside inside(*this);
  for (ncclComm_t nccl : mine_) {
    ncclResult_t state = ncclSuccess;
    expect(ncclCommGetAsyncError(nccl, &state), nccl, "ncclCommGetAsyncError", rank_name_);
    if (state != ncclInProgress) expect(state, nccl, "a collective", rank_name_);
  }
}

void NcclBackend::abort() {
  // On a thread of its own: the caller must not block, and this rank's thread may be stuck in a launch behind a
  // collective that only the abort ends.
  if (aborting_.exchange(true)) return;
  aborter_ = std::thread([this] {
    // The rank's thread leaves NCCL at once, for `aborting_` stops it: but not out of a call that NCCL does not return
    // from. That one only the abort ends, which NCCL allows from another thread; nothing is locked that it holds.
    constexpr auto patience = std::chrono::milliseconds(200);
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (inside_.load() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    abort_all();
  });
}

void NcclBackend::abort_all() {
  std::vector<ncclComm_t> all;
  {
    std::lock_guard lock(list_mutex_);
    if (std::exchange(aborted_, true)) return;
    all.swap(all_);
  }
  // In one group, so that all kernels are told to quit before the first communicator's memory is freed: freeing
  // waits for the device.
  (void)ncclGroupStart();
  for (ncclComm_t nccl : all) (void)ncclCommAbort(nccl);
  (void)ncclGroupEnd();
}

std::string nccl_windows_problem() {
  const char* problem = windows_problem(version_number(), false, false);
  return problem == nullptr ? "" : problem;
}

std::unique_ptr<Backend> make_nccl_backend(world::World& world, device::Device& device, NcclOptions options) {
  return std::make_unique<NcclBackend>(world, device, options);
}

}  // namespace shardbook::comm
