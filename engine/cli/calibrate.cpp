#include "engine/cli/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/cli/calibrate_benches.hpp"
#include "engine/cli/calibrate_graph.hpp"
#include "engine/cli/calibrate_power.hpp"
#include "engine/cli/stopwatch.hpp"
#include "engine/kernels/activation.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/kernels/pause.hpp"
#include "engine/mesh/mesh.hpp"

namespace shardbook::cli {

using base::Bytes;
using base::DType;
using base::text;
using device::Lane;
using program::OpKind;
using simulate::Benchmarks;
using tensor::Tensor;

namespace {

constexpr Bytes tiny = 4096;
constexpr Bytes small_mix = Bytes{16} * 1024 * 1024;  // kernels that move no more are in the mix of calls

class Calibration {
 public:
  Calibration(world::World& world, device::Device& device, comm::Backend& backend, Benchmarks plan,
              const std::function<void(const std::string&)>& say)
      : world_(world), device_(device), plan_(possible(std::move(plan), world.size())), say_(say),
        compute_(device.create_stream("compute")), comm_(device.create_stream("comm", device::Priority::high)),
        benches_(device, compute_, plan_), small_(benches_.by_name(small_mix)),
        moment_(tensor::allocate(device, {2}, DType::f32, program::MemoryKind::workspace, "calibrate.moment")), started_(device.create_event("started")), hop_there_(device.create_event("there")), hop_back_(device.create_event("back")) {
    // Every group of k neighbours, for each k that is measured.
    for (int ranks : group_sizes()) {
      const mesh::Mesh mesh({{"groups", world.size() / ranks}, {text("of ", ranks), ranks}});
      groups_[ranks] = backend.communicator(device, mesh.group(world.rank(), text("of ", ranks)));
    }
    device.seal();
    benches_.fill();
    watch_ = std::make_unique<Stopwatch>(world, device, compute_, benches_.buffer(std::min(benches_.largest_buffer(), Bytes{1} << 28)));
  }

  Benchmarks run() {
    plan_.device.multiprocessors = multiprocessors_of(device_, compute_);
    gemms();
    kernels();
    ops_among_others();
    device_costs();
    host_costs();
    tracing_costs();
    graph_costs();
    collectives();
    benches_.fill();   // AdamW on drawn moments has left what is no number, and multiplying that draws less power
    overlaps();
    matmuls_beside_collectives();
    power();
    return plan_;
  }

  Benchmarks run_collectives() {
    collectives();
    benches_.fill();
    overlaps();
    rooms();
    return plan_;
  }

 private:
  void say(const std::string& what) {
    if (world_.rank() == 0) say_(what);
  }

  // As training calls it: a rank's part of what is gathered or scattered lies in memory of its own, so a gather copies that, too; and
  // gradients are scattered as fp32, for which NCCL has other kernels where memory is windows.
  void collective(OpKind kind, comm::Communicator& group, Lane lane, const Tensor& whole) const {
    const std::int64_t part = whole.elements() / group.size() / 2 * 2;
    const Tensor even = whole.slice(0, {part * group.size()}), mine = benches_.part(part);
    switch (kind) {
      case OpKind::all_reduce: group.all_reduce(lane, even, even); break;
      case OpKind::all_gather: group.all_gather(lane, mine, even); break;
      case OpKind::reduce_scatter: group.reduce_scatter(lane, Benches::as_f32(even), Benches::as_f32(mine)); break;
      default: SHARDBOOK_CHECK(false, "no micro-benchmark runs ", program::name_of(kind));
    }
  }

  std::vector<int> group_sizes() const {
    std::vector<int> sizes;
    for (const auto& benchmark : plan_.collectives) sizes.push_back(benchmark.ranks);
    for (const auto& benchmark : plan_.overlaps) sizes.push_back(benchmark.ranks);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }

  // A GPU that was idle multiplies at its fastest for some 50 ms, and its clock has gone most of the way to what the limit on power has for
  // it after 150 (experiments/contention, "how-soon"), but goes up and down for a second: so cycles are told, too. A matmul that is short
  // leaves most of the GPU idle, and never gets there.
  void gemms() {
    constexpr double settled_ns = 160e6, shortest_ns = 15e3;
    for (std::size_t i = 0; i < plan_.gemms.size(); ++i) {
      simulate::GemmBenchmark& gemm = plan_.gemms[i];
      say(text("matmul ", i + 1, " of ", plan_.gemms.size()));
      const auto issue = [&] { benches_.gemm(gemm); };
      gemm.ns = watch_->period_ns(issue);
      if (device_.kind() != device::Kind::cuda || gemm.ns < shortest_ns) continue;
      const Stopwatch::Settled settled = watch_->settled_period(issue, settled_ns);
      gemm.ns = settled.ns;
      gemm.cycles = settled.cycles;
    }
  }

  // Name and bytes of the op that a case issues, as the record counts them.
  program::OpDesc described(const KernelCase& one) {
    const program::StepTimes times = watch_->timed(one.issue);
    return device_.recorder().programs()[times.program]->ops.front().desc;
  }

  void kernels() {
    Bytes most = 0;
    std::vector<KernelCase> cases;
    for (const simulate::KernelBenchmark& kernel : plan_.kernels) {
      cases.push_back(benches_.of_kind(kernel.kernel, kernel.bytes));
      most = std::max(most, kernel.bytes);
    }
    const std::vector<KernelCase> named = benches_.by_name(most);
    cases.insert(cases.end(), named.begin(), named.end());
    plan_.kernels.clear();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      say(text("kernel ", i + 1, " of ", cases.size()));
      const program::OpDesc desc = described(cases[i]);
      // Attention by tiles takes as long as its flops do
      const bool attention = desc.kind == OpKind::attention;
      const Bytes size = attention ? desc.flop_count : desc.bytes_read + desc.bytes_written;
      const std::string by_name = attention ? simulate::curve_of_heads(desc) : desc.name;
      benches_.fill();   // what the case before wrote may be zeros, or no numbers
      plan_.kernels.push_back({cases[i].kind.empty() ? by_name : cases[i].kind, size, watch_->period_ns(cases[i].issue)});
    }
  }

  // Every small kernel, and a matmul of another shape behind each: about what a small step is made of. Short of a thousand ops, which is
  // what a device queues.
  void small_ops() {
    for (std::size_t at = 0; at < small_.size(); ++at) small_[at].issue(), benches_.small_gemm(at);
  }
  int small_op_count() const { return 2 * static_cast<int>(small_.size()); }
  double mixed_ns() { return watch_->period_ns([this] { small_ops(); }, Stopwatch::Over::median, small_op_count()) / small_op_count(); }

  // In training hardly an op follows one of its kind: each finds the caches full of other ops' code and data. By how much the mix takes
  // longer than all its ops in trains of their own, an op takes longer there.
  void ops_among_others() {
    double trains_ns = 0;
    std::map<std::size_t, double> gemm_ns;
    for (std::size_t at = 0; at < small_.size(); ++at) {
      say(text("among others: ", at + 1, " of ", small_.size()));
      const auto [gemm, is_new] = gemm_ns.try_emplace(at % Benches::small_gemms);
      if (is_new) gemm->second = watch_->period_ns([&] { benches_.small_gemm(at); });
      trains_ns += gemm->second + watch_->period_ns(small_[at].issue);
    }
    if (!small_.empty()) plan_.among_others_ns = std::max(0.0, mixed_ns() - trains_ns / small_op_count());
  }

  void tiny_op(Lane lane) { benches_.pointwise(lane, tiny); }

  void device_costs() {
    say("latencies of the device");
    plan_.device.stream_gap_ns = assumed_gap_ns;
    // Behind an event, or on an idle device, no op is let in early: what it takes there is what it takes among others
    const double span = std::max(0.0, watch_->period_ns([&] { tiny_op(compute_); }) + plan_.among_others_ns - assumed_gap_ns);

    // To another stream and back: two spans and two latencies.
    const double there_and_back = watch_->period_ns([&] {
      tiny_op(compute_);
      device_.record(compute_, hop_there_);
      device_.wait(comm_, hop_there_);
      tiny_op(comm_);
      device_.record(comm_, hop_back_);
      device_.wait(compute_, hop_back_);
    });
    plan_.device.event_latency_ns = std::max(0.0, there_and_back / 2 - span);

    // One op on an idle device: what lies between the end of its call and its end, but for the op itself.
    std::vector<double> latencies, awakenings;
    for (int i = 0; i < 31; ++i) {
      const program::StepTimes one = watch_->timed([&] { tiny_op(compute_); });
      latencies.push_back(static_cast<double>(one.ran[0].end - one.issued[0].end) - span);
      const program::StepTimes waited = watch_->timed([&] {
        benches_.pointwise(compute_, std::min(benches_.largest_buffer(), Bytes{1} << 24));
        device_.record(compute_, started_);
        device_.host_wait(started_);
      });
      awakenings.push_back(static_cast<double>(waited.issued[2].end - waited.ran[0].end));
    }
    plan_.device.launch_latency_ns = std::max(0.0, watch_->over_ranks(Stopwatch::median(latencies), Stopwatch::Over::median));
    plan_.host.host_wait_ns = std::max(0.0, watch_->over_ranks(Stopwatch::median(awakenings), Stopwatch::Over::median));
  }

  // In training no call follows another of its kind: each finds the caches full of other calls' code and data. So
  // the calls are measured in a mix (small matmuls of several shapes, every kernel in turn, events, a collective),
  // and a mean over the mix is what a step's sum is made of. The caller sees a few per cent of it go to others.
  void mixed_calls() {
    const Tensor word = benches_.buffer(tiny);
    const auto mix = [&] {
      for (std::size_t at = 0; at < small_.size(); ++at) {
        small_[at].issue();
        benches_.small_gemm(at);
        if (at % 3 != 0 || groups_.empty()) continue;
        device_.record(compute_, hop_there_);
        device_.wait(comm_, hop_there_);
        collective(OpKind::all_reduce, *groups_.rbegin()->second, comm_, word);
        device_.record(comm_, hop_back_);
        device_.wait(compute_, hop_back_);
      }
    };
    const Stopwatch::CallCosts costs = watch_->call_costs(mix, 40);
    plan_.host.kernel_ns = costs.kernel;
    plan_.host.gemm_ns = costs.gemm;
    plan_.host.record_ns = costs.record;
    plan_.host.wait_ns = costs.wait;
    plan_.host.collective_ns = costs.collective;
  }

  void host_costs() {
    say("what calls cost the host");
    mixed_calls();
    const KernelCase copy = benches_.of_kind("copy", tiny);
    plan_.host.copy_ns = watch_->host_ns(copy.issue, 100);
    // A step of a thousand ops, less its ops.
    std::vector<double> steps;
    for (int i = 0; i < 11; ++i) {
      device_.synchronize();
      const base::Nanoseconds begin = program::host_now();
      device_.begin_step(1'000'000 + i, false);
      for (int op = 0; op < 1000; ++op) device_.record(compute_, hop_there_);
      const program::StepTimes& times = device_.end_step();
      steps.push_back(static_cast<double>(program::host_now() - begin - (times.issued.back().end - times.issued.front().start)));
    }
    plan_.host.step_ns = watch_->over_ranks(Stopwatch::median(steps), Stopwatch::Over::median);
  }

  // What the marks round each op of a traced step add: to the host's calls, and between ops of a stream whose host is
  // ahead (each op long enough to be issued twice meanwhile).
  void tracing_costs() {
    say("what tracing costs");
    constexpr int ops = 100;
    const auto pointwise = [&](Bytes bytes) { return [this, bytes] { benches_.pointwise(compute_, bytes); }; };
    const auto over_traced = [&](Bytes bytes, auto&& ns_of) {
      std::vector<double> each;
      for (int i = 0; i < 11; ++i) {
        each.push_back(static_cast<double>(ns_of(watch_->timed_among_untimed([&] {
                         for (int op = 0; op < ops; ++op) benches_.pointwise(compute_, bytes);
                       }))) / (ops - 1));
      }
      return watch_->over_ranks(Stopwatch::median(std::move(each)), Stopwatch::Over::median);
    };
    using program::StepTimes;
    const double issue_ns = over_traced(tiny, [](const StepTimes& times) { return times.issued.back().start - times.issued.front().start; });
    plan_.host.trace_ns = std::max(0.0, issue_ns - watch_->host_ns(pointwise(tiny), ops));

    Bytes longer = tiny;
    double plain_ns = watch_->period_ns(pointwise(longer));
    while (plain_ns < 2 * issue_ns && longer < benches_.largest_buffer()) {
      longer = std::min(4 * longer, benches_.largest_buffer());
      plain_ns = watch_->period_ns(pointwise(longer));
    }
    const double ran_ns = over_traced(longer, [](const StepTimes& times) { return times.ran.back().end - times.ran.front().end; });
    plan_.device.trace_ns = std::max(0.0, ran_ns - plain_ns);
  }

  // What a launch of a graph costs the host, of as many ops as a small step has, or of some milliseconds where they are long; and by how
  // much an op's period is shorter in one, of the mix, for a kernel of a few bytes behind a matmul gains what others do not.
  void graph_costs() {
    if (!device_.captures() || small_.empty()) return;
    say("what a graph costs");
    constexpr double ops = 200, longest_ns = 5e6;
    const double op_ns = mixed_ns();   // of all ranks, which so make as many copies
    const InGraph mix = in_graph(device_, compute_, *watch_, [&] { small_ops(); }, 1 + static_cast<int>(std::min(ops, longest_ns / op_ns)) / small_op_count());
    plan_.host.graph_ns = mix.launch_ns;
    plan_.device.graph_gap_ns = std::max(0.0, op_ns - mix.period_ns / small_op_count());
  }

  void collectives() {
    for (std::size_t i = 0; i < plan_.collectives.size(); ++i) {
      simulate::CollectiveBenchmark& one = plan_.collectives[i];
      say(text("collective ", i + 1, " of ", plan_.collectives.size()));
      comm::Communicator& group = *groups_.at(one.ranks);
      const Tensor whole = benches_.buffer(one.bytes);
      one.ns = watch_->period_ns([&] { collective(one.kind, group, compute_, whole); }, Stopwatch::Over::largest);
    }
  }

  // Both streams await a small collective of the group: what is issued next begins on all its ranks at once.
  void begin_together(comm::Communicator& group) {
    collective(OpKind::all_reduce, group, comm_, benches_.buffer(tiny));
    device_.record(comm_, started_);
    device_.wait(compute_, started_);
  }

  // Ends of the last computation and the last collective, from the end of a small collective that both streams await.
  struct Ends {
    double compute = 0, collectives = 0;
  };
  Ends ends_of(const simulate::OverlapBenchmark& overlap, bool computes, bool communicates) {
    comm::Communicator& group = *groups_.at(overlap.ranks);
    const Tensor whole = benches_.buffer(overlap.bytes);
    std::vector<double> compute, collectives;
    for (int i = 0; i < 5; ++i) {
      const program::StepTimes times = watch_->timed([&] {
        begin_together(group);
        for (int n = 0; communicates && n < overlap.collectives; ++n) collective(overlap.kind, group, comm_, whole);
        // A matmul that is let in before the first collective holds it up, and that is no slowdown of what runs together
        kernels::pause(compute_, moment_);
        for (int n = 0; computes && n < overlap.repeat; ++n) {
          if (overlap.compute == simulate::OverlapBenchmark::Compute::gemm) benches_.gemm({overlap.size, DType::bf16, 0});
          else benches_.pointwise(compute_, overlap.compute_bytes);
        }
      });
      const base::Nanoseconds begin = times.ran[0].end;
      const std::size_t last_collective = communicates ? static_cast<std::size_t>(overlap.collectives) : 0;
      if (communicates) collectives.push_back(static_cast<double>(times.ran[last_collective].end - begin));
      if (computes) compute.push_back(static_cast<double>(times.ran.back().end - begin));
    }
    Ends ends;
    if (computes) ends.compute = watch_->over_ranks(Stopwatch::median(compute), Stopwatch::Over::median);
    if (communicates) ends.collectives = watch_->over_ranks(Stopwatch::median(collectives), Stopwatch::Over::median);
    return ends;
  }

  void overlaps() {
    for (std::size_t i = 0; i < plan_.overlaps.size(); ++i) {
      simulate::OverlapBenchmark& overlap = plan_.overlaps[i];
      say(text("overlap ", i + 1, " of ", plan_.overlaps.size()));
      overlap.compute_alone_ns = ends_of(overlap, true, false).compute;
      overlap.collectives_alone_ns = ends_of(overlap, false, true).collectives;
      const Ends together = ends_of(overlap, true, true);
      overlap.compute_together_ns = together.compute;
      overlap.collectives_together_ns = together.collectives;
    }
  }

  // Pauses before the collective, so that the matmul is let in first; it runs for longer than both.
  void rooms() {
    constexpr int pauses = 5;
    for (simulate::RoomBenchmark& room : plan_.rooms) {
      say(text("room for ", program::name_of(room.kind), " beside ", room.matmul));
      comm::Communicator& group = *groups_.at(room.ranks);
      std::vector<double> matmul, beside;
      for (int attempt = 0; attempt < 5; ++attempt) {
        const program::StepTimes times = watch_->timed([&] {
          begin_together(group);
          benches_.matmul(room.matmul, room.size);
          for (int n = 0; n < pauses; ++n) kernels::pause(comm_, moment_);
          collective(room.kind, group, comm_, benches_.buffer(room.bytes));
        });
        matmul.push_back(static_cast<double>(times.ran[1].end - times.ran[1].start));
        beside.push_back(static_cast<double>(times.ran.back().end - times.ran[1].start));
      }
      room.matmul_ns = watch_->over_ranks(Stopwatch::median(matmul), Stopwatch::Over::median);
      room.collective_ns = watch_->over_ranks(Stopwatch::median(beside), Stopwatch::Over::largest);
    }
  }

  // The middle of what `matmuls` of them take each while so many all-gathers are under way, started before them.
  double matmul_beside(const simulate::GemmBenchmark& gemm, int matmuls, int all_gathers) {
    comm::Communicator& group = *groups_.rbegin()->second;
    const Tensor whole = benches_.buffer(benches_.largest_buffer());
    const program::StepTimes times = watch_->timed([&] {
      begin_together(group);
      for (int n = 0; n < all_gathers; ++n) collective(OpKind::all_gather, group, comm_, whole);
      for (int n = 0; n < matmuls; ++n) benches_.gemm(gemm);
    });
    // The first may have begun before the all-gathers; those that outlast them do not count
    std::vector<double> spans;
    const std::size_t first = 1 + static_cast<std::size_t>(all_gathers);
    const base::Nanoseconds until = times.ran[first - 1].end;
    for (std::size_t at = first + 1; at < times.ran.size(); ++at) {
      if (all_gathers == 0 || times.ran[at].end < until) spans.push_back(static_cast<double>(times.ran[at].end - times.ran[at].start));
    }
    return spans.empty() ? 0 : Stopwatch::median(spans);
  }

  // Matmuls that are long enough to be seen, and short beside one all-gather: between two of them a matmul takes all
  // multiprocessors, and a long one keeps them.
  void matmuls_beside_collectives() {
    if (groups_.empty()) return;
    constexpr double shortest_ns = 15e3, wanted_ns = 1e6, slowdown = 2.5;
    comm::Communicator& group = *groups_.rbegin()->second;
    const Tensor whole = benches_.buffer(benches_.largest_buffer());
    const double all_gather_ns = watch_->period_ns([&] { collective(OpKind::all_gather, group, comm_, whole); }, Stopwatch::Over::largest);
    for (std::size_t i = 0; i < plan_.gemms.size(); ++i) {
      simulate::GemmBenchmark& gemm = plan_.gemms[i];
      if (gemm.dtype != DType::bf16 || gemm.ns < shortest_ns || gemm.ns > all_gather_ns / 2) continue;
      say(text("beside collectives: matmul ", i + 1, " of ", plan_.gemms.size()));
      const int matmuls = std::clamp(static_cast<int>(wanted_ns / gemm.ns), 4, 32);
      const int all_gathers = 1 + static_cast<int>(std::ceil(slowdown * matmuls * gemm.ns / all_gather_ns));
      std::vector<double> alone, beside;
      for (int attempt = 0; attempt < 5; ++attempt) {
        alone.push_back(matmul_beside(gemm, matmuls, 0));
        beside.push_back(matmul_beside(gemm, matmuls, all_gathers));
      }
      const double factor = watch_->over_ranks(Stopwatch::median(beside) / Stopwatch::median(alone), Stopwatch::Over::median);
      if (factor > 0) gemm.beside_ns = gemm.ns * std::max(1.0, factor);
    }
  }

  void power() {
    if (groups_.empty()) std::erase_if(plan_.power, [](const simulate::PowerBenchmark& mix) { return mix.collectives > 0; });
    const auto all_gather = [this](Bytes bytes) { collective(OpKind::all_gather, *groups_.rbegin()->second, compute_, benches_.buffer(bytes)); };
    for (std::size_t i = 0; i < plan_.power.size(); ++i) {
      say(text("power: mix ", i + 1, " of ", plan_.power.size()));
      benches_.fill();
      measure_power(plan_.power[i], device_, compute_, benches_, *watch_, all_gather);
    }
  }

  world::World& world_;
  device::Device& device_;
  Benchmarks plan_;
  const std::function<void(const std::string&)>& say_;
  device::Stream& compute_;
  device::Stream& comm_;
  Benches benches_;
  const std::vector<KernelCase> small_;   // kernels that move at most small_mix
  const Tensor moment_;                   // of pauses
  device::Event started_, hop_there_, hop_back_;
  std::map<int, std::unique_ptr<comm::Communicator>> groups_;
  std::unique_ptr<Stopwatch> watch_;
};

}  // namespace

Benchmarks measure(world::World& world, device::Device& device, comm::Backend& backend, Benchmarks plan,
                   const std::function<void(const std::string&)>& say) {
  return Calibration(world, device, backend, std::move(plan), say).run();
}

Benchmarks measure_collectives(world::World& world, device::Device& device, comm::Backend& backend, Benchmarks plan,
                               const std::function<void(const std::string&)>& say) {
  return Calibration(world, device, backend, std::move(plan), say).run_collectives();
}

}  // namespace shardbook::cli
