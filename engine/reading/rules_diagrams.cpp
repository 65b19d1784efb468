#include "engine/reading/rules_diagrams.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>

#include "engine/reading/words.hpp"

namespace shardbook::reading {

using base::text;
using diagram::Diagram;
using diagram::DiagramKind;

namespace {

bool holds_any(const std::string& words, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return holds(words, part); });
}

// Which word comes first says what a label is about: "gather 1, while layer 0 computes" is a gather.
std::size_t first_of(const std::string& words, std::initializer_list<const char*> parts) {
  std::size_t first = std::string::npos;
  for (const char* part : parts) first = std::min(first, words.find(part));
  return first;
}
std::size_t gather_at(const std::string& words) { return first_of(words, {"gather", "prefetch"}); }
std::size_t compute_at(const std::string& words) { return first_of(words, {"compute", "forward", "fwd", "layer", "block"}); }
bool is_gather(const std::string& words) { return gather_at(words) < compute_at(words); }
bool is_compute(const std::string& words) { return compute_at(words) < gather_at(words); }
bool is_sum(const std::string& words) { return holds_any(words, {"all-reduce", "allreduce", "all reduce", "all_reduce", "reduce-scatter", "reduce scatter"}); }
bool is_column(const std::string& words) { return holds_any(words, {"column", "col-"}); }
bool is_row(const std::string& words) { return holds_any(words, {"row"}); }
bool is_activation(const std::string& words) { return holds_any(words, {"gelu", "swiglu", "silu", "activation"}); }
bool is_qkv(const std::string& words) { return holds_any(words, {"qkv", "q, k", "query"}); }
bool is_attention(const std::string& words) { return !is_qkv(words) && !is_row(words) && holds_any(words, {"attn", "attention", "softmax", "heads"}); }

// All that is written in a diagram, by what it is written on.
std::vector<std::string> words_in(const Diagram& shown) {
  std::vector<std::string> all;
  for (const diagram::DiagramNode& node : shown.nodes) all.push_back(lowered(node.label));
  for (const diagram::DiagramEdge& edge : shown.edges) all.push_back(lowered(edge.label));
  for (const diagram::Subgraph& graph : shown.subgraphs) all.push_back(lowered(graph.title));
  for (const diagram::GanttTask& task : shown.tasks) all.push_back(lowered(task.section + " " + task.name));
  for (const diagram::SequenceItem& item : shown.items) all.push_back(lowered(item.text));
  std::erase(all, "");
  return all;
}

using Is = bool (*)(const std::string&);

// Nodes that are reached from these by following arrows; an arrow at a subgraph is one at each of its members.
std::set<std::string> reached_from(const Diagram& shown, const std::set<std::string>& begin) {
  std::multimap<std::string, std::string> next;
  for (const diagram::DiagramEdge& edge : shown.edges) next.emplace(edge.from, edge.to);
  for (const diagram::Subgraph& graph : shown.subgraphs) {
    for (const std::string& member : graph.members) {
      next.emplace(graph.id, member);
      next.emplace(member, graph.id);
    }
  }
  // A subgraph lets through what comes in by its own arrow, but its members are not joined by being in it.
  std::set<std::string> graphs, seen;
  for (const diagram::Subgraph& graph : shown.subgraphs) graphs.insert(graph.id);
  std::vector<std::pair<std::string, bool>> open;   // a node, and whether a member came up to it
  for (const std::string& id : begin) open.push_back({id, false});
  while (!open.empty()) {
    const auto [id, came_up] = open.back();
    open.pop_back();
    const auto [first, last] = next.equal_range(id);
    for (auto edge = first; edge != last; ++edge) {
      const bool goes_down = graphs.contains(id) && std::any_of(shown.subgraphs.begin(), shown.subgraphs.end(), [&](const diagram::Subgraph& graph) {
        return graph.id == id && std::find(graph.members.begin(), graph.members.end(), edge->second) != graph.members.end();
      });
      if (goes_down && came_up) continue;
      const bool goes_up = graphs.contains(edge->second) && std::any_of(shown.subgraphs.begin(), shown.subgraphs.end(), [&](const diagram::Subgraph& graph) {
        return graph.id == edge->second && std::find(graph.members.begin(), graph.members.end(), id) != graph.members.end();
      });
      if (seen.insert(edge->second + (goes_up ? "\x1f" : "")).second) open.push_back({edge->second, goes_up});
    }
  }
  return seen;
}

bool has_path(const Diagram& shown, std::initializer_list<Is> steps) {
  std::set<std::string> here;
  bool first = true;
  for (const Is is : steps) {
    const std::set<std::string> reached = first ? std::set<std::string>{} : reached_from(shown, here);
    std::set<std::string> there;
    for (const diagram::DiagramNode& node : shown.nodes) {
      if (is(lowered(node.label)) && (first || reached.contains(node.id))) there.insert(node.id);
    }
    if (there.empty()) return false;
    here = std::move(there);
    first = false;
  }
  return true;
}

bool overlaps(const diagram::GanttTask& left, const diagram::GanttTask& right) {
  return left.begin_ms < right.end_ms && right.begin_ms < left.end_ms;
}

// What is missing to the timeline where there are times.
std::string missing_in_gantt(const Diagram& shown) {
  for (const diagram::GanttTask& gather : shown.tasks) {
    if (!is_gather(lowered(gather.name + " " + gather.section))) continue;
    for (const diagram::GanttTask& compute : shown.tasks) {
      const std::string words = lowered(compute.name + " " + compute.section);
      if (is_compute(words) && overlaps(gather, compute)) return "";
    }
  }
  return "no gather runs while a layer computes: the overlap is what the picture is for";
}

}  // namespace

std::string missing_in_block(const Diagram& shown) {
  if (shown.kind != DiagramKind::flowchart) return "is no flowchart: a block is drawn as one";
  if (!has_path(shown, {is_column, is_activation, is_row})) return "shows no way from a column-parallel linear through the activation to a row-parallel one (say column, GELU, row in the labels)";
  if (!has_path(shown, {is_qkv, is_attention, is_row})) return "shows no way from QKV through attention to a row-parallel output (say QKV, attention, row in the labels)";
  const std::vector<std::string> words = words_in(shown);
  const auto sums = std::count_if(words.begin(), words.end(), is_sum);
  if (sums < 2) return text("marks ", sums, sums == 1 ? " sum" : " sums", " over ranks; a block's forward has two all-reduces, one behind each row-parallel linear");
  return "";
}

std::string missing_in_timeline(const Diagram& shown, bool& unjudged) {
  unjudged = false;
  const std::vector<std::string> words = words_in(shown);
  const auto gathers = std::count_if(words.begin(), words.end(), is_gather), computes = std::count_if(words.begin(), words.end(), is_compute);
  if (gathers < 2) return text("names ", gathers, gathers == 1 ? " all-gather" : " all-gathers", "; two layers at least are gathered, one ahead of its use");
  if (computes < 2) return text("names ", computes, computes == 1 ? " layer" : " layers", " that compute; two at least are needed to show what hides what");
  if (shown.kind == DiagramKind::gantt) return missing_in_gantt(shown);
  unjudged = true;
  return "";
}

void check_diagrams(const Note& note, Report& report) {
  const auto add = [&](int line, std::string rule, std::string sentence) { report.findings.push_back({note.name, line, std::move(rule), std::move(sentence), false}); };
  struct Read {
    Diagram shown;
    int line = 0;
    bool is_block = false;
  };
  std::vector<Read> read;
  int count = 0;
  for (const Fence& fence : note.fences) {
    if (fence.kind != "mermaid") continue;
    ++count;
    std::string source;
    for (const std::string& line : fence.lines) source += line + "\n";
    Diagram shown = diagram::parse_diagram(source);
    if (!shown.ok) {
      add(fence.line + std::max(shown.error_line, 1) - 1, "mermaid", text("this is no Mermaid: ", shown.error));
      continue;
    }
    const std::vector<std::string> words = words_in(shown);
    const bool is_block = std::any_of(words.begin(), words.end(), [](const std::string& one) { return is_row(one) || is_column(one) || is_qkv(one); });
    read.push_back({std::move(shown), fence.line, is_block});
  }
  if (count < asked_diagrams) {
    add(0, "diagrams", text("has ", count, " of ", asked_diagrams, " diagrams in ```mermaid fences: a block under tensor parallelism, and a timeline of FSDP's forward"));
    if (count == 0) return;
  }
  if (static_cast<int>(read.size()) < count) return;   // what does not parse is mended first
  const auto block = std::find_if(read.begin(), read.end(), [](const Read& one) { return one.is_block; });
  if (block == read.end()) {
    add(0, "block", "has no diagram of a block under tensor parallelism: none names a column- or row-parallel linear");
  } else if (const std::string missing = missing_in_block(block->shown); !missing.empty()) {
    add(block->line, "block", text("the diagram of the block ", missing));
  } else {
    const std::vector<std::string> words = words_in(block->shown);
    const bool has_number = std::any_of(words.begin(), words.end(), [](const std::string& one) { return is_sum(one) && one.find_first_of("0123456789") != std::string::npos; });
    if (!has_number) report.findings.push_back({note.name, block->line, "block", "no all-reduce carries a number: say what it costs or what the link gives, and from which run", true});
  }
  const auto timeline = std::find_if(read.begin(), read.end(), [](const Read& one) { return !one.is_block; });
  if (timeline == read.end()) {
    if (count >= asked_diagrams) add(0, "timeline", "has no timeline of FSDP's forward beside the block");
    return;
  }
  bool unjudged = false;
  if (const std::string missing = missing_in_timeline(timeline->shown, unjudged); !missing.empty()) add(timeline->line, "timeline", text("the timeline ", missing));
  else if (unjudged) report.unjudged.push_back(text(note.name, ":", timeline->line, ": whether the timeline shows overlap: only a gantt chart has times"));
}

}  // namespace shardbook::reading
