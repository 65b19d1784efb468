// Are errors of diagrams told with their line, and is what was understood kept? (mermaid_test compares with mermaid.js.)
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "page_support.hpp"
#include "engine/base/json.hpp"
#include "viewer/page/diagram_json.hpp"
#include "engine/diagram/diagram_limits.hpp"
#include "engine/diagram/diagram_source.hpp"
#include "engine/diagram/gantt_dates.hpp"
#include "tests/support/cpu_time.hpp"

namespace shardbook::page {
namespace {

std::string error_of(const std::string& text) {
  const Diagram diagram = parse_diagram(text);
  EXPECT_FALSE(diagram.ok);
  return std::to_string(diagram.error_line) + ": " + diagram.error;
}

TEST(Diagram, ErrorsNameTheirLineAndWhatWasExpected) {
  EXPECT_EQ(error_of("flowchart LR\n  a --> b\n  c -> d\n"), "3: `-` was found where the end of the line, `&` or a link was expected");
  EXPECT_EQ(error_of("flowchart LR\n  a[text) --> b\n"), "2: `)` was found where `]` was expected");
  EXPECT_EQ(error_of("flowchart LR\n  a --> end\n"), "2: `end`, which is a keyword was found where a node was expected");
  EXPECT_EQ(error_of("flowchart LR\n subgraph x\n  a\n"), "2: this subgraph has no `end`");
  EXPECT_EQ(error_of("sequenceDiagram\n  A->>B\n"), "2: the end of the line was found where `:` and the message's text was expected");
  EXPECT_EQ(error_of("sequenceDiagram\n  A->>B: x\n  deactivate B\n"), "3: participant B is deactivated, but it is not active");
  EXPECT_EQ(error_of("gantt\n  dateFormat YYYY-MM-DD\n  a :soon, 3d\n"), "3: `soon` is no date in the format YYYY-MM-DD");
  EXPECT_EQ(error_of("pie title x\n"), "1: `pie` is no kind of diagram that is drawn here: those are flowchart, graph, sequenceDiagram and gantt");
  EXPECT_EQ(error_of("\n\n"), "1: the diagram is empty");
}

TEST(Diagram, LinesCountCommentsFrontMatterAndDirectives) {
  EXPECT_EQ(error_of("---\ntitle: x\n---\n%%{init: {\n}}%%\nflowchart LR\n  %% why\n  a -> b\n").substr(0, 2), "8:");
}

TEST(Diagram, StylesLinksAndTooltipsAreKept) {
  const Diagram diagram = parse_diagram("flowchart LR\n  a:::hot --> b\n  classDef hot fill:#f96,stroke-width:4px\n  style b color:red\n  click a \"lab:02#run\" \"go\"\n  linkStyle 0 stroke:blue\n");
  ASSERT_TRUE(diagram.ok) << diagram.error;
  EXPECT_EQ(diagram.classes.at("hot"), (Styles{{"fill", "#f96"}, {"stroke-width", "4px"}}));
  EXPECT_EQ(diagram.nodes[1].style, (Styles{{"color", "red"}}));
  EXPECT_EQ(diagram.nodes[0].link, "lab:02#run");
  EXPECT_EQ(diagram.nodes[0].tooltip, "go");
  EXPECT_EQ(diagram.edges[0].style, (Styles{{"stroke", "blue"}}));
}

TEST(Diagram, WhatWasUnderstoodIsToldAsJson) {
  const auto right = base::parse_json(diagram_json(parse_diagram("flowchart TD\n  subgraph s [Title]\n    a[One] -->|x| b\n  end\n")));
  EXPECT_EQ(right["ok"], true);
  EXPECT_EQ(right["kind"], "flowchart");
  EXPECT_EQ(right["nodes"][0]["label"], "One");
  EXPECT_EQ(right["nodes"][0]["subgraph"], "s");
  EXPECT_EQ(right["edges"][0]["label"], "x");
  EXPECT_EQ(right["subgraphs"][0]["title"], "Title");
  const auto wrong = base::parse_json(diagram_json(parse_diagram("flowchart TD\n  a[\n")));
  EXPECT_EQ(wrong["ok"], false);
  EXPECT_EQ(wrong["line"], 2);
  EXPECT_FALSE(wrong["error"].get<std::string>().empty());
  const auto gantt = base::parse_json(diagram_json(parse_diagram("gantt\n dateFormat YYYY-MM-DD\n a :x, 2024-01-01, 1d\n")));
  EXPECT_EQ(gantt["tasks"][0]["begin_ms"], 1704067200000);
}

TEST(Diagram, NestingAndSizeAreBounded) {
  std::string deep = "flowchart LR\n";
  for (int i = 0; i < 1000; ++i) deep += "subgraph s" + std::to_string(i) + "\n";
  EXPECT_NE(error_of(deep).find("nested deeper than 64"), std::string::npos);
  std::string loops = "sequenceDiagram\n";
  for (int i = 0; i < 1000; ++i) loops += "loop x\n";
  EXPECT_NE(error_of(loops).find("nested deeper than 64"), std::string::npos);
  std::string cross = "flowchart LR\n";
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < 1000; ++i) cross += (i > 0 ? " & n" : "n") + std::to_string(side * 1000 + i);
    cross += side == 0 ? " --> " : "\n";
  }
  EXPECT_NE(error_of(cross).find("more than 20000 links"), std::string::npos);
  EXPECT_NE(error_of(std::string(3'000'000, 'x')).find("2 MiB"), std::string::npos);
}

// Inputs that make careless parsers quadratic. The bound is generous: a quadratic one takes minutes.
TEST(Diagram, AMegabyteOfAnythingEndsSoon) {
  const auto repeated = [](const std::string& head, const std::string& piece) {
    std::string text = head;
    while (text.size() < 1'000'000) text += piece;
    return text;
  };
  for (const std::string& text : {repeated("flowchart LR\n", " "), repeated("flowchart LR\na -. ", "."), repeated("flowchart LR\na", "@"), repeated("flowchart LR\n", "a;"),
                                  repeated("flowchart LR\na -- ", "x "), repeated("flowchart LR\n", "direction "), repeated("flowchart LR\na[\"", "&"),
                                  repeated("flowchart LR\na[\"", "<b "), repeated("sequenceDiagram\nA->>B: ", "#"), repeated("sequenceDiagram\nparticipant ", "a#"),
                                  repeated("sequenceDiagram\n", "-"), repeated("sequenceDiagram\n", "/"), repeated("gantt\n", "a :"), repeated("gantt\n", "%"),
                                  repeated("", "%%{"), repeated("---\n", "---\n"), repeated("flowchart LR\na@{", "a:b,")}) {
    const double begin = tests::cpu_seconds();
    parse_diagram(text);
    const double seconds = tests::cpu_seconds() - begin;
    EXPECT_LT(seconds, 20) << text.substr(0, 40);
  }
}

TEST(Diagram, EveryFenceOfTheProjectIsUnderstood) {
  std::size_t fences = 0;
  for (const std::string& name : test::project_pages()) {
    test::each_block(test::project_page(name).blocks, [&](const Block& block) {
      if (block.kind != Block::Kind::diagram) return;
      ++fences;
      const Diagram diagram = parse_diagram(block.text);
      EXPECT_TRUE(diagram.ok) << name << ":" << block.line + diagram.error_line - 1 << ": " << diagram.error;
    });
  }
  EXPECT_GE(fences, 5u);
}

TEST(Labels, EntitiesBreaksAndTagsAreResolved) {
  EXPECT_EQ(label_text("a &lt; b &amp; c"), "a < b & c");
  EXPECT_EQ(label_text("one<br/>two<BR>three\\nfour"), "one\ntwo\nthree\nfour");
  EXPECT_EQ(label_text("<b>bold</b> 1 < 2"), "bold 1 < 2");
  EXPECT_EQ(label_text("**bold** snake_case _it_", true), "bold snake_case it");
  EXPECT_EQ(entity_text("#x"), "");
  EXPECT_EQ(entity_text("9829"), "♥");
}

TEST(Gantt, DaysThatNeverEndAreAnErrorAndBlanksExcludeNothing) {
  EXPECT_EQ(error_of("gantt\n dateFormat YYYY-MM-DD\n excludes monday tuesday wednesday thursday friday saturday sunday\n a :2024-01-01, 5d\n"),
            "4: `excludes` leaves too few days for the tasks");
  const Diagram diagram = parse_diagram("gantt\n excludes sunday ,  other\n a :a, 2024-01-01, 5d\n");
  ASSERT_TRUE(diagram.ok) << diagram.error;
  EXPECT_EQ(diagram.tasks[0].end_ms - diagram.tasks[0].begin_ms, 5 * day_ms);
}

TEST(GanttDates, RoundTripOverCenturies) {
  for (std::int64_t days = -200'000; days < 200'000; days += 37) {
    const CivilDate date = date_of(days);
    EXPECT_EQ(days_of(date), days);
    EXPECT_GE(date.day, 1);
    EXPECT_LE(date.day, 31);
  }
  EXPECT_EQ(weekday_of(days_of({2026, 11, 21})), 6);
}

// The right-hand sides are what d3-time-format writes.
TEST(GanttDates, AreWrittenInAllOfD3sSigns) {
  const auto at = [](CivilDate day, std::int64_t rest) { return days_of(day) * day_ms + rest; };
  const std::int64_t morning = at({2024, 1, 5}, 32'823'042);      // 09:07:03.042
  EXPECT_EQ(write_date(morning, "%a %A %b %B %p %%"), "Fri Friday Jan January AM %");
  EXPECT_EQ(write_date(morning, "%d %e %-d %_d %0e %j %-j %_j"), "05  5 5  5 05 005 5   5");
  EXPECT_EQ(write_date(morning, "%H:%M:%S.%L %f %I %-I %-L"), "09:07:03.042 042000 09 9 42");
  EXPECT_EQ(write_date(morning, "%x | %X | %c"), "1/5/2024 | 9:07:03 AM | 1/5/2024, 9:07:03 AM");
  EXPECT_EQ(write_date(morning, "%s %Q %q %Z"), "1704445623 1704445623042 1 +0000");
  // Weeks: Sunday the 3rd is the last day of 2020's ISO week 53, and begins the week after the first Sunday's.
  EXPECT_EQ(write_date(at({2021, 1, 3}, 0), "%G %g %V %U %W %u %w"), "2020 20 53 01 00 7 0");
  EXPECT_EQ(write_date(at({2020, 12, 31}, 0), "%G %V %U %W %u %w %q"), "2020 53 52 52 4 4 4");
  EXPECT_EQ(write_date(at({2023, 1, 1}, 0), "%G %V %U %W"), "2022 52 01 00");
  EXPECT_EQ(write_date(at({2024, 12, 30}, 0), "%G %V %U %W"), "2025 01 52 53");
  // Before 1970 a second that has begun counts; what is no sign stands as it is, and a lone % is nothing.
  EXPECT_EQ(write_date(-500, "%s %Q %S"), "-1 -500 59");
  EXPECT_EQ(write_date(0, "%s %k %-k s 100%"), "0 k k s 100");
}

TEST(GanttDates, ReadStrictly) {
  EXPECT_EQ(read_date("2024-02-29", "YYYY-MM-DD"), days_of({2024, 2, 29}) * day_ms);
  EXPECT_FALSE(read_date("2023-02-29", "YYYY-MM-DD").has_value());
  EXPECT_FALSE(read_date("2024-2-9", "YYYY-MM-DD").has_value());
  EXPECT_FALSE(read_date("2024-02-09x", "YYYY-MM-DD").has_value());
  EXPECT_EQ(read_date("9:05 PM", "H:mm A"), 21 * 3'600'000LL + 5 * 60'000);
  EXPECT_EQ(write_date(days_of({2024, 1, 5}) * day_ms, "%a %d %b %Y, day %j"), "Fri 05 Jan 2024, day 005");
  EXPECT_EQ(add_duration(0, "1.5h"), 5'400'000);
  EXPECT_EQ(add_duration(days_of({2024, 1, 31}) * day_ms, "1M"), days_of({2024, 2, 29}) * day_ms);
  EXPECT_FALSE(add_duration(0, "soon").has_value());
}

}  // namespace
}  // namespace shardbook::page
