// scene/roles: labels that begin with the role; see roles.hpp.
#include "viewer/scene/roles.hpp"

#include <algorithm>

#include "viewer/scene/bands.hpp"

namespace shardbook::scene {

using timeline::CollectiveOp;
using timeline::Detail;
using timeline::Edge;
using timeline::EdgeKind;
using timeline::SpanRef;
using timeline::Timeline;

namespace {

std::string spaced(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

void cut_begin(std::string_view& words, std::string_view begin) {
  if (words.starts_with(begin)) words.remove_prefix(begin.size());
}

// Attention's or the mlp's. "" if the record names no such thing.
std::string summed(const Timeline& timeline, SpanRef span) {
  const SpanRef awaited = summed_span(timeline, span);
  return awaited.valid() ? block_of(timeline.strings[timeline.detail(awaited).part]) : "";
}

// "qkv" of linear_forward, "qkv weight gradient", "attention scores", "layer norm".
std::string role(std::string_view op, std::string_view part) {
  cut_begin(op, "linear_");
  if (op.ends_with("_forward")) op.remove_suffix(std::string_view("_forward").size());
  if (op == "forward" || op == part) return spaced(part);
  // Nothing is said twice: attention_scores of attention, embedding of token_embedding, layer_norm of norm.
  const std::string_view first = op.substr(0, op.find('_'));
  if (op.find(part) != std::string_view::npos) return spaced(op);
  if (part.find(first) != std::string_view::npos) cut_begin(op, first);
  cut_begin(op, "_");
  return spaced(part) + (op.empty() ? "" : " " + spaced(op));
}

}  // namespace

SpanRef summed_span(const Timeline& timeline, SpanRef span) {
  const auto first = std::lower_bound(timeline.edges.begin(), timeline.edges.end(), span,
                                      [](const Edge& edge, SpanRef wanted) { return edge.to < wanted; });
  for (auto edge = first; edge != timeline.edges.end() && edge->to == span; ++edge) {
    if (edge->kind == EdgeKind::event && edge->from.track != span.track && timeline.detail(edge->from).part != 0) return edge->from;
  }
  return {};
}

std::string role_label(const Timeline& timeline, SpanRef span) {
  const Detail& detail = timeline.detail(span);
  if (detail.op == 0) return std::string(timeline.label(span));
  const std::string_view op = timeline.strings[detail.op], part = detail.part != 0 ? timeline.strings[detail.part] : "";
  const std::string layer = detail.layer >= 0 ? " · L" + std::to_string(detail.layer) : "";
  // A unit of FSDP is a layer, or the root: what stands outside the layers.
  if (part == "fsdp_unit") return std::string(op) + (layer.empty() ? " · root unit" : layer);
  // ... or several layers: "fsdp_unit 2-3"
  constexpr std::string_view several = "fsdp_unit ";
  if (part.starts_with(several)) return std::string(op) + " · L" + std::string(part.substr(several.size()));
  const bool is_sum = timeline.has_collective(span) && timeline.collective(span).op == CollectiveOp::all_reduce;
  const std::string of = !is_sum ? "" : !part.empty() ? spaced(part) : detail.layer >= 0 ? summed(timeline, span) : "";
  if (is_sum && !of.empty()) return of + (of.ends_with("sum") ? "" : " sum") + layer;
  return (part.empty() ? std::string(op) : role(op, part)) + layer;
}

std::string fitted_label(std::string label, const std::function<bool(std::string_view)>& fits) {
  if (fits(label)) return label;
  for (const std::string_view layer : {" · L", " · root unit"}) {
    if (const std::size_t from = label.rfind(layer); from != std::string::npos) label.erase(from);
  }
  if (fits(label)) return label;
  if (label == "all_gather") return "gather";
  if (label == "reduce_scatter") return "scatter";
  return label;
}

}  // namespace shardbook::scene
