// diagram/sequence_parser: the grammar of sequence diagrams; see sequence_parser.hpp.
//
// Facts of the grammar and its rules: mermaid 11.17.2, sequenceDiagram.jison and sequenceDb.ts.
#include "engine/diagram/sequence_parser.hpp"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "engine/diagram/sequence_lexer.hpp"
#include "engine/diagram/word_cursor.hpp"

namespace shardbook::diagram {

namespace {

using ItemKind = SequenceItem::Kind;

// The drawing of an arrow. Half heads are drawn as whole ones, on the side that they stand on.
void set_arrow(SequenceItem& item, std::string_view arrow) {
  item.arrow = std::string(arrow);
  item.stroke = arrow.find("--") != std::string_view::npos ? Stroke::dotted : Stroke::normal;
  if (arrow.front() == '<' || arrow.front() == '/' || arrow.front() == '\\') item.tail = Head::arrow;
  switch (arrow.back()) {
    case '>': item.head = arrow.size() >= 2 && arrow[arrow.size() - 2] == '>' ? Head::arrow : Head::none; break;
    case 'x': item.head = Head::cross; break;
    case ')':
      item.head = Head::arrow;
      item.open_head = true;
      break;
    case '/':
    case '\\': item.head = Head::arrow; break;
    default: break;
  }
}

// "wrap: text" and "nowrap: text" wish for line breaks; the text is what follows.
std::string message_text(std::string_view raw) {
  raw = trimmed(raw);
  if (!raw.empty() && raw.front() == ':') raw = trimmed(raw.substr(1));
  for (const std::string_view wish : {std::string_view("wrap:"), std::string_view("nowrap:")}) {
    if (raw.substr(0, wish.size()) == wish) raw = trimmed(raw.substr(wish.size()));
  }
  return label_text(raw);
}

class SequenceParser : WordCursor<SequenceWord> {
 public:
  SequenceParser(const DiagramSource& source, Diagram& out) : WordCursor(source, sequence_words(source.text)), out_(out) {}

  void run() {
    while (take(Kind::newline)) {}
    expect(Kind::diagram, "`sequenceDiagram`");
    document({});
    if (!is(Kind::end_of_file)) wrong("a statement");
  }

 private:
  [[noreturn]] void fail(int at_line, const std::string& reason) const { throw DiagramError{at_line, reason}; }
  void end_of_line(const char* after) {
    if (!take(Kind::newline)) wrong(std::string("the end of ") + after);
  }
  SequenceItem& add(ItemKind kind, int at_line) {
    if (out_.items.size() >= most_parts) fail(at_line, "there are more than " + std::to_string(most_parts) + " messages and blocks");
    out_.items.emplace_back();
    out_.items.back().kind = kind;
    out_.items.back().line = at_line;
    return out_.items.back();
  }

  void document(const std::vector<Kind>& stops);
  bool statement();
  void block(const char* name, Kind next);
  void box();
  void participant(bool created);
  void signal();
  void note();
  void autonumber();
  void activation(bool begins);
  void deactivate(int who, int at_line);
  void check_creation(const SequenceItem& message);
  int participant_of(const std::string& id);

  Diagram& out_;
  int depth_ = 0;
  int box_ = -1;
  int last_created_ = -1, last_destroyed_ = -1;
  std::string unknown_destroyed_;
  std::unordered_map<std::string, int> participants_;
  std::vector<int> active_;
};

// Statements up to one of the words that end the part, or the end of all.
void SequenceParser::document(const std::vector<Kind>& stops) {
  for (;;) {
    if (is(Kind::end_of_file) || std::find(stops.begin(), stops.end(), word().kind) != stops.end()) return;
    if (take(Kind::newline) || take(Kind::stray) || take(Kind::invalid)) continue;
    if (!statement()) return;
  }
}

bool SequenceParser::statement() {
  switch (word().kind) {
    case Kind::participant:
    case Kind::actor_keyword:
    case Kind::destroy: participant(false); return true;
    case Kind::create:
      ++at_;
      if (!is(Kind::participant) && !is(Kind::actor_keyword) && !is(Kind::destroy)) wrong("`participant` or `actor`");
      participant(true);
      return true;
    case Kind::box: box(); return true;
    case Kind::actor: signal(); return true;
    case Kind::autonumber: autonumber(); return true;
    case Kind::activate: activation(true); return true;
    case Kind::deactivate: activation(false); return true;
    case Kind::note: note(); return true;
    case Kind::links:
    case Kind::link:
    case Kind::properties:
    case Kind::details:
      ++at_;
      participant_of(std::string(expect(Kind::actor, "a participant")));
      expect(Kind::text, "`:` and a text");
      end_of_line("the line");
      return true;
    case Kind::title: {
      std::string_view text = next().text;
      text.remove_prefix(text.size() > 5 && text[5] == ':' ? 6 : 5);
      out_.title = label_text(trimmed(text));
      return true;
    }
    case Kind::accessible: ++at_; return true;
    case Kind::loop: block("loop", Kind::end); return true;
    case Kind::rect: block("rect", Kind::end); return true;
    case Kind::opt: block("opt", Kind::end); return true;
    case Kind::break_: block("break", Kind::end); return true;
    case Kind::alt: block("alt", Kind::else_); return true;
    case Kind::par: block("par", Kind::and_); return true;
    case Kind::critical: block("critical", Kind::option); return true;
    default: return false;
  }
}

// loop, alt with else, par with and ...: parts up to `end`.
void SequenceParser::block(const char* name, Kind next) {
  const int begin = line();
  if (++depth_ > most_nesting) fail(begin, "blocks are nested deeper than " + std::to_string(most_nesting));
  ++at_;
  SequenceItem& opened = add(ItemKind::block_begin, begin);
  opened.block = name;
  opened.text = message_text(expect(Kind::rest, "a condition"));
  for (;;) {
    document({Kind::end, next});
    if (take(Kind::end)) break;
    if (next == Kind::end || !is(next)) {
      if (is(Kind::end_of_file)) fail(begin, std::string("this `") + name + "` has no `end`");
      wrong("a statement or `end`");
    }
    SequenceItem& part = add(ItemKind::block_next, line());
    ++at_;
    part.block = name;
    part.text = message_text(expect(Kind::rest, "a condition"));
  }
  add(ItemKind::block_end, source_.line_at(words_[at_ - 1].offset)).block = name;
  --depth_;
}

// box colour title ... end: participants only.
void SequenceParser::box() {
  const int begin = line();
  ++at_;
  std::string_view rest = trimmed(expect(Kind::rest, "a colour or a title"));
  ParticipantBox made;
  // rgb(...) or one word may be a colour; whether it is one, the theme knows.
  std::size_t end = 0;
  const std::size_t open = rest.find('(');
  const std::string_view first = rest.substr(0, std::min(rest.find_first_of(" \t("), rest.size()));
  if ((first == "rgb" || first == "rgba" || first == "hsl" || first == "hsla") && open != std::string_view::npos) {
    end = rest.rfind(')') == std::string_view::npos ? 0 : rest.rfind(')') + 1;
  } else {
    end = first.size();
  }
  made.colour = std::string(rest.substr(0, end));
  made.title = label_text(rest.substr(end));
  box_ = static_cast<int>(out_.boxes.size());
  out_.boxes.push_back(made);
  for (;;) {
    if (take(Kind::newline)) continue;
    if (take(Kind::end)) break;
    if (is(Kind::end_of_file)) fail(begin, "this `box` has no `end`");
    if (!is(Kind::participant) && !is(Kind::actor_keyword) && !is(Kind::destroy)) wrong("`participant`, `actor` or `end`");
    participant(false);
  }
  box_ = -1;
}

void SequenceParser::participant(bool created) {
  const int begin = line();
  const Kind kind = next().kind;
  const std::string id(expect(Kind::actor, "a participant's name"));
  if (kind != Kind::destroy) take(Kind::config);
  std::string label;
  if (kind != Kind::destroy && take(Kind::as)) label = message_text(expect(Kind::rest, "the name that is shown"));
  end_of_line("the participant");

  const bool known = participants_.count(id) > 0;
  if (created && known && kind != Kind::destroy) fail(begin, "participant " + id + " is created, but there is one already");
  // Who is not known yet cannot end; mermaid passes over that, until a message must touch it.
  if (kind == Kind::destroy && !known) {
    unknown_destroyed_ = id;
    return;
  }
  const int who = participant_of(id);
  Participant& one = out_.participants[static_cast<std::size_t>(who)];
  if (kind == Kind::destroy) {
    one.destroyed = true;
    last_destroyed_ = who;
    add(ItemKind::destroy, begin).from = who;
    return;
  }
  if (!label.empty()) one.label = label;
  one.is_actor = kind == Kind::actor_keyword;
  if (box_ >= 0) {
    if (one.box >= 0 && one.box != box_) fail(begin, "participant " + id + " stands in two boxes");
    one.box = box_;
  }
  if (created) {
    one.created = true;
    last_created_ = who;
    add(ItemKind::create, begin).from = who;
  }
}

// from arrow to: text
void SequenceParser::signal() {
  const int begin = line();
  const std::string from(next().text);
  take(Kind::central);
  SequenceItem item;
  item.kind = ItemKind::message;
  item.line = begin;
  set_arrow(item, expect(Kind::arrow, "an arrow such as `->>`"));
  if (take(Kind::plus)) {
    item.activate = true;
  } else if (take(Kind::minus)) {
    item.deactivate = true;
  } else {
    take(Kind::central);
  }
  const std::string to(expect(Kind::actor, "the participant that it goes to"));
  item.text = message_text(expect(Kind::text, "`:` and the message's text"));
  end_of_line("the message");
  item.from = participant_of(from);
  item.to = participant_of(to);
  check_creation(item);
  SequenceItem& added = add(ItemKind::message, begin);
  added = item;
  if (item.activate) ++active_[static_cast<std::size_t>(item.to)];
  if (item.deactivate) deactivate(item.from, begin);
}

// The message after a `create` must go to who is created; the one after a `destroy` must touch who ends.
void SequenceParser::check_creation(const SequenceItem& message) {
  const auto name = [&](int who) { return out_.participants[static_cast<std::size_t>(who)].id; };
  if (last_created_ >= 0) {
    if (message.to != last_created_) fail(message.line, "participant " + name(last_created_) + " is created, so the next message must go to it");
    last_created_ = -1;
  } else if (last_destroyed_ >= 0) {
    if (message.to != last_destroyed_ && message.from != last_destroyed_) {
      fail(message.line, "participant " + name(last_destroyed_) + " is destroyed, so the next message must come from it or go to it");
    }
    last_destroyed_ = -1;
  } else if (!unknown_destroyed_.empty()) {
    if (name(message.to) != unknown_destroyed_ && name(message.from) != unknown_destroyed_) {
      fail(message.line, "participant " + unknown_destroyed_ + " is destroyed, so the next message must come from it or go to it");
    }
    unknown_destroyed_.clear();
  }
}

void SequenceParser::note() {
  const int begin = line();
  ++at_;
  SequenceItem::Place place = SequenceItem::Place::over;
  if (take(Kind::left_of)) {
    place = SequenceItem::Place::left;
  } else if (take(Kind::right_of)) {
    place = SequenceItem::Place::right;
  } else {
    expect(Kind::over, "`left of`, `right of` or `over`");
  }
  const int from = participant_of(std::string(expect(Kind::actor, "a participant")));
  int to = from;
  if (place == SequenceItem::Place::over && take(Kind::comma)) to = participant_of(std::string(expect(Kind::actor, "a second participant")));
  const std::string text = message_text(expect(Kind::text, "`:` and the note's text"));
  end_of_line("the note");
  SequenceItem& item = add(ItemKind::note, begin);
  item.place = place;
  item.from = from;
  item.to = to;
  item.text = text;
}

void SequenceParser::autonumber() {
  const int begin = line();
  ++at_;
  SequenceItem item;
  item.kind = ItemKind::autonumber;
  item.line = begin;
  const auto number = [&] {
    const std::string digits(next().text);
    return static_cast<int>(std::clamp(std::strtod(digits.c_str(), nullptr), 0.0, 1e9));
  };
  if (take(Kind::off)) {
    item.visible = false;
  } else if (is(Kind::number)) {
    item.number_from = number();
    if (is(Kind::number)) item.number_step = number();
  }
  end_of_line("`autonumber`");
  add(ItemKind::autonumber, begin) = item;
}

void SequenceParser::activation(bool begins) {
  const int begin = line();
  ++at_;
  const int who = participant_of(std::string(expect(Kind::actor, "a participant")));
  end_of_line("the line");
  if (begins) {
    ++active_[static_cast<std::size_t>(who)];
  } else {
    deactivate(who, begin);
  }
  add(begins ? ItemKind::activate : ItemKind::deactivate, begin).from = who;
}

void SequenceParser::deactivate(int who, int at_line) {
  int& count = active_[static_cast<std::size_t>(who)];
  if (count < 1) fail(at_line, "participant " + out_.participants[static_cast<std::size_t>(who)].id + " is deactivated, but it is not active");
  --count;
}

int SequenceParser::participant_of(const std::string& id) {
  const auto [place, is_new] = participants_.emplace(id, static_cast<int>(out_.participants.size()));
  if (is_new) {
    if (out_.participants.size() >= most_parts) fail(line(), "there are more than " + std::to_string(most_parts) + " participants");
    out_.participants.push_back({id, label_text(id)});
    active_.push_back(0);
  }
  return place->second;
}

}  // namespace

void read_sequence(const DiagramSource& source, Diagram& out) { SequenceParser(source, out).run(); }

}  // namespace shardbook::diagram
