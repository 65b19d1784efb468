// diagram/gantt_parser: lines of a gantt chart, then the times of its tasks; see gantt_parser.hpp.
//
// Facts of the grammar and of what it means: mermaid 11.17.2, gantt.jison and ganttDb.js.
#include "engine/diagram/gantt_parser.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <unordered_map>

#include "engine/diagram/diagram_limits.hpp"
#include "engine/diagram/gantt_dates.hpp"

namespace shardbook::diagram {

namespace {

bool same_letters(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  });
}

std::vector<std::string> parts_at(std::string_view text, std::string_view signs) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(signs, begin), text.size());
    parts.emplace_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

// What a task says of its times, before they are known.
struct RawTask {
  std::string begin, end;      // begin "" is: when the task before ends
  bool known = false;
};

class GanttParser {
 public:
  GanttParser(const DiagramSource& source, Diagram& out) : source_(source), out_(out) {}

  void run() {
    bool begun = false;
    const std::string_view text = source_.text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      line_ = source_.line_at(at);
      std::string_view line = trimmed(text.substr(at, end - at));
      at = end + 1;
      if (!begun && !line.empty()) {
        if (!same_letters(line.substr(0, 5), "gantt")) fail("`gantt` was expected");
        line = trimmed(line.substr(5));
        begun = true;
      }
      while (!line.empty()) statement(line);
    }
    if (!begun) fail("`gantt` was expected");
    settle();
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw DiagramError{line_, reason}; }

  void statement(std::string_view& line);
  bool keyword_with_text(std::string_view& line, std::string_view word, std::string_view stops, std::string& text);
  bool setting(std::string_view& line);
  void click(std::string_view line);
  void task(std::string_view name, std::string_view data);
  void settle();
  bool settle_task(std::size_t index);
  std::optional<std::int64_t> begin_of(const RawTask& raw, std::size_t index);
  std::optional<std::int64_t> end_of(const RawTask& raw, std::int64_t begin);
  std::optional<std::int64_t> over_excluded(std::int64_t begin, std::int64_t end);
  bool is_excluded(std::int64_t ms) const;
  bool named_tasks(std::string_view text, std::string_view word, std::vector<std::size_t>& found);

  const DiagramSource& source_;
  Diagram& out_;
  int line_ = 1;
  std::string format_, section_;
  bool inclusive_ = false;
  int weekend_begin_ = 6;
  std::set<std::string> excludes_, includes_;
  std::vector<RawTask> raw_;
  std::unordered_map<std::string, std::size_t> task_at_;
  std::vector<std::pair<std::string, std::string>> links_;
  int unnamed_ = 0;
  std::int64_t excluded_days_left_ = 200'000;
};

// `word text`: the text up to one of `stops`; what is left stays in the line.
bool GanttParser::keyword_with_text(std::string_view& line, std::string_view word, std::string_view stops, std::string& text) {
  if (!same_letters(line.substr(0, word.size()), word) || line.size() <= word.size() || !is_blank(line[word.size()])) return false;
  const std::size_t end = std::min(line.find_first_of(stops, word.size()), line.size());
  if (end <= word.size() + 1) return false;
  text = std::string(trimmed(line.substr(word.size(), end - word.size())));
  line = trimmed(line.substr(end));
  return true;
}

bool GanttParser::setting(std::string_view& line) {
  std::string text;
  const auto flag = [&](std::string_view word) {
    if (!same_letters(line.substr(0, word.size()), word)) return false;
    if (line.size() > word.size() && is_word_char(line[word.size()])) return false;
    line = trimmed(line.substr(word.size()));
    return true;
  };
  const auto days = [&](std::set<std::string>& into) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    into.clear();
    for (const std::string& part : parts_at(text, " ,\t")) {
      if (!part.empty()) into.insert(part);
    }
  };
  if (keyword_with_text(line, "dateformat", "#;", text)) {
    format_ = text;
  } else if (keyword_with_text(line, "axisformat", "#;", text)) {
    out_.axis_format = text;
  } else if (keyword_with_text(line, "excludes", "#;", text)) {
    days(excludes_);
  } else if (keyword_with_text(line, "includes", "#;", text)) {
    days(includes_);
  } else if (keyword_with_text(line, "title", "", text)) {
    out_.title = label_text(text);
  } else if (keyword_with_text(line, "section", "", text)) {
    section_ = label_text(text);
    out_.sections.push_back(section_);
  } else if (flag("inclusiveenddates")) {
    inclusive_ = true;
  } else if (flag("weekend friday")) {
    weekend_begin_ = 5;
  } else if (flag("weekend saturday")) {
    weekend_begin_ = 6;
  } else {
    // What only tunes mermaid's own axis, and what only a screen reader is told.
    constexpr std::array<std::string_view, 8> plain{"topaxis", "weekday monday", "weekday tuesday", "weekday wednesday", "weekday thursday",
                                                    "weekday friday", "weekday saturday", "weekday sunday"};
    const bool passed = std::any_of(plain.begin(), plain.end(), flag) || keyword_with_text(line, "tickinterval", "#;", text) ||
                        keyword_with_text(line, "todaymarker", ";", text) || keyword_with_text(line, "accdescription", "#;", text);
    if (passed) return true;
    for (const std::string_view word : {std::string_view("acctitle"), std::string_view("accdescr")}) {
      if (!same_letters(line.substr(0, word.size()), word) || trimmed(line.substr(word.size())).substr(0, 1) != ":") continue;
      line = {};
      return true;
    }
    return false;
  }
  return true;
}

void GanttParser::statement(std::string_view& line) {
  // A sign before % is lost with the rest of its line, as in mermaid.
  if (line[0] == '%' || (line.size() > 1 && line[1] == '%' && line[0] != '}')) {
    line = {};
    return;
  }
  if (setting(line)) return;
  if (same_letters(line.substr(0, 5), "click") && line.size() > 5 && is_blank(line[5])) {
    click(trimmed(line.substr(5)));
    line = {};
    return;
  }
  if (read_date(line.substr(0, 10), "YYYY-MM-DD")) fail("a task's name cannot begin with a date");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) fail("`" + std::string(line.substr(0, 40)) + "` is neither a setting nor a task (name : times)");
  const std::size_t end = std::min(line.find_first_of("#;", colon + 1), line.size());
  if (end == colon + 1) fail("the task has no times after `:`");
  task(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1, end - colon - 1)));
  line = trimmed(line.substr(end));
}

// click id href "link" and click id call name(arguments), in either order.
void GanttParser::click(std::string_view line) {
  const std::size_t id_end = std::min(line.find_first_of(" \t"), line.size());
  const std::string ids(line.substr(0, id_end));
  bool any = false;
  for (line = trimmed(line.substr(id_end)); !line.empty(); line = trimmed(line)) {
    if (same_letters(line.substr(0, 4), "href") && trimmed(line.substr(4)).substr(0, 1) == "\"") {
      line = trimmed(line.substr(4)).substr(1);
      const std::size_t close = line.find('"');
      if (close == std::string_view::npos) fail("the link of `click` does not end");
      for (const std::string& id : parts_at(ids, ",")) links_.emplace_back(id, std::string(line.substr(0, close)));
      line = line.substr(close + 1);
    } else if (same_letters(line.substr(0, 4), "call") && line.size() > 4 && is_blank(line[4]) && line.find('(') != std::string_view::npos) {
      const std::size_t close = line.find(')');
      if (close == std::string_view::npos) fail("the arguments of `click` do not end");
      line = line.substr(close + 1);
    } else {
      fail("`href \"link\"` or `call name()` was expected after the task's id");
    }
    any = true;
  }
  if (!any) fail("`href \"link\"` or `call name()` was expected after the task's id");
}

// name : [done, active, crit, milestone, vert,] [id,] [begin,] end
void GanttParser::task(std::string_view name, std::string_view data) {
  if (out_.tasks.size() >= most_parts) fail("there are more than " + std::to_string(most_parts) + " tasks");
  std::vector<std::string> parts = parts_at(data, ",");
  GanttTask made;
  const std::array<std::pair<std::string_view, bool*>, 5> tags{{{"active", &made.active}, {"done", &made.done}, {"crit", &made.critical},
                                                                 {"milestone", &made.milestone}, {"vert", &made.vertical}}};
  for (bool found = true; found && !parts.empty();) {
    found = false;
    for (const auto& [tag, flag] : tags) {
      if (parts.empty() || parts.front() != tag) continue;
      *flag = found = true;
      parts.erase(parts.begin());
    }
  }
  if (parts.empty()) fail("the task says nothing of its time");
  if (parts.size() > 3) fail("a task has at most an id, a begin and an end");
  made.section = section_;
  made.name = label_text(name);
  made.line = line_;
  RawTask raw;
  raw.end = parts.back();
  if (parts.size() >= 2) raw.begin = parts[parts.size() - 2];
  made.id = parts.size() == 3 ? parts[0] : "task" + std::to_string(++unnamed_);
  if (raw.begin.empty() && out_.tasks.empty()) fail("the first task must say when it begins");
  if (raw.begin.empty() && parts.size() >= 2) fail("the task's begin is empty");
  task_at_[made.id] = out_.tasks.size();
  out_.tasks.push_back(std::move(made));
  raw_.push_back(std::move(raw));
}

// --- Times -------------------------------------------------------------------------------------------
// A task may name one that stands below it, so there are several passes, as many as mermaid makes.
void GanttParser::settle() {
  constexpr int passes = 11;
  bool all = false;
  for (int pass = 0; pass < passes && !all; ++pass) {
    all = true;
    for (std::size_t i = 0; i < raw_.size(); ++i) all = settle_task(i) && all;
  }
  for (std::size_t i = 0; i < raw_.size(); ++i) {
    line_ = out_.tasks[i].line;
    if (!raw_[i].known) fail("the time of the task `" + out_.tasks[i].name + "` depends on itself");
  }
  for (const auto& [id, link] : links_) {
    if (const auto found = task_at_.find(id); found != task_at_.end()) out_.tasks[found->second].link = link;
  }
}

bool GanttParser::settle_task(std::size_t index) {
  line_ = out_.tasks[index].line;
  RawTask& raw = raw_[index];
  const std::optional<std::int64_t> begin = begin_of(raw, index);
  if (!begin) return raw.known;
  std::optional<std::int64_t> end = end_of(raw, *begin);
  if (!end) return raw.known;
  const bool by_hand = read_date(raw.end, "YYYY-MM-DD").has_value();
  if (!excludes_.empty() && !by_hand) end = over_excluded(*begin, *end);
  out_.tasks[index].begin_ms = *begin;
  out_.tasks[index].end_ms = *end;
  raw.known = true;
  return true;
}

// `after a b`: the tasks named. false: the text does not begin so.
bool GanttParser::named_tasks(std::string_view text, std::string_view word, std::vector<std::size_t>& found) {
  if (text.substr(0, word.size()) != word || text.size() <= word.size() || !is_blank(text[word.size()])) return false;
  for (const std::string& id : parts_at(text.substr(word.size()), " ")) {
    const auto place = task_at_.find(id);
    if (place != task_at_.end()) found.push_back(place->second);
  }
  if (found.empty()) fail("`" + std::string(text) + "` names no task of this chart");
  return true;
}

std::optional<std::int64_t> GanttParser::begin_of(const RawTask& raw, std::size_t index) {
  if (raw.begin.empty()) {
    if (!raw_[index - 1].known) return std::nullopt;
    return out_.tasks[index - 1].end_ms;
  }
  const bool stamps = format_ == "x" || format_ == "X";
  if (stamps && raw.begin.size() < 16 && raw.begin.find_first_not_of("0123456789") == std::string::npos) return std::stoll(raw.begin);
  std::vector<std::size_t> tasks;
  if (named_tasks(raw.begin, "after", tasks)) {
    std::optional<std::int64_t> latest;
    for (const std::size_t one : tasks) {
      if (!raw_[one].known) return std::nullopt;
      latest = std::max(latest.value_or(out_.tasks[one].end_ms), out_.tasks[one].end_ms);
    }
    return latest;
  }
  if (const auto date = read_date(raw.begin, format_)) return date;
  if (const auto date = read_iso_date(raw.begin)) return date;
  fail("`" + raw.begin + "` is no date in the format " + (format_.empty() ? "YYYY-MM-DD" : format_));
}

std::optional<std::int64_t> GanttParser::end_of(const RawTask& raw, std::int64_t begin) {
  std::vector<std::size_t> tasks;
  if (named_tasks(raw.end, "until", tasks)) {
    std::optional<std::int64_t> earliest;
    for (const std::size_t one : tasks) {
      if (!raw_[one].known) return std::nullopt;
      earliest = std::min(earliest.value_or(out_.tasks[one].begin_ms), out_.tasks[one].begin_ms);
    }
    return earliest;
  }
  if (const auto date = read_date(raw.end, format_)) return *date + (inclusive_ ? day_ms : 0);
  // What is neither a date nor a duration leaves the task without length, as in mermaid.
  return add_duration(begin, raw.end).value_or(begin);
}

bool GanttParser::is_excluded(std::int64_t ms) const {
  const std::int64_t days = (ms - (ms % day_ms + day_ms) % day_ms) / day_ms;
  const std::string formatted = write_dayjs(ms, format_), plain = write_dayjs(ms, "YYYY-MM-DD");
  if (includes_.count(formatted) > 0 || includes_.count(plain) > 0) return false;
  constexpr std::array<const char*, 7> names{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
  const int weekday = weekday_of(days);
  if (excludes_.count("weekends") > 0 && (weekday == weekend_begin_ || weekday == weekend_begin_ + 1)) return true;
  return excludes_.count(names[static_cast<std::size_t>(weekday - 1)]) > 0 || excludes_.count(formatted) > 0 || excludes_.count(plain) > 0;
}

// An end moved on by a day for each excluded day before it. Errors: the days never end.
std::optional<std::int64_t> GanttParser::over_excluded(std::int64_t begin, std::int64_t end) {
  for (std::int64_t day = begin + day_ms; day <= end; day += day_ms) {
    // Writing a day down costs what its format is long.
    excluded_days_left_ -= 1 + static_cast<std::int64_t>(format_.size()) / 16;
    if (excluded_days_left_ < 0) fail("`excludes` leaves too few days for the tasks");
    if (is_excluded(day)) end += day_ms;
  }
  return end;
}

}  // namespace

void read_gantt(const DiagramSource& source, Diagram& out) { GanttParser(source, out).run(); }

}  // namespace shardbook::diagram
