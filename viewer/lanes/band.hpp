// lanes/band: phases and layers under the ruler, readable at every zoom.
//
// Two lines: the phase above, the layer below, and within the layer attention and mlp where there is room. Pieces too
// narrow for a word of their own stand together in one box that names the first and the last of them: "L3–7". Boxes
// never reach over the end of what is around them: layers not over their phase, phases not over their step.
#pragma once

#include <string>
#include <vector>

#include "viewer/scene/bands.hpp"

namespace shardbook::lanes {

// A piece on the screen, or several that stand together.
struct BandBox {
  float x0 = 0, x1 = 0;                      // pixels of the view
  std::string words, brief;                  // brief: where there is no room for all of them
  int around = 0;                            // pieces of equal `around` may stand together
  std::string last;                          // brief words of the last piece of several; "" of one
  std::string least;                         // where there is no room for `brief`: "attn"
};

// Neighbours that are narrower than `alone` pixels are joined until they are `together` wide: the names of two take more
// room than that of one. REQUIRES: ascending; alone <= together.
std::vector<BandBox> joined(const std::vector<BandBox>& pieces, float alone, float together);

// The longest words that there is room for: "L3–7", "head–L23"; of one piece its own words. "" if there is none.
std::string words_of(const BandBox& box);                                  // however long
std::string words_within(const BandBox& box, float room);

// "layer 12", and "layer 12 · attention"; "L12", and "L12 attn". Of what stands in no layer its part: "head".
std::pair<std::string, std::string> layer_words(const timeline::Timeline& timeline, const scene::BandPiece& piece);
// "forward", "forward · micro-batch 2"; in brief "fwd", "fwd 2".
std::pair<std::string, std::string> phase_words(const timeline::Timeline& timeline, const scene::BandPiece& piece, bool micro_batches);

}  // namespace shardbook::lanes
