// diagram/gantt_dates: dates as gantt charts write them, without time zones.
//
// Formats are dayjs' (YYYY MM DD HH mm ss SSS X x ...), read strictly, as mermaid does; axis formats are d3's (%Y %m %d ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardbook::diagram {

inline constexpr std::int64_t day_ms = 86'400'000;

struct CivilDate {
  std::int64_t year = 1970;
  int month = 1, day = 1;     // from 1
};

// Days since 1970-01-01 and back (Howard Hinnant's algorithms, "chrono-Compatible Low-Level Date Algorithms", 2013).
std::int64_t days_of(CivilDate date);
CivilDate date_of(std::int64_t days);
// 1 is Monday.
int weekday_of(std::int64_t days);

// The time that a text says in a format; none if it does not fit exactly.
std::optional<std::int64_t> read_date(std::string_view text, std::string_view format);
// ISO 8601: 2024-01-31, 2024-01-31T10:20, 2024-01-31 10:20:30.5; none if it is none.
std::optional<std::int64_t> read_iso_date(std::string_view text);
// "3d", "1.5h", "200ms" after a time; none if it is no duration. Months and years go by the calendar.
std::optional<std::int64_t> add_duration(std::int64_t begin_ms, std::string_view text);
// In all of d3's signs (d3-time-format, US English, in UTC), with their fillings %-d %_d %0d.
std::string write_date(std::int64_t ms, std::string_view format);
// In dayjs' signs, of those that read_date knows.
std::string write_dayjs(std::int64_t ms, std::string_view format);

}  // namespace shardbook::diagram
