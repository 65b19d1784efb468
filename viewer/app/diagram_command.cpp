// app/diagram_command: what was understood of a diagram, in words, as JSON, as a picture; see command_line.hpp.
#include <cmath>
#include <iostream>
#include <iterator>
#include <ostream>
#include <sstream>

#include "engine/base/check.hpp"
#include "engine/book/project.hpp"
#include "viewer/app/command_line.hpp"
#include "viewer/app/stage.hpp"
#include "viewer/page/diagram.hpp"
#include "viewer/page/diagram_json.hpp"
#include "viewer/page/diagram_layout.hpp"
#include "viewer/page/markdown.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/page_view.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::app {

namespace {

constexpr float margin = 16;

// One diagram's text, and where it begins in its file.
struct Source {
  std::string text;
  int line = 1;
};

void collect(const std::vector<page::Block>& blocks, std::vector<Source>& found) {
  for (const page::Block& block : blocks) {
    if (block.kind == page::Block::Kind::diagram) found.push_back({block.text, std::max(1, block.line)});
    collect(block.children, found);
  }
}

base::Result<Source> source_of(const DiagramRequest& request) {
  std::string text;
  if (request.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    base::Result<std::string> read = book::read_text(request.file);
    if (!read) return read.as_error();
    text = std::move(read).value();
  }
  const bool is_page = request.file.size() > 3 && request.file.compare(request.file.size() - 3, 3, ".md") == 0;
  if (!is_page) return Source{text, 1};
  std::vector<Source> found;
  collect(page::parse_markdown(text, request.file, {}).blocks, found);
  if (found.size() < static_cast<std::size_t>(request.number)) {
    return base::Error{base::text(request.file, " holds ", found.size(), found.size() == 1 ? " diagram" : " diagrams", ", so there is no number ", request.number)};
  }
  return found[static_cast<std::size_t>(request.number - 1)];
}

// --- In words -------------------------------------------------------------------------------------
std::string one_line(std::string label) {
  for (char& c : label) {
    if (c == '\n') c = ' ';
  }
  return label;
}

std::string called(const std::string& id, const std::string& label) {
  return label.empty() || label == id ? id : base::text(id, " \"", one_line(label), "\"");
}

void say_flowchart(const page::Diagram& diagram, std::ostream& out) {
  out << "flowchart " << diagram.direction << ": " << diagram.nodes.size() << " nodes, " << diagram.edges.size() << " edges, "
      << diagram.subgraphs.size() << " subgraphs\n";
  for (const page::DiagramNode& node : diagram.nodes) {
    out << "  node " << called(node.id, node.label) << "  " << page::name_of(node.shape) << (node.link.empty() ? "" : "  -> " + node.link) << "\n";
  }
  for (const page::DiagramEdge& edge : diagram.edges) {
    const std::string tail = edge.tail == page::Head::none ? "" : base::text(", ", page::name_of(edge.tail), " at its beginning");
    out << "  edge " << edge.from << " -> " << edge.to << (edge.label.empty() ? "" : " \"" + one_line(edge.label) + "\"") << "  "
        << page::name_of(edge.stroke) << ", " << page::name_of(edge.head) << tail << "\n";
  }
  for (const page::Subgraph& group : diagram.subgraphs) {
    out << "  subgraph " << called(group.id, group.title) << ":";
    for (const std::string& member : group.members) out << " " << member;
    out << "\n";
  }
}

void say_sequence(const page::Diagram& diagram, std::ostream& out) {
  out << "sequence diagram: " << diagram.participants.size() << " participants, " << diagram.items.size() << " items\n";
  for (const page::Participant& one : diagram.participants) out << "  " << (one.is_actor ? "actor " : "participant ") << called(one.id, one.label) << "\n";
  const auto name = [&](int index) {
    return index >= 0 && static_cast<std::size_t>(index) < diagram.participants.size() ? diagram.participants[static_cast<std::size_t>(index)].id : std::string("?");
  };
  using Kind = page::SequenceItem::Kind;
  std::string indent = "  ";
  for (const page::SequenceItem& item : diagram.items) {
    if (item.kind == Kind::block_end || item.kind == Kind::block_next) indent.resize(std::max<std::size_t>(2, indent.size() - 2));
    if (item.kind == Kind::message) out << indent << name(item.from) << " -> " << name(item.to) << ": " << one_line(item.text) << "\n";
    if (item.kind == Kind::note) out << indent << "note at " << name(item.from) << ": " << one_line(item.text) << "\n";
    if (item.kind == Kind::block_begin || item.kind == Kind::block_next) {
      out << indent << item.block << " " << one_line(item.text) << "\n";
      indent += "  ";
    }
  }
}

void say_gantt(const page::Diagram& diagram, std::ostream& out) {
  out << "gantt chart: " << diagram.sections.size() << " sections, " << diagram.tasks.size() << " tasks\n";
  for (const page::GanttTask& task : diagram.tasks) {
    out << "  " << (task.section.empty() ? "" : task.section + ": ") << task.name << "  "
        << static_cast<double>(task.end_ms - task.begin_ms) / 3'600'000.0 << " h" << (task.critical ? ", critical" : "") << (task.done ? ", done" : "")
        << (task.active ? ", active" : "") << (task.milestone ? ", milestone" : "") << "\n";
  }
}

void say(const page::Diagram& diagram, std::ostream& out) {
  if (!diagram.title.empty()) out << one_line(diagram.title) << "\n";
  switch (diagram.kind) {
    case page::DiagramKind::none: break;
    case page::DiagramKind::flowchart: say_flowchart(diagram, out); break;
    case page::DiagramKind::sequence: say_sequence(diagram, out); break;
    case page::DiagramKind::gantt: say_gantt(diagram, out); break;
  }
}

// --- As a picture ---------------------------------------------------------------------------------
base::Status draw(const page::Diagram& diagram, const DiagramRequest& request) {
  base::Result<std::unique_ptr<Picture>> made = Picture::make(64, 64, request.scale);
  if (!made) return made.as_error();
  Picture& picture = *made.value();
  const bool dark = request.theme == "dark";

  // Fonts first, as sizes are measured with them; then the picture as large as the diagram.
  picture.frame_of(dark, request.scale, [] {});
  page::LayoutOptions options;
  options.width = 800 * request.scale;
  const page::Picture shapes = page::layout_diagram(diagram, ui::measure(), options);
  if (!shapes.error.empty()) return base::Error{shapes.error};
  const float edge = margin * request.scale;
  const float width = std::ceil(shapes.width + 2 * edge), height = std::ceil(shapes.height + 2 * edge);
  constexpr float most = 16384;
  if (width > most || height > most) return base::Error{base::text("the diagram is ", width, " x ", height, " pixels, more than a picture of ", most, " can hold; try a smaller --scale")};
  picture.resize(static_cast<int>(width), static_cast<int>(height), request.scale);
  for (int i = 0; i < 2; ++i) {
    picture.frame_of(dark, request.scale, [&] {
      ui::begin_frame_spots();
      ImGui::SetNextWindowPos({0, 0});
      ImGui::SetNextWindowSize({width, height});
      ImGui::PushStyleColor(ImGuiCol_WindowBg, ui::theme().panel);
      ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
      ImGui::Begin("diagram", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoInputs);
      ui::draw_picture(shapes, {edge, edge}, 1);
      ImGui::End();
      ImGui::PopStyleVar();
      ImGui::PopStyleColor();
    });
  }
  return write_png(picture.pixels(), request.png);
}

}  // namespace

int draw_diagram(const DiagramRequest& request, std::ostream& out, std::ostream& err) {
  const auto refuse = [&](const std::string& sentence) {
    err << "shardbook-viewer: " << sentence << "\n";
    return 2;
  };
  base::Result<Source> source = source_of(request);
  if (!source) return refuse(source.error());
  const page::Diagram diagram = page::parse_diagram(source.value().text);
  if (request.json) out << page::diagram_json(diagram) << "\n";
  if (!diagram.ok) {
    const int line = diagram.error_line > 0 ? diagram.error_line + source.value().line - 1 : 0;
    const std::string place = line > 0 ? base::text(request.file, ":", line) : request.file;
    return refuse(base::text(place, ": ", diagram.error));
  }
  if (!request.json && request.png.empty()) say(diagram, out);
  if (request.png.empty()) return 0;
  const base::Status drawn = draw(diagram, request);
  return drawn ? 0 : refuse(drawn.error());
}

}  // namespace shardbook::app
