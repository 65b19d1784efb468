// metrics/table: text and JSON of the partition; see table.hpp.
#include "engine/metrics/table.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/base/check.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::metrics {
namespace {

const timeline::Provenance& provenance_of(const Timeline& timeline, Rank rank) {
  const timeline::Provenance* provenance = timeline.provenance(rank);
  SHARDBOOK_CHECK(provenance != nullptr, "the timeline has no rank ", rank);
  return *provenance;
}

// Rows by the clock that told their times, in order of first appearance.
struct OneClock {
  timeline::Provenance provenance;
  Nanoseconds largest_error_ns = 0;
  std::vector<RankRow> rows;
};
std::vector<OneClock> by_clock(const Timeline& timeline, const std::vector<RankRow>& rows) {
  std::vector<OneClock> tables;
  for (const RankRow& row : rows) {
    const timeline::Provenance& provenance = provenance_of(timeline, row.rank);
    auto table = std::find_if(tables.begin(), tables.end(), [&](const OneClock& other) {
      return other.provenance.clock == provenance.clock && other.provenance.profile == provenance.profile;
    });
    if (table == tables.end()) table = tables.insert(table, OneClock{provenance, 0, {}});
    table->largest_error_ns = std::max(table->largest_error_ns, provenance.clock_error_ns);
    table->rows.push_back(row);
  }
  return tables;
}

// "2.345678" where the window is so short that all six decimals fit, "12.346" else.
std::string milliseconds(Nanoseconds ns, bool exact) {
  char digits[48];
  if (exact) std::snprintf(digits, sizeof digits, "%lld.%06lld", static_cast<long long>(ns / 1'000'000), static_cast<long long>(ns % 1'000'000));
  else std::snprintf(digits, sizeof digits, "%lld.%03lld", static_cast<long long>(ns / 1'000'000), static_cast<long long>(ns % 1'000'000 / 1000));
  return digits;
}

// The parts in whole microseconds, as ns: the ends of parts laid end to end are rounded, so that their sum is the window's.
std::vector<Nanoseconds> rounded(const std::vector<Nanoseconds>& parts) {
  const auto round = [](Nanoseconds ns) { return (ns + 500) / 1000 * 1000; };
  std::vector<Nanoseconds> out;
  Nanoseconds end = 0;
  for (Nanoseconds part : parts) {
    out.push_back(round(end + part) - round(end));
    end += part;
  }
  return out;
}

// All but where the window begins.
bool same_figures(const Partition& a, const Partition& b) {
  return a.compute_ns == b.compute_ns && a.exposed_communication_ns == b.exposed_communication_ns && a.exposed_memory_ns == b.exposed_memory_ns &&
         a.idle_ns == b.idle_ns && a.communication_ns == b.communication_ns && a.overlapped_ns == b.overlapped_ns;
}

std::string ranks_text(Rank first, Rank last) { return first == last ? std::to_string(first) : base::text(first, "-", last); }

std::string percent(Nanoseconds part, Nanoseconds whole) {
  if (whole == 0) return "-";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return digits;
}

// Right-aligned, at least one blank before it.
std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 1, ' ') + text;
}

}  // namespace

std::vector<RankRow> rank_rows(const Timeline& timeline) {
  std::vector<RankRow> rows;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    rows.push_back({provenance.rank, partition(timeline, provenance.rank, steps_window(timeline, provenance.rank))});
  }
  return rows;
}

std::vector<RankRow> rank_rows(const Timeline& timeline, Window window) {
  std::vector<RankRow> rows;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    rows.push_back({provenance.rank, partition(timeline, provenance.rank, window)});
  }
  return rows;
}

std::string table_text(const Timeline& timeline, const std::vector<RankRow>& rows) {
  constexpr std::size_t rank_width = 4, time_width = 9, share_width = 6;
  constexpr Nanoseconds exact_below = 10'000'000;
  std::string out;
  for (const OneClock& table : by_clock(timeline, rows)) {
    if (!out.empty()) out += "\n";
    out += base::text("clock: ", clock_text(table.provenance));
    if (table.rows.size() > 1) out += " · ranks' clocks agree to " + duration_text(table.largest_error_ns);
    out += " · times in ms\n";
    out += "rank" + right("compute", time_width + share_width) + right("exposed comm", time_width + share_width) +
           right("exposed memory", time_width + share_width) + right("idle", time_width + share_width) +
           right("=window", time_width - 1) + right("overlap", share_width + 2) + "\n";
    for (std::size_t at = 0; at < table.rows.size();) {
      const Partition& parts = table.rows[at].partition;
      std::size_t next = at + 1;
      while (next < table.rows.size() && table.rows[next].rank == table.rows[next - 1].rank + 1 && same_figures(parts, table.rows[next].partition)) ++next;
      const Nanoseconds window = parts.window.length();
      const bool exact = window < exact_below;
      const std::vector<Nanoseconds> ns = {parts.compute_ns, parts.exposed_communication_ns, parts.exposed_memory_ns, parts.idle_ns};
      const std::vector<Nanoseconds> shown = exact ? ns : rounded(ns);
      std::string label = ranks_text(table.rows[at].rank, table.rows[next - 1].rank);
      if (label.size() < rank_width) label.insert(0, rank_width - label.size(), ' ');
      out += label;
      for (std::size_t part = 0; part < ns.size(); ++part) {
        out += right(milliseconds(shown[part], exact), time_width) + right(percent(ns[part], window), share_width);
      }
      out += right(milliseconds(std::accumulate(shown.begin(), shown.end(), Nanoseconds{0}), exact), time_width) +
             right(percent(parts.overlapped_ns, parts.communication_ns), share_width + 1) + "\n";
      at = next;
    }
  }
  return out;
}

nlohmann::json table_json(const Timeline& timeline, const std::vector<RankRow>& rows) {
  nlohmann::json tables = nlohmann::json::array();
  for (const OneClock& table : by_clock(timeline, rows)) {
    nlohmann::json ranks = nlohmann::json::array();
    for (const RankRow& row : table.rows) {
      const Partition& parts = row.partition;
      const auto share = [](std::optional<double> value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
      ranks.push_back({{"rank", row.rank},
                       {"window_start_ns", parts.window.start},
                       {"window_ns", parts.window.length()},
                       {"compute_ns", parts.compute_ns},
                       {"exposed_communication_ns", parts.exposed_communication_ns},
                       {"exposed_memory_ns", parts.exposed_memory_ns},
                       {"idle_ns", parts.idle_ns},
                       {"communication_ns", parts.communication_ns},
                       {"overlapped_ns", parts.overlapped_ns},
                       {"overlap", share(parts.overlap())},
                       {"attainable", share(parts.attainable())}});
    }
    tables.push_back({{"clock", name_of(table.provenance.clock)},
                      {"profile", table.provenance.profile},
                      {"device", table.provenance.device},
                      {"clock_error_ns", table.largest_error_ns},
                      {"ranks", std::move(ranks)}});
  }
  return tables;
}

}  // namespace shardbook::metrics
