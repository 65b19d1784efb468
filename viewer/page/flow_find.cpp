// page/flow_find: looking things up in a layout; see flow.hpp.
#include <algorithm>
#include <cctype>
#include <limits>

#include "engine/diagram/diagram_source.hpp"
#include "viewer/page/flow.hpp"

namespace shardbook::page {

using diagram::next_code_point;

namespace {

char folded(char c) {
  if (c == '\n' || c == '\t') return ' ';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view FlowLayout::text_of(const TextBox& box) const { return std::string_view(text).substr(box.begin, box.end - box.begin); }

std::pair<std::size_t, std::size_t> FlowLayout::visible(float top, float bottom) const {
  const auto before = [](const TextBox& box, float y) { return box.y < y; };
  const auto first = std::lower_bound(boxes.begin(), boxes.end(), top - tallest, before);
  const auto last = std::lower_bound(first, boxes.end(), bottom, before);
  return {static_cast<std::size_t>(first - boxes.begin()), static_cast<std::size_t>(last - boxes.begin())};
}

std::pair<std::size_t, std::size_t> FlowLayout::visible_decorations(float top, float bottom) const {
  const auto first = std::upper_bound(lowest_until.begin(), lowest_until.end(), top) - lowest_until.begin();
  const auto last = std::lower_bound(decorations.begin() + first, decorations.end(), bottom, [](const Decoration& one, float y) { return one.y < y; });
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - decorations.begin())};
}

std::string FlowLayout::text_between(std::uint32_t a, std::uint32_t b) const {
  const std::uint32_t begin = std::min({a, b, static_cast<std::uint32_t>(text.size())});
  const std::uint32_t end = std::min(std::max(a, b), static_cast<std::uint32_t>(text.size()));
  return text.substr(begin, end - begin);
}

int FlowLayout::box_at(float x, float y) const {
  const auto [first, last] = visible(y, y + 1);
  for (std::size_t i = first; i < last; ++i) {
    const TextBox& box = boxes[i];
    if (y >= box.y && y < box.y + box.h && x >= box.x && x < box.x + box.w) return static_cast<int>(i);
  }
  return -1;
}

std::uint32_t FlowLayout::offset_at(float x, float y, const Measure& measure) const {
  if (boxes.empty()) return 0;
  // The box on that line that is nearest; else the one that is nearest above or below.
  auto [first, last] = visible(y, y + 1);
  if (first >= last) {
    last = std::min(std::max<std::size_t>(first, 1), boxes.size());
    first = last - 1;
    while (first > 0 && boxes[first - 1].y == boxes[first].y) --first;
  }
  std::size_t nearest = first;
  float least = std::numeric_limits<float>::max();
  for (std::size_t i = first; i < last; ++i) {
    const TextBox& box = boxes[i];
    const float aside = x < box.x ? box.x - x : x > box.x + box.w ? x - box.x - box.w : 0;
    const float off = y < box.y ? box.y - y : y > box.y + box.h ? y - box.y - box.h : 0;
    const float distance = aside + 1000 * off;
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  // Between which of its letters?
  const TextBox& box = boxes[nearest];
  const std::string_view words = text_of(box);
  float at = box.x;
  for (std::size_t offset = 0; offset < words.size();) {
    std::size_t next = offset;
    next_code_point(words, next);
    const float width = measure.width(words.substr(offset, next - offset), box.font);
    if (x < at + width / 2) return box.begin + static_cast<std::uint32_t>(offset);
    at += width;
    offset = next;
  }
  return box.end;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> FlowLayout::find(std::string_view query) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  query = query.substr(0, 200);
  if (query.empty()) return found;
  std::string wanted(query);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), folded);
  for (std::size_t at = 0; at + wanted.size() <= text.size();) {
    std::size_t same = 0;
    while (same < wanted.size() && folded(text[at + same]) == wanted[same]) ++same;
    if (same == wanted.size()) {
      found.emplace_back(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + same));
      at += same;
    } else {
      ++at;
    }
  }
  return found;
}

std::vector<TextBox> FlowLayout::boxes_of(std::uint32_t begin, std::uint32_t end, const Measure& measure) const {
  std::vector<TextBox> parts;
  auto first = std::lower_bound(by_offset.begin(), by_offset.end(), begin, [&](std::uint32_t index, std::uint32_t offset) { return boxes[index].end <= offset; });
  for (; first != by_offset.end() && boxes[*first].begin < end; ++first) {
    TextBox part = boxes[*first];
    const std::string_view words = text_of(part);
    const std::size_t from = std::max(part.begin, begin) - part.begin, to = std::min(part.end, end) - part.begin;
    part.x += measure.width(words.substr(0, from), part.font);
    part.w = measure.width(words.substr(from, to - from), part.font);
    part.begin += static_cast<std::uint32_t>(from);
    part.end = part.begin + static_cast<std::uint32_t>(to - from);
    parts.push_back(part);
  }
  return parts;
}

float FlowLayout::anchor_y(std::string_view id) const {
  for (const auto& [name, y] : anchors) {
    if (name == id) return y;
  }
  return -1;
}

}  // namespace shardbook::page
