// page/diagram_layout: where does each part of a diagram stand?
//
// Flowcharts are placed by Graphviz' dot, one at a time (libgvc is not thread safe: a mutex), with node sizes that we
// measure; what dot takes too long for is placed simply (graphviz.hpp). Sequence diagrams and gantt charts are columns and rows and need no solver.
#pragma once

#include "viewer/page/diagram.hpp"
#include "viewer/page/picture.hpp"

namespace shardbook::page {

struct LayoutOptions {
  float width = 800;            // gantt charts fill it; other diagrams are as wide as they are
  std::size_t most_nodes = 600; // of a flowchart: more are no diagram for people, so it is an error that says so
};

// Of a diagram that is not ok: a Picture with its error. Sizes are in the pixels of `measure`.
Picture layout_diagram(const Diagram& diagram, const Measure& measure, const LayoutOptions& options = {});

// A box that shows reason and first lines of what was not understood: what a page shows instead of a blank.
Picture error_picture(const std::string& error, const std::string& source, const Measure& measure);

}  // namespace shardbook::page
