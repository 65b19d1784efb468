// page/markdown: md4c's events become a tree; see markdown.hpp.
//
// md4c says where a text stands only by pointing into the page, so a block's line is that of its first text.
#include "viewer/page/markdown.hpp"

#include <md4c.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include "engine/base/check.hpp"
#include "engine/base/nearest.hpp"
#include "engine/diagram/diagram_source.hpp"
#include "viewer/page/formula.hpp"
#include "viewer/page/highlight.hpp"
#include "viewer/page/page_finish.hpp"

namespace shardbook::page {

using diagram::entity_text;
using diagram::trimmed;

namespace {

constexpr int deepest_container = 24;
constexpr std::size_t widest_table = 64;

using base::text;

class Builder {
 public:
  Builder(std::string_view page, Document& out) : page_(page), out_(out) {
    for (std::size_t i = 0; i < page.size(); ++i) {
      if (page[i] == '\n') line_ends_.push_back(i);
    }
    open_.push_back(&root_);
  }

  // Work is bounded: a table of n columns and n rows without text has n^2 cells.
  bool too_much() { return ++events_ > 40 * page_.size() + 10000; }
  bool was_too_much() const { return events_ > 40 * page_.size() + 10000; }

  int enter(MD_BLOCKTYPE type, void* detail);
  int leave(MD_BLOCKTYPE type);
  int enter(MD_SPANTYPE type, void* detail);
  int leave(MD_SPANTYPE type);
  int add(MD_TEXTTYPE type, const char* data, std::size_t size);
  std::vector<Block> take() { return std::move(root_.children); }

 private:
  struct List {
    bool ordered = false, loose = false;
    int next = 1;
  };

  Block& parent() { return *open_.back(); }
  void begin_leaf(Block::Kind kind) {
    leaf_ = Block{};
    leaf_.kind = kind;
    has_leaf_ = true;
  }
  void end_leaf();
  void open_container(Block block);
  void close_container();
  // The runs that text goes to now: a cell's, a leaf's, or a tight list item's own.
  std::vector<Run>* runs();
  void see_line(const char* data);
  void append(std::string_view words, unsigned style, int raise = 0);
  void end_formula();
  std::string attribute(const MD_ATTRIBUTE& attribute) const;
  unsigned style() const;

  std::string_view page_;
  Document& out_;
  std::vector<std::size_t> line_ends_;
  Block root_;
  std::vector<Block*> open_;          // stable: children of an open block are only appended to the last of them
  int too_deep_ = 0;
  std::vector<List> lists_;
  Block leaf_;
  bool has_leaf_ = false, in_cell_ = false, in_formula_ = false, in_image_ = false;
  int bold_ = 0, italic_ = 0, strike_ = 0, code_ = 0;
  std::vector<int> links_;
  std::string formula_;
  Block image_;
  int line_ = 1;
  std::size_t events_ = 0;
};

void Builder::see_line(const char* data) {
  if (data < page_.data() || data >= page_.data() + page_.size()) return;
  const auto offset = static_cast<std::size_t>(data - page_.data());
  line_ = static_cast<int>(std::lower_bound(line_ends_.begin(), line_ends_.end(), offset) - line_ends_.begin()) + 1;
  if (has_leaf_ && leaf_.line == 0) leaf_.line = line_;
  for (auto block = open_.rbegin(); block != open_.rend() && (*block)->line == 0; ++block) (*block)->line = line_;
}

// --- Blocks ------------------------------------------------------------------------------------------
void Builder::open_container(Block block) {
  if (static_cast<int>(open_.size()) > deepest_container) {
    ++too_deep_;
    return;
  }
  parent().children.push_back(std::move(block));
  open_.push_back(&parent().children.back());
}

void Builder::close_container() {
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  open_.pop_back();
}

void Builder::end_leaf() {
  if (!has_leaf_) return;
  has_leaf_ = false;
  if (leaf_.line == 0) leaf_.line = line_;
  // A list item's first paragraph is the item's own text.
  const bool of_item = leaf_.kind == Block::Kind::paragraph && parent().kind == Block::Kind::list_item && parent().runs.empty() && parent().children.empty();
  if (of_item) {
    parent().runs = std::move(leaf_.runs);
  } else {
    parent().children.push_back(std::move(leaf_));
  }
}

int Builder::enter(MD_BLOCKTYPE type, void* detail) {
  if (too_much()) return 1;
  Block block;
  switch (type) {
    case MD_BLOCK_QUOTE:
      block.kind = Block::Kind::quote;
      open_container(std::move(block));
      break;
    case MD_BLOCK_UL: lists_.push_back({false, static_cast<MD_BLOCK_UL_DETAIL*>(detail)->is_tight == 0, 1}); break;
    case MD_BLOCK_OL: {
      const auto* list = static_cast<MD_BLOCK_OL_DETAIL*>(detail);
      lists_.push_back({true, list->is_tight == 0, static_cast<int>(std::min(list->start, 1'000'000'000u))});
      break;
    }
    case MD_BLOCK_LI: {
      const auto* item = static_cast<MD_BLOCK_LI_DETAIL*>(detail);
      block.kind = Block::Kind::list_item;
      block.level = std::min(static_cast<int>(lists_.size()), deepest_container);
      block.marker = lists_.back().ordered ? lists_.back().next++ : 0;
      block.loose = lists_.back().loose;
      if (item->is_task != 0) block.task = item->task_mark == ' ' ? Task::open : Task::done;
      open_container(std::move(block));
      break;
    }
    case MD_BLOCK_HR:
      begin_leaf(Block::Kind::rule);
      end_leaf();
      break;
    case MD_BLOCK_H:
      begin_leaf(Block::Kind::heading);
      leaf_.level = static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
      break;
    case MD_BLOCK_CODE:
      begin_leaf(Block::Kind::code);
      leaf_.language = attribute(static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->lang);
      break;
    case MD_BLOCK_P: begin_leaf(Block::Kind::paragraph); break;
    case MD_BLOCK_TABLE: begin_leaf(Block::Kind::table); break;
    case MD_BLOCK_TR: leaf_.cells.emplace_back(); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: {
      if (leaf_.cells.empty() || leaf_.cells.back().size() >= widest_table) break;
      const MD_ALIGN align = static_cast<MD_BLOCK_TD_DETAIL*>(detail)->align;
      if (type == MD_BLOCK_TH) {
        leaf_.alignment.push_back(align == MD_ALIGN_RIGHT ? Alignment::right : align == MD_ALIGN_CENTER ? Alignment::centre : Alignment::left);
      }
      leaf_.cells.back().emplace_back();
      in_cell_ = true;
      break;
    }
    default: break;
  }
  return 0;
}

int Builder::leave(MD_BLOCKTYPE type) {
  switch (type) {
    case MD_BLOCK_QUOTE: close_container(); break;
    case MD_BLOCK_LI: close_container(); break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL: lists_.pop_back(); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: in_cell_ = false; break;
    case MD_BLOCK_H:
    case MD_BLOCK_CODE:
    case MD_BLOCK_P:
    case MD_BLOCK_TABLE: end_leaf(); break;
    default: break;
  }
  return 0;
}

// --- Text --------------------------------------------------------------------------------------------
std::vector<Run>* Builder::runs() {
  if (in_cell_) return &leaf_.cells.back().back();
  if (has_leaf_) return leaf_.kind == Block::Kind::table ? nullptr : &leaf_.runs;
  // Of a tight list there is no paragraph around the text; what comes after a nested block is a new paragraph.
  if (parent().kind == Block::Kind::list_item && parent().children.empty()) return &parent().runs;
  std::vector<Block>& children = parent().children;
  if (children.empty() || children.back().kind != Block::Kind::paragraph) {
    children.emplace_back();
    children.back().line = line_;
  }
  return &children.back().runs;
}

unsigned Builder::style() const {
  return (bold_ > 0 ? Style::bold : 0u) | (italic_ > 0 ? Style::italic : 0u) | (strike_ > 0 ? Style::strike : 0u) | (code_ > 0 ? Style::code : 0u) |
         (!links_.empty() ? Style::link : 0u);
}

void Builder::append(std::string_view words, unsigned how, int raise) {
  std::vector<Run>* to = runs();
  if (to == nullptr || words.empty()) return;
  const int link = links_.empty() ? -1 : links_.back();
  if (!to->empty() && to->back().style == how && to->back().link == link && to->back().raise == raise) {
    to->back().text += words;
  } else {
    to->push_back({std::string(words), how, link, raise});
  }
}

std::string Builder::attribute(const MD_ATTRIBUTE& attribute) const {
  std::string out;
  if (attribute.text == nullptr) return out;
  for (int i = 0; attribute.substr_offsets[i] < attribute.size; ++i) {
    const std::string_view part(attribute.text + attribute.substr_offsets[i], attribute.substr_offsets[i + 1] - attribute.substr_offsets[i]);
    const bool is_entity = attribute.substr_types[i] == MD_TEXT_ENTITY && part.size() > 2;
    const std::string resolved = is_entity ? entity_text(part.substr(part[1] == '#' ? 2 : 1, part.size() - (part[1] == '#' ? 3 : 2))) : "";
    out += resolved.empty() ? std::string(part) : resolved;
  }
  return out;
}

int Builder::enter(MD_SPANTYPE type, void* detail) {
  if (too_much()) return 1;
  switch (type) {
    case MD_SPAN_EM: ++italic_; break;
    case MD_SPAN_STRONG: ++bold_; break;
    case MD_SPAN_DEL: ++strike_; break;
    case MD_SPAN_CODE: ++code_; break;
    case MD_SPAN_A:
      links_.push_back(static_cast<int>(out_.links.size()));
      out_.links.push_back(attribute(static_cast<MD_SPAN_A_DETAIL*>(detail)->href));
      break;
    case MD_SPAN_IMG:
      image_ = Block{};
      image_.kind = Block::Kind::image;
      image_.target = attribute(static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src);
      in_image_ = true;
      break;
    case MD_SPAN_LATEXMATH:
    case MD_SPAN_LATEXMATH_DISPLAY:
      in_formula_ = true;
      formula_.clear();
      break;
    default: break;
  }
  return 0;
}

void Builder::end_formula() {
  in_formula_ = false;
  for (const FormulaRun& run : formula_runs(formula_)) append(run.text, style() | Style::math | (run.upright ? 0u : Style::italic), run.raise);
}

int Builder::leave(MD_SPANTYPE type) {
  switch (type) {
    case MD_SPAN_EM: --italic_; break;
    case MD_SPAN_STRONG: --bold_; break;
    case MD_SPAN_DEL: --strike_; break;
    case MD_SPAN_CODE: --code_; break;
    case MD_SPAN_A:
      if (!links_.empty()) links_.pop_back();
      break;
    case MD_SPAN_IMG: {
      in_image_ = false;
      image_.line = line_;
      // In a cell or a heading an image is its alternative text; elsewhere it is a block of its own and parts its paragraph.
      if (in_cell_ || !has_leaf_ || leaf_.kind != Block::Kind::paragraph) {
        append(image_.title.empty() ? image_.target : image_.title, style() | Style::italic);
        break;
      }
      const bool any = std::any_of(leaf_.runs.begin(), leaf_.runs.end(), [](const Run& run) { return !trimmed(run.text).empty(); });
      if (any) end_leaf();
      parent().children.push_back(image_);
      begin_leaf(Block::Kind::paragraph);
      break;
    }
    case MD_SPAN_LATEXMATH:
    case MD_SPAN_LATEXMATH_DISPLAY: end_formula(); break;
    default: break;
  }
  return 0;
}

int Builder::add(MD_TEXTTYPE type, const char* data, std::size_t size) {
  if (too_much()) return 1;
  see_line(data);
  const std::string_view words(data, size);
  if (in_formula_) {
    formula_ += type == MD_TEXT_SOFTBR || type == MD_TEXT_BR ? " " : words;
    return 0;
  }
  if (has_leaf_ && leaf_.kind == Block::Kind::code) {
    leaf_.text += type == MD_TEXT_NULLCHAR ? "\uFFFD" : words;
    return 0;
  }
  std::string shown;
  switch (type) {
    case MD_TEXT_BR: shown = "\n"; break;
    case MD_TEXT_SOFTBR: shown = " "; break;
    case MD_TEXT_NULLCHAR: shown = "\uFFFD"; break;
    case MD_TEXT_ENTITY:
      if (words.size() > 2) shown = entity_text(words.substr(words[1] == '#' ? 2 : 1, words.size() - (words[1] == '#' ? 3 : 2)));
      if (shown.empty()) shown = std::string(words);
      break;
    default: shown = std::string(words);
  }
  // In a table a bar inside code is escaped, and the escape is no part of the code.
  if (in_cell_ && code_ > 0) {
    for (std::size_t bar = shown.find("\\|"); bar != std::string::npos; bar = shown.find("\\|", bar + 1)) shown.erase(bar, 1);
  }
  if (in_image_) {
    image_.title += shown;
  } else {
    append(shown, style());
  }
  return 0;
}

}  // namespace

Document parse_markdown(std::string_view text_, const std::string& name, const std::vector<book::Excerpt>& excerpts) {
  Document document;
  document.name = name;
  if (text_.size() > longest_page) {
    document.problems.push_back(text(name, ": the page has more than ", longest_page >> 20, " MiB; the rest is not shown"));
    text_ = text_.substr(0, longest_page);
  }
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);

  Builder builder(text_, document);
  MD_PARSER parser{};
  parser.flags = MD_DIALECT_GITHUB | MD_FLAG_LATEXMATHSPANS | MD_FLAG_NOHTML;
  parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* user) { return static_cast<Builder*>(user)->enter(type, detail); };
  parser.leave_block = [](MD_BLOCKTYPE type, void*, void* user) { return static_cast<Builder*>(user)->leave(type); };
  parser.enter_span = [](MD_SPANTYPE type, void* detail, void* user) { return static_cast<Builder*>(user)->enter(type, detail); };
  parser.leave_span = [](MD_SPANTYPE type, void*, void* user) { return static_cast<Builder*>(user)->leave(type); };
  parser.text = [](MD_TEXTTYPE type, const MD_CHAR* data, MD_SIZE size, void* user) { return static_cast<Builder*>(user)->add(type, data, size); };
  // md4c does not pass on each stop that a callback asks for.
  const int stopped = md_parse(text_.data(), static_cast<MD_SIZE>(text_.size()), &parser, &builder);
  if (stopped != 0 || builder.was_too_much()) {
    document.problems.push_back(text(name, ": the page has too many parts for its length; the rest is not shown"));
  }
  document.blocks = builder.take();
  finish_page(document, excerpts);
  return document;
}

}  // namespace shardbook::page
