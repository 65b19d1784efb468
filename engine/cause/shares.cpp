#include "engine/cause/shares.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

namespace shardbook::cause {

using metrics::PathKind;
using timeline::Class;

namespace {

// An op, as record and timeline both name it.
using OpName = std::tuple<std::string_view, std::string_view, std::string_view, int, int, int, int>;

OpName name_in(const Timeline& timeline, SpanRef span) {
  const timeline::Detail& detail = timeline.detail(span);
  return {timeline.strings[detail.op], timeline.strings[detail.part], timeline.strings[detail.phase],
          detail.micro_batch, detail.chunk, detail.layer, detail.n};
}

OpName name_of(const program::Op& op) {
  return {op.desc.name, op.key.part, program::name_of(op.key.phase), op.key.micro_batch, op.key.chunk, op.key.layer, op.key.n};
}

}  // namespace

LatencyOf latency_by(const Study& study, const Timeline& timeline) {
  auto known = std::make_shared<std::map<OpName, Nanoseconds>>();
  for (const simulate::RankSteps& rank : study.replay.steps()) {
    const simulate::Step& step = rank.steps.back();
    for (std::size_t op = 0; op < step.program->ops.size() && !step.costs->fixed_ns.empty(); ++op) {
      if (step.costs->fixed_ns[op] > 0) known->try_emplace(name_of(step.program->ops[op]), step.costs->fixed_ns[op]);
    }
  }
  return [known, &timeline](SpanRef span) {
    const auto found = known->find(name_in(timeline, span));
    return found == known->end() ? Nanoseconds{0} : found->second;
  };
}

LatencyOf latency_seen(const Timeline& timeline) {
  struct Smallest {
    base::Bytes bytes = std::numeric_limits<base::Bytes>::max();
    Nanoseconds ns = 0;
  };
  auto seen = std::make_shared<std::map<timeline::CollectiveOp, Smallest>>();
  for (const timeline::Provenance& rank : timeline.ranks) {
    timeline::for_each_device_span(timeline, rank.rank, [&](SpanRef span) {
      if (!timeline.has_collective(span)) return;
      const timeline::Collective& collective = timeline.collective(span);
      Smallest& smallest = (*seen)[collective.op];
      const Nanoseconds ns = timeline.end(span) - timeline.start(span);
      if (collective.bytes > 0 && (collective.bytes < smallest.bytes || (collective.bytes == smallest.bytes && ns < smallest.ns))) {
        smallest = {collective.bytes, ns};
      }
    });
  }
  return [seen, &timeline](SpanRef span) -> Nanoseconds {
    if (!timeline.has_collective(span)) return 0;
    const timeline::Collective& collective = timeline.collective(span);
    const auto found = seen->find(collective.op);
    return found != seen->end() && found->second.bytes <= collective.bytes / 8 ? found->second.ns : 0;
  };
}

std::vector<Share> shares_of(const Timeline& timeline, const metrics::CriticalPath& path, const LatencyOf& latency_of) {
  std::vector<Share> shares;
  for (int regime = 0; regime <= static_cast<int>(Regime::unexplained); ++regime) shares.push_back({static_cast<Regime>(regime), 0, {}});
  const auto add = [&](Regime regime, Nanoseconds ns) { shares[static_cast<std::size_t>(regime)].path_ns += ns; };
  for (const metrics::PathPiece& piece : path.pieces) {
    const Nanoseconds ns = piece.time.length();
    switch (piece.kind) {
      case PathKind::launch:
      case PathKind::host: add(Regime::host, ns); continue;
      case PathKind::wait: add(Regime::unexplained, ns); continue;
      case PathKind::span: break;
    }
    const Class cls = timeline.cls(piece.span);
    if (cls == Class::communication) {
      const Nanoseconds latency = std::min(ns, latency_of(piece.span));
      add(Regime::latency, latency);
      add(Regime::bandwidth, ns - latency);
    } else {
      add(cls == Class::memory ? Regime::memory : cls == Class::host ? Regime::host : Regime::compute, ns);
    }
  }
  return shares;
}

}  // namespace shardbook::cause
