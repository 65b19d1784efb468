// page/flowchart_shape: the size of a node around its text, and its outline.
#pragma once

#include "viewer/page/diagram_draw.hpp"

namespace shardbook::page {

// Width and height of a node of that shape that holds a text of w x h. `em` is the body's line height.
Point node_size(NodeShape shape, float w, float h, float em);
// Graphviz' name of the outline that edges are cut at.
const char* graphviz_shape(NodeShape shape);
// Draws the outline with the text in its middle.
void put_node(Picture& picture, const DiagramNode& node, const TextBlock& text, const Look& look, Point min, Point max);

}  // namespace shardbook::page
