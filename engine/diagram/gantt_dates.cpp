// diagram/gantt_dates: see gantt_dates.hpp.
#include "engine/diagram/gantt_dates.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

namespace {

constexpr std::array<std::string_view, 12> month_names{"January", "February", "March", "April", "May", "June",
                                                       "July", "August", "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> day_names{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int days_in(std::int64_t year, int month) {
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 ? (leap ? 29 : 28) : (month == 4 || month == 6 || month == 9 || month == 11) ? 30 : 31;
}

// A moment in parts, as formats name them.
struct Parts {
  std::int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0, millisecond = 0;
  int half = -1;                           // 0: a.m.
  std::optional<std::int64_t> stamp_ms;
};

std::optional<std::int64_t> moment(const Parts& parts) {
  if (parts.stamp_ms) return parts.stamp_ms;
  int hour = parts.hour;
  if (parts.half >= 0) hour = hour % 12 + 12 * parts.half;
  if (parts.month < 1 || parts.month > 12 || parts.day < 1 || parts.day > days_in(parts.year, parts.month)) return std::nullopt;
  if (hour > 23 || parts.minute > 59 || parts.second > 59) return std::nullopt;
  return days_of({parts.year, parts.month, parts.day}) * day_ms + hour * 3'600'000LL + parts.minute * 60'000LL + parts.second * 1000LL + parts.millisecond;
}

Parts parts_of(std::int64_t ms) {
  const std::int64_t days = ms >= 0 ? ms / day_ms : -((-ms + day_ms - 1) / day_ms);
  const std::int64_t rest = ms - days * day_ms;
  const CivilDate date = date_of(days);
  return {date.year, date.month, date.day, static_cast<int>(rest / 3'600'000), static_cast<int>(rest / 60'000 % 60),
          static_cast<int>(rest / 1000 % 60), static_cast<int>(rest % 1000), -1, std::nullopt};
}

// To this many digits by this in front, or by nothing where it is '\0'.
std::string padded(std::int64_t value, std::size_t digits, char fill = '0') {
  const std::string text = std::to_string(value < 0 ? -value : value);
  const std::size_t missing = fill != '\0' && text.size() < digits ? digits - text.size() : 0;
  return (value < 0 ? "-" : "") + std::string(missing, fill) + text;
}

// Of the ISO week that a day lies in: its year and its number. The week belongs to the year of its Thursday.
std::pair<std::int64_t, std::int64_t> iso_week(std::int64_t days) {
  const std::int64_t thursday = days - weekday_of(days) + 4, year = date_of(thursday).year;
  return {year, (thursday - days_of({year, 1, 1})) / 7 + 1};
}

// A moment as d3's signs name it.
class Moment {
 public:
  explicit Moment(std::int64_t ms)
      : ms_(ms), parts_(parts_of(ms)), days_(days_of({parts_.year, parts_.month, parts_.day})), weekday_(weekday_of(days_)),
        day_of_year_(days_ - days_of({parts_.year, 1, 1})) {}

  // What is no sign is written as it stands.
  std::string written(char sign, char fill) const {
    switch (sign) {
      case 'b': return std::string(month().substr(0, 3));
      case 'B': return std::string(month());
      case 'a': return std::string(weekday().substr(0, 3));
      case 'A': return std::string(weekday());
      case 'p': return parts_.hour < 12 ? "AM" : "PM";
      case 'c': return write_date(ms_, "%x, %X");
      case 'x': return write_date(ms_, "%-m/%-d/%Y");
      case 'X': return write_date(ms_, "%-I:%M:%S %p");
      case 'Z': return "+0000";
      case 'f': return written('L', fill) + "000";
      case 'u': return std::to_string(weekday_);
      case 'w': return std::to_string(weekday_ % 7);
      case 'q': return std::to_string((parts_.month + 2) / 3);
      case 'Q': return std::to_string(ms_);
      case 's': return std::to_string((ms_ - parts_.millisecond) / 1000);
      default: break;
    }
    const auto [value, digits] = figure(sign);
    return digits == 0 ? std::string(1, sign) : padded(value, digits, fill);
  }

 private:
  std::string_view month() const { return month_names[static_cast<std::size_t>(parts_.month - 1)]; }
  std::string_view weekday() const { return day_names[static_cast<std::size_t>(weekday_ - 1)]; }

  // Signs that are a figure, with its digits; 0 digits: it is none.
  std::pair<std::int64_t, std::size_t> figure(char sign) const {
    switch (sign) {
      case 'Y': return {parts_.year % 10'000, 4};
      case 'y': return {parts_.year % 100, 2};
      case 'G': return {iso_week(days_).first % 10'000, 4};
      case 'g': return {iso_week(days_).first % 100, 2};
      case 'V': return {iso_week(days_).second, 2};
      case 'U': return {(day_of_year_ + 7 - weekday_ % 7) / 7, 2};      // weeks begin on Sunday
      case 'W': return {(day_of_year_ + 8 - weekday_) / 7, 2};          // on Monday
      case 'm': return {parts_.month, 2};
      case 'd': case 'e': return {parts_.day, 2};
      case 'j': return {day_of_year_ + 1, 3};
      case 'H': return {parts_.hour, 2};
      case 'I': return {(parts_.hour + 11) % 12 + 1, 2};
      case 'M': return {parts_.minute, 2};
      case 'S': return {parts_.second, 2};
      case 'L': return {parts_.millisecond, 3};
      default: return {0, 0};
    }
  }

  std::int64_t ms_;
  Parts parts_;
  std::int64_t days_;
  int weekday_;                            // 1 is Monday
  std::int64_t day_of_year_;               // from 0
};

// The length of the sign that a dayjs format begins with: the longest run of one letter that is a sign.
std::size_t sign_length(std::string_view format) {
  for (const std::string_view sign : {"YYYY", "YY", "MMMM", "MMM", "MM", "M", "DD", "D", "HH", "H", "hh", "h", "mm", "m", "ss", "s", "SSS", "A", "a", "X", "x"}) {
    if (format.substr(0, sign.size()) == sign) return sign.size();
  }
  return 0;
}

}  // namespace

std::int64_t days_of(CivilDate date) {
  const std::int64_t y = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

CivilDate date_of(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t day_of_era = days - era * 146097;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1)};
}

int weekday_of(std::int64_t days) { return static_cast<int>(((days + 3) % 7 + 7) % 7) + 1; }

std::optional<std::int64_t> read_date(std::string_view text, std::string_view format) {
  Parts parts;
  std::size_t at = 0;
  const auto number = [&](std::size_t least, std::size_t most) -> std::optional<std::int64_t> {
    std::size_t end = at;
    while (end < text.size() && end - at < most && is_digit(text[end])) ++end;
    if (end - at < least) return std::nullopt;
    const std::int64_t value = std::stoll(std::string(text.substr(at, end - at)));
    at = end;
    return value;
  };
  const auto take_name = [&](const auto& names, std::size_t shown) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string_view name = names[i].substr(0, shown);
      if (text.substr(at, name.size()) != name) continue;
      at += name.size();
      return static_cast<int>(i) + 1;
    }
    return 0;
  };
  if (format.empty()) return std::nullopt;
  while (!format.empty()) {
    const std::size_t length = sign_length(format);
    const std::string_view sign = format.substr(0, length);
    format.remove_prefix(std::max<std::size_t>(length, 1));
    if (length == 0) {
      const char literal = *(format.data() - 1);
      if (at >= text.size() || text[at] != literal) return std::nullopt;
      ++at;
      continue;
    }
    std::optional<std::int64_t> value = 0;
    if (sign == "YYYY") {
      value = number(4, 4);
      if (value) parts.year = *value;
    } else if (sign == "YY") {
      value = number(2, 2);
      if (value) parts.year = *value + (*value > 68 ? 1900 : 2000);
    } else if (sign == "MMMM" || sign == "MMM") {
      parts.month = take_name(month_names, sign == "MMM" ? 3 : 20);
      if (parts.month == 0) return std::nullopt;
    } else if (sign == "A" || sign == "a") {
      const std::string_view half = text.substr(at, 2);
      parts.half = half == "AM" || half == "am" ? 0 : half == "PM" || half == "pm" ? 1 : -1;
      if (parts.half < 0) return std::nullopt;
      at += 2;
    } else if (sign == "X" || sign == "x") {
      value = number(1, 15);
      if (value) parts.stamp_ms = *value * (sign == "X" ? 1000 : 1);
    } else {
      value = number(sign.size(), sign.size() == 1 ? 2 : sign.size());
      if (value) {
        const int small = static_cast<int>(*value);
        switch (sign[0]) {
          case 'M': parts.month = small; break;
          case 'D': parts.day = small; break;
          case 'H': case 'h': parts.hour = small; break;
          case 'm': parts.minute = small; break;
          case 's': parts.second = small; break;
          default: parts.millisecond = small;
        }
      }
    }
    if (!value) return std::nullopt;
  }
  if (at != text.size()) return std::nullopt;
  return moment(parts);
}

std::optional<std::int64_t> read_iso_date(std::string_view text) {
  for (const std::string_view format : {"YYYY-MM-DD", "YYYY-MM-DDTHH:mm", "YYYY-MM-DDTHH:mm:ss", "YYYY-MM-DDTHH:mm:ss.SSS", "YYYY-MM-DD HH:mm",
                                        "YYYY-MM-DD HH:mm:ss", "YYYY-MM", "YYYY", "YYYY/MM/DD"}) {
    const std::string_view zoneless = !text.empty() && text.back() == 'Z' ? text.substr(0, text.size() - 1) : text;
    if (const auto value = read_date(zoneless, format)) return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> add_duration(std::int64_t begin_ms, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == 0 || end > 12) return std::nullopt;
  if (end < text.size() && text[end] == '.') {
    const std::size_t point = end++;
    while (end < text.size() && is_digit(text[end]) && end - point < 12) ++end;
    if (end == point + 1) return std::nullopt;
  }
  const double value = std::stod(std::string(text.substr(0, end)));
  const std::string_view unit = text.substr(end);
  constexpr double most_ms = 3e14;         // near 10 000 years
  if (unit == "M" || unit == "y") {
    // dayjs counts whole months.
    const double months = value * (unit == "y" ? 12 : 1);
    if (months > 120'000) return std::nullopt;
    Parts parts = parts_of(begin_ms);
    const std::int64_t total = parts.year * 12 + parts.month - 1 + static_cast<std::int64_t>(months);
    parts.year = total / 12;
    parts.month = static_cast<int>(total % 12) + 1;
    parts.day = std::min(parts.day, days_in(parts.year, parts.month));
    return moment(parts);
  }
  const double factor = unit == "ms" ? 1 : unit == "s" ? 1e3 : unit == "m" ? 6e4 : unit == "h" ? 3.6e6 : unit == "d" ? 8.64e7 : unit == "w" ? 6.048e8 : 0;
  if (factor == 0 || value * factor > most_ms) return std::nullopt;
  // Parts of days and weeks are rounded to whole days.
  if (unit == "d" || unit == "w") return begin_ms + static_cast<std::int64_t>(std::llround(value * (unit == "w" ? 7 : 1))) * day_ms;
  return begin_ms + static_cast<std::int64_t>(value * factor);
}

std::string write_date(std::int64_t ms, std::string_view format) {
  const Moment moment(ms);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    // A sign may be preceded by what fills its figure up: nothing, blanks, zeros.
    char sign = ++i < format.size() ? format[i] : '\0', fill = sign == 'e' ? ' ' : '0';
    if (sign == '-' || sign == '_' || sign == '0') {
      fill = sign == '-' ? '\0' : sign == '_' ? ' ' : '0';
      sign = ++i < format.size() ? format[i] : '\0';
    }
    if (sign != '\0') out += moment.written(sign, fill);
  }
  return out;
}

std::string write_dayjs(std::int64_t ms, std::string_view format) {
  const Parts parts = parts_of(ms);
  std::string out;
  while (!format.empty()) {
    const std::size_t length = sign_length(format);
    const std::string_view sign = format.substr(0, length);
    if (length == 0) out += format[0];
    if (sign == "YYYY") out += padded(parts.year, 4);
    else if (sign == "YY") out += padded(parts.year % 100, 2);
    else if (sign == "MMMM") out += month_names[static_cast<std::size_t>(parts.month - 1)];
    else if (sign == "MMM") out += month_names[static_cast<std::size_t>(parts.month - 1)].substr(0, 3);
    else if (sign == "X") out += std::to_string(ms / 1000);
    else if (sign == "x") out += std::to_string(ms);
    else if (sign == "SSS") out += padded(parts.millisecond, 3);
    else if (sign == "A" || sign == "a") out += parts.hour < 12 ? "AM" : "PM";
    else if (length > 0) {
      const int value = sign[0] == 'M' ? parts.month : sign[0] == 'D' ? parts.day : sign[0] == 'H' ? parts.hour
                      : sign[0] == 'h' ? (parts.hour + 11) % 12 + 1 : sign[0] == 'm' ? parts.minute : parts.second;
      out += padded(value, sign.size());
    }
    format.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace shardbook::diagram
